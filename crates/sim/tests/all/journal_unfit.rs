//! Journals that cannot be used, and policies that an array cannot have. Each is refused for its own reason, and no
//! device's content changes. With the right journal all acknowledged data is present.

use crate::support::journalled::{limits_with_journal, Journalled, JOURNAL};
use crate::support::Case;
use openraid_core::admin::{AdminCommand, AdminError, Policy, WriteCache};
use openraid_core::array::new_array::CreateError;
use openraid_core::journal::find_device::FindError;
use openraid_core::limits::Limits;
use openraid_format::{
    journal_superblock_lba, EntryFault, JournalError, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES,
};
use openraid_parity::Kernels;
use openraid_sim::drive::{Defect, DriveSpec};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::world::arrays::{plan_new, ArrayStartError};
use openraid_sim::world::journal::JournalFault;
use openraid_sim::{ArrayShape, Rig, RigOptions, World};
use openraid_units::{Bytes, DriveId, DriveLba, Sectors};

const CHUNK: Sectors = Sectors::kib(16);

fn shapes() -> [ArrayShape; 3] {
    [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(2)]
}

/// Much data is acknowledged, and the power is cut before it is on the members.
fn promised(shape: ArrayShape, mirrors: u8) -> Journalled {
    after_a_cut(Journalled::new(shape, 1, false, mirrors))
}

/// Like `promised`, with a journal of this size.
fn promised_on(shape: ArrayShape, capacity: Sectors) -> Journalled {
    let mut machine = Journalled::new(shape, 1, false, 1);
    machine.rig.session.cut_power(&mut machine.rig.world);
    machine.devices = machine.rig.world.make_journal(1, capacity);
    machine.boot();
    after_a_cut(machine)
}

fn after_a_cut(mut machine: Journalled) -> Journalled {
    let range = 0..machine.rig.session.capacity();
    let load = Workload { depth: 4, len_max: 16 << 10, align: 4096, range, mix: [0, 1, 0, 0, 0] };
    machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
    machine.rig.session.cut_power(&mut machine.rig.world);
    machine.rig.world.boot();
    machine
}

/// All bytes of a drive.
fn content(world: &World, drive: DriveId, len: Sectors) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len.bytes().get()).expect("a small drive")];
    world.drive(drive).peek(DriveLba(0), &mut bytes);
    bytes
}

fn all_contents(world: &World) -> Vec<Vec<u8>> {
    let drives = (0..world.drives_len()).map(|n| DriveId(u16::try_from(n).expect("few drives")));
    drives.map(|drive| content(world, drive, world.drive(drive).spec().capacity)).collect()
}

/// A device of this size with the content of another one, as far as it fits.
fn duplicate(world: &mut World, of: DriveId, capacity: Sectors) -> DriveId {
    let mut bytes = content(world, of, world.drive(of).spec().capacity);
    bytes.resize(usize::try_from(capacity.bytes().get()).expect("a small drive"), 0);
    let drive = world.add_drive(DriveSpec::new(capacity));
    world.drive_mut(drive).poke(DriveLba(0), &bytes);
    drive
}

/// Change both superblocks of a device, and correct their checksums.
fn change_superblocks(world: &mut World, drive: DriveId, change: impl Fn(&mut [u8])) {
    for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
        let at = journal_superblock_lba(copy, JOURNAL).expect("large enough");
        let mut bytes = [0; JOURNAL_BLOCK_BYTES];
        world.drive(drive).peek(at, &mut bytes);
        change(&mut bytes);
        bytes[12..16].fill(0);
        let checksum = !Kernels::detect().crc32c(!0, &bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        world.drive_mut(drive).poke(at, &bytes);
    }
}

