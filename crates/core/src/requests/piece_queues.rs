//! The queues of pieces: one for pieces that need operations, and those for pieces that wait until the cache, or the
//! journal, takes them.
//!
//! Pieces that wait for lines are called in order when a dirty unit is on the members, and only while one more line may
//! be dirty: of hundreds of pieces, only a few get the freed lines. A change of a set or a session calls all pieces.
//! Room in the journal calls the pieces that wait for it. A piece that is called goes into the queue of pieces that
//! need operations.

use crate::slab::{Queue, NONE};

/// See the module header.
#[derive(Debug)]
pub(super) struct PieceQueues {
    /// Pieces that need operations, in order of their turns.
    splitting: Queue,
    /// Pieces that wait for lines, in order.
    lines: Queue,
    /// Number of pieces in `lines` that were not called again since lines became clean.
    unasked: usize,
    /// The piece of `lines` that is being called, in front of all others, or [`NONE`].
    asked: u32,
    /// Pieces that wait for room in the journal, its readiness, or a write past the cache.
    others: Queue,
    /// The oldest write past the cache that has met dirty data [`TURNS_MAX`] times, or [`NONE`]. Cached writes to its
    /// range wait for it; otherwise it might wait forever.
    starved: u32,
}

/// Number of times that a write past the cache may meet data that others have dirtied again. After that the others
/// wait.
pub(super) const TURNS_MAX: u8 = 8;

impl PieceQueues {
    pub(super) fn new(pieces_max: u32) -> Self {
        Self {
            splitting: Queue::new(pieces_max),
            lines: Queue::new(pieces_max),
            unasked: 0,
            asked: NONE,
            others: Queue::new(pieces_max),
            starved: NONE,
        }
    }

    /// A piece needs operations, after all others.
    #[inline(always)]
    pub(super) fn push_splitting(&mut self, piece: u32) {
        self.splitting.push(piece);
    }

    /// The piece that gets the next operation.
    #[inline(always)]
    pub(super) fn first_splitting(&self) -> Option<u32> {
        self.splitting.front()
    }

    /// The first piece needs no more operations now, or waits: it leaves the queue.
    #[inline(always)]
    pub(super) fn pop_splitting(&mut self) {
        self.splitting.pop();
        self.asked = NONE;
    }

    /// The queue of pieces that need operations.
    #[inline(always)]
    pub(super) fn splitting(&self) -> &Queue {
        &self.splitting
    }

    /// Does no piece wait?
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() & self.others.is_empty()
    }

    /// Are the pieces that wait for lines being called one after the other?
    #[inline]
    pub(super) fn are_asked(&self) -> bool {
        self.unasked > 0
    }

    /// Number of pieces that wait for lines, and for anything else.
    pub(super) fn len(&self) -> [usize; 2] {
        [self.lines.len(), self.others.len()]
    }

    /// A piece waits for something other than lines.
    pub(super) fn push_other(&mut self, piece: u32) {
        self.others.push(piece);
    }

    /// A piece waits for lines. A piece that was called in its turn keeps its place if there were too few lines for it
    /// alone. It gives way if others may get some (`has_room`): its set has used its share, or all clean lines are
    /// being filled.
    pub(super) fn push_line(&mut self, piece: u32, has_room: bool) {
        if self.asked == piece && !has_room {
            self.lines.push_front(piece);
            self.unasked += 1;
        } else {
            self.lines.push(piece);
        }
    }

    /// Something other than lines changed: call the pieces that do not wait for lines.
    pub(super) fn wake_others(&mut self) {
        while let Some(piece) = self.others.pop() {
            self.splitting.push(piece);
        }
    }

    /// Call all pieces again.
    pub(super) fn wake_all(&mut self) {
        while let Some(piece) = self.lines.pop() {
            self.splitting.push(piece);
        }
        self.unasked = 0;
        self.wake_others();
    }

    /// There may be lines: call the pieces that wait for them one after the other.
    pub(super) fn ask_for_lines(&mut self) {
        self.unasked = self.lines.len();
    }

    /// Should a piece be called for lines, and is no other being called?
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        self.unasked > 0 && self.asked == NONE
    }

    /// Put the next piece that waits for lines in front of all others.
    pub(super) fn ask_next(&mut self) {
        self.unasked -= 1;
        self.asked = self.lines.pop().expect("a waiter was not asked yet");
        self.splitting.push_front(self.asked);
    }

    /// The write past the cache to which others give way, or [`NONE`].
    pub(super) fn starved(&self) -> u32 {
        self.starved
    }

    /// Others give way to this write past the cache.
    pub(super) fn set_starved(&mut self, piece: u32) {
        self.starved = piece;
    }

    /// A write past the cache no longer meets dirty data, or is over: the pieces that gave way to it continue.
    #[inline]
    pub(super) fn end_starved(&mut self, piece: u32) {
        if self.starved == piece {
            self.starved = NONE;
            self.wake_others();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces 1 to 3 wait for lines, piece 7 for something else.
    fn waiters() -> PieceQueues {
        let mut queues = PieceQueues::new(8);
        (1..=3).for_each(|piece| queues.push_line(piece, true));
        queues.push_other(7);
        queues
    }

    /// The pieces that were called, in order.
    fn drain(queues: &mut PieceQueues) -> alloc::vec::Vec<u32> {
        let next = || queues.first_splitting().inspect(|_| queues.pop_splitting());
        core::iter::from_fn(next).collect()
    }

    #[test]
    fn a_change_without_lines_asks_only_the_others() {
        let mut queues = waiters();
        queues.wake_others();
        assert_eq!((drain(&mut queues), queues.len()), (alloc::vec![7], [3, 0]));
        queues.wake_all();
        assert_eq!((drain(&mut queues), queues.is_empty()), (alloc::vec![1, 2, 3], true));
    }

    #[test]
    fn lines_are_offered_to_one_piece_after_the_other() {
        let mut queues = waiters();
        assert!(!queues.has_next(), "no line became clean");
        queues.ask_for_lines();
        queues.ask_next();
        assert!(queues.are_asked() && !queues.has_next(), "piece 1 is being asked");
        // It found too few lines: it keeps its place, and is called again before piece 2.
        queues.push_line(1, false);
        assert_eq!(drain(&mut queues), [1]);
        queues.ask_next();
        // It would get lines if its set had not used its share: piece 2 is next.
        queues.push_line(1, true);
        assert_eq!(drain(&mut queues), [1]);
        queues.ask_next();
        assert_eq!(drain(&mut queues), [2]);
    }

    #[test]
    fn others_give_way_to_one_starved_write_until_it_is_through() {
        let mut queues = waiters();
        queues.set_starved(5);
        queues.end_starved(4);
        assert_eq!((queues.starved(), queues.splitting().len()), (5, 0));
        queues.end_starved(5);
        assert_eq!((queues.starved(), drain(&mut queues)), (NONE, alloc::vec![7]));
    }
}
