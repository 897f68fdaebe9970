//! NBD: the conversation with one client.
//!
//! ```text
//!  Negotiating --export chosen--> Serving --a write with a large payload--> payload of that write
//!                                    ^                                          |
//!                                    +----------all of it came, or was dropped--+
//! ```
//!
//! The payload of a write follows its header, so the socket holds one payload at a time. The engine names the frames for
//! it in parts, in order. If the request fails first, the rest of the payload is read and dropped.

use std::collections::VecDeque;

use openraid_core::actions::{ReplyStatus, Transfer};
use openraid_core::events::RequestKind;
use openraid_core::limits::REQUEST_BYTES_MAX;
use openraid_nbd::limits::INLINE_PAYLOAD_MAX;
use openraid_nbd::server::{
    chunk_data, chunk_status, simple, CloseReason, Handshake, HandshakeEvent, NbdSession, Parsed, PayloadTuning,
    Policy, RequestPayload as Place, Transmission, TransmissionEvent,
};
use openraid_nbd::{
    BlockSizes, ContextSet, Cookie, ExportFlags, ExportInfo, MetaContext, NbdCommand, NbdError, NbdRequest,
    StatusExtent, REQUEST_BYTES,
};
use openraid_sys::PoolRange;
use openraid_units::{ArrayId, Bytes, Tag};

use super::{BytesDestination, CommandPayload, ConnectionRole, DataPart, Ending, HostCommand, WireEvent, WireStep};
use crate::export::content_extents::{extents_of, ContentExtent};
use crate::export::offers::{ArrayExtent, Catalog, Offer, RestReport};
use crate::host_requests::{HostPayload, HostRequest};
use crate::limits::{RECEIVE_BYTES_SCARCE, SMALL_REQUEST_BYTES_MAX};
use crate::member::MemberQuestion;

const _: () = assert!(RECEIVE_BYTES_SCARCE > INLINE_PAYLOAD_MAX as usize + REQUEST_BYTES);
const _: () = assert!(SMALL_REQUEST_BYTES_MAX == INLINE_PAYLOAD_MAX as u64);

/// The conversation with one client.
#[derive(Debug)]
pub struct NbdWire {
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The client chooses an export.
    Negotiating(Box<Handshake>),
    /// The client has chosen an export.
    Serving(Box<Serving>),
}

#[derive(Debug)]
struct Serving {
    /// The negotiated session.
    session: NbdSession,
    /// The parser of requests.
    parser: Transmission,
    /// The array of the export.
    array: ArrayId,
    /// The payload that the socket holds now.
    payload: Option<StreamedPayload>,
    /// The last request had such a payload. The next one probably will too.
    streams: bool,
    /// Requests for block status that are not answered.
    questions: Vec<NbdRequest>,
}

/// A large payload on its way from the socket.
#[derive(Debug)]
struct StreamedPayload {
    /// Bytes that did not come yet. The first of them may have come together with the header, so this is not the number
    /// of the parser, which counts bytes in the socket.
    left: u32,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    /// The open transfers, in order, and the bytes of the first one that are there.
    Frames { transfers: VecDeque<Transfer>, done: u32 },
    /// The request has ended.
    Dropped,
}

impl NbdWire {
    pub(super) fn greet(out: &mut Vec<u8>) -> Self {
        Self { phase: Phase::Negotiating(Box::new(Handshake::start(Policy::default(), out))) }
    }

    #[inline]
    pub(super) fn parse(&mut self, input: &[u8], catalog: &mut Catalog<'_>, out: &mut Vec<u8>) -> WireStep {
        match &mut self.phase {
            Phase::Serving(serving) => serving.parse(input, catalog, out),
            Phase::Negotiating(handshake) => {
                let step = handshake.receive(input, &catalog.offers.announced().nbd, out);
                let event = match step.event {
                    HandshakeEvent::NeedMore => WireEvent::NeedMore,
                    HandshakeEvent::Replied => WireEvent::Step,
                    HandshakeEvent::Ready(session) => self.serve(session, catalog),
                    HandshakeEvent::Close(CloseReason::Aborted) => WireEvent::Goodbye,
                    HandshakeEvent::Close(_) => WireEvent::Close,
                };
                WireStep { consumed: step.consumed, event }
            }
        }
    }

