//! The waits of operations.
//!
//! An operation that cannot continue names its wait, and is in one queue. The event that ends the wait puts it into the
//! queue of ready operations. In debug builds the engine checks, whenever it comes to rest, that no operation waits for
//! a condition that is already met: otherwise a wake-up was forgotten, and the operation might wait forever.

use crate::array::sets::{Change, Changes};
use crate::controller::Controller;
use crate::reason::Reason;

/// The wait of an operation. The rules are those of the write gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Another operation holds a part of its range.
    Range,
    /// There are too few work frames.
    Frames,
    /// Some of its rows must be redone from the journal first.
    Redo,
    /// Rule 1, and rule 5 again: the journal session of the set is beginning or ending.
    Session,
    /// Rule 2: the superblocks do not say yet that the array is active.
    ActiveMark,
    /// Rule 3: the bitmap bits of the range are not durable.
    Bitmap,
    /// Rule 4: the failure of a member is not durable on the others.
    FailureMark,
    /// Rule 5: the journal was lost, and the superblocks do not say yet that it is stale.
    StaleMark,
    /// The journal has no room: rule 5 for the records, and earlier for the room that a write past the cache reserves.
    JournalRoom(Reason),
    /// Rule 5: the journal entry with the records is not durable.
    Entry,
    /// Rule 6: the record in the partial parity log is not durable.
    Record,
    /// Rule 7, and for reads: the table of commands has no room for all members.
    Commands,
    /// The write is done. The failure of a member that lacks it is not durable on the others.
    ReplyMark,
}

impl Wait {
    /// Does this change of the set end the wait, or may it?
    pub(crate) const fn ends_with(self, change: Change) -> bool {
        match self {
            Self::ActiveMark | Self::FailureMark | Self::ReplyMark => matches!(change, Change::Marks | Change::Life),
            Self::Bitmap => matches!(change, Change::Bits | Change::Life),
            Self::Session | Self::StaleMark => matches!(change, Change::Marks | Change::Session | Change::Life),
            Self::Range
            | Self::Frames
            | Self::Redo
            | Self::JournalRoom(_)
            | Self::Entry
            | Self::Record
            | Self::Commands => false,
        }
    }

    /// May one of these changes end the wait?
    pub(crate) fn ends_with_any(self, changes: Changes) -> bool {
        [Change::Marks, Change::Bits, Change::Session, Change::Life]
            .into_iter()
            .any(|change| changes.has(change) && self.ends_with(change))
    }
}

impl Controller {
    /// Call the operations that wait for a change which their set has had, in the order in which their waits began.
    pub(crate) fn wake_changed(&mut self) {
        for _ in 0..self.wait_set.len() {
            let index = self.wait_set.pop().expect("counted");
            let op = &self.ops[index];
            let wait = op.wait.expect("an operation in a queue says what it waits for");
            if wait.ends_with_any(self.sets.get(op.set).changes()) {
                self.ready.push(index);
            } else {
                self.wait_set.push(index);
            }
        }
        self.sets.forget_changes();
    }

    /// Let an operation wait, in the queue of its wait.
    pub(crate) fn hold_op(&mut self, index: u32, wait: Wait) {
        self.ops[index].wait = Some(wait);
        match wait {
            Wait::Session | Wait::ActiveMark | Wait::Bitmap | Wait::FailureMark | Wait::StaleMark | Wait::ReplyMark => {
                self.wait_set.push(index)
            }
            Wait::JournalRoom(reason) => self.wait_for_journal(index, reason),
            Wait::Redo => self.wait_redo.push(index),
            Wait::Commands => self.wait_commands.push(index),
            // The table of ranges, the queue for frames, the journal's group and the log know the operations that wait
            // for them.
            Wait::Range | Wait::Frames | Wait::Entry | Wait::Record => {}
        }
    }

