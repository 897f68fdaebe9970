//! Read-ahead of a disk, on and off, against the time of a turn.

use openraid_core::actions::DriveOp;
use openraid_drives::one_drive_load::closed;
use openraid_drives::{DriveKit, DriveOptions};
use openraid_models::{DriveKind, DriveProfile, Library};

/// Bytes of each request.
const BYTES: u64 = 64 << 10;

/// Time of one of 500 requests in order, in nanoseconds.
fn time(drive: &DriveProfile, op: DriveOp, depth: u32, read_ahead: Option<bool>) -> f64 {
    let options = DriveOptions { read_ahead, seed: 5, ..DriveOptions::default() };
    let mut at = 0;
    let next = || {
        at += BYTES / 512;
        (op, at - BYTES / 512, BYTES / 512)
    };
    let trial = closed(&mut DriveKit::new(drive).build(&options), depth, 50, 500, next);
    trial.span as f64 / 500.0
}

/// When the host has a read and sends the next one, the next sector has just passed the head. So each request takes one
/// turn and its own transfer. Spindles turn up to 0.1 % slower than nominal. A head that changes its cylinder in less time
/// than the skew may have loses no turn there: on one disk, once in a hundred requests.
#[test]
fn a_stream_without_read_ahead_loses_a_turn_for_each_request() {
    let mut disks = 0;
    for drive in Library::builtin().drives() {
        let DriveKind::Disk(disk) = &drive.kind else { continue };
        let name = &drive.head.name;
        let transfer = BYTES as f64 * 1e9 / disk.rate_outer.value.0 as f64;
        let expected = 60e9 / f64::from(disk.spindle_rpm.value) + transfer;
        let off = time(drive, DriveOp::Read, 1, Some(false));
        assert!((-0.01..0.004).contains(&(off / expected - 1.0)), "{name}: {off} ns, {expected} expected");
        // With read-ahead the medium never stops.
        let on = time(drive, DriveOp::Read, 1, None);
        assert!(on < transfer * 1.1, "{name}: {on} ns, {transfer} of them on the medium");
        assert_eq!(on.to_bits(), time(drive, DriveOp::Read, 1, Some(true)).to_bits(), "{name}");
        disks += 1;
    }
    assert!(disks > 8, "{disks}");
}

#[test]
fn read_ahead_does_not_matter_to_writes_or_to_a_queue_that_holds_the_next_read() {
    let library = Library::builtin();
    let drive = library.drive("exos_x18_18tb").unwrap();
    let write = DriveOp::Write { fua: false };
    let [on, off] = [true, false].map(|on| time(drive, write, 1, Some(on)));
    assert_eq!(on.to_bits(), off.to_bits());
    let [one, four] = [1, 4].map(|depth| time(drive, DriveOp::Read, depth, Some(false)));
    assert!(four < one / 4.0, "{four} {one}");
}

#[test]
fn a_profile_may_have_read_ahead_off() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/drives/wd740gd.toml")).unwrap();
    let drive = |line: &str| {
        let text = text.replace("write_cache =", &format!("{line}\nwrite_cache ="));
        DriveProfile::parse("own.toml", &text)
    };
    let (usual, off) = (drive("").unwrap(), drive("reads_ahead = false").unwrap());
    assert!(usual.reads_ahead() && !off.reads_ahead());
    let of = |drive: &DriveProfile, read_ahead| time(drive, DriveOp::Read, 1, read_ahead).to_bits();
    assert_eq!(of(&off, None), of(&usual, Some(false)));
    assert_eq!(of(&off, Some(true)), of(&usual, None));
    let wrong = drive("reads_ahead = 3").unwrap_err().to_string();
    assert!(wrong.contains("neither true nor false"), "{wrong}");
}
