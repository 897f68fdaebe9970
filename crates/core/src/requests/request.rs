//! Host requests and their pieces: admission, payload frames, transfers, replies.
//!
//! A request is processed in pieces of limited size, several at a time, each with its own run of frames. So a request
//! can be larger than the memory. Payload is complete in its frames before an operation requests a range. Pieces of a
//! read are sent in order.
//!
//! ```text
//!  write:  WaitFrames -> Receiving -> Splitting -> Working -> done -> Reply when all are
//!  zero :  WaitFrames -> Filling   -> Splitting -> Working    (only the edges need frames)
//!  read :  WaitFrames -> Splitting -> Working -> WaitTurn -> Sending -> done
//! ```

use openraid_units::{Bytes, PoolOffset, Sectors, SetId, Tag, TagKind};

use crate::actions::{Actions, Direction, JobColumn, JobKind, ParityJob, Reply, ReplyStatus, Transfer};
use crate::cache::sync::Sync;
use crate::controller::Controller;
use crate::events::{BlockRequest, HostGone, RequestKind};
use crate::frames::Run;
use crate::geometry::Divisor;
use crate::io::footprint::Footprint;
use crate::io::op::{Op, OpKind, Payload, WorksFor};
use crate::limits::{RANGE_BYTES_MAX, REQUEST_BYTES_MAX, ZERO_REGION_BYTES};
use crate::reason::Reason;
use crate::requests::piece::{Piece, PieceState, Reading, Way};
use crate::slab::NONE;
use crate::steps::What;

/// Maximum number of pieces of one request in work.
const PIECES_PER_REQUEST_MAX: u32 = 8;
/// Maximum number of pieces of a write that wait for payload. A host that announces payload and then sends none holds
/// no more than these.
const PIECES_RECEIVING_MAX: u32 = 2;
/// Maximum size of a piece without payload. It may be larger than others, because it holds no frames.
const RANGE_PIECE_BYTES_MAX: u64 = 16 << 20;

/// A host request inside the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub request: BlockRequest,
    /// Number of bytes that have a piece already.
    pub cut: u64,
    /// Number of bytes of a read that were sent.
    pub sent: u64,
    /// Number of pieces (of a flush: operations) in work.
    pub pieces: u32,
    /// Number of pieces that wait for payload.
    pub receiving: u32,
    pub error: Option<ReplyStatus>,
    /// In the queue of requests that need pieces.
    pub queued: bool,
    /// A flush: its progress with the set whose turn it is.
    pub sync: Sync,
    /// It is a read-ahead; no host has requested it.
    pub ahead: bool,
    /// It is counted as inside its array.
    pub counted: bool,
    /// The number of a host's request, counted from 1; read-ahead has none.
    pub number: u64,
    /// It has waited for frames.
    pub starved: bool,
}

impl Request {
    #[inline(always)]
    pub(crate) fn new(request: BlockRequest) -> Self {
        Self {
            request,
            cut: 0,
            sent: 0,
            pieces: 0,
            receiving: 0,
            error: None,
            queued: false,
            sync: Sync::Idle,
            ahead: false,
            counted: false,
            number: 0,
            starved: false,
        }
    }
}

impl Controller {
    /// Admit a request: check it against its array, then let it wait for frames.
    pub(crate) fn admit(&mut self, request: BlockRequest, actions: &mut Actions) {
        self.asked += 1;
        // `submit` has reserved room.
        let key = self.requests.put(Request { number: self.asked, ..Request::new(request) });
        let BlockRequest { array, kind, offset, len, .. } = request;
        self.trace.request(&self.requests, key.index, || What::Arrived { array, kind, offset, len });
        if let Err(status) = self.check(&request) {
            self.requests[key.index].error = Some(status);
            self.finish_request(key.index, actions);
            return;
        }
        let array = self.arrays.get_mut(request.array);
        array.count(&request);
        array.enter(self.now);
        let is_adaptive = array.is_adaptive();
        self.requests[key.index].counted = true;
        if is_adaptive {
            self.watch_load(&request, actions);
        }
        match request.kind {
            RequestKind::Flush | RequestKind::Trim { .. } => {
                // One count stays until all operations are made.
                self.requests[key.index].pieces = 1;
                self.plain.push(key.index);
            }
            RequestKind::Read | RequestKind::Write { .. } | RequestKind::WriteZeroes { .. } => {
                if request.len == 0 {
                    self.finish_request(key.index, actions);
                } else {
                    self.want_piece(key.index);
                    if request.kind == RequestKind::Read {
                        self.note_read(&request);
                    }
                }
            }
        }
    }

