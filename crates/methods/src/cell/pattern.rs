//! The kinds of load that a cell can have, with the default values of each.
//!
//! Request sizes and queue depths are those of the reviews' methods: 8 KiB for Database, queue depth 4 for sequential
//! loads, single sectors for response time, 64 KiB for clients. SSDs get 128 KiB and 4 KiB from two workers.

use super::axes::Direction;
use crate::load::AccessSpec;
use serde::{Deserialize, Serialize};

/// A kind of load.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Random requests of one size, reads and writes mixed.
    Database,
    /// One client, one place after the other.
    Sequential,
    /// Random requests of one size, all reads or all writes.
    Random,
    /// The File-Server mix.
    FileServer,
    /// The Web-Server mix.
    WebServer,
    /// The Workstation mix.
    Workstation,
    /// Sequential clients, each with a zone of its own.
    MultiThreaded,
    /// Single sectors, one at a time.
    ResponseTime,
    /// 128 KiB in sequence by several workers.
    SsdSequential,
    /// 4 KiB at random by several workers.
    SsdRandom,
    /// The latency of each request: 4 KiB at random.
    Latency,
    /// Files made, read and copied.
    FcTest,
    /// The whole array read from begin to end.
    TransferGraph,
    /// An application's requests, imitated.
    Application,
    /// An access specification of the user.
    Custom(AccessSpec),
    /// A trace of the user, played with its own times.
    Trace(TraceName),
}

/// A word for a pattern, and the direction that it contains.
pub type PatternWord = (&'static str, Pattern, Option<Direction>);

/// The pattern with this word.
fn named<const N: usize>(words: [PatternWord; N], word: &str) -> Option<(Pattern, Option<Direction>)> {
    words.into_iter().find(|(known, ..)| *known == word).map(|(_, pattern, direction)| (pattern, direction))
}

/// The identity of a trace, so that kept cells belong to the same requests.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceName {
    /// The name of the trace's file, without its folder.
    pub name: String,
    /// A number computed from its requests and their times, in hexadecimal.
    pub digest: String,
}

/// The defaults of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Defaults {
    /// Size of a request in bytes, if the pattern has one size.
    pub bs: u32,
    /// Percentage of reads, if the direction does not determine it.
    pub rd: u8,
    /// Number of workers.
    pub workers: u16,
    /// Outstanding requests of each worker.
    pub qd: u32,
}

impl Pattern {
    /// All patterns that have no specification of the user.
    pub const ALL: [Self; 14] = [
        Self::Database,
        Self::Sequential,
        Self::Random,
        Self::FileServer,
        Self::WebServer,
        Self::Workstation,
        Self::MultiThreaded,
        Self::ResponseTime,
        Self::SsdSequential,
        Self::SsdRandom,
        Self::Latency,
        Self::FcTest,
        Self::TransferGraph,
        Self::Application,
    ];

    /// The words of the axis `pat`, with the direction that some contain. `wk` is a second name of the Workstation mix
    /// that published claims use.
    pub const AXIS_WORDS: [PatternWord; 13] = [
        ("db", Self::Database, None),
        ("sr", Self::Sequential, Some(Direction::Read)),
        ("sw", Self::Sequential, Some(Direction::Write)),
        ("rr", Self::Random, Some(Direction::Read)),
        ("rw", Self::Random, Some(Direction::Write)),
        ("fs", Self::FileServer, None),
        ("web", Self::WebServer, None),
        ("ws", Self::Workstation, None),
        ("wk", Self::Workstation, None),
        ("mt", Self::MultiThreaded, None),
        ("rt", Self::ResponseTime, None),
        ("seqssd", Self::SsdSequential, None),
        ("rndssd", Self::SsdRandom, None),
    ];

