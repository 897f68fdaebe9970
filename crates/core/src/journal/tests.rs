//! The journal with sets and drives, but without an engine.

use alloc::vec;
use alloc::vec::Vec;
use openraid_format::{
    JournalArray, JournalArrayState, JournalSuperblock, RingSector, SuperblockCopy, Uuid, JOURNAL_BLOCK_BYTES,
};
use openraid_units::{ArrayId, BlockSize, Bytes, DriveId, Nanos, Sectors, SetId, SetLba};

use super::devices::{Device, DeviceState};
use super::join::JoinState;
use super::log_entries::Entry;
use super::{Journal, JournalLoss, JournalState};
use crate::actions::{Actions, DriveOp, ReplyStatus};
use crate::array::fixture::metadata;
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::array::volume::Volume;
use crate::call::{Base, Call};
use crate::events::DriveInfo;
use crate::geometry::shape::{Shape, Side};
use crate::geometry::{Geometry, Level, SetSpec};
use crate::io::state::command::JournalWrite;
use crate::io::state::footprint::Extent;
use crate::journal::journal_lost::end_of_orphans;
use crate::journal::redo::fragments;
use crate::journal::session::hurry_destage;
use crate::journal::set_journal::{Demand, SetState, Share, Stage};
use crate::limits::Limits;
use crate::test_random::draws;

const SET: SetId = SetId(0);
const UUID: Uuid = Uuid([9; 16]);

/// A live journal on two devices in these states.
fn mirrored(states: [DeviceState; 2]) -> Journal {
    let mut journal = Journal::of_ring(Sectors(8192));
    journal.superblock.as_mut().unwrap().mirrors = 2;
    journal.devices = (0..2_u8).zip(states).map(|(n, state)| Device::new(DriveId(n.into()), n, state)).collect();
    journal
}

/// Two drives of the size of the journal's devices.
fn drives() -> (Base, Actions) {
    let mut base = Base::new(Limits::small());
    let info = DriveInfo {
        capacity: Bytes::mib(64).sectors_floor(),
        block: BlockSize::B512,
        rotational: false,
        discard: false,
        discard_zeroes: false,
        write_zeroes: false,
        room_wait: Nanos::ZERO,
        flush_waits: false,
    };
    assert!((0..2).all(|drive| base.channels.attach(DriveId(drive), info)));
    let actions = Actions::new(&base.limits);
    (base, actions)
}

/// A set of this level, without members.
fn set(level: Level, members: u16, layout: u32) -> Set {
    let member_size = Sectors(512);
    let member_sizes = &vec![member_size; members.into()][..];
    let spec = SetSpec { level, members, chunk: Sectors(8), layout, member_size, member_sizes };
    Set::new(ArrayId(0), Shape::of(&spec), (BlockSize::B512, 8), &Limits::small())
}

/// A mirror with superblocks.
fn mirror() -> Set {
    let mut set = set(Level::Raid1, 2, 0);
    set.metadata = Some(metadata());
    set
}

/// The mirror in a session that is on, in place 0 of the journal's table.
fn in_session(journal: &mut Journal) -> Set {
    let array = JournalArray { set_uuid: UUID, state: JournalArrayState::Live, first_sequence: 2 };
    journal.superblock.as_mut().unwrap().arrays[0] = Some(array);
    let mut set = mirror();
    set.journal.make_on(Share::new(Uuid([7; 16]), 0, 2));
    set
}

fn push_entries(journal: &mut Journal, entries: &[u64]) {
    for sectors in entries {
        let entry = Entry { position: journal.head.0, sectors: *sectors, pins: 0, lines: 0, waiting: 0 };
        journal.log.push(entry);
        journal.head = journal.ring().behind(journal.head, Sectors(*sectors));
    }
    journal.durable = journal.log.next() - 1;
}

// ---- devices

