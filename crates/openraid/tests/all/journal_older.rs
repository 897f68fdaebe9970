//! An older copy of the journal's device in the place of the right one.

use crate::support::journalled::{has_tools, io, journal, made};

#[test]
fn an_older_copy_of_the_device_is_refused_and_the_right_one_is_taken_afterwards() {
    if !has_tools() {
        return;
    }
    let lab = made("journal-older", 16, "j0", "16M");
    let arguments = ["data", "--journal", "j0"];
    let server = lab.serve(&arguments);
    assert!(io(&lab, &["write -P 1 0 1M"]));
    let older = std::fs::read(lab.path("j0")).expect("a file");
    let entries = journal(&lab)["counters"]["entries"].as_u64().expect("a number");
    assert!(entries > 0);
    // The session ends when the array was quiet for a moment, and the next write begins another one.
    lab.wait_for("data", |shown| shown["journal"]["session"] == "off");
    assert!(io(&lab, &["write -P 2 0 1M", "write -P 3 5M 12k"]));
    server.kill();
    let right = std::fs::read(lab.path("j0")).expect("a file");
    let member = std::fs::read(lab.path("d0")).expect("a file");
    std::fs::write(lab.path("j0"), &older).expect("room");
    lab.line("serve data --journal j0").refused(65, &["older copy"]);
    assert!(std::fs::read(lab.path("j0")).expect("a file") == older, "nothing is written to it");
    assert!(std::fs::read(lab.path("d0")).expect("a file") == member, "nor to a member");
    // The words that take one of two devices do not take an older copy.
    lab.line("serve data --journal j0 --journal-alone").refused(65, &["older copy", "compared with", "d0"]);
    std::fs::write(lab.path("j0"), &right).expect("room");
    let _server = lab.serve(&arguments);
    assert!(io(&lab, &["read -P 2 0 1M", "read -P 3 5M 12k"]));
}
