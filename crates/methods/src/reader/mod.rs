//! Reads loads from files of other programs: fio's job files, Iometer's configurations, means of iostat, traces.
//!
//! Any input may be invalid. An error names the line of the file and the fault. The readers guess nothing and skip
//! nothing without an error. Memory grows with the input, up to named limits.

mod blktrace;
mod csv;
mod fio_job;
mod fio_numbers;
mod icf;
mod iolog;
mod iostat;
mod spc;
mod trace;

pub use fio_job::{read_fio_job, FioJob, FioSection};
pub use icf::{read_icf, IometerFile};
pub use iostat::{is_iostat, read_iostat, IostatDevice};
pub use trace::{read_trace, RequestTrace, TraceFormat, TraceRecord, LENGTH_MAX, RECORDS_MAX};

use std::fmt;
use std::io::BufRead;

/// Maximum length of a line in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// The reason why a file cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Number of the line, from 1; 0 if the error is about the whole file.
    pub line: u64,
    /// The fault and its remedy.
    pub reason: String,
}

impl ReadError {
    pub(crate) fn at(line: u64, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ReadError {}

/// The error of a trace with a request whose time is before that of its first.
pub(crate) const BEFORE_THE_FIRST: &str = "its time lies before that of the first request; sort the trace by time";

/// Lines with their numbers, each at most [`LINE_BYTES_MAX`] long, in UTF-8.
pub(crate) struct NumberedLines<R> {
    from: R,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> NumberedLines<R> {
    pub fn new(from: R) -> Self {
        Self { from, number: 0, buffer: Vec::new() }
    }

    /// Has the file ended without a line?
    pub fn is_empty(&self) -> bool {
        self.number <= 1
    }

    /// The next line without its end.
    pub fn next(&mut self) -> Result<Option<(u64, &str)>, ReadError> {
        Ok(self.next_marked()?.map(|(number, text, _)| (number, text)))
    }

    /// The next line without its end, and whether it had one.
    pub fn next_marked(&mut self) -> Result<Option<(u64, &str, bool)>, ReadError> {
        if !self.fill()? {
            return Ok(None);
        }
        let has_end = self.buffer.last() == Some(&b'\n');
        self.text().map(|(number, text)| Some((number, text, has_end)))
    }

    /// The next line without its end. A line that has no end is an error: the file may have been cut off inside a number,
    /// and the rest of a number is a number too.
    pub fn next_whole(&mut self) -> Result<Option<(u64, &str)>, ReadError> {
        if !self.fill()? {
            return Ok(None);
        }
        if self.buffer.last() != Some(&b'\n') {
            let reason = "the file ends inside this line, so it may have been cut off; complete the line, or remove it";
            return Err(ReadError::at(self.number, reason));
        }
        self.text().map(Some)
    }

    /// Reads the next line. Returns false after the last one.
    fn fill(&mut self) -> Result<bool, ReadError> {
        self.number += 1;
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = std::io::Read::take(&mut self.from, limit).read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|error| ReadError::at(self.number, format!("it cannot be read: {error}")))?;
        if self.buffer.len() > LINE_BYTES_MAX {
            let reason = format!("longer than {LINE_BYTES_MAX} bytes; the file is not of that format");
            return Err(ReadError::at(self.number, reason));
        }
        Ok(read > 0)
    }

    fn text(&self) -> Result<(u64, &str), ReadError> {
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Ok((self.number, text.trim_end_matches(['\n', '\r']))),
            Err(_) => Err(ReadError::at(self.number, "not text in UTF-8; the file is not of that format")),
        }
    }
}

/// The error of a second load with the same name: a reference to this name would be ambiguous.
pub(crate) fn second(line: u64, what: &str, name: &str) -> ReadError {
    ReadError::at(line, format!("a second {what} {}; rename one of them", shown(name)))
}

/// A part of a line for an error message, cut to a readable length.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    let mut cut: String = text.chars().take(SHOWN_MAX).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    format!("{cut:?}")
}
