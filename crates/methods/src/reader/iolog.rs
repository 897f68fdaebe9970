//! Reads fio's iolog. Version 2 has `FILE ACTION OFFSET LENGTH`; version 3 has microseconds before that. In version 2
//! only `wait` gives a time, in microseconds since the last one as fio documents it; its length field is ignored.

use super::trace::RequestTrace;
use super::{shown, NumberedLines, ReadError, BEFORE_THE_FIRST};
use crate::target::IoKind;
use std::io::BufRead;

/// The form of a line, for errors; version 3 has microseconds before it.
const FORM: &str =
    "correct the line to FILE ACTION OFFSET LENGTH (add, open, close, wait, read, write, sync), or remove it";

pub(super) fn read<R: BufRead>(mut lines: NumberedLines<R>) -> Result<RequestTrace, ReadError> {
    let mut trace = RequestTrace::default();
    let with_time = match lines.next_whole()? {
        None => return Ok(trace),
        Some((_, "fio version 2 iolog")) => false,
        Some((_, "fio version 3 iolog")) => true,
        Some((line, text)) => {
            return Err(ReadError::at(
                line,
                format!("{} is not an iolog of version 2 or 3; convert it to one", shown(text)),
            ));
        }
    };
    let (mut now, mut zero) = (0u64, None);
    let mut file: Option<String> = None;
    while let Some((line, text)) = lines.next_whole()? {
        let mut words = text.split_whitespace().peekable();
        if words.peek().is_none() {
            continue;
        }
        if with_time {
            let word = words.next().unwrap_or_default();
            let time = word.parse::<u64>().ok().and_then(|us| us.checked_mul(1000));
            now = time
                .ok_or_else(|| ReadError::at(line, format!("{} is not a time in microseconds; {FORM}", shown(word))))?;
        }
        let (name, action) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rest: Vec<&str> = words.collect();
        let kind = match action {
            "add" | "open" | "close" | "wait" => None,
            "read" => Some(IoKind::Read),
            "write" => Some(IoKind::Write),
            "sync" | "datasync" => Some(IoKind::Flush),
            "trim" => return Err(ReadError::at(line, "trims are not understood; remove them")),
            "" => return Err(ReadError::at(line, format!("{} has no action of an iolog; {FORM}", shown(text)))),
            other => return Err(ReadError::at(line, format!("{} is not an action of an iolog; {FORM}", shown(other)))),
        };
        // This check comes late, because a line of another format has no file name.
        if file.as_deref().is_some_and(|known| known != name) {
            return Err(ReadError::at(line, format!("{} is a second file; make one trace of each", shown(name))));
        }
        file.get_or_insert_with(|| name.to_owned());
        let Some(kind) = kind else {
            if action == "wait" {
                let wait = rest.first().and_then(|word| word.parse::<u64>().ok()).and_then(|us| us.checked_mul(1000));
                let wait = wait.and_then(|wait| now.checked_add(wait));
                now =
                    wait.ok_or_else(|| ReadError::at(line, "a wait without its microseconds; write them after it"))?;
            }
            continue;
        };
        let number = |at: usize| rest.get(at).and_then(|word| word.parse::<u64>().ok());
        let place = if kind == IoKind::Flush { Some((0, 0)) } else { number(0).zip(number(1)) };
        let Some((offset, len)) = place else {
            return Err(ReadError::at(line, format!("{} has no offset and length; {FORM}", shown(text))));
        };
        let zero = *zero.get_or_insert(now);
        let at = now.checked_sub(zero).ok_or_else(|| ReadError::at(line, BEFORE_THE_FIRST))?;
        trace.push(line, at, kind, offset, len)?;
    }
    Ok(trace)
}
