//! Checks and repairs: their ends, their reports, and the results that are kept.

use crate::support;

use std::os::unix::fs::MetadataExt;

use crate::support::{noise, Lab, Server};
use serde_json::Value;

fn idle(array: &Value) -> bool {
    array["task"].is_null()
        && array["spans"].as_array().is_none_or(|spans| spans.iter().all(|span| span["task"].is_null()))
}

fn synced(array: &Value) -> bool {
    idle(array) && array["consistent_to_bytes"].is_null()
}

/// An array with known content that is in sync and served.
fn served(options: &str, members: &str) -> (Lab, Server, Vec<u8>) {
    let lab = Lab::new("scrub");
    lab.line(&format!("create data --chunk 64K --file-size 16M {options} {members}")).expect(0);
    let image = noise(3, 12 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    lab.wait_for("data", synced);
    (lab, server, image)
}

/// Where 1 MiB of data of a member of 16 MiB begins that stands in the midst of its data area.
const INSIDE: u64 = 6 << 20;

#[test]
fn a_check_that_ends_early_never_shows_the_result_of_the_one_before() {
    let (lab, server, _) = served("--level 5", "d0 d1 d2 d3");
    let checked = lab.line("check data --follow").expect(0);
    assert!(checked.text().contains("data: optimal, idle. Last check: no mismatches"), "{}", checked.text());
    assert_eq!(lab.show("data")["last_check"]["outcome"], "clean");
    lab.line("check data --stop").refused(65, &["data: no check or repair is running"]);
    // Stopped by an administrator.
    lab.line("set data scrub.rate=1M").expect(0);
    lab.line("check data").expect(0);
    lab.wait_for("data", |array| array["task"]["done_bytes"].as_u64() > Some(0));
    assert!(lab.show("data")["last_check"].is_null(), "one runs");
    let commands = ["a check runs", "`openraid show data --follow`", "`openraid check data --stop`"];
    lab.line("check data").refused(65, &commands);
    lab.line("check data --stop").expect(0);
    let stopped = lab.wait_for("data", idle);
    let ended = |array: &Value| (array["last_check"]["outcome"].clone(), array["last_check"]["reason"].clone());
    assert_eq!(ended(&stopped), ("aborted".into(), "administrator".into()));
    assert!(stopped["last_check_mismatches"].is_null());
    let text = lab.line("show data").expect(0).text();
    assert!(text.contains("aborted at") && text.contains("%: stopped by administrator"), "{text}");
    lab.line("repair data").expect(0);
    assert!(lab.line("check data --stop").expect(0).text().contains("repair of data stopped"));
    lab.wait_for("data", idle);
    // A member fails.
    lab.line("check data").expect(0);
    let follower = lab.command(&["check", "data", "--follow"]).output();
    assert_eq!(follower.expect("it runs").status.code(), Some(65), "another one runs");
    lab.line("fail data d1").expect(0);
    let failed = lab.wait_for("data", |array| array["health"] == "degraded" && idle(array));
    assert_eq!(ended(&failed), ("aborted".into(), "member-failed".into()));
    // The same for the one that waits for it, in its exit code.
    lab.line("remove data d1").expect(0);
    lab.line("add data --file-size 16M d9").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal" && idle(array));
    let follow =
        lab.command(&["check", "data", "--follow"]).stdout(std::process::Stdio::piped()).spawn().expect("runs");
    lab.wait_for("data", |array| array["task"]["kind"] == "check");
    lab.line("check data --stop").expect(0);
    let out = follow.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(5), "{text}");
    assert!(text.contains("Last check: aborted at"), "{text}");
    // The array is stopped, and then the server is killed, while one waits for the end of its check.
    lab.line("create other --level 1 --file-size 8M --assume-clean o0 o1").expect(0);
    lab.line("assemble o0 o1").expect(0);
    for way in ["stop", "kill"] {
        let follow =
            lab.command(&["check", "data", "--follow"]).stderr(std::process::Stdio::piped()).spawn().expect("runs");
        lab.wait_for("data", |array| array["task"]["kind"] == "check");
        if way == "stop" {
            lab.line("stop data").expect(0);
        } else {
            server.signal("-KILL");
        }
        let out = follow.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(5), "{way}: {text}");
        assert!(text.contains("data: the check has not come to its end here: "), "{text}");
        if way == "stop" {
            lab.line("assemble d0 d9 d2 d3").expect(0);
            lab.line("set data scrub.rate=1M").expect(0);
        }
    }
    server.kill();
}

