//! `openraid-lab review` of an array that a server of this machine serves, with work in the background and without.

use std::fs;
use std::thread;

use serde_json::Value;

use crate::support::Lab;

/// The line of the test bed about the array.
fn state(lab: &Lab, folder: &str) -> String {
    let text = fs::read_to_string(lab.path(folder).join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    let bed = results["bed"].as_array().expect("a list").iter();
    let lines: Vec<String> = bed
        .filter_map(Value::as_str)
        .filter_map(|line| line.strip_prefix("state of the array: "))
        .map(str::to_owned)
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0].clone()
}

#[test]
fn cells_next_to_work_in_the_background_are_refused_and_those_of_a_degraded_array_are_marked() {
    let lab = Lab::new("served-review");
    lab.line("create data --level 5 --chunk 64K --file-size 32M --assume-clean d0 d1 d2").expect(0);
    let server = lab.serve(&["data"]);
    let uri = server.uri();
    let review = |folder: &str, seconds: u32| {
        lab.line(&format!("review --target {uri} --methods own-load --load random --seconds {seconds} --out {folder}"))
    };
    review("quiet", 1).expect(0);
    assert!(state(&lab, "quiet").starts_with("all members are in sync, and nothing runs in the background"));
    // A check that takes half a minute.
    lab.line("set data scrub.rate=1M").expect(0);
    lab.line("check data").expect(0);
    let helps = ["works on it in the background", "check", "`openraid show data`", "`openraid pause data`"];
    review("checked", 1).refused(65, &helps);
    assert!(!lab.path("checked/results.json").exists());
    lab.line("pause data").expect(0);
    review("paused", 1).expect(0);
    lab.line("check data --stop").expect(0);
    lab.wait_for("data", |array| array["task"].is_null());
    lab.line("resume data").expect(0);
    // Work that begins during a cell: the cell has no result.
    let reads = |array: &Value| array["host"]["reads"].as_u64().expect("a number");
    let before = reads(&lab.show("data"));
    thread::scope(|scope| {
        let running = scope.spawn(|| review("late", 4));
        lab.wait_for("data", |array| reads(array) > before + 100);
        lab.line("check data").expect(0);
        running.join().expect("it ends").refused(74, &["works on it in the background"]);
    });
    assert_eq!(fs::read_dir(lab.path("late/cells")).expect("a folder").count(), 0);
    lab.line("check data --stop").expect(0);
    lab.wait_for("data", |array| array["task"].is_null());
    lab.line(&format!("fail data {}", lab.path("d1").display())).expect(0);
    review("degraded", 1).expect(0);
    assert!(state(&lab, "degraded").starts_with("DEGRADED: every cell"));
    server.stop();
}

#[test]
fn of_a_target_that_no_server_serves_the_state_is_not_known() {
    let lab = Lab::new("unserved-review");
    fs::write(lab.path("disk"), vec![0x5a; 8 << 20]).expect("written");
    lab.line("review --target disk --methods own-load --load random --seconds 1 --out out").expect(0);
    assert!(state(&lab, "out").starts_with("not known"));
    lab.line("review --target null: --methods own-load --load random --seconds 1 --out null").expect(0);
    assert!(!fs::read_to_string(lab.path("null/results.json")).expect("results").contains("state of the array"));
}
