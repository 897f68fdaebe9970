//! A failed set works again: the members that it lost were only out of reach, and have everything that they acknowledged.
//!
//! ```text
//!              the driver reports the member       enough of them are back, and the
//!   Possible -------------------------------> Ready ------------------------------> in sync
//!      |                                        |    operations of the set have ended
//!      +----------------------------------------+--> No: its failure is recorded, and writes go on without it
//! ```
//!
//! No write that a member lacks is acknowledged before the failure of that member is recorded on the others. So a member whose
//! failure is not recorded lacks only writes that nothing has acknowledged. Such writes were torn when the set failed: like
//! after a power cut, parity or copies are made to agree again. A degraded parity set cannot do that without the risk of
//! wrong data, so it stays failed if a write was under way.

use openraid_units::{Sectors, SetId};

use super::consistency::Consistency;
use super::member::{Comeback, Member};
use super::set::{Life, Remains, Set};
use crate::actions::NoticeKind;
use crate::array::awaited_changes::AwaitedChange;
use crate::array::sets::{Sets, Signal};
use crate::call::Call;
use crate::set_status::MemberState;
use crate::slot_set::SlotSet;

impl Member {
    /// It holds a slot, failed, and lacks nothing that was acknowledged.
    pub(crate) fn may_come_back(&self) -> bool {
        matches!(self.state, MemberState::Failing(_) | MemberState::Faulty(_)) && self.comeback != Comeback::No
    }
}

impl Set {
    /// It fails now: note what it has.
    pub(super) fn note_remains(&mut self) {
        let now = match self.life {
            Life::Starting | Life::Stopping => Remains::Unfit,
            Life::Running | Life::Failed if self.mark.has_writers() => Remains::Torn,
            Life::Running | Life::Failed => Remains::Whole,
        };
        self.remains = self.remains.max(now);
    }

    /// The slots of members that are back.
    fn slots_ready(&self) -> SlotSet {
        let ready = self.members.iter().filter(|m| m.may_come_back() && m.comeback == Comeback::Ready);
        ready.filter_map(Member::slot).collect()
    }

    /// Why it cannot work again without these slots, if it cannot.
    fn bars_revival(&self, missing: SlotSet) -> Option<&'static str> {
        let replaced = self.places.iter().any(|place| place.replacement().is_some());
        let has_dirty = self.dirty.all() > 0 || self.dirty.has_failed();
        match self.remains {
            _ if self.is_busy() => Some("commands of the array are still under way; try again in a moment"),
            Remains::Unfit => Some("the array failed while it was started or stopped; stop it, and serve it again"),
            Remains::Torn if self.shape.has_parity() && !missing.is_empty() => {
                Some("writes were under way while members were missing; stop the array, and see `openraid doctor`")
            }
            _ if self.is_durability_lost() => Some("a flush of a member failed; stop the array, and serve it again"),
            _ if self.journal.is_in_use() || has_dirty || self.ppl.is_some() => {
                Some("its journal, cache or partial parity log has data for it; stop the array, and serve it again")
            }
            _ if replaced => Some("a member was being replaced; stop the array, and serve it again"),
            Remains::Whole | Remains::Torn => None,
        }
    }

    /// Torn writes: what they touched may not agree.
    fn distrust_torn(&mut self) {
        let is_all = matches!(self.consistency, Consistency::Below { only_marked: false, .. });
        self.consistency = Consistency::Below { to: Sectors::ZERO, only_marked: self.bitmap.is_some() && !is_all };
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.mark_stale();
        }
    }
}

impl Sets {
    /// Let a failed set work again if enough of its members are back.
    pub(crate) fn revive(&mut self, id: SetId, call: &mut Call) -> Result<(), &'static str> {
        let set = self.get_mut(id);
        let ready = set.slots_ready();
        let missing = set.missing().minus(ready);
        if !set.has_failed() || !set.shape.survives(missing, set.joined) {
            return Ok(());
        }
        if let Some(why) = set.bars_revival(missing) {
            return Err(why);
        }
        for member in set.members.iter_mut().filter(|member| member.may_come_back()) {
            match (member.comeback, member.state) {
                (Comeback::Ready, _) => {
                    (member.state, member.comeback) = (MemberState::InSync, Comeback::No);
                    // The flush of its last writes may have failed, and so may a write of its bad-block log.
                    member.unflushed = true;
                    member.bad.dirty |= !member.bad.ranges().is_empty();
                }
                // Its failure is recorded now.
                (_, MemberState::Faulty(reason)) => member.state = MemberState::Failing(reason),
                _ => {}
            }
        }
        if set.remains == Remains::Torn {
            set.distrust_torn();
        }
        set.remains = Remains::Whole;
        set.mark.keep();
        if let Some(bitmap) = &mut set.bitmap {
            bitmap.touch_all();
        }
        set.metadata.as_mut().expect("only redundant sets fail").go_on();
        set.refresh();
        set.enter(Life::Running);
        self.changed(id, AwaitedChange::Life);
        self.changed(id, AwaitedChange::Marks);
        self.signal(Signal::Changed);
        call.notice(self, (id, None), None, NoticeKind::Returned);
        Ok(())
    }
}
