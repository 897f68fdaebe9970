//! Pieces that wait until the cache, or the journal, takes them.
//!
//! Those that wait for lines are asked in their order when a dirty unit is on the members, and only as long as a line more
//! may be dirty: of hundreds that wait, what became clean is enough for a few. What changes for sets or sessions asks all;
//! what the journal gives back asks those that wait for that.

use crate::controller::Controller;
use crate::io::request::Piece;
use crate::slab::{Queue, NONE};

/// Who waits.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// For lines, the first in front.
    lines: Queue,
    /// So many of those were not asked yet since lines became clean.
    unasked: usize,
    /// The one of them that is being asked, in front of all that are split, or [`NONE`].
    asked: u32,
    /// For room in the journal, its readiness, or a write past the cache.
    others: Queue,
    /// The oldest write past the cache that has waited [`TURNS_MAX`] times for something dirty, or [`NONE`]: what others write
    /// into the cache where it goes waits for it, or it might wait for ever.
    starved: u32,
}

/// A write past the cache that found something dirty in its way so often, newly dirtied by others, is let through.
const TURNS_MAX: u8 = 8;

impl Waiters {
    pub(crate) fn new(pieces_max: u32) -> Self {
        Self { lines: Queue::new(pieces_max), unasked: 0, asked: NONE, others: Queue::new(pieces_max), starved: NONE }
    }

    /// Does nobody wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() & self.others.is_empty()
    }

    /// Are those that wait for lines being asked one after the other?
    #[inline]
    pub(crate) fn are_asked(&self) -> bool {
        self.unasked > 0
    }

    /// The piece that was asked in its turn, if one was, has left the front.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.asked = NONE;
    }

    /// How many wait for lines, and for anything else.
    pub(crate) fn len(&self) -> [usize; 2] {
        [self.lines.len(), self.others.len()]
    }

    /// A piece waits for something else than lines.
    pub(crate) fn push_other(&mut self, piece: u32) {
        self.others.push(piece);
    }
}

impl Controller {
    /// A piece waits for lines. One that was asked in its turn keeps its place if there were too few for it alone, and gives
    /// way where others may get some: its set has had its share, or all that are clean are being filled.
    pub(crate) fn push_line_waiter(&mut self, piece: u32) {
        let waiters = &mut self.cache_waiters;
        if waiters.asked == piece && !self.cache.has_room() {
            waiters.lines.push_front(piece);
            waiters.unasked += 1;
        } else {
            waiters.lines.push(piece);
        }
    }

    /// A write past the cache waits once more for something dirty.
    pub(crate) fn count_turn(&mut self, piece: u32) {
        let entry = &mut self.pieces[piece];
        entry.turns = entry.turns.saturating_add(1);
        let number = |piece: u32| self.requests[self.pieces[piece].request].number;
        let starved = self.cache_waiters.starved;
        if self.pieces[piece].turns >= TURNS_MAX && (starved == NONE || number(piece) < number(starved)) {
            self.cache_waiters.starved = piece;
        }
    }

    /// A write past the cache has nothing dirty in its way any more, or is over.
    #[inline]
    pub(crate) fn end_turns(&mut self, piece: u32) {
        self.pieces[piece].turns = 0;
        if self.cache_waiters.starved == piece {
            self.cache_waiters.starved = NONE;
            self.wake_other_waiters();
        }
    }

    /// Would this piece dirty what a starved write past the cache waits for?
    #[inline]
    pub(crate) fn is_behind_starved(&self, piece: u32) -> bool {
        let starved = self.cache_waiters.starved;
        if starved == NONE || starved == piece {
            return false;
        }
        let (own, first) = (&self.pieces[piece], &self.pieces[starved]);
        let array = |piece: &Piece| self.requests[piece.request].request.array;
        array(own) == array(first) && own.first < first.last && first.first < own.last
    }

    /// Something changed that says nothing of lines: those go on that do not wait for any.
    pub(crate) fn wake_other_waiters(&mut self) {
        while let Some(piece) = self.cache_waiters.others.pop() {
            self.splitting.push(piece);
        }
    }

    /// All that wait are asked again.
    pub(crate) fn wake_cache_waiters(&mut self) {
        while let Some(piece) = self.cache_waiters.lines.pop() {
            self.splitting.push(piece);
        }
        self.cache_waiters.unasked = 0;
        self.wake_other_waiters();
    }

    /// What a set is, or what the journal does for it, has changed: all that wait for either are asked again.
    pub(crate) fn wake_all_waiters(&mut self) {
        self.wake_cache_waiters();
        self.wake_journal_waiters();
    }

    /// A dirty unit was written, or not: there may be lines.
    pub(crate) fn wake_for_lines(&mut self, failed: bool) {
        if failed || self.cache.is_held() {
            // Nobody gets lines any more, it may be.
            return self.wake_cache_waiters();
        }
        self.cache_waiters.unasked = self.cache_waiters.lines.len();
        self.wake_other_waiters();
    }

    /// Lines are not being filled any more. Whoever waits for lines while some are dirty is asked when those were written;
    /// with none that may be never.
    pub(crate) fn wake_for_filled_lines(&mut self) {
        if self.cache.dirty == 0 {
            self.cache_waiters.unasked = self.cache_waiters.lines.len();
        }
    }

    /// Put the next of those that wait for lines before all other pieces, if a line more may be dirty.
    #[inline]
    pub(crate) fn ask_next_waiter(&mut self) {
        let waiters = &mut self.cache_waiters;
        if waiters.unasked == 0 || waiters.asked != NONE {
            return;
        }
        if !self.cache.has_room() {
            // They wait for more to be written, however much is in work: it may be dirty again.
            self.cache.draining = true;
            return;
        }
        waiters.unasked -= 1;
        let piece = waiters.lines.pop().expect("those that were not asked wait");
        waiters.asked = piece;
        self.splitting.push_front(piece);
    }
}
