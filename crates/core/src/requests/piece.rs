//! Pieces of host requests: their states. `request_life.rs` and `split_piece.rs` do the work on them.

use core::fmt;
use openraid_units::{Bytes, PoolOffset, Sectors, SetId, SetLba};

use crate::actions::ReplyStatus;
use crate::array::op_epochs::Epoch;
use crate::frames::Run;
use crate::geometry::shape::Side;
use crate::geometry::Split;
use crate::reason::Reason;
use crate::slab::NONE;

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

/// The place in which a piece waits for its next operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stands {
    /// In none: it needs no operation now.
    Nowhere,
    /// In one of the queues of pieces, or first in that of pieces that need operations.
    InQueue,
    /// In the chain of pieces that wait for the same dirty unit, or for the data of the same piece. `next`: the next of
    /// them, or [`NONE`].
    InChain { next: u32 },
}

/// The part of a piece that is cut into operations, in sectors from its first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// The sectors before this one have operations or are in the cache.
    To(Sectors),
    /// The sectors before `end` are processed row by row, and some rows have no operation yet: see [`RowProgress`].
    ByRows { end: Sectors },
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

/// The journal entry that a piece of a write waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PieceEntry {
    /// None yet.
    None,
    /// This one, and perhaps earlier ones.
    Waits(u64),
    /// Its entry never became durable; it waits with the other such pieces.
    Orphaned,
}

/// The number of no stream. A byte, so that it costs nothing to pieces that are in none.
const NO_STREAM: u8 = u8::MAX;

/// Data that only pieces of reads have, and data that only pieces of writes and zeroes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PieceData {
    Read(ReadData),
    Write(PieceEntry),
}

/// Data of a piece of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadData {
    reading: Reading,
    /// Are cache lines reserved for its data?
    fills: bool,
    /// First of the pieces that wait for the data of this one.
    waiters: u32,
}

impl PieceData {
    /// The initial state of a read.
    pub(crate) const READ: Self = Self::Read(ReadData { reading: Reading::Directly, fills: false, waiters: NONE });
    /// The initial state of a write.
    pub(crate) const WRITE: Self = Self::Write(PieceEntry::None);
}

/// A piece of a host request.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    request: u32,
    /// First byte and bytes, within the request.
    offset: u64,
    len: u64,
    /// The first sector of the array and the sector after the last one, with partial blocks counted as whole; and the
    /// bytes of the first and of the last block that the request does not cover.
    first: Sectors,
    last: Sectors,
    head_skip: u16,
    tail_skip: u16,
    run: Option<Run>,
    pub(super) state: PieceState,
    /// Number of operations in work.
    ops: u32,
    progress: Progress,
    error: Option<ReplyStatus>,
    data: PieceData,
    stands: Stands,
    /// The reason of its present wait, since it last advanced.
    waits: Option<Reason>,
    /// If it bypasses the cache: the number of times that it found dirty data in its range.
    turns: u8,
    /// The stream of adjoining writes that it is in, or [`NO_STREAM`]. `gather.rs` has the rest.
    stream: u8,
}

/// The progress of a piece that is processed row by row. It is stored apart from its piece, because it is large and
/// most pieces have none.
#[derive(Clone, Debug)]
pub(crate) struct RowProgress {
    /// The part that has no operation yet.
    pub(super) left: Split,
    /// The start of the part in its set, and in the piece.
    pub(super) base: (SetId, SetLba),
    pub(super) side: Side,
    pub(super) from: Sectors,
    /// The epoch of the set in which the place was looked up.
    pub(super) epoch: Epoch,
}

