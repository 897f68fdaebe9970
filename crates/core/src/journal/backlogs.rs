//! The redo backlogs of sets at work: which rows are redone next, and which operations wait for them.

use crate::array::set::Set;
use crate::journal::redo_backlog::{RedoBacklog, RedoState};
use crate::journal::Journal;
use openraid_units::{Sectors, SetId};

impl Journal {
    /// Redos of a set are done: their entries are not needed for them any more. False if the set has no backlog.
    pub(crate) fn end_redos(&mut self, set: SetId, first: usize, count: usize) -> bool {
        let Self { replay, log, .. } = self;
        let Some(backlog) = replay.backlog_of(set) else { return false };
        backlog.set_state(first, count, RedoState::Done);
        backlog.redos[first..first + count].iter().for_each(|redo| log.unpin(redo.source.sequence));
        true
    }

    /// No more redos of a backlog are done: its entries are not needed for them any more.
    pub(crate) fn give_up_redos(&mut self, number: usize) {
        let left = self.replay.backlogs[number].redos.iter().filter(|redo| redo.state != RedoState::Done);
        left.for_each(|redo| self.log.unpin_if_held(redo.source.sequence));
    }

    /// Make the redo backlog of a set that was loaded, with writes of at most `most` sectors; false if it is empty.
    pub(super) fn note_backlog(&mut self, set: &mut Set, (id, array): (SetId, u8), most: Sectors) -> bool {
        let superblock = self.table();
        let shape = set.shape();
        let newest = self.replay.newest(superblock, &self.log, array, shape.work_side());
        let redos = newest.into_redos(|side, at| shape.redo_unit(side, at), most);
        let backlog = RedoBacklog::new(id, array, most, redos);
        if backlog.left == 0 {
            return false;
        }
        backlog.redos.iter().for_each(|redo| self.log.pin(redo.source.sequence));
        self.replay.backlogs.push(backlog);
        set.journal.begin_redoing();
        true
    }

    /// Must destage wait? While a set is loaded, a later record may revoke dirty data. While there is a backlog the tail
    /// may not move, so destage must leave room in the ring.
    pub(crate) fn holds_destage(&self) -> bool {
        self.replay.is_loading() || (self.replay.is_active() && (self.is_short() || self.is_ring_pressed()))
    }
}
