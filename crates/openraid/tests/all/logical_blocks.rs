//! Arrays of Linux 6.19 and later: the logical block that their superblocks name, and what older kernels make of it.
//!
//! The judge of "older kernels" is the real md driver of Linux 6.1, in a kernel that runs as a process.

use crate::support;

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::support::{noise, read_at, write_at, Lab};
use openraid_oracle::{answer, Guest};

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
/// Where the superblock 1.2 stands.
const SUPERBLOCK: u64 = 4096;
const MEMBERS: [&str; 4] = ["d0", "d1", "d2", "d3"];
/// The value in a superblock without the field.
const NONE: u32 = 0;

/// The field of the superblock at a place of a file.
fn block_at(lab: &Lab, name: &str, superblock: u64) -> u32 {
    let bytes = read_at(&lab.path(name), superblock + 224, 4);
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// Write the field as Linux 6.19 does, with the checksum: the sum of the words, carries added once.
fn set_block_at(lab: &Lab, name: &str, superblock: u64, block: u32) {
    let path = lab.path(name);
    let mut bytes = read_at(&path, superblock, 4096);
    assert_eq!(bytes[..4], 0xa92b_4efc_u32.to_le_bytes(), "{name}: no superblock");
    bytes[224..228].copy_from_slice(&block.to_le_bytes());
    bytes[216..220].fill(0);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let len = 256 + 2 * word(220) as usize;
    let sum: u64 = (0..len / 4).map(|at| u64::from(word(4 * at))).sum();
    let sum = u32::try_from((sum & 0xffff_ffff) + (sum >> 32)).expect("no second carry");
    bytes[216..220].copy_from_slice(&sum.to_le_bytes());
    write_at(&path, superblock, &bytes);
}

fn set_block(lab: &Lab, names: &[&str], block: u32) {
    names.iter().for_each(|name| set_block_at(lab, name, SUPERBLOCK, block));
}

fn blocks(lab: &Lab, names: &[&str]) -> Vec<u32> {
    names.iter().map(|name| block_at(lab, name, SUPERBLOCK)).collect()
}

/// A full RAID 5 over four files, as a kernel of 6.19 leaves it. Returns its content.
fn made(lab: &Lab, block: u32) -> Vec<u8> {
    let made = lab.line("create data --level 5 --chunk 64K --file-size 16M d0 d1 d2 d3 --json").expect(0).json();
    let image = noise(24, usize::try_from(made["size_bytes"].as_u64().expect("a size")).expect("small"));
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    set_block(lab, &MEMBERS, block);
    image
}

const PLAN: &str = "update --for-kernels-before 6.19 d0 d1 d2 d3";

#[test]
fn an_older_kernel_refuses_the_array_before_the_update_and_takes_it_after() {
    let lab = Lab::new("update-md");
    let image = made(&lab, 512);
    lab.line("doctor d0 d1 d2 d3").expect(0).says(&[
        "512 bytes, as Linux 6.19 and later write it",
        "does not have a valid v1.2 superblock",
        "openraid update --for-kernels-before 6.19",
    ]);
    for name in MEMBERS {
        fs::copy(lab.path(name), lab.path(&format!("before-{name}"))).expect("room");
    }
    let before = lab.fingerprints(&MEMBERS);
    let plan = lab.line(&format!("{PLAN} --json")).expect(65).json();
    assert_eq!((&plan["updated"], plan["changes"].as_array().map(Vec::len)), (&false.into(), Some(4)), "{plan:#}");
    lab.line(&format!("{PLAN} --dry-run")).expect(0).says(&["would be cleared", "add --yes"]);
    assert_eq!(lab.fingerprints(&MEMBERS), before, "a plan has written");
    lab.line(&format!("{PLAN} --yes")).expect(0).says(&["d3: superblock of data at sector 8", "cleared"]);
    assert_eq!(blocks(&lab, &MEMBERS), [NONE; 4]);
    lab.line(&format!("{PLAN} --yes")).expect(0).says(&["no superblock names a logical block"]);

    let mut guest = Guest::new();
    guest.without_raid6();
    let old: Vec<String> = MEMBERS.iter().map(|name| guest.image(lab.path(&format!("before-{name}")))).collect();
    let new: Vec<String> = MEMBERS.iter().map(|name| guest.image(lab.path(name))).collect();
    guest.script(&format!(
        "assemble before {}\nsay before.refused \"$(dmesg | grep -c 'does not have a valid v1.2 superblock' || true)\"\n\
         assemble after {}\ndigest after\ncheck after\nstop after",
        old.join(" "),
        new.join(" ")
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.text("before.assembled"), "no");
    assert_ne!(output.text("before.refused"), "0", "it was refused for something else");
    assert_eq!(output.text("after.assembled"), "yes", "{}", output.text("after.refusal"));
    assert_eq!(output.text("after.mismatch_cnt"), "0");
    assert_eq!(output.text("after.sha256"), sha256(&lab, &image));
    let ran = lab.line("copy-out d0 d1 d2 d3").expect(0);
    assert!(ran.out == image, "md has taken it, and other bytes come out");
}

fn sha256(lab: &Lab, bytes: &[u8]) -> String {
    fs::write(lab.path("digest"), bytes).expect("room");
    let said = Command::new("sha256sum").arg(lab.path("digest")).output().expect("sha256sum").stdout;
    String::from_utf8(said).expect("ASCII").split(' ').next().expect("a word").into()
}

#[test]
fn an_update_that_was_interrupted_does_no_harm_and_is_finished_by_the_next() {
    let lab = Lab::new("update-half");
    let image = made(&lab, 512);
    for done in 1..4 {
        set_block(&lab, &MEMBERS[..done], NONE);
        set_block(&lab, &MEMBERS[done..], 512);
        let ran = lab.line("copy-out d0 d1 d2 d3").expect(0);
        assert!(ran.out == image, "{done} members are done, and other bytes come out");
        let plan = lab.line(&format!("{PLAN} --yes --json")).expect(0).json();
        let written = plan["changes"].as_array().map(Vec::len);
        assert_eq!((written, blocks(&lab, &MEMBERS)), (Some(4 - done), vec![NONE; 4]), "{done}");
    }
    // A server takes such members too, and writes one state to all.
    set_block(&lab, &MEMBERS[1..], 512);
    let server = lab.serve(&["data"]);
    support::write_some(&lab, &server);
    server.stop();
    assert_eq!(blocks(&lab, &MEMBERS), [512; 4]);
}

#[test]
fn the_field_stays_where_hosts_would_see_smaller_blocks_or_a_member_would_keep_it() {
    let lab = Lab::new("update-no");
    made(&lab, 4096);
    let before = lab.fingerprints(&MEMBERS);
    lab.line(&format!("{PLAN} --yes")).refused(65, &["4096 bytes", "its drives have 512", "--smaller-blocks"]);
    set_block(&lab, &MEMBERS, 512);
    lab.line("update --for-kernels-before 6.19 d0 d1 d2 --yes").refused(65, &["slot 3", "--degraded"]);
    lab.line("update --for-kernels-before 6.18 d0").refused(64, &["6.19"]);
    lab.line("update --for-kernels-before 6.19 ram:16M").refused(64, &["memory"]);
    let server = lab.serve(&["data"]);
    lab.line(&format!("{PLAN} --yes")).refused(65, &["busy: process", "stop that first"]);
    server.stop();
    assert_eq!(blocks(&lab, &MEMBERS), [512; 4]);
    lab.line("update --for-kernels-before 6.19 d0 d1 d2 --yes --degraded").expect(0);
    assert_eq!(blocks(&lab, &MEMBERS), [NONE, NONE, NONE, 512]);
    set_block(&lab, &MEMBERS, 4096);
    lab.line(&format!("{PLAN} --yes --smaller-blocks")).expect(0);
    assert_eq!(blocks(&lab, &MEMBERS), [NONE; 4]);
    assert_ne!(lab.fingerprints(&MEMBERS), before);
}

#[test]
fn the_superblocks_of_a_stripe_over_arrays_are_cleared_through_its_spans() {
    let lab = Lab::new("update-nested");
    let names = ["d0", "d1", "d2", "d3", "d4", "d5"];
    let members = names.join(" ");
    lab.line(&format!("create data --level 50 --chunk 16K --file-size 16M --assume-clean {members}")).expect(0);
    let image = noise(7, 4 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    set_block(&lab, &names, 512);
    // The outer superblock stands in the first chunk of the span, on its first member, and parity goes along with it.
    let offset =
        lab.line("examine d0 --json").expect(0).json()["members"][0]["superblock"]["data_offset_sectors"].as_u64();
    let at = offset.expect("an offset") * 512 + SUPERBLOCK;
    let parity = |name: &str| read_at(&lab.path(name), at, 4096);
    for (data, check) in [("d0", "d2"), ("d3", "d5")] {
        let before = parity(data);
        set_block_at(&lab, data, at, 512);
        let changed: Vec<u8> =
            before.iter().zip(parity(data)).zip(parity(check)).map(|((old, new), parity)| old ^ new ^ parity).collect();
        write_at(&lab.path(check), at, &changed);
    }
    lab.line(&format!("doctor {members}")).expect(0);
    let plan = lab.line(&format!("update --for-kernels-before 6.19 {members} --yes --json")).expect(0).json();
    assert_eq!(plan["changes"].as_array().map(Vec::len), Some(8), "{plan:#}");
    assert_eq!(blocks(&lab, &names), [NONE; 6]);
    assert_eq!([block_at(&lab, "d0", at), block_at(&lab, "d3", at)], [NONE; 2]);
    // Parity fits: each span reads the same without the member.
    for left in ["d0 d1 d2 d3 d4 d5", "d1 d2 d4 d5"] {
        let ran = lab.line(&format!("copy-out {left}"));
        assert!(ran.out[..image.len()] == image, "{left}: {}", ran.err);
    }
}

#[test]
fn the_block_that_superblocks_name_is_the_arrays_and_that_of_drives_that_are_added() {
    let lab = Lab::new("block-served");
    made(&lab, 4096);
    lab.line("examine d0").expect(0).says(&["logical block", "4096 bytes"]);
    let shown = lab.line("examine d0 --json").expect(0).json();
    assert_eq!(shown["members"][0]["superblock"]["logical_block_bytes"], 4096);
    let server = lab.serve(&["data"]);
    assert_eq!(lab.show("data")["block_bytes"], 4096);
    lab.line("show data").expect(0).says(&["logical block", "4096 bytes"]);
    let uri = format!("nbd+unix:///data?socket={}", lab.path("nbd.sock").display());
    match Command::new("nbdinfo").args(["--json", &uri]).output() {
        Ok(said) => {
            let said: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
            assert_eq!(said["exports"][0]["block_size_minimum"], 4096, "{said:#}");
        }
        Err(_) => support::missing("nbdinfo is not installed (package libnbd-bin)"),
    }
    // A host that does not ask for the sizes is served in single bytes, as on drives with such blocks.
    support::ask(&lab, &server, &[(support::WRITE, 512, &[9; 512]), (support::WRITE, 5001, &[8; 3])]);
    lab.drives(&["d4"], 16);
    lab.line("fail data d2 --yes").expect(0);
    lab.line("remove data d2").expect(0);
    lab.line("add data d4 --yes").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    server.stop();
    assert_eq!(blocks(&lab, &["d0", "d1", "d3", "d4"]), [4096; 4]);
    let out = lab.line("copy-out d0 d1 d3 d4").expect(0).out;
    assert_eq!((&out[512..1024], &out[5001..5004]), (&[9; 512][..], &[8; 3][..]));
}

#[test]
fn blocks_that_cannot_be_are_refused_in_words() {
    let lab = Lab::new("block-bad");
    made(&lab, 512);
    for (block, words) in [
        (520, "520 B is not a possible logical block"),
        (256, "256 B is not a possible logical block"),
        (1, "1 B is not a possible logical block"),
        (u32::MAX, "is not a possible logical block"),
        (8192, "8192 bytes is not supported"),
    ] {
        set_block(&lab, &MEMBERS, block);
        lab.line("examine d0").expect(2).says(&[words]);
        lab.line("serve d0 d1 d2 d3 --nbd-unix nbd.sock").refused(65, &[words]);
    }
    // A stripe may not end within a block: Linux refuses that as well.
    lab.line("create small --level 0 --chunk 1K --file-size 16M e0 e1").expect(0);
    set_block(&lab, &["e0", "e1"], 4096);
    lab.line("serve e0 e1 --nbd-unix nbd.sock").refused(65, &["4096 bytes", "chunk of 1024 bytes"]);
}

#[test]
fn a_drive_that_is_too_small_is_refused_with_the_needed_size_and_less_headroom_is_tried_first() {
    let lab = Lab::new("add-sizes");
    lab.line("create data --level 5 --chunk 512K --file-size 200M --assume-clean d0 d1 d2").expect(0);
    let server = lab.serve(&["data"]);
    lab.drives(&["small"], 198);
    // 198 MiB of data on each member, from 2 MiB on; a chunk less fits when the metadata have the least room.
    lab.line("add data small --yes").refused(
        65,
        &[
            "it has 198 MiB (405504 sectors)",
            "197.5 MiB (404480 sectors) can hold data, from sector 32 on",
            "a member needs 198 MiB (405504 sectors)",
            "at least 198.5 MiB (406528 sectors)",
        ],
    );
    lab.drives(&["fits"], 199);
    lab.line("add data fits --yes").expect(0);
    lab.line("fail data d1 --yes").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal" && array["task"].is_null());
    server.stop();
    let shown = lab.line("examine fits --json").expect(0).json();
    assert_eq!(shown["members"][0]["superblock"]["data_offset_sectors"], 2048);
}
