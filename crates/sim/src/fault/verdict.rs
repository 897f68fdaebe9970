//! The result of a run, and the table of many.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use openraid_core::reason::Reason;

use super::phase::Phase;
use super::scenario::{Mode, Scenario};
use super::worded::worded;

/// Letters by which failures are distinguished.
const KIND_LETTERS_MAX: usize = 40;

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing is lost.
    Survived,
    /// Data is lost, but without a promise to keep it; the reason.
    NotPromised(Excuse),
    /// Acknowledged data is lost, or a rule was broken: the story.
    Lost(String),
}

impl Verdict {
    /// The first words of the story, without figures: failures of one kind have the same. Nothing if none is.
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        let Self::Lost(text) = self else { return None };
        let line = text.lines().next().unwrap_or_default();
        let words = line.split(['{', '(', '[']).next().unwrap_or_default();
        let plain = words.chars().filter(|letter| !letter.is_ascii_digit());
        Some(plain.take(KIND_LETTERS_MAX).collect())
    }
}

/// Why there was no promise to keep the lost data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Excuse {
    /// A row was being written when the power went, and a column of it is gone: parity without a journal cannot tell.
    WriteHole,
    /// A drive said that all was well, and it was not: nothing on this level can tell.
    Silent,
    /// More members failed than the level survives, and requests ended with errors.
    Errors,
    /// The array is refused, or starts only by force.
    Refused,
    /// The newest members were not there, and the others cannot know that they are stale.
    Stale,
    /// Writes that were acknowledged and not flushed were lost with what a drive or the cache held, and a request or a
    /// notice said so.
    Unflushed,
    /// The last entry of a journal on one device was damaged: that looks as a write that was cut short.
    LastEntry,
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WriteHole => "write hole",
            Self::Silent => "silent corruption",
            Self::Errors => "honest errors",
            Self::Refused => "refused without force",
            Self::Stale => "only stale members there",
            Self::Unflushed => "unflushed, and said so",
            Self::LastEntry => "last entry of a journal on one device",
        })
    }
}

worded! {
    /// The fault of a run, as a line of the table.
    Fault
    /// Nothing.
    None = "none";
    /// Power cut of everything while hosts worked.
    Cut = "power cut";
    /// Power cut of the host and some drives.
    CutInPart = "power cut of some drives";
    /// Power cut while the array was being assembled.
    CutInAssembly = "power cut in assembly";
    /// Power cut while a member was being filled.
    CutInRebuild = "power cut in rebuild";
    /// Power cut in a resync.
    CutInResync = "power cut in resync";
    /// Power cut in a check or repair.
    CutInScrub = "power cut in scrub";
    /// Power cut while superblocks, bitmap pages or logs of members were being written.
    CutInMetadata = "power cut in metadata";
    /// The process was killed.
    Kill = "killed";
    /// A member failed by order.
    Failed = "member failed by order";
    /// A drive was pulled.
    Pulled = "drive pulled";
    /// A drive lost its power alone.
    Vanished = "drive lost its power";
    /// A drive took no writes.
    ReadOnly = "drive takes no writes";
    /// A drive fell silent for good.
    Hanging = "drive hangs";
    /// Flushes failed, and what they were for was dropped.
    FlushFailed = "flush fails";
    /// A drive came back stale.
    Stale = "drive back, stale";
    /// A drive was late or silent for a while.
    Late = "late answers";
    /// Latent sector errors.
    Latent = "latent sector errors";
    /// Sectors that take no write either.
    Dead = "dead sectors";
    /// Flipped bits in data.
    Flip = "bit flips in data";
    /// Flipped bits in a superblock.
    FlipSuperblock = "bit flips in superblock";
    /// A write that was lost.
    LostWrite = "lost write";
    /// A write that went elsewhere.
    Misdirected = "misdirected write";
    /// A read that brought what stands elsewhere.
    Misread = "misdirected read";
    /// A bit of what a read brought that flipped on the way.
    FlipOnTheWay = "bit flips on the way";
    /// Power cut of everything, and a member was gone for good.
    CutAndLoss = "power cut with a member";
    /// Power cut while a journal was replayed.
    CutInReplay = "power cut in replay";
    /// A device of the journal failed.
    JournalLost = "journal device lost";
    /// A journal that was lost came back.
    JournalBack = "journal back";
    /// A sector of a journal was damaged.
    JournalHurt = "damaged journal";
    /// Power cut while a device of the journal was brought up to date.
    CutInHeal = "power cut in journal heal";
}

