//! Each wait with each event that ends it: as a table for the changes of a set, and through the engine's messages.

extern crate std;

use openraid_units::{ArrayId, BlockSize, Sectors, SetId, StripeIndex, Token};
use std::vec::Vec;

use super::*;
use crate::actions::ReplyStatus;
use crate::controller::Controller;
use crate::events::DriveError;
use crate::geometry::shape::{Shape, Side};
use crate::geometry::{Level, SetSpec};
use crate::io::state::footprint::{Columns, Footprint, StripeRows};
use crate::io::state::op::Phase;
use crate::io::state::op::{EntryState, Op, OpKind};
use crate::io::state::search::Part;
use crate::io::steps::fixture::Drives;
use crate::io::steps::redo_op::wake_redo_waiters;
use crate::journal::commit::entry_ended;
use crate::limits::Limits;

/// The changes of its set that end a wait. The other waits end when another operation, the journal or a log releases
/// something: their events follow below.
const fn changes_that_end(wait: Wait) -> &'static [AwaitedChange] {
    match wait {
        Wait::Session | Wait::StaleMark => &[AwaitedChange::Marks, AwaitedChange::Session, AwaitedChange::Life],
        Wait::ActiveMark | Wait::FailureMark | Wait::ReplyMark => &[AwaitedChange::Marks, AwaitedChange::Life],
        Wait::Bitmap => &[AwaitedChange::Bits, AwaitedChange::Life],
        Wait::Range
        | Wait::Frames(_)
        | Wait::Redo
        | Wait::JournalRoom(_)
        | Wait::Entry
        | Wait::Record
        | Wait::Commands => &[],
    }
}

/// A controller with two sets without drives.
fn controller() -> Controller {
    let member_size = Sectors(512);
    let member_sizes = &[member_size; 4];
    let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
    let mut controller = Controller::new(Limits::small()).unwrap();
    for number in 0..2 {
        let shape = Shape::of(&spec);
        let set = crate::array::set::Set::new(ArrayId(number), shape, (BlockSize::B512, 8), &Limits::small());
        controller.sets.put(SetId(number), set);
    }
    controller
}

/// An operation on the first rows of the first column of stripe 0.
fn op(kind: OpKind) -> Op {
    let columns = Columns::Named { first: 0, count: 1 };
    let rows = StripeRows { side: Side::Old, stripe: StripeIndex(0), part: Part::whole(0, 8), columns };
    Op::new(kind, SetId(0), Footprint::Rows(rows))
}

#[test]
fn each_wait_ends_with_the_changes_of_the_table_and_no_other() {
    for wait in Wait::ALL.iter().copied() {
        for change in AwaitedChange::ALL.iter().copied() {
            let ends = changes_that_end(wait).contains(&change);
            let mut controller = controller();
            let op = controller.ops.put(op(OpKind::RowWrite)).index;
            controller.ops.hold_op(op, wait);
            let queues = controller.ops.queues();
            let (_, queue) = queues.iter().find(|(name, _)| *name == "for a change of the set").unwrap();
            let in_queue = queue.iter().any(|index| index == op);
            assert_eq!(in_queue, !changes_that_end(wait).is_empty(), "{wait:?}");
            controller.sets.changed(SetId(1), change);
            controller.ops.wake_changed(&mut controller.sets);
            assert!(!controller.ops.has_ready(), "{wait:?} ends with {change:?} of another set");
            controller.sets.changed(SetId(0), change);
            controller.ops.wake_changed(&mut controller.sets);
            assert_eq!(controller.ops.next_ready(), ends.then_some(op), "{wait:?} and {change:?}");
            // A change is reported once.
            controller.ops.wake_changed(&mut controller.sets);
            assert!(!controller.ops.has_ready());
        }
    }
}

#[test]
fn room_entries_and_redos_of_the_journal_call_the_operations_that_wait_for_them() {
    let mut controller = controller();
    let hold = |controller: &mut Controller, wait| {
        let op = controller.ops.put(op(OpKind::RowWrite)).index;
        controller.ops.hold_op(op, wait);
        op
    };
    let room = hold(&mut controller, Wait::JournalRoom(Reason::WaitedForJournal));
    controller.wake_journal_waiters();
    assert_eq!((controller.ops.next_ready(), controller.ops.next_ready()), (Some(room), None));
    let entry = hold(&mut controller, Wait::Entry);
    controller.ops[entry].entry = EntryState::InGroup(4);
    entry_ended(&mut controller.ops, entry, &mut controller.base.trace);
    assert_eq!((controller.ops.next_ready(), controller.ops.next_ready()), (Some(entry), None));
    assert_eq!(controller.ops[entry].entry, EntryState::Through(4));
    let redo = hold(&mut controller, Wait::Redo);
    wake_redo_waiters(&mut controller.ops, &mut controller.sets);
    assert_eq!((controller.ops.next_ready(), controller.ops.next_ready()), (Some(redo), None));
}