/// The place of a piece in its array and in its request, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// Its first byte in the array.
    pub(super) start: u64,
    /// Its first byte in the request.
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Piece {
    /// A new piece of a request, of an array with blocks of `block` bytes, a power of two.
    #[inline(always)]
    pub(super) fn cut(request: u32, at: Cut, block: Bytes, run: Option<Run>, data: PieceData) -> Self {
        let Cut { start, offset, len } = at;
        // Masks instead of divisions, because the block is a power of two.
        let mask = block.get() - 1;
        let narrow = |n: u64| u16::try_from(n).expect("a block is at most 4096 bytes");
        // Written out instead of `..Self::new(...)`: a piece is large, and one is made for each request.
        Self {
            request,
            offset,
            len,
            first: Bytes(start & !mask).sectors_floor(),
            last: Bytes((start + len + mask) & !mask).sectors_floor(),
            head_skip: narrow(start & mask),
            tail_skip: narrow((mask + 1 - ((start + len) & mask)) & mask),
            run,
            state: PieceState::Working,
            ops: 0,
            progress: Progress::To(Sectors::ZERO),
            error: None,
            data,
            stands: Stands::Nowhere,
            waits: None,
            turns: 0,
            stream: NO_STREAM,
        }
    }

    /// A piece of read-ahead, for the whole blocks from `first` to `last`.
    pub(crate) fn ahead(request: u32, first: Sectors, last: Sectors, run: Run) -> Self {
        let cut = Cut { start: first.bytes().get(), offset: 0, len: (last - first).bytes().get() };
        Self::cut(request, cut, Bytes(openraid_units::SECTOR_BYTES), Some(run), PieceData::READ)
    }

    /// A piece of a request with neither sectors nor frames.
    #[cfg(test)]
    pub(crate) fn new(request: u32, data: PieceData) -> Self {
        Self::cut(request, Cut { start: 0, offset: 0, len: 0 }, Bytes(512), None, data)
    }

    /// The request that it belongs to.
    #[inline(always)]
    pub(crate) const fn request(&self) -> u32 {
        self.request
    }

    /// Its first byte in the request, and its length in bytes.
    #[inline(always)]
    pub(super) const fn bytes(&self) -> (u64, u64) {
        (self.offset, self.len)
    }

    /// The first sector of the array that it covers, and the sector after the last one. Partial blocks count as whole.
    #[inline(always)]
    pub(crate) const fn range(&self) -> (Sectors, Sectors) {
        (self.first, self.last)
    }

    /// Does it share sectors of its array with another piece of the array?
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.first < other.last && other.first < self.last
    }

    /// Bytes of its first and its last block that its request does not cover.
    #[inline(always)]
    pub(super) const fn skips(&self) -> (u16, u16) {
        (self.head_skip, self.tail_skip)
    }

    /// Does it cover all of its first and its last block?
    #[inline(always)]
    pub(crate) const fn is_whole_blocks(&self) -> bool {
        self.head_skip == 0 && self.tail_skip == 0
    }

    /// Its frames, if it has some.
    #[inline(always)]
    pub(crate) const fn run(&self) -> Option<Run> {
        self.run
    }

    /// The place of its first block in the pool. Panics for a piece without frames. All reads and all writes with payload
    /// have some.
    #[inline(always)]
    pub(crate) fn frames_at(&self) -> PoolOffset {
        self.run.expect("a piece with payload has frames").at
    }

    /// The place of the first byte of its payload in the pool. Panics as [`Piece::frames_at`] does.
    #[inline(always)]
    pub(super) fn payload_at(&self) -> PoolOffset {
        self.frames_at() + Bytes(u64::from(self.head_skip))
    }

    /// Take its frames away: a given-up command may still write into them.
    pub(super) fn take_run(&mut self) -> Option<Run> {
        self.run.take()
    }

    /// Set its frames, if there are any.
    pub(super) fn set_run(&mut self, run: Option<Run>) {
        self.run = run;
    }

    /// Number of its sectors that have an operation, are in the cache, or are processed row by row.
    #[inline(always)]
    pub(crate) const fn split(&self) -> Sectors {
        let (Progress::To(end) | Progress::ByRows { end }) = self.progress;
        end
    }

    /// This number of further sectors has an operation or is in the cache.
    #[inline(always)]
    pub(crate) fn split_off(&mut self, len: Sectors) {
        debug_assert!(!self.is_by_rows(), "its rows come first");
        self.progress = Progress::To(self.split() + len);
    }

    /// Begin again row by row, from its first sector.
    pub(super) fn begin_by_rows(&mut self) {
        self.begin_again();
        self.set_reading(Reading::ByRows);
    }

    /// Have all of its sectors an operation, or will the rest get none because it failed?
    #[inline(always)]
    pub(super) fn is_split(&self) -> bool {
        self.error.is_some() || matches!(self.progress, Progress::To(end) if end >= self.sectors())
    }

    /// Process its next `len` sectors row by row.
    #[inline(always)]
    pub(super) fn begin_rows(&mut self, len: Sectors) {
        self.progress = Progress::ByRows { end: self.split() + len };
    }

    /// All its rows so far have operations.
    #[inline(always)]
    pub(super) fn end_rows(&mut self) {
        self.progress = Progress::To(self.split());
    }

    #[inline(always)]
    pub(super) const fn is_by_rows(&self) -> bool {
        matches!(self.progress, Progress::ByRows { .. })
    }

    /// An operation, a copy, or a wait for the journal begins for it.
    #[inline(always)]
    pub(crate) fn begin_op(&mut self) {
        self.ops += 1;
    }

    /// One of these has ended; true if it was the last one.
    #[inline(always)]
    pub(super) fn end_op(&mut self) -> bool {
        self.ops -= 1;
        self.ops == 0
    }

    #[inline(always)]
    pub(crate) const fn has_ops(&self) -> bool {
        self.ops > 0
    }

    /// Note the error of a part, if there is one. The first error counts.
    #[inline(always)]
    pub(crate) fn note_error(&mut self, error: Option<ReplyStatus>) {
        self.error = self.error.or(error);
    }

    #[inline(always)]
    pub(super) const fn error(&self) -> Option<ReplyStatus> {
        self.error
    }

    #[inline(always)]
    pub(crate) const fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Does it stand in a queue or a chain?
    #[inline(always)]
    pub(super) fn is_queued(&self) -> bool {
        self.stands != Stands::Nowhere
    }

    /// It needs operations.
    #[inline(always)]
    pub(super) fn enter_queue(&mut self) {
        self.stands = Stands::InQueue;
    }

    /// It needs no more operations.
    #[inline(always)]
    pub(super) fn leave_queue(&mut self) {
        self.stands = Stands::Nowhere;
    }

    /// It waits for this reason; true if it did not wait for the reason before, since it last advanced.
    pub(crate) fn begin_wait(&mut self, reason: Reason) -> bool {
        self.waits.replace(reason) != Some(reason)
    }

    /// It has advanced.
    #[inline(always)]
    pub(crate) fn end_wait(&mut self) {
        self.waits = None;
    }

    /// It waits in a chain, and `next` is the next piece in it, or [`NONE`].
    pub(super) fn enter_chain(&mut self, next: u32) {
        self.stands = Stands::InChain { next };
    }

    /// It leaves its chain for a queue. Returns the next piece in the chain, or [`NONE`].
    pub(super) fn leave_chain(&mut self) -> u32 {
        match core::mem::replace(&mut self.stands, Stands::InQueue) {
            Stands::InChain { next } => next,
            Stands::Nowhere | Stands::InQueue => NONE,
        }
    }

    /// It found dirty data in its range once more. Returns the number of times so far.
    pub(crate) fn count_turn(&mut self) -> u8 {
        self.turns = self.turns.saturating_add(1);
        self.turns
    }

    /// Its range has no dirty data any more.
    #[inline]
    pub(crate) fn end_turns(&mut self) {
        self.turns = 0;
    }

    /// The stream of adjoining writes that it is in.
    #[inline(always)]
    pub(crate) const fn stream(&self) -> Option<u8> {
        if self.stream == NO_STREAM {
            None
        } else {
            Some(self.stream)
        }
    }

    /// It adjoins another piece: both are in this stream.
    pub(super) fn enter_stream(&mut self, stream: u8) {
        assert!(stream != NO_STREAM, "there are fewer streams");
        self.stream = stream;
    }

    /// Number of its operations in work, of the parts that are held for other pieces, and of its other waits.
    pub(super) const fn ops(&self) -> u32 {
        self.ops
    }

    /// Is its payload still to arrive?
    pub(super) fn is_receiving(&self) -> bool {
        self.state == PieceState::Receiving
    }

    /// Begin again from its first sector.
    pub(super) fn begin_again(&mut self) {
        self.progress = Progress::To(Sectors::ZERO);
    }

    /// It must be read again: with other frames, if a given-up command may still use these.
    pub(crate) fn read_again(&mut self, abandons_frames: bool) {
        let before = self.reading() == Some(Reading::Again { frames_abandoned: true });
        self.set_reading(Reading::Again { frames_abandoned: before || abandons_frames });
    }

    /// Must it be read again?
    pub(crate) fn is_read_again(&self) -> bool {
        matches!(self.reading(), Some(Reading::Again { .. }))
    }

    /// The way in which it gets its bytes; none for a write.
    #[inline(always)]
    pub(crate) const fn reading(&self) -> Option<Reading> {
        match &self.data {
            PieceData::Read(read) => Some(read.reading),
            PieceData::Write(_) => None,
        }
    }

    pub(super) fn set_reading(&mut self, reading: Reading) {
        self.as_read().reading = reading;
    }

    fn as_read(&mut self) -> &mut ReadData {
        let PieceData::Read(read) = &mut self.data else { unreachable!("asked of a read") };
        read
    }

    /// Reserve lines for its data.
    pub(crate) fn begin_fill(&mut self) {
        self.as_read().fills = true;
    }

    /// Are lines reserved for its data?
    pub(crate) const fn is_filling(&self) -> bool {
        matches!(&self.data, PieceData::Read(read) if read.fills)
    }

    /// Its line reservations have ended; true if there were any.
    pub(crate) fn end_fill(&mut self) -> bool {
        match &mut self.data {
            PieceData::Read(read) => core::mem::take(&mut read.fills),
            PieceData::Write(_) => false,
        }
    }

    /// Put a piece before the pieces that wait for the data of this one. Returns the one that was first.
    pub(crate) fn put_waiter(&mut self, first: u32) -> u32 {
        core::mem::replace(&mut self.as_read().waiters, first)
    }

    /// Wait for this entry of the journal; true if it did not wait for it before.
    pub(crate) fn wait_for_entry(&mut self, entry: PieceEntry) -> bool {
        let PieceData::Write(current) = &mut self.data else { unreachable!("only writes wait for entries") };
        core::mem::replace(current, entry) != entry
    }

    /// Number of sectors that it covers. Partial blocks count as whole.
    #[inline(always)]
    pub(crate) fn sectors(&self) -> Sectors {
        self.last - self.first
    }
}

