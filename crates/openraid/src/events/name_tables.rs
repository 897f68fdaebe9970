//! The tables of events and alarms: each name is used, each name that is used is in the table, and the pages agree.

use std::fs;
use std::path::{Path, PathBuf};

use openraid_status::EventName;

use super::Severity;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The engine's notices.
const NOTICES: &str = include_str!("../../../core/src/notice_text.rs");

/// The names that the engine's notices have.
fn of_engine() -> Vec<&'static str> {
    let (_, body) = NOTICES.split_once("pub const fn event(&self)").expect("the function");
    let (body, _) = body.split_once("\n    }\n").expect("its end");
    body.split('"').skip(1).step_by(2).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            sources(&entry.path(), found);
        } else if entry.path().extension().is_some_and(|ending| ending == "rs") {
            found.push(entry.path());
        }
    }
}

/// The names that the program gives to events and alarms outside of its tests.
fn of_program() -> Vec<String> {
    let mut files = Vec::new();
    sources(&Path::new(ROOT).join("crates/openraid/src"), &mut files);
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a file");
        let text = text.split("#[cfg(test)]\nmod tests").next().expect("a part");
        let is_part = |c: char| !c.is_alphanumeric();
        found.extend(
            text.split("EventName::").skip(1).map(|rest| rest.split(is_part).next().expect("a word").to_owned()),
        );
    }
    found
}

#[test]
fn each_event_is_in_the_table_and_each_name_of_the_table_is_used() {
    let (engine, program) = (of_engine(), of_program());
    assert!(engine.len() > 20 && program.len() > 20, "the names are found: {engine:?}, {program:?}");
    for name in &engine {
        assert!(EventName::named(name).is_some(), "the engine's event {name} is not in the table");
    }
    for name in EventName::ALL.iter().map(|name| name.word()) {
        let is_used = engine.contains(&name) || program.iter().any(|used| used == name);
        assert!(is_used, "{name} is in the table, but no code produces it");
    }
}

#[test]
fn the_page_of_events_has_the_table() {
    const BEGIN: &str = "<!-- events: begin -->\n";
    const END: &str = "<!-- events: end -->\n";
    let path = format!("{ROOT}/docs/events.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (head, rest) = page.split_once(BEGIN).expect("the table begins");
    let (table, tail) = rest.split_once(END).expect("the table ends");
    let rows = EventName::ALL.iter();
    let rows = rows.map(|name| format!("| `{}` | {} | {} |\n", name.word(), name.level().word(), name.about()));
    let wanted = format!("\n| Name | Level | Meaning |\n|---|---|---|\n{}\n", rows.collect::<String>());
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        fs::write(path, format!("{head}{BEGIN}{wanted}{END}{tail}")).expect("it can be written");
    } else {
        assert_eq!(table, wanted, "docs/events.md is stale; run this test with OPENRAID_BLESS=1");
    }
}

/// Each fault has a row in the recovery guide.
#[test]
fn the_recovery_guide_has_a_row_for_each_warning_and_critical_event() {
    let page = fs::read_to_string(format!("{ROOT}/docs/recovery.md")).expect("the page");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    let faults = EventName::ALL.iter().filter(|name| name.level() > Severity::Info).map(|name| name.word());
    let missing: Vec<&str> = faults.filter(|name| !rows.iter().any(|row| row.contains(&format!("`{name}`")))).collect();
    assert!(missing.is_empty(), "docs/recovery.md has no row for {missing:?}");
}

/// promtool runs the tests of the rules where it is installed. That each rule has one is checked everywhere.
#[test]
fn each_alert_rule_has_a_test_and_each_test_has_its_rule() {
    let read = |name: &str| fs::read_to_string(format!("{ROOT}/packaging/prometheus/{name}")).expect("a file");
    let words = |text: &str, key: &str| -> std::collections::BTreeSet<String> {
        let after = text.split(key).skip(1).map(|rest| rest.trim_start().split(|c: char| !c.is_alphanumeric()).next());
        after.flatten().map(str::to_owned).collect()
    };
    let (rules, tests) = (words(&read("alerts.yml"), "- alert:"), words(&read("alerts-test.yml"), "alertname:"));
    assert!(rules.len() > 10, "{rules:?}");
    assert_eq!(rules, tests);
}
