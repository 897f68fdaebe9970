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

/// The names and meanings of a table whose rows begin with a name in backticks.
fn rows(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")).map(|row| row.split('|').collect::<Vec<_>>());
    rows.map(|cells| (cells[0].trim().trim_end_matches('`').into(), cells[1].trim().into())).collect()
}

/// Bugs of the engine are compiled only for the hunt, so their table is read from the source.
#[test]
fn the_page_of_torture_lists_each_bug_of_the_engine() {
    let page = include_str!("../../../docs/torture.md");
    let (_, listed) = page.split_once("### Bugs in the engine").expect("the section");
    let source = include_str!("../../core/src/planted.rs");
    let (_, table) = source.split_once("\nflaws! {").expect("the table");
    let bugs = table.lines().take_while(|line| *line != "}").filter(|line| line.contains(" = \""));
    let bugs =
        bugs.map(|line| line.split('"').collect::<Vec<_>>()).map(|parts| (parts[1].to_owned(), parts[3].to_owned()));
    let bugs: Vec<_> = bugs.collect();
    assert!(bugs.len() >= 18, "{bugs:?}");
    assert_eq!(rows(listed), bugs, "docs/torture.md and crates/core/src/planted.rs");
}
