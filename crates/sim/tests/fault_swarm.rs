//! A slice of the random and the swarm runs: no promised data is lost, whatever fails, and a seed gives the same run
//! twice. What the runs draw is counted: a field of a run that never has a second value is a gap.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use openraid_sim::fault::run::{drives_of, value_of_each_property};
use openraid_sim::fault::saved_run::value_of_each_field;
use openraid_sim::fault::scenario::Action;
use openraid_sim::fault::{report, Fault, Mode, RunTally, Scenario};
use support::{seeds, unharmed};

/// Number of runs in the slice, and in the long run.
const SLICE: u64 = 480;
const WHOLE: u64 = 20_000;

#[test]
fn nothing_promised_is_lost_in_any_run() {
    let tally = unharmed(seeds(SLICE, WHOLE), run_of);
    judge_coverage(&tally);
    for fault in [
        Fault::Refused,
        Fault::DiscardRefused,
        Fault::Reconnected,
        Fault::StartWithout,
        Fault::CheckDegraded,
        Fault::JournalJoined,
        Fault::NoRoom,
        Fault::RoomWait,
        Fault::OlderMember,
        Fault::OlderJournal,
        Fault::OlderVersion,
        Fault::StartReading,
        Fault::HalfCopied,
        Fault::SpareShared,
    ] {
        assert!(tally.lines.keys().any(|line| line.fault == fault), "no run with: {fault}");
    }
    judge_pairs(&tally);
}

/// One run in four is a swarm run, the others are random ones.
fn run_of(seed: u64) -> Scenario {
    match seed % 4 {
        3 => Scenario::swarm(seed),
        _ => Scenario::draw(seed),
    }
}

/// Each kind of task meets a power cut, and each state of a member most of the actions.
fn judge_pairs(tally: &RunTally) {
    for task in ["rebuild", "replacement", "resync", "check", "repair", "task that is held"] {
        assert!(tally.tasks.keys().any(|(fault, met)| *fault == Fault::Cut && *met == task), "no cut in: {task}");
    }
    let actions = Action::all_words().count();
    for state in ["in sync", "being filled", "faulty", "missing", "spare", "replacement"] {
        let met = tally.states.keys().filter(|(known, _)| *known == state).count();
        assert!(3 * met > actions, "{state}: only {met} of {actions} actions");
    }
}

/// Fields of a run that never have a second value, each with the reason.
const CONSTANT: &[(&str, &str)] = &[
    ("drive.fresh", "the drives of a run are new ones, or used ones: see used_drives"),
    ("limits.requests_max", "small, so that it is full in every run"),
    ("limits.pieces_max", "small, so that it is full in every run"),
    ("limits.ops_max", "small, so that it is full in every run"),
    ("limits.commands_max", "the least table of commands that the engine accepts"),
    ("limits.drives_max", "a run has fewer drives"),
    ("limits.trace_entries", "the engine never reads them"),
];

#[test]
fn every_field_of_a_run_is_drawn_or_has_a_reason() {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut actions = BTreeSet::new();
    for seed in 1..2000 {
        let scenario = Scenario::of(seed);
        actions.extend(scenario.steps.iter().map(|step| step.action.word()));
        for (key, value) in value_of_each_field(&scenario) {
            values.entry(key).or_default().insert(value);
        }
    }
    let constant: Vec<&String> = values.iter().filter(|(_, values)| values.len() < 2).map(|(key, _)| key).collect();
    let unexplained: Vec<&&String> =
        constant.iter().filter(|key| !CONSTANT.iter().any(|(known, _)| known == **key)).collect();
    assert!(unexplained.is_empty(), "no run draws {unexplained:?}");
    let drawn: Vec<&str> =
        CONSTANT.iter().map(|(key, _)| *key).filter(|key| !constant.iter().any(|judged| judged == key)).collect();
    assert!(drawn.is_empty(), "these are drawn now: {drawn:?}");
    let missing: Vec<&str> = Action::all_words().filter(|word| !actions.contains(word)).collect();
    assert!(missing.is_empty(), "no run has the actions {missing:?}");
}

#[test]
fn every_property_of_a_drive_is_drawn() {
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for seed in 1..2000 {
        for (key, value) in drives_of(&Scenario::of(seed)).iter().flat_map(value_of_each_property) {
            values.entry(key).or_default().insert(value);
        }
    }
    let constant: Vec<&&str> = values.iter().filter(|(_, values)| values.len() < 2).map(|(key, _)| key).collect();
    assert!(constant.is_empty(), "no run draws {constant:?}");
}

/// A swarm without activity finds no bug.
fn judge_coverage(tally: &RunTally) {
    assert_eq!(tally.ends.survived + tally.ends.not_promised, tally.runs);
    assert!(tally.cuts > tally.runs && tally.requests > 100 * tally.runs, "{tally:?}");
    let runs_of = |mode, fault| {
        let lines = tally.lines.iter().filter(|(line, _)| line.mode == mode && line.fault == fault);
        lines.map(|(_, ends)| ends.survived + ends.not_promised).sum::<u64>()
    };
    let always = [
        Fault::Cut,
        Fault::CutInPart,
        Fault::CutInAssembly,
        Fault::CutInRebuild,
        Fault::CutInResync,
        Fault::CutInMetadata,
        Fault::Kill,
        Fault::Pulled,
        Fault::Vanished,
        Fault::FlushFailed,
        Fault::Hanging,
        Fault::Stale,
        Fault::Latent,
        Fault::Flip,
        Fault::CutInScrub,
        Fault::CutInReplay,
        Fault::CutAndLoss,
        Fault::Failed,
        Fault::ReadOnly,
        Fault::Late,
        Fault::JournalLost,
        Fault::JournalBack,
    ];
    for fault in always {
        assert!(runs_of(Mode::Bounded, fault) > 0, "no bounded run with: {fault}");
    }
    let unbounded = [
        Fault::LostWrite,
        Fault::Misdirected,
        Fault::Misread,
        Fault::FlipOnTheWay,
        Fault::FlipSuperblock,
        Fault::Dead,
        Fault::JournalHurt,
    ];
    for fault in unbounded {
        assert!(runs_of(Mode::Unbounded, fault) > 0, "no unbounded run with: {fault}");
    }
    let bounded = tally.lines.iter().filter(|(line, _)| line.mode == Mode::Bounded);
    let excused: u64 = bounded.map(|(_, ends)| ends.not_promised).sum();
    assert_eq!(excused, 0, "a bounded run has no excuse");
}

#[test]
fn a_seed_is_a_run() {
    for seed in seeds(6, 60) {
        let once = report(&Scenario::draw(seed), None);
        let twice = report(&Scenario::draw(seed), None);
        assert_eq!((once.verdict, once.story), (twice.verdict, twice.story), "seed {seed}");
        assert_eq!(once.counts.events, twice.counts.events);
    }
}
