//! `openraid explain`: the story of a request is what happened to it, and what limits an array is named.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::web::Web;
use crate::support::{ask, write_some, Lab, Server, FLUSH, READ, WRITE};
use serde_json::Value;

/// Sectors of 4 KiB.
const BLOCK: u64 = 8;

/// A RAID 5 over four files, chunk 64 KiB, left-symmetric: P of stripe n is in slot 3 - n % 4, and columns follow it.
fn served(lab: &Lab, options: &[&str]) -> (Server, u64) {
    let made = "create data --level 5 --chunk 64K --file-size 16M --assume-clean --bitmap none d0 d1 d2 d3";
    lab.line(made).expect(0);
    let examined = lab.line("examine d0 --json").expect(0).json();
    let start = examined["members"][0]["superblock"]["data_offset_sectors"].as_u64().expect("where data begins");
    (lab.serve(&[&["data"], options].concat()), start)
}

fn story(lab: &Lab, which: &str) -> Value {
    let answer = lab.line(&format!("explain data --json --request {which}")).expect(0).json();
    assert_eq!((answer["left_out"].as_u64(), answer["lost_steps"].as_u64()), (Some(0), Some(0)));
    answer["stories"][0].clone()
}

/// What stands in a story, without times: word, reason, slot, first sector from where data begins, sectors.
fn seen(story: &Value, start: u64) -> Vec<String> {
    let line = |step: &Value| {
        let mut line = step["step"].as_str().expect("a word").to_owned();
        if let Some(reason) = step["reason"].as_str() {
            line.push_str(&format!(" {reason}"));
        }
        if let (Some(slot), Some(sector)) = (step["slot"].as_u64(), step["sector"].as_u64()) {
            line.push_str(&format!(" slot {slot} sector {} of {}", sector - start, step["sectors"]));
        }
        line
    };
    story["steps"].as_array().expect("steps").iter().map(line).collect()
}

#[test]
fn a_write_to_a_part_of_a_stripe_tells_members_sectors_and_reasons() {
    let lab = Lab::new("explain");
    let (server, start) = served(&lab, &[]);
    lab.line("explain data --request last").refused(65, &["steps of requests are not recorded", "--record on"]);
    lab.line("explain data --record on").expect(0);
    lab.line("explain data --request last").refused(65, &["no request has ended"]);
    // Stripe 1 begins at 192 KiB; column 2 of it 128 KiB later, in the slot of P (2) plus 1 plus 2, modulo 4.
    ask(&lab, &server, &[(WRITE, (192 + 128 + 4) << 10, &[7; 4096])]);
    let story = story(&lab, "last");
    assert_eq!((&story["kind"], &story["status"], &story["whole"]), (&"write".into(), &"ok".into(), &true.into()));
    assert_eq!((story["offset_bytes"].as_u64(), story["len_bytes"].as_u64()), (Some(324 << 10), Some(4096)));
    // One of three columns is written. Both ways take two reads, so the parity is computed from columns 0 and 1.
    let row = 128 + BLOCK;
    let expected = vec![
        "arrived".to_owned(),
        "received".into(),
        "operation".into(),
        "plan ReconstructEqual".into(),
        format!("member-read slot 0 sector {row} of 8"),
        format!("member-read slot 3 sector {row} of 8"),
        "parity".into(),
        "wait WaitedForActiveMark".into(),
        format!("member-write slot 1 sector {row} of 8"),
        format!("member-write slot 2 sector {row} of 8"),
        "done".into(),
        "replied".into(),
    ];
    assert_eq!(seen(&story, start), expected, "{story:#}");
    let text = |nth: usize| story["steps"][nth]["text"].as_str().expect("words").to_owned();
    assert_eq!(text(2), "write rows 8 to 15 of stripe 1, column 2");
    assert!(text(3).ends_with("(the other way would have read 2); new parity for slot 2"), "{}", text(3));
    assert!(text(9).starts_with("write parity: 4 KiB of slot 2 ("), "{}", text(9));
    // Every step has its time, and what was asked of members has an end within the story.
    let took = story["took_ns"].as_u64().expect("it ended");
    let mut last = 0;
    for step in story["steps"].as_array().expect("steps") {
        let at = step["at_ns"].as_u64().expect("a time");
        let end = at + step["queued_ns"].as_u64().unwrap_or(0) + step["took_ns"].as_u64().unwrap_or(0);
        assert!(at >= last && end <= took, "{step}");
        assert_eq!(
            step["took_ns"].is_u64(),
            step["slot"].is_u64() || step["step"] == "parity" || step["step"] == "wait"
        );
        last = at;
    }
    // The member's commands are in the totals, too.
    let totals = lab.line("explain data --json").expect(0).json();
    assert!(totals["reasons"].as_array().is_some_and(|all| all.iter().any(|one| one["reason"] == "ReconstructEqual")));
    server.stop();
}

