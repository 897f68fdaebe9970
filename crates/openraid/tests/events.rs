//! The event log: states at a start, what survives a kill and a full disk, asking, following, acknowledging.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::guest::Small;
use support::Lab;

/// After this time an event that is not in the log counts as missing.
const PATIENCE: Duration = Duration::from_secs(120);

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

fn events(lab: &Lab, options: &str) -> Vec<Value> {
    let answer = lab.line(&format!("events --json {options}")).expect(0).json();
    assert_eq!(answer["damaged"], 0);
    answer["events"].as_array().expect("a list").clone()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("a name")).collect()
}

/// Wait until the log has this many events of this name.
#[track_caller]
fn wait_for(lab: &Lab, name: &str, count: usize) -> Vec<Value> {
    wait_until(lab, |found| found.iter().filter(|event| **event == name).count() >= count)
}

/// Wait until the names in the log are as wanted.
#[track_caller]
fn wait_until(lab: &Lab, wanted: impl Fn(&[&str]) -> bool) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = events(lab, "");
        if wanted(&names(&found)) {
            return found;
        }
        assert!(Instant::now() < until, "{found:#?}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_fault_found_at_a_start_is_an_event_and_a_kill_loses_none() {
    let lab = array("events");
    lab.line("events").expect(0).says(&["no events"]);
    let server = lab.serve(&["data"]);
    lab.line("fail data d1").expect(0);
    let found = wait_for(&lab, "Fail", 1);
    let fail = found.iter().find(|event| event["event"] == "Fail").expect("it").clone();
    assert_eq!((&fail["level"], &fail["array"], &fail["slot"]), (&"critical".into(), &"data".into(), &1.into()));
    assert!(fail["text"].as_str().expect("text").contains("d1"), "{fail}");
    server.kill();
    let server = lab.serve(&["data"]);
    // A start is one event, and its faults follow.
    let found = wait_until(&lab, |names| {
        let starts: Vec<usize> = (0..names.len()).filter(|place| names[*place] == "ServerStarted").collect();
        starts.get(1).is_some_and(|second| names[*second..].contains(&"DegradedArray"))
    });
    let numbers: Vec<u64> = found.iter().map(|event| event["number"].as_u64().expect("a number")).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert!(found.contains(&fail), "it survives the kill");
    let second = found.iter().rposition(|event| event["event"] == "ServerStarted").expect("it");
    let at_start: Vec<&Value> = found[second..].iter().filter(|event| event["event"] == "DegradedArray").collect();
    assert_eq!(at_start.len(), 1, "{found:#?}");
    let degraded = at_start[0];
    assert_eq!((&degraded["level"], &degraded["array"]), (&"critical".into(), &"data".into()));
    assert_eq!(degraded["text"], "data: at the start degraded: without slot 1");
    // An acknowledged event stays in the log and is not listed as open.
    let number = degraded["number"].to_string();
    lab.line(&format!("events --acknowledge {number}")).expect(0).says(&["1 event acknowledged"]);
    let open = events(&lab, "--unacknowledged --level warning");
    assert!(open.contains(&fail) && !open.iter().any(|event| event["number"] == degraded["number"]), "{open:#?}");
    assert!(events(&lab, "")
        .iter()
        .any(|event| event["number"] == degraded["number"] && event["acknowledged"] == true));
    lab.line("events --acknowledge all").expect(0);
    assert_eq!(events(&lab, "--unacknowledged"), [Value::Null; 0]);
    lab.line("events --acknowledge 4711").refused(65, &["there is no event 4711"]);
    lab.line("events --acknowledge some").refused(64, &["the number of an event, or all"]);
    server.stop();
    assert_eq!(names(&events(&lab, "--last 1")), ["ServerStopped"]);
}

#[test]
fn a_forced_start_and_arrays_that_are_not_started_are_events() {
    let lab = array("forced");
    lab.line("create gone --level 1 --assume-clean --file-size 16M g0 g1").expect(0);
    let server = lab.serve(&["data"]);
    lab.line("fail data d0").expect(0);
    support::kill_under_writes(&lab, server);
    fs::remove_file(lab.path("g0")).expect("it was there");
    fs::remove_file(lab.path("g1")).expect("it was there");
    fs::write(lab.path("openraid.toml"), format!("[server]\nnbd-unix = {:?}\n", lab.path("nbd.sock"))).expect("room");
    let mut command = lab.command(&["serve", "--json", "--config", "openraid.toml", "--force"]);
    let server = support::Server::started(&mut command).expect("ready");
    let found = wait_until(&lab, |names| names.contains(&"StartProblem") && names.contains(&"ForcedStart"));
    let text = |event: &Value| event["text"].as_str().expect("text").to_owned();
    let problems: Vec<String> = found.iter().filter(|event| event["event"] == "StartProblem").map(text).collect();
    assert!(problems.len() == 1 && problems[0].contains("/g0"), "{problems:?}");
    let forced = found.iter().find(|event| event["event"] == "ForcedStart").expect("it was started by force");
    assert_eq!((&forced["level"], &forced["array"]), (&"critical".into(), &"data".into()));
    server.stop();
}

