//! The waits of operations.
//!
//! An operation that cannot continue names its wait, and is in one queue. The event that ends the wait puts it into the
//! queue of ready operations. In debug builds the engine checks, whenever it comes to rest, that no operation waits for
//! a condition that is already met: otherwise a wake-up was forgotten, and the operation might wait forever.

use crate::array::sets::{Change, Changes, Sets};
use crate::io::footprint::narrow;
use crate::io::op_io::OpIo;
use crate::io::ops::Ops;
use crate::journal::Journal;
use crate::ppl::Partial;
use crate::reason::Reason;

macro_rules! waits {
    ($($(#[$doc:meta])* $name:ident $(($kind:ty = $sample:expr))?,)*) => {
        /// The wait of an operation. The rules are those of the write gate.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Wait {
            $($(#[$doc])* $name $(($kind))?,)*
        }
        #[cfg(test)]
        impl Wait {
            /// All of them, with an example of what a wait says besides its name.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name $(($sample))?,)*];
        }
    };
}
waits! {
    /// Another operation holds a part of its range.
    Range,
    /// There are too few work frames for a run of this number of bytes.
    Frames(u64 = 4096),
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
    JournalRoom(Reason = Reason::WaitedForJournal),
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
            | Self::Frames(_)
            | Self::Redo
            | Self::JournalRoom(_)
            | Self::Entry
            | Self::Record
            | Self::Commands => false,
        }
    }

    /// May one of these changes end the wait?
    pub(crate) fn ends_with_any(self, changes: Changes) -> bool {
        Change::ALL.iter().any(|change| changes.has(*change) && self.ends_with(*change))
    }
}

impl Ops {
    /// Call the operations that wait for a change which their set has had, in the order in which their waits began.
    pub(crate) fn wake_changed(&mut self, sets: &mut Sets) {
        self.wake_for_sets(|op| {
            let wait = op.wait.expect("an operation in a queue says what it waits for");
            wait.ends_with_any(sets.get(op.set).changes())
        });
        sets.forget_changes();
    }
}

impl OpIo<'_> {
    /// Let an operation wait for room in the journal.
    pub(crate) fn hold_for_room(&mut self, index: u32, reason: Reason) {
        let stripe = self.ops[index].stripe().map_or(0, |stripe| stripe.0);
        let used = narrow(self.journal.used());
        self.note(index, reason, stripe, used);
        self.ops.hold_op(index, Wait::JournalRoom(reason));
    }
}

impl Ops {
    /// There may be room in the journal: call the operations that wait for it.
    pub(crate) fn wake_for_room(&mut self, journal: &mut Journal, sets: &mut Sets) {
        journal.forget_asked();
        self.wake_for_journal();
        if journal.replay().is_active() {
            sets.look();
        }
    }

    /// Let an operation wait, in the queue of its wait.
    pub(crate) fn hold_op(&mut self, index: u32, wait: Wait) {
        self[index].wait = Some(wait);
        match wait {
            Wait::Session | Wait::ActiveMark | Wait::Bitmap | Wait::FailureMark | Wait::StaleMark | Wait::ReplyMark => {
                self.wait_for_set(index);
            }
            Wait::JournalRoom(_) => self.wait_for_journal(index),
            Wait::Redo => self.wait_for_redo(index),
            Wait::Commands => self.wait_for_commands(index),
            // The table of ranges, the queue for frames, the journal's group and the log know the operations that wait
            // for them.
            Wait::Range | Wait::Frames(_) | Wait::Entry | Wait::Record => {}
        }
    }
}

impl OpIo<'_> {
    /// The first operation that waits for a condition which is met already. In the queues for work frames, for
    /// commands and for room in the journal only the first one counts: the others have their turn after it.
    pub(crate) fn find_forgotten(&self) -> Option<(u32, Wait)> {
        let mut waiting = self.ops.waiting().map(|index| {
            let wait = self.ops[index].wait.expect("an operation in a queue says what it waits for");
            (index, wait)
        });
        waiting.find(|(index, wait)| self.is_over(*index, *wait)).or_else(|| self.find_forgotten_by_parts())
    }

    /// The same for the waits that are known to the table of ranges, the journal's group and the log only. They are
    /// examined while no drive has a command: then nothing but a forgotten wake-up could hold the operation for ever.
    fn find_forgotten_by_parts(&self) -> Option<(u32, Wait)> {
        if self.call.channels().next_deadline().is_some() {
            return None;
        }
        let waiting = self.ops.iter().filter_map(|(index, op)| Some((index, op.wait?)));
        waiting.into_iter().find(|(index, wait)| self.is_over(*index, *wait))
    }

    /// Is the condition of a wait certainly met?
    fn is_over(&self, index: u32, wait: Wait) -> bool {
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        // A failed set records nothing any more, and a set whose members accept no record refuses the operation.
        let is_refused = set.has_failed() || set.has_stale_metadata();
        match wait {
            Wait::Session => set.has_failed() || !self.journal.holds_for_session(set, op),
            Wait::ActiveMark => is_refused || set.mark.is_active(),
            Wait::Bitmap => is_refused || op.are_bits_durable(set),
            Wait::FailureMark | Wait::ReplyMark => is_refused || set.is_failure_durable(),
            Wait::StaleMark => {
                let durable = set.durable_generation();
                let is_marked = set.journal.stale().is_none_or(|generation| durable >= generation);
                is_marked || !set.journal.is_on() || set.has_failed_flush() || set.is_lost()
            }
            Wait::Range => self.ops.locks().is_granted(index),
            // Any other operation calls one that waits for frames or commands when it ends.
            Wait::Frames(bytes) => self.pool.work().has_run(bytes) && self.ops.is_none_at_work(),
            Wait::Redo => !self.sets.is_held_by_redo(self.journal, op),
            // The state of the ring decides more than this.
            Wait::JournalRoom(_) => !self.journal.is_live(),
            Wait::Entry => op.pending == 0 && !op.entry.waits(),
            Wait::Record => op.partial != Partial::Waiting,
            Wait::Commands => self.call.channels().may_issue() && self.ops.is_none_at_work(),
        }
    }
}

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod tests;
