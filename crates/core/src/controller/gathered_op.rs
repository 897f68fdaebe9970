//! Parts of adjoining writes become one operation.

use openraid_units::Sectors;
use openraid_units::SetId;
use openraid_units::SetLba;

use crate::actions::Actions;
use crate::actions::ReplyStatus;
use crate::controller::Controller;
use crate::io::state::op::WorksFor;
use crate::reason::Reason;
use crate::request_steps::StepEvent;

impl Controller {
    /// The part of a piece of a stream that goes to the members by itself, of `len` sectors of a set from `at`. `None` if
    /// the next part was gathered.
    pub(super) fn gather_part(&mut self, index: u32, id: SetId, (at, len): (SetLba, Sectors)) -> Option<Sectors> {
        let alone = self.requests.gather(index, self.sets.get(id), id, (at, len));
        if alone.is_none() {
            let reason = Reason::WriteHeld;
            self.base.trace.note(&mut self.sets, id, reason, at.get(), 0);
            self.base.trace.piece(&self.requests, index, || StepEvent::Reason { reason, figure: 0 });
        }
        alone
    }

    /// All pieces are split. Make the next operation of the first gather that needs one. If none does, look for gathers
    /// that go now. True if something changed.
    #[inline(never)]
    pub(super) fn move_gathers(&mut self, actions: &mut Actions) -> bool {
        if self.requests.is_no_gather_ready() {
            if !self.requests.may_gathers_move() {
                return false;
            }
            self.requests.release_gathers(&self.sets, self.base.now);
            return !self.requests.is_no_gather_ready();
        }
        let op = self.requests.next_gathered_op(&self.sets);
        if let WorksFor::Gather(gather) = op.works_for() {
            let (stripe, parts) = (op.place_number(), self.requests.place_of_gather(gather).2);
            self.base.trace.note(&mut self.sets, op.set(), Reason::WriteGathered, stripe, parts);
        }
        self.start_op(op);
        if let Some(gather) = self.requests.gather_made() {
            self.requests.end_first_gather();
            self.end_gather(gather, actions);
        }
        true
    }

    /// An operation of a gather ended.
    pub(super) fn on_gathered(&mut self, gather: u32, error: Option<ReplyStatus>, actions: &mut Actions) {
        self.requests.gathered_op_ended(gather, error);
        self.end_gather(gather, actions);
    }

    /// If all operations of a gather have ended, its parts are over.
    fn end_gather(&mut self, gather: u32, actions: &mut Actions) {
        if !self.requests.is_gather_over(gather) {
            return;
        }
        if self.requests.has_gather_failed(gather) {
            let (set, stripe, parts) = self.requests.place_of_gather(gather);
            self.base.trace.note(&mut self.sets, set, Reason::WrittenAlone, stripe, parts);
        }
        while let Some(piece) = self.requests.take_part(gather) {
            self.on_piece_op(piece, None, actions);
        }
    }
}
