//! Sparse members on a file system that is full: what says so on them has its space from the start.

mod support;

use std::fs;
use std::process::Command;

use support::guest::Small;
use support::{noise, Lab};

#[test]
fn metadata_of_sparse_members_have_their_space_when_the_array_is_made() {
    let lab = Lab::new("allocated");
    let test = "metadata_of_sparse_members_have_their_space_when_the_array_is_made";
    let Some(small) = Small::mount(&lab.folder, "8M", test) else { return };
    lab.drives(&["a", "b", "c"], 64);
    lab.line("create data --level 5 --assume-clean --consistency-policy ppl a b c").expect(0);
    small.fill();
    // Superblocks, logs and the logs of partial parity: everything but data is written without new space.
    for member in ["a", "b", "c"] {
        let size = fs::metadata(lab.path(member)).map(|file| std::os::unix::fs::MetadataExt::blocks(&file) * 512);
        assert!(size.expect("it is there") >= (1 << 20) + 4096 + 4096, "{member} has holes in its metadata");
    }
    let server = lab.serve(&["data"]);
    server.kill();
    lab.serve(&["data"]).stop();
}

#[test]
fn a_degraded_array_that_met_a_full_file_system_starts_again_without_force() {
    let lab = Lab::new("full");
    let test = "a_degraded_array_that_met_a_full_file_system_starts_again_without_force";
    let Some(small) = Small::mount(&lab.folder, "12M", test) else { return };
    lab.drives(&["a", "b", "c"], 64);
    lab.line("create data --level 5 --assume-clean a b c").expect(0);
    fs::remove_file(lab.path("a")).expect("it is there");
    small.fill();
    let server = lab.serve(&["data"]);
    let uri = server.uri();
    let elsewhere = Lab::new("full-image");
    fs::write(elsewhere.path("image"), noise(1, 4 << 20)).expect("room");
    let copied = Command::new("nbdcopy").arg(elsewhere.path("image")).arg(&uri).output().expect("nbdcopy");
    assert!(!copied.status.success(), "writes fail: there is no space");
    let known = bad_blocks(&lab);
    server.signal("-TERM");
    let _ = server.end();
    // It still knows which parity is not to be believed, if there is any.
    let server = lab.serve(&["data"]);
    assert_eq!(server.ready["arrays"][0]["health"], "degraded");
    assert_eq!(bad_blocks(&lab), known);
    server.stop();
}

fn bad_blocks(lab: &Lab) -> u64 {
    let members = lab.show("data")["members"].as_array().expect("members").clone();
    members.iter().map(|member| member["bad_ranges"].as_u64().unwrap_or(0)).sum()
}

#[test]
fn without_space_for_metadata_no_array_is_made() {
    let lab = Lab::new("no-space");
    let test = "without_space_for_metadata_no_array_is_made";
    let Some(small) = Small::mount(&lab.folder, "1M", test) else { return };
    lab.drives(&["a", "b", "c"], 64);
    small.fill();
    lab.line("create data --level 5 --assume-clean a b c").refused(74, &["no space", "make room there"]);
}
