//! Arrays whose writes a journal promises: killed in the middle, with a device lost, with the wrong journal or none.

use crate::support;

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::journalled::{has_tools, holds_everything, io, journal, killed, made, restarted, wait_for_devices};
use crate::support::{read_at, write_at, Lab};
use serde_json::Value;

/// One write of 16 KiB in each 64 KiB, so that no stripe fills and dirty data stay in the journal.
const STRIDED: [&str; 2] = ["--rw=write:48k", "--bs=16k"];

fn fio() -> bool {
    Command::new("fio").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Write (or, afterwards, only verify) this many MiB in strides, each block with its own checksum.
#[track_caller]
fn strided(lab: &Lab, mib: u64, verify: bool) {
    let uri = format!("--uri=nbd+unix:///data?socket={}", lab.path("nbd.sock").display());
    let size = format!("--size={}M", mib * 4);
    let what = if verify { "--verify_only" } else { "--do_verify=0" };
    let ran = Command::new("fio")
        .args(["--name=strided", "--ioengine=nbd", &uri, "--iodepth=32", "--verify=crc32c", &size, what])
        .args(STRIDED)
        .args(["--randseed=7", "--verify_state_save=0", "--verify_fatal=1"])
        .current_dir(&lab.folder)
        .output()
        .expect("fio runs");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && !said.contains("verify:"), "{said}");
}

#[test]
fn a_killed_server_is_back_soon_with_every_acknowledged_byte() {
    if !fio() {
        return support::missing("fio is not installed (package fio)");
    }
    let lab = made("journal-kill", 120, "j0", "256M");
    let options = ["--journal", "j0", "--cache", "160M"];
    let server = restarted(&lab, &options);
    let state = lab.show("data");
    assert_eq!(state["consistency_policy"], "controller-journal");
    assert_eq!(state["journal"]["protected"], true, "{state:#}");
    strided(&lab, 64, false);
    let before = journal(&lab);
    assert_eq!(before["counters"]["data_bytes"], 64 << 20, "{before:#}");
    server.kill();
    let begin = Instant::now();
    let server = restarted(&lab, &options);
    let took = begin.elapsed();
    let after = journal(&lab);
    println!(
        "service back after {} ms with {} MiB loaded from the journal ({} entries)",
        took.as_millis(),
        after["counters"]["replayed_bytes"].as_u64().unwrap_or(0) >> 20,
        after["entries"]
    );
    assert!(after["counters"]["replayed_bytes"].as_u64() > Some(32 << 20), "{after:#}");
    strided(&lab, 64, true);
    server.stop();
    // In good order nothing is left in the journal, and the array needs it no more.
    let shown = lab.line("journal show j0 --json").expect(0).json();
    assert_eq!(shown["journal"]["entries"], 0, "{shown:#}");
    assert_eq!(shown["journal"]["arrays"], Value::Array(Vec::new()), "{shown:#}");
    let server = restarted(&lab, &[]);
    strided(&lab, 64, true);
    server.stop();
}

#[test]
fn without_its_journal_an_array_does_not_start_unless_its_promises_are_given_up() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-without", 16, "j0", "16M");
    killed(&lab, &["j0"]);
    let examined = lab.line("examine d0").expect(0);
    assert!(examined.text().contains("starts with that journal only"), "{}", examined.text());
    lab.line("serve --nbd 127.0.0.1:0 data").refused(65, &["a journal holds acknowledged writes", "--journal"]);
    let tried = lab.line("doctor data").expect(2).text();
    for word in [
        "all members are there",
        "not started: array data: a journal holds acknowledged writes",
        "--journal",
        "--journal-lost",
    ] {
        assert!(tried.contains(word), "{word}: {tried}");
    }
    assert!(!tried.contains("it starts with all members"), "{tried}");
    let tried = lab.line("doctor data --json").expect(2).json();
    assert_eq!(tried["not_started"].as_array().map(Vec::len), Some(1), "{tried:#}");
    assert_eq!((&tried["sets"][0]["needs_journal"], &tried["tried"]), (&true.into(), &Value::Array(Vec::new())));
    lab.line("journal create --size 16M other").expect(0);
    lab.line("serve --nbd 127.0.0.1:0 data --journal other").refused(65, &["it is not the attached one"]);
    // A journal in use cannot become a member, and a member cannot become a journal.
    lab.line("create more --level 1 --assume-clean j0 other").refused(65, &["openraid journal", "--overwrite"]);
    lab.line("journal create j0").refused(65, &["openraid journal", "--overwrite"]);
    lab.line("journal create d0").refused(65, &["data", "--overwrite"]);
    let examined = lab.line("examine j0 --json").expect(0).json();
    assert_eq!(examined["members"][0]["journal"]["arrays"][0]["state"], "live", "{examined:#}");
    assert!(examined["members"][0]["journal"]["arrays"][0]["data_bytes"].as_u64() > Some(0), "{examined:#}");
    // With it, everything is there.
    let server = restarted(&lab, &["--journal", "j0"]);
    holds_everything(&lab);
    server.stop();
    // Without it, by force, everything that reached the members.
    killed(&lab, &["j0"]);
    let server = restarted(&lab, &["--journal-lost"]);
    let state = lab.show("data");
    assert!(state["forced"].as_str().is_some_and(|text| text.contains("lost journal")), "{state:#}");
    assert!(io(&lab, &["write -P 9 0 64k", "read -P 9 0 64k"]));
    server.stop();
}

