//! Sequential reads with several commands outstanding: more commands never make a stream slower. The oracle is the same
//! drive with one command, and the rate of the medium.

use openraid_core::actions::DriveOp;
use openraid_drives::{one_drive_load, DriveKit, DriveOptions, DriveState, VirtualDrive};
use openraid_models::{DriveKind, DriveProfile, Library};

/// Bytes a second of `requests` sequential reads of `sectors` each, with `depth` commands outstanding.
fn rate(profile: &DriveProfile, depth: u32, sectors: u64, requests: u64) -> f64 {
    let options = DriveOptions { write_cache: None, read_ahead: None, state: DriveState::Steady, seed: 5, index: 0 };
    let mut drive = DriveKit::new(profile).build(&options);
    assert!(drive.sectors() > 4_000_000);
    let mut at = 1_000_000 / sectors * sectors;
    one_drive_load::closed(&mut drive, depth, 200, requests, || {
        at += sectors;
        (DriveOp::Read, at - sectors, sectors)
    })
    .bytes_per_second()
}

#[test]
fn more_outstanding_reads_never_make_a_stream_slower() {
    let library = Library::builtin();
    let mut disks = 0;
    for profile in library.drives() {
        let DriveKind::Disk(parameters) = &profile.kind else { continue };
        if parameters.read_ahead_least.value.get() == 0 {
            continue; // such firmware leaves the stream for each waiting command
        }
        disks += 1;
        let medium = parameters.rate_outer.value.0 as f64;
        for sectors in [4, 8, 32, 128] {
            let alone = rate(profile, 1, sectors, 1000);
            for depth in [2, 3, 4, 8, 16, 32] {
                let several = rate(profile, depth, sectors, 1000);
                let what = format!("{}: {depth} reads of {sectors} sectors", profile.head.name);
                assert!(several > 0.95 * alone, "{what}: {several:.0} bytes/s, with one read {alone:.0}");
                assert!(several < 1.02 * medium, "{what}: {several:.0} bytes/s, the medium gives {medium:.0}");
            }
        }
    }
    assert!(disks > 10, "{disks}");
}
