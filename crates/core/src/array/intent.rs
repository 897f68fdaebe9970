//! The intent to write: no member is written before its superblock says, durably, that the array is active, and before
//! the bitmap's bit is durable.

use openraid_units::SetId;
use openraid_units::{Instant, Nanos};

use super::set::{Life, Member, Seat};
use crate::array::sets::Sets;
use crate::call::Call;
use crate::events::Wake;
use crate::geometry::Geometry;
use crate::io::state::op::Op;
use crate::io::state::ops::Ops;
use crate::io::state::wait::Wait;
use crate::io::state::wait::{Gate, Held};
use crate::planted::{Flaw, Planted};
use crate::reason::Reason;
use crate::trace::Trace;

impl Sets {
    /// An operation that may have counted as a writer has ended.
    pub(crate) fn end_write(&mut self, op: &mut Op, now: Instant, clean_delay: Nanos) {
        if !op.is_writer() {
            return;
        }
        let set = self.get_mut(op.set());
        let range = set.bitmap.is_some().then(|| op.marked_range(set));
        op.count_as_writer(false);
        set.mark.end_write(now);
        // A session begins after the last write without the journal has ended.
        let is_at_rest = set.journal.is_asked() && set.is_at_rest();
        let quiet_at = now + clean_delay;
        if let (Some(bitmap), Some((from, to))) = (&mut set.bitmap, range) {
            bitmap.end(from, to);
        }
        self.look_at(quiet_at, Wake::CleanMark);
        if is_at_rest {
            self.look();
        }
    }
    /// Rule 4 of the write gate: hold a host write until the failure of each member is durable on the other members.
    ///
    /// After a crash a log (journal or partial parity log) or a bitmap resync restores consistency. Neither covers writes
    /// that a member missed when it failed, or parity that was left out: after a power cut the member would rejoin as in
    /// sync with stale data. It fails if the failure cannot be recorded.
    pub(crate) fn await_failure_marks(&self, id: SetId, planted: Planted) -> Gate {
        let set = self.get(id);
        let has_logs = || set.ppl.is_some() || set.bitmap.is_some() || set.journal.has_session();
        if set.is_failure_durable() || !has_logs() || planted.has(Flaw::WriteGateOpen) {
            return Ok(());
        }
        if set.has_stale_metadata() {
            return Err(Held::Failed);
        }
        Err(Held::Waits(Wait::FailureMark))
    }
}

impl Sets {
    /// Rules 2 and 3 of the write gate: count the operation as a writer of its set, and hold it until the active mark
    /// and its bitmap bits are durable.
    ///
    /// The operation fails if the array has failed, or if the mark cannot be written: after a crash no resync would
    /// follow.
    pub(crate) fn begin_write(&mut self, ops: &mut Ops, index: u32, call: &mut Call) -> Gate {
        let op = &mut ops[index];
        let (set_id, begun) = (op.set(), op.is_writer());
        let set = self.get_mut(set_id);
        let needs_mark = set.needs_mark();
        if set.life == Life::Failed || (needs_mark && set.has_stale_metadata()) {
            return Err(Held::Failed);
        }
        if !begun {
            let range = set.bitmap.is_some().then(|| op.marked_range(set));
            op.count_as_writer(true);
            set.mark.begin_write(call.now());
            if let (Some(bitmap), Some((from, to))) = (&mut set.bitmap, range) {
                bitmap.begin(from, to);
                // The first bit that is set makes the next search for quiet bits due, perhaps at once.
                let look = bitmap.next_look();
                self.look_at(look, Wake::Bitmap);
            }
        }
        if !needs_mark {
            return Ok(());
        }
        if !self.mark_active(call.planted(), set_id) {
            self.note_first_wait(ops, call.trace(), index, Reason::WaitedForActiveMark, !begun);
            return Err(Held::Waits(Wait::ActiveMark));
        }
        if !call.planted().has(Flaw::BitmapLate) && !ops[index].are_bits_durable(self.get(set_id)) {
            if !begun {
                self.look();
            }
            self.note_first_wait(ops, call.trace(), index, Reason::WaitedForBitmap, !begun);
            return Err(Held::Waits(Wait::Bitmap));
        }
        Ok(())
    }

    fn note_first_wait(&mut self, ops: &Ops, trace: &mut Trace, index: u32, reason: Reason, is_first: bool) {
        if is_first {
            trace.note_op(self, ops, index, reason, u64::from(index), 0);
        }
    }

    /// Is the active mark durable? If not, request it.
    fn mark_active(&mut self, planted: Planted, set_id: SetId) -> bool {
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

    /// Is this geometry's bitmap counted in sectors of the set (RAID 10), not of a member?
    pub(crate) fn bitmap_is_of_set(&self) -> bool {
        matches!(&self.geometry, Geometry::Mirror(m) if m.chunk().is_some())
    }
}
