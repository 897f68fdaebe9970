//! A slice of the swarm: no promised data is lost, whatever fails, and a seed gives the same run twice.

mod support;

use openraid_sim::fault::{report, Fault, Mode, Scenario, Tally};
use support::{seeds, unharmed};

/// Number of runs in the slice (about 90 seconds), and in the long run.
const SLICE: u64 = 800;
const WHOLE: u64 = 20_000;

#[test]
fn nothing_promised_is_lost_in_any_run() {
    let tally = unharmed(seeds(SLICE, WHOLE), Scenario::draw);
    judge_coverage(&tally);
}

/// A swarm without activity finds no bug.
fn judge_coverage(tally: &Tally) {
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
