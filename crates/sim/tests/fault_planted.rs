//! Bugs that are planted in the driver loop are found by the swarm, each within so many seeds as it says.

mod support;

use std::sync::Mutex;

use openraid_sim::fault::{report, Bug, Scenario, Verdict};
use support::two_at_a_time;

#[test]
fn kinds() {
    std::panic::set_hook(Box::new(|_| {}));
    let lines = Mutex::new(Vec::new());
    two_at_a_time(Bug::ALL.iter(), |bug| {
        let mut kinds = std::collections::BTreeMap::new();
        let mut lost = 0;
        for seed in 1..=bug.found_within() {
            let report = report(&Scenario::draw(seed), Some(*bug));
            if let Some(kind) = report.verdict.kind() {
                lost += 1;
                kinds.entry(kind).or_insert_with(Vec::new).push(seed);
            }
            if lost >= 14 {
                break;
            }
        }
        lines.lock().unwrap().push(format!("{bug} (within {}): {kinds:?}", bug.found_within()));
    });
    for line in lines.into_inner().unwrap() {
        println!("{line}");
    }
}

/// The first seed with which a bug is found.
fn found_at(bug: Bug) -> Option<u64> {
    let fails = |seed: &u64| matches!(report(&Scenario::draw(*seed), Some(bug)).verdict, Verdict::Lost(_));
    (1..=bug.found_within()).find(fails)
}

#[test]
fn every_planted_bug_is_found() {
    assert!(Bug::ALL.len() >= 10);
    // Panics are what is looked for: their words are in the report.
    std::panic::set_hook(Box::new(|_| {}));
    let found = Mutex::new(Vec::new());
    two_at_a_time(Bug::ALL.iter(), |bug| {
        let seed = found_at(*bug);
        found.lock().unwrap().push((*bug, seed));
    });
    let _ = std::panic::take_hook();
    let found = found.into_inner().unwrap();
    for (bug, seed) in &found {
        println!("{bug}: seed {seed:?}, at most {}", bug.found_within());
    }
    let missed: Vec<_> = found.iter().filter(|(_, seed)| seed.is_none()).map(|(bug, _)| bug.name()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
