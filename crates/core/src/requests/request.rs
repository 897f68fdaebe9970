//! The progress of a host request: the parts that are cut into pieces, in work and sent, and the way it ends.
//!
//! A request knows nothing of arrays, frames or queues. [`Requests`](super::Requests) asks it what comes next and tells it
//! what happened.

use openraid_units::{ArrayId, Bytes, Token};

use crate::actions::ReplyStatus;
use crate::events::{BlockRequest, RequestKind};
use crate::geometry::Divisor;
use crate::limits::{RANGE_BYTES_MAX, REQUEST_BYTES_MAX};

/// Maximum number of pieces of one request in work at once.
const PIECES_PER_REQUEST_MAX: u32 = 8;
/// Maximum number of pieces of a write that wait for payload at once. So a host that announces payload and does not
/// send it holds no more frames.
const PIECES_RECEIVING_MAX: u32 = 2;

/// The origin of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// A host. Requests of hosts are counted from 1. An array counts its unfinished requests.
    Host { number: u64, is_in_array: bool },
    /// Read-ahead, which no host requested.
    ReadAhead,
}

/// A host request inside the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    request: BlockRequest,
    progress: Progress,
    /// Number of pieces in work; for a flush or a discard, of operations.
    pieces: u32,
    error: Option<ReplyStatus>,
    origin: Origin,
}

/// The part of a request that is done or in work, by its kind.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// A read or a write.
    Pieces(PieceProgress),
    /// Number of bytes, from its first whole block, that were discarded or left out.
    Discard(Bytes),
    /// Number of sets that were flushed, and the progress with the set whose turn it is.
    Flush(u32, Sync),
}

/// The progress of a request that is processed in pieces.
#[derive(Clone, Copy, Debug)]
struct PieceProgress {
    /// Number of bytes that have a piece already.
    cut: u64,
    /// Number of bytes of a read that were sent.
    sent: u64,
    /// Number of pieces that wait for payload.
    receiving: u32,
    wants: Wants,
    frames: Shortage,
}

/// Does a request stand in the queue of requests that need pieces?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wants {
    Nothing,
    Pieces,
}

/// Progress of a flush with the set whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sync {
    /// Not begun.
    Idle,
    /// It waits for dirty data.
    Waits,
}

/// Has a request waited for frames? The wait is reported once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shortage {
    None,
    Reported,
}

/// Does a request fit an array of this size?
pub(super) fn check_range(request: &BlockRequest, capacity: Bytes) -> Result<(), ReplyStatus> {
    let limit = match request.kind {
        RequestKind::Read | RequestKind::Write { .. } => REQUEST_BYTES_MAX,
        RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => RANGE_BYTES_MAX,
        RequestKind::Flush => 0,
    };
    let end = request.offset.get().checked_add(request.len).ok_or(ReplyStatus::OutOfRange)?;
    if request.len > limit || end > capacity.get() {
        return Err(ReplyStatus::OutOfRange);
    }
    Ok(())
}

impl Progress {
    /// The first `cut` bytes have a piece.
    #[inline(always)]
    const fn pieces(cut: u64) -> Self {
        Self::Pieces(PieceProgress { cut, sent: 0, receiving: 0, wants: Wants::Nothing, frames: Shortage::None })
    }
}

impl Request {
    /// A host's request of which nothing is done yet.
    #[inline(always)]
    pub(crate) fn new(request: BlockRequest, number: u64) -> Self {
        let progress = match request.kind {
            RequestKind::Flush => Progress::Flush(0, Sync::Idle),
            RequestKind::Trim { .. } => Progress::Discard(Bytes::ZERO),
            RequestKind::Read | RequestKind::Write { .. } | RequestKind::WriteZeroes { .. } => Progress::pieces(0),
        };
        let origin = Origin::Host { number, is_in_array: false };
        Self { request, progress, pieces: 0, error: None, origin }
    }

