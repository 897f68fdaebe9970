//! Requests and their pieces, as far as other components take part: admission, frames, payload, the ends of operations.

use openraid_units::Tag;

use crate::actions::Actions;
use crate::actions::Reply;
use crate::actions::ReplyStatus;
use crate::controller::Controller;
use crate::events::BlockRequest;
use crate::events::HostGone;
use crate::events::RequestKind;
use crate::io::state::ended::EndedFor;
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::requests::frame_shortage::Starved;
use crate::requests::request_life::check;
use crate::requests::request_life::AfterOp;
use crate::requests::request_life::NextPiece;
use crate::requests::transfer::TransferEnd;

impl Controller {
    /// Admit a request: check it against its array, then let it wait for frames.
    pub(crate) fn admit(&mut self, request: BlockRequest, actions: &mut Actions) {
        let index = self.requests.admit(request);
        let BlockRequest { array, kind, offset, len, .. } = request;
        self.base.trace.request(&self.requests, index, || StepEvent::Arrived { array, kind, offset, len });
        if let Err(status) = check(&self.arrays, &self.sets, &request) {
            self.requests.get_mut(index).fail(status);
            return self.finish_request(index, actions);
        }
        let array = self.arrays.get_mut(request.array);
        array.count(&request);
        array.enter(self.base.now);
        if array.is_adaptive() {
            self.watch_load(&request, actions);
        }
        if self.requests.begin(index) {
            self.finish_request(index, actions);
        } else if request.kind == RequestKind::Read {
            self.cache.note_read(&self.arrays, &mut self.sets, &mut self.base.trace, self.base.now, &request);
        }
    }

    /// Make pieces for the requests that need them, in order of arrival; true if one was made.
    #[inline(never)]
    pub(crate) fn cut_pieces(&mut self, actions: &mut Actions) -> bool {
        match self.requests.cut_next(&self.arrays, self.pool.host_mut()) {
            NextPiece::None => false,
            NextPiece::HasEnough => true,
            NextPiece::Starves(request) => {
                self.starve(request);
                false
            }
            NextPiece::Made(piece) => {
                self.requests.start_piece(piece, &self.arrays, actions);
                true
            }
        }
    }

    /// There are no frames for a request: it waits, and the reason is noted once.
    #[cold]
    fn starve(&mut self, index: u32) {
        if self.requests.get_mut(index).begin_to_starve() {
            let set = self.arrays.get(self.requests.get(index).array()).volume().set(0);
            let (reason, free) = (Reason::WaitedForHostFrames, self.pool.host().free_frames());
            self.base.trace.note(&mut self.sets, set, reason, 0, free);
            self.base.trace.request(&self.requests, index, || StepEvent::Reason { reason, figure: free });
        }
    }

    /// A transfer, or the filling of a piece, ended.
    pub(crate) fn on_transfer(&mut self, tag: Tag, result: Result<(), HostGone>, actions: &mut Actions) {
        let piece = tag.index();
        match self.requests.transfer_ended(tag, result) {
            TransferEnd::Received { request, len } => {
                self.base.trace.request(&self.requests, request, || StepEvent::Received { len });
            }
            TransferEnd::Over => self.end_piece(piece, actions),
            TransferEnd::Copied => self.on_piece_op(piece, None, actions),
        }
    }

    /// An operation of a piece ended.
    pub(crate) fn on_piece_op(&mut self, index: u32, error: Option<ReplyStatus>, actions: &mut Actions) {
        if self.requests.piece_op_ended(index, error) {
            self.check_piece(index, actions);
        }
    }

    /// Are all operations of a piece made and done?
    pub(crate) fn check_piece(&mut self, index: u32, actions: &mut Actions) {
        match self.requests.after_op(index) {
            AfterOp::Waits => return,
            AfterOp::ReadAgain => return self.requests.restart_piece(index, self.pool.host_mut()),
            AfterOp::Done => {}
        }
        let piece = self.requests.piece(index);
        if piece.is_filling() {
            let keep = !piece.has_failed();
            if self.cache.end_fill(&mut self.requests, &self.arrays, &self.sets, index, keep, actions) {
                self.requests.call_for_lines();
            }
            self.requests.release_ahead_waiters(index);
            if self.requests.piece(index).has_ops() {
                return;
            }
        }
        if self.requests.is_sent(index) {
            self.requests.send_in_turn(index, &mut self.base.trace, actions);
        } else {
            self.end_piece(index, actions);
        }
    }

    fn end_piece(&mut self, index: u32, actions: &mut Actions) {
        if let Some(request) = self.requests.end_piece(index, self.pool.host_mut()) {
            self.finish_request(request, actions);
        }
    }

    /// Nothing of the request is in work any more.
    #[inline(always)]
    pub(super) fn finish_request(&mut self, index: u32, actions: &mut Actions) {
        let status = self.requests.get(index).status();
        self.base.trace.request(&self.requests, index, || StepEvent::Replied { status });
        let entry = self.requests.get(index);
        if entry.is_ahead() {
            self.cache.ahead_ended(entry.asked());
            return self.requests.remove(index);
        }
        if entry.is_in_array() {
            self.arrays.get_mut(entry.array()).leave(self.base.now);
        }
        if entry.is_read() {
            self.cache.note_read_ended(&self.arrays, &self.sets, entry.asked());
        }
        if !entry.is_answered_by_transfer() {
            actions.replies.push(Reply { token: entry.token(), status });
        }
        self.requests.remove(index);
    }

    /// An operation that belongs to a request without pieces, or to gathered writes, ended.
    pub(crate) fn end_host_op(&mut self, owner: EndedFor, error: Option<ReplyStatus>, actions: &mut Actions) {
        match owner {
            EndedFor::Request(request) => {
                if self.requests.request_op_ended(request, error) {
                    self.finish_request(request, actions);
                }
            }
            EndedFor::Gather(gather) => self.on_gathered(gather, error, actions),
            EndedFor::Unit(..) => unreachable!("the cache hears of its units"),
        }
    }

    /// A request that has waited too long for frames that do not come back ends with an error; true if one did.
    pub(crate) fn end_starved(&mut self, actions: &mut Actions) -> bool {
        let patience = self.base.limits.command_timeout;
        let Some(starved) = self.requests.take_starved(self.pool.host(), self.base.now, patience) else { return false };
        let over = match starved {
            Starved::Piece(piece) => {
                self.requests.piece_mut(piece).note_error(Some(ReplyStatus::IoError));
                self.requests.end_piece(piece, self.pool.host_mut())
            }
            Starved::Request(request) => self.requests.fail_waiting(request, self.pool.host_mut()),
        };
        if let Some(request) = over {
            self.finish_request(request, actions);
        }
        true
    }
}
