//! Reads the text that blkparse writes for a recording of blktrace, in its usual form: `MAJOR,MINOR CPU SEQUENCE
//! SECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]`. All requests have their process at the end, or none has.
//!
//! A request passes several stages, with one line for each. Only the first stage, `Q`, counts: the request before the
//! kernel merged and reordered it. If a recording has no such lines, `D` counts: the command to the drive. The events
//! end with the totals for each processor.

use super::fio_numbers::seconds;
use super::trace::RequestTrace;
use super::{shown, NumberedLines, ReadError, BEFORE_THE_FIRST};
use crate::target::IoKind;
use std::io::BufRead;

/// The form of a line, for errors.
const FORM: &str =
    "correct the line to MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS], as \
                    blkparse writes it without -f, or remove it";
/// Size of a sector in bytes, whatever the sectors of the device are.
const SECTOR_BYTES: u64 = 512;

/// Does a line look like an event of blkparse?
pub(super) fn is_event(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [device, cpu, sequence, time, pid, action, ..] = words[..] else { return false };
    let number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let of_device = device.split_once(',').is_some_and(|(major, minor)| number(major) && number(minor));
    let letters = action.len() <= 2 && action.bytes().all(|b| b.is_ascii_alphabetic());
    of_device && number(cpu) && number(sequence) && time.contains('.') && number(pid) && letters
}