#[test]
fn whole_stripes_read_nothing_and_reads_of_a_lost_member_come_from_the_others() {
    let lab = Lab::new("explain-read");
    let (server, start) = served(&lab, &[]);
    lab.line("explain data --record on").expect(0);
    ask(&lab, &server, &[(WRITE, 0, &[3; 192 << 10])]);
    let steps = seen(&story(&lab, "last"), start);
    let plan = steps.iter().position(|line| line == "plan FullStripe").expect("a whole stripe");
    assert_eq!(steps[plan + 1], "parity");
    assert!(steps.iter().all(|line| !line.starts_with("member-read")), "{steps:?}");
    assert_eq!(steps.iter().filter(|line| line.starts_with("member-write")).count(), 4, "{steps:?}");
    ask(&lab, &server, &[(READ, 4096, &[0; 4096])]);
    let rules = [
        "arrived".to_owned(),
        "operation".into(),
        "reason ReadDirect".into(),
        "member-read slot 0 sector 8 of 8".into(),
        "done".into(),
        "sent".into(),
        "replied".into(),
    ];
    assert_eq!(seen(&story(&lab, "last"), start), rules);
    lab.line("fail data d0").expect(0);
    ask(&lab, &server, &[(READ, 4096, &[0; 4096])]);
    let steps = seen(&story(&lab, "last"), start);
    let plan = steps.iter().position(|line| line == "plan ReadRecovered").expect("it is recovered");
    let reads: Vec<_> = (1..4).map(|slot| format!("member-read slot {slot} sector 8 of 8")).collect();
    assert_eq!(steps[plan + 1..plan + 4], reads);
    assert_eq!(steps[plan + 4], "recover");
    server.stop();
}

#[test]
fn a_cached_write_is_acknowledged_first_and_its_story_continues_with_the_destage() {
    let lab = Lab::new("explain-cache");
    let (server, start) = served(&lab, &["--cache", "8M"]);
    lab.line("set data write.cache=volatile --yes").expect(0);
    lab.line("explain data --record on").expect(0);
    ask(&lab, &server, &[(WRITE, 0, &[7; 4096])]);
    let write = story(&lab, "last");
    assert_eq!(seen(&write, start), ["arrived", "received", "cached", "replied"]);
    let number = write["request"].to_string();
    ask(&lab, &server, &[(FLUSH, 0, &[])]);
    let written = story(&lab, &number);
    let later = &written["later"][0];
    assert_eq!((&later["kind"], &later["unit"]), (&"destage".into(), &0.into()));
    let steps = seen(later, start);
    assert_eq!(steps[0], "operation DestageUrgent", "{steps:?}");
    assert!(steps.contains(&"member-write slot 0 sector 0 of 8".to_owned()), "{steps:?}");
    assert!(steps.contains(&"member-write slot 3 sector 0 of 8".to_owned()), "parity too: {steps:?}");
    let flush = seen(&story(&lab, "last"), start);
    assert!(flush.contains(&"member-flush".to_owned()), "{flush:?}");
    server.stop();
}

/// The time of the one step of a story that begins with these words. It must have these further words.
#[track_caller]
fn time_of(story: &Value, seen_as: &str, words: &str) -> u64 {
    let steps = story["steps"].as_array().expect("steps");
    let steps_seen: Vec<&Value> =
        seen(story, 0).iter().zip(steps).filter(|(line, _)| *line == seen_as).map(|pair| pair.1).collect();
    assert_eq!(steps_seen.len(), 1, "{seen_as}: {story:#}");
    assert_eq!(steps_seen[0]["text"], words);
    steps_seen[0]["took_ns"].as_u64().unwrap_or_else(|| panic!("{seen_as} has no time: {story:#}"))
}

#[test]
fn a_story_has_the_record_in_the_partial_parity_log_with_its_time() {
    let lab = Lab::new("explain-ppl");
    lab.line("create data --level 5 --consistency-policy ppl --assume-clean --file-size 16M d0 d1 d2 d3").expect(0);
    let server = lab.serve(&["data"]);
    lab.line("explain data --record on").expect(0);
    let write = |offset| {
        ask(&lab, &server, &[(WRITE, offset, &[7; 4096])]);
        let story = story(&lab, "last");
        assert!(
            time_of(&story, "logged PartialParityLogged", "recorded in the partial parity log first") > 0,
            "{story:#}"
        );
        story
    };
    write(0);
    // A log that the machine gave time to come to rest is free at once.
    let words = "waited until the partial parity log could be overwritten";
    let waited = (1..100).any(|row| time_of(&write(row * 4096), "wait WaitedForPartialParityLog", words) > 0);
    assert!(waited, "99 writes in a row");
    server.stop();
}

