//! One client: its socket, what it may do next, and its requests in progress.
//!
//! ```text
//!  choosing --array chosen--> serving --goodbye, end of stream--> (finishing: answers what runs, then closes)
//!       \--broken, too slow-----------\--broken, stalled, gone---> closed at once
//! ```
//!
//! An idle connection holds no buffers. A connection must never accept a request that its limits do not allow.

use openraid_sys::{Epoll, Interest, Socket};
use openraid_units::{Bytes, Instant, Token};

use super::output::ConnectionOutput;
use super::wire::{ConnectionRole, HostCommand, Wire};
use crate::limits::{CONNECTION_BYTES_MAX, CONNECTION_REQUESTS_MAX, REPLIES_WAITING_MAX};

/// A client.
#[derive(Debug)]
pub struct Connection {
    pub socket: Socket,
    /// Its token in the epoll set.
    pub event_token: u64,
    /// Its protocol.
    pub wire: Wire,
    /// What its client has chosen.
    pub role: ConnectionRole,
    /// The size of the array that it was told.
    pub told: Bytes,
    /// The requests that may run now.
    pub turn: Turn,
    /// Payload that was received together with its head.
    pub early: EarlyPayload,
    /// Bytes that wait to be sent.
    pub output: ConnectionOutput,
    /// Bytes received, but not parsed yet.
    pub tail: Vec<u8>,
    /// The events that the kernel reports.
    pub registered: Interest,
    /// Requests not answered, or answered and not sent.
    pub requests: u32,
    /// Payload bytes of reads and of writes among them.
    pub read_bytes: u64,
    /// See [`Connection::read_bytes`].
    pub write_bytes: u64,
    /// No more requests are read; the connection is closed when every request is answered.
    pub finishing: bool,
    /// It is in the list of connections with output.
    pub dirty: bool,
    /// It is in the list of connections that must not read now.
    pub parked: bool,
    /// It waits until its client receives or sends bytes.
    pub waits: bool,
    /// Since when.
    pub waits_since: Instant,
    /// When its client last received or sent bytes.
    pub progress_at: Instant,
}

/// The requests of a connection that may run now.
#[derive(Debug, Default)]
pub enum Turn {
    /// All.
    #[default]
    Shared,
    /// This read must run alone: it waits until no other request runs.
    Held(HostCommand),
    /// Such a read runs: no other request begins.
    Alone(Token),
}

/// The first bytes of a payload, which were received together with its head. The rest is in the socket.
#[derive(Debug, Default)]
pub struct EarlyPayload {
    bytes: Vec<u8>,
    used: usize,
}

impl EarlyPayload {
    /// These bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), used: 0 }
    }

    /// The bytes that are not used yet.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// This number of them was used.
    pub fn advance(&mut self, count: usize) {
        self.used += count;
        if self.used == self.bytes.len() {
            *self = Self::default();
        }
    }
}

impl Connection {
    /// A client that was just accepted.
    #[must_use]
    pub fn new(socket: Socket, wire: Wire, now: Instant) -> Self {
        Self {
            socket,
            event_token: 0,
            wire,
            role: ConnectionRole::Choosing,
            told: Bytes::ZERO,
            turn: Turn::Shared,
            early: EarlyPayload::default(),
            output: ConnectionOutput::default(),
            tail: Vec::new(),
            registered: Interest::READ,
            requests: 0,
            read_bytes: 0,
            write_bytes: 0,
            finishing: false,
            dirty: false,
            parked: false,
            waits: false,
            waits_since: now,
            progress_at: now,
        }
    }

    /// Are the next bytes of the socket a payload?
    #[must_use]
    #[inline]
    pub fn is_streaming(&self) -> bool {
        self.wire.payload_left() > 0
    }

    /// May the next request be looked at?
    #[must_use]
    #[inline]
    pub fn may_take(&self) -> bool {
        matches!(self.turn, Turn::Shared)
            && !self.is_streaming()
            && !self.finishing
            && self.requests < CONNECTION_REQUESTS_MAX
            && self.read_bytes < CONNECTION_BYTES_MAX
            && self.write_bytes < CONNECTION_BYTES_MAX
            && self.output.buffered() < REPLIES_WAITING_MAX
    }

    /// Must requests be taken in any case? Payload that the client was asked for comes after them, and the engine may have room
    /// only after that payload. The queues of the protocol limit their number.
    #[must_use]
    #[inline]
    pub fn must_take(&self) -> bool {
        self.wire.is_asked() && !self.is_streaming() && !self.finishing && self.output.buffered() < REPLIES_WAITING_MAX
    }

    /// May the engine be so busy that no requests are read here?
    #[must_use]
    #[inline]
    pub fn needs_engine(&self) -> bool {
        !matches!(self.role, ConnectionRole::Control(_))
    }

    /// Can a read that must run alone begin now? No other request runs.
    #[must_use]
    #[inline]
    pub fn can_start_held(&self) -> bool {
        matches!(self.turn, Turn::Held(_)) && self.requests == 0
    }

    /// This request has ended; if it ran alone, others may run again.
    pub fn end_alone(&mut self, token: Token) {
        if matches!(self.turn, Turn::Alone(alone) if alone == token) {
            self.turn = Turn::Shared;
        }
    }

    /// Payload of a transfer came. The next one begins a wait of its own.
    pub fn end_wait_for_payload(&mut self, now: Instant) {
        if self.wire.is_asked() {
            (self.waits_since, self.progress_at) = (now, now);
        }
    }

    /// It begins or ends to wait for its client; `moved` if the client received or sent bytes just now.
    pub fn set_waits(&mut self, waits: bool, moved: bool, now: Instant) {
        if waits && !self.waits {
            self.waits_since = now;
        }
        if moved || !self.waits {
            self.progress_at = now;
        }
        self.waits = waits;
    }

    /// Tell the kernel the events to report, if they changed.
    pub fn register(&mut self, epoll: &Epoll, wanted: Interest) {
        if wanted != self.registered {
            let changed = epoll.modify(&self.socket, self.event_token, wanted);
            changed.unwrap_or_else(|error| panic!("bug: a connection is not in the set that is waited for: {error}"));
            self.registered = wanted;
        }
    }
}
