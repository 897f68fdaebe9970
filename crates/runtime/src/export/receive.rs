//! Requests from sockets into the engine: many in one call.
//!
//! All connections share one receive buffer. Small payloads stay in it until the engine has named their frames, nearly
//! always in the same round. The rest is copied out after the round.

use openraid_core::events::BlockRequest;
use openraid_core::events::RequestKind;
use openraid_nbd::limits::INLINE_PAYLOAD_MAX;
use openraid_nbd::server::{HandshakeEvent, Parsed, Payload as Place, Transmission, TransmissionEvent, Tuning};
use openraid_nbd::{Command, NbdError, Request, REQUEST_BYTES};
use openraid_sys::{Interest, Progress};

use super::connection::{must_be_alone, Connection, Phase, Serving, Stream};
use super::{Exports, Shared};
use crate::hosts::{HostRequest, Owner, Payload};
use crate::limits::{
    INBOX_BYTES, RECEIVE_BYTES_MAX, RECEIVE_BYTES_SCARCE, REPLIES_WAITING_MAX, SOCKET_BUFFER_BYTES, TAILS_BYTES_MAX,
};
use crate::rest::BatchSize;
use crate::slab::Key;

/// The outcome of further reading.
enum Outcome {
    /// The connection stays.
    Stays,
    /// It has to be closed at once.
    Close,
}

impl Exports {
    /// The kernel says that bytes are there, or the end of the stream.
    pub fn on_readable(&mut self, key: Key, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        if connection.is_streaming() && !self.pump(key, shared) {
            return;
        }
        self.receive(key, shared);
    }

    /// The kernel says that there is room for output, or that the connection is broken.
    pub fn on_writable(&mut self, key: Key) {
        self.mark_dirty(key);
    }

    /// The kernel says that the connection is broken while nothing is read from it.
    pub fn on_broken(&mut self, key: Key, shared: &mut Shared) {
        if self.table.get(key).is_some_and(|connection| !connection.registered.readable) {
            self.close(key, shared);
        }
    }

    /// Receive once and hand in what came.
    pub(super) fn receive(&mut self, key: Key, shared: &mut Shared) {
        let open = Self::is_open(shared);
        let Some(connection) = self.table.get_mut(key) else { return };
        if connection.finishing || !open || !connection.may_take() {
            let wanted = Interest { readable: false, ..connection.registered };
            connection.register(&shared.epoll, wanted);
            return self.park(key);
        }
        let held = connection.tail.len();
        let scarce = self.tails > TAILS_BYTES_MAX;
        let room = match connection.head_expected() {
            Some(head) if held < head => head,
            _ if scarce => RECEIVE_BYTES_SCARCE,
            _ => RECEIVE_BYTES_MAX,
        };
        let start = self.inbox_used;
        if INBOX_BYTES - start < room.max(held) {
            // The buffer is full for this round; the kernel will report the socket again.
            return;
        }
        let mut filled = held;
        if held < room {
            match connection.socket.receive(&mut self.inbox[start + held..start + room]) {
                Ok(Progress::Bytes(count)) => filled += count,
                Ok(Progress::Blocked) => return,
                Ok(Progress::Closed) | Err(_) => return self.on_end_of_stream(key, shared),
            }
        }
        self.inbox[start..start + held].copy_from_slice(&connection.tail);
        self.hand_in(key, start, filled, shared);
    }

    fn on_end_of_stream(&mut self, key: Key, shared: &mut Shared) {
        let negotiating = self.table.get(key).is_some_and(|c| matches!(c.phase, Phase::Negotiating(_)));
        if negotiating {
            return self.close(key, shared);
        }
        if let Some(connection) = self.table.get_mut(key) {
            let wanted = Interest { readable: false, ..connection.registered };
            connection.register(&shared.epoll, wanted);
        }
        self.finish(key, shared);
    }

