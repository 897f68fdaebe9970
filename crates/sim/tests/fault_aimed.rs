//! A slice of the aimed runs: cuts between a step of the engine and its consequence lose no data, and the runs meet
//! every such moment.

mod support;

use openraid_sim::fault::{report, Fault, Phase, Scenario};
use support::{seeds, unharmed};

/// Number of runs in the slice, and in the long run.
const SLICE: u64 = 160;
const WHOLE: u64 = 10_000;

#[test]
fn no_aimed_run_loses_anything_and_the_power_goes_in_every_phase() {
    let tally = unharmed(seeds(SLICE, WHOLE), Scenario::aimed);
    let cuts = [Fault::Cut, Fault::CutInPart, Fault::CutAndLoss, Fault::Kill];
    let times = |phase| cuts.iter().filter_map(|cut| tally.pairs.get(&(*cut, phase))).sum::<u64>();
    let missed: Vec<Phase> = Phase::steady().iter().copied().filter(|phase| times(*phase) == 0).collect();
    // A bad-block log is written if parity cannot be made, which is rare in bounded runs.
    let rare = [Phase::BadBlocksOut];
    assert!(missed.iter().all(|phase| rare.contains(phase)), "no cut while {missed:?}");
    let resyncs = tally.lines.keys().any(|line| line.fault == Fault::CutInMirrorResync);
    assert!(resyncs, "no cut while a device of the journal was brought up to date");
}

#[test]
fn an_aimed_seed_is_a_run_and_the_torture_takes_its_four_kinds_of_runs_in_turn() {
    for seed in seeds(4, 40) {
        let once = report(&Scenario::aimed(seed), None);
        let twice = report(&Scenario::aimed(seed), None);
        assert_eq!((once.verdict, once.story), (twice.verdict, twice.story), "seed {seed}");
        let expected = match seed % 4 {
            0 => Scenario::aimed(seed),
            1 => Scenario::draw(seed),
            2 => Scenario::changing(seed),
            _ => Scenario::swarm(seed),
        };
        assert_eq!(Scenario::of(seed), expected);
        assert!(!Scenario::draw(seed).aimed);
    }
}