/// Its state, for a list of all work in progress.
impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}, {} of {} split, {} operations, error {:?}, stands {:?}, {:?}",
            self.state,
            self.split(),
            self.sectors(),
            self.ops,
            self.error,
            self.stands,
            self.data,
        )
    }
}

/// The cache's answer for a part of a read or a write.
pub(crate) enum Cached {
    /// It has handled the first part.
    Taken,
    /// This number of sectors bypasses the cache.
    Past(Sectors),
    /// The piece waits, for lines or for a dirty unit; it is called again.
    Waits,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Frames;

    /// Two frames from byte 65,536 of the pool.
    fn run() -> Run {
        let run = Frames::new(1 << 16, 1 << 20).take(8192).expect("all are free");
        assert_eq!(run.at, PoolOffset(1 << 16));
        run
    }

    /// A piece of a write with these frames.
    fn piece(start: u64, len: u64, block: u64) -> Piece {
        Piece::cut(3, Cut { start, offset: 100, len }, Bytes(block), Some(run()), PieceData::WRITE)
    }

    #[test]
    fn a_piece_covers_whole_blocks_and_skips_what_its_request_does_not_cover() {
        // Bytes 1000..5000: in blocks of 512 from sector 1 to sector 10, of 4096 from 0 to 16.
        for (block, first, last, skips) in [(512, 1, 10, (488, 120)), (4096, 0, 16, (1000, 3192))] {
            let piece = piece(1000, 4000, block);
            assert_eq!(piece.range(), (Sectors(first), Sectors(last)));
            assert_eq!((piece.skips(), piece.sectors()), (skips, Sectors(last - first)));
            assert_eq!((piece.bytes(), piece.is_whole_blocks()), ((100, 4000), false));
            assert_eq!(piece.payload_at(), PoolOffset((1 << 16) + u64::from(skips.0)));
        }
        assert!(piece(4096, 4096, 4096).is_whole_blocks());
        assert_eq!(piece(4095, 1, 4096).skips(), (4095, 0));
        assert_eq!(piece(4096, 1, 4096).skips(), (0, 4095));
    }