    fn check(&self, request: &BlockRequest) -> Result<(), ReplyStatus> {
        let array = self.arrays.find(request.array).ok_or(ReplyStatus::Offline)?;
        if array.is_stopping() {
            return Err(ReplyStatus::Offline);
        }
        let limit = match request.kind {
            RequestKind::Read | RequestKind::Write { .. } => REQUEST_BYTES_MAX,
            RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => RANGE_BYTES_MAX,
            RequestKind::Flush => 0,
        };
        let end = request.offset.get().checked_add(request.len).ok_or(ReplyStatus::OutOfRange)?;
        if request.len > limit || end > array.capacity().bytes().get() {
            return Err(ReplyStatus::OutOfRange);
        }
        Ok(())
    }

    #[inline(always)]
    fn want_piece(&mut self, request: u32) {
        let entry = &mut self.requests[request];
        if !entry.queued && entry.error.is_none() && entry.cut < entry.request.len {
            entry.queued = true;
            self.wanting.push(request);
        }
    }

    /// Make pieces for the requests that need them, in order of arrival; true if one was made.
    #[inline(never)]
    pub(crate) fn cut_pieces(&mut self, actions: &mut Actions) -> bool {
        let Some(index) = self.wanting.front() else { return false };
        let request = &self.requests[index];
        if request.pieces >= PIECES_PER_REQUEST_MAX || request.receiving >= PIECES_RECEIVING_MAX {
            self.wanting.pop();
            self.requests[index].queued = false;
            return true;
        }
        let Some((len, run)) = self.take_frames(index) else { return false };
        if self.pieces.room() == 0 {
            if let Some(run) = run {
                self.host_frames.release(run);
            }
            return false;
        }
        let request = &self.requests[index];
        let (cut, start) = (request.cut, request.request.offset.get() + request.cut);
        // A power of two: masks, not divisions.
        let mask =
            self.arrays.find(request.request.array).expect("requests belong to arrays").block().bytes().get() - 1;
        let narrow = |n: u64| u16::try_from(n).expect("a block is at most 4096 bytes");
        // Written out, not `..Piece::new(index)`: one piece is made for each request, and it is large.
        let piece = Piece {
            request: index,
            offset: cut,
            len,
            first: Bytes(start & !mask).sectors_floor(),
            last: Bytes((start + len + mask) & !mask).sectors_floor(),
            head_skip: narrow(start & mask),
            tail_skip: narrow((mask + 1 - ((start + len) & mask)) & mask),
            run,
            state: PieceState::Working,
            ops: 0,
            split: Sectors::ZERO,
            error: None,
            way: if matches!(request.request.kind, RequestKind::Read) { Way::READ } else { Way::WRITE },
            waits: None,
            queued: false,
            next_waiter: NONE,
            turns: 0,
            walks: false,
        };
        let key = self.pieces.put(piece);
        let entry = &mut self.requests[index];
        entry.pieces += 1;
        entry.cut += len;
        if entry.cut == entry.request.len {
            entry.queued = false;
            self.wanting.pop();
        }
        self.start_piece(key.index, actions);
        true
    }

    /// Length of the next piece of a request, and its frames, if it needs some. `None` if it must wait for them.
    #[inline(always)]
    fn take_frames(&mut self, index: u32) -> Option<(u64, Option<Run>)> {
        let request = &self.requests[index];
        let most = self.arrays.find(request.request.array).expect("requests belong to arrays").piece();
        let (len, frames) = self.next_piece(request, most);
        if frames == 0 {
            return Some((len, None));
        }
        if let Some(run) = self.host_frames.take(frames) {
            return Some((len, Some(run)));
        }
        let Some((less, run)) = self.take_what_is_left(index) else {
            self.starve(index);
            return None;
        };
        Some((less, Some(run)))
    }

    /// There are no frames for a request: it waits, and the reason is noted once.
    #[cold]
    fn starve(&mut self, index: u32) {
        if !core::mem::replace(&mut self.requests[index].starved, true) {
            let set = self
                .arrays
                .find(self.requests[index].request.array)
                .expect("requests belong to arrays")
                .volume()
                .set(0);
            let (reason, free) = (Reason::WaitedForHostFrames, self.host_frames.free_frames());
            self.trace.note(&mut self.sets, set, reason, 0, free);
            self.trace.request(&self.requests, index, || What::Reason { reason, figure: free });
        }
    }

