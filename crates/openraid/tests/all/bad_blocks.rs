//! Bad-block logs that are wrong: what they hide is said, can be read, and comes back when the drives are good.

use std::fs;

use crate::support::{noise, read_at, write_at, Lab};
use openraid_format::{BadBlockRange, BadBlockTable, FeatureMap, MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_units::{DriveLba, Sectors};

const SUPERBLOCK: u64 = 4096;
const MEMBER_MIB: u64 = 8;

fn superblock(lab: &Lab, member: &str) -> Superblock {
    let bytes = read_at(&lab.path(member), SUPERBLOCK, SUPERBLOCK_BYTES_MAX);
    let size = Sectors(fs::metadata(lab.path(member)).expect("it is there").len() / 512);
    Superblock::decode(&bytes, MinorVersion::V1_2, size).expect("a good superblock")
}

/// Give a member a log with these entries, in sectors of its data.
fn log(lab: &Lab, member: &str, entries: &[(u64, u64)]) {
    let mut superblock = superblock(lab, member);
    superblock.features.set(FeatureMap::BAD_BLOCKS, true);
    let place = superblock.bad_block_log().expect("it has a log");
    let at = superblock.place(place.offset).expect("on the drive").offset().bytes().get();
    let mut table = BadBlockTable::new();
    for (from, len) in entries {
        table
            .push(BadBlockRange { start: DriveLba(superblock.data_offset.get() + from), len: Sectors(*len) })
            .expect("room");
    }
    let mut bytes = vec![0; usize::from(place.size) * 512];
    table.encode(place.shift, &mut bytes).expect("room");
    write_at(&lab.path(member), at, &bytes);
    let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
    superblock.encode(&mut bytes);
    write_at(&lab.path(member), SUPERBLOCK, &bytes);
}

/// An array with noise in it.
fn filled(name: &str, create: &str) -> (Lab, Vec<u8>) {
    let lab = Lab::new(name);
    lab.line(&format!("create pb {create} --assume-clean --file-size {MEMBER_MIB}M")).expect(0);
    let size = lab.run(&["copy-out", "pb"]).expect(0).out.len();
    let data = noise(6, size);
    lab.pipe(&["copy-in", "pb"], &data).expect(0);
    (lab, data)
}

#[test]
fn equal_logs_on_two_members_are_named_read_past_and_cleared() {
    let (lab, data) = filled("phantom", "--level 5 --chunk 64K m0 m1 m2");
    // 8 and 128 sectors of one row each: in RAID 5 over three, both columns of a row or one and its parity.
    for member in ["m0", "m1"] {
        log(&lab, member, &[(1024, 8), (4096, 128)]);
    }
    let lost: usize = {
        let copy = lab.line("copy-out --skip-bad pb").expect(7);
        let next = format!("to read past them: openraid copy-out --ignore-bad-blocks {}", lab.path("m0").display());
        assert!(copy.err.contains(&next), "{}", copy.err);
        copy.out.chunks(512).zip(data.chunks(512)).filter(|(ours, right)| ours != right).count() * 512
    };
    // One or two of two members in a row of three hold data: 136 sectors at least.
    assert!(lost >= 136 * 512, "{lost}");
    let doctor = lab.line("doctor m0 m1 m2").expect(2);
    let [m0, m1, m2] = ["m0", "m1", "m2"].map(|name| lab.path(name).display().to_string());
    doctor.says(&[
        &format!("{lost} bytes of the array cannot be read because of them; those of {m0} and {m1} are equal"),
        &format!("but {lost} bytes of it cannot be read"),
        &format!("openraid copy-out --ignore-bad-blocks {m0} {m1} {m2}"),
        &format!("openraid update --recheck-bad-blocks {m0} {m1} {m2} --yes"),
    ]);
    let json = lab.line("doctor m0 m1 m2 --json").json();
    assert_eq!(json["sets"][0]["unreadable_bytes"], lost as u64);
    assert!(lab.line("copy-out --ignore-bad-blocks pb").expect(0).out == data, "the drives have the data");

    let names = ["m0", "m1", "m2"];
    let before = lab.fingerprints(&names);
    lab.line("update --recheck-bad-blocks pb --dry-run").expect(0).says(&["4 entries, 4 good"]);
    lab.line("update --recheck-bad-blocks pb").refused_aloud(65, &["nothing was written; add --yes"]);
    assert_eq!(lab.fingerprints(&names), before);
    lab.line("update --recheck-bad-blocks pb --yes").expect(0).says(&["m0: 8 sectors from sector 1024", "cleared"]);
    lab.line("doctor m0 m1 m2").expect(0);
    assert!(lab.line("copy-out pb").expect(0).out == data);
    assert!(!superblock(&lab, "m0").features.contains(FeatureMap::BAD_BLOCKS));
    assert_eq!(lab.line("examine m1 --json").json()["members"][0]["bad_ranges"].as_array().map(Vec::len), Some(0));
}

#[test]
fn an_entry_whose_row_does_not_agree_stays_and_the_others_are_cleared() {
    for create in [
        "--level 5 --chunk 64K m0 m1 m2",
        "--level 6 --chunk 64K m0 m1 m2 m3",
        "--level 1 m0 m1",
        "--level 10 --chunk 64K m0 m1 m2",
    ] {
        let (lab, _) = filled("phantom-stays", create);
        let superblock = superblock(&lab, "m0");
        // The data under the second entry were never written to this member, as after a rebuild over a bad source.
        let at = (superblock.data_offset.get() + 4096 + 3) * 512;
        let mut sector = read_at(&lab.path("m0"), at, 512);
        sector[9] ^= 0x40;
        write_at(&lab.path("m0"), at, &sector);
        log(&lab, "m0", &[(1024, 8), (4096, 8)]);
        let ran = lab.line("update --recheck-bad-blocks pb --yes").expect(7);
        let ran = ran.says(&["2 entries, 1 good", "sector 1024 of the data on: cleared", "its rows do not agree"]);
        let json = lab.line("examine m0 --json").json();
        let left = json["members"][0]["bad_ranges"].clone();
        assert_eq!(left, serde_json::json!([{ "at_sector": 4096, "sectors": 8 }]), "{create}: {ran:?}");
    }
}

/// Rows in which a member has a bad range lack that member already.
#[test]
fn bad_ranges_of_one_member_are_a_warning_and_count_as_its_loss() {
    for (create, logged, survives, level) in [
        ("--level 5 --chunk 64K m0 m1 m2", &["m0"][..], 0, "warning"),
        ("--level 5 --chunk 64K m0 m1 m2", &["m0", "m1"], 0, "critical"),
        ("--level 6 --chunk 64K m0 m1 m2 m3", &["m1"], 1, "warning"),
        ("--level 1 m0 m1 m2", &["m0"], 1, "warning"),
    ] {
        let (lab, _) = filled("phantom-survives", create);
        logged.iter().for_each(|member| log(&lab, member, &[(1024, 8)]));
        let server = lab.serve(&["pb"]);
        let shown = lab.show("pb");
        assert_eq!((&shown["health"], &shown["survives"]), (&"optimal".into(), &survives.into()), "{create}");
        let alarms = lab.line("alarms --json").json();
        let alarm = alarms["alarms"].as_array().expect("a list").iter().find(|alarm| alarm["event"] == "SectorLost");
        assert_eq!(alarm.expect("one")["level"], level, "{create}, {logged:?}: {alarms}");
        server.stop();
    }
}