#[test]
fn operations_are_called_in_the_order_in_which_they_began_to_wait() {
    let mut controller = controller();
    let waits = [Wait::Bitmap, Wait::ActiveMark, Wait::Session, Wait::Bitmap, Wait::FailureMark];
    let ops = waits.map(|wait| {
        let op = controller.ops.put(op(OpKind::RowWrite)).index;
        controller.ops.hold_op(op, wait);
        op
    });
    controller.sets.changed(SetId(0), AwaitedChange::Marks);
    controller.ops.wake_changed(&mut controller.sets);
    let called: [_; 4] = core::array::from_fn(|_| controller.ops.next_ready());
    assert_eq!(called, [Some(ops[1]), Some(ops[2]), Some(ops[4]), None]);
    controller.sets.changed(SetId(0), AwaitedChange::Life);
    controller.ops.wake_changed(&mut controller.sets);
    let called: [_; 3] = core::array::from_fn(|_| controller.ops.next_ready());
    assert_eq!(called, [Some(ops[0]), Some(ops[3]), None]);
}

const FIRST: Token = Token(10);
const SECOND: Token = Token(11);

#[test]
fn a_write_waits_for_the_active_mark_and_one_of_another_region_for_the_bitmap_until_they_are_durable() {
    let mut drives = Drives::new();
    for (token, offset, wait) in [(FIRST, 0, Wait::ActiveMark), (SECOND, 1 << 30, Wait::Bitmap)] {
        drives.write(token, offset);
        let mut seen = Vec::new();
        while !drives.out.is_empty() {
            drives.answer(|_| Ok(()));
            seen.extend(drives.waits());
        }
        seen.dedup();
        assert_eq!(seen, [wait]);
        assert_eq!(drives.replies.pop(), Some((token, ReplyStatus::Ok)));
    }
}

#[test]
fn a_reply_waits_until_the_failure_of_a_member_is_durable() {
    let mut drives = Drives::new();
    drives.write(FIRST, 0);
    drives.answer_all();
    drives.write(SECOND, 0);
    // The drives answer the reads, then one refuses a write.
    drives.answer(|_| Ok(()));
    let refuses = drives.out[0].tag;
    drives.answer(|command| if command.tag == refuses { Err(DriveError::Gone) } else { Ok(()) });
    assert_eq!(drives.waits(), [Wait::ReplyMark]);
    drives.answer_all();
    assert_eq!(drives.replies, [(FIRST, ReplyStatus::Ok), (SECOND, ReplyStatus::Ok)]);
}

/// An array with two writes: no drive has answered the first one, and the second one waits.
fn held(wait: Wait) -> Drives {
    let mut drives = Drives::new();
    drives.write(Token(1), 0);
    drives.answer_all();
    drives.replies.clear();
    drives.write(FIRST, 0);
    let same = wait == Wait::Range;
    match wait {
        Wait::Range => {}
        Wait::Frames(_) => drives.take_frames(),
        Wait::Commands => drives.fill_commands(),
        _ => unreachable!("not in this table"),
    }
    drives.write(SECOND, if same { 0 } else { 1 << 20 });
    assert_eq!(drives.waits(), [wait]);
    drives
}

#[test]
fn an_operation_that_ends_calls_the_one_that_waits_for_its_range_its_frames_or_its_place() {
    for wait in [Wait::Range, Wait::Frames(8192), Wait::Commands] {
        let mut drives = held(wait);
        drives.answer_all();
        assert_eq!(drives.replies, [(FIRST, ReplyStatus::Ok), (SECOND, ReplyStatus::Ok)], "{wait:?}");
    }
}

#[test]
fn a_given_up_command_that_comes_back_calls_the_operation_that_waits_for_its_frames_or_its_place() {
    for wait in [Wait::Frames(8192), Wait::Commands] {
        let mut drives = Drives::new();
        drives.write(FIRST, 0);
        while drives.controller.ops.iter().all(|(_, op)| op.phase != Phase::ReadingOld) {
            drives.answer(|_| Ok(()));
        }
        let given_up = drives.give_up();
        assert_eq!(drives.replies, [(FIRST, ReplyStatus::Ok)]);
        match wait {
            Wait::Frames(_) => drives.take_frames(),
            _ => drives.fill_commands(),
        }
        drives.write(SECOND, 0);
        drives.answer_all();
        assert!(matches!(
            (drives.waits()[..].first(), wait),
            (Some(Wait::Frames(_)), Wait::Frames(_)) | (Some(Wait::Commands), Wait::Commands)
        ));
        drives.out = given_up;
        drives.answer_all();
        assert_eq!(drives.replies, [(FIRST, ReplyStatus::Ok), (SECOND, ReplyStatus::Ok)], "{wait:?}");
    }
}