    /// A read-ahead request. Its one piece is in work from the beginning.
    pub(crate) fn ahead(request: BlockRequest) -> Self {
        let progress = Progress::pieces(request.len);
        Self { progress, pieces: 1, origin: Origin::ReadAhead, ..Self::new(request, 0) }
    }

    /// The request as the host sent it.
    #[inline(always)]
    pub(crate) const fn asked(&self) -> &BlockRequest {
        &self.request
    }

    #[inline(always)]
    pub(crate) const fn array(&self) -> ArrayId {
        self.request.array
    }

    #[inline(always)]
    pub(crate) const fn kind(&self) -> RequestKind {
        self.request.kind
    }

    #[inline(always)]
    pub(crate) const fn token(&self) -> Token {
        self.request.token
    }

    /// The number of a host's request, counted from 1; 0 for read-ahead.
    #[inline(always)]
    pub(crate) const fn number(&self) -> u64 {
        match self.origin {
            Origin::Host { number, .. } => number,
            Origin::ReadAhead => 0,
        }
    }

    #[inline(always)]
    pub(crate) const fn is_ahead(&self) -> bool {
        matches!(self.origin, Origin::ReadAhead)
    }

    #[inline(always)]
    pub(crate) const fn is_read(&self) -> bool {
        matches!(self.request.kind, RequestKind::Read)
    }

    /// Is it a write that must be durable before it is acknowledged?
    #[inline(always)]
    pub(crate) const fn is_fua_write(&self) -> bool {
        matches!(self.request.kind, RequestKind::Write { fua: true } | RequestKind::WriteZeroes { fua: true, .. })
    }

    /// Count it as a request inside its array from now on.
    #[inline(always)]
    pub(super) fn enter_array(&mut self) {
        let Origin::Host { is_in_array, .. } = &mut self.origin else { unreachable!("read-ahead is not counted") };
        *is_in_array = true;
    }

    #[inline(always)]
    pub(crate) const fn is_in_array(&self) -> bool {
        matches!(self.origin, Origin::Host { is_in_array: true, .. })
    }

    /// A part of it failed. The host gets the first error.
    #[inline(always)]
    pub(crate) fn fail(&mut self, error: ReplyStatus) {
        self.error = self.error.or(Some(error));
    }

    #[inline(always)]
    pub(super) const fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// The status that the host gets, as far as it is known.
    #[inline(always)]
    pub(crate) fn status(&self) -> ReplyStatus {
        self.error.unwrap_or(ReplyStatus::Ok)
    }

    /// Does its last transfer also answer the request, so that it needs no reply?
    #[inline(always)]
    pub(crate) fn is_answered_by_transfer(&self) -> bool {
        self.is_read() && !self.has_failed() && self.request.len > 0
    }

    #[inline(always)]
    const fn piece_progress(&self) -> &PieceProgress {
        match &self.progress {
            Progress::Pieces(progress) => progress,
            Progress::Discard(_) | Progress::Flush(..) => panic!("asked of a request with pieces"),
        }
    }

    #[inline(always)]
    const fn piece_progress_mut(&mut self) -> &mut PieceProgress {
        match &mut self.progress {
            Progress::Pieces(progress) => progress,
            Progress::Discard(_) | Progress::Flush(..) => panic!("asked of a request with pieces"),
        }
    }

    /// Enter the queue of requests that need pieces, unless it is in the queue or needs none; true if it entered.
    #[inline(always)]
    pub(super) fn begin_to_want(&mut self) -> bool {
        let (len, has_failed) = (self.request.len, self.has_failed());
        let progress = self.piece_progress_mut();
        let wants = progress.wants == Wants::Nothing && !has_failed && progress.cut < len;
        if wants {
            progress.wants = Wants::Pieces;
        }
        wants
    }

    /// Leave the queue of requests that need pieces, because it has as many as it may have.
    #[inline(always)]
    pub(super) fn end_to_want(&mut self) {
        self.piece_progress_mut().wants = Wants::Nothing;
    }

    /// Has it as many pieces in work as it may have?
    #[inline(always)]
    pub(super) const fn has_enough_pieces(&self) -> bool {
        self.pieces >= PIECES_PER_REQUEST_MAX || self.piece_progress().receiving >= PIECES_RECEIVING_MAX
    }

