//! What operations wait for.
//!
//! An operation that cannot go on names what it waits for, and stands in one queue. The event that ends the wait puts it
//! into the queue of ready operations. In debug builds the engine checks whenever it comes to rest that no operation waits
//! for something that is there already: otherwise a wake-up was forgotten, and the operation might wait forever.

use crate::array::set::{Intent, Life};
use crate::controller::Controller;
use crate::reason::Reason;

/// What an operation waits for. The rules are those of the write gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Another operation holds a part of its range.
    Range,
    /// There are too few work frames.
    Frames,
    /// Rows of it are to be redone from the journal first.
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
    /// The journal has no room: rule 5 for the records, and before that for the room that a write past the cache reserves.
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

impl Controller {
    /// Call the operations that wait for a state of their set, in their order.
    pub(crate) fn wake_changed(&mut self) {
        while let Some(index) = self.wait_set.pop() {
            self.ready.push(index);
        }
        self.sets.forget_changes();
    }

    /// Let an operation wait, in the queue of what it waits for.
    pub(crate) fn hold_op(&mut self, index: u32, wait: Wait) {
        self.ops[index].wait = Some(wait);
        match wait {
            Wait::Session | Wait::ActiveMark | Wait::Bitmap | Wait::FailureMark | Wait::StaleMark | Wait::ReplyMark => {
                self.wait_set.push(index)
            }
            Wait::JournalRoom(reason) => self.wait_for_journal(index, reason),
            Wait::Redo => self.wait_redo.push(index),
            Wait::Commands => self.wait_commands.push(index),
            // The table of ranges, the list of those that wait for frames, the journal's group and the log know the
            // operations that wait for them.
            Wait::Range | Wait::Frames | Wait::Entry | Wait::Record => {}
        }
    }

    /// The first operation that waits for a state of its set which is there already.
    pub(crate) fn find_forgotten(&self) -> Option<(u32, Wait)> {
        self.wait_set.iter().find_map(|index| {
            let wait = self.ops[index].wait.expect("an operation in a queue says what it waits for");
            self.is_over(index, wait).then_some((index, wait))
        })
    }

    /// Is there what an operation waits for, as far as it is a state of its set? The other waits end with what another
    /// operation gives back.
    fn is_over(&self, index: u32, wait: Wait) -> bool {
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        // A failed set records nothing any more, and one whose members take no record refuses the operation.
        let is_refused = set.life == Life::Failed || set.has_stale_metadata();
        match wait {
            Wait::Session => set.life == Life::Failed || !self.is_held_by_session(op),
            Wait::ActiveMark => is_refused || matches!(set.intent, Intent::Active | Intent::Flushing),
            Wait::Bitmap => is_refused || op.are_bits_durable(set),
            Wait::FailureMark | Wait::ReplyMark => is_refused || set.is_failure_durable(),
            Wait::StaleMark => {
                let durable = set.metadata.as_ref().map_or(0, |metadata| metadata.durable);
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
