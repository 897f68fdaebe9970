//! Drives that hang one after another can hold all frames for payload: their commands were given up and may still be
//! executed, so the frames must not be used for anything else (V3). This file limits how long hosts wait then.
//!
//! - If frames can come back only from drives that answer late, pieces are cut as small as the frames that are left.
//! - If there are no frames at all, a waiting request gets an error at the time when a drive would have been given up.
//!   This includes requests of healthy arrays: without memory for payload none is served.
//!
//! Two things must never happen: frames are used to which such a command points; a request is refused while an
//! operation under way will return frames.

use crate::actions::{Actions, ReplyStatus};
use crate::controller::Controller;
use crate::frames::Run;
use crate::geometry::Divisor;
use crate::limits::FRAME_BYTES;
use crate::requests::piece::PieceState;
use openraid_units::Instant;

impl Controller {
    /// Can frames come back only from drives that do not answer? Pieces that wait for their turn are sent after others
    /// of their request, which may wait for frames themselves.
    fn no_frames_come_back(&self) -> bool {
        let gives =
            |piece: &crate::requests::piece::Piece| piece.run().is_some() && piece.state != PieceState::WaitTurn;
        let suspected = self.host_frames.is_spent() || !self.restarting.is_empty();
        suspected && !self.pieces.iter().any(|(_, piece)| gives(piece))
    }

    /// The largest piece of a request, in bytes, for which there are frames, and these frames. `None` if it must wait.
    #[cold]
    pub(super) fn take_what_is_left(&mut self, request: u32) -> Option<(u64, Run)> {
        if !self.host_frames.is_spent() || !self.no_frames_come_back() {
            return None;
        }
        let request = self.requests[request];
        let array = self.arrays.find(request.array())?;
        let (block, mut most) = (array.block().bytes(), array.piece().by());
        while most > FRAME_BYTES {
            most = (most / 2).next_multiple_of(FRAME_BYTES);
            let (len, frames) = request.next_piece(block, Divisor::new(most));
            if let Some(run) = self.host_frames.take(frames) {
                return Some((len, run));
            }
        }
        None
    }

    /// A request that has waited too long for frames that do not come back ends with an error; true if one did.
    pub(crate) fn end_starved(&mut self, actions: &mut Actions) -> bool {
        if !self.no_frames_come_back() {
            self.starved_since = None;
            return false;
        }
        let since = *self.starved_since.get_or_insert(self.now);
        if self.now < since + self.limits.command_timeout {
            return false;
        }
        if let Some(piece) = self.restarting.pop() {
            self.pieces[piece].note_error(Some(ReplyStatus::IoError));
            self.end_piece(piece, actions);
            return true;
        }
        let Some(request) = self.wanting.front() else { return false };
        self.requests[request].fail(ReplyStatus::IoError);
        self.drop_waiting_pieces(request);
        if self.requests[request].is_quiet() {
            self.finish_request(request, actions);
        }
        true
    }

    /// The time at which a waiting request will have waited too long for frames.
    pub(crate) fn starved_deadline(&self) -> Option<Instant> {
        let waits = !self.wanting.is_empty() || !self.restarting.is_empty();
        self.starved_since.filter(|_| waits).map(|since| since + self.limits.command_timeout)
    }
}
