//! A log with a flipped bit on one device: `journal show` displays the rest, and the messages have the remedy.

mod support;

use support::guest::{is_inside, rerun, Loop, Mapped};
use support::journalled::{has_tools, io_of, made, wait_for_journal};
use support::{read_at, write_at, Lab};

/// Flip a bit in the host data of this pattern in the journal.
fn flip(lab: &Lab, pattern: u8) {
    let journal = std::fs::read(lab.path("j0")).expect("it is there");
    let block =
        journal.chunks(4096).position(|block| block.iter().all(|byte| *byte == pattern)).expect("it was promised");
    let at = block as u64 * 4096 + 1000;
    let byte = read_at(&lab.path("j0"), at, 1)[0];
    write_at(&lab.path("j0"), at, &[byte ^ 0x10]);
}

/// Two arrays, of which `other` has its first megabyte.
fn two_arrays(name: &str) -> Lab {
    let lab = made(name, 16, "j0", "16M");
    let words = "--level 5 --chunk 64K --assume-clean --consistency-policy controller-journal --file-size 16M";
    lab.line(&format!("create other {words} e0 e1 e2")).expect(0);
    lab
}

const SMALL: [&str; 4] = ["write -P 33 1M 4k", "write -P 34 2M 4k", "write -P 35 3M 8k", "write -P 36 4M 4k"];

#[test]
fn a_damaged_log_is_shown_and_given_up_by_the_words_of_the_error() {
    if !has_tools() {
        return;
    }
    let lab = two_arrays("journal-damaged");
    let server = lab.serve(&["data", "other", "--journal", "j0"]);
    io_of(&lab, "other", &["write -P 9 0 1M", "write -P 8 5M 4k"]);
    // An array that has been quiet has nothing in the journal.
    wait_for_journal(&lab, |shown| shown["arrays"].as_array().is_some_and(Vec::is_empty));
    io_of(&lab, "data", &SMALL);
    server.kill();
    flip(&lab, 35);
    let serve = "serve --nbd 127.0.0.1:0 data other --journal j0";
    let remedy = ["openraid journal show DEVICE", "openraid journal discard ARRAY --on DEVICE --lost", "should be at"];
    lab.line(serve).refused(65, &remedy);
    // `journal show` displays the readable part, and where it ends.
    let shown = lab.line("journal show j0").expect(1).text();
    assert!(shown.contains("DAMAGED") && shown.contains("should be at bytes") && shown.contains("data"), "{shown}");
    let shown = lab.line("journal show j0 --json").expect(1).json();
    let (journal, arrays) = (&shown["journal"], shown["journal"]["arrays"].as_array().expect("a list"));
    assert!(journal["damage"].as_str().is_some_and(|text| text.contains("its payload is damaged")), "{shown:#}");
    assert!(journal["entries"].as_u64() > Some(0), "{shown:#}");
    assert_eq!((arrays.len(), &arrays[0]["name"]), (1, &"data".into()), "{shown:#}");
    assert!(arrays[0]["waiting_entries"].as_u64() > Some(0), "{shown:#}");
    // The array that is named there is given up.
    lab.line("journal discard data --on j0")
        .refused(65, &["before the damage", "an unknown number after it", "--lost"]);
    lab.line(serve).refused(65, &["should be at"]);
    let done = lab.line("journal discard data --on j0 --lost --json").expect(0).json();
    let text = done["done"].as_str().expect("it is done");
    assert!(text.contains("discarded: ") && text.contains("can be used again"), "{text}");
    assert!(done["damage"].is_string() && done["entries"].as_u64() > Some(0), "{done:#}");
    let server = lab.serve(&["data", "other", "--journal", "j0"]);
    assert!(lab.show("data")["forced"].is_string());
    io_of(&lab, "other", &["read -P 9 0 1M", "read -P 8 5M 4k", "write -P 7 6M 4k"]);
    lab.wait_for("data", |array| array["task"].is_null() && array["journal"]["protected"] == true);
    io_of(&lab, "data", &["write -P 6 7M 4k", "read -P 6 7M 4k"]);
    // Writes that are promised from then on are kept.
    server.kill();
    let server = lab.serve(&["data", "other", "--journal", "j0"]);
    io_of(&lab, "other", &["read -P 9 0 1M", "read -P 7 6M 4k"]);
    io_of(&lab, "data", &["read -P 6 7M 4k"]);
    server.stop();
}

#[test]
fn a_damaged_log_of_two_arrays_is_used_again_when_both_are_given_up() {
    if !has_tools() {
        return;
    }
    let lab = two_arrays("journal-damaged-two");
    let server = lab.serve(&["data", "other", "--journal", "j0"]);
    io_of(&lab, "other", &["write -P 9 0 4k"]);
    io_of(&lab, "data", &SMALL);
    io_of(&lab, "other", &["write -P 8 1M 4k"]);
    server.kill();
    flip(&lab, 34);
    let serve = "serve --nbd 127.0.0.1:0 data other --journal j0";
    let done = lab.line("journal discard data --on j0 --lost").expect(0).text();
    assert!(done.contains("when the entries of other are discarded, too"), "{done}");
    lab.line(serve).refused(65, &["should be at"]);
    let shown = lab.line("journal show j0 --json").expect(1).json();
    assert_eq!(shown["journal"]["arrays"].as_array().map(Vec::len), Some(2), "{shown:#}");
    let done = lab.line("journal discard other --on j0 --lost").expect(0).text();
    assert!(done.contains("the journal can be used again"), "{done}");
    let server = lab.serve(&["data", "other", "--journal", "j0"]);
    for array in ["data", "other"] {
        lab.wait_for(array, |state| state["task"].is_null() && state["journal"]["protected"] == true);
        io_of(&lab, array, &["write -P 5 2M 4k", "read -P 5 2M 4k"]);
    }
    server.stop();
}

