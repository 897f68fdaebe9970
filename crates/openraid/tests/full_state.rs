//! A state folder without room, or read-only: each command that keeps something says that it could not, an alarm holds until there is
//! room, and a kill at any time leaves what was kept before.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::guest::{tool, Small};
use support::web::Web;
use support::Lab;

/// A change that is not there after this time does not come.
const PATIENCE: Duration = Duration::from_secs(120);

fn kept(lab: &Lab) -> Value {
    let text = fs::read(lab.path("state/openraid/registry.json")).expect("it is never away");
    serde_json::from_slice::<Value>(&text).expect("it is whole")["arrays"].clone()
}

fn rate(array: &Value) -> Value {
    array["settings"]["rebuild_rate"].clone()
}

fn alarm(lab: &Lab) -> Option<Value> {
    let answer = lab.line("alarms --json").expect(0).json();
    answer["alarms"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|alarm| alarm["id"] == "server:StateUnwritable:registry")
        .cloned()
}

fn wait_for_the_end(lab: &Lab) {
    let until = Instant::now() + PATIENCE;
    while alarm(lab).is_some() {
        assert!(Instant::now() < until, "{:#}", alarm(lab).expect("it holds"));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn lab(name: &str) -> Lab {
    let lab = Lab::new(name);
    fs::create_dir_all(lab.path("state")).expect("room");
    lab
}

#[test]
fn what_a_full_state_folder_cannot_keep_is_said_and_kept_when_there_is_room() {
    let lab = lab("full-state");
    let state = lab.path("state");
    let test = "what_a_full_state_folder_cannot_keep_is_said_and_kept_when_there_is_room";
    let Some(small) = Small::mount(&state, "24M", test) else { return };
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let server = lab.serve(&["--http", "127.0.0.1:0", "data"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    lab.line("set data rebuild.rate=5M").expect(0);
    let before = kept(&lab);
    small.fill();
    let folder = state.join("openraid").display().to_string();
    let remedy = format!("make room on the file system of {folder}");
    let lost = "this is in force, and is lost when the server ends before it can be kept";
    let refused = lab.line("set data rebuild.rate=7M").refused(74, &["data: rebuild.rate=7M", lost, "No space left"]);
    assert_eq!((refused.err.matches(&remedy).count(), refused.err.trim().lines().count()), (1, 2), "{}", refused.err);
    assert_eq!(rate(&lab.show("data")), 7 << 20, "it is in force");
    let body = r#"{"settings": {"rebuild.rate": "6M"}}"#;
    let done = web.ask_with("PATCH", "/api/v1/arrays/data/settings", Some(body), &[]).expect(200).json();
    assert_eq!((&done["kept"], rate(&done["array"])), (&false.into(), (6 << 20).into()));
    // The log gets it a moment later.
    let until = Instant::now() + PATIENCE;
    let is_told = |rate: &str| {
        let events = lab.line("events --json").expect(0).text();
        assert!(!events.contains("refused"), "{events}");
        events.contains(&format!("set rebuild.rate={rate}: in force, not kept"))
    };
    while !(is_told("6M") && is_told("7M")) {
        assert!(Instant::now() < until, "{}", lab.line("events").text());
        std::thread::sleep(Duration::from_millis(50));
    }
    lab.line("rename data fresh").refused(74, &["data is fresh from now on", lost, &remedy]);
    lab.line("pause fresh").expect(0);
    let held = alarm(&lab).expect("it holds");
    assert_eq!((&held["level"], &held["event"]), (&"warning".into(), &"StateUnwritable".into()));
    assert!(held["text"].as_str().expect("text").contains(&remedy), "{held:#}");
    assert_eq!(kept(&lab), before, "the file is whole");
    // Nothing else is lost by a kill. The next server starts without room, and says the same.
    server.kill();
    let server = lab.serve(&["data"]);
    assert_eq!(rate(&lab.show("fresh")), 5 << 20, "the members have the new name, and the registry the old one");
    lab.line("set fresh rebuild.rate=9M").refused(74, &[lost, &remedy]);
    assert!(alarm(&lab).is_some());
    lab.line("create other --level 1 --assume-clean --file-size 16M o0 o1")
        .refused(74, &["the array was created, but", &remedy]);
    fs::remove_file(state.join("filler")).expect("it filled the file system");
    wait_for_the_end(&lab);
    server.kill();
    let server = lab.serve(&["data"]);
    assert_eq!(rate(&lab.show("fresh")), 9 << 20, "it was kept when there was room");
    server.stop();
}

#[test]
fn a_state_folder_that_is_read_only_serves_and_says_what_it_does_not_keep() {
    let lab = lab("read-only-state");
    let state = lab.path("state");
    let test = "a_state_folder_that_is_read_only_serves_and_says_what_it_does_not_keep";
    let Some(_small) = Small::mount(&state, "24M", test) else { return };
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    tool(&format!("mount -o remount,ro {}", state.display()));
    let remedy = format!("make the file system of {} writable", state.join("openraid").display());
    let server = lab.serve(&["--http", "127.0.0.1:0", "data"]);
    lab.line("set data rebuild.rate=7M").refused(74, &["Read-only file system", &remedy]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    let body = r#"{"settings": {"rebuild.rate": "8M"}}"#;
    let done = web.ask_with("PATCH", "/api/v1/arrays/data/settings", Some(body), &[]).expect(200).json();
    assert_eq!((&done["kept"], &done["array"]["settings"]["rebuild_rate"]), (&false.into(), &(8 << 20).into()));
    assert!(done["text"].as_str().expect("text").contains(&remedy), "{done:#}");
    assert_eq!(rate(&lab.show("data")), 8 << 20, "it is in force");
    lab.line("forget data").refused(74, &[&remedy]);
    tool(&format!("mount -o remount,rw {}", state.display()));
    wait_for_the_end(&lab);
    assert_eq!(kept(&lab)[0]["settings"]["rebuild.rate"], "8M");
    server.stop();
}
