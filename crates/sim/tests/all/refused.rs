//! Dirty data that members refuse does not delay other writes or a stop of the array.

use crate::support::journalled::{attach_journal, limits_with_journal};
use openraid_core::actions::{NoticeKind, ReplyStatus};
use openraid_core::admin::{AdminCommand, JournalLoss, JournalState, Policy, WriteCache};
use openraid_core::events::{DriveError, RequestKind};
use openraid_core::geometry::Level;
use openraid_sim::drive::DriveSpec;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{ArrayId, Bytes, Nanos, Sectors};

/// Bytes of a chunk.
const CHUNK: u64 = 64 << 10;
/// Much longer than any step of these tests, and much shorter than a drive may be silent.
const SOON: Nanos = Nanos::from_secs(5);

/// Longer than the delay of dirty data on drives other than disks.
const PATIENCE: Nanos = Nanos::from_secs(25);
/// Limit of the pause after refused writes.
const REST_MOST: Nanos = Nanos::from_secs(180);

/// A RAID 0 of two drives with a cache. The second drive refuses writes, and its data is dirty.
fn with_something_refused(seed: u64) -> Rig {
    let mut options = RigOptions { write_cache: WriteCache::Volatile, ..RigOptions::new(seed) };
    options.world.limits = limits_with_journal(Bytes::mib(1));
    let shape = ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(64));
    let mut rig = Rig::new(shape, options);
    let second = rig.drives[1];
    rig.world.drive_mut(second).faults.writes = Some(DriveError::ReadOnly);
    rig.world.write(rig.array, CHUNK, &[0x11; 4096]).expect("the cache takes it");
    rig.world.run_for(SOON);
    rig
}

#[test]
fn a_journal_that_cannot_begin_keeps_no_write_waiting() {
    let mut rig = with_something_refused(1);
    let devices = rig.world.make_journal(1, Sectors::mib(8));
    attach_journal(&mut rig.world, &devices);
    let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("the policy is taken");
    for (offset, expected) in [(0, ReplyStatus::Ok), (2 * CHUNK, ReplyStatus::Ok), (CHUNK, ReplyStatus::IoError)] {
        let write = RequestKind::Write { fua: false };
        let token = rig.world.submit(rig.array, write, offset, 4096, vec![0x22; 4096]);
        let end = rig.world.run_until(token);
        assert_eq!(end.status, expected, "at {offset}");
        assert!(end.ended.since(end.submitted) < SOON, "at {offset}: {:?}", end.ended.since(end.submitted));
    }
    // When the drive accepts writes again, it gets the dirty data, and the journal protects the array.
    let second = rig.drives[1];
    rig.world.drive_mut(second).faults.writes = None;
    rig.world.run_for(REST_MOST);
    rig.world.write(rig.array, 0, &[0x33; 4096]).expect("it is promised");
    rig.world.run_for(SOON);
    rig.world.write(rig.array, 0, &[0x44; 4096]).expect("it is promised");
    assert!(rig.world.controller().is_promising(rig.array));
}

#[test]
fn refused_data_rests_ever_longer_and_is_tried_on_request() {
    let mut rig = with_something_refused(4);
    let writes = |rig: &Rig| rig.status().members[1].writes;
    rig.world.run_for(PATIENCE);
    let mut tries = Vec::new();
    for _ in 0..8 {
        let before = writes(&rig);
        rig.world.run_for(REST_MOST);
        tries.push(writes(&rig) - before);
    }
    // After 20 s for the first time; then after 20, 40, 80, 160 s, and after 180 s from then on.
    assert_eq!(tries, [3, 1, 1, 1, 1, 1, 1, 1]);
    let before = writes(&rig);
    assert_eq!(rig.world.flush(rig.array), Err(ReplyStatus::IoError));
    assert_eq!(writes(&rig) - before, 1);
    let second = rig.drives[1];
    rig.world.drive_mut(second).faults.writes = None;
    assert_eq!(rig.world.flush(rig.array), Ok(()));
}

#[test]
fn a_cache_full_of_refused_data_delays_no_acknowledged_write() {
    let mut options = RigOptions { write_cache: WriteCache::Journal, ..RigOptions::new(5) };
    // A large cache: the journal has room for more lines even if the limit of dirty lines is reached.
    options.world.limits = limits_with_journal(Bytes::mib(2));
    let shape = ArrayShape { data: Sectors::mib(4), ..ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(64)) };
    let mut rig = Rig::new(shape, options);
    let devices = rig.world.make_journal(1, Sectors::mib(64));
    attach_journal(&mut rig.world, &devices);
    rig.world.write(rig.array, 0, &[0x11; 4096]).expect("it is promised");
    let second = rig.drives[1];
    rig.world.drive_mut(second).faults.writes = Some(DriveError::ReadOnly);
    let mut ends = Vec::new();
    for turn in 0..60 {
        let bytes = vec![0x22; 64 << 10];
        let at = (2 * turn + 1) * CHUNK;
        let token = rig.world.submit(rig.array, RequestKind::Write { fua: false }, at, CHUNK, bytes);
        let end = rig.world.run_until(token);
        assert!(end.ended.since(end.submitted) < SOON, "write {turn}: {:?}", end.ended.since(end.submitted));
        ends.push(end.status);
    }
    assert_eq!(ends.first(), Some(&ReplyStatus::Ok));
    assert_eq!(ends.last(), Some(&ReplyStatus::IoError));
}

