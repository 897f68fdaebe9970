//! Waiting until all data that was dirty at some time is on the members: for flushes, and for stopping.
//!
//! A set counts its dirty units by epochs. A flush ends the epoch and waits for the units of all earlier epochs,
//! together with all flushes that were requested before. Meanwhile the next flush of that set waits; it will end the
//! next epoch.

use openraid_units::SetId;

use crate::array::set::Set;
use crate::controller::Controller;
use crate::journal::Journal;

/// Dirty units of a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct DirtyCount {
    pub(super) epoch: u32,
    /// Units of earlier epochs, and of this one.
    pub(super) old: u32,
    pub(super) new: u32,
    /// Kept because the set has failed.
    pub(super) held: u32,
    /// Some units could not be written since no flush waits, or since the waiting ones began.
    pub(super) failed: bool,
    /// The members refused the last write of a dirty unit: a session may never end, or begin.
    pub(super) refused: bool,
    /// Number of flushes that wait for the units of earlier epochs, and the last request that was there when the wait
    /// began: flushes up to that request may join the wait.
    pub(super) waiting: u32,
    asked: u64,
}

impl DirtyCount {
    /// Number of units that may still be written.
    pub(crate) fn all(&self) -> u32 {
        self.old + self.new
    }

    /// Was a dirty unit not taken by the members when it was written last? Then a session may never end, or begin.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Could some not be written since no flush waits, or since the waiting ones began to?
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// A unit of this epoch turned out to have no dirty line.
    pub(crate) fn forget_unit(&mut self) {
        self.new -= 1;
    }

    /// Nothing of the set is dirty any more: its lines were forgotten.
    pub(crate) fn forget_all(&mut self) {
        (self.old, self.new) = (0, 0);
    }
}

/// Progress of a flush with the set whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sync {
    /// Not begun.
    Idle,
    /// Waits for the units of the epochs that it ended.
    Waits,
}

impl Set {
    /// Is all acknowledged data of a set durable already, because the journal has it?
    pub(crate) fn is_promised(&self, journal: &Journal) -> bool {
        journal.is_live() && self.journal.is_on()
    }
}

impl Controller {
    /// Bring all data of a set that a flush covers to the members; true when it is there. Until then the flush is
    /// called again.
    pub(crate) fn sync_set(&mut self, request: u32, set: SetId) -> bool {
        if !self.requests[request].is_syncing() {
            if self.sets.get(set).is_promised(&self.journal) {
                return true;
            }
            let (number, asked) = (self.requests[request].number(), self.asked);
            let dirty = &mut self.sets.get_mut(set).dirty;
            if dirty.waiting == 0 {
                if dirty.all() == 0 && !dirty.failed {
                    return true;
                }
                (dirty.old, dirty.new) = (dirty.old + dirty.new, 0);
                dirty.epoch = dirty.epoch.wrapping_add(1);
                dirty.asked = asked;
                self.cache.units.end_rest(set);
            } else if number > dirty.asked {
                return false;
            }
            self.sets.get_mut(set).dirty.waiting += 1;
            self.requests[request].begin_sync();
            self.cache.awaited_changed = true;
        }
        let dirty = &mut self.sets.get_mut(set).dirty;
        if dirty.old > 0 {
            return false;
        }
        let failed = dirty.failed || dirty.held > 0;
        dirty.waiting -= 1;
        // Each waiting flush gets the result.
        dirty.failed &= dirty.waiting > 0;
        self.requests[request].end_sync(failed);
        self.cache.awaited_changed = true;
        true
    }
}
