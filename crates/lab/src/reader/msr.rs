//! Reads the CSV of the traces of Microsoft Research Cambridge:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, with times in steps of 100 ns since 1601.

use super::trace::Trace;
use super::{shown, Lines, ReadError, BEFORE_THE_FIRST};
use crate::target::IoKind;
use std::io::BufRead;

/// The form of a line, for errors.
const FORM: &str =
    "correct the line to Timestamp,Hostname,DiskNumber,Read or Write,Offset,Size,ResponseTime, or remove it";

pub(super) fn read<R: BufRead>(mut lines: Lines<R>) -> Result<Trace, ReadError> {
    let mut trace = Trace::default();
    let mut zero = None;
    let mut disk: Option<String> = None;
    while let Some((line, text)) = lines.next()? {
        if text.is_empty() || (line == 1 && text.starts_with("Timestamp")) {
            continue;
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [time, host, number, kind, offset, size, _] = fields[..] else {
            let reason = format!("{} has {} fields, 7 are expected: {FORM}", shown(text), fields.len());
            return Err(ReadError::at(line, reason));
        };
        let bad =
            |text: &str, what: &str| ReadError::at(line, format!("{} is not a valid {what}; {FORM}", shown(text)));
        let steps: u64 = time.parse().map_err(|_| bad(time, "time"))?;
        let kind = match kind {
            "Read" | "read" => IoKind::Read,
            "Write" | "write" => IoKind::Write,
            other => return Err(ReadError::at(line, format!("{} is neither Read nor Write; {FORM}", shown(other)))),
        };
        let offset: u64 = offset.parse().map_err(|_| bad(offset, "position"))?;
        let size: u64 = size.parse().map_err(|_| bad(size, "size"))?;
        let name = format!("{host},{number}");
        if disk.as_ref().is_some_and(|known| *known != name) {
            return Err(ReadError::at(line, format!("{} is a second disk; make one trace of each", shown(&name))));
        }
        disk.get_or_insert(name);
        let zero = *zero.get_or_insert(steps);
        let at = steps.checked_sub(zero).and_then(|steps| steps.checked_mul(100));
        let at = at.ok_or_else(|| ReadError::at(line, BEFORE_THE_FIRST))?;
        trace.push(line, at, kind, offset, size)?;
    }
    Ok(trace)
}