#[test]
fn a_device_is_dropped_once_and_the_other_one_is_the_whole_journal_before_anything_more_is_acknowledged() {
    use DeviceState::{Dropped, Joins, Works};
    // States, progress of a join, the device that fails: does the journal continue, and does its epoch rise?
    let table = [
        ([Works, Works], JoinState::Idle, 0, Some(true), true),
        ([Works, Works], JoinState::Idle, 1, Some(true), true),
        ([Works, Joins], JoinState::Copying, 1, Some(true), false),
        ([Works, Joins], JoinState::Announcing(1), 1, Some(true), true),
        ([Works, Joins], JoinState::Finishing(1), 1, Some(true), true),
        ([Works, Joins], JoinState::Copying, 0, Some(false), false),
        ([Works, Dropped], JoinState::Idle, 0, Some(false), false),
        ([Works, Dropped], JoinState::Idle, 1, None, false),
    ];
    for (states, join, failed, continues, rises) in table {
        let mut journal = mirrored(states);
        journal.join.set_state(join, 1);
        let epoch = journal.superblock.as_ref().unwrap().epoch;
        let dropped = journal.take_out(failed);
        assert_eq!(dropped.map(|(drive, continues)| (usize::from(drive.0), continues)), continues.map(|c| (failed, c)));
        let superblock = journal.superblock.as_ref().unwrap();
        assert_eq!(superblock.epoch - epoch, u64::from(rises), "{states:?} {join:?} {failed}");
        assert_eq!(
            (superblock.mirrors == 1, journal.is_epoch_pending()),
            (rises, rises),
            "{states:?} {join:?} {failed}"
        );
        assert!(journal.take_out(failed).is_none() && !journal.is_written(failed));
        if continues == Some(true) {
            assert!(!journal.join.is_active() && journal.is_written(1 - failed));
            assert!(!rises || journal.devices[1 - failed].mirror == 0);
        }
    }
}

#[test]
fn new_entries_go_to_a_joining_device_from_the_beginning_of_the_copy() {
    let (works, joins) = (DeviceState::Works, DeviceState::Joins);
    let copying = [JoinState::Copying, JoinState::Announcing(1), JoinState::Finishing(1)];
    let marking =
        [JoinState::Marking(SuperblockCopy::First), JoinState::Marking(SuperblockCopy::Last), JoinState::Marked];
    for (state, written) in copying.map(|s| (s, 2)).into_iter().chain(marking.map(|s| (s, 1))) {
        let (mut base, mut actions) = drives();
        let mut journal = mirrored([works, joins]);
        journal.join.set_state(state, 1);
        let at = journal.ring().drive_lba(RingSector(16));
        let call = &mut Call::new(&mut base, &mut actions);
        journal.write_block(JournalWrite::Group, at, &[5; JOURNAL_BLOCK_BYTES], call);
        let issued: Vec<_> =
            actions.drive.iter().map(|command| (command.drive.0, command.op, command.lba, command.len)).collect();
        let write = DriveOp::Write { fua: true };
        assert_eq!(issued, [(0, write, at, Sectors(8)), (1, write, at, Sectors(8))][..written], "{state:?}");
        assert_eq!((actions.metadata.len(), journal.flying.pending as usize), (written * JOURNAL_BLOCK_BYTES, written));
    }
}

