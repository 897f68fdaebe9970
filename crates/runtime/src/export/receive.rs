//! Requests from sockets into the engine: many in one call.
//!
//! All connections share one receive buffer. Small payloads stay in it until the engine has named their frames, nearly
//! always in the same round. The rest is copied out after the round.

use openraid_core::events::{BlockRequest, RequestKind};
use openraid_sys::{Interest, Progress};
use openraid_units::{Bytes, Token};

use super::connection::{Connection, EarlyPayload, Turn};
use super::large_payloads;
use super::offers::{Catalog, Offers, StatusCache};
use super::wire::{BytesDestination, CommandPayload, ConnectionRole, HostCommand, ProtocolState, WireEvent, WireStep};
use super::{Exports, Shared};
use crate::host_requests::{HostPayload, HostRequest, RequestOwner};
use crate::limits::{
    GATHERED_READ_BYTES_MAX, INBOX_BYTES, RECEIVE_BYTES_MAX, RECEIVE_BYTES_SCARCE, SMALL_REQUEST_BYTES_MAX,
    SOCKET_BUFFER_BYTES, TAILS_BYTES_MAX,
};
use crate::round_pause::BatchSize;
use crate::slab::SlabKey;

/// The outcome of further reading.
enum Outcome {
    /// The connection stays.
    Stays,
    /// It has to be closed at once.
    Close,
}

impl Exports {
    /// The kernel says that bytes are there, or the end of the stream.
    pub fn on_readable(&mut self, key: SlabKey, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        if connection.is_streaming() && !self.pump(key, shared) {
            return;
        }
        self.receive(key, shared);
    }

    /// The kernel says that there is room for output, or that the connection is broken.
    pub fn on_writable(&mut self, key: SlabKey) {
        self.mark_dirty(key);
    }

    /// The kernel says that the connection is broken while nothing is read from it.
    pub fn on_broken(&mut self, key: SlabKey, shared: &mut Shared) {
        if self.table.get(key).is_some_and(|connection| !connection.registered.readable) {
            self.close(key, shared);
        }
    }