/// These devices are refused, the array does not start without its journal, and no byte changes anywhere. After that,
/// the right devices have all acknowledged data.
#[track_caller]
fn is_refused(mut machine: Journalled, devices: &[DriveId], expected: impl Fn(&JournalError) -> bool) {
    let before = all_contents(&machine.rig.world);
    match machine.rig.world.attach_journal(devices) {
        Err(JournalFault::Found(FindError::Journal(_, error) | FindError::Mirrors(error))) => {
            assert!(expected(&error), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    match machine.rig.world.assemble(false) {
        Err(ArrayStartError::Refused(AdminError::Refused(why))) => assert!(why.contains("--journal"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(all_contents(&machine.rig.world) == before, "something was written");
    machine.attach();
    machine.start();
    machine.rig.session.look_at_all(&mut machine.rig.world);
    machine.rig.rest();
    machine.rig.judge();
}

#[test]
fn a_device_that_is_shorter_than_it_was_is_refused_and_so_is_one_that_is_too_short_for_any() {
    for shape in shapes() {
        let _case = Case::new(1, shape);
        for now in [4, 7, 8, 12, 15].map(Sectors::mib) {
            let mut machine = promised_on(shape, Sectors::mib(16));
            let short = duplicate(&mut machine.rig.world, machine.devices[0], now);
            let expected = if now < JOURNAL {
                JournalError::TooSmall(now)
            } else {
                JournalError::DeviceTruncated { made: Sectors::mib(16), now }
            };
            is_refused(machine, &[short], |error| *error == expected);
        }
    }
}

#[test]
fn a_log_of_another_version_is_refused() {
    for version in [0_u32, 2, u32::MAX] {
        let mut machine = promised(shapes()[0], 1);
        let world = &mut machine.rig.world;
        let other = duplicate(world, machine.devices[0], JOURNAL);
        change_superblocks(world, other, |bytes| bytes[8..12].copy_from_slice(&version.to_le_bytes()));
        is_refused(machine, &[other], |error| match *error {
            JournalError::BadField { field: "version", value: 0 } => version == 0,
            JournalError::NewerVersion(found) => found == version,
            _ => false,
        });
    }
}

#[test]
fn no_journal_or_two_of_them_or_the_same_one_twice_is_refused() {
    let mut machine = promised(shapes()[0], 1);
    let blank = machine.rig.world.add_drive(DriveSpec::new(JOURNAL));
    is_refused(machine, &[blank], |error| *error == JournalError::NotAJournal);
    let mut machine = promised(shapes()[0], 2);
    let stranger = machine.rig.world.make_journal(2, JOURNAL)[0];
    let devices = [machine.devices[1], stranger];
    is_refused(machine, &devices, |error| matches!(error, JournalError::NotMirrors { .. }));
    let mut machine = promised(shapes()[0], 2);
    let twin = duplicate(&mut machine.rig.world, machine.devices[1], JOURNAL);
    let devices = [machine.devices[1], twin];
    is_refused(machine, &devices, |error| *error == JournalError::SameMirror(1));
}

/// The places of the valid entries on a device: first byte and length.
fn entries(machine: &mut Journalled) -> Vec<(u64, u64)> {
    let found = machine.rig.world.find_journal(&machine.devices[..1]).expect("it is whole");
    let place = |at: DriveLba, sectors: Sectors| (at.offset().bytes().get(), sectors.bytes().get());
    let ring = found.superblock.ring();
    found.entries.iter().map(|entry| place(ring.start + Sectors(entry.position.0), entry.sectors)).collect()
}

/// Flip one bit of a byte of a device.
fn flip(world: &mut World, drive: DriveId, byte: u64) {
    let drive = world.drive_mut(drive);
    let (lba, within) = (DriveLba(byte / 512), usize::try_from(byte % 512).expect("small"));
    let mut sector = [0; 512];
    drive.peek(lba, &mut sector);
    sector[within] ^= 0x40;
    drive.poke(lba, &sector);
}

/// A journal on one device: a flip in any byte of an entry before the last one is reported as damage. A flip in the
/// last entry may also look like the end of the log, whose write was under way at the power cut.
#[test]
fn a_flip_in_any_byte_of_an_entry_is_reported() {
    let mut machine = promised(shapes()[0], 1);
    let device = machine.devices[0];
    let places = entries(&mut machine);
    assert!(places.len() > 8, "{} entries", places.len());
    let world = &mut machine.rig.world;
    let whole = world.find_journal(&[device]).expect("it is whole");
    for (number, (first, len)) in places.iter().copied().enumerate() {
        let is_last = number + 1 == places.len();
        // All bytes of every header. From the payloads, more bytes in the first and in the last one.
        let step = if is_last || number == 0 { 7 } else { 509 };
        for byte in (first..first + 64).chain((first + 64..first + len).step_by(step)) {
            flip(world, device, byte);
            match world.find_journal(&[device]) {
                Err(JournalFault::Found(FindError::Journal(_, JournalError::Damaged { fault, .. }))) => {
                    assert!(!matches!(fault, EntryFault::Unreadable), "byte {byte}: {fault:?}");
                }
                Ok(found) => {
                    let unchanged = found == whole;
                    let ends_before = is_last && found.entries[..] == whole.entries[..number];
                    assert!(unchanged || ends_before, "byte {byte} of entry {number}");
                    assert!(!unchanged || byte >= first + 64, "byte {byte} of a header counts for nothing");
                }
                other => panic!("byte {byte}: {other:?}"),
            }
            flip(world, device, byte);
        }
    }
    machine.attach();
    machine.start();
    machine.rig.judge();
}

/// With two devices, the other one has the entry.
#[test]
fn a_flip_in_an_entry_of_one_of_two_devices_loses_nothing() {
    let mut machine = promised(shapes()[0], 2);
    let places = entries(&mut machine);
    let (first, len) = *places.last().expect("there are some");
    drop(machine);
    for byte in (0..64).chain((64..len).step_by(997)) {
        let _case = Case::new(1, format!("byte {byte}"));
        let mut machine = promised(shapes()[0], 2);
        let hurt = machine.devices[usize::from(byte % 2 == 0)];
        flip(&mut machine.rig.world, hurt, first + byte);
        machine.attach();
        machine.start();
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// A read of an entry may include sectors that no entry needs. If they cannot be read, the start must not fail.
#[test]
fn a_bad_sector_after_the_log_stops_no_start() {
    for mirrors in [1, 2] {
        for behind in [8, 16, 40, 100] {
            for shape in shapes() {
                let _case = Case::new(behind, shape);
                let mut machine = promised(shape, mirrors);
                let found = machine.rig.world.find_journal(&machine.devices).expect("it is whole");
                let place = found.superblock.ring().drive_lba(found.head.position) + Sectors(behind);
                for device in machine.devices.clone() {
                    machine.rig.world.drive_mut(device).faults.add_defects(place, Sectors(8), Defect::UntilWritten);
                }
                machine.attach();
                machine.start();
                machine.rig.session.look_at_all(&mut machine.rig.world);
                machine.rig.rest();
                machine.rig.judge();
            }
        }
    }
}

/// An unreadable entry is the end of the log only if no later header says that more data was acknowledged. Later
/// headers are read block by block, even if a larger piece has another bad place.
#[test]
fn a_header_between_two_bad_sectors_proves_that_more_was_acknowledged() {
    for shape in shapes() {
        let _case = Case::new(1, shape);
        let mut machine = promised(shape, 1);
        let (device, places) = (machine.devices[0], entries(&mut machine));
        let found = machine.rig.world.find_journal(&[device]).expect("it is whole");
        let entry = DriveLba(places[places.len() / 2].0 / 512);
        let behind = found.superblock.ring().drive_lba(found.head.position) + Sectors(40);
        let faults = &mut machine.rig.world.drive_mut(device).faults;
        for place in [entry, behind] {
            faults.add_defects(place, Sectors(8), Defect::UntilWritten);
        }
        match machine.rig.world.find_journal(&[device]) {
            Err(JournalFault::Found(FindError::Journal(_, JournalError::Damaged { fault, .. }))) => {
                assert_eq!(fault, EntryFault::Unreadable);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Even a device without valid data replaces only the other half of its own journal.
#[test]
fn an_unfinished_device_of_another_journal_is_refused() {
    let mut machine = promised(shapes()[0], 2);
    let world = &mut machine.rig.world;
    let stranger = world.make_journal(2, JOURNAL)[0];
    for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
        let at = journal_superblock_lba(copy, JOURNAL).expect("large enough");
        let mut bytes = [0; JOURNAL_BLOCK_BYTES];
        world.drive(stranger).peek(at, &mut bytes);
        let superblock = JournalSuperblock::decode(&bytes, copy).expect("it was just made");
        JournalSuperblock { unfinished: true, ..superblock }.encode(copy, &mut bytes);
        world.drive_mut(stranger).poke(at, &bytes);
    }
    let devices = [machine.devices[1], stranger];
    is_refused(machine, &devices, |error| matches!(error, JournalError::NotMirrors { .. }));
}

#[test]
fn a_cache_that_the_memory_cannot_hold_and_a_journal_without_one_are_no_limits() {
    let good = limits_with_journal(Bytes::mib(1));
    good.check().expect("tests use it");
    for (limits, word) in [
        (Limits { cache: good.pool, ..good.clone() }, "larger than"),
        (Limits { cache: Bytes(u64::MAX / 4096 * 4096), ..good.clone() }, "larger than"),
        (Limits { cache: Bytes::ZERO, ..good.clone() }, "a journal needs a cache"),
        (Limits { cache: Bytes::kib(8), ..good.clone() }, "at least 16"),
        (Limits { cache: Bytes(1 << 20 | 512), ..good.clone() }, "multiple of 4096"),
    ] {
        let error = limits.check().expect_err(word);
        assert!(error.to_string().contains(word), "{error} has no {word}");
    }
}

#[test]
fn an_impossible_policy_is_refused_and_the_array_continues_as_before() {
    let wished = |write_cache| Policy { write_cache, ..Policy::default() };
    for shape in shapes() {
        let _case = Case::new(1, shape);
        // No cache at all; a cache, but no memory for a journal.
        for (limits, refused) in [
            (Limits::small(), &[WriteCache::Volatile, WriteCache::Journal][..]),
            (Limits { journal: Bytes::ZERO, ..limits_with_journal(Bytes::mib(1)) }, &[WriteCache::Journal][..]),
        ] {
            let mut options = RigOptions::new(1);
            options.world.limits = limits;
            let mut rig = Rig::new(shape, options);
            let (array, before) = (rig.array, rig.status().policy);
            for write_cache in refused {
                let answer = rig.world.admin(AdminCommand::SetPolicy { array, policy: wished(*write_cache) });
                assert!(
                    matches!(answer, Err(AdminError::NotPossible(why)) if why.contains("start it with")),
                    "{answer:?}"
                );
                assert_eq!(rig.status().policy, before);
            }
            let load = Workload::mixed(rig.session.capacity());
            rig.session.run_on(&mut rig.world, &load, 60);
            rig.judge();
        }
    }
}

#[test]
fn a_partial_parity_log_is_for_single_parity_and_excludes_a_bitmap() {
    let drives: Vec<(DriveId, Sectors)> = (0..6).map(|n| (DriveId(n), Sectors::mib(16))).collect();
    for shape in [ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(2), ArrayShape::raid5(4, CHUNK)] {
        for bitmap in [false, true] {
            let options = RigOptions { ppl: true, bitmap, ..RigOptions::new(1) };
            let made = plan_new(&shape, &drives[..usize::from(shape.members)], &options);
            let fits = shape == ArrayShape::raid5(4, CHUNK) && !bitmap;
            let refused = matches!(made, Err(CreateError::NoUse(why)) if why.contains("partial parity log"));
            assert!(made.is_ok() == fits && refused != fits, "{shape}, bitmap {bitmap}: {made:?}");
        }
    }
}
