//! The times at which pieces that wait for the cache are called again: see [`Waiters`](crate::waiters::Waiters).

use crate::controller::Controller;
use crate::requests::piece::Piece;
use crate::slab::NONE;
use crate::waiters::TURNS_MAX;

impl Controller {
    /// A write past the cache waits once more for dirty data.
    pub(crate) fn count_turn(&mut self, piece: u32) {
        let turns = self.pieces[piece].count_turn();
        let number = |piece: u32| self.requests[self.pieces[piece].request()].number();
        let starved = self.cache_waiters.starved();
        if turns >= TURNS_MAX && (starved == NONE || number(piece) < number(starved)) {
            self.cache_waiters.set_starved(piece);
        }
    }

    /// A write past the cache no longer meets dirty data, or is over.
    #[inline]
    pub(crate) fn end_turns(&mut self, piece: u32) {
        self.pieces[piece].end_turns();
        self.cache_waiters.end_starved(piece, &mut self.splitting);
    }

    /// Would this piece dirty data for which a starved write past the cache waits?
    #[inline]
    pub(crate) fn is_behind_starved(&self, piece: u32) -> bool {
        let starved = self.cache_waiters.starved();
        if starved == NONE || starved == piece {
            return false;
        }
        let (own, first) = (&self.pieces[piece], &self.pieces[starved]);
        let array = |piece: &Piece| self.requests[piece.request()].array();
        array(own) == array(first) && own.overlaps(first)
    }

    /// A dirty unit was written, or refused: there may be lines.
    pub(crate) fn wake_for_lines(&mut self, failed: bool) {
        let Self { cache_waiters, splitting, .. } = self;
        if failed || self.cache.is_held() {
            // Perhaps no piece gets lines any more.
            return cache_waiters.wake_all(splitting);
        }
        cache_waiters.ask_for_lines();
        cache_waiters.wake_others(splitting);
    }

    /// Lines are no longer being filled. If some lines are dirty, a piece that waits for lines is called when those are
    /// written. With no dirty line that may never happen.
    pub(crate) fn wake_for_filled_lines(&mut self) {
        if self.cache.dirty == 0 {
            self.cache_waiters.ask_for_lines();
        }
    }

    /// Put the next piece that waits for lines in front of all other pieces, if one more line may be dirty.
    #[inline]
    pub(crate) fn ask_next_waiter(&mut self) {
        if !self.cache_waiters.has_next() {
            return;
        }
        if !self.cache.has_room() {
            // They wait for more destage, however much is in work: the lines may be dirty again.
            self.cache.draining = true;
            return;
        }
        self.cache_waiters.ask_next(&mut self.splitting);
    }
}
