//! md's flags of a member: write-mostly is honoured, shown and kept; failfast is shown and kept.

use std::fs;

use crate::support::client::Client;
use crate::support::{read_at, write_at, Lab};
use openraid_format::{DeviceFlags, MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use serde_json::Value;

const SUPERBLOCK: u64 = 4096;
const BLOCK: u64 = 4096;
const READS: u64 = 200;

fn superblock(lab: &Lab, member: &str) -> Superblock {
    let bytes = read_at(&lab.path(member), SUPERBLOCK, SUPERBLOCK_BYTES_MAX);
    let size = Sectors(fs::metadata(lab.path(member)).expect("it is there").len() / 512);
    Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a good superblock")
}

fn flag(lab: &Lab, member: &str, flags: u8) {
    let mut superblock = superblock(lab, member);
    superblock.device_flags = DeviceFlags(flags);
    let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
    superblock.encode(&mut bytes);
    write_at(&lab.path(member), SUPERBLOCK, &bytes);
}

/// Reads of each member, by its name.
fn reads(array: &Value, member: &str) -> u64 {
    let lines = array["members"].as_array().expect("members");
    let entry = lines.iter().find(|line| line["member"].as_str().is_some_and(|path| path.ends_with(member)));
    entry.expect("the member")["reads"].as_u64().expect("a number")
}

/// Read blocks all over the array, each apart from the one before.
fn read_all_over(lab: &Lab, array: &str) {
    let blocks = lab.show(array)["size_bytes"].as_u64().expect("a size") / BLOCK;
    let mut client = Client::open(&lab.path("nbd.sock"), array);
    for number in 0..READS {
        client.read_block(number * 7919 % blocks * BLOCK).expect("read");
    }
}

/// How many of the reads each member took.
fn shares(lab: &Lab, array: &str, members: &[&str]) -> Vec<u64> {
    let before = lab.show(array);
    read_all_over(lab, array);
    let after = lab.show(array);
    members.iter().map(|member| reads(&after, member) - reads(&before, member)).collect()
}

#[test]
fn a_write_mostly_member_is_read_only_where_no_other_copy_can_be() {
    let lab = Lab::new("write-mostly");
    lab.line("create wm --level 1 --assume-clean --file-size 8M a0 a1 a2").expect(0);
    flag(&lab, "a0", 1);
    lab.line("examine a0").expect(0).says(&["write-mostly"]);
    assert_eq!(lab.line("examine a0 --json").json()["members"][0]["superblock"]["flags"][0], "write-mostly");
    lab.line("doctor a0 a1 a2").expect(0).says(&["a0: ", "write-mostly: it is read only where no other copy can be"]);
    let server = lab.serve(&["wm"]);
    assert_eq!(lab.show("wm")["members"][0]["flags"][0], "write-mostly");
    lab.line("show wm").says(&["write-mostly"]);
    for rule in ["least-pending", "round-robin", "nearest-head", "primary", "twinstor"] {
        lab.line(&format!("set wm mirror-read={rule}")).expect(0);
        let taken = shares(&lab, "wm", &["a0", "a1", "a2"]);
        assert_eq!((taken[0], taken.iter().sum::<u64>()), (0, READS), "{rule}: {taken:?}");
    }
    // A rebuild reads the other copy, too.
    lab.line("fail wm a2").expect(0);
    lab.drives(&["b"], 8);
    lab.line("add wm b").expect(0);
    let array = lab.wait_for("wm", |array| array["health"] == "optimal");
    assert_eq!(reads(&array, "a0"), reads(&lab.show("wm"), "a0"));
    assert!(reads(&array, "a0") <= 2, "{array:#}");
    // Without another copy it is read.
    lab.line("fail wm a1").expect(0);
    lab.line("fail wm b").expect(0);
    assert_eq!(shares(&lab, "wm", &["a0"]), [READS]);
    server.stop();
    assert!(superblock(&lab, "a0").device_flags == DeviceFlags::WRITE_MOSTLY, "the flag is lost");
    assert!(superblock(&lab, "a0").events > 2, "it was written again");
}

#[test]
fn each_pair_of_a_stripe_of_mirrors_honours_the_flag_by_itself_and_failfast_is_kept() {
    let lab = Lab::new("write-mostly-10");
    lab.line("create wm --level 10 --chunk 64K --assume-clean --file-size 8M a0 a1 a2 a3").expect(0);
    flag(&lab, "a1", 1 | 2);
    // Both copies of the second pair have the flag: it chooses nothing.
    flag(&lab, "a2", 1);
    flag(&lab, "a3", 1);
    let server = lab.serve(&["wm"]);
    let taken = shares(&lab, "wm", &["a0", "a1", "a2", "a3"]);
    assert_eq!((taken[1], taken.iter().sum::<u64>()), (0, READS), "{taken:?}");
    assert!(taken[0] > READS / 4 && taken[2] + taken[3] > READS / 4, "{taken:?}");
    lab.line("show wm --mdstat").says(&["a1[1](W)"]);
    server.stop();
    lab.line("examine a1").says(&["write-mostly, failfast"]);
}
