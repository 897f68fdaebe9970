//! Arrays that a service cannot start: each has one alarm with its reason, which names the array and ends when the array is served.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{read_at, write_at, Lab};
use serde_json::Value;

/// The place of the superblock in a member.
const SUPERBLOCK: u64 = 4096;

fn away(lab: &Lab, names: &[&str]) {
    names.iter().for_each(|name| fs::rename(lab.path(name), lab.path(&format!("{name}.away"))).expect("it is there"));
}

fn back(lab: &Lab, names: &[&str]) {
    names
        .iter()
        .for_each(|name| fs::rename(lab.path(&format!("{name}.away")), lab.path(name)).expect("it was put away"));
}

/// The open alarms of this kind.
fn open(lab: &Lab, event: &str) -> Vec<Value> {
    let all = lab.line("alarms --json").expect(0).json()["alarms"].as_array().expect("a list").clone();
    all.into_iter().filter(|alarm| alarm["event"] == event && alarm["until_seconds"].is_null()).collect()
}

/// Wait until no problem of a start is open.
#[track_caller]
fn wait_for_no_problem(lab: &Lab) {
    let until = Instant::now() + Duration::from_secs(60);
    while !open(lab, "StartProblem").is_empty() || !open(lab, "DeviceDisappeared").is_empty() {
        assert!(Instant::now() < until, "{:#?}", open(lab, "StartProblem"));
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The one problem of the start, which is about this array and no member.
#[track_caller]
fn problem_of(lab: &Lab, array: &str, words: &[&str]) -> String {
    let [problem] = open(lab, "StartProblem").try_into().unwrap_or_else(|all| panic!("not one problem: {all:#?}"));
    assert_eq!(problem["id"], format!("{array}:StartProblem"), "{problem:#}");
    assert_eq!((&problem["array"], &problem["member"]), (&array.into(), &Value::Null), "{problem:#}");
    assert!(problem["uuid"].is_string(), "{problem:#}");
    let text = problem["text"].as_str().expect("a text").to_owned();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    let of_array = lab.line(&format!("alarms --array {array} --json")).expect(0).json();
    let of_array = of_array["alarms"].as_array().expect("a list").clone();
    for event in ["StartProblem", "DeviceDisappeared"] {
        assert_eq!(of_array.iter().filter(|one| one["event"] == event).count(), 1, "{event}: {of_array:#?}");
    }
    text
}

fn nested(lab: &Lab) {
    lab.line("create data --level 50 --spans 2 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3 d4 d5").expect(0);
}

#[test]
fn the_problem_of_a_span_is_one_of_its_array_and_ends_with_it() {
    let lab = Lab::new("span-away");
    nested(&lab);
    away(&lab, &["d0", "d1"]);
    lab.configure("");
    let mut server = lab.serve_configured();
    problem_of(&lab, "data", &["array data: ", "array data.0: not enough members"]);
    let problems = lab.line("events --array data --json").expect(0).json();
    let problems = problems["events"].as_array().expect("a list").clone();
    assert_eq!(problems.iter().filter(|one| one["event"] == "StartProblem").count(), 1, "{problems:#?}");
    back(&lab, &["d0", "d1"]);
    server.wait_for_news("NewArray", 1);
    assert_eq!(lab.show("data")["health"], "optimal");
    wait_for_no_problem(&lab);
    server.stop();
}

#[test]
fn if_all_spans_fail_their_reasons_are_those_of_the_array() {
    let lab = Lab::new("spans-damaged");
    nested(&lab);
    let damaged = ["d0", "d1", "d3", "d4"];
    let kept = damaged.map(|name| read_at(&lab.path(name), SUPERBLOCK, 4096));
    damaged.iter().for_each(|name| write_at(&lab.path(name), SUPERBLOCK, &[0; 4096]));
    lab.configure("");
    let server = lab.serve_configured();
    let reasons = ["2 spans do not start", "array data.0, array data.1: not enough members"];
    let offline = &server.ready["offline"][0];
    assert_eq!(offline["name"], "data");
    for words in reasons {
        assert!(offline["reason"].as_str().is_some_and(|text| text.contains(words)), "{words:?} is not in {offline}");
    }
    problem_of(&lab, "data", &reasons[1..]);
    for (name, superblock) in damaged.iter().zip(&kept) {
        write_at(&lab.path(name), SUPERBLOCK, superblock);
    }
    // The service may have started it already.
    lab.line("assemble d0 d1 d2 d3 d4 d5");
    // It may have started while superblocks were missing.
    lab.wait_for("data", |array| array["offline"].is_null());
    wait_for_no_problem(&lab);
    server.stop();
}

#[test]
fn two_arrays_of_one_name_have_their_problems_for_themselves() {
    let lab = Lab::new("one-name");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M a0 a1 a2").expect(0);
    lab.line("assemble data --forget").expect(0);
    lab.line("create data --level 1 --assume-clean --file-size 16M b0 b1").expect(0);
    lab.configure("");
    let server = lab.serve_configured();
    lab.line("assemble a0 a1 a2").expect(0);
    let list = lab.line("list --json").expect(0).json();
    let mut names = list["served"].as_array().expect("a list").iter().filter_map(|array| array["name"].as_str());
    let second = names.find(|name| name.starts_with("data-")).expect("another name").to_owned();
    lab.line("stop data").expect(0);
    lab.line("assemble b0 b1").expect(0);
    server.stop();
    away(&lab, &["a1", "a2"]);
    let mut server = lab.serve_configured();
    let words = [format!("array {second}: not enough members")];
    problem_of(&lab, &second, &[&words[0]]);
    // The start of the other array is not the end of this problem.
    lab.line("stop data").expect(0);
    lab.line("assemble b0 b1").expect(0);
    problem_of(&lab, &second, &[&words[0]]);
    back(&lab, &["a1", "a2"]);
    server.wait_for_news("NewArray", 1);
    wait_for_no_problem(&lab);
    server.stop();
}

#[test]
fn an_array_that_the_file_has_by_its_identity_is_not_started_for_the_reason_of_its_members() {
    let lab = Lab::new("by-identity");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let uuid = lab.line("show data --json").json()["array"]["uuid"].as_str().expect("an identity").to_owned();
    lab.line("assemble data --forget").expect(0);
    away(&lab, &["d0", "d1"]);
    lab.configure(&format!("[arrays.{uuid:?}]\nmembers = [\"@/d0\", \"@/d1\", \"@/d2\"]\n"));
    let server = lab.serve_configured();
    problem_of(&lab, &uuid, &["not enough members"]);
    let reason = server.ready["offline"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("not enough members"), "{reason}");
    back(&lab, &["d0", "d1"]);
    lab.line("assemble d0 d1 d2").expect(0);
    assert_eq!(lab.show("data")["health"], "optimal");
    wait_for_no_problem(&lab);
    server.stop();
}