    /// Connections that had to stop reading continue, if their limits allow.
    pub fn resume(&mut self, shared: &mut Shared) {
        if self.parked.is_empty() {
            return;
        }
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&key| {
            let Some(connection) = self.table.get_mut(key) else { return false };
            if !Self::is_open(shared) || !(connection.may_take() || connection.can_start_held()) {
                return !connection.finishing || !connection.tail.is_empty();
            }
            let held = connection.tail.len();
            let start = self.inbox_used;
            if INBOX_BYTES - start < held {
                return true;
            }
            connection.parked = false;
            self.inbox[start..start + held].copy_from_slice(&connection.tail);
            let wanted = Interest { readable: true, ..connection.registered };
            connection.register(&shared.epoll, wanted);
            self.hand_in(key, start, held, shared);
            // If the connection had to stop again, it is in the new list.
            false
        });
        self.parked.append(&mut parked);
    }

    /// Parse the bytes of a connection in the receive buffer from `start` on, and keep the rest.
    fn hand_in(&mut self, key: Key, start: usize, filled: usize, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        self.tails -= connection.tail.len();
        connection.tail.clear();
        let mut used = 0;
        let mut close = false;
        if let Phase::Negotiating(_) = connection.phase {
            let (taken, outcome) = self.negotiate(key, start, filled, shared);
            used = taken;
            close = matches!(outcome, Outcome::Close);
        }
        let Some(connection) = self.table.get_mut(key) else { return };
        let mut inbox_end = start;
        if let (Phase::Serving(_), false) = (&connection.phase, close) {
            let (at, end) = (start + used, start + filled);
            let size = BatchSize::default();
            let mut batch = Batch { key, inbox: &self.inbox, start, at, end, keep: start, size, early: 0 };
            let outcome = batch.take_requests(connection, shared, &mut self.status);
            self.round.note(batch.size);
            self.counters.early_bytes += batch.early as u64;
            used = batch.at - start;
            inbox_end = batch.keep;
            close = matches!(outcome, Outcome::Close);
        }
        if close {
            self.counters.broken += 1;
            return self.close(key, shared);
        }
        let rest = &self.inbox[start + used..start + filled];
        if rest.is_empty() {
            connection.tail = Vec::new();
        } else {
            connection.tail.extend_from_slice(rest);
            self.tails += rest.len();
        }
        self.inbox_used = inbox_end;
        let must_wait = !connection.may_take() && !connection.is_streaming();
        if must_wait || !Self::is_open(shared) {
            self.park(key);
        }
        let Some(connection) = self.table.get_mut(key) else { return };
        if !connection.output.is_empty() || connection.finishing {
            self.mark_dirty(key);
        }
    }

    /// Options of a client that has not chosen an export yet. Returns the number of bytes used.
    fn negotiate(&mut self, key: Key, start: usize, filled: usize, shared: &mut Shared) -> (usize, Outcome) {
        let Some(connection) = self.table.get_mut(key) else { return (filled, Outcome::Stays) };
        let mut used = 0;
        while used < filled && connection.output.buffered() < REPLIES_WAITING_MAX {
            let Phase::Negotiating(handshake) = &mut connection.phase else { break };
            let input = &self.inbox[start + used..start + filled];
            let infos = &self.infos;
            let step = connection.output.append(|out| handshake.receive(input, infos, out));
            used += step.consumed;
            match step.event {
                HandshakeEvent::NeedMore => break,
                HandshakeEvent::Replied => {}
                HandshakeEvent::Ready(session) => {
                    let parser = Transmission::new(&session, Tuning::default());
                    let array = self.arrays[session.export];
                    let serving =
                        Serving { session, parser, array, stream: None, streams: false, held: None, alone: None };
                    connection.phase = Phase::Serving(Box::new(serving));
                    self.choosing.retain(|(_, own)| *own != key);
                    // The kernel may refuse larger buffers; then the default size stays.
                    let _ = connection.socket.set_buffers(SOCKET_BUFFER_BYTES, SOCKET_BUFFER_BYTES);
                }
                HandshakeEvent::Close(openraid_nbd::server::CloseReason::Aborted) => {
                    connection.finishing = true;
                    used = filled;
                }
                HandshakeEvent::Close(_) => {
                    // The client may still use earlier answers and a last reply.
                    let _ = connection.output.send(&connection.socket, &shared.pool, |_| {});
                    return (used, Outcome::Close);
                }
            }
        }
        (used, Outcome::Stays)
    }
}

/// Requests of one connection, as far as they are in the receive buffer.
struct Batch<'a> {
    key: Key,
    inbox: &'a [u8],
    start: usize,
    /// The next byte to parse, and the end.
    at: usize,
    end: usize,
    /// The buffer must be kept up to here.
    keep: usize,
    /// The size of the batch.
    size: BatchSize,
    /// Payload bytes of streamed writes among them, which are copied.
    early: usize,
}

