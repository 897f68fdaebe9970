//! Host requests: admission, pieces with frames, payload in and out, operations for them, replies.
//!
//! [`Requests`] owns the requests, their pieces, and every queue in which either stands. Other folders call its
//! functions: one for each thing that happens to a piece, and one for each wait that ends. The files of this folder add
//! those functions, by subject. A function of the controller is left where a request meets its array, the cache or an
//! operation.

pub(crate) mod flush_discard;
pub(crate) mod frame_shortage;
pub(crate) mod gather;
pub(crate) mod piece;
mod piece_queues;
mod piece_waits;
pub(crate) mod request;
pub(crate) mod request_life;
mod split_piece;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use openraid_units::{ArrayId, Bytes, Instant};

#[cfg(test)]
use crate::events::RequestKind;
use crate::events::{BlockRequest, QueueFull};
use crate::limits::Limits;
use crate::limits::AHEAD_REQUESTS_MAX;
use crate::slab::{Queue, Slab};
use crate::trace::TracedRequests;
use gather::Gathers;
#[cfg(test)]
use piece::{Cut, PieceData};
use piece::{Piece, RowProgress};
use piece_queues::PieceQueues;
use request::Request;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Requests that were handed in and not admitted yet.
    submitted: VecDeque<BlockRequest>,
    /// Maximum number of requests of hosts.
    requests_max: u32,
    /// Maximum size of a piece that writes zeroes without a payload.
    range_piece_max: Bytes,
    table: Slab<Request>,
    /// Number of requests in the table that are read-ahead.
    ahead: u32,
    /// Number of requests of hosts so far.
    admitted: u64,
    pieces: Slab<Piece>,
    /// The progress of each piece that is processed by rows.
    row_progress: Vec<Option<RowProgress>>,
    queues: PieceQueues,
    /// Adjoining writes of several requests.
    gathers: Gathers,
    /// Requests that need pieces, and requests without payload that need operations.
    wanting: Queue,
    payloadless: Queue,
    /// Pieces that need other frames.
    restarting: Queue,
    /// The time since which a request waits for frames that only hung drives can release.
    starved_since: Option<Instant>,
}

impl Requests {
    /// No requests, with memory for as many as the limits allow.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            submitted: VecDeque::with_capacity(limits.requests_max as usize),
            requests_max: limits.requests_max,
            range_piece_max: limits.range_piece_bytes_max,
            table: Slab::new(limits.requests_max + AHEAD_REQUESTS_MAX),
            ahead: 0,
            admitted: 0,
            pieces: Slab::new(limits.pieces_max),
            row_progress: alloc::vec![None; limits.pieces_max as usize],
            queues: PieceQueues::new(limits.pieces_max),
            gathers: Gathers::new(limits),
            wanting: Queue::new(limits.requests_max),
            payloadless: Queue::new(limits.requests_max),
            restarting: Queue::new(limits.pieces_max),
            starved_since: None,
        }
    }

    /// Hand in a request of a host.
    ///
    /// # Errors
    /// [`QueueFull`] with the request if there are as many as the limit allows.
    pub(crate) fn submit(&mut self, request: BlockRequest) -> Result<(), QueueFull> {
        let inside = self.table.len() - self.ahead;
        if self.submitted.len() as u64 + u64::from(inside) >= u64::from(self.requests_max) {
            return Err(QueueFull(request));
        }
        self.submitted.push_back(request);
        Ok(())
    }

    /// The requests that are not admitted yet, in order.
    pub(crate) fn submitted(&self) -> impl ExactSizeIterator<Item = &BlockRequest> {
        self.submitted.iter()
    }

    /// The next request to admit.
    pub(crate) fn next_submitted(&mut self) -> Option<BlockRequest> {
        let next = self.submitted.pop_front();
        if next.is_none() {
            // It starts at its beginning again, as [`Queue`] does.
            self.submitted.clear();
        }
        next
    }

    /// Is no work of a host in progress?
    pub(crate) fn is_idle(&self) -> bool {
        self.table.len() == self.ahead && self.submitted.is_empty()
    }

    /// Can no request or piece continue? The event that ends a wait puts the work that waited into a queue.
    #[inline(always)]
    pub(crate) fn are_quiet(&self) -> bool {
        let pieces = self.queues.splitting().len() | self.wanting.len() | self.restarting.len();
        pieces | self.payloadless.len() | usize::from(self.may_gathers_move()) == 0
    }

    /// Number of requests of hosts so far.
    pub(crate) const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Is a request of an array, or read-ahead, in work that goes beyond this size?
    pub(crate) fn reach_beyond(&self, array: ArrayId, size: Bytes) -> bool {
        let end = |request: &Request| request.asked().offset.get().saturating_add(request.asked().len);
        self.iter().any(|request| request.array() == array && end(request) > size.get())
    }

    /// Number of requests of read-ahead.
    pub(crate) const fn ahead(&self) -> u32 {
        self.ahead
    }

    /// Number of pieces for which there is room.
    pub(crate) fn room_for_pieces(&self) -> u32 {
        self.pieces.room()
    }

    /// A request. Panics if there is none at this place of the table.
    #[inline(always)]
    pub(crate) fn get(&self, request: u32) -> &Request {
        &self.table[request]
    }

    /// As [`Requests::get`].
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, request: u32) -> &mut Request {
        &mut self.table[request]
    }

    /// All requests.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.table.iter().map(|(_, request)| request)
    }

    /// A piece. Panics if there is none at this place of the table.
    #[inline(always)]
    pub(crate) fn piece(&self, piece: u32) -> &Piece {
        &self.pieces[piece]
    }

    /// As [`Requests::piece`].
    #[inline(always)]
    pub(crate) fn piece_mut(&mut self, piece: u32) -> &mut Piece {
        &mut self.pieces[piece]
    }

    /// The request of a piece.
    #[inline(always)]
    pub(crate) fn of_piece(&self, piece: u32) -> &Request {
        &self.table[self.pieces[piece].request()]
    }

    /// For tests: a request of a host, and one piece for all of it with these frames.
    #[cfg(test)]
    pub(crate) fn put_piece(&mut self, request: BlockRequest, run: Option<crate::frames::Run>) -> u32 {
        let (index, way) =
            (self.admit(request), if request.kind == RequestKind::Read { PieceData::READ } else { PieceData::WRITE });
        let len = request.len;
        let cut = Cut { start: request.offset.get(), offset: self.table[index].cut_piece(len), len };
        self.pieces.put(Piece::cut(index, cut, Bytes(512), run, way)).index
    }

    /// The pieces that are in work, at most `max` of them, for a list of all that is in work.
    pub(crate) fn write_state(&self, out: &mut dyn fmt::Write, max: usize) -> fmt::Result {
        for (index, piece) in self.pieces.iter().take(max) {
            writeln!(out, "piece {index} of {:?}: {piece}", self.table[piece.request()].token())?;
        }
        Ok(())
    }

    /// The queues with their names, for a list of all that is in work.
    pub(crate) fn queues(&self) -> [(&'static str, &Queue); 3] {
        [
            ("for a piece", &self.wanting),
            ("for operations", self.queues.splitting()),
            ("for frames, again", &self.restarting),
        ]
    }
}

impl TracedRequests for Requests {
    #[inline(always)]
    fn traced(&self, request: u32) -> Option<u64> {
        let request = self.get(request);
        (!request.is_ahead()).then(|| request.number())
    }

    #[inline(always)]
    fn request_of(&self, piece: u32) -> u32 {
        self.piece(piece).request()
    }
}
