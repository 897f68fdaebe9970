//! Arrays of old kernels and of other makers: what openraid does not read is named with the next step, and a map that superblocks
//! do not say can be given.

mod support;

use std::fs;

use openraid_format::{FeatureMap, MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::Sectors;
use support::client::Client;
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
        let mut own = Superblock::decode(&bytes, MinorVersion::V1_2, drive).expect("a good superblock");
        own.features.set(FeatureMap::RAID0_LAYOUT, false);
        own.layout = 0;
        let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
        own.encode(&mut bytes);
        write_at(&path, SUPERBLOCK, &bytes);
    }
    let before = lab.fingerprints(&names);
    let doctor = lab.line("doctor r0 r1 r2");
    assert_ne!(doctor.code, 0);
    doctor.says(&["copy-out --layout alternate", "mdadm --assemble --update=layout-alternate"]);
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
    says("doctor old", &["openraid does not read md 0.90", "mdadm --assemble --update=metadata"]);
    says(
        "examine old",
        &["no superblock of md 1.x, but: Linux RAID member (md 0.90)", "mdadm --assemble --update=metadata"],
    );
    says("doctor ddf", &["DDF RAID member", "mdadm --assemble --scan"]);
    says("doctor isw", &["isw_raid_member", "mdadm --assemble --scan"]);
}