#[test]
fn both_copies_of_a_superblock_have_one_generation_and_the_last_follows_the_first_on_all_devices() {
    let (mut base, mut actions) = drives();
    let mut journal = mirrored([DeviceState::Works; 2]);
    journal.state = JournalState::Opening;
    journal.superblock.as_mut().unwrap().clean = false;
    let call = &mut Call::new(&mut base, &mut actions);
    assert!(!journal.pump_superblock(call), "nothing has changed");
    let generation = journal.request_superblock();
    assert!(journal.pump_superblock(call) && !journal.pump_superblock(call), "one at a time");
    assert!(!journal.superblock_written(call), "the other device has no first copy yet");
    // A change during the write is not in the last copy.
    journal.superblock.as_mut().unwrap().clean = true;
    assert!(!journal.superblock_written(call) && !journal.superblock_written(call));
    assert!(!journal.is_live() && !journal.writing.is_durable(generation));
    assert!(journal.superblock_written(call) && journal.is_live() && journal.writing.is_durable(generation));
    let drives: Vec<_> = actions.drive.iter().map(|command| command.drive.0).collect();
    assert_eq!(drives, [0, 1, 0, 1]);
    let copies = [SuperblockCopy::First, SuperblockCopy::First, SuperblockCopy::Last, SuperblockCopy::Last];
    for (number, (bytes, copy)) in actions.metadata.chunks(JOURNAL_BLOCK_BYTES).zip(copies).enumerate() {
        let found = JournalSuperblock::decode(bytes, copy).unwrap();
        assert_eq!((usize::from(found.mirror), found.clean), (number % 2, false));
        assert_eq!(found.generation, journal.superblock.as_ref().unwrap().generation);
    }
}

// ---- a device that joins

#[test]
fn the_last_copy_on_a_device_that_joins_has_a_higher_generation_than_the_first_and_both_are_above_all_that_it_has_seen()
{
    let (mut base, mut actions) = drives();
    let mut journal = mirrored([DeviceState::Works, DeviceState::Dropped]);
    let mut sets = Sets::new();
    journal.begin_join((&mut base.channels, &mut sets), DriveId(1), (40, 3)).unwrap();
    for _ in 0..2 {
        let call = &mut Call::new(&mut base, &mut actions);
        assert!(journal.pump_join(&mut sets, call));
        assert!(!journal.pump_join(&mut sets, call), "one copy at a time");
        // Between the copies the journal goes on: its tail may move.
        journal.superblock.as_mut().unwrap().tail.sequence += 1;
        journal.join_written();
    }
    let copies = [SuperblockCopy::First, SuperblockCopy::Last];
    let found = actions.metadata.chunks(JOURNAL_BLOCK_BYTES).zip(copies);
    let found: Vec<_> = found.map(|(bytes, copy)| JournalSuperblock::decode(bytes, copy).unwrap()).collect();
    assert_ne!(found[0].tail, found[1].tail, "they differ, so one generation would name two contents");
    assert_eq!([found[0].generation, found[1].generation], [41, 42]);
    assert!(
        actions.drive.iter().all(|command| command.drive == DriveId(1))
            && found.iter().all(|superblock| superblock.unfinished)
    );
}

#[test]
fn each_sector_of_the_log_is_copied_once_the_kept_ones_first_and_no_piece_is_longer_than_the_window() {
    let mut random = draws(5);
    for _ in 0..40 {
        let mut journal = mirrored([DeviceState::Works, DeviceState::Joins]);
        let window = journal.payload_max();
        // The entries begin somewhere in the ring. A filler ends at the end of the ring.
        journal.head = RingSector(random(1000) * 8);
        for _ in 0..10 + random(30) {
            let to_end = journal.ring().to_end(journal.head).get();
            let sectors = if to_end < 136 { to_end } else { 8 * (1 + random(17)) };
            push_entries(&mut journal, &[sectors]);
        }
        let kept = Sectors(8 * random(60));
        journal.spill.attach(kept);
        let ring = journal.ring();
        let (area, _) = journal.superblock.as_ref().unwrap().keep_area();
        let mut expected: Vec<_> = (0..kept.get()).map(|n| area + Sectors(n)).collect();
        for sequence in 1..journal.log.next() {
            let entry = journal.log.get(sequence);
            expected.extend((0..entry.sectors).map(|n| ring.drive_lba(RingSector(entry.position)) + Sectors(n)));
        }
        journal.join.set_state(JoinState::Marked, 1);
        journal.begin_copying();
        let mut copied = Vec::new();
        while let Some((at, len)) = journal.next_to_copy() {
            assert!(!len.is_zero() && len <= window);
            copied.extend((0..len.get()).map(|n| at + Sectors(n)));
            // The tail stays before the first entry that is not copied completely.
            let held = journal.log.get(journal.join.holds_tail());
            let done = copied.len() as u64 - len.get();
            let before: u64 = (1..journal.join.holds_tail()).map(|sequence| journal.log.get(sequence).sectors).sum();
            assert!(kept.get() + before <= done.max(kept.get()) && (done <= kept.get() || held.sectors > 0));
            journal.join.issued();
            journal.join_written();
        }
        assert_eq!(copied, expected);
        let status = journal.join_status().unwrap();
        assert_eq!((status.copied, status.total), (Sectors(expected.len() as u64), status.copied));
    }
}

