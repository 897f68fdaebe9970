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
use crate::controller::Controller;
use crate::events::{BlockRequest, HostGone, RequestKind};
use crate::frames::Run;
use crate::io::footprint::Footprint;
use crate::io::op::{Op, OpKind, Payload};
use crate::limits::ZERO_REGION_BYTES;
use crate::reason::Reason;
use crate::requests::piece::{Cut, Piece, PieceState, Reading, Way};
use crate::requests::progress::{check_range, Request};
use crate::steps::What;

impl Controller {
    /// Admit a request: check it against its array, then let it wait for frames.
    pub(crate) fn admit(&mut self, request: BlockRequest, actions: &mut Actions) {
        self.asked += 1;
        // Submit keeps room.
        let key = self.requests.put(Request::new(request, self.asked));
        let BlockRequest { array, kind, offset, len, .. } = request;
        self.trace.request(&self.requests, key.index, || What::Arrived { array, kind, offset, len });
        if let Err(status) = self.check(&request) {
            self.requests[key.index].fail(status);
            self.finish_request(key.index, actions);
            return;
        }
        let array = self.arrays.get_mut(request.array);
        array.count(&request);
        array.enter(self.now);
        let is_adaptive = array.is_adaptive();
        self.requests[key.index].enter_array();
        if is_adaptive {
            self.watch_load(&request, actions);
        }
        match request.kind {
            RequestKind::Flush | RequestKind::Trim { .. } => {
                // Held by one until all operations are made.
                self.requests[key.index].begin_op();
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
        check_range(request, array.capacity().bytes())
    }

    #[inline(always)]
    fn want_piece(&mut self, request: u32) {
        if self.requests[request].begin_to_want() {
            self.wanting.push(request);
        }
    }

    /// Make pieces for the requests that need them, in order of arrival; true if one was made.
    #[inline(never)]
    pub(crate) fn cut_pieces(&mut self, actions: &mut Actions) -> bool {
        let Some(index) = self.wanting.front() else { return false };
        if self.requests[index].has_enough_pieces() {
            self.wanting.pop();
            self.requests[index].end_to_want();
            return true;
        }
        let Some((len, run)) = self.take_frames(index) else { return false };
        if self.pieces.room() == 0 {
            if let Some(run) = run {
                self.host_frames.release(run);
            }
            return false;
        }
        let entry = &mut self.requests[index];
        let block = self.arrays.find(entry.array()).expect("requests belong to arrays").block().bytes();
        let way = if entry.is_read() { Way::READ } else { Way::WRITE };
        let start = entry.next_start();
        let cut = Cut { start, offset: entry.cut_piece(len), len };
        if entry.leave_if_cut() {
            self.wanting.pop();
        }
        let key = self.pieces.put(Piece::cut(index, cut, block, run, way));
        self.start_piece(key.index, actions);
        true
    }

    /// Length of the next piece of a request, and its frames, if it needs some. `None` if it must wait for them.
    #[inline(always)]
    fn take_frames(&mut self, index: u32) -> Option<(u64, Option<Run>)> {
        let request = &self.requests[index];
        let array = self.arrays.find(request.array()).expect("requests belong to arrays");
        let (len, frames) = request.next_piece(array.block().bytes(), array.piece());
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
        if self.requests[index].begin_to_starve() {
            let array = self.requests[index].array();
            let set = self.arrays.find(array).expect("requests belong to arrays").volume().set(0);
            let (reason, free) = (Reason::WaitedForHostFrames, self.host_frames.free_frames());
            self.trace.note(&mut self.sets, set, reason, 0, free);
            self.trace.request(&self.requests, index, || What::Reason { reason, figure: free });
        }
    }

    fn start_piece(&mut self, index: u32, actions: &mut Actions) {
        let piece = &self.pieces[index];
        let owner = piece.request();
        let tag = self.piece_tag(index);
        match self.requests[owner].kind() {
            RequestKind::Write { .. } => {
                self.pieces[index].state = PieceState::Receiving;
                self.requests[owner].begin_receiving();
                self.send_transfer(index, Direction::FromHost, actions);
            }
            RequestKind::WriteZeroes { .. } if piece.run().is_some() => {
                let (at, (_, len)) = (piece.payload_at(), piece.bytes());
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

    #[inline(always)]
    fn send_transfer(&mut self, index: u32, direction: Direction, actions: &mut Actions) {
        let piece = &self.pieces[index];
        let request = self.requests[piece.request()].asked();
        let (offset, len) = piece.bytes();
        let narrow = |n: u64| u32::try_from(n).expect("payload is at most 32 MiB");
        actions.transfers.push(Transfer {
            tag: self.piece_tag(index),
            token: request.token,
            direction,
            at: piece.payload_at(),
            offset: narrow(offset),
            len: narrow(len),
            last: offset + len == request.len,
        });
    }

    /// A transfer, or the filling of a piece, ended.
    pub(crate) fn on_transfer(&mut self, tag: Tag, result: Result<(), HostGone>, actions: &mut Actions) {
        let key = crate::slab::Key { index: tag.index(), generation: tag.generation() };
        assert!(self.pieces.holds(key), "a completion names a transfer that is out: {tag:?}");
        let piece = &mut self.pieces[key.index];
        let owner = piece.request();
        if piece.state == PieceState::Receiving {
            self.requests[owner].end_receiving();
        }
        match piece.state {
            PieceState::Receiving | PieceState::Filling => match result {
                Ok(()) => {
                    piece.state = PieceState::Working;
                    let (_, len) = piece.bytes();
                    self.trace.request(&self.requests, owner, || What::Received { len });
                    self.pieces.want_ops(&mut self.splitting, key.index);
                    self.want_piece(owner);
                }
                Err(HostGone) => {
                    piece.note_error(Some(ReplyStatus::Offline));
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
        piece.note_error(error);
        if piece.end_op() {
            self.check_piece(index, actions);
        }
    }

    /// Are all operations of a piece made and done?
    pub(crate) fn check_piece(&mut self, index: u32, actions: &mut Actions) {
        let piece = &self.pieces[index];
        if piece.is_queued() || piece.has_ops() || !piece.is_split() {
            return;
        }
        let request = &self.requests[piece.request()];
        let (is_ahead, is_read) = (request.is_ahead(), request.is_read());
        if piece.is_read_again() && !piece.has_failed() {
            if !is_ahead {
                return self.restart_piece(index);
            }
            // It is not made again: the pieces that wait for it read for themselves.
            self.pieces[index].note_error(Some(ReplyStatus::IoError));
        }
        let piece = &self.pieces[index];
        if piece.is_filling() {
            let keep = !piece.has_failed();
            self.end_fill(index, keep, actions);
            self.release_ahead_waiters(index);
            if self.pieces[index].has_ops() {
                return;
            }
        }
        let piece = &self.pieces[index];
        // A read that has failed sends nothing more.
        let wanted = !self.requests[piece.request()].has_failed();
        if is_read && wanted && !piece.has_failed() && !is_ahead {
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
            // A command that was given up may still write into the old frames: they stay with it.
            let run = piece.take_run().expect("reads have frames");
            self.host_frames.release(run);
        }
        if piece.run().is_none() {
            piece.set_run(self.host_frames.take(bytes));
        }
        if piece.run().is_none() {
            return self.restarting.push(index);
        }
        piece.begin_by_rows();
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
        let request = self.pieces[index].request();
        let mut next = Some(index);
        while let Some(at) = next {
            let (piece, entry) = (&mut self.pieces[at], &mut self.requests[request]);
            let (offset, len) = piece.bytes();
            let Some((sent, is_last)) = entry.send(offset, len) else { return };
            piece.state = PieceState::Sending;
            self.trace.request(&self.requests, request, || What::Sending { len });
            self.send_transfer(at, Direction::ToHost, actions);
            if is_last {
                return;
            }
            next = self
                .pieces
                .iter()
                .find(|(_, p)| p.request() == request && p.bytes().0 == sent && p.state == PieceState::WaitTurn)
                .map(|(i, _)| i);
        }
    }

    pub(super) fn end_piece(&mut self, index: u32, actions: &mut Actions) {
        self.end_turns(index);
        let piece = self.pieces.remove(index);
        if let Some(run) = piece.run() {
            self.host_frames.release(run);
        }
        let request = piece.request();
        self.requests[request].end_piece(piece.error());
        if self.requests[request].has_failed() {
            self.drop_waiting_pieces(request);
        }
        if self.requests[request].is_over() {
            self.finish_request(request, actions);
        } else {
            self.want_piece(request);
        }
    }

    /// A read that has failed sends nothing more: release its complete pieces.
    pub(super) fn drop_waiting_pieces(&mut self, request: u32) {
        if self.requests[request].cut_no_more() {
            self.wanting.remove(request);
        }
        loop {
            let waiting = self.pieces.iter().find(|(_, p)| p.request() == request && p.state == PieceState::WaitTurn);
            let Some(index) = waiting.map(|(i, _)| i) else { return };
            let piece = self.pieces.remove(index);
            if let Some(run) = piece.run() {
                self.host_frames.release(run);
            }
            self.requests[request].end_piece(None);
        }
    }

    /// Nothing of the request is in work any more.
    #[inline(always)]
    pub(crate) fn finish_request(&mut self, index: u32, actions: &mut Actions) {
        let status = self.requests[index].status();
        self.trace.request(&self.requests, index, || What::Replied { status });
        let entry = self.requests.remove(index);
        if entry.is_ahead() {
            return self.ahead_ended(entry.asked());
        }
        if entry.is_in_array() {
            let array = self.arrays.get_mut(entry.array());
            array.leave(self.now);
        }
        if entry.is_read() {
            self.note_read_ended(entry.asked());
        }
        if !entry.is_answered_by_transfer() {
            actions.replies.push(Reply { token: entry.token(), status });
        }
    }

    /// An operation that belongs to a request without pieces ended.
    pub(crate) fn end_request_op(&mut self, request: u32, error: Option<ReplyStatus>, actions: &mut Actions) {
        let entry = &mut self.requests[request];
        entry.end_piece(error);
        if entry.is_quiet() {
            self.finish_request(request, actions);
        }
    }

    /// The place of the payload of a piece, `from` sectors into it.
    pub(crate) fn piece_payload(&self, piece: &Piece, from: Sectors) -> Payload {
        match piece.run() {
            Some(run) => Payload::Host(run.at + from.bytes()),
            None => {
                let kind = self.requests[piece.request()].kind();
                Payload::Zero { may_discard: matches!(kind, RequestKind::WriteZeroes { may_discard: true, .. }) }
            }
        }
    }

    /// Number of bytes of the first and the last block of a piece that must be read before it can be written.
    #[inline]
    pub(crate) fn piece_edges(&self, piece: &Piece) -> (u16, u16) {
        if piece.run().is_none() || self.is_read(piece.request()) {
            return (0, 0);
        }
        piece.skips()
    }

    /// Zero payload comes from the zero region, which bounds an operation without frames.
    pub(crate) fn zero_sectors_max() -> Sectors {
        Bytes(ZERO_REGION_BYTES).sectors_floor()
    }

    /// A new operation for a piece, with their common data.
    #[inline(always)]
    pub(crate) fn piece_op(&self, kind: OpKind, set: SetId, footprint: Footprint, index: u32) -> Op {
        let request = &self.requests[self.pieces[index].request()];
        Op::new(kind, set, footprint).for_piece(index, request.is_ahead(), request.is_fua_write())
    }
}
