//! A host's requests with their times, and the events between them: the story of a sector, for readers.
//!
//! This module does not judge: [`super::Versions`] does.

use std::collections::BTreeMap;
use std::ops::Range;

use openraid_core::actions::ReplyStatus;
use openraid_core::events::RequestKind;
use openraid_units::{Bytes, Instant};

use super::versions::VersionId;
use crate::number_words::count;

/// Limit of the lines of one sector's story; the oldest are left out.
const LINES_MAX: usize = 40;

#[derive(Clone, Debug)]
struct Request {
    kind: RequestKind,
    range: Range<u64>,
    asked: Instant,
    ended: Option<(Instant, ReplyStatus)>,
}

/// A line of the history.
#[derive(Clone, Debug)]
enum Entry {
    /// The request with this number.
    Request(usize),
    /// An event that concerns all requests.
    Mark(Instant, String),
}

/// All requests of a run, in the order of submission.
#[derive(Clone, Debug, Default)]
pub struct History {
    requests: Vec<Request>,
    entries: Vec<Entry>,
    writers: BTreeMap<VersionId, usize>,
}

impl History {
    /// Add a request. Returns its number. `version` is the version that it writes.
    pub fn ask(&mut self, kind: RequestKind, range: Range<u64>, now: Instant, version: Option<VersionId>) -> usize {
        let number = self.requests.len();
        self.requests.push(Request { kind, range, asked: now, ended: None });
        self.entries.push(Entry::Request(number));
        if let Some(version) = version {
            self.writers.insert(version, number);
        }
        number
    }

    /// Record the end of a request.
    pub fn end(&mut self, number: usize, now: Instant, status: ReplyStatus) {
        self.requests[number].ended = Some((now, status));
    }

    /// Record an event that may concern all sectors.
    pub fn mark(&mut self, now: Instant, text: &str) {
        self.entries.push(Entry::Mark(now, text.into()));
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are no requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests after the first `number`, in words: `3 reads, 1 write`.
    #[must_use]
    pub fn asked_since(&self, number: usize) -> String {
        let mut counts = [0_u64; 5];
        self.requests[number.min(self.requests.len())..].iter().for_each(|request| counts[place(request.kind)] += 1);
        let words = ["read", "write", "flush", "trim", "zeroing"];
        let plural = ["reads", "writes", "flushes", "trims", "zeroings"];
        let named = counts.iter().zip(words.iter().zip(plural)).filter(|(number, _)| **number > 0);
        let named: Vec<String> = named.map(|(number, (one, many))| count(*number, one, many)).collect();
        named.join(", ")
    }

    /// The request that wrote a version, in words; `None` if no request wrote it.
    #[must_use]
    pub fn writer(&self, version: VersionId) -> Option<String> {
        let number = *self.writers.get(&version)?;
        let request = &self.requests[number];
        Some(format!(
            "request {} ({}, asked at {}, {})",
            number + 1,
            what(request),
            millis(request.asked),
            end(request)
        ))
    }

    /// All requests to these ranges of bytes, one a line, with the events that concern all requests.
    #[must_use]
    pub fn of(&self, ranges: &[Range<u64>]) -> Vec<String> {
        let touches = |request: &Request| {
            ranges.iter().any(|range| request.range.start < range.end && range.start < request.range.end)
                || request.kind == RequestKind::Flush
        };
        let mut lines = Vec::new();
        let mut flush = None;
        for entry in &self.entries {
            match entry {
                Entry::Request(number) if touches(&self.requests[*number]) => {
                    let request = &self.requests[*number];
                    let line =
                        format!("{}  request {}: {}, {}", at(request.asked), number + 1, what(request), end(request));
                    // The last of several consecutive flushes represents all of them.
                    if request.kind == RequestKind::Flush {
                        flush = Some(line);
                    } else {
                        lines.extend(flush.take());
                        lines.push(line);
                    }
                }
                Entry::Request(_) => {}
                Entry::Mark(when, text) => {
                    lines.extend(flush.take());
                    lines.push(format!("{}  {text}", at(*when)));
                }
            }
        }
        lines.extend(flush);
        if lines.len() > LINES_MAX {
            let left = lines.len() - LINES_MAX;
            lines.drain(..left);
            lines.insert(0, format!("({left} lines before that are left out)"));
        }
        lines
    }
}

const fn place(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read => 0,
        RequestKind::Write { .. } => 1,
        RequestKind::Flush => 2,
        RequestKind::Trim { .. } => 3,
        RequestKind::WriteZeroes { .. } => 4,
    }
}

fn what(request: &Request) -> String {
    let word = match request.kind {
        RequestKind::Read => "read",
        RequestKind::Write { fua: false } => "write",
        RequestKind::Write { fua: true } => "write with FUA",
        RequestKind::Flush => return "flush".into(),
        RequestKind::Trim { .. } => "trim",
        RequestKind::WriteZeroes { fua: false, .. } => "zeroing",
        RequestKind::WriteZeroes { fua: true, .. } => "zeroing with FUA",
    };
    let Range { start, end } = request.range;
    format!("{word} of {} at byte {start}", Bytes(end - start).readable())
}

fn end(request: &Request) -> String {
    match request.ended {
        None => "never answered".into(),
        Some((when, ReplyStatus::Ok)) => format!("answered at {}", millis(when)),
        Some((when, status)) => format!("failed at {} ({})", millis(when), why(status)),
    }
}

const fn why(status: ReplyStatus) -> &'static str {
    match status {
        ReplyStatus::Ok => "well",
        ReplyStatus::IoError => "its data are not to be had",
        ReplyStatus::OutOfRange => "beyond the array's end",
        ReplyStatus::NoSpace => "a member is full",
        ReplyStatus::ReadOnly => "the array takes no writes",
        ReplyStatus::Offline => "the array is not there",
    }
}

/// A time since the beginning of the run, in the form of the first column of a story.
#[must_use]
pub fn at(when: Instant) -> String {
    format!("{:>15}", millis(when))
}

fn millis(when: Instant) -> String {
    let micros = when.0 / 1_000;
    format!("{}.{:03} ms", micros / 1_000, micros % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_of_a_sector_has_what_touched_it_and_what_happened_to_all() {
        let mut history = History::default();
        let at = |millis: u64| Instant(millis * 1_000_000);
        let write = history.ask(RequestKind::Write { fua: false }, 0..4096, at(1), Some(3));
        history.end(write, at(2), ReplyStatus::Ok);
        for millis in [3, 4] {
            let flush = history.ask(RequestKind::Flush, 0..0, at(millis), None);
            history.end(flush, at(millis), ReplyStatus::Ok);
        }
        let beside = history.ask(RequestKind::Read, 4096..8192, at(5), None);
        history.end(beside, at(5), ReplyStatus::Ok);
        history.mark(at(6), "the power goes");
        history.ask(RequestKind::Read, 512..1024, at(7), None);
        let lines = history.of(std::slice::from_ref(&(512..1024)));
        let expected = [
            "       1.000 ms  request 1: write of 4 KiB at byte 0, answered at 2.000 ms",
            "       4.000 ms  request 3: flush, answered at 4.000 ms",
            "       6.000 ms  the power goes",
            "       7.000 ms  request 5: read of 512 bytes at byte 512, never answered",
        ];
        assert_eq!(lines, expected);
        assert_eq!(history.asked_since(1), "2 reads, 2 flushes");
        let writer = "request 1 (write of 4 KiB at byte 0, asked at 1.000 ms, answered at 2.000 ms)";
        assert_eq!(history.writer(3).as_deref(), Some(writer));
        assert_eq!(history.writer(4), None);
    }
}
