//! Drives that hang one after another can hold all frames for payload: their commands were given up and may still be
//! executed, so the frames must not be used for anything else (V3). This file limits how long hosts wait then.
//!
//! - If frames can come back only from drives that answer late, pieces are cut as small as the frames that are left.
//! - If there are no frames at all, a waiting request gets an error at the time when a drive would have been given up.
//!   This includes requests of healthy arrays: without memory for payload none is served.
//!
//! Two things must never happen: frames are used to which such a command points; a request is refused while an
//! operation under way will return frames.

use super::piece::{Piece, PieceState};
use super::Requests;
use crate::actions::ReplyStatus;
use crate::array::volume::Array;
use crate::frames::{Frames, Run};
use crate::geometry::Divisor;
use crate::limits::FRAME_BYTES;
use openraid_units::{Instant, Nanos};

/// The work that has waited too long for frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Starved {
    /// A piece that must be read again.
    Piece(u32),
    /// A request.
    Request(u32),
}

impl Requests {
    /// Can frames come back only from drives that do not answer? Pieces that wait for their turn are sent after others
    /// of their request, which may wait for frames themselves.
    fn no_frames_come_back(&self, host: &Frames) -> bool {
        let gives = |piece: &Piece| piece.run().is_some() && piece.state != PieceState::WaitTurn;
        let suspected = host.is_spent() || !self.restarting.is_empty();
        suspected && !self.pieces.iter().any(|(_, piece)| gives(piece))
    }

    /// The largest piece of a request of this array, in bytes, for which there are frames, and these frames. `None` if it
    /// must wait.
    #[cold]
    pub(super) fn take_what_is_left(&self, request: u32, array: &Array, host: &mut Frames) -> Option<(u64, Run)> {
        if !host.is_spent() || !self.no_frames_come_back(host) {
            return None;
        }
        let request = self.table[request];
        let (block, mut most) = (array.block().bytes(), array.piece().by());
        while most > FRAME_BYTES {
            most = (most / 2).next_multiple_of(FRAME_BYTES);
            let (len, frames) = request.next_piece(block, Divisor::new(most), self.range_piece_max);
            if let Some(run) = host.take(frames) {
                return Some((len, run));
            }
        }
        None
    }

    /// Does a request or a piece wait for frames, or will it?
    #[inline(always)]
    pub(crate) fn may_starve(&self) -> bool {
        !self.wanting.is_empty() || !self.restarting.is_empty()
    }

    /// The work that has waited longer than `patience` for frames that do not come back, if there is some. A piece has
    /// left its queue.
    pub(crate) fn take_starved(&mut self, host: &Frames, now: Instant, patience: Nanos) -> Option<Starved> {
        if !self.no_frames_come_back(host) {
            self.starved_since = None;
            return None;
        }
        let since = *self.starved_since.get_or_insert(now);
        if now < since + patience {
            return None;
        }
        self.restarting.pop().map(Starved::Piece).or_else(|| self.wanting.front().map(Starved::Request))
    }

    /// A request that waits for frames fails: no piece of it is cut any more. Returns it if nothing of it is in work.
    pub(crate) fn fail_waiting(&mut self, request: u32, host: &mut Frames) -> Option<u32> {
        self.table[request].fail(ReplyStatus::IoError);
        self.drop_waiting_pieces(request, host);
        self.table[request].is_quiet().then_some(request)
    }

    /// Frames came back from a drive that had not answered.
    pub(crate) fn frames_came_back(&mut self) {
        self.starved_since = None;
    }

    /// The time at which a waiting request will have waited longer than `patience` for frames.
    #[inline]
    pub(crate) fn starved_deadline(&self, patience: Nanos) -> Option<Instant> {
        self.starved_since.filter(|_| self.may_starve()).map(|since| since + patience)
    }
}