    /// The first operation that waits for a state of its set which has come already.
    pub(crate) fn find_forgotten(&self) -> Option<(u32, Wait)> {
        self.wait_set.iter().find_map(|index| {
            let wait = self.ops[index].wait.expect("an operation in a queue says what it waits for");
            self.is_over(index, wait).then_some((index, wait))
        })
    }

    /// Is the condition of a wait met, as far as it is a state of the set? The other waits end when another operation
    /// releases something.
    fn is_over(&self, index: u32, wait: Wait) -> bool {
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        // A failed set records nothing any more, and a set whose members accept no record refuses the operation.
        let is_refused = set.has_failed() || set.has_stale_metadata();
        match wait {
            Wait::Session => set.has_failed() || !self.is_held_by_session(op),
            Wait::ActiveMark => is_refused || set.mark.is_active(),
            Wait::Bitmap => is_refused || op.are_bits_durable(set),
            Wait::FailureMark | Wait::ReplyMark => is_refused || set.is_failure_durable(),
            Wait::StaleMark => {
                let durable = set.metadata.as_ref().map_or(0, |metadata| metadata.durable());
                let is_marked = set.journal.stale().is_none_or(|generation| durable >= generation);
                is_marked || !set.journal.is_on() || set.has_failed_flush() || set.is_lost()
            }
            Wait::Range
            | Wait::Frames
            | Wait::Redo
            | Wait::JournalRoom(_)
            | Wait::Entry
            | Wait::Record
            | Wait::Commands => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, Level, SetSpec};
    use crate::io::footprint::{Columns, Footprint, StripeRows};
    use crate::io::op::{EntryState, Op, OpKind};
    use crate::io::search::Part;
    use crate::limits::Limits;
    use crate::requests::piece::{Piece, Way};
    use openraid_units::{ArrayId, BlockSize, Sectors, SetId, StripeIndex};

    const CHANGES: [Change; 4] = [Change::Marks, Change::Bits, Change::Session, Change::Life];
    /// Every wait, with the changes among [`CHANGES`] that end it, in order. The waits after the sixth end when another
    /// operation, the journal or a log releases something.
    const TABLE: [(Wait, [bool; 4]); 13] = [
        (Wait::Session, [true, false, true, true]),
        (Wait::ActiveMark, [true, false, false, true]),
        (Wait::Bitmap, [false, true, false, true]),
        (Wait::FailureMark, [true, false, false, true]),
        (Wait::StaleMark, [true, false, true, true]),
        (Wait::ReplyMark, [true, false, false, true]),
        (Wait::Range, [false; 4]),
        (Wait::Frames, [false; 4]),
        (Wait::Redo, [false; 4]),
        (Wait::JournalRoom(Reason::WaitedForJournal), [false; 4]),
        (Wait::Entry, [false; 4]),
        (Wait::Record, [false; 4]),
        (Wait::Commands, [false; 4]),
    ];

    /// A controller with two sets without drives.
    fn controller() -> Controller {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
        let mut controller = Controller::new(Limits::small()).unwrap();
        for number in 0..2 {
            let geometry = Geometry::new(&spec).unwrap();
            let set = controller.new_set(ArrayId(number), geometry, BlockSize::B512, 8);
            controller.sets.put(SetId(number), set);
        }
        controller
    }

    /// An operation on the first rows of the first column of stripe 0.
    fn op(kind: OpKind) -> Op {
        let columns = Columns::Named { first: 0, count: 1 };
        let rows = StripeRows { stripe: StripeIndex(0), part: Part::whole(0, 8), columns };
        Op::new(kind, SetId(0), Footprint::Rows(rows))
    }

    #[test]
    fn each_wait_ends_with_the_changes_of_the_table_and_no_other() {
        for (wait, ends) in TABLE {
            for (change, ends) in CHANGES.into_iter().zip(ends) {
                let mut controller = controller();
                let op = controller.ops.put(op(OpKind::RowWrite)).index;
                controller.hold_op(op, wait);
                let in_queue = controller.wait_set.iter().any(|index| index == op);
                assert_eq!(in_queue, CHANGES.into_iter().any(|change| wait.ends_with(change)), "{wait:?}");
                controller.sets.changed(SetId(1), change);
                controller.wake_changed();
                assert!(controller.ready.is_empty(), "{wait:?} ends with {change:?} of another set");
                controller.sets.changed(SetId(0), change);
                controller.wake_changed();
                assert_eq!(controller.ready.pop(), ends.then_some(op), "{wait:?} and {change:?}");
                // A change is reported once.
                controller.wake_changed();
                assert!(controller.ready.is_empty());
            }
        }
    }

    #[test]
    fn a_release_of_ranges_frames_commands_room_entries_or_redos_wakes_the_operations_that_wait_for_it() {
        let mut controller = controller();
        let hold = |controller: &mut Controller, wait| {
            let op = controller.ops.put(op(OpKind::RowWrite)).index;
            controller.hold_op(op, wait);
            op
        };
        let room = hold(&mut controller, Wait::JournalRoom(Reason::WaitedForJournal));
        controller.wake_journal_waiters();
        assert_eq!((controller.ready.pop(), controller.ready.pop()), (Some(room), None));
        let entry = hold(&mut controller, Wait::Entry);
        controller.ops[entry].entry = EntryState::InGroup(4);
        controller.logged_is_durable(entry);
        assert_eq!((controller.ready.pop(), controller.ready.pop()), (Some(entry), None));
        assert_eq!(controller.ops[entry].entry, EntryState::Through(4));
        let redo = hold(&mut controller, Wait::Redo);
        controller.wake_redo_waiters();
        assert_eq!((controller.ready.pop(), controller.ready.pop()), (Some(redo), None));
        // An operation that ends releases its range, its frames and its place among the commands.
        let first = controller.ops.put(op(OpKind::RowRead)).index;
        let own = controller.ops[first].lock_range();
        assert!(controller.locks.acquire(first, own));
        controller.ops[first].phase = crate::io::op::Phase::Locking;
        let key = controller.pieces.put(Piece::new(0, Way::READ));
        (0..2).for_each(|_| controller.pieces[key.index].begin_op());
        controller.ops[first].works_for = crate::io::op::WorksFor::Piece(key.index);
        controller.sets.get_mut(SetId(0)).begin_op();
        let second = controller.ops.put(op(OpKind::RowWrite)).index;
        assert!(!controller.locks.acquire(second, controller.ops[second].lock_range()));
        controller.ops[second].wait = Some(Wait::Range);
        let commands = hold(&mut controller, Wait::Commands);
        let frames = hold(&mut controller, Wait::Frames);
        controller.wait_frames.push(frames);
        let mut actions = crate::actions::Actions::new(&Limits::small());
        controller.finish_op(first, &mut actions);
        let called: [_; 4] = core::array::from_fn(|_| controller.ready.pop());
        assert_eq!(called, [Some(second), Some(commands), Some(frames), None]);
    }

    #[test]
    fn operations_are_called_in_the_order_in_which_they_began_to_wait() {
        let mut controller = controller();
        let waits = [Wait::Bitmap, Wait::ActiveMark, Wait::Session, Wait::Bitmap, Wait::FailureMark];
        let ops = waits.map(|wait| {
            let op = controller.ops.put(op(OpKind::RowWrite)).index;
            controller.hold_op(op, wait);
            op
        });
        controller.sets.changed(SetId(0), Change::Marks);
        controller.wake_changed();
        let called: [_; 4] = core::array::from_fn(|_| controller.ready.pop());
        assert_eq!(called, [Some(ops[1]), Some(ops[2]), Some(ops[4]), None]);
        controller.sets.changed(SetId(0), Change::Life);
        controller.wake_changed();
        let called: [_; 3] = core::array::from_fn(|_| controller.ready.pop());
        assert_eq!(called, [Some(ops[0]), Some(ops[3]), None]);
    }
}