// ---- a journal that is lost

#[test]
fn pieces_and_operations_of_a_lost_journal_wait_for_no_entry_any_more() {
    let (mut journal, mut sets) = (mirrored([DeviceState::Works; 2]), Sets::new());
    for (group, number) in [(&mut journal.flying, 1), (&mut journal.open, 2)] {
        group.sequence = number;
        group.ops.push(u32::try_from(number).unwrap());
        group.pieces.push(10 * u32::try_from(number).unwrap());
    }
    journal.flying.pending = 1;
    let given_out = |journal: &mut Journal| {
        let mut ops = Vec::new();
        journal.give_out_ended(|piece| panic!("{piece} waits with the orphans"), |op| ops.push(op));
        ops
    };
    for why in [JournalLoss::Full, JournalLoss::Device] {
        journal.lose(why, &mut sets);
    }
    assert_eq!(journal.state(), JournalState::Lost(JournalLoss::Full), "it is lost once");
    assert_eq!([(); 3].map(|()| sets.take_signal()), [Some(Signal::EntriesEnded), Some(Signal::Changed), None]);
    assert_eq!((given_out(&mut journal), &journal.orphans[..]), (vec![2], &[20][..]));
    // A drive may still read the other group.
    journal.flying.pending = 0;
    journal.orphan_groups(&mut sets);
    assert_eq!((given_out(&mut journal), &journal.orphans[..]), (vec![1], &[20, 10][..]));
    assert!(given_out(&mut journal).is_empty() && !journal.flying.is_used() && !journal.open.is_used());
    assert!(journal.release_orphans(|piece| piece == 20) && !journal.release_orphans(|_| true));
    assert_eq!(journal.orphans, [20]);
}

#[test]
fn entries_of_a_failed_set_wait_for_it_if_its_superblocks_may_have_the_mark_and_they_count() {
    let mut journal = mirrored([DeviceState::Works; 2]);
    let mut set = in_session(&mut journal);
    push_entries(&mut journal, &[8, 8, 8]);
    let SetState::Marked(on) = set.journal.state else { unreachable!() };
    let stages = [Stage::On, Stage::Marking(1), Stage::Leaving { covers_all: true }, Stage::Unmarking(1)];
    let others = [Stage::Replaying, Stage::Refused("no")];
    for (stage, waits) in stages.map(|stage| (stage, true)).into_iter().chain(others.map(|stage| (stage, false))) {
        journal.log.end_array_entries(0);
        set.journal.set_state(SetState::Marked(super::set_journal::Marked { stage, ..on }));
        assert_eq!(
            (journal.wait_for_set_to_return(&set), journal.log.waiting_for(0)),
            (waits, if waits { 2 } else { 0 })
        );
        assert_eq!(journal.preserve_entries(&set), waits, "{stage:?}");
    }
    set.journal.set_state(SetState::Marked(on));
    journal.log.end_array_entries(0);
    let refuses = |journal: &mut Journal| !journal.wait_for_set_to_return(&set) && journal.log.waiting_for(0) == 0;
    let place = |journal: &mut Journal, set_uuid, state| {
        journal.superblock.as_mut().unwrap().arrays[0] = Some(JournalArray { set_uuid, state, first_sequence: 2 });
    };
    place(&mut journal, UUID, JournalArrayState::Discarded);
    assert!(refuses(&mut journal));
    place(&mut journal, Uuid([8; 16]), JournalArrayState::Live);
    assert!(refuses(&mut journal), "another set has the place");
    place(&mut journal, UUID, JournalArrayState::Live);
    journal.state = JournalState::Lost(JournalLoss::Device);
    assert!(refuses(&mut journal), "its entries cannot be read");
}

