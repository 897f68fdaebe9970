//! The result of a run, and the table of many runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use openraid_core::reason::Reason;

use super::fault_names::Fault;
use super::phase::Phase;
use super::scenario::{Mode, Scenario};

/// Number of letters that distinguish failures.
const KIND_LETTERS_MAX: usize = 40;

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No data is lost.
    Survived,
    /// Data is lost, but no promise covered it; with the reason.
    NotPromised(Excuse),
    /// Acknowledged data is lost, or a rule is broken; with the story.
    Lost(String),
}

impl Verdict {
    /// The first words of the story, without figures. Failures of one kind have the same words. `None` if the run did
    /// not fail.
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        let Self::Lost(text) = self else { return None };
        let line = text.lines().next().unwrap_or_default();
        let words = line.split(['{', '(', '[']).next().unwrap_or_default();
        let plain = words.chars().filter(|letter| !letter.is_ascii_digit());
        Some(plain.take(KIND_LETTERS_MAX).collect())
    }
}

/// The reason for which no promise covered the lost data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Excuse {
    /// Write hole: a row was being written at the power cut, and a column of it is lost. Parity without a journal
    /// cannot detect it.
    WriteHole,
    /// A drive reported success for wrong data; this level cannot detect it.
    Silent,
    /// More members failed than the level survives, and requests ended with errors.
    Errors,
    /// The array is refused, or starts only by force.
    Refused,
    /// The newest members were absent, and the others cannot detect that they are stale.
    Stale,
    /// Writes that were acknowledged but not flushed were lost with a drive's cache or the engine's cache. A request or
    /// a notice reported it.
    Unflushed,
    /// The last entry of a journal on one device was damaged. It looks like an interrupted write.
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
    /// The number of each fault.
    pub faults: BTreeMap<Fault, u64>,
    /// The number of each fault in each phase of the engine.
    pub pairs: BTreeMap<(Fault, Phase), u64>,
    /// The number of each fault during each kind of background task.
    pub tasks: BTreeMap<(Fault, &'static str), u64>,
    /// The number of each action while a member was in each state.
    pub states: BTreeMap<(&'static str, &'static str), u64>,
    /// Kinds of the engine's decisions, as reported by its controllers after each step and before each end.
    pub reasons: BTreeSet<Reason>,
}

impl Counts {
    /// The faults, each once; [`Fault::None`] if there was no fault.
    pub fn faults(&self) -> impl Iterator<Item = Fault> + '_ {
        let none = self.faults.is_empty().then_some(Fault::None);
        none.into_iter().chain(self.faults.keys().copied())
    }
}

/// A run with its end.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed of the run.
    pub seed: u64,
    pub verdict: Verdict,
    /// The counters.
    pub counts: Counts,
    /// The story, line by line.
    pub story: Vec<String>,
    /// The engine's own lines about the moment of the loss, for readers of the sources.
    pub details: String,
}

/// The key of a line of the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TallyLine {
    /// The allowed faults of its runs.
    pub mode: Mode,
    pub fault: Fault,
    /// The settings of the array.
    pub policy: &'static str,
    pub level: String,
}

/// The kind of array of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind {
    /// The allowed faults.
    pub mode: Mode,
    /// The first settings of the array.
    pub policy: &'static str,
    pub level: String,
}

/// Number of runs by verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ends {
    /// Runs without loss.
    pub survived: u64,
    /// Runs in which unpromised data was lost.
    pub not_promised: u64,
    /// Runs in which promised data was lost.
    pub lost: u64,
}

/// The results of many runs.
#[derive(Clone, Debug, Default)]
pub struct RunTally {
    /// All runs by verdict.
    pub ends: Ends,
    /// Number of runs.
    pub runs: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Ends of a server whose drives keep their power.
    pub kills: u64,
    /// Host requests.
    pub requests: u64,
    pub events: u64,
    /// Changes of the settings while the array was served.
    pub switches: u64,
    /// By fault, settings and level: a run counts in the line of each of its faults.
    pub lines: BTreeMap<TallyLine, Ends>,
    /// The number of each fault in each phase of the engine.
    pub pairs: BTreeMap<(Fault, Phase), u64>,
    /// The number of each fault during each kind of background task.
    pub tasks: BTreeMap<(Fault, &'static str), u64>,
    /// The number of each action while a member was in each state.
    pub states: BTreeMap<(&'static str, &'static str), u64>,
    /// By settings and level: each run counts once.
    pub kinds: BTreeMap<Kind, Ends>,
    /// The reasons for which lost data was not promised.
    pub excuses: BTreeMap<Excuse, u64>,
    /// Seeds of the runs that lost promised data.
    pub lost: Vec<u64>,
}

impl Ends {
    /// Number of runs.
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
    /// Add the counts of another one.
    pub fn add(&mut self, other: Self) {
        self.survived += other.survived;
        self.not_promised += other.not_promised;
        self.lost += other.lost;
    }
}

fn add_counts<K: Copy + Ord>(sum: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *sum.entry(*key).or_default() += count;
    }
}

impl RunTally {
    /// Count a run.
    pub fn count(&mut self, scenario: &Scenario, report: &Report) {
        self.runs += 1;
        self.cuts += report.counts.cuts;
        self.kills += report.counts.kills;
        self.requests += report.counts.requests;
        self.events += report.counts.events;
        self.switches += report.counts.switches;
        add_counts(&mut self.pairs, &report.counts.pairs);
        add_counts(&mut self.tasks, &report.counts.tasks);
        add_counts(&mut self.states, &report.counts.states);
        self.ends.count(&report.verdict);
        match &report.verdict {
            Verdict::NotPromised(excuse) => *self.excuses.entry(*excuse).or_default() += 1,
            Verdict::Lost(_) => self.lost.push(report.seed),
            Verdict::Survived => {}
        }
        let (mode, policy, level) = (scenario.mode, scenario.policy_name(), scenario.level_name());
        for fault in report.counts.faults() {
            let line = TallyLine { mode, fault, policy, level: level.clone() };
            self.lines.entry(line).or_default().count(&report.verdict);
        }
        self.kinds.entry(Kind { mode, policy, level }).or_default().count(&report.verdict);
    }

    /// Add the runs of another tally.
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
        add_counts(&mut self.pairs, &other.pairs);
        add_counts(&mut self.tasks, &other.tasks);
        add_counts(&mut self.states, &other.states);
        for (excuse, count) in &other.excuses {
            *self.excuses.entry(*excuse).or_default() += count;
        }
        self.lost.extend(&other.lost);
    }
}
