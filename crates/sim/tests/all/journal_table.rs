//! The journal's table of arrays is full. An array without a place gets an error and keeps its policy. It gets the
//! place of an array that was given up.

use crate::support::journalled::{attach_journal, limits_with_journal};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Policy, Unprotected, WriteCache};
use openraid_core::events::DriveError;
use openraid_format::{
    journal_superblock_lba, JournalArray, JournalArrayState, JournalSuperblock, SuperblockCopy, Uuid,
    JOURNAL_ARRAYS_MAX, JOURNAL_BLOCK_BYTES,
};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Bytes, DriveId, Sectors};

const CAPACITY: Sectors = Sectors::mib(8);

fn stranger(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// Absent arrays occupy all places of the table; the log has no data of them.
fn fill_table(rig: &mut Rig, drive: DriveId) {
    let at = |copy| journal_superblock_lba(copy, CAPACITY).expect("large enough");
    let mut bytes = [0; JOURNAL_BLOCK_BYTES];
    rig.world.drive(drive).peek(at(SuperblockCopy::First), &mut bytes);
    let mut superblock = JournalSuperblock::decode(&bytes, SuperblockCopy::First).expect("just made");
    for (number, place) in (100..).zip(&mut superblock.arrays) {
        *place = Some(JournalArray { set_uuid: stranger(number), state: JournalArrayState::Live, first_sequence: 1 });
    }
    for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
        superblock.encode(copy, &mut bytes);
        rig.world.drive_mut(drive).poke(at(copy), &bytes);
    }
}

fn count_full_notices(rig: &mut Rig) -> usize {
    rig.world.take_notices().iter().filter(|notice| notice.kind == NoticeKind::JournalTableFull).count()
}

#[test]
fn a_full_table_is_reported_and_reuses_the_place_of_a_discarded_array() {
    let mut options = RigOptions { cuts: false, ..RigOptions::new(1) };
    options.world.limits = limits_with_journal(Bytes::mib(1));
    let mut rig = Rig::new(ArrayShape::raid5(4, Sectors::kib(16)), options);
    rig.rest();
    let devices = rig.world.make_journal(1, CAPACITY);
    fill_table(&mut rig, devices[0]);
    attach_journal(&mut rig.world, &devices);
    rig.world.take_notices();
    let array = rig.array;
    let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("it has a journal");
    let load = Workload { len_max: 8192, align: 4096, mix: [1, 4, 1, 0, 0], ..Workload::mixed(rig.session.capacity()) };
    rig.session.run(&mut rig.world, &load, 60);
    assert_eq!(rig.world.controller().journal_protection(array), Err(Unprotected::TableFull));
    assert_eq!(count_full_notices(&mut rig), 1, "once");
    assert_eq!(rig.status().policy, policy, "the requested policy is not forgotten");
    // Two arrays are given up. This array gets the older place; the other place stays.
    for number in [107, 103] {
        rig.world.admin(AdminCommand::DiscardJournalled { set_uuid: stranger(number) }).expect("it is not here");
    }
    assert_eq!(rig.world.controller().journal_protection(array), Ok(()));
    rig.session.run(&mut rig.world, &load, 60);
    let known = rig.world.journal().expect("it is there");
    assert!(known.counters.data_records > 0, "the journal acknowledges writes again: {known:?}");
    assert_eq!(known.arrays.len(), JOURNAL_ARRAYS_MAX);
    let has = |uuid| known.arrays.iter().any(|array| array.set_uuid == uuid);
    assert!(!has(stranger(103)) && has(stranger(107)), "the first of two of the same age");
    assert_eq!(count_full_notices(&mut rig), 0);
    // Both are present after a cut.
    rig.session.cut_power(&mut rig.world);
    rig.world.boot();
    attach_journal(&mut rig.world, &devices);
    rig.array = rig.world.assemble(false).unwrap_or_else(|error| panic!("{error}"));
    rig.session.array = rig.array;
    rig.session.look_at_all(&mut rig.world);
    rig.rest();
    rig.judge();
}

/// A reported give-up still holds after a crash at that moment. While the superblocks cannot be written, no array is
/// given up.
#[test]
fn giving_up_is_durable_before_it_is_reported() {
    let mut options = RigOptions { cuts: false, ..RigOptions::new(2) };
    options.world.limits = limits_with_journal(Bytes::mib(1));
    let mut rig = Rig::new(ArrayShape::raid5(4, Sectors::kib(16)), options);
    rig.rest();
    let devices = rig.world.make_journal(1, CAPACITY);
    fill_table(&mut rig, devices[0]);
    attach_journal(&mut rig.world, &devices);
    let state = |rig: &mut Rig, number| {
        let superblock = rig.world.find_journal(&devices).expect("it is whole").superblock;
        superblock.arrays.iter().flatten().find(|array| array.set_uuid == stranger(number)).expect("it is known").state
    };
    assert_eq!(state(&mut rig, 103), JournalArrayState::Live);
    rig.world.admin(AdminCommand::DiscardJournalled { set_uuid: stranger(103) }).expect("it is not here");
    assert_eq!(state(&mut rig, 103), JournalArrayState::Discarded);
    // No device can record it any more. The first attempt detects that, and the second one knows it.
    rig.world.drive_mut(devices[0]).faults.writes = Some(DriveError::ReadOnly);
    for number in [104, 105] {
        let refused = rig.world.admin(AdminCommand::DiscardJournalled { set_uuid: stranger(number) });
        let refused = refused.expect_err("the journal is lost").to_string();
        assert!(refused.contains("the journal is lost"), "{refused}");
    }
    rig.world.drive_mut(devices[0]).faults.writes = None;
    // The effect of the failed write is unknown; the other write was not tried.
    assert_eq!(state(&mut rig, 105), JournalArrayState::Live);
}
