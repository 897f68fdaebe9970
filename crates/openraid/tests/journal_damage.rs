//! A log with a flipped bit on one device: `journal show` displays the rest, and the messages have the remedy.

mod support;

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
    let (own, arrays) = (&shown["journal"], shown["journal"]["arrays"].as_array().expect("a list"));
    assert!(own["damage"].as_str().is_some_and(|text| text.contains("its payload is damaged")), "{shown:#}");
    assert!(own["entries"].as_u64() > Some(0), "{shown:#}");
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
