//! The payload of pieces: requested from the host, filled with zeroes, and sent in the order of the request.

use openraid_units::{Bytes, PoolOffset, Tag, TagKind};

use super::piece::{Piece, PieceState};
use super::request::Request;
use super::Requests;
use crate::actions::{Actions, Direction, JobKind, ReplyStatus, Transfer};
use crate::array::volume::Arrays;
use crate::events::{HostGone, RequestKind};
use crate::frames::Frames;
use crate::request_steps::StepEvent;
use crate::slab::Key;
use crate::trace::Trace;

/// The meaning of the end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransferEnd {
    /// The payload of a piece of this request is complete, `len` bytes: the piece needs operations.
    Received { request: u32, len: u64 },
    /// The piece is over: its payload was sent, or will never arrive.
    Over,
    /// A copy to or from the cache is done.
    Copied,
}

impl Requests {
    /// A new piece begins: with its payload, if it has some to be received or filled, or with its operations.
    pub(crate) fn start_piece(&mut self, index: u32, arrays: &Arrays, actions: &mut Actions) {
        let tag = self.piece_tag(index);
        let piece = &mut self.pieces[index];
        let request = &mut self.table[piece.request()];
        match request.kind() {
            RequestKind::Write { .. } => {
                piece.state = PieceState::Receiving;
                request.begin_receiving();
                actions.transfers.push(transfer_of(tag, piece, request, Direction::FromHost));
                let range = piece.range();
                self.note_end(index, range, arrays);
            }
            RequestKind::WriteZeroes { .. } if piece.run().is_some() => {
                let (at, (_, len)) = (piece.payload_at(), piece.bytes());
                piece.state = PieceState::Filling;
                actions.push_job(tag, JobKind::Copy, (at, PoolOffset::ZERO), Bytes(len));
            }
            RequestKind::WriteZeroes { .. } | RequestKind::Read => self.want_ops(index),
            RequestKind::Flush | RequestKind::Trim { .. } => unreachable!("these have no pieces"),
        }
    }

    /// The name of a transfer, or of a copy, of a piece.
    #[inline(always)]
    pub(crate) fn piece_tag(&self, index: u32) -> Tag {
        Tag::new(TagKind::Transfer, index, self.pieces.generation(index))
    }

    /// A transfer, a copy, or the filling of a piece ended. Panics if the tag names none that is out.
    #[inline(always)]
    pub(crate) fn transfer_ended(&mut self, tag: Tag, result: Result<(), HostGone>) -> TransferEnd {
        let key = Key { index: tag.index(), generation: tag.generation() };
        assert!(self.pieces.holds(key), "a completion names a transfer that is out: {tag:?}");
        let piece = &mut self.pieces[key.index];
        let request = piece.request();
        if piece.state == PieceState::Receiving {
            self.table[request].end_receiving();
        }
        match piece.state {
            PieceState::Receiving | PieceState::Filling => match result {
                Ok(()) => {
                    piece.state = PieceState::Working;
                    let ((_, len), stream) = (piece.bytes(), piece.stream());
                    self.want_ops(key.index);
                    self.want_piece(request);
                    // Only pieces that receive payload are in a stream.
                    if let Some(stream) = stream {
                        self.stream_received(stream);
                    }
                    TransferEnd::Received { request, len }
                }
                Err(HostGone) => {
                    piece.note_error(Some(ReplyStatus::Offline));
                    TransferEnd::Over
                }
            },
            PieceState::Sending => TransferEnd::Over,
            PieceState::Working => TransferEnd::Copied,
            PieceState::WaitTurn => panic!("no transfer is out for {piece:?}"),
        }
    }

    /// A piece of a read has all its bytes: send it, and the complete pieces after it, when all bytes before it were sent.
    pub(crate) fn send_in_turn(&mut self, index: u32, trace: &mut Trace, actions: &mut Actions) {
        self.pieces[index].state = PieceState::WaitTurn;
        let request = self.pieces[index].request();
        let mut next = Some(index);
        while let Some(at) = next {
            let tag = self.piece_tag(at);
            let (piece, entry) = (&mut self.pieces[at], &mut self.table[request]);
            let (offset, len) = piece.bytes();
            let Some((sent, is_last)) = entry.send(offset, len) else { return };
            piece.state = PieceState::Sending;
            actions.transfers.push(transfer_of(tag, piece, entry, Direction::ToHost));
            trace.request(self, request, || StepEvent::Sending { len });
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

    /// A read that has failed sends nothing more: release its complete pieces.
    pub(super) fn drop_waiting_pieces(&mut self, request: u32, host: &mut Frames) {
        if self.table[request].cut_no_more() {
            self.wanting.remove(request);
        }
        loop {
            let waiting = self.pieces.iter().find(|(_, p)| p.request() == request && p.state == PieceState::WaitTurn);
            let Some(index) = waiting.map(|(i, _)| i) else { return };
            self.remove_piece(index, host);
            self.table[request].end_piece(None);
        }
    }
}

/// The transfer of the payload of a piece of this request.
#[inline(always)]
fn transfer_of(tag: Tag, piece: &Piece, request: &Request, direction: Direction) -> Transfer {
    let (offset, len) = piece.bytes();
    let narrow = |n: u64| u32::try_from(n).expect("payload is at most 32 MiB");
    Transfer {
        tag,
        token: request.token(),
        direction,
        at: piece.payload_at(),
        offset: narrow(offset),
        len: narrow(len),
        last: offset + len == request.asked().len,
    }
}
