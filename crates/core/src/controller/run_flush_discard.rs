//! Flush and discard: requests without pieces.

use openraid_units::Bytes;

use crate::actions::Actions;
use crate::cache::flush_waits::is_promised;
use crate::controller::Controller;
use crate::events::RequestKind;
use crate::io::state::ended::EndedFor;
use crate::io::state::op::Op;
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::requests::flush_discard::discard_op;
use crate::requests::request::Synced;

impl Controller {
    /// Make the next operation of the first request without payload (flush or discard); true if something changed.
    pub(crate) fn run_flush_or_discard(&mut self, actions: &mut Actions) -> bool {
        if !self.ops.may_make_op() {
            return false;
        }
        for _ in 0..self.requests.payloadless_len() {
            let Some(index) = self.requests.first_payloadless() else { return false };
            let moved = if self.requests.get(index).kind() == RequestKind::Flush {
                self.cut_flush(index, actions)
            } else {
                self.cut_discard(index, actions)
            };
            if moved {
                return true;
            }
            // It waits for the cache; others may continue.
            self.requests.end_payloadless_turn();
        }
        false
    }

    /// All operations of a request without payload are made.
    fn end_flush_or_discard(&mut self, index: u32, actions: &mut Actions) -> bool {
        self.requests.leave_payloadless();
        self.end_host_op(EndedFor::Request(index), None, actions);
        true
    }

    /// The next operation of a discard; false if it waits for the cache.
    fn cut_discard(&mut self, index: u32, actions: &mut Actions) -> bool {
        let entry = self.requests.get(index);
        let array = self.arrays.get(entry.array());
        let Some((at, left)) = entry.next_discard(array.block().bytes()) else {
            return self.end_flush_or_discard(index, actions);
        };
        let sector = Bytes(at).sectors_floor();
        let (set_id, set_lba, run) = array.volume().map(sector, |set| self.sets.get(set).shape());
        let len = run.min(left.sectors_floor());
        let set = self.sets.get(set_id);
        if set.is_closed(set_lba, false) {
            if let Some(reshape) = self.sets.get_mut(set_id).tasks.reshape_mut() {
                reshape.want_boundary();
            }
            return false;
        }
        let is_unrecorded = !set.journal.has_session() && !self.journal.is_wanted_by(set);
        if is_unrecorded
            && self.cache.is_on()
            && !self.cache.pass_discard(&mut self.sets, &mut self.base.trace, set_id, set_lba, len)
        {
            return false;
        }
        let (skip, op) = if is_unrecorded {
            discard_op(&self.sets, &self.base, index, set_id, set_lba, len)
        } else {
            // A discard is advisory, and the journal would have to record it.
            (len, None)
        };
        self.requests.get_mut(index).pass_discarded(skip.bytes());
        if let Some(op) = op {
            self.requests.get_mut(index).begin_op();
            self.start_op(op);
        } else {
            let reason = if is_unrecorded { Reason::DiscardIgnored } else { Reason::DiscardProtected };
            self.base.trace.note(&mut self.sets, set_id, reason, set_lba.get(), 0);
            self.base.trace.request(&self.requests, index, || StepEvent::Reason { reason, figure: 0 });
        }
        true
    }

    /// The flush of the next set of a request's array; false if it waits for the cache.
    fn cut_flush(&mut self, index: u32, actions: &mut Actions) -> bool {
        let entry = self.requests.get(index);
        let volume = self.arrays.get(entry.array()).volume();
        let number = entry.next_set();
        if number >= volume.set_count() {
            return self.end_flush_or_discard(index, actions);
        }
        let set = volume.set(number);
        if self.cache.is_on() {
            let (numbers, waits) = ((entry.number(), self.requests.admitted()), entry.is_syncing());
            let answer = self.cache.sync_set(&mut self.sets, &self.journal, set, numbers, waits);
            self.requests.get_mut(index).note_sync(answer);
            if matches!(answer, Synced::Waits | Synced::Later) {
                return false;
            }
        }
        self.requests.get_mut(index).pass_set();
        // A session of a set with a failed flush may have no mark on its members: then the journal is not replayed.
        if is_promised(self.sets.get(set), &self.journal) && !self.sets.get(set).has_failed_flush() {
            return true;
        }
        self.requests.get_mut(index).begin_op();
        let op = Op::flush(set).for_request(index);
        self.start_op(op);
        true
    }
}
