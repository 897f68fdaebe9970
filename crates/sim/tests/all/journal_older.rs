//! Devices of an earlier moment: an older copy of the journal, and an older image of a member. Neither may count once the
//! superblocks of the members have recorded a later moment.

use crate::support;

use crate::support::journalled::{limits_with_journal, Journalled};
use crate::support::{seeds, Case};
use openraid_core::admin::{AdminError, Health, Session};
use openraid_format::JournalReached;
use openraid_sim::drive::image::Image;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Bytes, DriveId, Nanos, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);
const CACHE: Bytes = Bytes::mib(1);
/// How often the superblocks are written while the log grows.
const INTERVAL: Nanos = Nanos::from_millis(2);
/// Requests between two copies.
const BETWEEN: u64 = 24;
const COPIES: usize = 16;

fn shapes() -> [ArrayShape; 4] {
    [
        ArrayShape::raid1(2),
        ArrayShape::raid5(4, CHUNK),
        ArrayShape::raid6(5, CHUNK),
        ArrayShape::raid10(0x102, 4, CHUNK),
    ]
}

/// A machine whose superblocks say often how far the log has come.
fn machine(shape: ArrayShape, seed: u64, mirrors: u8, interval: Nanos) -> Journalled {
    let limits = openraid_core::limits::Limits { position_interval: interval, ..limits_with_journal(CACHE) };
    Journalled::with_limits(shape, RigOptions::new(seed), mirrors, limits)
}

fn write(machine: &mut Journalled, requests: u64) {
    let mixed = Workload::mixed(machine.rig.session.capacity());
    let load = Workload { depth: 4, len_max: 16 << 10, align: 4096, mix: [10, 80, 10, 0, 0], ..mixed };
    machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
}

/// The last durable entry of the log.
fn durable(machine: &Journalled) -> u64 {
    machine.rig.world.journal().expect("it is there").durable
}

/// The content of the devices.
fn images(machine: &Journalled, drives: &[DriveId]) -> Vec<Image> {
    drives.iter().map(|drive| machine.rig.world.drive(*drive).image().clone()).collect()
}

fn put(machine: &mut Journalled, drives: &[DriveId], images: &[Image]) {
    for (drive, image) in drives.iter().zip(images) {
        machine.rig.world.drive_mut(*drive).put_image(image);
    }
}

/// How far the journal has come, as the superblocks of the members say.
fn seen(machine: &Journalled) -> Option<JournalReached> {
    let superblocks = machine.rig.drives.iter().filter_map(|drive| superblock_on(&machine.rig.world, *drive));
    superblocks.filter_map(|superblock| superblock.journal_reached).max()
}

/// All bytes of the members.
fn bytes(machine: &Journalled) -> Vec<Vec<u8>> {
    let content = |drive: &DriveId| {
        let drive = machine.rig.world.drive(*drive);
        let mut bytes = vec![0; usize::try_from(drive.spec().capacity.bytes().get()).expect("small")];
        drive.peek(openraid_units::DriveLba::ZERO, &mut bytes);
        bytes
    };
    machine.rig.drives.iter().map(content).collect()
}

/// A start with these devices of the journal, whose log ends with entry `end`.
fn start_with(machine: &mut Journalled, copy: &[Image]) -> Result<(), ArrayStartError> {
    let devices = machine.devices.clone();
    put(machine, &devices, copy);
    machine.rig.world.boot();
    machine.attach();
    machine.rig.world.assemble(false).map(drop)
}

