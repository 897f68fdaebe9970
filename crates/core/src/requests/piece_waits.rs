//! Waits of pieces: for lines of the cache, for the journal, for a dirty unit, for the data of another piece; and the
//! events that end them. `piece_queues.rs` has the order.

use super::piece::PieceEntry;
use super::piece_queues::TURNS_MAX;
use super::Requests;
use crate::actions::ReplyStatus;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::io::state::ended::EndedOps;
use crate::journal::journal_lost::end_of_orphans;
use crate::journal::Journal;
use crate::slab::NONE;

impl Requests {
    /// A piece needs operations.
    #[inline]
    pub(super) fn want_ops(&mut self, piece: u32) {
        self.pieces[piece].enter_queue();
        self.queues.push_splitting(piece);
    }

    /// The first of the pieces that need operations.
    #[inline(always)]
    pub(crate) fn first_to_split(&self) -> Option<u32> {
        self.queues.first_splitting()
    }

    /// The first of the pieces that need operations needs no more; true if it has operations.
    #[inline(always)]
    pub(crate) fn end_splitting(&mut self, piece: u32) -> bool {
        self.queues.pop_splitting();
        let piece = &mut self.pieces[piece];
        piece.leave_queue();
        piece.has_ops()
    }

    /// The first of the pieces that need operations waits for something: it leaves the queue.
    #[inline(always)]
    pub(crate) fn leave_splitting(&mut self) {
        self.queues.pop_splitting();
    }

    /// Does a piece need operations, or are pieces called for lines one after the other?
    #[inline(always)]
    pub(crate) fn wants_ops(&self) -> bool {
        !self.queues.splitting().is_empty() || self.queues.are_asked() || self.may_gathers_move()
    }

    /// Does no piece wait for the cache or for the journal?
    pub(crate) fn is_none_waiting(&self) -> bool {
        self.queues.is_empty()
    }

    /// Number of pieces that wait for lines, and for the journal or a write past the cache.
    pub(crate) fn waiting(&self) -> [usize; 2] {
        self.queues.len()
    }

    /// The piece waits for lines of the cache. `has_room`: may the cache give lines to other pieces?
    pub(crate) fn wait_for_lines(&mut self, piece: u32, has_room: bool) {
        self.queues.push_line(piece, has_room);
    }

    /// The piece waits for the journal, or for a write past the cache.
    pub(crate) fn wait_for_others(&mut self, piece: u32) {
        self.queues.push_other(piece);
    }

    /// Something other than lines changed: call the pieces that do not wait for lines.
    pub(crate) fn wake_others(&mut self) {
        self.queues.wake_others();
    }

    /// Call all pieces that wait for the cache or for the journal.
    pub(crate) fn wake_all(&mut self) {
        self.queues.wake_all();
    }

    /// There may be lines: call the pieces that wait for them one after the other.
    pub(crate) fn call_for_lines(&mut self) {
        self.queues.ask_for_lines();
    }

    /// Lines became clean: call the pieces that wait for them one after the other, and all that wait for anything else.
    pub(crate) fn lines_are_free(&mut self) {
        self.call_for_lines();
        self.wake_others();
    }

    /// Put the next piece that is called for lines in front of all others, if `has_room`: one more line may be dirty. False
    /// if a piece should be called, and there is no room.
    #[inline]
    pub(crate) fn call_next(&mut self, has_room: impl FnOnce() -> bool) -> bool {
        if !self.queues.has_next() {
            return true;
        }
        let calls = has_room();
        if calls {
            self.queues.ask_next();
        }
        calls
    }

    /// A write past the cache waits once more for dirty data. After some turns the others give way to it, the oldest first.
    pub(crate) fn count_turn(&mut self, piece: u32) {
        let turns = self.pieces[piece].count_turn();
        let starved = self.queues.starved();
        let number = |piece: u32| self.of_piece(piece).number();
        if turns >= TURNS_MAX && (starved == NONE || number(piece) < number(starved)) {
            self.queues.set_starved(piece);
        }
    }

    /// A write past the cache no longer meets dirty data, or is over.
    #[inline]
    pub(crate) fn end_turns(&mut self, piece: u32) {
        self.pieces[piece].end_turns();
        self.queues.end_starved(piece);
    }

    /// Would this piece dirty data for which a starved write past the cache waits?
    #[inline]
    pub(crate) fn is_behind_starved(&self, piece: u32) -> bool {
        let starved = self.queues.starved();
        if starved == NONE || starved == piece {
            return false;
        }
        let (request, first) = (self.of_piece(piece), self.of_piece(starved));
        request.array() == first.array() && self.pieces[piece].overlaps(&self.pieces[starved])
    }

    /// A piece waits for the dirty unit whose first waiting piece is `first`. Returns the one that is first now.
    pub(crate) fn wait_in_chain(&mut self, piece: u32, first: u32) -> u32 {
        self.pieces[piece].enter_chain(first);
        piece
    }

    /// A dirty unit was written, or could not be: the pieces that wait for it continue, with the error if there is one.
    pub(crate) fn release_chain(&mut self, first: u32, error: Option<ReplyStatus>) {
        let mut piece = first;
        while piece != NONE {
            let entry = &mut self.pieces[piece];
            entry.note_error(error);
            let next = entry.leave_chain();
            self.queues.push_splitting(piece);
            piece = next;
        }
    }

    /// A piece of a write waits for this entry of the journal, or waits although it has none; true if it did not before.
    pub(crate) fn wait_for_entry(&mut self, piece: u32, entry: PieceEntry) -> bool {
        let piece = &mut self.pieces[piece];
        let is_new = piece.wait_for_entry(entry);
        if is_new {
            piece.begin_op();
        }
        is_new
    }

    /// Pieces whose entry of the journal never became durable end when the data of their array is on the members. Other
    /// arrays are not waited for, because they may always be busy. True if pieces ended.
    pub(crate) fn answer_orphans(
        &mut self,
        journal: &mut Journal,
        arrays: &Arrays,
        sets: &Sets,
        ended: &mut EndedOps,
    ) -> bool {
        // Most of them are of the same array.
        let mut last = None;
        journal.release_orphans(|piece| {
            let array = self.of_piece(piece).array();
            let end = match last {
                Some((same, end)) if same == array => end,
                _ => end_of_orphans(sets, arrays.find(array).expect("requests belong to arrays").volume()),
            };
            last = Some((array, end));
            if let Some(end) = end {
                self.pieces[piece].note_error(end);
                ended.push_piece(piece);
            }
            end.is_none()
        })
    }

    /// A piece waits until a piece of read-ahead has its data.
    pub(crate) fn wait_for_ahead(&mut self, piece: u32, ahead: u32) {
        let first = self.pieces[ahead].put_waiter(piece);
        self.pieces[piece].enter_chain(first);
    }

    /// A piece of read-ahead has filled its lines, or failed: the pieces that wait for it try again.
    pub(crate) fn release_ahead_waiters(&mut self, ahead: u32) {
        let first = self.pieces[ahead].put_waiter(NONE);
        self.release_chain(first, None);
    }
}
