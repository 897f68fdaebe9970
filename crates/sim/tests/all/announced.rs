//! A superblock announces a bad-block log only when that log is on the drive.

use openraid_core::admin::Health;
use openraid_core::events::RequestKind;
use openraid_format::{BadBlockTable, FeatureMap};
use openraid_sim::drive::Defect;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::oracle::Members;
use openraid_sim::rig::RigOptions;
use openraid_sim::{ArrayShape, Loss, Rig};
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors, Slot};

const BAD: MemberLba = MemberLba(640);
/// The place of its stripe in the array: stripe 20 of three chunks of data.
const STRIPE: u64 = 20 * 3 * (16 << 10);

/// A degraded and fully written RAID 5, with one bad sector without redundancy.
fn rig(seed: u64) -> (Rig, DriveId, DriveLba) {
    let shape = ArrayShape::raid5(4, Sectors::kib(16));
    let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
    let capacity = rig.session.capacity();
    for start in (0..capacity).step_by(96 << 10) {
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, start..(start + (96 << 10)).min(capacity));
    }
    rig.session.drain(&mut rig.world);
    rig.rest();
    rig.lose(Slot(0), Loss::Failed);
    rig.rest();
    let (drive, lba) = Members::of(&rig.world, rig.array).place(Slot(1), BAD).unwrap();
    rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(1), Defect::UntilWritten);
    (rig, drive, lba)
}

/// The sectors in a drive's bad-block log, if its superblock announces one.
fn announced(rig: &Rig, drive: DriveId) -> Option<Vec<DriveLba>> {
    let superblock = superblock_on(&rig.world, drive).expect("it is a member");
    if !superblock.features.contains(FeatureMap::BAD_BLOCKS) {
        return None;
    }
    let log = superblock.bad_block_log().expect("it has a place for a log");
    let mut bytes = vec![0; usize::from(log.size) * 512];
    rig.world.drive(drive).peek(superblock.place(log.offset).unwrap(), &mut bytes);
    let size = rig.world.drive(drive).spec().capacity;
    let table = BadBlockTable::decode(&bytes, log.shift, size).expect("a log that is announced is one");
    Some(table.ranges().iter().map(|range| range.start).collect())
}

#[test]
fn at_no_moment_does_a_superblock_announce_a_log_that_is_not_there() {
    for seed in 1..40 {
        let (mut rig, drive, lba) = rig(seed);
        // The stripe of the bad sector. Sessions must not read it, because it is lost.
        rig.world.submit(rig.array, RequestKind::Read, STRIPE, 48 << 10, Vec::new());
        let mut seen = 0;
        while rig.world.step() {
            if let Some(places) = announced(&rig, drive) {
                assert_eq!(places, [lba]);
                seen += 1;
            }
        }
        assert!(seen > 0, "the bad sector is never announced");
    }
}

#[test]
fn without_space_for_the_log_the_array_starts_again_and_announces_no_log() {
    let (mut rig, drive, _) = rig(7);
    let superblock = superblock_on(&rig.world, drive).unwrap();
    let log = superblock.bad_block_log().unwrap();
    let place = (superblock.place(log.offset).unwrap(), Sectors(u64::from(log.size)));
    rig.world.drive_mut(drive).faults.no_space = Some(place);
    assert!(rig.world.read(rig.array, STRIPE, 48 << 10).is_err());
    rig.rest();
    assert_eq!(announced(&rig, drive), None);
    rig.session.forget();
    rig.world.cut_power();
    rig.session.versions_mut().cut();
    // Without force: the array is degraded as before.
    rig.boot();
    assert_eq!(rig.health(), Health::Degraded);
}