#[test]
fn a_check_that_cannot_compare_says_it() {
    for (options, members) in [("--level 0", "d0 d1 d2"), ("--level linear", "d0 d1"), ("--level single", "d0")] {
        let lab = Lab::new("scrub");
        let chunk = if options.ends_with("0") { "--chunk 64K" } else { "" };
        lab.line(&format!("create data {chunk} --file-size 16M {options} {members}")).expect(0);
        let server = lab.serve(&["data"]);
        lab.line("check data --follow").refused(6, &["nothing compared", "no redundancy"]);
        server.stop();
    }
    let (lab, server, _) = served("--level 5", "d0 d1 d2");
    lab.line("check data --follow").expect(0);
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "degraded");
    lab.line("check data --follow").refused(6, &["nothing compared", "missing members"]);
    lab.line("repair data").refused(6, &["nothing compared"]);
    let array = lab.show("data");
    assert_eq!(array["last_check"]["outcome"], "not-comparable");
    assert_eq!(array["last_complete_check"]["outcome"], "clean", "the real result is kept");
    let text = lab.line("show data").expect(1).text();
    let before = text.lines().find(|line| line.trim_start().starts_with("before that")).expect("it is shown");
    assert!(text.contains("nothing compared") && before.ends_with(", no mismatches"), "{text}");
    server.stop();
    // Without one member a double parity still has one to compare with.
    let (lab, server, _) = served("--level 6", "d0 d1 d2 d3");
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "degraded");
    let checked = lab.line("check data --follow").expect(1);
    assert!(checked.text().contains("no mismatches"), "{}", checked.text());
    server.stop();
}

#[test]
fn a_degraded_span_is_left_out_of_the_check_of_its_array() {
    let lab = Lab::new("scrub");
    lab.line("create data --level 50 --spans 2 --chunk 64K --file-size 16M d0 d1 d2 d3 d4 d5").expect(0);
    let server = lab.serve(&["data"]);
    lab.wait_for("data", |array| idle(array) && array["survives"] == 1);
    lab.line("fail data d3").expect(0);
    lab.wait_for("data", |array| array["health"] == "degraded");
    let shown = lab.line("show data").expect(1).text();
    assert!(shown.contains("degraded: without slot 0 of span 1"), "{shown}");
    server.stop();
    let shown = lab.line("show data").expect(1).text();
    assert!(shown.contains("clean") && !shown.contains("dirty"), "{shown}");
    let server = lab.serve(&["data"]);
    let begun = lab.line("check data").expect(0);
    assert!(begun.text().contains("span 1 is left out"), "{}", begun.text());
    let state = lab.wait_for("data", idle);
    let outcome = |span: usize| state["spans"][span]["last_check"]["outcome"].clone();
    assert_eq!((outcome(0), outcome(1)), ("clean".into(), "not-comparable".into()));
    let checked = lab.line("check data --follow").expect(1);
    assert!(checked.text().contains("span 1: nothing compared") && checked.text().contains("span 0: no mismatches"));
    server.stop();
}