#[test]
fn another_journal_that_knows_the_array_from_earlier_is_refused() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-other", 16, "j0", "16M");
    lab.line("journal create --size 16M j1").expect(0);
    killed(&lab, &["j0"]);
    // The data in the lost journal is given up, and the array continues with the other journal.
    let server = restarted(&lab, &["--journal", "j1", "--journal-lost"]);
    lab.wait_for("data", |array| array["task"].is_null() && array["journal"]["protected"] == true);
    assert!(io(&lab, &["write -P 8 0 64k", "write -P 9 1000k 8k"]));
    server.kill();
    let journal = lab.line("examine j1 --json").expect(0).json()["members"][0]["journal"]["uuid"].clone();
    let journal = journal.as_str().expect("a journal has a name").to_owned();
    assert!(lab.line("examine d0").expect(0).text().contains(&format!("journal {journal} holds writes")));
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0").refused(65, &["it is not the attached one", &journal]);
    let server = restarted(&lab, &["--journal", "j1"]);
    assert!(io(&lab, &["read -P 8 0 64k", "read -P 9 1000k 8k"]));
    server.stop();
}

#[test]
fn the_entries_of_an_array_can_be_discarded_by_name() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-discard", 16, "j0", "16M");
    killed(&lab, &["j0"]);
    lab.line("journal discard data --on j0").refused(65, &["sectors of host data", "--lost"]);
    lab.line("journal discard nobody --on j0 --lost").refused(65, &["no array named"]);
    // The figures of the words are fields, and what was only said does not end as if it were done.
    let words = lab.line("journal discard data --on j0 --json").refused(65, &["openraid journal discard: "]);
    let (only, err) = (words.json(), &words.err);
    assert_eq!((&only["schema"], &only["given_up"]), (&"openraid/journal-discard/1".into(), &false.into()));
    let figure = |key: &str| only[key].as_u64().unwrap_or_else(|| panic!("{key}: {only:#}"));
    let said = format!("{} entries with {} sectors of host data (", figure("entries"), figure("data_sectors"));
    assert!(err.contains(&said) && figure("entries") > 0, "{said}: {err}");
    assert!(err.contains(&format!("and {} writes to members", figure("member_writes"))), "{err}");
    assert_eq!(figure("data_bytes"), figure("data_sectors") * 512);
    // The ranges are in order, apart from each other, and within the written ranges.
    let written: [(u64, u64); 2] = [(0, 1 << 20), (5 << 20, (5 << 20) + (12 << 10))];
    let ranges = only["ranges"].as_array().expect("a list");
    let bounds = |range: &Value| {
        let (from, bytes) =
            (range["offset_bytes"].as_u64().expect("a place"), range["bytes"].as_u64().expect("a length"));
        (from, from + bytes)
    };
    let bounds: Vec<_> = ranges.iter().map(bounds).collect();
    assert!(
        bounds.iter().all(|(from, to)| from < to) && bounds.windows(2).all(|pair| pair[0].1 < pair[1].0),
        "{bounds:?}"
    );
    assert!(bounds.iter().all(|(from, to)| written.iter().any(|(a, b)| a <= from && to <= b)), "{bounds:?}");
    let (from, to) = bounds[0];
    assert!(err.contains(&format!("; bytes {from} to {to}")), "{err}");
    let done = lab.line("journal discard data --on j0 --lost --json").expect(0).json();
    assert!(done["done"].as_str().is_some_and(|text| text.contains("discarded: ")), "{done:#}");
    assert_eq!((&done["given_up"], &done["entries"]), (&true.into(), &only["entries"]));
    let server = restarted(&lab, &["--journal", "j0"]);
    assert!(lab.show("data")["forced"].is_string());
    lab.wait_for("data", |array| array["task"].is_null() && array["journal"]["protected"] == true);
    lab.line("journal discard data").refused(65, &["is running"]);
    server.stop();
    // The same by a running server that has not started the array.
    killed(&lab, &["j0"]);
    let said = lab.line("journal discard data --on j0").expect(65).err;
    let (from, to) = (said.find("holds ").expect("a figure") + 6, said.find(" for data").expect("its name"));
    let lost = said[from..to].to_owned();
    assert!(lost.contains(" sectors of host data ("), "{lost}");
    lab.line("create other --level 1 --assume-clean --file-size 16M e0 e1").expect(0);
    let server = lab.serve(&["other", "--journal", "j0"]);
    // The same figures as if no server uses the journal.
    let only = lab.line("journal discard data --json").refused(65, &[&format!("{lost}, which wait"), "--lost"]).json();
    assert!(
        lost.starts_with(&format!("{} entries with {} sectors", only["entries"], only["data_sectors"])),
        "{only:#}"
    );
    assert_eq!((&only["given_up"], &only["done"]), (&false.into(), &Value::Null));
    let done = lab.line("journal discard data --lost").expect(0);
    assert!(done.text().contains(&lost), "{}", done.text());
    lab.line("assemble data").expect(0);
    lab.wait_for("data", |array| array["task"].is_null());
    server.stop();
}

