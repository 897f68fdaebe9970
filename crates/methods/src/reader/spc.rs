//! Reads the text format of the Storage Performance Council: `ASU,LBA,Size,Opcode,Timestamp[,...]`, with addresses in
//! sectors of 512 bytes and times in seconds. The units (ASUs) of a trace are placed one after the other; each begins
//! at a whole MiB. A line that begins with # is a comment.

use super::fio_numbers::seconds;
use super::trace::RequestTrace;
use super::{shown, NumberedLines, ReadError, BEFORE_THE_FIRST};
use crate::target::IoKind;
use std::collections::BTreeMap;
use std::io::BufRead;

const MIB: u64 = 1 << 20;
/// The form of a line, for errors.
const FORM: &str = "correct the line to ASU,LBA,Size,R or W,seconds, or remove it";

/// Does a line have numbers, and after them R or W?
pub(super) fn is_line(line: &str) -> bool {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let are_numbers = fields.iter().take(3).all(|field| field.parse::<u64>().is_ok());
    are_numbers && fields.get(3).is_some_and(|word| ["R", "r", "W", "w"].contains(word))
}

pub(super) fn read<R: BufRead>(mut lines: NumberedLines<R>) -> Result<RequestTrace, ReadError> {
    let mut trace = RequestTrace::default();
    let mut zero = None;
    let mut units: Vec<u16> = Vec::new();
    let mut ends: BTreeMap<u16, u64> = BTreeMap::new();
    while let Some((line, text)) = lines.next_whole()? {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let [unit, lba, size, kind, time, ..] = fields[..] else {
            let reason = format!("{} has {} fields, at least 5 are expected: {FORM}", shown(text), fields.len());
            return Err(ReadError::at(line, reason));
        };
        let bad =
            |text: &str, what: &str| ReadError::at(line, format!("{} is not a valid {what}; {FORM}", shown(text)));
        let unit: u16 = unit.parse().map_err(|_| bad(unit, "unit (ASU) number"))?;
        let offset = lba.parse::<u64>().ok().and_then(|lba| lba.checked_mul(512)).filter(|offset| *offset < 1 << 60);
        let offset = offset.ok_or_else(|| bad(lba, "position"))?;
        let size: u64 = size.parse().map_err(|_| bad(size, "size"))?;
        let kind = match kind {
            "R" | "r" => IoKind::Read,
            "W" | "w" => IoKind::Write,
            other => return Err(ReadError::at(line, format!("{} is neither R nor W; {FORM}", shown(other)))),
        };
        let time = seconds(time).ok_or_else(|| bad(time, "time"))?;
        let zero = *zero.get_or_insert(time);
        let at = time.checked_sub(zero);
        let at = at.ok_or_else(|| ReadError::at(line, BEFORE_THE_FIRST))?;
        trace.push(line, at, kind, offset, size)?;
        units.push(unit);
        let end = ends.entry(unit).or_insert(0);
        *end = (*end).max(offset + size);
    }
    let mut start = 0u64;
    let mut starts = BTreeMap::new();
    for (unit, end) in ends {
        starts.insert(unit, start);
        start = start.saturating_add(end.next_multiple_of(MIB));
        if start > 1 << 62 {
            return Err(ReadError::at(
                0,
                "its units (ASUs) together are larger than any target; make one trace of each",
            ));
        }
    }
    trace.shift(|number| starts[&units[number]]);
    Ok(trace)
}
