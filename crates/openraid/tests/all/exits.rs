//! How commands end: each bad line with its code, and a dry run as the command itself.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use crate::support::{noise, write_at, Lab};

const USAGE: i32 = 64;
const REFUSED: i32 = 65;
const ERROR: i32 = 74;

/// Each line ends with its code and says why.
#[track_caller]
fn end_so(lab: &Lab, table: &[(&str, i32)]) {
    for (line, code) in table {
        let ran = lab.line(line);
        assert_eq!(ran.code, *code, "{line}: {}\n{}", ran.text(), ran.err);
        assert!(!ran.err.is_empty() || !ran.out.is_empty(), "{line}: silent");
    }
}

#[test]
fn lines_that_make_no_sense_end_as_usage() {
    let lab = Lab::new("exit-usage");
    let lines = "|explode|create|create x|create x --level 7 a b c|create x --level 5 a|\
        create x --level 0 --layout left-symmetric a b|create x --level 1 --chunk 64K a b|create x --level 0 --bitmap internal a b|\
        create a/b --level 1 a b|create x --level 1 ram:8M ram:8M|assemble|show|fail x|\
        examine|examine nbd://|doctor|copy-out|set|set data rebuild.rate|serve --nbd nonsense|serve --memory 1K|\
        serve --journal a --journal b --journal c|serve --consistency-policy ppl|serve x --bogus|journal|journal create|\
        completions tcl";
    let table: Vec<(&str, i32)> = lines.split('|').map(|line| (line.trim(), USAGE)).collect();
    end_so(&lab, &table);
    assert_eq!(fs::read_dir(&lab.folder).expect("the folder").count(), 0, "a line has made something");
}

#[test]
fn a_command_that_does_not_fit_the_state_is_refused_and_a_failure_is_an_error() {
    let lab = Lab::new("exit-state");
    lab.drives(&["a", "b", "c", "full"], 8);
    lab.drives(&["empty"], 0);
    write_at(&lab.path("full"), 1024 + 56, &[0x53, 0xef]);
    fs::write(lab.path("small"), vec![0; 256 << 10]).expect("room");
    fs::write(lab.path("tiny"), "abc").expect("room");
    fs::create_dir(lab.path("texts")).expect("a folder");
    fs::write(lab.path("texts/note"), "abc").expect("room");
    end_so(
        &lab,
        &[
            ("serve", REFUSED),
            ("serve nobody", REFUSED),
            ("serve a b", REFUSED),
            ("assemble a b", REFUSED),
            ("assemble nobody --forget", REFUSED),
            ("copy-out a b", REFUSED),
            ("doctor a b", REFUSED),
            ("create x --level 5 --chunk 3K a b c", USAGE),
            ("create x --level 5 a missing missing", USAGE),
            ("create x --level 1 a nowhere", REFUSED),
            ("create x --level 1 a a", REFUSED),
            ("create x --level 1 a full", REFUSED),
            ("create x --level 1 a empty", REFUSED),
            ("create x --level 1 a small", REFUSED),
            ("create x --level 1 --size 100G a b", REFUSED),
            ("create x --level 1 --file-size 8M a new", REFUSED),
            ("create x --level 1 --file-size 8M nowhere/a nowhere/b", ERROR),
            ("create x --level 1 a nbd+unix:///x?socket=/nowhere/at/all", ERROR),
            ("journal create --size 16M a", REFUSED),
            ("examine a", 2),
            ("examine nowhere", REFUSED),
            ("examine a nowhere", REFUSED),
            ("examine tiny", 2),
            ("scan nowhere", REFUSED),
            ("scan texts", 0),
            ("scan tiny", 0),
            ("doctor nowhere", REFUSED),
            ("show nobody", REFUSED),
            ("check nobody", REFUSED),
            ("fail nobody a", REFUSED),
            ("stop nobody", REFUSED),
            ("stop --all", 4),
        ],
    );
    what_members_of_a_stopped_array_refuse(&lab);
    what_a_served_array_refuses(&lab);
}