#[test]
fn mismatches_have_an_exit_code_are_reported_once_and_are_known_after_a_restart() {
    let (lab, server, image) = served("--level 5", "d0 d1 d2 d3");
    server.stop();
    support::write_at(&lab.path("d2"), INSIDE, &noise(9, 1 << 20));
    let server = lab.serve(&["data"]);
    let checked = lab.line("check data --follow").expect(3);
    assert!(checked.text().contains("Last check: 2048 mismatched sectors (1 MiB)"), "{}", checked.text());
    // Health is of the members; a state without the mismatches would read as if all were well.
    let shown = lab.line("show data").expect(3).text();
    let state = shown.lines().find(|line| line.trim_start().starts_with("state")).expect("a state");
    assert!(state.ends_with(" optimal, 2048 mismatched sectors at the last check"), "{shown}");
    let listed = lab.line("list").expect(3).text();
    assert!(listed.contains("optimal; 2048 mismatched sectors at the last check"), "{listed}");
    let array = lab.show("data");
    assert_eq!((&array["health"], &array["last_check_mismatches"]), (&"optimal".into(), &2048.into()));
    let repaired = lab.line("repair data --follow").expect(3);
    let words = "repaired 0, 2048 mismatches left (RAID 5 cannot attribute; `--trust-data` rewrites parity)";
    assert!(repaired.text().contains(words), "{}", repaired.text());
    let news = server.stop();
    let mismatches: Vec<&Value> = news.iter().filter(|line| line["news"]["event"] == "RowMismatch").collect();
    assert_eq!(mismatches.len(), 2, "one line for each of the two: {mismatches:?}");
    let begun = news.iter().filter(|line| line["news"]["event"] == "CheckStarted");
    let begun: Vec<&Value> = begun.map(|line| &line["news"]["text"]).collect();
    assert_eq!(begun, ["data: check begins", "data: repair begins"]);
    let text = mismatches[0]["news"]["text"].as_str().expect("words");
    assert!(text.contains("cannot tell which member is wrong, left unchanged"), "{text}");
    // Offline, and after a restart.
    for server in [None, Some(lab.serve(&["data"]))] {
        let text = lab.line("show data").expect(3).text();
        let line = text.lines().find(|line| line.trim_start().starts_with("last check")).expect("it is shown");
        assert!(line.contains("repair: repaired 0, 2048 mismatches left") && line.contains("20"), "{line}");
        drop(server);
    }
    let server = lab.serve(&["data"]);
    let repaired = lab.line("repair data --trust-data --follow").expect(0);
    assert!(repaired.text().contains("repaired 2048, 0 mismatches left"), "{}", repaired.text());
    assert!(lab.line("check data --follow").expect(0).text().contains("Last check: no mismatches"));
    // A server that is killed while it checks has seen no end.
    lab.line("set data scrub.rate=1M").expect(0);
    lab.line("check data").expect(0);
    server.kill();
    let text = lab.line("show data").expect(0).text();
    assert!(text.contains("aborted: the array was stopped, or its server ended"), "{text}");
    // A file that is damaged means that nothing is known.
    let kept = lab.path("state/openraid/registry.json.checks");
    let bytes = std::fs::read(&kept).expect("it is kept");
    std::fs::write(&kept, &bytes[..bytes.len() / 2]).expect("room");
    assert!(!lab.line("show data").expect(0).text().contains("last check"));
    // The data that was trusted is what stands there, wrong or not: parity fits it.
    let out = lab.line("copy-out data").expect(0).out;
    let differing = out[..image.len()].chunks(512).zip(image.chunks(512)).filter(|(a, b)| a != b).count();
    assert!(differing <= 2048, "{differing} sectors of the content differ");
}

#[test]
fn a_check_that_cannot_compare_keeps_earlier_findings() {
    let (lab, server, _) = served("--level 5", "d0 d1 d2");
    server.stop();
    support::write_at(&lab.path("d2"), INSIDE, &noise(9, 4096));
    let server = lab.serve(&["data"]);
    lab.line("check data --follow").expect(3);
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "degraded");
    let listed = lab.line("list").expect(3).text();
    assert!(listed.lines().any(|line| line.starts_with("data") && line.ends_with(" 3")), "{listed}");
    lab.line("check data").refused(6, &["nothing compared"]);
    let text = lab.line("show data").expect(3).text();
    assert!(text.contains("degraded") && text.contains("8 mismatched sectors at the last check"), "{text}");
    server.stop();
}

#[test]
fn mismatches_in_a_row_on_one_member_of_a_raid_10_are_one_line_and_a_repair_copies_the_first() {
    let (lab, server, _) = served("--level 10 --layout n2", "d0 d1 d2 d3");
    server.stop();
    support::write_at(&lab.path("d3"), INSIDE, &noise(9, 1 << 20));
    let server = lab.serve(&["data"]);
    lab.line("check data --follow").expect(3);
    let ranges = lab.show("data")["last_check"]["ranges"].clone();
    assert_eq!(ranges.as_array().map(Vec::len), Some(1), "{ranges}");
    // 16 chunks of 64 KiB, and one less of the other pair between them.
    let figures = ["sectors", "mismatches"].map(|key| ranges[0][key].as_u64());
    assert_eq!(figures, [Some(31 * 128), Some(2048)], "{ranges}");
    let text = lab.line("show data").expect(3).text();
    assert!(text.contains("(2048 of them differ)"), "{text}");
    lab.line("repair data --trust-data --follow").expect(0);
    let news = server.stop();
    let texts_of = |event: &str| -> Vec<String> {
        let told = news.iter().filter(|line| line["news"]["event"] == event);
        told.map(|line| line["news"]["text"].as_str().expect("words").to_owned()).collect()
    };
    assert_eq!(texts_of("RowMismatch").len(), 1, "{news:?}");
    let corrected = texts_of("RowCorrected");
    assert!(corrected.len() == 1 && corrected[0].contains("the first was copied to the others"), "{corrected:?}");
}

