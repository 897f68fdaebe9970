//! Requests from their admission to their end: they are checked, cut into pieces, and answered.
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

use crate::actions::ReplyStatus;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::events::{BlockRequest, RequestKind};
use crate::frames::Frames;
use crate::requests::piece::{Cut, Piece, PieceData, Reading};
use crate::requests::request::{check_range, Request};
use crate::requests::Requests;

/// The result of an attempt to cut the next piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextPiece {
    /// No request needs one, or there is no room for a piece.
    None,
    /// The first request in the queue has as many as it may have, and left the queue.
    HasEnough,
    /// There are no frames for a piece of this request.
    Starves(u32),
    /// It is in the table.
    Made(u32),
}

/// The next step of a piece after the end of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AfterOp {
    /// None: operations of it are in work, or are still to be made.
    Waits,
    /// It must be read again.
    ReadAgain,
    /// All its operations are done.
    Done,
}

impl Requests {
    /// Put a request of a host into the table, for which [`Requests::submit`] keeps room.
    #[inline(always)]
    pub(crate) fn admit(&mut self, request: BlockRequest) -> u32 {
        self.admitted += 1;
        self.table.put(Request::new(request, self.admitted)).index
    }

    /// Let an admitted request begin; true if it is done, because it is empty.
    #[inline(always)]
    pub(crate) fn begin(&mut self, index: u32) -> bool {
        let request = &mut self.table[index];
        request.enter_array();
        match request.kind() {
            RequestKind::Flush | RequestKind::Trim { .. } => {
                // Held by one until all operations are made.
                request.begin_op();
                self.payloadless.push(index);
            }
            _ if request.asked().len == 0 => return true,
            RequestKind::Read | RequestKind::Write { .. } | RequestKind::WriteZeroes { .. } => self.want_piece(index),
        }
        false
    }

    /// Put a request of read-ahead into the table, with its piece.
    pub(crate) fn insert_ahead(&mut self, request: BlockRequest, piece: impl FnOnce(u32) -> Piece) {
        let request = self.table.insert(Request::ahead(request)).expect("places are kept for them").index;
        let Ok(key) = self.pieces.insert(piece(request)) else { panic!("asked for room") };
        self.ahead += 1;
        self.want_ops(key.index);
    }

    #[inline(always)]
    pub(super) fn want_piece(&mut self, request: u32) {
        if self.table[request].begin_to_want() {
            self.wanting.push(request);
        }
    }

    /// Does a request need pieces?
    #[inline(always)]
    pub(crate) fn wants_pieces(&self) -> bool {
        !self.wanting.is_empty()
    }

    /// Cut the next piece of the first request that needs one, with frames of `host`.
    #[inline(always)]
    pub(crate) fn cut_next(&mut self, arrays: &Arrays, host: &mut Frames) -> NextPiece {
        let Some(index) = self.wanting.front() else { return NextPiece::None };
        let request = &self.table[index];
        if request.has_enough_pieces() {
            self.wanting.pop();
            self.table[index].end_to_want();
            return NextPiece::HasEnough;
        }
        let array = arrays.get(request.array());
        let block = array.block().bytes();
        let (mut len, frames) = request.next_piece(block, array.piece(), self.range_piece_max);
        let mut run = None;
        if frames > 0 {
            run = host.take(frames);
            if run.is_none() {
                let Some(left) = self.take_what_is_left(index, array, host) else { return NextPiece::Starves(index) };
                (len, run) = (left.0, Some(left.1));
            }
        }
        if self.pieces.room() == 0 {
            if let Some(run) = run {
                host.release(run);
            }
            return NextPiece::None;
        }
        let request = &mut self.table[index];
        let data = if request.is_read() { PieceData::READ } else { PieceData::WRITE };
        let start = request.next_start();
        let cut = Cut { start, offset: request.cut_piece(len), len };
        if request.leave_if_cut() {
            self.wanting.pop();
        }
        NextPiece::Made(self.pieces.put(Piece::cut(index, cut, block, run, data)).index)
    }

    /// An operation of a piece ended; true if it was the last one in work.
    #[inline(always)]
    pub(crate) fn piece_op_ended(&mut self, index: u32, error: Option<ReplyStatus>) -> bool {
        let piece = &mut self.pieces[index];
        piece.note_error(error);
        let is_last = piece.end_op();
        if piece.stream().is_some() {
            self.stream_op_ended(index);
        }
        is_last
    }