    /// Length of the next piece of a request, at most `piece_max`, and the size of the frames that it needs.
    #[inline(always)]
    pub(super) fn next_piece(&self, request: &Request, piece_max: Divisor) -> (u64, u64) {
        let start = request.request.offset.get() + request.cut;
        let left = request.request.len - request.cut;
        let array = self.arrays.find(request.request.array).expect("requests belong to arrays");
        let block = array.block().bytes().get();
        // A power of two: masks, not divisions.
        let mask = block - 1;
        if let RequestKind::WriteZeroes { .. } = request.request.kind {
            let head = start & mask;
            if head != 0 {
                return (left.min(block - head), block);
            }
            let whole = left & !mask;
            return if whole == 0 { (left, block) } else { (whole.min(RANGE_PIECE_BYTES_MAX), 0) };
        }
        // Cut at multiples of the piece size, so that pieces divide as few stripes as possible.
        let to_boundary = piece_max.by() - piece_max.remainder(start);
        let len = left.min(to_boundary);
        let (first, last) = (start & !mask, (start + len + mask) & !mask);
        (len, last - first)
    }

    fn start_piece(&mut self, index: u32, actions: &mut Actions) {
        let piece = &self.pieces[index];
        let request = self.requests[piece.request].request;
        let tag = self.piece_tag(index);
        match request.kind {
            RequestKind::Write { .. } => {
                self.pieces[index].state = PieceState::Receiving;
                let owner = self.pieces[index].request;
                self.requests[owner].receiving += 1;
                self.send_transfer(index, Direction::FromHost, actions);
            }
            RequestKind::WriteZeroes { .. } if piece.run.is_some() => {
                let (at, len) = (Self::payload_at(piece), piece.len);
                self.pieces[index].state = PieceState::Filling;
                let columns_start = u32::try_from(actions.columns.len()).expect("the arena is small");
                actions.columns.push(JobColumn { index: 0, at, old: PoolOffset::ZERO });
                actions.jobs.push(ParityJob {
                    tag,
                    kind: JobKind::Copy,
                    len: u32::try_from(len).expect("an edge is less than a block"),
                    columns_start,
                    columns_len: 1,
                    p: None,
                    q: None,
                });
            }
            RequestKind::WriteZeroes { .. } | RequestKind::Read => self.pieces.want_ops(&mut self.splitting, index),
            RequestKind::Flush | RequestKind::Trim { .. } => unreachable!("these have no pieces"),
        }
    }

    fn piece_tag(&self, index: u32) -> Tag {
        Tag::new(TagKind::Transfer, index, self.pieces.generation(index))
    }

    /// The place of the first byte of a piece in the pool.
    fn payload_at(piece: &Piece) -> PoolOffset {
        let run = piece.run.expect("a piece with payload has frames");
        run.at + Bytes(u64::from(piece.head_skip))
    }

    #[inline(always)]
    fn send_transfer(&mut self, index: u32, direction: Direction, actions: &mut Actions) {
        let piece = &self.pieces[index];
        let request = &self.requests[piece.request].request;
        let narrow = |n: u64| u32::try_from(n).expect("payload is at most 32 MiB");
        actions.transfers.push(Transfer {
            tag: self.piece_tag(index),
            token: request.token,
            direction,
            at: Self::payload_at(piece),
            offset: narrow(piece.offset),
            len: narrow(piece.len),
            last: piece.offset + piece.len == request.len,
        });
    }

    /// A transfer, or the filling of a piece, ended.
    pub(crate) fn on_transfer(&mut self, tag: Tag, result: Result<(), HostGone>, actions: &mut Actions) {
        let key = crate::slab::Key { index: tag.index(), generation: tag.generation() };
        assert!(self.pieces.holds(key), "a completion names a transfer that is out: {tag:?}");
        let piece = &mut self.pieces[key.index];
        let owner = piece.request;
        if piece.state == PieceState::Receiving {
            self.requests[owner].receiving -= 1;
        }
        match piece.state {
            PieceState::Receiving | PieceState::Filling => match result {
                Ok(()) => {
                    piece.state = PieceState::Working;
                    let len = piece.len;
                    self.trace.request(&self.requests, owner, || What::Received { len });
                    self.pieces.want_ops(&mut self.splitting, key.index);
                    self.want_piece(owner);
                }
                Err(HostGone) => {
                    piece.error = Some(ReplyStatus::Offline);
                    self.end_piece(key.index, actions);
                }
            },
            PieceState::Sending => self.end_piece(key.index, actions),
            // A copy to or from the cache.
            PieceState::Working => self.on_piece_op(key.index, None, actions),
            PieceState::WaitTurn => panic!("no transfer is out for {piece:?}"),
        }
    }