#[test]
fn the_log_is_asked_by_time_array_and_level_and_followed() {
    let lab = array("asked");
    lab.line("create more --level 1 --assume-clean --file-size 16M m0 m1").expect(0);
    let server = lab.serve(&["data", "more"]);
    let follow = lab.command(&["events", "--follow", "--array", "more", "--json"]);
    let mut follow = { follow }.stdout(Stdio::piped()).spawn().expect("it starts");
    lab.line("fail data d1").expect(0);
    lab.line("fail more m1").expect(0);
    let mut lines = BufReader::new(follow.stdout.take().expect("piped")).lines();
    let mut followed = Vec::new();
    while !names(&followed).contains(&"Fail") {
        let line = lines.next().expect("more to come").expect("text");
        let document: Value = serde_json::from_str(&line).expect("JSON");
        followed.extend(document["events"].as_array().expect("a list").clone());
    }
    assert!(followed.iter().all(|event| event["array"] == "more"), "{followed:#?}");
    let _ = follow.kill();
    let _ = follow.wait();
    wait_for(&lab, "Fail", 2);
    wait_for(&lab, "DegradedArray", 2);
    wait_for(&lab, "Changed", 2);
    let of = events(&lab, "--array data --level critical");
    assert_eq!((names(&of), &of[0]["array"]), (vec!["Fail", "DegradedArray"], &"data".into()));
    assert!(names(&events(&lab, "--level warning")).contains(&"DegradedArray"));
    assert!(!names(&events(&lab, "--level warning")).contains(&"ServerStarted"));
    assert_eq!(events(&lab, "--since 1h"), events(&lab, ""));
    assert_eq!(events(&lab, "--since 9999-01-01"), [Value::Null; 0]);
    let text = lab.line("events --array data --level critical").expect(0).text();
    assert!(text.contains("critical") && text.contains("Fail: data, slot 1"), "{text}");
    lab.line("events --since yesterday").refused(64, &["how long ago (30m, 2h, 7d)"]);
    lab.line("events --level loud").refused(64, &["info"]);
    server.stop();
}

#[test]
fn on_a_full_disk_the_newest_events_stay() {
    let lab = array("full");
    let state = lab.path("state");
    fs::rename(&state, lab.path("before")).expect("the same folder");
    fs::create_dir_all(&state).expect("a folder");
    let test = "on_a_full_disk_the_newest_events_stay";
    let Some(small) = Small::mount(&state, "1M", test) else { return };
    let copied = Command::new("cp").arg("-r").arg(lab.path("before/openraid")).arg(&state).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let server = lab.serve(&["data"]);
    wait_for(&lab, "ServerStarted", 1);
    // The rest of the disk is taken.
    small.fill();
    let control = server.ready["control"].as_str().expect("a path");
    let mut stream = UnixStream::connect(control).expect("it listens");
    let mut answers = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let rounds = 2000;
    for round in 1..=rounds {
        let rate = format!("{round}M");
        writeln!(stream, r#"{{"v":2,"do":"set","array":"data","settings":[["rebuild.rate","{rate}"]]}}"#)
            .expect("sent");
        let answer = answers.next().expect("an answer").expect("text");
        assert!(
            answer.contains("this is in force, and is lost when the server ends before it can be kept"),
            "{answer}"
        );
    }
    lab.line("fail data d2").expect(0);
    let found = wait_for(&lab, "Fail", 1);
    let folder = state.join("openraid/registry.json.events");
    let segments = fs::read_dir(&folder).expect("the log").filter(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.to_string_lossy().starts_with("events-")
    });
    assert!(segments.count() <= 3, "there is no room for more");
    let numbers: Vec<u64> = found.iter().map(|event| event["number"].as_u64().expect("a number")).collect();
    assert!(numbers[0] > 1 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert!(numbers.last() > Some(&rounds), "{numbers:?}");
    server.stop();
}

#[test]
fn a_change_by_the_command_line_is_in_the_log_and_a_refusal_or_a_question_is_not() {
    let lab = Lab::new("changed");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let mut server = lab.serve(&["data"]);
    lab.line("show data").expect(0);
    lab.line("set data access=read-only").expect(0);
    lab.line("set data rebuild.rate=quick").expect(64);
    lab.line("fail data slot:7").expect(65);
    lab.line("rename data other").expect(0);
    lab.line("pause other").expect(0);
    server.wait_for_news("Changed", 3);
    server.stop();
    let told = lab.line("events --json").expect(0).json();
    let all = told["events"].as_array().expect("a list").iter().filter(|event| event["event"] == "Changed");
    let texts: Vec<&str> = all.filter_map(|event| event["text"].as_str()).collect();
    let wanted =
        ["data: by the command line: set access=read-only: done", "data: by the command line: rename other: done"];
    assert_eq!(texts[..2], wanted);
    assert_eq!(texts[2..], ["other: by the command line: pause: done"]);
}