#[test]
fn either_of_two_devices_is_enough_and_the_missing_one_is_brought_up_to_date() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-mirror", 16, "j0 j1", "16M");
    killed(&lab, &["j0", "j1"]);
    std::fs::rename(lab.path("j1"), lab.path("away")).expect("moved");
    // The device by itself may be stale, so an option must confirm that it is not.
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0").refused(65, &["--journal-alone", "the other one is missing"]);
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0 --journal j1").refused(65, &["j1"]);
    let server = restarted(&lab, &["--journal", "j0", "--journal-alone"]);
    holds_everything(&lab);
    assert!(io(&lab, &["write -P 3 5M 12k", "write -P 7 8M 4k"]));
    server.kill();
    // After that the device is known to have everything, and needs no option.
    let server = restarted(&lab, &["--journal", "j0"]);
    holds_everything(&lab);
    server.kill();
    std::fs::rename(lab.path("away"), lab.path("j1")).expect("moved");
    let server = restarted(&lab, &["--journal", "j0", "--journal", "j1"]);
    holds_everything(&lab);
    assert!(io(&lab, &["read -P 7 8M 4k", "write -P 8 9M 4k"]));
    assert_eq!(journal(&lab)["devices"].as_array().map(Vec::len), Some(2));
    server.kill();
    // Now the other one has everything too.
    std::fs::remove_file(lab.path("j0")).expect("gone");
    // If the registry and one device are lost there is a remedy, and the message must name it.
    for (line, remedy) in
        [("journal adopt j1 --yes", "name both"), ("journal discard data --on j1", "name both with --on")]
    {
        let refused = lab.line(line).refused(65, &["the other one is missing", remedy, "--alone"]);
        assert!(!refused.err.contains("--journal"), "an option that the verb does not have: {}", refused.err);
    }
    lab.line("journal adopt j1 --alone").refused_aloud(65, &["already", "--yes"]);
    lab.line("journal discard data --on j1 --alone").refused(65, &["sectors of host data", "--lost"]);
    lab.line("journal adopt j1 --alone --yes").expect(0);
    let server = restarted(&lab, &["--journal", "j1", "--journal-alone"]);
    holds_everything(&lab);
    assert!(io(&lab, &["read -P 7 8M 4k", "read -P 8 9M 4k"]));
    server.stop();
}