    /// An operation of a piece ended.
    pub(crate) fn on_piece_op(&mut self, index: u32, error: Option<ReplyStatus>, actions: &mut Actions) {
        let piece = &mut self.pieces[index];
        piece.ops -= 1;
        piece.error = piece.error.or(error);
        if piece.ops == 0 {
            self.check_piece(index, actions);
        }
    }

    /// Are all operations of a piece made and done?
    pub(crate) fn check_piece(&mut self, index: u32, actions: &mut Actions) {
        let piece = &self.pieces[index];
        let all_made = !piece.walks && piece.split >= piece.sectors();
        if piece.queued || piece.ops > 0 || (!all_made && piece.error.is_none()) {
            return;
        }
        let request = &self.requests[piece.request];
        let (is_ahead, is_read) = (request.ahead, matches!(request.request.kind, RequestKind::Read));
        if piece.is_read_again() && piece.error.is_none() {
            if !is_ahead {
                return self.restart_piece(index);
            }
            // It is not read again: the pieces that wait for it read for themselves.
            self.pieces[index].error = Some(ReplyStatus::IoError);
        }
        let piece = &self.pieces[index];
        if piece.is_filling() {
            let keep = piece.error.is_none();
            self.end_fill(index, keep, actions);
            self.release_ahead_waiters(index);
            if self.pieces[index].ops > 0 {
                return;
            }
        }
        let piece = &self.pieces[index];
        // A read that has failed sends nothing more.
        let wanted = self.requests[piece.request].error.is_none();
        if is_read && wanted && piece.error.is_none() && !is_ahead {
            self.pieces[index].state = PieceState::WaitTurn;
            self.send_in_turn(index, actions);
        } else {
            self.end_piece(index, actions);
        }
    }

    fn restart_piece(&mut self, index: u32) {
        let bytes = self.pieces[index].sectors().bytes().get();
        let piece = &mut self.pieces[index];
        if piece.reading() == Some(Reading::Again { frames_abandoned: true }) {
            piece.set_reading(Reading::Again { frames_abandoned: false });
            // A given-up command may still write into the old frames: they stay with the command.
            let run = piece.run.take().expect("reads have frames");
            self.host_frames.release(run);
        }
        if piece.run.is_none() {
            piece.run = self.host_frames.take(bytes);
        }
        if piece.run.is_none() {
            return self.restarting.push(index);
        }
        piece.split = Sectors::ZERO;
        piece.set_reading(Reading::ByRows);
        self.pieces.want_ops(&mut self.splitting, index);
    }

    /// Pieces that found no new frames for their second read try again.
    pub(crate) fn retry_restarts(&mut self) {
        for _ in 0..self.restarting.len() {
            let Some(index) = self.restarting.pop() else { return };
            self.restart_piece(index);
        }
    }

    fn send_in_turn(&mut self, index: u32, actions: &mut Actions) {
        let request = self.pieces[index].request;
        let mut next = Some(index);
        while let Some(at) = next {
            let (piece, entry) = (&mut self.pieces[at], &mut self.requests[request]);
            if piece.offset != entry.sent {
                return;
            }
            piece.state = PieceState::Sending;
            let len = piece.len;
            entry.sent += len;
            let (sent, is_last) = (entry.sent, entry.pieces == 1);
            self.trace.request(&self.requests, request, || What::Sending { len });
            self.send_transfer(at, Direction::ToHost, actions);
            if is_last {
                return;
            }
            next = self
                .pieces
                .iter()
                .find(|(_, p)| p.request == request && p.offset == sent && p.state == PieceState::WaitTurn)
                .map(|(i, _)| i);
        }
    }