    /// The first byte, in the array, that has no piece.
    #[inline(always)]
    pub(super) const fn next_start(&self) -> u64 {
        self.request.offset.get() + self.piece_progress().cut
    }

    /// Length of the next piece, and the bytes of frames that it needs. `block` is the block size of the array, a power
    /// of two. A piece with payload ends at a multiple of `piece_max`, or at the end of the request. A piece without
    /// payload has at most `range_max` bytes, and holds no frames.
    #[inline(always)]
    pub(super) fn next_piece(&self, block: Bytes, piece_max: Divisor, range_max: Bytes) -> (u64, u64) {
        let start = self.next_start();
        let left = self.request.len - self.piece_progress().cut;
        let block = block.get();
        // Masks instead of divisions, because the block is a power of two.
        let mask = block - 1;
        if let RequestKind::WriteZeroes { .. } = self.request.kind {
            let head = start & mask;
            if head != 0 {
                return (left.min(block - head), block);
            }
            let whole = left & !mask;
            return if whole == 0 { (left, block) } else { (whole.min(range_max.get()), 0) };
        }
        // Cut at multiples of the piece size, so that pieces do not divide more stripes than they must.
        let to_boundary = piece_max.by() - piece_max.remainder(start);
        let len = left.min(to_boundary);
        let (first, last) = (start & !mask, (start + len + mask) & !mask);
        (len, last - first)
    }

    /// The first `len` bytes without a piece get one. Returns their offset in the request.
    #[inline(always)]
    pub(super) fn cut_piece(&mut self, len: u64) -> u64 {
        self.pieces += 1;
        let progress = self.piece_progress_mut();
        progress.cut += len;
        progress.cut - len
    }

    /// Leave the queue of requests that need pieces if the last piece was cut; true if it left.
    #[inline(always)]
    pub(super) fn leave_if_cut(&mut self) -> bool {
        let len = self.request.len;
        let progress = self.piece_progress_mut();
        let leaves = progress.cut == len;
        if leaves {
            progress.wants = Wants::Nothing;
        }
        leaves
    }

    /// A piece waits for payload of the host.
    #[inline(always)]
    pub(super) fn begin_receiving(&mut self) {
        self.piece_progress_mut().receiving += 1;
    }

    /// The payload of a piece is complete, or will not come.
    #[inline(always)]
    pub(super) fn end_receiving(&mut self) {
        self.piece_progress_mut().receiving -= 1;
    }

    /// Send a piece of a read, `len` bytes from `offset`, if all bytes before it were sent. Then returns the start of
    /// the next piece, and whether this is the only piece in work.
    #[inline(always)]
    pub(super) fn send(&mut self, offset: u64, len: u64) -> Option<(u64, bool)> {
        let is_only = self.pieces == 1;
        let progress = self.piece_progress_mut();
        if offset != progress.sent {
            return None;
        }
        progress.sent += len;
        Some((progress.sent, is_only))
    }

    /// An operation of a flush or a discard begins. The first one counts for the work of making all others.
    pub(crate) fn begin_op(&mut self) {
        self.pieces += 1;
    }

    /// A piece, or an operation of a flush or a discard, is over.
    #[inline(always)]
    pub(super) fn end_piece(&mut self, error: Option<ReplyStatus>) {
        self.pieces -= 1;
        // Written only if there is an error: a write of one part before a read of the whole makes the processor wait.
        if let Some(error) = error {
            self.fail(error);
        }
    }

    /// Is no part of it in work?
    #[inline(always)]
    pub(super) const fn is_quiet(&self) -> bool {
        self.pieces == 0
    }

    /// Is no part of it in work, and will none follow?
    #[inline(always)]
    pub(super) const fn is_over(&self) -> bool {
        let progress = self.piece_progress();
        self.pieces == 0
            && (progress.cut == self.request.len || self.error.is_some())
            && matches!(progress.wants, Wants::Nothing)
    }