#[test]
fn a_stopped_array_tries_all_dirty_data_once() {
    let mut rig = with_something_refused(2);
    let first = rig.drives[0];
    for stripe in 2..10 {
        rig.world.write(rig.array, stripe * 2 * CHUNK, &[0x55; 4096]).expect("the cache takes it");
    }
    let before = rig.world.now();
    rig.world.admin(AdminCommand::Stop { array: rig.array }).expect("it stops");
    assert!(rig.world.now().since(before) < SOON);
    let lost: Vec<u64> = rig
        .world
        .take_notices()
        .iter()
        .filter_map(|notice| match notice.kind {
            NoticeKind::DirtyLost { sectors } => Some(sectors),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [8], "what the second drive did not take, and nothing else");
    let start = BEFORE_DATA;
    for stripe in 2..10 {
        let mut found = [0; 4096];
        let lba = openraid_units::DriveLba((start + Bytes(stripe * CHUNK).sectors_floor()).get());
        rig.world.drive(first).peek(lba, &mut found);
        assert_eq!(found, [0x55; 4096], "stripe {stripe}");
    }
}

#[test]
fn an_array_that_lost_a_member_fills_the_journal_and_delays_no_request() {
    let mut options = RigOptions { write_cache: WriteCache::Journal, ..RigOptions::new(3) };
    options.world.limits = limits_with_journal(Bytes::mib(1));
    let shape = ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(64));
    let mut rig = Rig::new(shape, options);
    let devices = rig.world.make_journal(1, Sectors::mib(8));
    attach_journal(&mut rig.world, &devices);
    rig.world.write(rig.array, 0, &[0x11; 4096]).expect("it is promised");
    rig.world.write(rig.array, CHUNK, &[0x11; 4096]).expect("it is promised");
    let second = rig.drives[1];
    rig.world.pull(second);
    rig.world.write(rig.array, CHUNK, &[0x22; 4096]).ok();
    let mut ends = Vec::new();
    for turn in 0..400 {
        let write = RequestKind::Write { fua: false };
        let bytes = vec![0x33; 32 << 10];
        let token = rig.world.submit(rig.array, write, turn % 32 * 2 * CHUNK, bytes.len() as u64, bytes);
        let end = rig.world.run_until(token);
        assert!(end.ended.since(end.submitted) < SOON, "write {turn}: {:?}", end.ended.since(end.submitted));
        ends.push(end.status);
    }
    // The journal has the unflushed data of the lost member: the tail does not pass it.
    assert_eq!(rig.world.journal().map(|journal| journal.state), Some(JournalState::Lost(JournalLoss::Full)));
    assert_eq!(ends.first(), Some(&ReplyStatus::Ok));
    assert_eq!(ends.last(), Some(&ReplyStatus::IoError));
}

/// A second array, protected by the cache only, next to the rig's own.
fn beside(rig: &mut Rig, options: &RigOptions) -> ArrayId {
    let shape = ArrayShape { data: Sectors::mib(1), ..ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(64)) };
    let spec = DriveSpec::new(BEFORE_DATA + shape.data);
    let drives: Vec<_> = (0..shape.members).map(|_| rig.world.add_drive(spec)).collect();
    let mut options = options.clone();
    options.world.seed += 1000;
    let array = rig.world.create(&shape, &drives, &options);
    let policy = Policy { write_cache: WriteCache::Volatile, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("there is a cache");
    array
}

/// The time of a write while hosts of another array write every second block of its beginning, one after another. These
/// units of the cache are never full, and never all written.
fn write_beside(rig: &mut Rig, busy: ArrayId, offset: u64, turns: &mut u64) -> Nanos {
    let (write, bytes) = (RequestKind::Write { fua: false }, vec![0x33; 32 << 10]);
    let token = rig.world.submit(rig.array, write, offset, bytes.len() as u64, bytes);
    let begun = rig.world.now();
    while !rig.world.take_finished().any(|(finished, _)| finished == token) {
        rig.world.submit(busy, write, *turns % 64 * 8192, 4096, vec![0x44; 4096]);
        *turns += 1;
        rig.world.run_for(Nanos::from_micros(50));
        assert!(rig.world.now().since(begun) < SOON, "a write at {offset} waits\n{}", rig.world.dump());
    }
    rig.world.now().since(begun)
}

#[test]
fn a_full_journal_delays_no_request_while_an_array_always_has_dirty_data() {
    // First the journal is full of lines for which a replay has no room in the cache, then its ring is full.
    for (pulled, device) in [(false, Sectors::mib(64)), (true, Sectors::mib(8))] {
        let mut options = RigOptions { write_cache: WriteCache::Journal, ..RigOptions::new(6) };
        options.world.limits = limits_with_journal(Bytes::mib(2));
        let shape = ArrayShape { data: Sectors::mib(4), ..ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(64)) };
        let mut rig = Rig::new(shape, options.clone());
        let devices = rig.world.make_journal(1, device);
        attach_journal(&mut rig.world, &devices);
        let busy = beside(&mut rig, &options);
        rig.world.write(rig.array, 0, &[0x11; 4096]).expect("it is promised");
        rig.world.write(rig.array, CHUNK, &[0x11; 4096]).expect("it is promised");
        let second = rig.drives[1];
        if pulled {
            rig.world.pull(second);
        } else {
            rig.world.drive_mut(second).faults.writes = Some(DriveError::ReadOnly);
        }
        rig.world.write(rig.array, CHUNK, &[0x22; 4096]).ok();
        let mut turns = 0;
        for turn in 0..400 {
            write_beside(&mut rig, busy, turn % 32 * 2 * CHUNK, &mut turns);
        }
        assert_eq!(rig.world.journal().map(|journal| journal.state), Some(JournalState::Lost(JournalLoss::Full)));
    }
}