    pub(super) fn end_piece(&mut self, index: u32, actions: &mut Actions) {
        self.end_turns(index);
        let piece = self.pieces.remove(index);
        if let Some(run) = piece.run {
            self.host_frames.release(run);
        }
        let entry = &mut self.requests[piece.request];
        entry.pieces -= 1;
        // Written only if there is an error: if a part of a word is written before the whole is read, the processor
        // waits.
        if piece.error.is_some() {
            entry.error = entry.error.or(piece.error);
        }
        let (done, failed) = (entry.cut == entry.request.len, entry.error.is_some());
        if failed {
            self.drop_waiting_pieces(piece.request);
        }
        let entry = &self.requests[piece.request];
        if entry.pieces == 0 && (done || failed) && !entry.queued {
            self.finish_request(piece.request, actions);
        } else if !done {
            self.want_piece(piece.request);
        }
    }

    /// A read that has failed sends nothing more: release its complete pieces.
    pub(super) fn drop_waiting_pieces(&mut self, request: u32) {
        if self.requests[request].queued {
            // It is in the queue of requests that need pieces: it ends when it comes to the front.
            self.requests[request].cut = self.requests[request].request.len;
            self.wanting.remove(request);
            self.requests[request].queued = false;
        }
        loop {
            let waiting = self.pieces.iter().find(|(_, p)| p.request == request && p.state == PieceState::WaitTurn);
            let Some(index) = waiting.map(|(i, _)| i) else { return };
            let piece = self.pieces.remove(index);
            if let Some(run) = piece.run {
                self.host_frames.release(run);
            }
            self.requests[request].pieces -= 1;
        }
    }

    /// Nothing of the request is in work any more.
    #[inline(always)]
    pub(crate) fn finish_request(&mut self, index: u32, actions: &mut Actions) {
        let status = self.requests[index].error.unwrap_or(ReplyStatus::Ok);
        self.trace.request(&self.requests, index, || What::Replied { status });
        let entry = self.requests.remove(index);
        if entry.ahead {
            return self.ahead_ended(&entry.request);
        }
        if entry.counted {
            let array = self.arrays.get_mut(entry.request.array);
            array.leave(self.now);
        }
        if entry.request.kind == RequestKind::Read {
            self.note_read_ended(&entry.request);
        }
        let answered_by_transfer =
            matches!(entry.request.kind, RequestKind::Read) && status == ReplyStatus::Ok && entry.request.len > 0;
        if !answered_by_transfer {
            actions.replies.push(Reply { token: entry.request.token, status });
        }
    }

    /// An operation that belongs to a request without pieces ended.
    pub(crate) fn end_request_op(&mut self, request: u32, error: Option<ReplyStatus>, actions: &mut Actions) {
        let entry = &mut self.requests[request];
        entry.pieces -= 1;
        entry.error = entry.error.or(error);
        if entry.pieces == 0 {
            self.finish_request(request, actions);
        }
    }

    /// The place of the payload of a piece, `from` sectors into it.
    pub(crate) fn piece_payload(&self, piece: &Piece, from: Sectors) -> Payload {
        match piece.run {
            Some(run) => Payload::Host(run.at + from.bytes()),
            None => {
                let kind = self.requests[piece.request].request.kind;
                Payload::Zero { may_discard: matches!(kind, RequestKind::WriteZeroes { may_discard: true, .. }) }
            }
        }
    }

    /// Number of bytes of the first and the last block of a piece that must be read before it can be written.
    #[inline]
    pub(crate) fn piece_edges(&self, piece: &Piece) -> (u16, u16) {
        if piece.run.is_none() || self.is_read(piece.request) {
            return (0, 0);
        }
        (piece.head_skip, piece.tail_skip)
    }

    /// Zero payload comes from the zero region, which bounds an operation without frames.
    pub(crate) fn zero_sectors_max() -> Sectors {
        Bytes(ZERO_REGION_BYTES).sectors_floor()
    }

    /// A new operation for a piece, with their common data.
    #[inline(always)]
    pub(crate) fn piece_op(&self, kind: OpKind, set: SetId, footprint: Footprint, index: u32) -> Op {
        let request = &self.requests[self.pieces[index].request].request;
        let fua = matches!(request.kind, RequestKind::Write { fua: true } | RequestKind::WriteZeroes { fua: true, .. });
        let is_ahead = self.requests[self.pieces[index].request].ahead;
        let works_for = if is_ahead { WorksFor::Ahead(index) } else { WorksFor::Piece(index) };
        Op { works_for, fua, ..Op::new(kind, set, footprint) }
    }
}