#[test]
fn an_older_copy_of_the_journal_is_refused_by_name_and_the_right_one_is_taken_afterwards() {
    let (mut refused, mut within) = (0, 0);
    for seed in seeds(3, 40) {
        for (shape, mirrors) in shapes().into_iter().zip([1, 1, 2, 1]) {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed, mirrors, INTERVAL);
            let mut copies = Vec::new();
            for _ in 0..COPIES {
                write(&mut machine, BETWEEN);
                copies.push((durable(&machine), images(&machine, &machine.devices)));
            }
            machine.rig.session.cut_power(&mut machine.rig.world);
            let right = images(&machine, &machine.devices);
            let seen = seen(&machine).expect("a session is on");
            let seen = seen.entry;
            assert!(seen <= copies.last().expect("many").0 + 64, "only durable entries");
            let members = bytes(&machine);
            for (end, copy) in &copies {
                // The entry that the power cut loses may have been the last entry of the copy.
                if *end >= seen {
                    within += 1;
                    continue;
                }
                match start_with(&mut machine, copy) {
                    Err(ArrayStartError::Refused(AdminError::OlderLog(older))) => {
                        assert!(older.ends.entry >= *end && older.ends.entry < seen, "{older}");
                        assert_eq!(older.seen.entry, seen, "{older}");
                        let text = older.to_string();
                        assert!(text.contains("older copy") && text.contains("--journal-lost"), "{text}");
                    }
                    other => panic!("a log that ends at {end}, and members that have seen {seen}: {other:?}"),
                }
                assert!(members == bytes(&machine), "nothing is written to members");
                refused += 1;
                machine.rig.world.cut_power();
            }
            let devices = machine.devices.clone();
            put(&mut machine, &devices, &right);
            machine.boot();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
    assert!(refused > 60 && within > 0, "{refused} refused, {within} within the interval");
}

#[test]
fn a_copy_from_before_the_session_is_refused_whatever_the_interval_is() {
    for shape in shapes() {
        let _case = Case::new(1, shape);
        let mut machine = machine(shape, 1, 1, Nanos::from_secs(1 << 30));
        write(&mut machine, 40);
        let of_session = images(&machine, &machine.devices);
        machine.rig.session.drain(&mut machine.rig.world);
        machine.rig.rest();
        assert_eq!((machine.rig.status().session, seen(&machine)), (Session::Off, None), "{shape}");
        let at_rest = images(&machine, &machine.devices);
        let end = durable(&machine);
        write(&mut machine, 40);
        assert_eq!(seen(&machine).map(|seen| seen.entry), Some(end), "the session began after this entry");
        machine.rig.session.cut_power(&mut machine.rig.world);
        let right = images(&machine, &machine.devices);
        let answer = start_with(&mut machine, &of_session);
        assert!(matches!(answer, Err(ArrayStartError::Refused(AdminError::OlderLog(_)))), "{answer:?}");
        machine.rig.world.cut_power();
        // This copy has everything up to the session, and nothing of the session.
        let answer = start_with(&mut machine, &at_rest);
        let Err(ArrayStartError::Refused(AdminError::OlderLog(older))) = answer else { panic!("{answer:?}") };
        assert!(older.seen.entry == older.ends.entry && older.seen.generation > older.ends.generation, "{older:?}");
        assert!(older.to_string().contains("members have seen generation"), "{older}");
        machine.rig.world.cut_power();
        let devices = machine.devices.clone();
        put(&mut machine, &devices, &right);
        machine.boot();
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// An array that was away while the log grew is compared with the end of the log that was opened, not with what
/// others have written to the older copy since.
#[test]
fn an_older_copy_that_grows_does_not_become_the_right_one() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let mut machine = machine(shape, 5, 1, INTERVAL);
    write(&mut machine, 30);
    let copy = images(&machine, &machine.devices);
    for _ in 0..8 {
        write(&mut machine, BETWEEN);
    }
    machine.rig.session.cut_power(&mut machine.rig.world);
    let seen = seen(&machine).expect("a session is on").entry;
    let devices = machine.devices.clone();
    put(&mut machine, &devices, &copy);
    machine.rig.world.boot();
    machine.attach();
    let others: Vec<DriveId> = (0..2).map(|_| machine.rig.new_drive()).collect();
    let options = RigOptions::new(6);
    let other = machine.rig.world.create(&ArrayShape::raid1(2), &others, &options);
    machine.rig.world.run_for(Nanos::from_secs(5));
    support::journalled::protect(&mut machine.rig.world, other);
    while durable(&machine) <= seen {
        machine.rig.world.write(other, 0, &[7; 4096]).expect("it works");
    }
    let drives = machine.rig.drives.clone();
    let answer = machine.rig.world.assemble_of(&drives, false);
    assert!(matches!(answer, Err(ArrayStartError::Refused(AdminError::OlderLog(_)))), "{answer:?}");
}

#[test]
fn a_member_with_its_own_image_of_two_intervals_ago_is_left_out() {
    let (mut stale, mut kept) = (0, 0);
    for seed in seeds(3, 40) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed, 1, INTERVAL);
            write(&mut machine, BETWEEN);
            let slot = Slot(1);
            let drive = machine.rig.drive_in(slot).expect("it is whole");
            let events = |machine: &Journalled| superblock_on(&machine.rig.world, drive).expect("a member").events;
            let mut older = Vec::new();
            for _ in 0..COPIES {
                write(&mut machine, BETWEEN);
                older.push((events(&machine), images(&machine, &[drive])));
            }
            machine.rig.session.cut_power(&mut machine.rig.world);
            let newest = machine.rig.drives.iter().filter_map(|drive| superblock_on(&machine.rig.world, *drive));
            let newest = newest.map(|superblock| superblock.events).max().expect("members");
            let candidates = older.iter().rev().filter(|(events, _)| events + 1 < newest);
            kept += older.len() - candidates.clone().count();
            let Some((_, image)) = candidates.into_iter().next() else { continue };
            put(&mut machine, &[drive], image);
            machine.boot();
            assert_eq!((machine.rig.health(), machine.rig.drive_in(slot)), (Health::Degraded, None), "{shape}");
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
            stale += 1;
        }
    }
    assert!(stale > 8 && kept > 0, "{stale} left out, {kept} within two events");
}

