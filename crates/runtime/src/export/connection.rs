//! One client: its socket, what it may do next, and its requests in progress.
//!
//! ```text
//!  Negotiating --export chosen--> Serving --goodbye, end of stream--> (finishing: answers what runs, then closes)
//!       \--broken, too slow--------------\--broken, stalled, gone---> closed at once
//! ```
//!
//! An idle connection holds no buffers. A connection must never accept a request that its limits do not allow.

use std::collections::VecDeque;

use openraid_core::actions::Transfer;
use openraid_nbd::server::{Handshake, Session, Transmission};
use openraid_nbd::{Command, Request};
use openraid_sys::{Epoll, Interest, Socket};
use openraid_units::{ArrayId, Instant, Token};

use super::output::Output;
use crate::limits::{CONNECTION_BYTES_MAX, CONNECTION_REQUESTS_MAX, GATHERED_READ_BYTES_MAX, REPLIES_WAITING_MAX};

/// A client.
#[derive(Debug)]
pub struct Connection {
    /// Its socket.
    pub socket: Socket,
    /// Its token in the epoll set.
    pub event_token: u64,
    /// Its phase.
    pub phase: Phase,
    /// Bytes that wait to be sent.
    pub output: Output,
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

/// The phase of a connection.
#[derive(Debug)]
pub enum Phase {
    /// The client chooses an export.
    Negotiating(Box<Handshake>),
    /// The client has chosen an export.
    Serving(Box<Serving>),
}

/// A connection whose client has chosen an export.
#[derive(Debug)]
pub struct Serving {
    /// The negotiated session.
    pub session: Session,
    /// The parser of its requests.
    pub parser: Transmission,
    /// The array of the export.
    pub array: ArrayId,
    /// A payload that is still in the socket.
    pub stream: Option<Stream>,
    /// The last request had its payload streamed. The next one probably will too, so only its head is received with
    /// other requests, and its payload goes from the socket directly into frames.
    pub streams: bool,
    /// A read whose reply must not be interleaved with other replies: it waits until no other request runs.
    pub held: Option<Request>,
    /// Such a read runs: no other request begins.
    pub alone: Option<Token>,
}

/// A large payload that is being received from the socket into frames.
#[derive(Debug)]
pub struct Stream {
    /// Its request.
    pub token: Token,
    /// Bytes that were received together with the header.
    pub early: Vec<u8>,
    /// Number of them that are used.
    pub early_used: usize,
    /// Its destinations, in order.
    pub transfers: VecDeque<Transfer>,
    /// Bytes of the first transfer that are there.
    pub done: u32,
    /// The request has ended: its payload is read and dropped.
    pub discard: bool,
}

impl Connection {
    /// A client that was just accepted.
    #[must_use]
    pub fn new(socket: Socket, handshake: Handshake, now: Instant) -> Self {
        Self {
            socket,
            event_token: 0,
            phase: Phase::Negotiating(Box::new(handshake)),
            output: Output::default(),
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

    /// The state of the session, if the client has chosen an export.
    #[must_use]
    #[inline]
    pub fn serving(&mut self) -> Option<&mut Serving> {
        match &mut self.phase {
            Phase::Serving(serving) => Some(serving),
            Phase::Negotiating(_) => None,
        }
    }

    /// Is a payload still in the socket?
    #[must_use]
    #[inline]
    pub fn is_streaming(&self) -> bool {
        matches!(&self.phase, Phase::Serving(serving) if serving.stream.is_some())
    }

    /// May the next request be looked at?
    #[must_use]
    #[inline]
    pub fn may_take(&self) -> bool {
        let free = match &self.phase {
            Phase::Serving(serving) => serving.stream.is_none() && serving.alone.is_none() && serving.held.is_none(),
            Phase::Negotiating(_) => true,
        };
        free && !self.finishing
            && self.requests < CONNECTION_REQUESTS_MAX
            && self.read_bytes < CONNECTION_BYTES_MAX
            && self.write_bytes < CONNECTION_BYTES_MAX
            && self.output.buffered() < REPLIES_WAITING_MAX
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

/// Must the data of this read follow its one header without other data between, for this client?
#[must_use]
#[inline]
pub fn in_one_piece(session: &Session, request: &Request) -> bool {
    !session.structured || matches!(request.command, Command::Read { dont_fragment: true })
}

/// Is this read so long that its reply is sent piece by piece? No other reply may come between the pieces, so no other
/// request runs, and the read cannot end in an error after its first piece.
#[must_use]
#[inline]
pub fn must_be_alone(session: &Session, request: &Request) -> bool {
    request.length.get() > GATHERED_READ_BYTES_MAX && in_one_piece(session, request)
}