#[test]
fn a_damaged_half_of_a_journal_is_called_damaged_and_is_an_alarm() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-half", 16, "j0 j1", "16M");
    let server = lab.serve(&["data", "--journal", "j0", "--journal", "j1"]);
    io_of(&lab, "data", &SMALL);
    server.kill();
    flip(&lab, 35);
    let said = lab.path("said");
    let (j0, socket) = (lab.path("j0").display().to_string(), lab.path("nbd.sock"));
    let socket = socket.to_str().expect("UTF-8");
    let mut command =
        lab.command(&["serve", "--json", "--nbd-unix", socket, "data", "--journal", "j0", "--journal", "j1"]);
    command.stderr(std::fs::File::create(&said).expect("room"));
    let server = support::Server::started(&mut command).expect("the other half is whole");
    let text = std::fs::read_to_string(&said).expect("it was written");
    let words = "this device of the journal has lost acknowledged entries, which the other one has: entry ";
    assert!(text.contains(&format!("{j0}: {words}")) && text.contains("its payload is damaged (checksum"), "{text}");
    assert!(text.contains("it has the data of the other device again") && !text.contains("stale"), "{text}");
    let alarms = lab.line("alarms --json").json()["alarms"].clone();
    let all = alarms.as_array().expect("a list");
    let alarm = all.iter().find(|alarm| alarm["event"] == "JournalUnreadable").unwrap_or_else(|| panic!("{alarms:#}"));
    assert!(alarm["text"].as_str().is_some_and(|text| text.contains(words) && text.contains("smartctl")), "{alarm:#}");
    assert_eq!(alarm["member"], j0.as_str());
    io_of(&lab, "data", &["read -P 33 1M 4k", "read -P 34 2M 4k", "read -P 35 3M 8k", "read -P 36 4M 4k"]);
    server.stop();
    // A device that was left out is stale, and nothing is wrong with it.
    let server = lab.serve(&["data", "--journal", "j0", "--journal", "j1"]);
    let alarms = lab.line("alarms --json").json()["alarms"].clone();
    let open = |alarm: &serde_json::Value| alarm["event"] == "JournalUnreadable" && alarm["until_seconds"].is_null();
    assert!(!alarms.as_array().expect("a list").iter().any(open), "{alarms:#}");
    server.stop();
}

#[test]
fn a_journal_that_answers_with_errors_is_called_unreadable_and_not_blank() {
    const TEST: &str = "a_journal_that_answers_with_errors_is_called_unreadable_and_not_blank";
    if !has_tools() {
        return;
    }
    if !is_inside() {
        return rerun(TEST, "a device has to answer with errors");
    }
    const SECTORS: u64 = 32 << 11;
    let lab = Lab::new("journal-errors");
    lab.drives(&["below", "j1"], 32);
    let below = Loop::over(&lab.path("below"));
    let good = format!("linear {} 0", below.0);
    let mapped = Mapped::new("journal", SECTORS, &good);
    let j0 = mapped.path();
    lab.line(&format!("journal create {j0}")).expect(0);
    let words = "--level 5 --chunk 64K --assume-clean --consistency-policy controller-journal --file-size 16M";
    lab.line(&format!("create data {words} d0 d1 d2")).expect(0);
    let server = lab.serve(&["data", "--journal", &j0]);
    io_of(&lab, "data", &SMALL);
    server.kill();
    mapped.become_table(SECTORS, "error");
    let said = [&*format!("journal {j0}: its superblocks cannot be read"), "dmesg", "make no new journal on it"];
    for verb in [
        format!("serve --nbd 127.0.0.1:0 data --journal {j0}"),
        format!("journal show {j0}"),
        format!("journal discard data --on {j0}"),
        format!("journal discard data --on {j0} --lost"),
    ] {
        let ran = lab.line(&verb).refused(74, &said);
        assert!(
            !ran.err.contains("not an openraid journal") && !ran.err.contains("journal create"),
            "{verb}: {}",
            ran.err
        );
    }
    lab.line(&format!("journal create {j0}")).refused(74, &["cannot be read"]);
    mapped.become_table(SECTORS, &good);
    let server = lab.serve(&["data", "--journal", &j0]);
    io_of(&lab, "data", &["read -P 33 1M 4k", "read -P 34 2M 4k", "read -P 35 3M 8k", "read -P 36 4M 4k"]);
    server.stop();
    // With two devices the other one is enough.
    lab.drives(&["below-two"], 32);
    let below = Loop::over(&lab.path("below-two"));
    let mapped = Mapped::new("half", SECTORS, &format!("linear {} 0", below.0));
    let k0 = mapped.path();
    lab.drives(&["k1"], 32);
    lab.line(&format!("journal create {k0} k1")).expect(0);
    lab.line(&format!("create two {words} e0 e1 e2")).expect(0);
    let arguments = ["two", "--journal", &k0, "--journal", "k1"];
    let server = lab.serve(&arguments);
    io_of(&lab, "two", &SMALL);
    server.kill();
    mapped.become_table(SECTORS, "error");
    let said = ["its superblocks cannot be read", "k1, is whole", "--journal-alone"];
    let ran = lab.line(&format!("serve --nbd 127.0.0.1:0 two --journal {k0} --journal k1")).refused(65, &said);
    assert!(!ran.err.contains("not an openraid journal"), "{}", ran.err);
    let server = lab.serve(&["two", "--journal", "k1", "--journal-alone"]);
    io_of(&lab, "two", &["read -P 33 1M 4k", "read -P 34 2M 4k", "read -P 35 3M 8k", "read -P 36 4M 4k"]);
    server.stop();
}
