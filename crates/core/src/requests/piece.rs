//! Pieces of host requests: their states. `request.rs` and `split.rs` do the work on them.

use openraid_units::{Sectors, SetId, SetLba};

use crate::actions::ReplyStatus;
use crate::frames::Run;
use crate::geometry::Split;
use crate::reason::Reason;
use crate::slab::{Queue, Slab, NONE};

/// State of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PieceState {
    /// Payload is arriving from the host.
    Receiving,
    /// Frames are being filled with zeroes.
    Filling,
    /// Operations are being made or are in work.
    Working,
    /// A complete read that is not the next one to be sent.
    WaitTurn,
    /// Payload is being sent to the host.
    Sending,
}

/// How a piece of a read gets its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// Directly from their sectors.
    Directly,
    /// The direct read has failed: it is read again by rows when all its operations have ended. If its frames are
    /// abandoned, a given-up command may still use them, and the piece needs others.
    Again { frames_abandoned: bool },
    /// A parity set is read row by row, with recovery.
    ByRows,
}

/// The journal entry for which a piece of a write waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PieceEntry {
    /// None so far.
    None,
    /// This one, perhaps with earlier ones.
    Waits(u64),
    /// Its entry never became durable; it waits with the other such pieces.
    Orphaned,
}

/// Data that only pieces of reads have, and data that only pieces of writes and zeroes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Read(ReadWay),
    Write(PieceEntry),
}

/// Data of a piece of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadWay {
    reading: Reading,
    /// Lines are reserved for its data.
    fills: bool,
    /// First of the pieces that wait for the data of this one.
    waiters: u32,
}

impl Way {
    /// The initial state of a read.
    pub(crate) const READ: Self = Self::Read(ReadWay { reading: Reading::Directly, fills: false, waiters: NONE });
    /// The initial state of a write.
    pub(crate) const WRITE: Self = Self::Write(PieceEntry::None);
}

/// A piece of a host request.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub request: u32,
    /// Its first byte and its length, within the request.
    pub offset: u64,
    pub len: u64,
    /// The first sector of the array and the sector after the last one, with partial blocks counted in full; and the
    /// bytes of the first and the last block that the request does not cover.
    pub first: Sectors,
    pub last: Sectors,
    pub head_skip: u16,
    pub tail_skip: u16,
    pub run: Option<Run>,
    pub state: PieceState,
    /// Number of operations in work.
    pub ops: u32,
    /// Number of sectors of the piece that have an operation already.
    pub split: Sectors,
    pub error: Option<ReplyStatus>,
    pub way: Way,
    /// In the queue of pieces that need operations, or waiting for the cache.
    pub queued: bool,
    /// The reason for which it waits since it was last called.
    pub waits: Option<Reason>,
    /// The next piece that waits for the same dirty unit, or for the same piece.
    pub next_waiter: u32,
    /// Number of times that it met dirty data on its way past the cache.
    pub turns: u8,
    /// It walks through a parity set: see [`Walk`].
    pub walks: bool,
}

/// A walk of a piece through a parity set, row by row. It is stored apart from its piece, because it is large and most
/// pieces have none.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// The rest.
    pub left: Split,
    /// Its beginning, in the set and in the piece.
    pub base: (SetId, SetLba),
    pub from: Sectors,
}

impl Piece {
    /// A piece of a request, without frames, to be completed.
    #[inline(always)]
    pub(crate) fn new(request: u32, way: Way) -> Self {
        Self {
            request,
            offset: 0,
            len: 0,
            first: Sectors::ZERO,
            last: Sectors::ZERO,
            head_skip: 0,
            tail_skip: 0,
            run: None,
            state: PieceState::Working,
            ops: 0,
            split: Sectors::ZERO,
            error: None,
            way,
            queued: false,
            waits: None,
            next_waiter: NONE,
            turns: 0,
            walks: false,
        }
    }

    /// It must be read again, in other frames if a given-up command may still use the present ones.
    pub(crate) fn read_again(&mut self, abandons_frames: bool) {
        let before = self.reading() == Some(Reading::Again { frames_abandoned: true });
        self.set_reading(Reading::Again { frames_abandoned: before || abandons_frames });
    }