    fn serve(&mut self, session: NbdSession, catalog: &Catalog<'_>) -> WireEvent {
        let parser = Transmission::new(&session, PayloadTuning::default());
        let array = catalog.offers.list()[session.export].array;
        self.phase = Phase::Serving(Box::new(Serving {
            session,
            parser,
            array,
            payload: None,
            streams: false,
            questions: Vec::new(),
        }));
        WireEvent::Chosen(ConnectionRole::Client(array))
    }

    pub(super) fn head_expected(&self) -> Option<usize> {
        matches!(&self.phase, Phase::Serving(serving) if serving.streams).then_some(REQUEST_BYTES)
    }

    fn payload(&self) -> Option<&StreamedPayload> {
        match &self.phase {
            Phase::Serving(serving) => serving.payload.as_ref(),
            Phase::Negotiating(_) => None,
        }
    }

    pub(super) fn incoming(&self) -> BytesDestination {
        let Some(payload) = self.payload() else { return BytesDestination::Commands };
        match &payload.destination {
            Destination::Dropped => BytesDestination::Unneeded(payload.left),
            Destination::Frames { transfers, done } => {
                transfers.front().map_or(BytesDestination::Unplaced, |transfer| {
                    let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
                    let left = Bytes(u64::from(transfer.len - done));
                    BytesDestination::Frames(range.part(Bytes(u64::from(*done)), left))
                })
            }
        }
    }

    #[inline]
    pub(super) fn payload_left(&self) -> u32 {
        self.payload().map_or(0, |payload| payload.left)
    }

    pub(super) fn payload_came(&mut self, count: u32) -> Option<Transfer> {
        let serving = self.serving();
        let payload = serving.payload.as_mut().expect("bytes came for a payload");
        let with_header = payload.left - serving.parser.payload_outstanding();
        serving.parser.payload_received(count.saturating_sub(with_header));
        payload.left -= count;
        let complete = match &mut payload.destination {
            Destination::Dropped => None,
            Destination::Frames { transfers, done } => {
                *done += count;
                let is_complete = transfers.front().is_some_and(|transfer| transfer.len == *done);
                if is_complete {
                    *done = 0;
                    transfers.pop_front()
                } else {
                    None
                }
            }
        };
        if payload.left == 0 {
            serving.payload = None;
        }
        complete
    }

    /// The client sends a payload without a question.
    pub(super) fn ask_payload(&mut self, host: &HostRequest, transfer: &Transfer, _out: &mut Vec<u8>) {
        match self.serving().payload.as_mut().map(|payload| &mut payload.destination) {
            Some(Destination::Frames { transfers, .. }) => transfers.push_back(*transfer),
            Some(Destination::Dropped) | None => panic!("bug: a transfer of a payload that came already: {host:?}"),
        }
    }

    #[inline]
    pub(super) fn data_head(&self, host: &HostRequest, part: DataPart, out: &mut Vec<u8>) {
        let cookie = Cookie(host.id);
        match &self.phase {
            Phase::Serving(serving) if serving.session.structured => {
                let offset = host.offset + Bytes(part.offset);
                out.extend_from_slice(&chunk_data(cookie, offset, Bytes(part.len), part.last));
            }
            _ => out.extend_from_slice(&simple(cookie, None)),
        }
    }

    #[inline]
    pub(super) fn end(&mut self, host: &HostRequest, status: ReplyStatus, out: &mut Vec<u8>) -> Ending {
        let cookie = Cookie(host.id);
        let serving = self.serving();
        if matches!(host.payload, HostPayload::Stream) {
            serving.drop_payload(host);
        }
        let Some((error, message)) = failure(host.kind, status) else {
            out.extend_from_slice(&simple(cookie, None));
            return Ending::Answered;
        };
        if host.sent > 0 && matches!(host.payload, HostPayload::Alone) {
            // The header announced all of the data.
            return Ending::Untellable;
        }
        serving.session.push_failure(cookie, error, message, out);
        Ending::Answered
    }

    pub(super) fn open_bytes(&self) -> u64 {
        match self.payload().map(|payload| &payload.destination) {
            Some(Destination::Frames { transfers, .. }) => {
                transfers.iter().map(|transfer| u64::from(transfer.len)).sum()
            }
            Some(Destination::Dropped) | None => 0,
        }
    }

