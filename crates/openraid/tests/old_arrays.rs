//! Arrays of old kernels and of other makers: what openraid does not read is named with the next step, and a map that superblocks
//! do not say can be given.

mod support;

use std::fs;

use openraid_format::{FeatureMap, MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use support::client::Client;
use support::guest::{is_inside, rerun_with_raid6, tool, Loop};
use support::{noise, read_at, write_at, Lab};

const SUPERBLOCK: u64 = 4096;

#[test]
fn the_map_of_a_raid0_without_its_layout_bit_is_given_by_a_word() {
    let lab = Lab::new("raid0-layout");
    let names = ["r0", "r1", "r2"];
    // The maps differ only after an odd number of chunks, where two members go on.
    for (name, kib) in names.iter().zip([4096 + 64, 6144, 8192]) {
        fs::File::create(lab.path(name)).and_then(|file| file.set_len(kib << 10)).expect("a sparse file");
    }
    lab.line("create rz --level 0 --chunk 64K r0 r1 r2").expect(0);
    let size = lab.line("copy-out rz").expect(0).out.len();
    let data = noise(9, size);
    lab.pipe(&["copy-in", "rz"], &data).expect(0);
    lab.line("forget rz").expect(0);
    for name in names {
        let path = lab.path(name);
        let bytes = read_at(&path, SUPERBLOCK, SUPERBLOCK_BYTES_MAX);
        let drive = Sectors(fs::metadata(&path).expect("it is there").len() / 512);
        let mut superblock = Superblock::decode(&bytes, MinorVersion::V1_2, drive).expect("a good superblock");
        superblock.features.set(FeatureMap::RAID0_LAYOUT, false);
        superblock.layout = 0;
        let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
        superblock.encode(&mut bytes);
        write_at(&path, SUPERBLOCK, &bytes);
    }
    let before = lab.fingerprints(&names);
    let doctor = lab.line("doctor r0 r1 r2");
    assert_ne!(doctor.code, 0);
    doctor.says(&["copy-out --layout alternate", "`mdadm --assemble --update=layout-alternate /dev/mdN MEMBER...`"]);
    assert!(lab.line("copy-out --layout alternate r0 r1 r2").expect(0).out == data);
    // The other map is the same up to the end of the smallest member, and another one after it.
    let other = lab.line("copy-out --layout original r0 r1 r2").expect(0).out;
    assert!(other[..1 << 20] == data[..1 << 20] && other != data);
    lab.line("serve --layout alternate r0 r1 r2").refused(64, &["--read-only"]);
    let server = lab.serve(&["--read-only", "--layout", "alternate", "r0", "r1", "r2"]);
    let last = size as u64 / 4096 * 4096 - 4096;
    let block = Client::open(&lab.path("nbd.sock"), "rz").read_block(last).expect("read");
    assert!(block == data[usize::try_from(last).expect("small")..][..4096]);
    server.stop();
    assert_eq!(lab.fingerprints(&names), before, "a member was written");
}

#[test]
fn metadata_that_is_not_read_comes_with_the_next_step() {
    let lab = Lab::new("old-metadata");
    lab.drives(&["old", "ddf", "isw"], 8);
    let (mib, end) = (1_u64 << 20, 8_u64 << 20);
    write_at(&lab.path("old"), end - 65_536, b"\xfc\x4e\x2b\xa9\x00\x00\x00\x00\x5a\x00\x00\x00");
    write_at(&lab.path("ddf"), end - 512, b"\xde\x11\xde\x11");
    write_at(&lab.path("isw"), end - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00\0\0");
    write_at(&lab.path("old"), mib, &[1]);
    let says = |verb: &str, words: &[&str]| {
        let ran = lab.line(verb);
        assert_ne!(ran.code, 0, "{verb}: {ran:?}");
        ran.says(words);
    };
    says(
        "doctor old",
        &["openraid only reads md 0.90", "openraid copy-out MEMBER... > image", "mdadm --assemble --update=metadata"],
    );
    says(
        "examine old",
        &[
            "no superblock of md 1.x, but: Linux RAID member (md 0.90)",
            "mdadm --assemble --update=metadata",
            "its superblock of md 0.90 cannot be used: its checksum is 00000000, and that of its bytes a92b4f56",
        ],
    );
    says("doctor ddf", &["DDF RAID member", "mdadm --assemble --scan"]);
    says("doctor isw", &["isw_raid_member", "mdadm --assemble --scan"]);
}

/// A guest in which mdadm makes arrays of md 0.90, fills them, and writes what it reads back next to the members.
#[test]
fn arrays_of_md_0_90_are_copied_out_as_md_reads_them() {
    const TEST: &str = "arrays_of_md_0_90_are_copied_out_as_md_reads_them";
    if !is_inside() {
        return rerun_with_raid6(TEST, "md has to make arrays");
    }
    let lab = Lab::new("md0");
    let shapes = [
        ("one", "1", 2, ""),
        ("ten", "10", 4, "--chunk 64 --layout f2"),
        ("five", "5", 3, "--chunk 64 --layout left-asymmetric"),
        ("six", "6", 5, "--chunk 16"),
        ("four", "4", 3, "--chunk 64"),
        ("line", "linear", 3, ""),
    ];
    for (nth, (name, level, count, words)) in shapes.into_iter().enumerate() {
        let names: Vec<String> = (0..count).map(|member| format!("{name}{member}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        lab.drives(&names, 8);
        let loops: Vec<Loop> = names.iter().map(|name| Loop::over(&lab.path(name))).collect();
        let devices = loops.iter().map(|device| device.0.as_str()).collect::<Vec<_>>().join(" ");
        let clean = if level == "linear" { "" } else { "--assume-clean" };
        let md = format!("/dev/md{}", 40 + nth);
        tool(&format!("mdadm --create {md} --run --metadata 0.90 --level {level} {words} {clean} --raid-devices {count} {devices}"));
        let size: usize = tool(&format!("blockdev --getsize64 {md}")).parse().expect("a number");
        let data = noise(nth as u64, size);
        fs::write(&md, &data).expect("it takes all");
        let uuid = tool(&format!("mdadm --detail {md}"));
        let uuid = uuid.lines().find_map(|line| line.trim().strip_prefix("UUID : ")).expect("a line");
        let uuid = uuid.split_whitespace().next().expect("a word").to_owned();
        tool("sync");
        tool(&format!("mdadm --stop {md}"));
        drop(loops);
        let before = lab.fingerprints(&names);
        let shown = lab.run(&[&["examine", "--json"], &names[..]].concat()).expect(0).json();
        let superblock = &shown["members"][1]["superblock"];
        assert_eq!(superblock["version"], "0.90", "{shown:#}");
        assert_eq!(
            (superblock["uuid"].as_str(), superblock["slots"].as_u64()),
            (Some(&*uuid), Some(count)),
            "{shown:#}"
        );
        let ran = lab.run(&[&["copy-out"], &names[..]].concat());
        assert!(ran.code == 0 && ran.out == data, "{name}, all members: {} {}", ran.code, ran.err);
        if level != "linear" {
            let ran = lab.run(&[&["copy-out"], &names[1..]].concat());
            assert!(ran.code == 1 && ran.out == data, "{name}, degraded: {} {}", ran.code, ran.err);
        }
        // Whatever writes refuses, with the next step.
        for verb in [&["serve", "--nbd", "127.0.0.1:0", "--memory", "64M"][..], &["assemble", "--no-serve"]] {
            let ran = lab.run(&[verb, &names[..]].concat());
            let said = ran.text() + &ran.err;
            let next =
                "openraid only reads md 0.90: copy the data with `openraid copy-out MEMBER... > image`, or convert";
            assert!(ran.code != 0 && said.contains(next), "{name}: {} {said}", ran.code);
        }
        assert_eq!(lab.fingerprints(&names), before, "{name}: nothing was written");
    }
}
