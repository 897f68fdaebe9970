//! The places of a write cache, against closed forms.

use openraid_core::actions::DriveOp;
use openraid_drives::disk::DiskGeometry;
use openraid_drives::one_drive_load::{closed, command};
use openraid_drives::{DriveKit, DriveOptions, Random, VirtualDrive};
use openraid_models::{DiskProfile, DriveKind, DriveProfile, Library, Rate, Sourced};
use openraid_units::{Bytes, Instant, Nanos};

/// A disk with a write cache of `places` places, and a firmware and a link that take no time. It writes cached data at
/// once.
fn drive(places: u32) -> DriveProfile {
    let mut drive = Library::builtin().drive("wd360gd").unwrap().clone();
    let DriveKind::Disk(disk) = &mut drive.kind else { panic!("it is a disk") };
    for time in [&mut disk.command, &mut disk.cached_command, &mut disk.write_command, &mut disk.cached_write_command] {
        *time = Sourced::exact(Nanos::ZERO);
    }
    for time in [&mut disk.positioning_margin, &mut disk.destage_idle] {
        *time = Sourced::exact(Nanos::ZERO);
    }
    disk.link_rate = Sourced::exact(Rate::mbs(900_000));
    disk.read_ahead_least = Sourced::exact(Bytes::ZERO);
    disk.dirty_extents = Sourced::exact(places);
    // With one density, places are uniform over the cylinders, as the average of the data sheet assumes.
    disk.rate_inner = disk.rate_outer.clone();
    drive
}

fn disk(drive: &DriveProfile) -> &DiskProfile {
    let DriveKind::Disk(disk) = &drive.kind else { panic!("it is a disk") };
    disk
}

fn close(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// Writes of 16 sectors at random places, one at a time. The cache never holds more of them than it has places, because
/// the one that is being written occupies its place.
#[test]
fn no_more_writes_are_acknowledged_than_there_are_places() {
    const SECTORS: u64 = 16;
    for places in [1, 2, 8] {
        let drive = drive(places);
        let mut disk = DriveKit::new(&drive).build(&DriveOptions { seed: 5, ..DriveOptions::default() });
        let (mut random, mut now, mut done, mut most) = (Random::new(3), Instant::ZERO, Vec::new(), 0);
        for number in 0..2000 {
            let lba = random.below(disk.sectors() / SECTORS) * SECTORS;
            disk.submit(now, &command(number, DriveOp::Write { fua: false }, lba, SECTORS));
            done.clear();
            while done.is_empty() {
                now = disk.next().expect("a write is in work");
                disk.advance(now, &mut done);
            }
            most = most.max(disk.held(now));
        }
        assert_eq!(most, u64::from(places) * SECTORS, "{places} places");
    }
}

/// The steady rate of cached writes is the rate at which the medium takes them. With one or two places it has no choice:
/// seek, half a turn and the transfer.
#[test]
fn writes_into_a_full_cache_go_at_the_rate_of_the_medium() {
    for places in [1, 2] {
        let drive = drive(places);
        let medium = disk(&drive);
        let mut random = Random::new(8);
        let blocks = drive.capacity.value.0 / 8;
        let next = || (DriveOp::Write { fua: false }, random.below(blocks) * 8, 8);
        let trial = closed(&mut DriveKit::new(&drive).build(&DriveOptions::default()), 1, 100, 40_000, next);
        let transfer = 4096e9 / medium.rate_outer.value.0 as f64;
        let expected = medium.seek_write.average.value.0 as f64 + medium.turn().0 as f64 / 2.0 + transfer;
        close(trial.mean(), expected, 0.01);
    }
}

/// Single sectors on one track: only the rotation remains. When a sector is on the medium, the disk chooses the next one
/// while the data of the waiting write still comes. So with n places it chooses among n - 1.
///
/// The nearer of two has a mean distance of a quarter of a turn. The one that is left has a distance with the density
/// 2 (1 - y), which the next choice between it and a uniform one reproduces. The mean of the smaller is the integral of
/// (1 - y)^3.
#[test]
fn the_next_piece_is_chosen_while_the_data_of_a_waiting_write_comes() {
    for (places, turns) in [(1, 0.5), (2, 0.5), (3, 0.25)] {
        let drive = drive(places);
        let geometry = DiskGeometry::new(disk(&drive), drive.capacity.value);
        let sectors = geometry.track();
        let mut random = Random::new(4);
        // Every other sector, so that pieces do not touch.
        let next = || (DriveOp::Write { fua: false }, random.below(sectors / 2) * 2, 1);
        let trial = closed(&mut DriveKit::new(&drive).build(&DriveOptions::default()), 1, 100, 60_000, next);
        close(trial.mean(), turns * f64::from(geometry.turn()), 0.02);
    }
}