    pub(super) fn abandon(self, mut dropped: impl FnMut(Tag)) {
        let Phase::Serving(serving) = self.phase else { return };
        if let Some(StreamedPayload { destination: Destination::Frames { transfers, .. }, .. }) = serving.payload {
            transfers.iter().for_each(|transfer| dropped(transfer.tag));
        }
    }

    pub(super) fn set_read_only(&mut self, read_only: bool) {
        if let Phase::Serving(serving) = &mut self.phase {
            serving.parser.set_read_only(read_only);
        }
    }

    /// Answer the requests for block status.
    pub(super) fn answer_questions(&mut self, catalog: &mut Catalog<'_>, ask: MemberQuestion<'_>, out: &mut Vec<u8>) {
        let serving = self.serving();
        for request in std::mem::take(&mut serving.questions) {
            let range = (request.offset.get(), request.length.get());
            let content = extents_of(serving.array, range, catalog.control, ask);
            push_extents((&content, catalog.extents(serving.array)), &serving.session, &request, out);
        }
    }

    fn serving(&mut self) -> &mut Serving {
        match &mut self.phase {
            Phase::Serving(serving) => serving,
            Phase::Negotiating(_) => panic!("bug: a request of a client that has not chosen an export"),
        }
    }
}

impl Serving {
    #[inline]
    fn parse(&mut self, input: &[u8], catalog: &mut Catalog<'_>, out: &mut Vec<u8>) -> WireStep {
        let Parsed { consumed, event } = self.parser.parse(input);
        let event = match event {
            TransmissionEvent::Request(request, place) => {
                let early = match &place {
                    Place::Streaming { received, .. } => received.len(),
                    Place::None | Place::Inline(_) => 0,
                };
                let event = self.take(&request, place, catalog, out);
                return WireStep { consumed: consumed - early, event };
            }
            TransmissionEvent::Refused(refusal) => {
                self.session.push_refusal(&refusal, out);
                WireEvent::Step
            }
            TransmissionEvent::Incomplete { .. } => WireEvent::NeedMore,
            TransmissionEvent::Disconnect => WireEvent::Goodbye,
            TransmissionEvent::Fatal(_) => WireEvent::Close,
        };
        WireStep { consumed, event }
    }

    #[inline]
    fn take(&mut self, request: &NbdRequest, place: Place, catalog: &mut Catalog<'_>, out: &mut Vec<u8>) -> WireEvent {
        self.streams = matches!(place, Place::Streaming { .. });
        let mut payload = match place {
            Place::None => CommandPayload::None,
            Place::Inline(range) => CommandPayload::Received(range),
            Place::Streaming { received, remaining } => {
                let early = u32::try_from(received.len()).expect("a payload is below 4 GiB");
                let destination = Destination::Frames { transfers: VecDeque::new(), done: 0 };
                self.payload = Some(StreamedPayload { left: early + remaining, destination });
                CommandPayload::Awaited
            }
        };
        let kind = match request.command {
            NbdCommand::Read { dont_fragment } => {
                if dont_fragment || !self.session.structured {
                    payload = CommandPayload::OnePiece;
                }
                RequestKind::Read
            }
            NbdCommand::Write { fua } => RequestKind::Write { fua },
            NbdCommand::Flush => RequestKind::Flush,
            NbdCommand::Trim { fua } => RequestKind::Trim { fua },
            NbdCommand::WriteZeroes { fua, no_hole, fast }
                if !fast || !fua && catalog.control.zeroes_are_fast(self.array) =>
            {
                RequestKind::WriteZeroes { fua, may_discard: !no_hole }
            }
            NbdCommand::WriteZeroes { .. } => {
                let why = "zeroes are written like data here";
                self.session.push_failure(request.cookie, NbdError::NotSupported, why, out);
                return WireEvent::Answered(request.length.get());
            }
            // A hint; without a cache it has no effect.
            NbdCommand::Cache => {
                out.extend_from_slice(&simple(request.cookie, None));
                return WireEvent::Answered(request.length.get());
            }
            NbdCommand::BlockStatus { .. } => {
                self.questions.push(*request);
                return WireEvent::Question(request.length.get());
            }
        };
        let (offset, len) = (request.offset, request.length.get());
        WireEvent::Command(HostCommand { id: request.cookie.0, kind, offset, len, payload })
    }

