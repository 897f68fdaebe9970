//! How far the journal has come is recorded in the superblocks of sets.

use crate::admin_answer::OlderLog;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::journal::older_log::generation_of;
use crate::journal::Journal;
use openraid_format::{JournalReached, Uuid};
use openraid_units::SetId;
use openraid_units::{Instant, Nanos};

impl Journal {
    /// Has this journal come as far as the superblocks of a set with this place in its table, or with none, have seen?
    pub(crate) fn check_position(
        &self,
        index: Option<u8>,
        journal: Uuid,
        seen: JournalReached,
    ) -> Result<(), OlderLog> {
        let ends = index.map_or_else(|| self.position(), |index| self.positions.0[usize::from(index)]);
        if seen.entry > ends.entry || seen.generation > ends.generation {
            return Err(OlderLog { journal, ends, seen });
        }
        Ok(())
    }

    /// How far it has come, durably.
    pub(super) fn position(&self) -> JournalReached {
        JournalReached { entry: self.durable, generation: generation_of(self.writing.number()) }
    }

    /// Tell a set how far the log has come, for its next superblocks.
    pub(super) fn trace_position(&mut self, sets: &mut Sets, id: SetId) {
        let set = sets.get_mut(id);
        let Some(share) = set.journal.share() else { return };
        if self.superblock.as_ref().is_some_and(|superblock| superblock.journal == share.uuid) {
            let now = &mut set.journal.reached.now;
            now.entry = now.entry.max(self.durable);
            self.positions.0[usize::from(share.index)] = *now;
        }
    }
}

/// When superblocks are to be made again because of what was written since the last ones.
pub(crate) fn position_due(set: &Set, interval: Nanos) -> Option<Instant> {
    let made_at = set.journal.reached.at;
    let is_written = || set.metadata.is_some() && set.mark.is_written_since(made_at);
    let is_due = set.journal.is_ahead() || (!set.journal.is_on() && is_written());
    // A time that never comes is no deadline: the driver would not rest.
    is_due.then_some(made_at + interval).filter(|due| *due < Instant::NEVER)
}

/// If the superblocks of a set were made long ago and hosts have written since, they are made again; true if they are.
pub(super) fn record_position(sets: &mut Sets, id: SetId, now: Instant, interval: Nanos) -> bool {
    let set = sets.get_mut(id);
    let is_due = set.is_running() && position_due(set, interval).is_some_and(|due| now >= due);
    if is_due {
        set.metadata.as_mut().expect("a set whose superblocks are due has some").request();
        set.journal.reached.record(now);
    }
    is_due
}