/// Each of two devices is used without the other one. The device that was used first lacks the writes that were
/// acknowledged later, and nothing on it shows this.
#[test]
fn if_one_device_was_used_alone_the_other_one_is_refused_as_older_and_joins_again() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-fork", 16, "j0 j1", "16M");
    killed(&lab, &["j0", "j1"]);
    for _ in 0..3 {
        let server = restarted(&lab, &["--journal", "j1", "--journal-alone"]);
        assert!(io(&lab, &["write -P 3 8M 4k"]));
        server.kill();
    }
    // The members know of entries that only the other device has: no word takes the older log over their data.
    let older = ["j0", "this log ends at entry", "members have seen entry", "--journal-lost"];
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0 --journal-alone").refused(65, &older);
    // With both, the one that was used alone is the journal, and the older one becomes its copy.
    let server = restarted(&lab, &["--journal", "j0", "--journal", "j1"]);
    assert!(io(&lab, &["read -P 3 8M 4k"]));
    wait_for_devices(&lab, true);
    assert!(io(&lab, &["write -P 4 8M 4k"]));
    server.kill();
    std::fs::remove_file(lab.path("j1")).expect("gone");
    let server = restarted(&lab, &["--journal", "j0", "--journal-alone"]);
    assert!(io(&lab, &["read -P 4 8M 4k"]));
    server.stop();
}

#[test]
fn a_device_that_was_used_alone_and_joined_again_carries_the_journal_after_the_other_one_is_lost() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-joined", 16, "j0 j1", "16M");
    killed(&lab, &["j0", "j1"]);
    // The second device gets many more entries than the first one.
    let server = restarted(&lab, &["--journal", "j1", "--journal-alone"]);
    for number in 0..60 {
        assert!(io(&lab, &[&format!("write -P 3 {} 4k", (8 << 20) + number * 4096)]));
    }
    server.kill();
    let server = restarted(&lab, &["--journal", "j1"]);
    lab.line("journal attach j0 --yes --overwrite").expect(0);
    wait_for_devices(&lab, true);
    assert!(io(&lab, &["write -P 9 10M 4k"]));
    server.kill();
    let server = restarted(&lab, &["--journal", "j0", "--journal-alone"]);
    assert!(io(&lab, &["read -P 3 8M 4k", "read -P 9 10M 4k"]));
    server.stop();
}

