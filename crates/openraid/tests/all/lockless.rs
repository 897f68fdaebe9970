//! Arrays with the lockless bitmap of Linux 6.18: refused by name for serving, read by `copy-out`.
//!
//! The images are our own: a superblock of this program, and the bitmap as the kernel's source describes it.

use crate::support::{noise, write_at, Lab};
use openraid_format::{BitmapState, LocklessHeader, Uuid, LOCKLESS_STATES_AT};
use openraid_units::Sectors;

/// The place of the bitmap: after the superblock 1.2.
const BITMAP: u64 = 8192;
/// The driver's default chunk, 64 KiB.
const CHUNK: Sectors = Sectors(128);
const MEMBERS: [&str; 4] = ["d0", "d1", "d2", "d3"];

/// An array of this level with a lockless bitmap. Returns its content.
fn made(lab: &Lab, level: &str) -> Vec<u8> {
    let create =
        format!("create data --level {level} --chunk 64K --file-size 16M --bitmap internal d0 d1 d2 d3 --json");
    let made =
        lab.line(&create.replace(" --chunk 64K", if level == "1" { "" } else { " --chunk 64K" })).expect(0).json();
    let image = noise(3, usize::try_from(made["size_bytes"].as_u64().expect("a size")).expect("small"));
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    image
}

/// Put a lockless bitmap with these states, in turns, on every member.
fn put_bitmap(lab: &Lab, states: &[u8]) -> usize {
    let superblock = lab.line("examine d0 --json").expect(0).json()["members"][0]["superblock"].clone();
    let set_uuid: Uuid = superblock["uuid"].as_str().expect("a uuid").parse().expect("a uuid");
    let sync_size = Sectors(superblock["used_bytes"].as_u64().expect("bytes") / 512);
    let events = superblock["events"].as_u64().expect("events");
    let header = LocklessHeader { set_uuid, events, sync_size, state: BitmapState(0), chunk: CHUNK };
    let chunks = usize::try_from(header.chunks()).expect("small");
    let mut area = vec![0; LOCKLESS_STATES_AT];
    header.encode(&mut area);
    area.extend(states.iter().cycle().take(chunks));
    MEMBERS.iter().for_each(|name| write_at(&lab.path(name), BITMAP, &area));
    chunks
}

#[test]
fn it_is_refused_by_name_for_serving_and_read_by_copy_out_and_nothing_is_written() {
    for level in ["1", "5", "6", "10"] {
        let lab = Lab::new("lockless");
        let image = made(&lab, level);
        put_bitmap(&lab, &[1]);
        let before = lab.fingerprints(&MEMBERS);
        let refused = lab.line("serve d0 d1 d2 d3 --nbd-unix nbd.sock");
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(format!("{}{}", refused.text(), refused.err).contains("lockless one (version 6"), "{refused:?}");
        lab.line("doctor d0 d1 d2 d3").expect(2).says(&["lockless one (version 6", "openraid copy-out"]);
        assert_eq!(lab.pipe(&["copy-in", "data"], &image[..4096]).code, 2);
        let ran = lab.line("copy-out d0 d1 d2 d3").expect(0);
        assert!(ran.out == image, "{level}: other bytes come out");
        assert!(ran.err.contains("all data can be trusted"), "{}", ran.err);
        let ran = lab.line("copy-out d0 d2 d3").expect(1);
        assert!(ran.out == image, "{level}: other bytes come out without a member");
        assert_eq!(lab.fingerprints(&MEMBERS), before, "{level}: something was written");
    }
}

#[test]
fn copy_out_reports_data_that_cannot_be_trusted() {
    let lab = Lab::new("lockless-dirty");
    let image = made(&lab, "5");
    // Unwritten, clean, dirty, to be synced, being synced.
    let chunks = put_bitmap(&lab, &[0, 1, 2, 3, 4]);
    let unwritten = chunks.div_ceil(5);
    let unsynced = (0..chunks).filter(|chunk| chunk % 5 > 1).count();
    let bitmap = lab.line("examine d0 --json").expect(0).json()["members"][0]["lockless_bitmap"].clone();
    assert_eq!(bitmap["unwritten"], unwritten);
    assert_eq!((&bitmap["unsynced"], &bitmap["chunk_bytes"]), (&unsynced.into(), &65536.into()));
    let whole = lab.line("copy-out d0 d1 d2 d3").expect(0);
    assert!(whole.out == image && whole.err.contains("parity is not used"), "{}", whole.err);
    let degraded = lab.line("copy-out d0 d1 d3").expect(1);
    let said = format!("{unsynced} of {chunks} chunks of 64 KiB are not in sync and {unwritten} were never written");
    assert!(degraded.err.contains(&said) && degraded.err.contains("may be wrong"), "{}", degraded.err);
}