    /// The loads of published claims by their names, with the direction that some contain.
    pub const CLAIM_LOADS: [PatternWord; 14] = [
        ("database", Self::Database, None),
        ("sequential", Self::Sequential, None),
        ("random-read-by-block", Self::Random, Some(Direction::Read)),
        ("random-write-by-block", Self::Random, Some(Direction::Write)),
        ("response-time", Self::ResponseTime, None),
        ("multithreaded", Self::MultiThreaded, None),
        ("file-server", Self::FileServer, None),
        ("web-server", Self::WebServer, None),
        ("workstation", Self::Workstation, None),
        ("fc-test", Self::FcTest, None),
        ("winbench99-transfer-graph", Self::TransferGraph, None),
        ("winbench99", Self::Application, None),
        ("rst-sequential", Self::SsdSequential, None),
        ("rst-random", Self::SsdRandom, None),
    ];

    /// The pattern for a word of the axis `pat`, and the direction if the word contains one.
    #[must_use]
    pub fn from_axis(word: &str) -> Option<(Self, Option<Direction>)> {
        named(Self::AXIS_WORDS, word)
    }

    /// The pattern with this name, or for the workload of a claim, and the direction if the word contains one.
    #[must_use]
    pub fn from_workload(word: &str) -> Option<(Self, Option<Direction>)> {
        let by_name = Self::ALL.into_iter().find(|pattern| pattern.name() == word);
        by_name.map(|pattern| (pattern, None)).or_else(|| named(Self::CLAIM_LOADS, word))
    }

    /// A short name for results and file names.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Database => "database",
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::FileServer => "file-server",
            Self::WebServer => "web-server",
            Self::Workstation => "workstation",
            Self::MultiThreaded => "multi-threaded",
            Self::ResponseTime => "response-time",
            Self::SsdSequential => "rst-sequential",
            Self::SsdRandom => "rst-random",
            Self::Latency => "latency",
            Self::FcTest => "fc-test",
            Self::TransferGraph => "transfer-graph",
            Self::Application => "application",
            Self::Custom(spec) => spec.name(),
            Self::Trace(trace) => &trace.name,
        }
    }

    /// The values of axes that the cell does not give.
    #[must_use]
    pub const fn defaults(&self) -> Defaults {
        const K: u32 = 1 << 10;
        let (bs, rd, workers, qd) = match self {
            Self::Database => (8 * K, 67, 1, 1),
            Self::Sequential => (64 * K, 100, 1, 4),
            Self::Random => (4 * K, 100, 1, 1),
            Self::FileServer => (4 * K, 80, 1, 1),
            Self::WebServer => (4 * K, 100, 1, 1),
            Self::Workstation => (4 * K, 60, 1, 1),
            Self::ResponseTime => (512, 100, 1, 1),
            Self::SsdSequential => (128 * K, 100, 2, 1),
            Self::SsdRandom | Self::Latency => (4 * K, 100, 2, 1),
            Self::MultiThreaded | Self::FcTest | Self::TransferGraph | Self::Application => (64 * K, 100, 1, 1),
            Self::Custom(_) | Self::Trace(_) => (4 * K, 100, 1, 1),
        };
        Defaults { bs, rd, workers, qd }
    }

    /// The queue depth of each worker that fits the use: a server has requests of many users outstanding, a workstation
    /// those of one.
    #[must_use]
    pub const fn usual_depth(&self) -> u32 {
        match self {
            Self::Database | Self::FileServer | Self::WebServer => 16,
            Self::Workstation => 4,
            _ => self.defaults().qd,
        }
    }

    /// The queue depths of the pattern's rating, which is their mean (R1).
    #[must_use]
    pub const fn depths(&self) -> &'static [u32] {
        match self {
            Self::Workstation => &[1, 2, 4, 8, 16, 32],
            Self::Database => &[1, 4, 16, 64, 256],
            _ => &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_axis_and_of_the_workloads_names_a_pattern() {
        assert_eq!(Pattern::from_axis("sw"), Some((Pattern::Sequential, Some(Direction::Write))));
        assert_eq!(Pattern::from_axis("tape"), None);
        for pattern in Pattern::ALL {
            let named = Pattern::from_workload(pattern.name()).map(|(pattern, _)| pattern);
            assert_eq!(named, Some(pattern));
        }
        for (word, pattern, direction) in Pattern::CLAIM_LOADS {
            assert_eq!(Pattern::from_workload(word), Some((pattern, direction)), "{word}");
        }
    }
}