#[test]
fn a_journal_that_cannot_be_used_is_refused_in_words() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-bad", 16, "j0", "16M");
    let there = lab.line("journal create --size 16M j0").refused(65, &["leave --size out"]);
    assert!(there.err.starts_with("openraid journal create: "), "{}", there.err);
    lab.line("journal create --size 4M tiny").refused(65, &["too small", "8 MiB"]);
    lab.line("journal create ram:16M").refused(64, &["memory"]);
    lab.line("serve --nbd 127.0.0.1:0 data --journal nothing").refused(65, &["nothing"]);
    lab.line("serve --nbd 127.0.0.1:0 data --journal d0").refused(65, &["d0", "already in use here"]);
    lab.drives(&["stranger"], 8);
    lab.line("serve --nbd 127.0.0.1:0 data --journal stranger").refused(65, &["not an openraid journal"]);
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0 --journal j0 --journal j0").refused(64, &["once or twice"]);
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0 --journal j0").refused(65, &["j0"]);
    lab.line("serve --nbd 127.0.0.1:0 data --consistency-policy controller-journal").refused(64, &["--journal"]);
    killed(&lab, &["j0"]);
    let server = lab.serve(&["--level", "1", "--name", "scratch", "ram:8M", "ram:8M", "--journal", "j0"]);
    let again = lab.line("serve --nbd 127.0.0.1:0 data --journal j0");
    assert!(again.code == 65 && again.err.contains("locked"), "{again:?}");
    server.stop();
    // Another controller.
    let stranger = Lab::new("journal-stranger");
    let device = lab.path("j0");
    let device = device.to_str().expect("UTF-8");
    stranger.line("create own --level 1 --assume-clean --file-size 16M e0 e1").expect(0);
    let words = ["another controller", "openraid journal adopt DEVICE"];
    stranger.run(&["serve", "--nbd", "127.0.0.1:0", "own", "--journal", device]).refused(65, &words);
    let asked = stranger.run(&["journal", "adopt", device]).expect(65);
    assert!(asked.text().contains("if that one does not use it any more, add --yes"), "{}", asked.text());
    stranger.run(&["journal", "adopt", device, "--yes"]).expect(0);
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0").refused(65, &["another controller"]);
    lab.line("journal adopt j0 --yes").expect(0);
    let adopted = lab.line("journal adopt j0").expect(0);
    assert!(adopted.text().contains("belongs to this controller already"), "{}", adopted.text());
    // Cut off.
    let whole = std::fs::read(lab.path("j0")).expect("it is there");
    std::fs::write(lab.path("j0"), &whole[..12 << 20]).expect("room");
    lab.line("serve --nbd 127.0.0.1:0 data --journal j0").refused(65, &["shrunk"]);
    std::fs::write(lab.path("j0"), &whole).expect("room");
    // Bits: in a superblock the other one helps; in the log it is damage, and the entry is named.
    let mut bytes = read_at(&lab.path("j0"), 100, 1);
    bytes[0] ^= 4;
    write_at(&lab.path("j0"), 100, &bytes);
    let shown = lab.line("journal show j0 --json").expect(0).json();
    let entries = shown["journal"]["entries"].as_u64().expect("a number");
    assert!(entries > 0, "{shown:#}");
    let first = (1 << 20) + 64;
    write_at(&lab.path("j0"), first, &[0xff; 4]);
    let refused = lab.line("serve --nbd 127.0.0.1:0 data --journal j0");
    if refused.code == 0 {
        panic!("a damaged log was served");
    }
    assert!(refused.err.contains("journal"), "{}", refused.err);
    std::fs::write(lab.path("j0"), &whole).expect("room");
    let server = restarted(&lab, &["--journal", "j0"]);
    holds_everything(&lab);
    server.stop();
}

/// Make a file of this length, whatever it contained.
fn cut(lab: &Lab, name: &str, bytes: u64) {
    let file = std::fs::File::options().write(true).open(lab.path(name)).expect("it is there");
    file.set_len(bytes).expect("room");
}

#[test]
fn for_a_truncated_device_the_message_names_the_complete_one_and_the_remedy() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-cut", 16, "j0 j1", "16M");
    killed(&lab, &["j0", "j1"]);
    let both = "serve --nbd 127.0.0.1:0 data --journal j0 --journal j1";
    for bytes in [12 << 20, 4 << 20, 0] {
        cut(&lab, "j1", bytes);
        let words = ["j1: it is ", "long and was 16 MiB long", "j0, is whole", "--journal-alone"];
        let refused = lab.line(both).refused(65, &words);
        assert!(!refused.err.contains("at least") && !refused.err.contains("a member"), "{}", refused.err);
    }
    std::fs::remove_file(lab.path("j1")).expect("it was there");
    lab.line(both).refused(65, &["j1: there is no such file", "j0, is whole", "--journal-alone"]);
    let server = restarted(&lab, &["--journal", "j0", "--journal-alone"]);
    holds_everything(&lab);
    server.stop();
    // A device that carries the journal alone is the whole journal, and needs no confirmation.
    lab.line("journal create --size 16M j2").expect(0);
    let words = ["j1: there is no such file", "j2, is whole", "it carries the journal alone"];
    let refused = lab.line("serve --nbd 127.0.0.1:0 data --journal j1 --journal j2").refused(65, &words);
    assert!(!refused.err.contains("--journal-alone"), "{}", refused.err);
}

