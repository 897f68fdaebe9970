//! A slice of the runs that change the shape of an array: nothing promised is lost, and the power goes in every phase of
//! a change.

mod support;

use openraid_sim::fault::{report, Fault, Phase, Scenario};
use support::{seeds, unharmed};

/// Number of runs in the slice, and in the long run.
const SLICE: u64 = 240;
const WHOLE: u64 = 10_000;

#[test]
fn no_change_of_shape_loses_anything_and_the_power_goes_in_every_phase_of_one() {
    let tally = unharmed(seeds(SLICE, WHOLE), Scenario::changing);
    let cuts = [Fault::Cut, Fault::CutInPart, Fault::Kill];
    let times = |phase| cuts.iter().filter_map(|cut| tally.pairs.get(&(*cut, phase))).sum::<u64>();
    let missed: Vec<Phase> = Phase::of_changes().iter().copied().filter(|phase| times(*phase) == 0).collect();
    assert!(missed.is_empty(), "no cut while {missed:?}");
    for fault in [Fault::Reshaped, Fault::ReshapeCancelled, Fault::CutInReshape] {
        assert!(tally.lines.keys().any(|line| line.fault == fault), "no run with: {fault}");
    }
}

/// Here a member is being rebuilt during a change, and at the next start its rebuild has not begun yet.
#[test]
fn the_judge_takes_no_slot_for_the_q_of_a_change_that_has_lost_its_member() {
    let report = report(&Scenario::changing(886), None);
    assert_eq!(report.verdict.kind(), None, "{:?}", report.verdict);
}

#[test]
fn a_changing_seed_is_a_run() {
    for seed in seeds(4, 40) {
        let once = report(&Scenario::changing(seed), None);
        let twice = report(&Scenario::changing(seed), None);
        assert_eq!((once.verdict, once.story), (twice.verdict, twice.story), "seed {seed}");
    }
}
