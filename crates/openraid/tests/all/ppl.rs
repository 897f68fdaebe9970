//! Arrays with a partial parity log: made, shown, killed in the middle of writes, and what does not go together with it.

use crate::support::{kill_under_writes, Lab};

#[test]
fn an_array_with_a_partial_parity_log_is_made_shown_killed_and_served_again() {
    let lab = Lab::new("ppl");
    let made = lab
        .line("create data --level 5 --chunk 64K --consistency-policy ppl --assume-clean --file-size 16M d0 d1 d2 d3");
    let made = made.expect(0);
    assert!(made.text().contains("partial parity log"), "{}", made.text());
    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["consistency_policy"], "ppl");
    kill_under_writes(&lab, server);
    let examined = lab.line("examine d0 --json").expect(0).json();
    assert_eq!(examined["members"][0]["ppl"]["state"], "valid", "{examined}");
    assert!(lab.line("examine d0").expect(0).text().contains("partial parity log"));
    let server = lab.serve(&["data"]);
    let shown = lab.show("data");
    assert_eq!(shown["consistency_policy"], "ppl");
    assert!(shown["task"].is_null(), "no resync: {shown}");
    server.stop();
    // A journal that is requested in addition is not used: the log still makes the array consistent.
    lab.line("journal create --size 8M j0").expect(0);
    let server = lab.serve(&["data", "--journal", "j0", "--consistency-policy", "controller-journal"]);
    assert_eq!(lab.show("data")["settings"]["write_cache"], "through");
    assert_eq!(lab.show("data")["consistency_policy"], "ppl");
    let text = lab.line("show data").expect(0).text();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["policy", "ppl"])), "{text}");
    server.stop();
}

#[test]
fn options_that_exclude_a_partial_parity_log_are_refused() {
    let lab = Lab::new("ppl-not");
    for (options, word) in [
        ("--level 6 --consistency-policy ppl", "RAID 5 and 50 only"),
        ("--level 5 --consistency-policy ppl --bitmap internal", "contradict"),
    ] {
        lab.line(&format!("create no {options} --file-size 16M e0 e1 e2 e3")).refused(64, &[word]);
    }
    lab.line("create old --level 5 --assume-clean --file-size 16M f0 f1 f2").expect(0);
    let server = lab.serve(&["old"]);
    lab.line("set old --consistency-policy ppl").refused(64, &["when an array is created"]);
    server.stop();
}