    /// Must it be read again?
    pub(crate) fn is_read_again(&self) -> bool {
        matches!(self.reading(), Some(Reading::Again { .. }))
    }

    /// How it gets its bytes, if it belongs to a read.
    #[inline(always)]
    pub(crate) const fn reading(&self) -> Option<Reading> {
        match &self.way {
            Way::Read(own) => Some(own.reading),
            Way::Write(_) => None,
        }
    }

    pub(super) fn set_reading(&mut self, reading: Reading) {
        self.as_read().reading = reading;
    }

    fn as_read(&mut self) -> &mut ReadWay {
        let Way::Read(own) = &mut self.way else { unreachable!("asked of a read") };
        own
    }

    /// Lines are reserved for its data.
    pub(crate) fn begin_fill(&mut self) {
        self.as_read().fills = true;
    }

    /// Are lines reserved for its data?
    pub(crate) const fn is_filling(&self) -> bool {
        matches!(&self.way, Way::Read(own) if own.fills)
    }

    /// Its reserved lines are settled; true if there were any.
    pub(crate) fn end_fill(&mut self) -> bool {
        match &mut self.way {
            Way::Read(own) => core::mem::take(&mut own.fills),
            Way::Write(_) => false,
        }
    }

    /// Put a piece in front of the pieces that wait for the data of this one. Returns the one that was first.
    pub(crate) fn put_waiter(&mut self, first: u32) -> u32 {
        core::mem::replace(&mut self.as_read().waiters, first)
    }

    /// It waits for this entry of the journal; true if that is new.
    pub(crate) fn wait_for_entry(&mut self, entry: PieceEntry) -> bool {
        let Way::Write(own) = &mut self.way else { unreachable!("only writes wait for entries") };
        core::mem::replace(own, entry) != entry
    }

    /// Sectors that it covers, with partial blocks counted in full.
    pub(crate) fn sectors(&self) -> Sectors {
        self.last - self.first
    }
}

impl Slab<Piece> {
    /// Put a piece into the queue of pieces that need operations.
    #[inline]
    pub(crate) fn want_ops(&mut self, splitting: &mut Queue, index: u32) {
        self[index].queued = true;
        splitting.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_is_read_again_keeps_in_mind_that_its_frames_are_abandoned() {
        let mut piece = Piece::new(0, Way::READ);
        assert!(!piece.is_read_again());
        piece.read_again(false);
        assert_eq!(piece.reading(), Some(Reading::Again { frames_abandoned: false }));
        piece.read_again(true);
        piece.read_again(false);
        assert_eq!(piece.reading(), Some(Reading::Again { frames_abandoned: true }));
        assert!(piece.is_read_again());
    }

    #[test]
    fn a_piece_of_a_write_has_an_entry_and_fills_no_lines() {
        let mut piece = Piece::new(0, Way::WRITE);
        assert!(piece.wait_for_entry(PieceEntry::Waits(3)));
        assert!(!piece.wait_for_entry(PieceEntry::Waits(3)), "it waits for that already");
        assert_eq!((piece.way, piece.reading(), piece.end_fill()), (Way::Write(PieceEntry::Waits(3)), None, false));
        let mut read = Piece::new(0, Way::READ);
        read.begin_fill();
        assert_eq!((read.put_waiter(7), read.put_waiter(8)), (NONE, 7));
        assert!(read.is_filling() && read.end_fill() && !read.end_fill());
    }

    #[test]
    fn a_piece_that_wants_operations_stands_in_the_queue_once_for_each_call() {
        let (mut pieces, mut splitting) = (Slab::new(4), Queue::new(4));
        let first = pieces.put(Piece::new(0, Way::READ)).index;
        let second = pieces.put(Piece { first: Sectors(8), last: Sectors(24), ..Piece::new(1, Way::WRITE) }).index;
        pieces.want_ops(&mut splitting, second);
        pieces.want_ops(&mut splitting, first);
        assert!(pieces[first].queued && pieces[second].queued);
        assert_eq!([splitting.pop(), splitting.pop(), splitting.pop()], [Some(second), Some(first), None]);
        assert_eq!(pieces[second].sectors(), Sectors(16));
    }
}