    /// Cut no more pieces. True if it was in the queue of requests that need pieces, which it leaves.
    pub(super) fn cut_no_more(&mut self) -> bool {
        let len = self.request.len;
        let progress = self.piece_progress_mut();
        let was_queued = core::mem::replace(&mut progress.wants, Wants::Nothing) == Wants::Pieces;
        if was_queued {
            progress.cut = len;
        }
        was_queued
    }

    /// It must wait for frames; true if this is its first wait for frames.
    pub(crate) fn begin_to_starve(&mut self) -> bool {
        core::mem::replace(&mut self.piece_progress_mut().frames, Shortage::Reported) == Shortage::None
    }

    /// A discard: the first byte in the array that is not done, and the number of bytes from there to the end of its
    /// last whole block; `None` if no whole block is left.
    pub(crate) fn next_discard(&self, block: Bytes) -> Option<(u64, Bytes)> {
        let start = self.request.offset.get().next_multiple_of(block.get());
        let end = Bytes(self.request.offset.get() + self.request.len).round_down(block).get();
        let Progress::Discard(done) = self.progress else { unreachable!("asked of a discard") };
        let at = start + done.get();
        (at < end).then(|| (at, Bytes(end - at)))
    }

    /// A discard: this number of further bytes was discarded or left out.
    pub(crate) fn pass_discarded(&mut self, bytes: Bytes) {
        let Progress::Discard(done) = &mut self.progress else { unreachable!("asked of a discard") };
        *done += bytes;
    }

    /// A flush: the number of the set whose turn it is.
    pub(crate) fn next_set(&self) -> usize {
        let Progress::Flush(done, _) = self.progress else { unreachable!("asked of a flush") };
        done as usize
    }

    /// A flush: continue with the next set.
    pub(crate) fn pass_set(&mut self) {
        let Progress::Flush(done, _) = &mut self.progress else { unreachable!("asked of a flush") };
        *done += 1;
    }

    /// A flush: does it wait for the dirty data of the set whose turn it is?
    pub(crate) fn is_syncing(&self) -> bool {
        matches!(self.progress, Progress::Flush(_, Sync::Waits))
    }

    /// A flush: the cache has answered for the set whose turn it is.
    pub(crate) fn note_sync(&mut self, answer: Synced) {
        let Progress::Flush(_, sync) = &mut self.progress else { unreachable!("asked of a flush") };
        *sync = if answer == Synced::Waits { Sync::Waits } else { Sync::Idle };
        if answer == Synced::Failed {
            self.fail(ReplyStatus::IoError);
        }
    }
}

