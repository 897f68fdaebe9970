//! What a set must record before a member is written: the active mark, the failures of members, and the position from which
//! the members may differ.

use openraid_units::SetId;

use super::member::{Member, Seat};
use super::set::Life;
use crate::array::sets::Sets;
use crate::planted::{Flaw, Planted};

impl Sets {
    /// Is the active mark durable? If not, request it.
    pub(crate) fn mark_active(&mut self, planted: Planted, set_id: SetId) -> bool {
        let late = planted.has(Flaw::ActiveMarkLate);
        let set = self.get_mut(set_id);
        if set.mark.is_active() {
            set.mark.keep();
            return true;
        }
        if set.mark.is_clean() {
            let generation = set.metadata.as_mut().expect("sets that are marked have metadata").request();
            set.mark.mark_with(generation);
            self.look();
            return false;
        }
        late && set.mark.is_marking()
    }
}

impl super::set::Set {
    /// Plant a bug in the engine's parts as well.
    pub(crate) fn plant(&mut self, planted: Planted) {
        self.metadata.iter_mut().for_each(|metadata| metadata.planted = planted);
        self.bitmap.iter_mut().for_each(|bitmap| bitmap.planted = planted);
        self.ppl.iter_mut().for_each(|ppl| ppl.plant(planted));
    }

    /// The members were flushed since the last check of the bitmap: clear the bits that it marked and that are still
    /// quiet.
    pub(crate) fn clear_marked(&mut self) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.clear_marked();
            // Bits that a returning member needs may be among them.
            let returning = |member: &&mut Member| member.returns_to().is_some();
            self.members.iter_mut().filter(returning).for_each(|member| member.seat = Seat::None);
        }
    }

    /// Are the failures of members, and the ranges that must not be used for recovery, durable on the other members?
    pub(crate) fn is_failure_durable(&self) -> bool {
        let recorded = self.metadata.as_ref().is_none_or(super::metadata::Metadata::failures_recorded);
        self.life == Life::Failed || recorded && !self.is_bad_urgent()
    }

    /// Is no write under way, and no data dirty that the journal would need to have?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.mark.is_at_rest() && self.dirty.all() == 0
    }

    /// Does the set have redundancy that a crash could make inconsistent?
    pub(crate) fn needs_mark(&self) -> bool {
        self.metadata.is_some() && self.is_redundant()
    }

    /// The value of `resync_offset` on disk: everything is consistent, or the position from which it may not be.
    pub(crate) fn resync_mark(&self) -> u64 {
        let may_differ = self.mark.says_active() || self.has_failed_flush();
        // A replay or redo of its logs is not complete.
        let is_due = self.journal.is_replaying() || self.journal.is_redoing();
        if self.needs_mark() && (may_differ || is_due) || self.ppl.as_ref().is_some_and(|ppl| ppl.is_recovering()) {
            0
        } else {
            self.consistency.position().get()
        }
    }

    /// Is its bitmap counted in sectors of the set (RAID 10), not of a member?
    pub(crate) fn bitmap_is_of_set(&self) -> bool {
        self.shape.is_striped_mirror()
    }
}
