//! Records of the log: events, and acknowledgements.
//!
//! ```text
//!  a5b6c7d8 {"record":"event","number":17,"at_seconds":1764007123,"level":"warning",...}\n
//!  \CRC-32C of what stands between the blank and the line's end
//! ```

use openraid_format::crc32c;
pub use openraid_status::alarm::Severity;
use serde::{Deserialize, Serialize};

use super::News;

/// Maximum length of a text, in bytes: the rest is cut off.
const TEXT_BYTES_MAX: usize = 4000;
/// Digits of the checksum, and the blank after them.
const HEAD_BYTES: usize = 9;

/// Events that had another name before, and their present names.
const RENAMED: &[(&str, &str)] = &[("FlushInDoubt", "FlushFailed")];

/// An event that is not in the log yet.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Draft {
    /// The time in seconds since 1970, by the wall clock.
    pub at_seconds: u64,
    /// The event's name: mdadm's if mdadm has one.
    pub event: String,
    /// Name of the array; null if the event is about the server.
    pub array: Option<String>,
    /// Number of the span of a nested array, from 0.
    #[serde(alias = "leg")]
    pub span: Option<usize>,
    /// Slot of the member, from 0.
    pub slot: Option<u16>,
    /// Path or address of the member, or the name of a device, sink or file.
    pub member: Option<String>,
    /// The event in a sentence.
    pub text: String,
    /// Its severity, if its name does not say it. The log has it in [`Event::level`].
    #[serde(skip)]
    pub level: Option<Severity>,
}

impl Draft {
    /// An event from a piece of news, with the present time.
    pub fn now(news: &News) -> Self {
        let mut text = news.text.clone();
        let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        Self {
            at_seconds: openraid_sys::clock::wall_seconds(),
            event: news.event.into(),
            array: news.array.clone(),
            span: news.span,
            slot: news.slot,
            member: news.member.clone(),
            text,
            level: news.level,
        }
    }
}

/// An event of the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Event {
    /// Its number: numbers only grow, and are not used twice.
    pub number: u64,
    /// How much the event matters.
    pub level: Severity,
    /// The event.
    #[serde(flatten)]
    pub what: Draft,
    /// Has a user acknowledged it?
    #[serde(default)]
    pub acknowledged: bool,
}

/// A line of the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum LogRecord {
    Event(Event),
    /// Events of these numbers are acknowledged.
    Acknowledged {
        /// Its own number.
        number: u64,
        at_seconds: u64,
        from: u64,
        to: u64,
    },
}

impl LogRecord {
    pub const fn number(&self) -> u64 {
        match self {
            Self::Event(event) => event.number,
            Self::Acknowledged { number, .. } => *number,
        }
    }

    pub fn line(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).unwrap_or_else(|error| panic!("bug: no JSON: {error}"));
        format!("{:08x} {json}\n", crc32c(json.as_bytes())).into_bytes()
    }

    /// From a line without its end; `None` if it is damaged.
    pub fn of(line: &[u8]) -> Option<Self> {
        let (head, json) = line.split_at_checked(HEAD_BYTES)?;
        let sum = u32::from_str_radix(std::str::from_utf8(head).ok()?.strip_suffix(' ')?, 16).ok()?;
        let record = (sum == crc32c(json)).then(|| serde_json::from_slice(json).ok())?;
        record.map(Self::in_words_of_today)
    }

    /// Logs keep the words in which they were written, so an old entry may have an old name of an event.
    fn in_words_of_today(mut self) -> Self {
        if let Self::Event(event) = &mut self {
            if let Some((_, name)) = RENAMED.iter().find(|(before, _)| *before == event.what.event) {
                event.what.event = (*name).into();
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_every_changed_bit_is_seen() {
        let what = Draft { event: "Fail".into(), text: "data, slot 1: \"x\"\nfailed".into(), ..Draft::default() };
        let record = LogRecord::Event(Event { number: 7, level: Severity::Critical, what, acknowledged: false });
        let line = record.line();
        let (end, line) = line.split_last().expect("a line");
        assert_eq!((*end, line.contains(&b'\n')), (b'\n', false));
        assert_eq!(LogRecord::of(line), Some(record));
        for bit in 0..line.len() * 8 {
            let mut bad = line.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            // The digits of the checksum may be written in either case.
            assert!(LogRecord::of(&bad).is_none() || bit / 8 < 8, "bit {bit}");
        }
        // A log from before the renaming: its own words, and the present ones.
        let old = r#"{"record":"event","number":3,"level":"critical","at_seconds":5,"event":"FlushInDoubt","array":"data","leg":1,"slot":0,"member":null,"text":""}"#;
        let Some(LogRecord::Event(read)) = LogRecord::of(format!("{:08x} {old}", crc32c(old.as_bytes())).as_bytes())
        else {
            panic!("an old record is read");
        };
        assert_eq!((read.what.event.as_str(), read.what.span, read.what.slot), ("FlushFailed", Some(1), Some(0)));
        // The checksum is the one that others compute.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        for line in [&b""[..], b"12345678", b"zzzzzzzz {}", b"00000000 {}"] {
            assert_eq!(LogRecord::of(line), None);
        }
    }
}
