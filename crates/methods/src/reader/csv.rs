//! Reads published traces whose lines have a fixed number of columns, separated by commas. A line that begins with # is
//! a comment, and the first line may name the columns.

use super::fio_numbers::seconds;
use super::trace::RequestTrace;
use super::{shown, NumberedLines, ReadError, BEFORE_THE_FIRST};
use crate::target::IoKind;
use std::io::BufRead;

/// The columns of a form of traces, counted from 0. Positions and sizes are in bytes.
pub(super) struct Form {
    /// The names of the columns, as the form is published.
    columns: &'static str,
    count: usize,
    time: usize,
    /// The time in nanoseconds.
    parse_time: fn(&str) -> Option<u64>,
    kind: usize,
    /// The words of reads and of writes.
    kinds: (&'static [&'static str], &'static [&'static str]),
    offset: usize,
    size: usize,
    /// The columns that together name a disk.
    disk: &'static [usize],
}

/// Traces of Microsoft Research Cambridge, with times in steps of 100 ns since 1601.
pub(super) const MSR: Form = Form {
    columns: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    count: 7,
    time: 0,
    parse_time: |text| steps(text, 100),
    kind: 3,
    kinds: (&["Read", "read"], &["Write", "write"]),
    offset: 4,
    size: 5,
    disk: &[1, 2],
};

/// Traces of Alibaba's cloud disks, with times in microseconds.
pub(super) const ALIBABA: Form = Form {
    columns: "device_id,opcode,offset,length,timestamp",
    count: 5,
    time: 4,
    parse_time: |text| steps(text, 1000),
    kind: 1,
    kinds: (&["R"], &["W"]),
    offset: 2,
    size: 3,
    disk: &[0],
};

/// Traces of virtual desktops, published at SYSTOR '17, with times in seconds.
pub(super) const SYSTOR: Form = Form {
    columns: "Timestamp,Response,IOType,LUN,Offset,Size",
    count: 6,
    time: 0,
    parse_time: seconds,
    kind: 2,
    kinds: (&["R"], &["W"]),
    offset: 4,
    size: 5,
    disk: &[3],
};

fn steps(text: &str, nanoseconds: u64) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(nanoseconds)
}

impl Form {
    /// Does a line have the columns of this form, or a part of them that names a direction in the right place?
    pub fn is_line(&self, line: &str) -> bool {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let is_kind = |word: &&str| self.kinds.0.contains(word) || self.kinds.1.contains(word);
        self.is_head(line) || (fields.len() <= self.count && fields.get(self.kind).is_some_and(is_kind))
    }

    fn is_head(&self, line: &str) -> bool {
        line.trim().eq_ignore_ascii_case(self.columns)
    }

    fn remedy(&self) -> String {
        let (read, write) = (self.kinds.0[0], self.kinds.1[0]);
        format!("correct the line to {} with {read} or {write}, or remove it", self.columns)
    }

    pub fn read<R: BufRead>(&self, mut lines: NumberedLines<R>) -> Result<RequestTrace, ReadError> {
        let mut trace = RequestTrace::default();
        let mut zero = None;
        let mut disk: Option<String> = None;
        while let Some((line, text)) = lines.next()? {
            if text.is_empty() || text.starts_with('#') || (line == 1 && self.is_head(text)) {
                continue;
            }
            let fields: Vec<&str> = text.split(',').map(str::trim).collect();
            if fields.len() != self.count {
                let (count, known) = (fields.len(), self.count);
                let reason = format!("{} has {count} fields, {known} are expected: {}", shown(text), self.remedy());
                return Err(ReadError::at(line, reason));
            }
            let bad = |text: &str, what: &str| {
                ReadError::at(line, format!("{} is not a valid {what}; {}", shown(text), self.remedy()))
            };
            let number = |at: usize, what| fields[at].parse::<u64>().map_err(|_| bad(fields[at], what));
            let time = (self.parse_time)(fields[self.time]).ok_or_else(|| bad(fields[self.time], "time"))?;
            let kind = match fields[self.kind] {
                word if self.kinds.0.contains(&word) => IoKind::Read,
                word if self.kinds.1.contains(&word) => IoKind::Write,
                other => {
                    let (read, write) = (self.kinds.0[0], self.kinds.1[0]);
                    let reason = format!("{} is neither {read} nor {write}; {}", shown(other), self.remedy());
                    return Err(ReadError::at(line, reason));
                }
            };
            let (offset, size) = (number(self.offset, "position")?, number(self.size, "size")?);
            let name = self.disk.iter().map(|at| fields[*at]).collect::<Vec<_>>().join(",");
            if disk.as_ref().is_some_and(|known| *known != name) {
                let reason = format!("{} is a second disk; make one trace of each", shown(&name));
                return Err(ReadError::at(line, reason));
            }
            disk.get_or_insert(name);
            let zero = *zero.get_or_insert(time);
            let at = time.checked_sub(zero).ok_or_else(|| ReadError::at(line, BEFORE_THE_FIRST))?;
            trace.push(line, at, kind, offset, size)?;
        }
        Ok(trace)
    }
}
