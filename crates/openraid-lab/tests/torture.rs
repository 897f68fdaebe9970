//! `openraid-lab torture`: exit codes, tables, the story of a run, planted bugs, an interrupt.

#[path = "../../openraid/tests/support/mod.rs"]
mod support;

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::Lab;

fn sum(rows: &Value) -> u64 {
    let of = |row: &Value| ["survived", "not_promised", "lost"].map(|key| row[key].as_u64().expect(key));
    rows.as_array().expect("rows").iter().flat_map(of).sum()
}

#[test]
fn every_run_is_counted_once_and_those_without_a_fault_too() {
    let lab = Lab::new("torture");
    let json = lab.line("torture --seeds 1..8 --threads 2 --json").expect(0).json();
    assert_eq!((json["runs"].as_u64(), &json["ended_by"]), (Some(8), &Value::from("seeds")));
    assert_eq!(sum(&json["kinds"]), 8);
    assert!(sum(&json["table"]) >= 8, "each run stands in a row: {}", json["table"]);
    let ran = lab.line("torture --seeds 1..8 --threads 2").expect(0);
    let text = ran.text();
    for word in ["seeds 1 to 8: 8 runs in", "FAULT", "LEVEL", "ALL", "all runs, each once", "lost: 0"] {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    let last = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    let all = last("all runs, each once").split_whitespace().next_back().expect("a sum");
    assert_eq!(all.split('/').map(|count| count.parse::<u64>().expect("a number")).sum::<u64>(), 8);
    let full = lab.line("torture --seeds 1..8 --full").expect(0).text();
    assert!(full.contains("RUNS") && full.contains("any, each run once"), "{full}");
}

#[test]
fn a_planted_bug_is_found_named_at_once_and_shown_as_a_story() {
    let lab = Lab::new("torture");
    let ran = lab.line("torture --planted answer-early --seeds 1..50").expect(0);
    let text = ran.text();
    assert!(ran.err.contains("LOST, seed "), "told when it is known: {}", ran.err);
    let hint = text.lines().next_back().expect("a line");
    let seed = hint.strip_prefix("what happened: openraid-lab torture --replay ").unwrap_or_else(|| panic!("{text}"));
    let seed = seed.strip_suffix(" --planted answer-early").unwrap_or_else(|| panic!("{text}"));
    assert!(text.contains(&format!("the planted bug 'answer-early' is found by seed {seed}")), "{text}");
    let story = lab.line(&format!("torture --replay {seed} --planted answer-early")).expect(2).text();
    for word in ["hosts send", "LOST: a read found what no write explains: byte ", "; right is ", "request "] {
        assert!(story.contains(word), "{word:?} is not in:\n{story}");
    }
    // The output has no names of the sources.
    for word in ["Some(", "None", "Ask(", "End(", "Stamp", "layout 0x", "Lba(", "Policy {", "DirtyCount"] {
        assert!(!story.contains(word), "{word:?} is in:\n{story}");
    }
    let json = lab.line(&format!("torture --replay {seed} --planted answer-early --full --json")).expect(2).json();
    assert_eq!(json["schema"], "openraid/torture-replay/1");
    assert!(json["steps"].as_u64() <= json["steps_drawn"].as_u64(), "{json}");
    assert!(json["details"].as_array().is_some_and(|lines| !lines.is_empty()), "{json}");
}

#[test]
fn a_bug_that_is_not_found_and_words_that_make_no_sense_are_failures() {
    let lab = Lab::new("torture");
    let ran = lab.line("torture --planted ppl-unchecked --seeds 1..1").expect(2);
    assert!(ran.text().contains("the planted bug 'ppl-unchecked' is NOT found"), "{}", ran.text());
    lab.line("torture --planted nonsense").refused(64, &["no planted bug is named 'nonsense'", "wrong-member"]);
    lab.line("torture --seeds 5..3").refused(64, &["must not be above"]);
    let story = lab.line("torture --replay 1").expect(0).text();
    assert!(story.starts_with("seed 1, ") && story.ends_with("survived\n"), "{story}");
}

#[test]
fn an_interrupt_begins_no_more_runs_and_prints_what_they_came_to() {
    for signal in ["INT", "TERM"] {
        let lab = Lab::new("torture");
        let mut command = lab.command(&["torture", "--minutes", "60", "--threads", "1"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        // Time to take the signals over; a run or a few may have ended by then.
        thread::sleep(Duration::from_millis(1500));
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        let mut text = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{text}");
        for word in ["seeds 1 to ", "interrupted: ", "survived: ", "lost: 0"] {
            assert!(text.contains(word), "{word:?} is not in:\n{text}");
        }
    }
}
