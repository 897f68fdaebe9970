//! The torture finds the bugs planted in the driver loop, each within its number of seeds, and by the judge for that
//! bug. Other effects of the bug do not count.

mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;

use openraid_sim::fault::{report, Bug, Scenario};
use support::two_at_a_time;

/// The result of a bug's seeds.
#[derive(Debug, Default)]
struct Hunt {
    /// The first seed that shows it.
    found: Option<u64>,
    /// Other losses of earlier runs, and the first seed of each.
    otherwise: BTreeMap<String, u64>,
}

fn hunt(bug: Bug) -> Hunt {
    let mut hunt = Hunt::default();
    for seed in 1..=bug.found_within() {
        let verdict = report(&Scenario::draw(seed), Some(bug)).verdict;
        if bug.is_shown_by(&verdict) {
            hunt.found = Some(seed);
            break;
        }
        if let Some(kind) = verdict.kind() {
            hunt.otherwise.entry(kind).or_insert(seed);
        }
    }
    hunt
}

#[test]
fn every_bug_planted_in_the_driver_loop_is_found_by_its_judge() {
    assert!(Bug::ALL.len() >= 10);
    // Panics are the expected findings: their messages are in the report.
    std::panic::set_hook(Box::new(|_| {}));
    let hunts = Mutex::new(Vec::new());
    two_at_a_time(Bug::ALL.iter(), |bug| {
        let hunt = hunt(*bug);
        hunts.lock().unwrap().push((*bug, hunt));
    });
    let _ = std::panic::take_hook();
    let hunts = hunts.into_inner().unwrap();
    for (bug, hunt) in &hunts {
        println!("{bug}: seed {:?}, at most {}; otherwise {:?}", hunt.found, bug.found_within(), hunt.otherwise);
    }
    let missed: Vec<_> = hunts.iter().filter(|(_, hunt)| hunt.found.is_none()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
    // A drive that gets more commands than its limit is not a judge.
    let artefact = |kind: &&String| kind.contains("deeper than the drive");
    let artefacts: Vec<_> =
        hunts.iter().filter(|(_, hunt)| hunt.otherwise.keys().any(|kind| artefact(&kind))).collect();
    assert!(artefacts.is_empty(), "found by how they are planted: {artefacts:?}");
}
