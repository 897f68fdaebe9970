//! The redo backlog of a set: what its members do not have of the log yet. [`redo_op`](crate::io::redo_op) writes it.
//!
//! ```text
//!   Waits --> InWork: read from the journal -> written to the member --> Done
//!     ^          |
//!     +----------+ the device of the journal hangs: again, from the other one
//! ```
//!
//! A set with parity serves hosts meanwhile. An operation on rows of the backlog waits until they are redone, and these
//! rows are redone first. So no stripe is read, and no parity computed, from a mixture of old and new blocks. Sets without
//! parity have few redos and start after them.
//!
//! A pending redo pins its entry. Until the backlog is empty the set counts as one with logged writes: its session stays on,
//! the active mark and the bits of its bitmap stay set, and no task begins. After a crash the same entries are replayed
//! again, and then the entries that came later.
//!
//! If the bytes cannot be read any more, the set fails, because no other copy exists. Its entries stay in the log.

use openraid_units::{Sectors, SetId};

use super::backlog::RedoBacklog;
use super::replay::Replay;
use crate::controller::Controller;
use crate::geometry::Geometry;
use crate::limits::REGION_SECTORS;

impl Replay {
    /// Does a set have a redo backlog, or did it have one when it failed?
    #[inline(always)]
    pub(crate) fn is_redoing(&self) -> bool {
        !self.backlogs.is_empty()
    }

    /// How many redos are not done.
    pub(super) fn pending(&self) -> u64 {
        self.backlogs.iter().map(|backlog| backlog.left as u64).sum()
    }

    pub(crate) fn backlog_of(&mut self, set: SetId) -> Option<&mut RedoBacklog> {
        self.backlogs.iter_mut().find(|backlog| backlog.set == set)
    }

    /// Forget the backlog of a set that is gone.
    pub(crate) fn forget_backlog(&mut self, set: SetId) {
        self.backlogs.retain(|backlog| backlog.set != set);
    }
}

impl Controller {
    /// Make the redo backlog of a set that was loaded; false if it is empty.
    pub(super) fn note_backlog(&mut self, id: SetId, array: u8) -> bool {
        let journal = &mut self.journal;
        let superblock = journal.superblock.as_ref().expect("it is live");
        let newest = journal.replay.newest(superblock, &journal.log, array);
        let set = self.sets.get_mut(id);
        let unit = match &set.geometry {
            Geometry::Parity(parity) => parity.chunk(),
            _ => Sectors(REGION_SECTORS),
        };
        let backlog = RedoBacklog::new(id, array, (unit, self.limits.rows_max), newest);
        if backlog.left == 0 {
            return false;
        }
        backlog.redos.iter().for_each(|own| journal.log.pin(own.source.sequence));
        journal.replay.backlogs.push(backlog);
        set.journal.redoing = true;
        set.journal.logged += 1;
        true
    }

    /// Must destage wait? While a set is loaded, a later record may revoke dirty data. While there is a backlog the tail
    /// may not move, so destage must leave room in the ring.
    pub(crate) fn is_destage_held(&self) -> bool {
        let journal = &self.journal;
        journal.replay.is_loading() || (journal.replay.is_active() && (journal.short || self.is_ring_pressed()))
    }
}