/// Without a journal nothing else would move the event count while hosts write without a pause.
#[test]
fn without_a_journal_an_image_of_two_intervals_ago_is_left_out_too() {
    let mut stale = 0;
    for seed in seeds(6, 80) {
        for shape in [ArrayShape::raid1(2), ArrayShape::raid1(3), ArrayShape::raid10(0x102, 4, CHUNK)] {
            let _case = Case::new(seed, shape);
            let mut options = RigOptions { cuts: true, bitmap: seed % 2 == 0, ..RigOptions::new(seed) };
            options.world.limits.position_interval = INTERVAL;
            let mut rig = Rig::new(shape, options);
            rig.rest();
            let mixed = Workload::mixed(rig.session.capacity());
            let load = Workload { depth: 4, len_max: 16 << 10, align: 4096, mix: [10, 80, 10, 0, 0], ..mixed };
            rig.session.run_on(&mut rig.world, &load, BETWEEN);
            let slot = Slot(1);
            let drive = rig.drive_in(slot).expect("it is whole");
            let older = rig.world.drive(drive).image().clone();
            let events = superblock_on(&rig.world, drive).expect("a member").events;
            rig.session.run_on(&mut rig.world, &load, 20 * BETWEEN);
            rig.session.cut_power(&mut rig.world);
            let newest = rig.drives.iter().filter_map(|drive| superblock_on(&rig.world, *drive));
            let newest = newest.map(|superblock| superblock.events).max().expect("members");
            assert!(events + 1 < newest, "{events} and {newest}");
            rig.world.drive_mut(drive).put_image(&older);
            rig.boot();
            assert_eq!((rig.health(), rig.drive_in(slot)), (Health::Degraded, None), "{shape}");
            rig.session.look_at_all(&mut rig.world);
            rig.rest();
            rig.judge();
            stale += 1;
        }
    }
    assert!(stale >= 18, "{stale}");
}

#[test]
fn the_superblocks_are_written_once_an_interval_whatever_is_written() {
    for shape in shapes() {
        let _case = Case::new(2, shape);
        let interval = Nanos::from_millis(50);
        let mut machine = machine(shape, 2, 1, interval);
        write(&mut machine, 24);
        let counts = |machine: &Journalled| {
            let newest = machine.rig.drives.iter().filter_map(|drive| superblock_on(&machine.rig.world, *drive));
            let events = newest.map(|superblock| superblock.events).max().expect("members");
            (events, machine.rig.world.now(), durable(machine))
        };
        let (events, begun, first) = counts(&machine);
        while machine.rig.world.now() < begun + Nanos(interval.get() * 8) {
            write(&mut machine, 24);
        }
        let (now, ended, last) = counts(&machine);
        let due = (ended - begun).get() / interval.get();
        let written = now - events;
        assert!(written <= due + 1 && written + 2 >= due, "{written} in {due} intervals");
        assert!(last - first > 50 * written, "{} entries in {written} generations", last - first);
    }
}

/// What the superblocks of a load cost that follow the log: events, writes and flushes of all members.
fn cost(shape: ArrayShape, interval: Nanos) -> (u64, u64, u64) {
    let mut machine = machine(shape, 2, 1, interval);
    write(&mut machine, 24 * 400);
    let newest = machine.rig.drives.iter().filter_map(|drive| superblock_on(&machine.rig.world, *drive));
    let events = newest.map(|superblock| superblock.events).max().expect("members");
    let counters = machine.rig.drives.iter().map(|drive| machine.rig.world.drive(*drive).counters());
    counters.fold((events, 0, 0), |sum, counter| (events, sum.1 + counter.writes, sum.2 + counter.flushes))
}

/// Two runs of one load differ a little in their destage too, so the price is a mean of some hundred generations.
#[test]
fn a_generation_of_superblocks_is_one_write_to_each_member_and_no_flush() {
    for shape in shapes() {
        let _case = Case::new(2, shape);
        let (with, without) = (cost(shape, INTERVAL), cost(shape, Nanos::from_secs(1 << 30)));
        let due = (with.0 - without.0) * u64::from(shape.members);
        let written = with.1 - without.1;
        assert!(due > 500 && written * 10 > due * 8 && written * 10 < due * 12, "{shape}: {written} writes, {due} due");
        assert!(with.2 < without.2 + due / 20, "{shape}: {} flushes, {} without", with.2, without.2);
    }
}