#[test]
fn devices_are_read_if_the_named_server_does_not_answer() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-unasked", 16, "j0", "16M");
    killed(&lab, &["j0"]);
    let asked = |words: &[&str]| {
        let ran = lab.command(words).env("OPENRAID_CONTROL", lab.path("gone.sock")).output().expect("it runs");
        (ran.status.code(), ran.stdout, String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let without = lab.line("journal show j0 --json").expect(0);
    assert!(without.json()["journal"]["entries"].as_u64() > Some(0), "{}", without.text());
    let (code, out, err) = asked(&["journal", "show", "j0", "--json"]);
    assert_eq!((code, String::from_utf8_lossy(&out).into_owned()), (Some(0), without.text()));
    assert!(err.contains("no server answers at") && err.contains("gone.sock"), "{err}");
    // Without a device there is nothing to show.
    let (code, _, err) = asked(&["journal", "show"]);
    assert!(code == Some(4) && err.contains("gone.sock"), "{code:?}: {err}");
}

#[test]
fn policies_are_set_shown_and_refused_with_their_reason() {
    let lab = made("journal-policy", 16, "j0", "16M");
    lab.line("create old --level 1 --metadata 1.0 --assume-clean --file-size 16M e0 e1").expect(0);
    lab.line("create no --level 1 --metadata 1.0 --consistency-policy controller-journal --file-size 16M f0 f1")
        .refused(64, &["metadata (1.0)"]);
    lab.line("create no --level 5 --consistency-policy bitmap --bitmap none --file-size 16M f0 f1 f2")
        .refused(64, &["contradict"]);
    let server = lab.serve(&["data", "old", "--journal", "j0"]);
    lab.line("set old write.cache=journal").refused(65, &["metadata (1.0)"]);
    let set = lab.line("set data --consistency-policy resync").expect(0);
    assert!(set.text().contains("write.cache=through"), "{}", set.text());
    assert_eq!(lab.show("data")["consistency_policy"], "resync");
    lab.line("set data --consistency-policy bitmap").refused(64, &["when an array is created"]);
    let set = lab.line("set data write.cache=journal").expect(0);
    assert!(set.text().contains("active, "), "{}", set.text());
    assert!(lab.line("show data").expect(0).text().contains("journal"));
    assert!(lab.line("explain data").expect(0).text().contains("journal: active"));
    let shown = journal(&lab);
    assert_eq!((&shown["state"], &shown["devices"][0]["works"]), (&"live".into(), &true.into()));
    lab.line("journal discard data --lost").refused(65, &["is running"]);
    lab.line("journal discard old --lost").refused(65, &["is running"]);
    server.stop();
    let server = lab.serve(&["data"]);
    let state = lab.show("data");
    assert_eq!(state["settings"]["write_cache"], "through");
    lab.line("set data write.cache=journal").refused(65, &["--journal DEVICE"]);
    lab.line("journal show").refused(4, &["no running server has a journal"]);
    server.stop();
}

#[test]
fn the_list_names_arrays_whose_policy_is_the_journal_and_that_it_does_not_protect() {
    let lab = made("journal-list", 16, "j0", "16M");
    lab.line("create later --level 5 --consistency-policy controller-journal --file-size 512M f0 f1 f2").expect(0);
    let server = lab.serve(&["data", "later", "--journal", "j0"]);
    // Long before its parity is made.
    lab.line("pause later").expect(0);
    assert_eq!(lab.show("later")["journal"]["protected"], false);
    let listed = lab.line("list").expect(0);
    let line = |name: &str| listed.text().lines().find(|line| line.starts_with(name)).expect("listed").to_owned();
    assert!(line("later").contains("; NOT PROTECTED by a journal; resync"), "{}", line("later"));
    assert!(!line("data").contains("NOT PROTECTED"), "{}", line("data"));
    lab.line("resume later").expect(0);
    lab.wait_for("later", |array| array["task"].is_null() && array["journal"]["protected"] == true);
    assert!(!lab.line("list").expect(0).text().contains("NOT PROTECTED"));
    server.stop();
}

#[test]
fn profiles_keep_the_journal_and_the_registry_hears_of_every_change() {
    let lab = made("journal-profiles", 16, "j0", "16M");
    lab.line("create old --level 1 --metadata 1.0 --assume-clean --file-size 16M e0 e1").expect(0);
    let remembered = || {
        let registry = std::fs::read_to_string(lab.path("state/openraid/registry.json")).expect("it is there");
        let registry: Value = serde_json::from_str(&registry).expect("JSON");
        let entries = registry["arrays"].as_array().expect("a list").clone();
        entries.iter().find(|entry| entry["name"] == "data").expect("remembered")["journalled"] == true
    };
    let server = lab.serve(&["data", "old", "--journal", "j0"]);
    for profile in ["performance", "protection", "balanced"] {
        // No data is at risk, so no confirmation is needed.
        lab.line(&format!("set data profile={profile}")).expect(0);
        let state = lab.show("data");
        assert_eq!((&state["settings"]["write_cache"], remembered()), (&"journal".into(), true), "{profile}");
        assert_eq!(state["journal"]["protected"], true, "{profile}");
    }
    lab.line("set data write.cache=through").expect(0);
    assert!(!remembered());
    lab.line("set data profile=performance").expect(0);
    assert!(remembered());
    // What the journal cannot protect is as it would be without one.
    let words = ["profile=performance", "--yes", "the journal of this server cannot protect it: its metadata (1.0)"];
    let refused = lab.line("set old profile=performance").refused(65, &words);
    assert!(!refused.err.contains("--journal"), "it has one: {}", refused.err);
    lab.line("set data write.cache=volatile").refused(65, &["--yes", "or take write.cache=journal"]);
    lab.line("set old profile=performance --yes").expect(0);
    assert_eq!(lab.show("old")["settings"]["write_cache"], "volatile");
    lab.line("set old profile=protection").expect(0);
    assert_eq!(lab.show("old")["settings"]["write_cache"], "through");
    let news = server.stop();
    let has_news =
        |text: &str| news.iter().any(|line| line["news"]["text"].as_str().is_some_and(|words| words.contains(text)));
    assert!(has_news("data: settings changed: write.cache journal -> through"), "{news:?}");
    assert!(has_news("old: settings changed: ") && has_news("write.cache volatile -> through"), "{news:?}");
    // A server without a journal does not make the setting forgotten.
    let server = lab.serve(&["data"]);
    lab.line("set data profile=balanced").expect(0);
    assert!(remembered());
    lab.line("set data write.cache=through").expect(0);
    assert!(!remembered());
    server.stop();
}

/// Is the array remembered as one whose writes the journal promises?
fn is_journalled(lab: &Lab) -> bool {
    let listed = lab.line("list --json").expect(0).json();
    listed["remembered"][0]["journalled"] == true
}

#[test]
fn a_policy_given_to_serve_is_remembered_and_an_unused_journal_is_mentioned() {
    let lab = Lab::new("journal-told");
    lab.line("journal create --size 16M j0").expect(0);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let write_cache = |options: &[&str]| {
        let server = restarted(&lab, &[&["--journal", "j0"], options].concat());
        let found = lab.show("data")["settings"]["write_cache"].as_str().expect("a word").to_owned();
        server.stop();
        (found, is_journalled(&lab))
    };
    assert_eq!(write_cache(&[]), ("through".into(), false));
    assert_eq!(write_cache(&["--consistency-policy", "controller-journal"]), ("journal".into(), true));
    assert_eq!(write_cache(&[]), ("journal".into(), true));
    assert_eq!(write_cache(&["--consistency-policy", "resync"]), ("through".into(), false));
    // A server with a journal starts the array later: the answer says that the journal is not used, and an event names
    // the array.
    lab.line("create other --level 1 --assume-clean --file-size 16M e0 e1").expect(0);
    let server = lab.serve(&["other", "--journal", "j0"]);
    // Writing through is a choice: no alarm says so at each start.
    lab.line("alarms").expect(0).says(&["no alarms"]);
    let said = lab.line("assemble data").expect(0).text();
    let words = "data: write journal not active: write.cache=through";
    assert!(said.contains(words) && said.contains("openraid set data write.cache=journal"), "{said}");
    lab.line("set data write.cache=journal").expect(0);
    lab.line("stop data").expect(0);
    let said = lab.line("assemble data").expect(0).text();
    assert!(said.contains("served now: data") && !said.contains("not active"), "{said}");
    lab.line("set data --consistency-policy controller-journal write.cache=through").refused(64, &["contradicts"]);
    lab.line("set data --consistency-policy resync profile=performance").expect(0);
    assert_eq!(lab.show("data")["settings"]["write_cache"], "through");
    let news = server.stop();
    let texts: Vec<&str> = news.iter().filter_map(|line| line["news"]["text"].as_str()).collect();
    let changes = texts.iter().filter(|text| **text == "data: settings changed: write.cache through -> journal");
    assert_eq!((changes.count(), texts.iter().any(|text| text.starts_with("array "))), (2, false), "{texts:?}");
    // What an array cannot have is not taken for its policy, nor remembered.
    lab.line("create pp --level 5 --chunk 64K --assume-clean --consistency-policy ppl --file-size 16M p0 p1 p2")
        .expect(0);
    let server = lab.serve(&["pp", "--journal", "j0", "--consistency-policy", "controller-journal"]);
    let shown = lab.show("pp");
    assert_eq!((&shown["consistency_policy"], &shown["settings"]["write_cache"]), (&"ppl".into(), &"through".into()));
    server.stop();
    let registry = std::fs::read_to_string(lab.path("state/openraid/registry.json")).expect("it is there");
    let registry: Value = serde_json::from_str(&registry).expect("JSON");
    let arrays = registry["arrays"].as_array().expect("a list");
    let array = arrays.iter().find(|array| array["name"] == "pp").expect("it is remembered");
    assert!(array["journalled"].is_null(), "{array:#}");
}

#[test]
fn shown_devices_have_their_server_their_arrays_and_a_note_if_one_of_two_is_missing() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-shown", 16, "j0 j1", "16M");
    let server = restarted(&lab, &["--journal", "j0", "--journal", "j1"]);
    assert!(io(&lab, &["write -P 1 0 1M", "write -P 3 5M 12k"]));
    let shown = lab.line("journal show j1 --json").expect(0).json();
    assert_eq!(shown["journal"]["state"], "live", "{shown:#}");
    assert!(shown["journal"]["counters"]["data_bytes"].as_u64() >= Some(1 << 20), "{shown:#}");
    assert!(!lab.line("journal show j0").expect(0).text().contains("not in use"));
    server.kill();
    // A server on a control socket that `show` does not ask by default.
    let apart = lab.path("apart.sock");
    let apart = apart.to_str().expect("UTF-8");
    let options = ["--journal", "j0", "--journal", "j1", "--control", apart];
    let server = restarted(&lab, &options);
    let shown = lab.line("journal show j0 j1").expect(0);
    assert!(shown.text().contains("in use by another program"), "{}", shown.text());
    assert_eq!(lab.line("journal show j0 j1 --json").expect(0).json()["journal"]["state"], "in-use");
    let asked = lab.run(&["journal", "show", "j0", "--control", apart, "--json"]).expect(0).json();
    assert_eq!(asked["journal"]["state"], "live", "{asked:#}");
    // An array that has been quiet for a moment is not in the journal's table any more.
    assert!(io(&lab, &["write -P 4 6M 4k"]));
    let examined = lab.line("examine j0 --json").expect(0).json();
    let journal = &examined["members"][0]["journal"];
    assert_eq!((&journal["state"], &journal["arrays"][0]["name"]), (&"in-use".into(), &"data".into()), "{examined:#}");
    assert!(io(&lab, &["write -P 5 7M 4k"]));
    server.kill();
    let shown = lab.line("journal show j0 j1 --json").expect(0).json();
    assert_eq!((&shown["journal"]["state"], &shown["journal"]["other_missing"]), (&"unused".into(), &false.into()));
    assert_eq!(shown["journal"]["arrays"][0]["name"], "data", "{shown:#}");
    let half = lab.line("journal show j0").expect(1);
    assert!(
        half.text().contains("one of two devices: the other one was not named, and may hold more"),
        "{}",
        half.text()
    );
    assert_eq!(lab.line("journal show j0 --json").expect(1).json()["journal"]["other_missing"], true);
}

#[test]
fn the_spans_of_a_nested_array_have_names_in_an_unused_journal() {
    if !has_tools() {
        return;
    }
    let lab = Lab::new("journal-spans");
    lab.line("journal create --size 16M j0").expect(0);
    let made = "create data --level 50 --spans 2 --chunk 64K --assume-clean --consistency-policy controller-journal";
    lab.line(&format!("{made} --file-size 16M d0 d1 d2 d3 d4 d5")).expect(0);
    let server = restarted(&lab, &["--journal", "j0"]);
    assert!(io(&lab, &["write -P 1 0 1M", "write -P 3 5M 12k"]));
    server.kill();
    let shown = lab.line("journal show j0 --json").expect(0).json();
    let arrays = shown["journal"]["arrays"].as_array().expect("a list");
    let mut names: Vec<&str> = arrays.iter().filter_map(|array| array["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["data.0", "data.1"], "{shown:#}");
}
