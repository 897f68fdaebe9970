//! Reports are true: about the right member, at the right time.

use crate::support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{is_root, Lab, PROGRAM, WRITE};
use serde_json::Value;

/// The texts of the news of this kind, in order.
fn texts_of(news: &[Value], event: &str) -> Vec<String> {
    let of_kind = news.iter().filter(|line| line["news"]["event"] == event);
    of_kind.map(|line| line["news"]["text"].as_str().expect("words").to_owned()).collect()
}

#[test]
fn a_new_array_survives_losses_after_its_initial_sync_only() {
    let lab = Lab::new("reports");
    lab.line("create a --level 5 --chunk 64K --file-size 8M a0 a1 a2")
        .expect(0)
        .says(&["survives  after the initial sync: the loss of any 1 member"]);
    lab.line("create b --level 5 --chunk 64K --file-size 8M --assume-clean b0 b1 b2")
        .expect(0)
        .says(&["survives  the loss of any 1 member"]);
    lab.line("create c --level 0 --chunk 64K --file-size 8M c0 c1").expect(0).says(&["survives  no further loss"]);
}

#[test]
fn news_of_a_failure_say_why_and_how_many_more_the_array_tolerates() {
    for (shape, order, tolerated) in [
        ("--level 6 --chunk 64K d0 d1 d2 d3 d4", &["d1", "d3"][..], &["one more failure", "no further failure"][..]),
        ("--level 1 d0 d1 d2 d3", &["d0", "d3"], &["2 more failures", "one more failure"]),
        ("--level 10 --chunk 64K d0 d1 d2 d3", &["d1", "d3"], &["no further failure", "no further failure"]),
    ] {
        let lab = Lab::new("reports");
        lab.line(&format!("create data --file-size 8M --assume-clean {shape}")).expect(0);
        let server = lab.serve(&["data"]);
        for (count, member) in order.iter().enumerate() {
            lab.line(&format!("fail data {member}")).expect(0);
            lab.wait_for("data", |array| {
                let members = array["members"].as_array().expect("a list");
                members.iter().filter(|member| member["state"] == "faulty").count() == count + 1
            });
        }
        let news = server.stop();
        let degraded: Vec<String> =
            tolerated.iter().map(|words| format!("data: degraded: {words} tolerated")).collect();
        assert_eq!(texts_of(&news, "DegradedArray"), degraded, "{shape}");
        let failed = texts_of(&news, "Fail");
        assert!(failed.iter().all(|text| text.ends_with(": failed (by administrator)")), "{failed:?}");
        let line = news.iter().find(|line| line["news"]["event"] == "DegradedArray").expect("it was told");
        assert!(
            line["news"]["slot"].is_u64() && line["news"]["member"].is_string(),
            "programs see through which: {line}"
        );
    }
}

#[test]
fn a_dirty_array_is_not_said_to_have_writes_under_way() {
    let lab = Lab::new("reports");
    lab.line("create data --level 5 --chunk 64K --file-size 8M --assume-clean d0 d1 d2").expect(0);
    let server = lab.serve(&["data"]);
    lab.line("fail data d1").expect(0);
    // No host has written. Either it is marked clean again, or it is not yet.
    let shown = lab.line("show data").expect(1).text();
    let line = shown.lines().find_map(|line| line.trim_start().strip_prefix("consistency")).expect("a line").trim();
    assert!(["clean", "dirty (not marked clean yet)"].contains(&line), "{shown}");
    server.stop();
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

#[test]
fn superblocks_have_the_time_at_which_they_are_written() {
    let lab = Lab::new("reports");
    lab.line("create data --level 1 --file-size 8M --assume-clean d0 d1").expect(0);
    // A time that is made of parts rounded one by one is a second off in about half of all cases.
    for round in 0..12 {
        let server = lab.serve(&["data"]);
        // After this write a stop must write superblocks.
        support::ask(&lab, &server, &[(WRITE, 0, &[7; 512])]);
        let before = now();
        server.stop();
        let after = now();
        let member = lab.line("examine d0 --json").expect(0).json()["members"][0]["superblock"].clone();
        let updated = member["updated"].as_u64().expect("a time");
        assert!((before..=after).contains(&updated), "round {round}: {updated} is not within {before} to {after}");
    }
}

#[test]
fn a_file_size_that_is_too_small_is_answered_with_bytes() {
    let lab = Lab::new("reports");
    for (size, has) in [("100", "less than 512 bytes"), ("64K", "64 KiB (65536 bytes)")] {
        let said = lab.line(&format!("create x --level 5 --file-size {size} d0 d1 d2"));
        let said = said.refused(65, &[&format!("it has {has}"), "--file-size ", "need at least "]);
        let exact = said.err.split("need at least ").nth(1).and_then(|rest| rest.split(['(', ' ']).nth(3));
        let least: u64 = exact.expect("a number").parse().expect("bytes");
        // It is the least: with one byte less it is refused, with it the array is made.
        lab.line(&format!("create x --level 5 --file-size {} d0 d1 d2 --dry-run", least - 1)).expect(65);
        lab.line(&format!("create x --level 5 --file-size {least} d0 d1 d2 --dry-run")).expect(0);
    }
}

#[test]
fn an_account_that_may_not_read_a_member_needs_no_more_than_that() {
    let lab = Lab::new("reports");
    lab.drives(&["d0"], 8);
    fs::set_permissions(lab.path("d0"), Permissions::from_mode(0o000)).expect("mode");
    fs::set_permissions(&lab.folder, Permissions::from_mode(0o755)).expect("mode");
    let program = lab.path("openraid");
    fs::copy(PROGRAM, &program).expect("copied");
    let said = |line: &str| {
        let mut command = lab.command_of(&program, &line.split(' ').collect::<Vec<_>>());
        if is_root() {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let looked = said("examine d0");
    assert!(looked.contains("permission denied; use an account that may read it"), "{looked}");
    let made = said("create x --level 1 d0 missing");
    assert!(made.contains("use an account that may read and write it"), "{made}");
}