#[test]
fn a_write_without_its_entry_ends_after_the_session_and_the_dirty_data_of_its_array() {
    let mut journal = mirrored([DeviceState::Works; 2]);
    let (failed, open) = (Some(Some(ReplyStatus::IoError)), Some(None));
    let end = |set: Set| {
        let mut sets = Sets::new();
        sets.put(SET, set);
        end_of_orphans(&sets, &Volume::Direct(SET))
    };
    assert_eq!(end(mirror()), open);
    let mut set = mirror();
    set.fail();
    assert_eq!(end(set), failed);
    // A set without members is lost: its session stays, and is replayed at the next start.
    assert_eq!(end(in_session(&mut journal)), failed);
    let mut set = in_session(&mut journal);
    set.fail();
    assert_eq!(end(set), failed);
}

// ---- sessions and rows

#[test]
fn a_session_ends_with_its_place_in_the_table_and_a_mark_that_is_being_cleared_is_waited_for() {
    let mut journal = mirrored([DeviceState::Works; 2]);
    let mut sets = Sets::new();
    let set = in_session(&mut journal);
    sets.put(SET, set);
    assert!(hurry_destage(&mut sets, SET) && !hurry_destage(&mut sets, SET));
    assert!(journal.end_session(&mut sets, SET));
    // Destage hurries, waits for the age of dirty data again, and the session has changed.
    let signals = [Some(Signal::PaceChanged), Some(Signal::PaceChanged), Some(Signal::Changed), None];
    assert_eq!([(); 4].map(|()| sets.take_signal()), signals);
    assert_eq!(sets.get(SET).journal.state, SetState::Off(Demand::None));
    assert_eq!(journal.superblock.as_ref().unwrap().arrays[0], None);
    // The place belongs to another set now: it stays.
    let other = JournalArray { set_uuid: Uuid([8; 16]), state: JournalArrayState::Live, first_sequence: 5 };
    journal.superblock.as_mut().unwrap().arrays[0] = Some(other);
    sets.get_mut(SET).journal.make_on(Share::new(Uuid([7; 16]), 0, 2));
    journal.end_session(&mut sets, SET);
    assert_eq!(journal.superblock.as_ref().unwrap().arrays[0], Some(other));
}

#[test]
fn each_sector_of_an_extent_is_logged_for_each_of_its_copies() {
    let sets =
        [set(Level::Raid0, 3, 0), set(Level::Raid1, 3, 0), set(Level::Raid10, 4, 0x102), set(Level::Raid10, 5, 0x201)];
    for set in &sets {
        for (at, len) in [(0, 1), (3, 60), (8, 8), (15, 129)] {
            let extent = Extent::new(Side::Old, SetLba(at), Sectors(len));
            let mut logged: Vec<_> = fragments(set, extent)
                .flat_map(|(slot, lba, done, sectors)| {
                    (0..sectors.get()).map(move |n| (done.get() + n, slot, lba.get() + n))
                })
                .collect();
            let mut expected: Vec<_> = (0..len)
                .flat_map(|n| match set.shape().on(Side::Old) {
                    Geometry::Striped(striped) => {
                        vec![(n, striped.map(SetLba(at + n)).slot, striped.map(SetLba(at + n)).lba.get())]
                    }
                    Geometry::Mirror(mirror) => {
                        mirror.copies(SetLba(at + n)).map(|copy| (n, copy.slot, copy.lba.get())).collect()
                    }
                    _ => unreachable!("no other level is here"),
                })
                .collect();
            logged.sort_unstable();
            expected.sort_unstable();
            assert_eq!(logged, expected, "{:?} {at} {len}", set.shape());
        }
    }
}
