//! Operations wait for room in the journal, and forgotten waits are found.

use crate::array::sets::Sets;
use crate::io::state::footprint::narrow;
use crate::io::state::op::Partial;
use crate::io::state::ops::Ops;
use crate::io::state::wait::Wait;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::redo_op::is_held_by_redo;
use crate::journal::Journal;
use crate::reason::Reason;

impl OpIo<'_> {
    /// Let an operation wait for room in the journal.
    pub(crate) fn hold_for_room(&mut self, index: u32, reason: Reason) {
        let stripe = self.ops[index].stripe().map_or(0, |stripe| stripe.0);
        let used = narrow(self.journal.used());
        self.note(index, reason, stripe, used);
        self.ops.hold_op(index, Wait::JournalRoom(reason));
    }

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
    pub(super) fn find_forgotten_by_parts(&self) -> Option<(u32, Wait)> {
        if self.call.channels().next_deadline().is_some() {
            return None;
        }
        let waiting = self.ops.iter().filter_map(|(index, op)| Some((index, op.wait?)));
        waiting.into_iter().find(|(index, wait)| self.is_over(*index, *wait))
    }

    /// Is the condition of a wait certainly met?
    pub(super) fn is_over(&self, index: u32, wait: Wait) -> bool {
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
                // A refit goes on without the mark only if no member accepts a record.
                let is_given_up =
                    if op.refused().is_empty() { set.has_failed_flush() || set.is_lost() } else { is_refused };
                is_marked || !set.journal.is_on() || is_given_up
            }
            Wait::Range => self.ops.locks().is_granted(index),
            // Any other operation calls one that waits for frames or commands when it ends.
            Wait::Frames(bytes) => self.pool.work().has_run(bytes) && self.ops.is_none_at_work(),
            Wait::Redo => !is_held_by_redo(self.sets, self.journal, op),
            // The state of the ring decides more than this.
            Wait::JournalRoom(_) => !self.journal.is_live(),
            Wait::Entry => op.pending == 0 && !op.entry.waits(),
            Wait::Record => op.partial != Partial::Waiting,
            Wait::Commands => self.call.channels().may_issue() && self.ops.is_none_at_work(),
        }
    }
}

/// There may be room in the journal: call the operations that wait for it.
pub(crate) fn wake_for_room(ops: &mut Ops, journal: &mut Journal, sets: &mut Sets) {
    journal.forget_asked();
    ops.wake_for_journal();
    if journal.replay().is_active() {
        sets.look();
    }
}
