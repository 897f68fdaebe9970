//! Traces: requests with their times, from recordings of real systems.

use super::csv::{ALIBABA, MSR, SYSTOR};
use super::{blktrace, iolog, shown, spc, NumberedLines, ReadError};
use crate::load::{Arrivals, LoadRequest, LoadSource, LoadStep, REQUEST_BYTES_MAX};
use crate::target::IoKind;
use openraid_sim::random::mix;
use openraid_units::{Bytes, Nanos};
use std::io::BufRead;

/// Maximum number of requests in one trace: 32 bytes each.
pub const RECORDS_MAX: usize = 20_000_000;

/// Maximum time from the first request of a trace to its last. The clock of a simulated machine ends after 208 days,
/// and writing out the dirty data at the end needs some of them.
pub const LENGTH_MAX: Nanos = Nanos::from_secs(LENGTH_DAYS_MAX * 86_400);
const LENGTH_DAYS_MAX: u64 = 180;

/// The file format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// fio's iolog, version 2 or 3.
    FioIolog,
    /// The CSV of the traces of Microsoft Research Cambridge.
    MsrCsv,
    /// The CSV of the traces of Alibaba's cloud disks.
    AlibabaCsv,
    /// The CSV of the traces of virtual desktops that were published at SYSTOR '17.
    SystorCsv,
    /// The text of the Storage Performance Council.
    Spc,
    /// The text that blkparse writes for a recording of blktrace.
    Blkparse,
}

/// A request of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// Time since the first request.
    pub at: Nanos,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// Kind of the request.
    pub kind: IoKind,
    /// Number of the line in the file.
    pub line: u32,
}

/// A trace: at least one request, sorted by time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestTrace {
    records: Vec<TraceRecord>,
}

/// Reads a trace.
///
/// # Errors
/// The first invalid line, or the first line whose time is before that of the line above.
pub fn read_trace(format: TraceFormat, from: impl BufRead) -> Result<RequestTrace, ReadError> {
    let lines = NumberedLines::new(from);
    let trace = match format {
        TraceFormat::FioIolog => iolog::read(lines)?,
        TraceFormat::MsrCsv => MSR.read(lines)?,
        TraceFormat::AlibabaCsv => ALIBABA.read(lines)?,
        TraceFormat::SystorCsv => SYSTOR.read(lines)?,
        TraceFormat::Spc => spc::read(lines)?,
        TraceFormat::Blkparse => blktrace::read(lines)?,
    };
    if trace.records.is_empty() {
        return Err(ReadError::at(0, "no request in it; record at least one read or write"));
    }
    Ok(trace)
}

impl TraceFormat {
    /// The format, recognised from the first line of a file that is neither empty nor a comment.
    #[must_use]
    pub fn of(first_line: &str) -> Option<Self> {
        if first_line.starts_with("fio version") {
            return Some(Self::FioIolog);
        }
        if blktrace::is_event(first_line) {
            return Some(Self::Blkparse);
        }
        // Lines of several forms have equally many fields, and any may be cut short. The place and the form of the
        // direction distinguish them.
        let forms = [(&MSR, Self::MsrCsv), (&ALIBABA, Self::AlibabaCsv), (&SYSTOR, Self::SystorCsv)];
        let known = forms.into_iter().find(|(form, _)| form.is_line(first_line)).map(|(_, format)| format);
        known.or_else(|| spc::is_line(first_line).then_some(Self::Spc))
    }
}

/// Does this line of a fio job name another file?
pub(super) fn is_include(line: &str) -> bool {
    line.split_whitespace().next() == Some("include") && !line.contains('=')
}

/// Why such a line is refused.
pub(super) fn includes(line: &str) -> String {
    format!("{} reads another file; put the lines of that file here", shown(line))
}