impl Batch<'_> {
    fn take_requests(
        &mut self,
        connection: &mut Connection,
        shared: &mut Shared,
        status: &mut super::watch::StatusCache,
    ) -> Outcome {
        if connection.can_start_held() {
            let request = connection.serving().and_then(|serving| serving.held.take()).expect("just seen");
            self.submit_read(connection, &request, true, shared);
        }
        while connection.may_take() && Exports::is_open(shared) {
            let Phase::Serving(serving) = &mut connection.phase else { break };
            let Parsed { consumed, event } = serving.parser.parse(&self.inbox[self.at..self.end]);
            let base = self.at;
            self.at += consumed;
            match event {
                TransmissionEvent::Request(request, place) => {
                    self.size.requests += 1;
                    self.size.writes += u32::from(request.command.is_write());
                    self.size.has_large |= request.length.get() > u64::from(INLINE_PAYLOAD_MAX);
                    let early = match &place {
                        Place::Streaming { received, .. } => Some(received.len()),
                        Place::None | Place::Inline(_) => None,
                    };
                    serving.streams = early.is_some();
                    self.early += early.unwrap_or(0);
                    self.take(connection, &request, place, base, shared, status);
                }
                TransmissionEvent::Refused(refusal) => {
                    let session = serving.session;
                    connection.output.append(|out| session.push_refusal(&refusal, out));
                }
                TransmissionEvent::Incomplete { .. } => break,
                TransmissionEvent::Disconnect => {
                    connection.finishing = true;
                    self.at = self.end;
                }
                TransmissionEvent::Fatal(_) => return Outcome::Close,
            }
        }
        Outcome::Stays
    }

    #[inline]
    fn take(
        &mut self,
        connection: &mut Connection,
        request: &Request,
        place: Place,
        base: usize,
        shared: &mut Shared,
        status: &mut super::watch::StatusCache,
    ) {
        let Phase::Serving(serving) = &mut connection.phase else { return };
        let session = serving.session;
        let array = serving.array;
        let kind = match request.command {
            Command::Read { .. } => {
                if must_be_alone(&session, request) {
                    serving.held = Some(*request);
                    if connection.can_start_held() {
                        serving_held(connection);
                        self.submit_read(connection, request, true, shared);
                    }
                    return;
                }
                return self.submit_read(connection, request, false, shared);
            }
            Command::Write { fua } => RequestKind::Write { fua },
            Command::Flush => RequestKind::Flush,
            Command::Trim { fua } => RequestKind::Trim { fua },
            Command::WriteZeroes { fast: true, .. } => {
                let why = "zeroes are written like data here";
                connection.output.append(|out| session.push_failure(request, NbdError::NotSupported, why, out));
                return;
            }
            Command::WriteZeroes { fua, no_hole, fast: false } => {
                RequestKind::WriteZeroes { fua, may_discard: !no_hole }
            }
            // A hint; without a cache it has no effect.
            Command::Cache => {
                let head = session.success(request);
                connection.output.append(|out| out.extend_from_slice(head.as_bytes()));
                return;
            }
            Command::BlockStatus { .. } => {
                let extent = status.extents(array, &shared.control, shared.now);
                connection.output.append(|out| extent.answer(&session, request, out));
                return;
            }
        };
        let (payload, early) = match place {
            Place::None => (Payload::None, None),
            Place::Inline(range) => {
                self.keep = base + range.end;
                (Payload::Inbox(base + range.start), None)
            }
            Place::Streaming { received, .. } => {
                (Payload::Stream, Some(self.inbox[base + received.start..base + received.end].to_vec()))
            }
        };
        let host = HostRequest { owner: Owner::Connection(self.key), request: *request, payload, sent: 0 };
        let token = shared.hosts.insert(host).token();
        if let Some(early) = early {
            let transfers = std::collections::VecDeque::new();
            serving.stream = Some(Stream { token, early, early_used: 0, transfers, done: 0, discard: false });
        }
        connection.requests += 1;
        if request.command.is_write() {
            connection.write_bytes += request.length.get();
        }
        let (offset, len) = (request.offset, request.length.get());
        shared.control.submit(BlockRequest { token, array, kind, offset, len });
    }

    #[inline]
    fn submit_read(&self, connection: &mut Connection, request: &Request, alone: bool, shared: &mut Shared) {
        debug_assert!(self.at >= self.start);
        let host =
            HostRequest { owner: Owner::Connection(self.key), request: *request, payload: Payload::None, sent: 0 };
        let token = shared.hosts.insert(host).token();
        connection.requests += 1;
        connection.read_bytes += request.length.get();
        let Phase::Serving(serving) = &mut connection.phase else { return };
        if alone {
            serving.alone = Some(token);
        }
        let (array, offset, len) = (serving.array, request.offset, request.length.get());
        shared.control.submit(BlockRequest { token, array, kind: RequestKind::Read, offset, len });
    }
}

fn serving_held(connection: &mut Connection) {
    if let Some(serving) = connection.serving() {
        serving.held = None;
    }
}

impl Connection {
    /// Bytes of the next request's head if its payload is expected to be streamed.
    fn head_expected(&self) -> Option<usize> {
        match &self.phase {
            Phase::Serving(serving) if serving.streams => Some(REQUEST_BYTES),
            _ => None,
        }
    }

    /// Can a read that must run alone begin now? No other request runs.
    pub(super) fn can_start_held(&self) -> bool {
        matches!(&self.phase, Phase::Serving(serving) if serving.held.is_some()) && self.requests == 0
    }
}