fn what_members_of_a_stopped_array_refuse(lab: &Lab) {
    end_so(
        lab,
        &[
            ("create data --level 5 --chunk 64K --assume-clean a b c", 0),
            ("show data", 0),
            ("check data", 4),
            ("show data --wait 1", 4),
            ("create data --level 1 n1 n2 --file-size 8M", REFUSED),
            ("erase a", REFUSED),
            ("doctor a b", 1),
            ("copy-out a", 2),
            ("serve a", 2),
            ("assemble a --no-serve", 2),
            ("scan a", 2),
        ],
    );
}

fn what_a_served_array_refuses(lab: &Lab) {
    let input = File::open("/dev/zero").expect("zeroes").into();
    assert_eq!(lab.run_with(&["copy-in", "data"], input).code, ERROR, "it does not fit and has begun");
    lab.pipe(&["copy-in", "data"], &noise(1, 1 << 20)).expect(0);
    let server = lab.serve(&["data"]);
    end_so(
        lab,
        &[
            ("fail data nowhere", REFUSED),
            ("fail data slot:9", REFUSED),
            ("remove data a", REFUSED),
            ("replace data a", REFUSED),
            ("add data a", REFUSED),
            ("add data full", REFUSED),
            ("add data nowhere", REFUSED),
            ("spare remove data a", REFUSED),
            ("set data cache=wb", USAGE),
            ("set data write.cache=volatile --yes", REFUSED),
            ("explain data --request 1", REFUSED),
            ("journal attach a", 4),
            ("serve data", REFUSED),
            ("create y --level 1 a b --yes --overwrite", REFUSED),
            ("fail data a", 0),
            ("show data", 1),
            ("fail data b", REFUSED),
        ],
    );
    server.stop();
}

#[test]
fn an_array_that_was_asked_for_and_is_not_served_is_named_at_the_start_and_at_the_end() {
    let lab = Lab::new("exit-asked");
    lab.line("create aa --level 1 --assume-clean --file-size 8M a0 a1").expect(0);
    lab.line("create bb --level 1 --assume-clean --file-size 8M b0 b1").expect(0);
    let away = |from: &str, to: &str| fs::rename(lab.path(from), lab.path(to)).expect("it is there");
    away("b0", "b0.away");
    away("b1", "b1.away");
    for words in [&["aa", "bb"][..], &[]] {
        let server = lab.serve(words);
        let offline = server.ready["offline"].as_array().expect("a list").clone();
        assert_eq!((offline.len(), &offline[0]["name"]), (1, &"bb".into()), "{offline:?}");
        let reason = offline[0]["reason"].as_str().expect("a text");
        let path = lab.path("b0").display().to_string();
        assert!(reason.contains("none of its 2 members could be opened") && reason.contains(&path), "{reason}");
        lab.line("alarms").says(&["DeviceDisappeared", "bb: the array is not there", "openraid doctor bb"]);
        let listed = lab.line("list").expect(2).text();
        let line = listed.lines().find(|line| line.starts_with("bb ")).expect("a line");
        assert!(line.contains("OFFLINE; none of its 2 members could be opened"), "{line}");
        assert_eq!(listed.lines().filter(|line| line.starts_with("bb ")).count(), 1, "{listed}");
        lab.line("pause bb").refused(2, &["bb is OFFLINE: none of its 2 members", "openraid doctor bb"]);
        lab.line("show bb").expect(2).says(&["bb is OFFLINE: none of its 2 members", "openraid doctor bb"]);
        let shown = lab.line("show bb --json").expect(2).json();
        assert_eq!((&shown["served"], &shown["array"]["health"]), (&false.into(), &"offline".into()));
        lab.line("show aa").expect(0);
        server.signal("-TERM");
        assert_eq!(server.end().0, 2, "it was never there");
    }
    let server = lab.serve(&["aa"]);
    assert_eq!(server.ready["offline"], serde_json::json!([]));
    server.stop();
    away("b0.away", "b0");
    let server = lab.serve(&["aa", "bb"]);
    assert_eq!(server.ready["offline"], serde_json::json!([]), "a degraded one is served");
    server.stop();
}