/// Why a line that begins no file of a known kind is not understood.
pub(super) fn unknown_kind(line: &str) -> String {
    if is_include(line) {
        return includes(line);
    }
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let is_number = |field: &&str| field.parse::<f64>().is_ok();
    // Seconds, sector, sectors, 0 or 1, volume: the traces of Tencent's cloud disks.
    if fields.len() == 5 && fields.iter().all(is_number) && ["0", "1"].contains(&fields[3]) {
        return format!(
            "{} has its time in whole seconds, as a trace of Tencent's cloud disks has, so the times of its requests are \
             not known; use a trace with finer times",
            shown(line)
        );
    }
    if fields.len() > 2 {
        return format!(
            "{} begins no trace of a known form; convert it to one: SPC (ASU,LBA,Size,R or W,seconds), MSR \
             (Timestamp,Hostname,DiskNumber,Read or Write,Offset,Size,ResponseTime), Alibaba (device,R or W,offset,\
             length,microseconds), SYSTOR '17 (Timestamp,Response,R or W,LUN,Offset,Size), or a fio iolog",
            shown(line)
        );
    }
    format!(
        "{} stands before any [section], so this is not a fio job; known are a fio job ([job1] and options), an Iometer .icf \
         (Version ...), iostat -x (Linux ...), a fio iolog (fio version 2 or 3 iolog), the text of blkparse, traces in CSV \
         (SPC, MSR, Alibaba, SYSTOR '17)",
        shown(line)
    )
}

impl RequestTrace {
    /// Adds a request. Its time counts from the zero of the trace.
    pub(super) fn push(&mut self, line: u64, at: u64, kind: IoKind, offset: u64, len: u64) -> Result<(), ReadError> {
        if self.records.len() == RECORDS_MAX {
            return Err(ReadError::at(line, format!("more than {RECORDS_MAX} requests; cut the trace")));
        }
        if self.records.last().is_some_and(|before| before.at.get() > at) {
            return Err(ReadError::at(line, "its time lies before that of the request above; sort the trace by time"));
        }
        if at > LENGTH_MAX.get() {
            let days = at / Nanos::from_secs(86_400).get();
            let reason = format!(
                "it comes {days} days after the first request, and a trace may last for {LENGTH_DAYS_MAX}; cut the trace \
                 before it, or shorten the gap"
            );
            return Err(ReadError::at(line, reason));
        }
        let sized = (len > 0 && len <= u64::from(REQUEST_BYTES_MAX)) || kind == IoKind::Flush;
        let whole = len.is_multiple_of(512) && offset.is_multiple_of(512);
        let small = u32::try_from(len).ok().filter(|_| sized && whole && offset.checked_add(len).is_some());
        let Some(len) = small else {
            let reason = format!(
                "a request of {len} bytes at byte {offset} is not possible; give whole sectors of 512 bytes, up to \
                 {REQUEST_BYTES_MAX} bytes"
            );
            return Err(ReadError::at(line, reason));
        };
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        self.records.push(TraceRecord { at: Nanos(at), offset, len, kind, line });
        Ok(())
    }

    /// All requests.
    #[must_use]
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }

    /// Size of the largest request.
    #[must_use]
    pub fn bytes_max(&self) -> u32 {
        self.records.iter().map(|record| record.len).max().unwrap_or(0)
    }

    /// Does the trace have writes?
    #[must_use]
    pub fn writes(&self) -> bool {
        self.records.iter().any(|record| record.kind == IoKind::Write)
    }

    /// A number that is computed from all requests and their times; it differs between traces.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let of = |digest: u64, record: &TraceRecord| {
            let kind = match record.kind {
                IoKind::Read => 1,
                IoKind::Write => 2,
                IoKind::Flush => 3,
            };
            let values = [record.at.get(), record.offset, u64::from(record.len) << 2 | kind];
            values.into_iter().fold(digest, |digest, value| mix(digest ^ value))
        };
        self.records.iter().fold(0, of)
    }

    /// Time from the first request to the last.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.records.last().map_or(Nanos::ZERO, |record| record.at)
    }

    /// Are all requests inside a target of this size?
    ///
    /// # Errors
    /// The first line with a request outside the target.
    pub fn check(&self, capacity: Bytes) -> Result<(), ReadError> {
        let end = |record: &TraceRecord| record.offset + u64::from(record.len);
        match self.records.iter().find(|record| end(record) > capacity.get()) {
            None => Ok(()),
            Some(record) => Err(ReadError::at(
                u64::from(record.line),
                format!("it reaches to byte {}, the target holds {capacity}; use a larger target", end(record)),
            )),
        }
    }

    /// The requests at their times.
    #[must_use]
    pub fn arrivals(&self) -> TraceReplay<'_> {
        TraceReplay { trace: self, next: 0 }
    }

    /// Moves the address of every request, so that the volumes of a trace follow each other.
    pub(super) fn shift(&mut self, by: impl Fn(usize) -> u64) {
        for (number, record) in self.records.iter_mut().enumerate() {
            record.offset += by(number);
        }
    }
}