    /// The next step of a piece: are all its operations made and done?
    #[inline(always)]
    pub(crate) fn after_op(&mut self, index: u32) -> AfterOp {
        let piece = &self.pieces[index];
        if piece.is_queued() || piece.has_ops() || !piece.is_split() {
            return AfterOp::Waits;
        }
        if piece.is_read_again() && !piece.has_failed() {
            if !self.table[piece.request()].is_ahead() {
                return AfterOp::ReadAgain;
            }
            // It is not made again: the pieces that wait for it read for themselves.
            self.pieces[index].note_error(Some(ReplyStatus::IoError));
        }
        AfterOp::Done
    }

    /// Is the payload of a piece that is done sent to the host? A read that has failed sends nothing more.
    #[inline(always)]
    pub(crate) fn is_sent(&self, index: u32) -> bool {
        let piece = &self.pieces[index];
        let request = &self.table[piece.request()];
        request.is_read() && !request.has_failed() && !piece.has_failed() && !request.is_ahead()
    }

    /// Read a piece again by rows. If given-up commands may still write into its frames, it gets others of `host`, or
    /// waits for them.
    pub(crate) fn restart_piece(&mut self, index: u32, host: &mut Frames) {
        let piece = &mut self.pieces[index];
        let bytes = piece.sectors().bytes().get();
        if piece.reading() == Some(Reading::Again { frames_abandoned: true }) {
            piece.set_reading(Reading::Again { frames_abandoned: false });
            // A command that was given up may still write into the old frames: they stay with it.
            let run = piece.take_run().expect("reads have frames");
            host.release(run);
        }
        if piece.run().is_none() {
            piece.set_run(host.take(bytes));
        }
        if piece.run().is_none() {
            return self.restarting.push(index);
        }
        piece.begin_by_rows();
        self.want_ops(index);
    }

    /// Pieces that found no new frames for their second read try again.
    pub(crate) fn retry_restarts(&mut self, host: &mut Frames) {
        for _ in 0..self.restarting.len() {
            let Some(index) = self.restarting.pop() else { return };
            self.restart_piece(index, host);
        }
    }

    /// A piece is over: its frames are free. Returns its request if that is over too.
    #[inline(always)]
    pub(crate) fn end_piece(&mut self, index: u32, host: &mut Frames) -> Option<u32> {
        self.end_turns(index);
        let piece = self.remove_piece(index, host);
        let request = piece.request();
        self.table[request].end_piece(piece.error());
        if self.table[request].has_failed() {
            self.drop_waiting_pieces(request, host);
        }
        if self.table[request].is_over() {
            return Some(request);
        }
        self.want_piece(request);
        None
    }

    /// Remove a piece from the table; its frames are free.
    #[inline(always)]
    pub(super) fn remove_piece(&mut self, index: u32, host: &mut Frames) -> Piece {
        let piece = self.pieces.remove(index);
        if let Some(stream) = piece.stream() {
            self.leave_stream(stream, piece.is_receiving());
        }
        if let Some(run) = piece.run() {
            host.release(run);
        }
        piece
    }

    /// An operation of a request without pieces ended; true if nothing of the request is in work any more.
    pub(crate) fn request_op_ended(&mut self, request: u32, error: Option<ReplyStatus>) -> bool {
        let entry = &mut self.table[request];
        entry.end_piece(error);
        entry.is_quiet()
    }

    /// Remove a request from the table.
    #[inline(always)]
    pub(crate) fn remove(&mut self, index: u32) {
        self.ahead -= u32::from(self.table[index].is_ahead());
        self.table.free(index);
    }
}

/// Does a request fit its array, and does the array take requests?
pub(crate) fn check(arrays: &Arrays, sets: &Sets, request: &BlockRequest) -> Result<(), ReplyStatus> {
    let array = arrays.find(request.array).ok_or(ReplyStatus::Offline)?;
    if array.is_stopping() {
        return Err(ReplyStatus::Offline);
    }
    check_range(request, array.capacity(|set| sets.get(set).shape()).bytes())
}
