//! Waiting until all data that was dirty at some time is on the members: for flushes, and for stopping.
//!
//! A set counts its dirty units by epochs. A flush ends the epoch and waits for the units of all earlier epochs,
//! together with all flushes that were requested before. Meanwhile the next flush of that set waits; it will end the
//! next epoch.

use openraid_units::SetId;

use crate::array::dirty_count::FlushTurn;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::journal::Journal;
use crate::requests::request::Synced;

/// Is all acknowledged data of a set durable already, because the journal has it?
pub(crate) fn is_promised(set: &Set, journal: &Journal) -> bool {
    journal.is_live() && set.journal.is_on()
}

impl Cache {
    /// Bring all data of a set that a flush covers to the members. Until it is there the flush asks again. `number` is its
    /// number, `last` that of the last request so far; `waits` says that it waits for this set already.
    pub(crate) fn sync_set(
        &mut self,
        sets: &mut Sets,
        journal: &Journal,
        set: SetId,
        (number, last): (u64, u64),
        waits: bool,
    ) -> Synced {
        if !waits {
            if is_promised(sets.get(set), journal) {
                return Synced::Done;
            }
            match sets.get_mut(set).dirty.begin_flush(number, last) {
                FlushTurn::NothingDirty => return Synced::Done,
                FlushTurn::Later => return Synced::Later,
                FlushTurn::EndsEpoch => self.units.end_rest(set),
                FlushTurn::Joins => {}
            }
            self.awaited_changed = true;
        }
        let Some(failed) = sets.get_mut(set).dirty.end_flush() else { return Synced::Waits };
        self.awaited_changed = true;
        if failed {
            Synced::Failed
        } else {
            Synced::Done
        }
    }
}