#[test]
fn the_first_write_with_a_journal_tells_how_long_it_waited_for_it() {
    let lab = Lab::new("explain-journal");
    lab.line("journal create --size 8M j0").expect(0);
    let (server, _) = served(&lab, &["--journal", "j0", "--consistency-policy", "controller-journal"]);
    lab.line("explain data --record on").expect(0);
    ask(&lab, &server, &[(WRITE, 0, &[7; 4096])]);
    let words = "waited until the journal may acknowledge writes of the array";
    assert!(time_of(&story(&lab, "last"), "wait WaitedForJournalStart", words) > 0);
    server.stop();
}

#[test]
fn stories_are_followed_as_they_end_and_nothing_is_recorded_without_a_follower() {
    let lab = Lab::new("explain-follow");
    let (server, _) = served(&lab, &[]);
    // A suite in the background of a script ignores SIGINT, and its children would.
    let follow = lab.command(&["explain", "data", "--follow", "--json"]);
    let mut resetting = lab.command_of(Path::new("env"), &["--default-signal=INT"]);
    let mut follower = resetting
        .arg(follow.get_program())
        .args(follow.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Steps are recorded from the first request of the follower on.
    let kept = |expected: bool| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while (lab.line("explain data --slowest 1").code == 0) != expected {
            assert!(std::time::Instant::now() < until, "steps are kept: {}", !expected);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    kept(true);
    std::thread::sleep(std::time::Duration::from_millis(500));
    ask(&lab, &server, &[(WRITE, 0, &[7; 4096])]);
    let mut line = String::new();
    BufReader::new(follower.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let answer: Value = serde_json::from_str(&line).expect("JSON on each line");
    assert_eq!(answer["schema"], "openraid/explain-stories/2");
    assert_eq!((&answer["stories"][0]["kind"], &answer["stories"][0]["status"]), (&"write".into(), &"ok".into()));
    let ended = Command::new("kill").args(["-INT", &follower.id().to_string()]).status().expect("kill");
    assert!(ended.success());
    follower.wait().expect("it ends");
    kept(false);
    server.stop();
}

#[test]
fn explain_names_the_limit_of_an_array_with_its_figures() {
    let lab = Lab::new("explain-limit");
    let (server, _) = served(&lab, &[]);
    let limit = || lab.line("explain data --json").expect(0).json()["limit"].clone();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut found = limit();
    while found["part"] == "unknown" {
        assert!(std::time::Instant::now() < until, "{found:#}");
        found = limit();
    }
    let parts: Vec<_> = found["parts"].as_array().expect("parts").iter().map(|part| part["part"].clone()).collect();
    assert_eq!(parts, ["member", "member", "member", "member", "processor"]);
    ask(&lab, &server, &[(WRITE, 0, &[7; 4096])]);
    let found = limit();
    assert_eq!(found["requests"].as_u64(), Some(1), "{found:#}");
    assert_eq!(found["bytes"].as_u64(), Some(4096), "{found:#}");
    assert!(found["text"].as_str().is_some_and(|text| text.starts_with("what limits data now: ")), "{found:#}");
    server.stop();
}

#[test]
fn an_array_explains_itself_as_on_the_command_line_and_tells_the_story_of_a_slow_request() {
    let lab = Lab::new("explain-http");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    let stories = || web.get("/api/v1/arrays/data/stories?slowest=3").expect(200).json();
    assert_eq!(stories()["stories"], Value::Array(Vec::new()));
    write_some(&lab, &server);
    let found = stories();
    let first = &found["stories"][0];
    let same = lab.line("explain data --slowest 3 --json").expect(0).json();
    assert_eq!(found["stories"], same["stories"]);
    assert!(first["steps"].as_array().is_some_and(|steps| steps.len() > 2), "{found:#}");
    let one = web.get(&format!("/api/v1/arrays/data/stories?request={}", first["request"])).expect(200).json();
    assert_eq!(one["stories"][0]["steps"], first["steps"]);
    web.get("/api/v1/arrays/data/stories?slowest=0").refused(400, &["use 1 to 20"]);
    web.get("/api/v1/arrays/data/stories?request=1&slowest=1").refused(400, &["not both"]);
    let explained = web.get("/api/v1/arrays/data/explain").expect(200).json();
    let printed = lab.line("explain data --json").expect(0).json();
    for key in ["array", "host", "reasons", "write_amplification", "member_writes_per_host_request"] {
        assert_eq!(explained[key], printed[key], "{key}");
    }
    assert!(explained["limit"]["text"].is_string());
    server.stop();
}