    #[test]
    fn pieces_overlap_if_they_share_a_block() {
        assert!(piece(0, 4096, 512).overlaps(&piece(4095, 2, 512)));
        assert!(
            !piece(0, 4096, 512).overlaps(&piece(4096, 1, 512)) && !piece(4096, 1, 512).overlaps(&piece(0, 4096, 512))
        );
        assert!(piece(0, 100, 4096).overlaps(&piece(4000, 1, 4096)), "they have no byte in common, but the block");
    }

    #[test]
    fn a_piece_is_split_when_its_last_sector_has_an_operation_and_its_walk_is_over() {
        let mut piece = piece(0, 8192, 512);
        piece.split_off(Sectors(8));
        assert!(!piece.is_split());
        piece.begin_rows(Sectors(8));
        assert!(!piece.is_split() && piece.split() == Sectors(16), "rows of it are left");
        piece.end_rows();
        assert!(piece.is_split());
        let mut failed = self::piece(0, 8192, 512);
        failed.note_error(None);
        assert!(!failed.is_split());
        failed.note_error(Some(ReplyStatus::IoError));
        assert!(failed.is_split(), "no more operations are made of it");
    }

    #[test]
    fn the_last_operation_of_several_ends_the_work_and_the_first_error_stays() {
        let mut piece = piece(0, 4096, 512);
        (0..3).for_each(|_| piece.begin_op());
        assert!(!piece.end_op() && !piece.end_op() && piece.has_ops());
        assert!(piece.end_op() && !piece.has_ops());
        for error in [None, Some(ReplyStatus::Offline), Some(ReplyStatus::IoError), None] {
            piece.note_error(error);
        }
        assert_eq!(piece.error(), Some(ReplyStatus::Offline));
    }