pub(super) fn read<R: BufRead>(mut lines: NumberedLines<R>) -> Result<RequestTrace, ReadError> {
    let (mut asked, mut given) = (RequestTrace::default(), RequestTrace::default());
    let (mut zero, mut device): (Option<u64>, Option<String>) = (None, None);
    // Does the first request end with its process?
    let mut named = None;
    while let Some((line, text, has_end)) = lines.next_marked()? {
        if text.trim().is_empty() {
            continue;
        }
        if text.starts_with("CPU") || text.starts_with("Total") {
            break;
        }
        if !is_event(text) {
            return Err(ReadError::at(line, format!("{} is not an event of blkparse; {FORM}", shown(text.trim()))));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let trace = match words[5] {
            "Q" => &mut asked,
            "D" => &mut given,
            _ => continue,
        };
        if device.as_ref().is_some_and(|known| known != words[0]) {
            let reason = format!("{} is a second device; make one trace of each", shown(words[0]));
            return Err(ReadError::at(line, reason));
        }
        device.get_or_insert_with(|| words[0].to_owned());
        let time = seconds(words[3])
            .ok_or_else(|| ReadError::at(line, format!("{} is not a time in seconds; {FORM}", shown(words[3]))))?;
        let at = time.checked_sub(*zero.get_or_insert(time)).ok_or_else(|| ReadError::at(line, BEFORE_THE_FIRST))?;
        let flags = words.get(6).copied().unwrap_or_default();
        let place = match words.get(7..10) {
            Some([sector, "+", sectors]) => sector.parse::<u64>().ok().zip(sectors.parse::<u64>().ok()),
            _ => None,
        };
        let (kind, place) = request(line, text, flags, place)?;
        // Only the name, or the end of the line, shows that the numbers before it are whole.
        let has_name = text.trim_end().ends_with(']');
        if !has_name && (*named.get_or_insert(false) || !has_end) {
            let why = match named {
                Some(true) => "does not end with its process in brackets, as the requests before it do",
                _ => "is the last line and has no end of line",
            };
            let text = shown(text.trim());
            let reason = format!(
                "{text} {why}, so its numbers may have been cut off; complete or remove this line; a recording in which no request \
                 has its process is read, too"
            );
            return Err(ReadError::at(line, reason));
        }
        named.get_or_insert(true);
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        trace.push(line, at, kind, bytes(place.0), bytes(place.1))?;
    }
    Ok(if asked.records().is_empty() { given } else { asked })
}

/// The request of a line, from its letters: R is a read, W a write, D a discard. If the first letter is F, there is a
/// flush before it.
fn request(line: u64, text: &str, flags: &str, place: Option<(u64, u64)>) -> Result<(IoKind, (u64, u64)), ReadError> {
    let bare = flags.strip_prefix('F').unwrap_or(flags);
    let kind = match (bare.chars().next(), place) {
        (_, None | Some((_, 0))) if flags.starts_with('F') => return Ok((IoKind::Flush, (0, 0))),
        (Some('R'), _) => IoKind::Read,
        (Some('W'), _) => IoKind::Write,
        (Some('D'), _) => return Err(ReadError::at(line, "discards are not understood; remove them")),
        _ => {
            let reason = format!("{} is neither a read (R), a write (W) nor a flush (F); {FORM}", shown(flags));
            return Err(ReadError::at(line, reason));
        }
    };
    match place {
        Some(place) => Ok((kind, place)),
        None => Err(ReadError::at(line, format!("{} has no sector and length; {FORM}", shown(text.trim())))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{read_trace, TraceFormat};
    use crate::target::IoKind;

    // Output of blkparse from blktrace 1.3, shortened.
    const TEXT: &str = "\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     0.000002197   697  P   N [kjournald]
  8,0    3        4     0.000004179   697  D   W 223490 + 8 [kjournald]
  8,0    1        1     0.000250000   702  Q  RA 1024 + 256 [dd]
  8,0    1        2     0.000260000   702  U   N [dd] 1
  8,0    3        5     0.001500000   697  Q FWS [kjournald]
  8,0    3        6     0.009294000     0  C   W 223490 + 8 [0]
CPU3 (sda):
 Reads Queued:           1,      128KiB\t Writes Queued:           1,        4KiB
";

    #[test]
    fn issued_requests_are_read_with_their_times() {
        assert_eq!(TraceFormat::of(TEXT.lines().next().unwrap()), Some(TraceFormat::Blkparse));
        let trace = read_trace(TraceFormat::Blkparse, TEXT.as_bytes()).unwrap();
        let found: Vec<_> = trace.records().iter().map(|one| (one.at.get(), one.kind, one.offset, one.len)).collect();
        assert_eq!(
            found,
            [
                (0, IoKind::Write, 223_490 * 512, 4096),
                (250_000, IoKind::Read, 1024 * 512, 131_072),
                (1_500_000, IoKind::Flush, 0, 0)
            ]
        );
        // If there are no request lines, the commands to the drive count.
        let given: String = TEXT.lines().filter(|line| !line.contains(" Q ")).map(|line| format!("{line}\n")).collect();
        assert_eq!(read_trace(TraceFormat::Blkparse, given.as_bytes()).unwrap().records().len(), 1);
    }

    #[test]
    fn a_recording_without_processes_is_read_and_a_line_without_its_end_is_refused() {
        let bare: String = TEXT
            .lines()
            .take_while(|line| !line.starts_with("CPU"))
            .map(|line| format!("{}\n", line.split('[').next().unwrap_or_default().trim_end()))
            .collect();
        let read = |text: &str| read_trace(TraceFormat::Blkparse, text.as_bytes());
        let (plain, found) = (read(TEXT).unwrap(), read(&bare).unwrap());
        assert_eq!(found.digest(), plain.digest());
        let line = "8,0 3 7 0.4 697 Q W 8 + 8";
        assert_eq!(read(&format!("{bare}{line}\n")).unwrap().records().len(), 4);
        for text in [format!("{bare}{line}"), TEXT.replace("CPU3", &format!("{line}\nCPU3"))] {
            assert!(
                read(&text).unwrap_err().to_string().contains("may have been cut off; complete or remove"),
                "{text}"
            );
        }
    }

    #[test]
    fn times_that_go_back_and_a_line_that_was_cut_off_are_refused_with_their_line() {
        let error = |times: [&str; 3], end: &str| {
            let line = |time: &str| format!("8,0 3 1 {time} 697 Q W 8 + 8 [x]\n");
            let text = times.map(line).concat() + end;
            read_trace(TraceFormat::Blkparse, text.as_bytes()).unwrap_err().to_string()
        };
        assert!(error(["0.2", "0.1", "0.3"], "").starts_with("line 2: its time lies before"));
        assert!(error(["0.1", "0.3", "0.2"], "").starts_with("line 3: its time lies before"));
        for (end, words) in [
            ("8,0 3 1 0.4 697", "is not an event"),
            ("8,0 3 1 0.4 697 Q", "is neither a read"),
            ("8,0 3 1 0.4 697 Q W", "has no sector and length"),
            ("8,0 3 1 0.4 697 Q W 8 +", "has no sector and length"),
            // Eight sectors, or the beginning of 80.
            ("8,0 3 1 0.4 697 Q W 8 + 8", "does not end with its process"),
            ("8,0 3 1 0.4 697 Q W 8 + 8 [kjour", "does not end with its process"),
            ("8,0 3 1 0.4 697 Q FWS [kjour", "does not end with its process"),
        ] {
            let error = error(["0.1", "0.2", "0.3"], end);
            assert!(error.starts_with("line 4: ") && error.contains(words), "{end}: {error}");
        }
    }

    #[test]
    fn a_bad_line_is_named_with_its_number_and_what_to_do() {
        let first = "8,0 3 1 0.000000000 697 Q W 8 + 8 [x]\n";
        for (line, words) in [
            ("8,0 3 nonsense", "line 2: \"8,0 3 nonsense\" is not an event of blkparse"),
            ("8,16 3 1 0.1 697 Q W 8 + 8 [x]", "line 2: \"8,16\" is a second device"),
            ("8,0 3 1 0.1 697 Q W 8 - 8 [x]", "has no sector and length"),
            ("8,0 3 1 0.1 697 Q D 8 + 8 [x]", "line 2: discards are not understood"),
            ("8,0 3 1 0.1 697 Q N 8 + 8 [x]", "is neither a read (R), a write (W) nor a flush (F)"),
            ("8,0 3 1 0.x 697 Q W 8 + 8 [x]", "is not a time in seconds"),
        ] {
            let error = read_trace(TraceFormat::Blkparse, format!("{first}{line}\n").as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("line 2: ") && error.to_string().contains(words), "{line}: {error}");
        }
    }
}
