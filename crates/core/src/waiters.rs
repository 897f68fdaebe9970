//! Pieces that wait until the cache, or the journal, takes them.
//!
//! Pieces that wait for lines are called in order when a dirty unit is on the members, and only while one more line may
//! be dirty: of hundreds of pieces, only a few get the freed lines. A change of a set or a session calls all pieces.
//! Room in the journal calls the pieces that wait for it. A piece that is called goes into the queue of pieces that
//! need operations.

use crate::slab::{Queue, NONE};

/// See the module header.
#[derive(Debug)]
pub(crate) struct Waiters {
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
pub(crate) const TURNS_MAX: u8 = 8;

impl Waiters {
    pub(crate) fn new(pieces_max: u32) -> Self {
        Self { lines: Queue::new(pieces_max), unasked: 0, asked: NONE, others: Queue::new(pieces_max), starved: NONE }
    }

    /// Does no piece wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() & self.others.is_empty()
    }

    /// Are the pieces that wait for lines being called one after the other?
    #[inline]
    pub(crate) fn are_asked(&self) -> bool {
        self.unasked > 0
    }

    /// A piece that was called in its turn has left the front.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.asked = NONE;
    }

    /// Number of pieces that wait for lines, and for anything else.
    pub(crate) fn len(&self) -> [usize; 2] {
        [self.lines.len(), self.others.len()]
    }

    /// A piece waits for something other than lines.
    pub(crate) fn push_other(&mut self, piece: u32) {
        self.others.push(piece);
    }

    /// A piece waits for lines. A piece that was called in its turn keeps its place if there were too few lines for it
    /// alone. It gives way if others may get some (`has_room`): its set has used its share, or all clean lines are
    /// being filled.
    pub(crate) fn push_line(&mut self, piece: u32, has_room: bool) {
        if self.asked == piece && !has_room {
            self.lines.push_front(piece);
            self.unasked += 1;
        } else {
            self.lines.push(piece);
        }
    }

    /// Something other than lines changed: call the pieces that do not wait for lines.
    pub(crate) fn wake_others(&mut self, splitting: &mut Queue) {
        while let Some(piece) = self.others.pop() {
            splitting.push(piece);
        }
    }

    /// Call all pieces again.
    pub(crate) fn wake_all(&mut self, splitting: &mut Queue) {
        while let Some(piece) = self.lines.pop() {
            splitting.push(piece);
        }
        self.unasked = 0;
        self.wake_others(splitting);
    }

    /// There may be lines: call the pieces that wait for them one after the other.
    pub(crate) fn ask_for_lines(&mut self) {
        self.unasked = self.lines.len();
    }

    /// Should a piece be called for lines, and is no other being called?
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.unasked > 0 && self.asked == NONE
    }

    /// Put the next piece that waits for lines in front of all others.
    pub(crate) fn ask_next(&mut self, splitting: &mut Queue) {
        self.unasked -= 1;
        self.asked = self.lines.pop().expect("those that were not asked wait");
        splitting.push_front(self.asked);
    }

    /// The write past the cache to which others give way, or [`NONE`].
    pub(crate) fn starved(&self) -> u32 {
        self.starved
    }

    /// Others give way to this write past the cache.
    pub(crate) fn set_starved(&mut self, piece: u32) {
        self.starved = piece;
    }

    /// A write past the cache no longer meets dirty data, or is over: the pieces that gave way to it continue.
    #[inline]
    pub(crate) fn end_starved(&mut self, piece: u32, splitting: &mut Queue) {
        if self.starved == piece {
            self.starved = NONE;
            self.wake_others(splitting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiters() -> (Waiters, Queue) {
        let mut waiters = Waiters::new(8);
        (1..=3).for_each(|piece| waiters.push_line(piece, true));
        waiters.push_other(7);
        (waiters, Queue::new(8))
    }

    fn drain(queue: &mut Queue) -> alloc::vec::Vec<u32> {
        core::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn a_change_without_lines_asks_only_the_others() {
        let (mut waiters, mut splitting) = waiters();
        waiters.wake_others(&mut splitting);
        assert_eq!((drain(&mut splitting), waiters.len()), (alloc::vec![7], [3, 0]));
        waiters.wake_all(&mut splitting);
        assert_eq!((drain(&mut splitting), waiters.is_empty()), (alloc::vec![1, 2, 3], true));
    }

    #[test]
    fn lines_are_offered_to_one_piece_after_the_other() {
        let (mut waiters, mut splitting) = waiters();
        assert!(!waiters.has_next(), "no line became clean");
        waiters.ask_for_lines();
        waiters.ask_next(&mut splitting);
        assert!(waiters.are_asked() && !waiters.has_next(), "piece 1 is being asked");
        assert_eq!(drain(&mut splitting), [1]);
        // It found too few lines: it keeps its place, and is called again before piece 2.
        waiters.push_line(1, false);
        waiters.end_turn();
        waiters.ask_next(&mut splitting);
        assert_eq!(drain(&mut splitting), [1]);
        // It would get lines if its set had not used its share: piece 2 is next.
        waiters.push_line(1, true);
        waiters.end_turn();
        waiters.ask_next(&mut splitting);
        assert_eq!(drain(&mut splitting), [2]);
    }

    #[test]
    fn others_give_way_to_one_starved_write_until_it_is_through() {
        let (mut waiters, mut splitting) = waiters();
        waiters.set_starved(5);
        waiters.end_starved(4, &mut splitting);
        assert_eq!((waiters.starved(), splitting.len()), (5, 0));
        waiters.end_starved(5, &mut splitting);
        assert_eq!((waiters.starved(), drain(&mut splitting)), (NONE, alloc::vec![7]));
    }
}