    #[test]
    fn a_piece_that_is_refused_twice_has_one_wait() {
        let mut piece = piece(0, 4096, 512);
        assert!(piece.begin_wait(Reason::WaitedForCache) && !piece.begin_wait(Reason::WaitedForCache));
        assert!(piece.begin_wait(Reason::WaitedForDestage));
        piece.end_wait();
        assert!(piece.begin_wait(Reason::WaitedForDestage));
        assert_eq!([piece.count_turn(), piece.count_turn()], [1, 2]);
        piece.end_turns();
        assert_eq!(piece.count_turn(), 1);
        (0..300).for_each(|_| assert!(piece.count_turn() > 1));
    }

    #[test]
    fn a_piece_that_begins_again_by_rows_begins_at_its_first_sector() {
        let mut piece = Piece::ahead(0, Sectors(8), Sectors(24), run());
        assert_eq!((piece.bytes(), piece.range()), ((0, 8192), (Sectors(8), Sectors(24))));
        piece.split_off(Sectors(16));
        piece.read_again(true);
        assert!(piece.take_run().is_some() && piece.run().is_none());
        piece.set_run(Some(run()));
        piece.begin_by_rows();
        assert_eq!((piece.split(), piece.reading(), piece.is_split()), (Sectors::ZERO, Some(Reading::ByRows), false));
    }

    #[test]
    fn a_piece_that_is_read_again_keeps_in_mind_that_its_frames_are_abandoned() {
        let mut piece = Piece::new(0, PieceData::READ);
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
        let mut piece = Piece::new(0, PieceData::WRITE);
        assert!(piece.wait_for_entry(PieceEntry::Waits(3)));
        assert!(!piece.wait_for_entry(PieceEntry::Waits(3)), "it waits for that already");
        assert_eq!(
            (piece.data, piece.reading(), piece.end_fill()),
            (PieceData::Write(PieceEntry::Waits(3)), None, false)
        );
        let mut read = Piece::new(0, PieceData::READ);
        read.begin_fill();
        assert_eq!((read.put_waiter(7), read.put_waiter(8)), (NONE, 7));
        assert!(read.is_filling() && read.end_fill() && !read.end_fill());
    }
}