    /// Receive once and hand in what came.
    pub(super) fn receive(&mut self, key: SlabKey, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        if !Self::may_read(connection, shared) {
            let wanted = Interest { readable: false, ..connection.registered };
            connection.register(&shared.epoll, wanted);
            return self.park(key);
        }
        let held = connection.tail.len();
        let scarce = self.tails > TAILS_BYTES_MAX;
        let room = match connection.wire.head_expected() {
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

    fn on_end_of_stream(&mut self, key: SlabKey, shared: &mut Shared) {
        // The other roles need both directions.
        if self.table.get(key).is_some_and(|connection| !matches!(connection.role, ConnectionRole::Client(_))) {
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
            if !(Self::may_read(connection, shared) || shared.is_open() && connection.can_start_held()) {
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
    fn hand_in(&mut self, key: SlabKey, start: usize, filled: usize, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        self.tails -= connection.tail.len();
        connection.tail.clear();
        let was_choosing = connection.role == ConnectionRole::Choosing;
        let (offers, states, common) = (&self.offers, &mut self.states, &mut self.common);
        let (at, end, size) = (start, start + filled, BatchSize::default());
        let mut batch = Batch {
            key,
            inbox: &self.inbox,
            offers,
            states,
            common,
            at,
            end,
            keep: start,
            size,
            early: 0,
            asks: false,
        };
        let outcome = batch.take_requests(connection, shared);
        let Batch { at, keep, size, early, asks, .. } = batch;
        if asks {
            self.askers.push(key);
        }
        self.counters.early_bytes += early as u64;
        if connection.role != ConnectionRole::Choosing {
            self.round.note(size);
        }
        if was_choosing && connection.role != ConnectionRole::Choosing {
            self.choosing.retain(|(_, choosing)| *choosing != key);
            // The kernel may refuse larger buffers; then the default size stays.
            let _ = connection.socket.set_buffers(SOCKET_BUFFER_BYTES, SOCKET_BUFFER_BYTES);
        }
        if let Outcome::Close = outcome {
            // The client may still use earlier answers and a last reply.
            let control = &mut shared.control;
            let _ = connection
                .output
                .send(&connection.socket, &shared.pool, |sent| control.transfer_done(sent.tag, Ok(())));
            self.counters.broken += 1;
            return self.close(key, shared);
        }
        let rest = &self.inbox[at..end];
        if rest.is_empty() {
            connection.tail = Vec::new();
        } else {
            connection.tail.extend_from_slice(rest);
            self.tails += rest.len();
        }
        self.inbox_used = keep;
        // A payload has the connection alone, and ends that itself.
        if !Self::may_read(connection, shared) && !connection.is_streaming() {
            self.park(key);
        }
        let Some(connection) = self.table.get_mut(key) else { return };
        // The last payload that the client was asked for may have come.
        let has_paid = connection.waits && !connection.wire.is_asked();
        if !connection.output.is_empty() || connection.finishing || has_paid {
            self.mark_dirty(key);
        }
    }
}

/// Requests of one connection, as far as they are in the receive buffer.
struct Batch<'a> {
    key: SlabKey,
    inbox: &'a [u8],
    offers: &'a Offers,
    states: &'a mut StatusCache,
    common: &'a mut ProtocolState,
    /// The next byte to parse, and the end.
    at: usize,
    end: usize,
    /// The buffer must be kept up to here.
    keep: usize,
    /// The size of the batch.
    size: BatchSize,
    /// Payload bytes of streamed writes among them, which are copied.
    early: usize,
    /// There is a question for members among them.
    asks: bool,
}

impl Batch<'_> {
    fn take_requests(&mut self, connection: &mut Connection, shared: &mut Shared) -> Outcome {
        self.start_held(connection, shared);
        while Exports::may_read(connection, shared) {
            let input = &self.inbox[self.at..self.end];
            let (control, now) = (&shared.control, shared.now);
            let (offers, common) = (self.offers, &mut *self.common);
            let mut catalog = Catalog { offers, states: self.states, common, control, now };
            let Connection { wire, output, .. } = connection;
            let WireStep { consumed, event } = output.append(|out| wire.parse(input, &mut catalog, out));
            let base = self.at;
            self.at += consumed;
            match event {
                WireEvent::Command(command) => {
                    self.count(command.len);
                    self.size.writes += u32::from(matches!(command.kind, RequestKind::Write { .. }));
                    self.take(connection, command, base, shared);
                }
                WireEvent::Answered(len) => self.count(len),
                WireEvent::Question(len) => {
                    self.count(len);
                    self.asks = true;
                }
                WireEvent::Step => {}
                WireEvent::Chosen(role) => {
                    connection.role = role;
                    connection.told = role.array().map_or(Bytes::ZERO, |array| offers.size_of(array));
                }
                WireEvent::Payload => self.take_payload(connection, shared),
                WireEvent::Arrived(arrival) => large_payloads::arrived(connection, arrival, shared),
                WireEvent::NeedMore => break,
                WireEvent::Goodbye => {
                    connection.finishing = true;
                    self.at = self.end;
                }
                WireEvent::Close => return Outcome::Close,
            }
        }
        Outcome::Stays
    }

    /// Copy the payload that came with its head into its frames. The rest of it comes from the socket directly.
    fn take_payload(&mut self, connection: &mut Connection, shared: &mut Shared) {
        let BytesDestination::Frames(range) = connection.wire.incoming() else { return };
        let room = usize::try_from(range.len.get()).expect("frames are in memory");
        let bytes = &self.inbox[self.at..self.end.min(self.at + room)];
        if !bytes.is_empty() {
            shared.pool.slice_mut(range.part(Bytes::ZERO, Bytes(bytes.len() as u64))).copy_from_slice(bytes);
            self.at += bytes.len();
            self.early += bytes.len();
            let Connection { wire, output, .. } = connection;
            if let Some(arrival) = output.append(|out| wire.payload_came(bytes, out)) {
                large_payloads::arrived(connection, arrival, shared);
            }
        }
    }

    #[inline]
    fn count(&mut self, len: u64) {
        self.size.requests += 1;
        self.size.has_large |= len > SMALL_REQUEST_BYTES_MAX;
    }

    /// Take a command whose input began at `base`.
    #[inline]
    fn take(&mut self, connection: &mut Connection, command: HostCommand, base: usize, shared: &mut Shared) {
        let payload = match &command.payload {
            CommandPayload::None => HostPayload::None,
            CommandPayload::Received(range) => {
                self.keep = base + range.end;
                HostPayload::Inbox(base + range.start)
            }
            CommandPayload::Awaited => {
                let count = (self.end - self.at).min(connection.wire.payload_left() as usize);
                connection.early = EarlyPayload::new(&self.inbox[self.at..self.at + count]);
                self.at += count;
                self.early += count;
                HostPayload::Stream
            }
            CommandPayload::OnePiece if command.len > GATHERED_READ_BYTES_MAX => {
                connection.turn = Turn::Held(command);
                return self.start_held(connection, shared);
            }
            CommandPayload::OnePiece => HostPayload::Gathered(Vec::new()),
        };
        self.submit(connection, &command, payload, shared);
    }

    /// Begin the read that has to run alone, if no other request runs.
    fn start_held(&mut self, connection: &mut Connection, shared: &mut Shared) {
        if !connection.can_start_held() {
            return;
        }
        if let Turn::Held(command) = std::mem::take(&mut connection.turn) {
            let token = self.submit(connection, &command, HostPayload::Alone, shared);
            connection.turn = Turn::Alone(token);
        }
    }

    #[inline]
    fn submit(
        &self,
        connection: &mut Connection,
        command: &HostCommand,
        payload: HostPayload,
        shared: &mut Shared,
    ) -> Token {
        let HostCommand { id, kind, offset, len, .. } = *command;
        let array = connection.role.array().expect("commands come after the choice of an array");
        let host = HostRequest { owner: RequestOwner::Connection(self.key), id, kind, offset, len, payload, sent: 0 };
        let token = shared.hosts.insert(host).token();
        connection.requests += 1;
        match kind {
            RequestKind::Read => connection.read_bytes += len,
            RequestKind::Write { .. } => connection.write_bytes += len,
            RequestKind::Flush | RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => {}
        }
        shared.control.submit(BlockRequest { token, array, kind, offset, len });
        token
    }
}