/// The counters of a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Power cuts.
    pub cuts: u64,
    /// Ends of a server whose drives keep their power.
    pub kills: u64,
    /// Host requests that ended.
    pub requests: u64,
    /// Events of the machine.
    pub events: u64,
    /// Hash of all actions of the engine.
    pub decisions: u64,
    /// Changes of the settings.
    pub switches: u64,
    /// The faults, and how often.
    pub faults: BTreeMap<Fault, u64>,
    /// In which phase of the engine it went wrong, how often.
    pub pairs: BTreeMap<(Fault, Phase), u64>,
    /// Kinds of decisions that the engine has taken, as far as its controllers said after each step and before each end.
    pub reasons: BTreeSet<Reason>,
}

impl Counts {
    /// The faults, each once; [`Fault::None`] if there were none.
    pub fn faults(&self) -> impl Iterator<Item = Fault> + '_ {
        let none = self.faults.is_empty().then_some(Fault::None);
        none.into_iter().chain(self.faults.keys().copied())
    }
}

/// A run and its end.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The counters.
    pub counts: Counts,
    /// The story, line by line.
    pub story: Vec<String>,
    /// The engine's own lines about the moment of the loss: for readers of the sources.
    pub details: String,
}

/// A line of the table is about this.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Line {
    /// The allowed faults of its runs.
    pub mode: Mode,
    /// The fault.
    pub fault: Fault,
    /// How the array is served.
    pub policy: &'static str,
    /// The array.
    pub level: String,
}

/// The kind of array of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind {
    /// The allowed faults.
    pub mode: Mode,
    /// How the array is served at first.
    pub policy: &'static str,
    /// The array.
    pub level: String,
}

/// Runs in which a fault happened, by their end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ends {
    /// Nothing was lost.
    pub survived: u64,
    /// Runs in which unpromised data was lost.
    pub not_promised: u64,
    /// Promised and lost.
    pub lost: u64,
}

/// Many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How they ended, all.
    pub ends: Ends,
    /// Runs.
    pub runs: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Ends of a server whose drives keep their power.
    pub kills: u64,
    /// Host requests.
    pub requests: u64,
    /// Events.
    pub events: u64,
    /// Changes of the settings while the array was served.
    pub switches: u64,
    /// By fault, policy and level: a run stands in the line of each fault that it had.
    pub lines: BTreeMap<Line, Ends>,
    /// How often each fault happened in each phase of the engine.
    pub pairs: BTreeMap<(Fault, Phase), u64>,
    /// By policy and level: each run once.
    pub kinds: BTreeMap<Kind, Ends>,
    /// Why what was lost was not promised.
    pub excuses: BTreeMap<Excuse, u64>,
    /// Seeds whose runs lost something.
    pub lost: Vec<u64>,
}

impl Ends {
    /// All runs.
    #[must_use]
    pub const fn runs(&self) -> u64 {
        self.survived + self.not_promised + self.lost
    }
    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Survived => self.survived += 1,
            Verdict::NotPromised(_) => self.not_promised += 1,
            Verdict::Lost(_) => self.lost += 1,
        }
    }
    /// Others as well.
    pub fn add(&mut self, other: Self) {
        self.survived += other.survived;
        self.not_promised += other.not_promised;
        self.lost += other.lost;
    }
}

impl Tally {
    /// One more run.
    pub fn count(&mut self, scenario: &Scenario, report: &Report) {
        self.runs += 1;
        self.cuts += report.counts.cuts;
        self.kills += report.counts.kills;
        self.requests += report.counts.requests;
        self.events += report.counts.events;
        self.switches += report.counts.switches;
        for (pair, count) in &report.counts.pairs {
            *self.pairs.entry(*pair).or_default() += count;
        }
        self.ends.count(&report.verdict);
        match &report.verdict {
            Verdict::NotPromised(excuse) => *self.excuses.entry(*excuse).or_default() += 1,
            Verdict::Lost(_) => self.lost.push(report.seed),
            Verdict::Survived => {}
        }
        let (mode, policy, level) = (scenario.mode, scenario.policy_name(), scenario.level_name());
        for fault in report.counts.faults() {
            let line = Line { mode, fault, policy, level: level.clone() };
            self.lines.entry(line).or_default().count(&report.verdict);
        }
        self.kinds.entry(Kind { mode, policy, level }).or_default().count(&report.verdict);
    }

    /// The runs of another tally as well.
    pub fn add(&mut self, other: &Self) {
        self.ends.add(other.ends);
        self.runs += other.runs;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.requests += other.requests;
        self.events += other.events;
        self.switches += other.switches;
        for (kind, ends) in &other.kinds {
            self.kinds.entry(kind.clone()).or_default().add(*ends);
        }
        for (line, ends) in &other.lines {
            self.lines.entry(line.clone()).or_default().add(*ends);
        }
        for (pair, count) in &other.pairs {
            *self.pairs.entry(*pair).or_default() += count;
        }
        for (excuse, count) in &other.excuses {
            *self.excuses.entry(*excuse).or_default() += count;
        }
        self.lost.extend(&other.lost);
    }
}