#[test]
fn an_array_whose_members_are_overwritten_is_forgotten() {
    let lab = Lab::new("exit-ghost");
    lab.line("create old --level 5 --chunk 64K --assume-clean --file-size 8M a b c").expect(0);
    let listed = || lab.line("list --json").json()["remembered"].clone();
    let members = |nth: usize| listed()[nth]["members"].as_array().expect("a list").len();
    symlink(lab.path("a"), lab.path("link")).expect("a link");
    lab.drives(&["d"], 8);
    lab.line("create new --level 1 link d --yes --overwrite --assume-clean").expect(0);
    assert_eq!((listed()[0]["name"].clone(), members(0)), ("new".into(), 2));
    assert_eq!((listed()[1]["name"].clone(), members(1)), ("old".into(), 2), "two of its members are left");
    lab.line("create more --level 1 b c --yes --overwrite --assume-clean").expect(0);
    let names: Vec<String> =
        listed().as_array().expect("a list").iter().map(|entry| entry["name"].to_string()).collect();
    assert_eq!(names, ["\"more\"", "\"new\""]);
}

#[test]
fn a_dry_run_ends_as_the_command_would() {
    let lab = Lab::new("exit-dry");
    lab.drives(&["a", "b", "c", "full"], 8);
    lab.drives(&["empty"], 0);
    write_at(&lab.path("full"), 1024 + 56, &[0x53, 0xef]);
    fs::write(lab.path("small"), vec![0; 256 << 10]).expect("room");
    symlink(lab.path("a"), lab.path("link")).expect("a link");
    lab.line("create held --level 1 --file-size 8M h0 h1").expect(0);
    let server = lab.serve(&["held"]);
    for line in [
        "--level 5 a b a",
        "--level 5 a b link",
        "--level 5 a b nowhere",
        "--level 5 a b empty",
        "--level 5 a b small",
        "--level 5 a b full",
        "--level 5 a b h0",
        "--level 5 a b h0 --yes --overwrite",
        "--level 5 a b /dev/null",
        "--level 5 --size 100G a b c",
        "--level 5 --chunk 3K a b c",
        "--level 5 --file-size 8M new1 a new2",
        "--level 5 --file-size 8M new1 new1 new2",
        "--level 5 --file-size 64K new1 new2 new3",
        "--level 5 --file-size 8M nowhere/new1 new2 new3",
        "--level 5 --file-size 100 new1 new2 new3",
        "--level 1 --file-size 8M /proc/new1 /proc/new2",
        "--level 1 --file-size 8M /sys/new1 /sys/new2",
        "--level jbod --file-size 8M new1 a",
        "--level jbod h0",
        "--level 1 --file-size 8E new1 new2",
    ] {
        let before = lab.fingerprints(&["a", "b", "c", "full"]);
        let dry = lab.line(&format!("create x {line} --dry-run"));
        let wet = lab.line(&format!("create x {line}"));
        assert_eq!((dry.code, &dry.err), (wet.code, &wet.err), "{line}");
        assert_ne!(wet.code, 0, "{line}");
        assert_eq!(lab.fingerprints(&["a", "b", "c", "full"]), before, "{line}");
        assert!(!lab.path("new1").exists() && !lab.path("new2").exists(), "{line}");
    }
    lab.line("create held --level 1 a b --dry-run").refused(REFUSED, &["remembered already"]);
    for line in ["--level 5 a b c", "--level 5 --file-size 8M new1 new2 new3", "--level jbod --file-size 8M raw1"] {
        let dry = lab.line(&format!("create x {line} --dry-run --json")).expect(0).json();
        let wet = lab.line(&format!("create x {line} --json")).expect(0).json();
        assert_eq!(dry["size_bytes"], wet["size_bytes"], "{line}");
        lab.line("assemble x --forget").expect(0);
    }
    server.stop();
}