    /// A write has ended, and its payload is still in the socket.
    #[cold]
    fn drop_payload(&mut self, host: &HostRequest) {
        let payload = self.payload.as_mut().expect("the payload of a request is in the socket until all of it came");
        let is_idle = match &payload.destination {
            Destination::Frames { transfers, .. } => transfers.is_empty(),
            Destination::Dropped => false,
        };
        assert!(is_idle, "bug: a request ended with transfers under way: {host:?}");
        payload.destination = Destination::Dropped;
    }
}

/// The error of a failed request, with a message for the client's user.
#[inline]
fn failure(kind: RequestKind, status: ReplyStatus) -> Option<(NbdError, &'static str)> {
    Some(match status {
        ReplyStatus::Ok => return None,
        ReplyStatus::IoError => (NbdError::InputOutput, "the array has lost these data, or cannot reach them"),
        ReplyStatus::OutOfRange if matches!(kind, RequestKind::Write { .. }) => {
            (NbdError::NoSpace, "beyond the end of the array")
        }
        ReplyStatus::OutOfRange => (NbdError::Invalid, "beyond the end of the array"),
        ReplyStatus::NoSpace => (NbdError::NoSpace, "the storage of a member is full"),
        ReplyStatus::ReadOnly => (NbdError::NotPermitted, "the array does not take writes"),
        ReplyStatus::Offline => (NbdError::ShuttingDown, "the array is stopped"),
    })
}

/// Append the answer to a block status request.
fn push_extents(
    (content, state): (&[ContentExtent], ArrayExtent),
    session: &NbdSession,
    request: &NbdRequest,
    out: &mut Vec<u8>,
) {
    let length = u32::try_from(request.length.get()).expect("a request has a 32-bit length");
    let count = session.contexts.iter().count();
    for (number, context) in session.contexts.iter().enumerate() {
        let last = number + 1 == count;
        match context {
            MetaContext::Allocation => chunk_status(out, request, context, content.iter().map(allocation), last),
            MetaContext::Degraded => {
                chunk_status(out, request, context, degraded(state, request.offset.get(), length), last);
            }
        }
    }
}

fn allocation(extent: &ContentExtent) -> StatusExtent {
    let length = u32::try_from(extent.len).expect("no more than a length");
    StatusExtent { length, status: if extent.is_hole { StatusExtent::HOLE | StatusExtent::ZERO } else { 0 } }
}

/// The two extents of a range; one of them may be empty.
fn degraded(state: ArrayExtent, offset: u64, length: u32) -> [StatusExtent; 2] {
    let RestReport { degraded, lost } = state.rest;
    let rest = if degraded { StatusExtent::DEGRADED } else { 0 } | if lost { StatusExtent::LOST } else { 0 };
    let whole = state.whole.saturating_sub(offset).min(u64::from(length));
    let whole = u32::try_from(whole).expect("no more than a length");
    [StatusExtent { length: whole, status: 0 }, StatusExtent { length: length - whole, status: rest }]
}

/// The announcement of an array. Any byte can be addressed; the sizes are advice.
pub(super) fn announce(offer: &Offer) -> ExportInfo {
    let mut flags = ExportFlags::FLUSH
        .with(ExportFlags::FUA)
        .with(ExportFlags::TRIM)
        .with(ExportFlags::WRITE_ZEROES)
        .with(ExportFlags::FAST_ZERO)
        .with(ExportFlags::DONT_FRAGMENT)
        .with(ExportFlags::MULTI_CONN)
        .with(ExportFlags::CACHE);
    if offer.read_only {
        flags = flags.with(ExportFlags::READ_ONLY);
    }
    if offer.rotational {
        flags = flags.with(ExportFlags::ROTATIONAL);
    }
    let maximum = u32::try_from(REQUEST_BYTES_MAX).expect("32 MiB");
    let blocks =
        BlockSizes::new(offer.unit, offer.preferred, maximum).map_or(BlockSizes::DEFAULT, BlockSizes::any_byte);
    ExportInfo {
        name: offer.name.clone(),
        description: offer.description.clone(),
        size: offer.size,
        flags,
        blocks,
        contexts: ContextSet::ALL,
        refused: offer.refused.clone(),
    }
}

#[cfg(test)]
mod tests;