#[test]
fn a_repair_that_trusts_the_data_takes_the_first_of_two_copies() {
    let lab = Lab::new("scrub");
    lab.line("create data --level 1 --file-size 16M d0 d1").expect(0);
    let image = noise(3, 12 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let server = lab.serve(&["data"]);
    lab.wait_for("data", synced);
    server.stop();
    support::write_at(&lab.path("d1"), INSIDE, &noise(9, 4096));
    let server = lab.serve(&["data"]);
    let repaired = lab.line("repair data --follow").expect(3);
    assert!(repaired.text().contains("repaired 0, 8 mismatches left (the copies do not tell"), "{}", repaired.text());
    lab.line("repair data --trust-data --follow").expect(0);
    lab.line("check data --follow").expect(0);
    server.stop();
    assert!(
        lab.line("copy-out d1 --degraded").out.starts_with(&image) || lab.line("copy-out data").out.starts_with(&image)
    );
}

#[test]
fn before_the_first_sync_nothing_is_said_to_survive_a_loss_and_a_member_fails_on_purpose_only() {
    let lab = Lab::new("scrub");
    lab.drives(&["d0", "d1", "d2"], 32);
    for name in ["d0", "d1", "d2"] {
        support::write_at(&lab.path(name), 2 << 20, &noise(u64::from(name.as_bytes()[1]), 30 << 20));
    }
    lab.line("create data --level 5 --chunk 64K d0 d1 d2 --yes --overwrite").expect(0);
    lab.line("doctor data").expect(0).says(&["parity not in sync: a resync", "it starts optimal, parity not in sync"]);
    let server = lab.serve(&["data"]);
    lab.line("pause data").expect(0);
    let refused = lab.line("check data").refused(65, &["a resync runs", "`openraid show data --follow`"]);
    assert!(!refused.err.contains("--stop"), "a resync is not stopped: {}", refused.err);
    let array = lab.show("data");
    assert!(!array["consistent_to_bytes"].is_null(), "the sync is over too early for this test");
    assert_eq!((&array["survives"], &array["survives_later"]), (&0.into(), &1.into()));
    let text = lab.line("show data").expect(0).text();
    let line =
        |word: &str| text.lines().find(|line| line.trim_start().starts_with(word)).unwrap_or_default().to_owned();
    assert!(line("state").contains("optimal, parity not in sync"), "{text}");
    assert!(line("survives").contains("no further loss of a member for now"), "{text}");
    assert!(line("consistency").contains("parity not in sync from"), "{text}");
    assert!(lab.line("list").expect(0).text().contains("parity not in sync"));
    lab.line("fail data d1").refused(65, &["not in sync", "--yes"]);
    assert_eq!(lab.show("data")["health"], "optimal");
    lab.line("resume data").expect(0);
    lab.wait_for("data", synced);
    assert_eq!(lab.show("data")["survives"], 1);
    let text = lab.line("show data").expect(0).text();
    assert!(text.contains("the loss of any 1 member") && !text.contains("redundancy is in place"), "{text}");
    lab.line("fail data d1").expect(0);
    lab.wait_for("data", |array| array["health"] == "degraded");
    let text = lab.line("show data").expect(1).text();
    assert!(text.contains("no further loss of a member") && !text.contains("in place"), "{text}");
    server.stop();
}

#[test]
fn the_first_sync_of_sparse_members_leaves_them_sparse() {
    for (options, members) in [
        ("--level 5 --chunk 64K", "d0 d1 d2 d3"),
        ("--level 6 --chunk 64K", "d0 d1 d2 d3"),
        ("--level 1", "d0 d1"),
        ("--level 4 --chunk 64K", "d0 d1 d2"),
        ("--level 10 --chunk 64K", "d0 d1 d2 d3"),
        ("--level 10 --layout f2 --chunk 64K", "d0 d1 d2"),
        ("--level 50 --chunk 64K", "d0 d1 d2 d3 d4 d5"),
        ("--level 60 --chunk 64K", "d0 d1 d2 d3 d4 d5 d6 d7"),
        ("--level 5 --chunk 64K --spare d4", "d0 d1 d2 d3"),
    ] {
        let lab = Lab::new("scrub");
        lab.line(&format!("create data --file-size 64M {options} {members}")).expect(0);
        let used = || -> u64 {
            let blocks = |name: &str| std::fs::metadata(lab.path(name)).expect("a member").blocks() * 512;
            members.split_whitespace().map(blocks).sum()
        };
        let before = used();
        let server = lab.serve(&["data"]);
        lab.wait_for("data", synced);
        let image = noise(7, 4 << 20);
        server.stop();
        let after = used();
        assert!(after < before + (2 << 20), "{options}: {before} bytes, {after} after the first sync");
        lab.pipe(&["copy-in", "data"], &image).expect(0);
        let server = lab.serve(&["data"]);
        lab.line("check data --follow").expect(0);
        server.stop();
    }
}