/// The cache's answer to a flush of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Synced {
    /// All data that the flush covers is on the members.
    Done,
    /// Some of it could not be written.
    Failed,
    /// Other flushes come first: the flush asks again.
    Later,
    /// The flush waits for the units of the epochs that it ended, and asks again.
    Waits,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use openraid_units::ArrayOffset;

    const WRITE: RequestKind = RequestKind::Write { fua: false };
    const ZEROES: RequestKind = RequestKind::WriteZeroes { fua: false, may_discard: true };
    const TRIM: RequestKind = RequestKind::Trim { fua: false };

    fn asked(kind: RequestKind, offset: u64, len: u64) -> BlockRequest {
        BlockRequest { token: Token(7), array: ArrayId(3), kind, offset: ArrayOffset(offset), len }
    }

    fn request(kind: RequestKind, offset: u64, len: u64) -> Request {
        Request::new(asked(kind, offset, len), 1)
    }

    /// All pieces, each of which ends at once: the start in the array, the length, and the bytes of frames of each.
    fn cut(kind: RequestKind, offset: u64, len: u64, block: u64, piece_max: u64) -> Vec<(u64, u64, u64)> {
        let mut request = request(kind, offset, len);
        let mut pieces = Vec::new();
        assert!(request.begin_to_want());
        while pieces.len() < 100 {
            let (bytes, frames) = request.next_piece(Bytes(block), Divisor::new(piece_max), Bytes::mib(16));
            let start = request.next_start();
            assert_eq!(request.cut_piece(bytes), start - offset);
            pieces.push((start, bytes, frames));
            request.end_piece(None);
            if request.leave_if_cut() {
                assert!(request.is_over() && !request.begin_to_want());
                return pieces;
            }
        }
        panic!("it is never cut: {pieces:?}")
    }

    #[test]
    fn pieces_end_at_multiples_of_the_piece_size_and_have_frames_for_whole_blocks() {
        assert_eq!(cut(RequestKind::Read, 0, 4096, 512, 4096), [(0, 4096, 4096)]);
        // Byte 1000 is in the second block of 512, byte 9000 in the eighteenth, which ends at 9216.
        assert_eq!(cut(WRITE, 1000, 8000, 512, 4096), [(1000, 3096, 3584), (4096, 4096, 4096), (8192, 808, 1024)]);
        // One byte at the end of a block needs the whole block; two bytes across a boundary are two pieces.
        assert_eq!(cut(WRITE, 4095, 1, 4096, 65_536), [(4095, 1, 4096)]);
        assert_eq!(cut(WRITE, 65_535, 2, 4096, 65_536), [(65_535, 1, 4096), (65_536, 1, 4096)]);
        // A piece size that is not a power of two: three chunks of 20 KiB.
        assert_eq!(cut(RequestKind::Read, 61_440 - 512, 1024, 512, 61_440), [(60_928, 512, 512), (61_440, 512, 512)]);
    }

    #[test]
    fn every_byte_is_in_one_piece_and_its_frames_hold_its_blocks() {
        for (offset, len) in (0..40).flat_map(|step| (1..40).map(move |bytes| (step * 257, bytes * 411))) {
            for (kind, block) in [(RequestKind::Read, 512), (WRITE, 4096), (ZEROES, 512), (ZEROES, 4096)] {
                let mut at = offset;
                for (start, bytes, frames) in cut(kind, offset, len, block, 8192) {
                    assert_eq!(start, at, "pieces follow each other");
                    at += bytes;
                    let blocks = at.div_ceil(block) - start / block;
                    let is_without_payload = frames == 0 && kind == ZEROES;
                    assert!(frames == blocks * block || is_without_payload, "{start}+{bytes}: {frames}");
                    assert!(!is_without_payload || (start % block == 0 && at % block == 0), "edges need frames");
                }
                assert_eq!(at, offset + len, "{kind:?} {offset}+{len}");
            }
        }
    }

    #[test]
    fn zeroes_need_frames_only_for_their_edges_and_are_cut_at_16_mib() {
        assert_eq!(cut(ZEROES, 4096, 8192, 4096, 4096), [(4096, 8192, 0)]);
        assert_eq!(cut(ZEROES, 100, 8192, 4096, 4096), [(100, 3996, 4096), (4096, 4096, 0), (8192, 100, 4096)]);
        // An edge at both ends of one block is one piece.
        assert_eq!(cut(ZEROES, 100, 200, 4096, 4096), [(100, 200, 4096)]);
        let mib = 1 << 20;
        assert_eq!(
            cut(ZEROES, 0, 40 * mib, 512, 4096),
            [(0, 16 * mib, 0), (16 * mib, 16 * mib, 0), (32 * mib, 8 * mib, 0)]
        );
    }

    #[test]
    fn a_request_has_eight_pieces_in_work_at_the_most_and_two_that_wait_for_payload() {
        let mut read = request(RequestKind::Read, 0, 64 << 10);
        for piece in 0..8 {
            assert!(!read.has_enough_pieces(), "{piece} pieces");
            read.cut_piece(4096);
        }
        assert!(read.has_enough_pieces());
        read.end_piece(None);
        assert!(!read.has_enough_pieces());

        let mut write = request(WRITE, 0, 64 << 10);
        for _ in 0..2 {
            assert!(!write.has_enough_pieces());
            write.cut_piece(4096);
            write.begin_receiving();
        }
        assert!(write.has_enough_pieces());
        write.end_receiving();
        assert!(!write.has_enough_pieces());
    }

    #[test]
    fn a_request_enters_the_queue_once_and_not_after_an_error() {
        let mut write = request(WRITE, 0, 8192);
        assert!(write.begin_to_want() && !write.begin_to_want());
        write.cut_piece(4096);
        assert!(!write.leave_if_cut(), "half of it has no piece");
        write.end_to_want();
        assert!(write.begin_to_want());
        write.end_to_want();
        write.end_piece(Some(ReplyStatus::IoError));
        assert!(!write.begin_to_want(), "it has failed");
        assert!(write.is_over(), "nothing of it is in work");
        assert!(!request(WRITE, 0, 0).begin_to_want(), "it has no bytes");
    }

    #[test]
    fn a_request_is_over_when_all_is_cut_and_nothing_is_in_work() {
        let mut write = request(WRITE, 0, 8192);
        write.cut_piece(4096);
        write.end_piece(None);
        assert!(write.is_quiet() && !write.is_over(), "half of it has no piece");
        write.cut_piece(4096);
        assert!(!write.is_quiet() && !write.is_over());
        write.end_piece(None);
        assert!(write.is_over());
        assert_eq!((write.status(), write.is_answered_by_transfer()), (ReplyStatus::Ok, false));
    }

    #[test]
    fn a_request_that_fails_while_it_waits_for_pieces_leaves_the_queue_and_is_over() {
        let mut read = request(RequestKind::Read, 0, 64 << 10);
        assert!(read.begin_to_want());
        read.cut_piece(4096);
        read.end_piece(Some(ReplyStatus::IoError));
        assert!(!read.is_over(), "the queue names it");
        assert!(read.cut_no_more() && !read.cut_no_more());
        assert!(read.is_over() && read.is_quiet() && !read.begin_to_want());
    }

    #[test]
    fn the_first_error_of_several_pieces_is_the_reply() {
        let mut write = request(WRITE, 0, 12_288);
        (0..3).for_each(|_| assert!(write.cut_piece(4096) < 12_288));
        write.end_piece(None);
        assert_eq!(write.status(), ReplyStatus::Ok);
        write.end_piece(Some(ReplyStatus::Offline));
        write.end_piece(Some(ReplyStatus::IoError));
        assert_eq!((write.status(), write.is_over()), (ReplyStatus::Offline, true));
        write.fail(ReplyStatus::ReadOnly);
        assert_eq!(write.status(), ReplyStatus::Offline);
    }

    #[test]
    fn pieces_of_a_read_are_sent_in_order_and_the_last_transfer_answers_it() {
        let mut read = request(RequestKind::Read, 512, 12_288);
        let offsets = [0; 3].map(|_| read.cut_piece(4096));
        assert_eq!(offsets, [0, 4096, 8192], "counted from the first byte of the request");
        assert_eq!((read.send(4096, 4096), read.send(8192, 4096)), (None, None), "the first one is missing");
        assert_eq!(read.send(0, 4096), Some((4096, false)));
        assert_eq!(read.send(0, 4096), None, "it was sent");
        read.end_piece(None);
        assert_eq!(read.send(4096, 4096), Some((8192, false)));
        read.end_piece(None);
        assert_eq!(read.send(8192, 4096), Some((12_288, true)));
        assert!(read.is_answered_by_transfer());
        read.end_piece(Some(ReplyStatus::IoError));
        assert!(!read.is_answered_by_transfer() && !request(RequestKind::Read, 0, 0).is_answered_by_transfer());
    }

    #[test]
    fn a_discard_goes_through_its_whole_blocks_only() {
        let mut discard = request(TRIM, 1000, 10_000);
        // From 1024 to 10752 in blocks of 512, and from 4096 to 8192 in blocks of 4096.
        assert_eq!(discard.next_discard(Bytes(512)), Some((1024, Bytes(9728))));
        assert_eq!(discard.next_discard(Bytes(4096)), Some((4096, Bytes(4096))));
        discard.pass_discarded(Bytes(9216));
        assert_eq!(discard.next_discard(Bytes(512)), Some((10_240, Bytes(512))));
        discard.pass_discarded(Bytes(512));
        assert_eq!(discard.next_discard(Bytes(512)), None);
        assert_eq!(request(TRIM, 1, 510).next_discard(Bytes(512)), None, "no whole block");
        assert_eq!(request(TRIM, 512, 0).next_discard(Bytes(512)), None, "no bytes");
    }

    #[test]
    fn a_flush_has_one_set_after_the_other_and_is_over_after_its_last_operation() {
        let mut flush = request(RequestKind::Flush, 0, 0);
        // The work of making operations, then two operations. The first one ends before the second one begins.
        flush.begin_op();
        assert_eq!(flush.next_set(), 0);
        flush.pass_set();
        flush.begin_op();
        flush.end_piece(None);
        assert!(!flush.is_quiet(), "operations are still being made");
        assert_eq!(flush.next_set(), 1);
        flush.pass_set();
        flush.begin_op();
        flush.end_piece(None);
        assert!(!flush.is_quiet());
        flush.end_piece(Some(ReplyStatus::IoError));
        assert_eq!((flush.is_quiet(), flush.status()), (true, ReplyStatus::IoError));
    }

    #[test]
    fn a_flush_whose_dirty_data_could_not_be_written_fails_once_it_waits_no_more() {
        let mut flush = request(RequestKind::Flush, 0, 0);
        flush.note_sync(Synced::Waits);
        assert!(flush.is_syncing() && !flush.has_failed());
        flush.note_sync(Synced::Done);
        assert!(!flush.is_syncing() && !flush.has_failed());
        flush.note_sync(Synced::Waits);
        flush.note_sync(Synced::Failed);
        assert_eq!((flush.is_syncing(), flush.status()), (false, ReplyStatus::IoError));
    }

    #[test]
    fn a_request_beyond_the_end_or_too_long_is_refused() {
        let size = Bytes(1 << 40);
        let check = |kind, offset, len| check_range(&asked(kind, offset, len), size);
        assert_eq!(check(RequestKind::Read, (1 << 40) - 1, 1), Ok(()));
        assert_eq!(check(RequestKind::Read, 1 << 40, 0), Ok(()), "nothing at the end");
        for (offset, len) in [((1 << 40) - 1, 2), (1 << 40, 1), ((1 << 40) + 1, 0), (u64::MAX, 1), (u64::MAX, u64::MAX)]
        {
            for kind in [RequestKind::Read, WRITE, ZEROES, TRIM] {
                assert_eq!(check(kind, offset, len), Err(ReplyStatus::OutOfRange), "{kind:?} {offset}+{len}");
            }
        }
        for (kind, most) in
            [(RequestKind::Read, REQUEST_BYTES_MAX), (WRITE, REQUEST_BYTES_MAX), (TRIM, RANGE_BYTES_MAX)]
        {
            assert_eq!(check(kind, 0, most), Ok(()));
            assert_eq!(check(kind, 0, most + 1), Err(ReplyStatus::OutOfRange));
        }
        assert_eq!(check(RequestKind::Flush, 0, 1), Err(ReplyStatus::OutOfRange), "a flush has no range");
    }

    #[test]
    fn a_reading_ahead_has_one_piece_and_no_number() {
        let ahead = Request::ahead(asked(RequestKind::Read, 0, 65_536));
        assert!(ahead.is_ahead() && ahead.is_read() && !ahead.is_in_array() && !ahead.is_quiet());
        let (mut over, mut host) = (ahead, request(RequestKind::Read, 0, 65_536));
        over.end_piece(None);
        assert!(over.is_over() && !over.begin_to_want());
        host.enter_array();
        assert_eq!((ahead.number(), host.number(), host.is_in_array()), (0, 1, true));
        assert!(host.begin_to_starve() && !host.begin_to_starve(), "it says so once");
        assert_eq!((host.array(), host.token()), (ArrayId(3), Token(7)));
    }
}