/// A trace that is replayed: with its times as arrivals, or as fast as possible as a source.
pub struct TraceReplay<'a> {
    trace: &'a RequestTrace,
    next: usize,
}

impl TraceReplay<'_> {
    fn record(&mut self) -> Option<&TraceRecord> {
        let record = self.trace.records.get(self.next)?;
        self.next += 1;
        Some(record)
    }
}

impl Arrivals for TraceReplay<'_> {
    fn next(&mut self) -> Option<(Nanos, LoadRequest)> {
        let record = self.record()?;
        Some((record.at, LoadRequest { kind: record.kind, offset: record.offset, len: record.len }))
    }
}

impl LoadSource for TraceReplay<'_> {
    fn next(&mut self, _worker: u16) -> LoadStep {
        match self.record() {
            Some(record) => LoadStep::Ask(LoadRequest { kind: record.kind, offset: record.offset, len: record.len }),
            None => LoadStep::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(format: TraceFormat, text: &str) -> Vec<(u64, IoKind, u64, u32)> {
        let trace = read_trace(format, text.as_bytes()).unwrap();
        trace.records().iter().map(|r| (r.at.get(), r.kind, r.offset, r.len)).collect()
    }

    fn error(format: TraceFormat, text: &str) -> String {
        read_trace(format, text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn each_format_gives_the_same_requests() {
        let expected = vec![(0, IoKind::Read, 4096, 8192), (1_500_000, IoKind::Write, 0, 512)];
        let iolog = "fio version 3 iolog\n24 /dev/sda add\n125 /dev/sda open\n268 /dev/sda read 4096 8192\n\
                     1768 /dev/sda write 0 512\n1820 /dev/sda close\n";
        assert_eq!(all(TraceFormat::FioIolog, iolog), expected);
        let v2 = "fio version 2 iolog\nf add\nf open\nf read 4096 8192\nf wait 1500 0\nf write 0 512\nf close\n";
        assert_eq!(all(TraceFormat::FioIolog, v2), expected);
        let msr = "128166372003061629,src1,0,Read,4096,8192,1331\n128166372003076629,src1,0,Write,0,512,100\n";
        assert_eq!(all(TraceFormat::MsrCsv, msr), expected);
        let spc = "0,8,8192,R,0.000000\n0,0,512,w,0.001500,junk\n";
        assert_eq!(all(TraceFormat::Spc, spc), expected);
        for (line, format) in [(iolog, TraceFormat::FioIolog), (msr, TraceFormat::MsrCsv), (spc, TraceFormat::Spc)] {
            assert_eq!(TraceFormat::of(line.lines().next().unwrap()), Some(format));
        }
        assert_eq!(TraceFormat::of("128166372003061629,src1,0,Read,4096"), Some(TraceFormat::MsrCsv), "cut short");
        // Optional fields make an SPC line as long as one of MSR.
        let long = "0,8,8192,R,0.000000,more,fields\n0,0,512,w,0.001500,more,fields\n";
        assert_eq!(TraceFormat::of(long.lines().next().unwrap()), Some(TraceFormat::Spc));
        assert_eq!(all(TraceFormat::Spc, long), expected);
        let digest = |format, text: &str| read_trace(format, text.as_bytes()).unwrap().digest();
        assert_eq!(digest(TraceFormat::Spc, long), digest(TraceFormat::MsrCsv, msr));
        assert_eq!(digest(TraceFormat::Spc, long), digest(TraceFormat::FioIolog, iolog));
        assert_ne!(digest(TraceFormat::Spc, long), digest(TraceFormat::FioIolog, &iolog.replace("1768", "1769")));
    }

    #[test]
    fn published_forms_are_read_or_refused_with_the_right_reason() {
        let expected = vec![(0, IoKind::Read, 8192, 8192), (1_000_000, IoKind::Write, 16_384, 4096)];
        let alibaba = "419,R,8192,8192,1577808144360767\n419,W,16384,4096,1577808144361767\n";
        let rows = "1456096441.000000000,0.000100,R,1,8192,8192\n1456096441.001000000,0.000200,W,1,16384,4096\n";
        let systor = format!("Timestamp,Response,IOType,LUN,Offset,Size\n{rows}");
        let spc = "# recorded on a Monday\n0,16,8192,R,0.5\n# later\n0,32,4096,W,0.501\n";
        for (text, format) in [
            (alibaba, TraceFormat::AlibabaCsv),
            (rows, TraceFormat::SystorCsv),
            (&systor, TraceFormat::SystorCsv),
            (spc, TraceFormat::Spc),
        ] {
            let first = text.lines().find(|line| !line.starts_with('#')).unwrap();
            assert_eq!((TraceFormat::of(first), all(format, text)), (Some(format), expected.clone()), "{text}");
        }
        let two = format!("{alibaba}7,W,0,4096,1577808144361768\n");
        assert!(error(TraceFormat::AlibabaCsv, &two).starts_with("line 3: \"7\" is a second disk; make one trace"));
        for (line, words) in [
            ("1538323200,12910952,128,0,1063", "has its time in whole seconds, as a trace of Tencent's"),
            ("1,2,3,4,5", "begins no trace of a known form; convert it to one: SPC"),
            ("10,h,0,Seek,0,512,1", "begins no trace of a known form"),
            ("rubbish", "stands before any [section]"),
        ] {
            assert_eq!(TraceFormat::of(line), None, "{line}");
            assert!(unknown_kind(line).contains(words), "{line}: {}", unknown_kind(line));
        }
    }

    #[test]
    fn units_of_an_spc_trace_follow_one_another() {
        let spc = "0,0,4096,R,0.0\n1,0,4096,R,0.1\n0,2048,4096,R,0.2\n";
        let places: Vec<u64> = all(TraceFormat::Spc, spc).iter().map(|r| r.2).collect();
        // Unit 0 ends at 1 MiB + 4 KiB, so unit 1 begins at 2 MiB.
        assert_eq!(places, [0, 2 << 20, 1 << 20]);
    }

    #[test]
    fn garbage_and_time_running_backwards_are_refused_with_their_line() {
        use TraceFormat::{FioIolog, MsrCsv, Spc};
        let cases = [
            (MsrCsv, "1,h,0,Read,0,512,1\nrubbish\n", "line 2: \"rubbish\" has 1 fields"),
            (MsrCsv, "10,h,0,Read,0,512,1\n9,h,0,Read,0,512,1\n", "line 2: its time lies before"),
            (MsrCsv, "10,h,0,Seek,0,512,1\n", "line 1: \"Seek\" is neither Read nor Write"),
            (MsrCsv, "10,h,0,Read,0,513,1\n", "line 1: a request of 513 bytes"),
            (MsrCsv, "10,h,0,Read,18446744073709551104,1024,1\n", "line 1: a request of 1024 bytes"),
            (MsrCsv, "10,h,0,Read,0\n", "line 1: \"10,h,0,Read,0\" has 5 fields, 7 are expected"),
            (
                Spc,
                "0,0,4096,R,0.5\n0,0,4096,R,0.6\n0,0,4096,R,0.55\n",
                "line 3: its time lies before that of the request",
            ),
            (Spc, "0,0,4096,R,0.5\n0,0,4096,R,0.4\n", "line 2: its time lies before"),
            (Spc, "0,0,4096,S,0.5\n", "line 1: \"S\" is neither R nor W"),
            (FioIolog, "fio version 2 iolog\nf read 0\n", "line 2: \"f read 0\" has no offset and length"),
            (FioIolog, "fio version 2 iolog\nf wait\n", "line 2: a wait without"),
            (Spc, "0,0,4096,R,later\n", "line 1: \"later\" is not a valid time"),
            (Spc, "0,99999999999999999999,4096,R,0\n", "line 1: \"99999999999999999999\" is not a valid position"),
            (FioIolog, "fio version 9 iolog\n", "line 1: \"fio version 9 iolog\" is not an iolog"),
            (FioIolog, "fio version 2 iolog\nf jump 0 512\n", "line 2: \"jump\" is not an action"),
            (FioIolog, "fio version 2 iolog\nf read 0 512\ngarbage\n", "line 3: \"garbage\" has no action"),
            (FioIolog, "fio version 2 iolog\nf read 0 512\ng h i j\n", "line 3: \"h\" is not an action"),
            (FioIolog, "fio version 2 iolog\nf read 0 512\ng read 0 512\n", "line 3: \"g\" is a second file"),
            (FioIolog, "fio version 3 iolog\n5 f read 0 512\n4 f read 0 512\n", "line 3: its time lies before"),
            (FioIolog, "fio version 2 iolog\nf read 0 1024\nf write 0 1024", "line 3: the file ends inside this line"),
            (Spc, "0,0,4096,R,0.5\n0,0,4096,R,0.5", "line 2: the file ends inside this line"),
            (FioIolog, "", "no request in it"),
        ];
        for (format, text, expected) in cases {
            let error = error(format, text);
            assert!(error.starts_with(expected), "{text:?}: {error}");
            let remedies = ["correct the line", "sort the trace", "give whole sectors", "make one trace", "convert it"];
            let remedies = [&remedies[..], &["complete the line"]].concat();
            let remedies = [&remedies[..], &["write them", "record at least"]].concat();
            assert!(remedies.iter().any(|remedy| error.contains(remedy)), "{text:?} without a remedy: {error}");
        }
    }

    #[test]
    fn a_trace_that_outlasts_the_clock_is_refused_with_its_line_whatever_its_format() {
        use TraceFormat::{FioIolog, MsrCsv, Spc};
        // In seconds: the last possible time, and one second later.
        let (last, later) = (180 * 86_400, 180 * 86_400 + 1);
        let msr = |at: u64| format!("0,h,0,Read,0,512,1\n{},h,0,Read,0,512,1\n", at * 10_000_000);
        let spc = |at: u64| format!("0,0,512,R,0\n0,0,512,R,{at}\n");
        let iolog = |at: u64| format!("fio version 3 iolog\n0 f read 0 512\n{} f read 0 512\n", at * 1_000_000);
        let waits = |at: u64| format!("fio version 2 iolog\nf read 0 512\nf wait {} 0\nf read 0 512\n", at * 1_000_000);
        for (format, fits, long, line) in [
            (MsrCsv, msr(last), msr(later), 2),
            (Spc, spc(last), spc(later), 2),
            (FioIolog, iolog(last), iolog(later), 3),
            (FioIolog, waits(last), waits(later), 4),
        ] {
            assert_eq!(all(format, &fits).last().unwrap().0, LENGTH_MAX.get());
            let expected =
                format!("line {line}: it comes 180 days after the first request, and a trace may last for 180");
            let error = error(format, &long);
            assert!(error.starts_with(&expected), "{error}");
        }
        assert!(error(MsrCsv, &msr(300 * 86_400)).contains("300 days after"));
    }

    #[test]
    fn requests_beyond_the_target_are_named_by_their_line() {
        let trace = read_trace(TraceFormat::Spc, "0,0,512,R,0\n0,100,512,R,1\n".as_bytes()).unwrap();
        assert_eq!(trace.check(Bytes(101 * 512)), Ok(()));
        let error = trace.check(Bytes(100 * 512)).unwrap_err().to_string();
        assert_eq!(error, "line 2: it reaches to byte 51712, the target holds 51200 bytes; use a larger target");
    }
}
