//! One client: its socket, what it may do next, and its requests in progress.
//!
//! ```text
//!  Negotiating --export chosen--> Serving --goodbye, end of stream--> (finishing: answers what runs, then closes)
//!       \--broken, too slow--------------\--broken, stalled, gone---> closed at once
//! ```
//!
//! An idle connection holds no buffers. It must never take a request that its limits do not allow.

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
    /// The kernel's name for it in the set that is waited for.
    pub event_token: u64,
    /// Its phase.
    pub phase: Phase,
    /// Bytes that wait to be sent.
    pub output: Output,
    /// Bytes received and not yet understood.
    pub tail: Vec<u8>,
    /// The events that the kernel reports.
    pub registered: Interest,
    /// Requests not answered, or answered and not sent.
    pub requests: u32,
    /// Payload bytes of reads and of writes among them.
    pub read_bytes: u64,
    /// See [`Connection::read_bytes`].
    pub write_bytes: u64,
    /// No more requests are read; it is closed when everything is answered.
    pub finishing: bool,
    /// It is in the list of connections with output.
    pub dirty: bool,
    /// It is in the list of connections that must not read for now.
    pub parked: bool,
    /// It waits for its client to take or give bytes.
    pub waits: bool,
    /// Since when.
    pub waits_since: Instant,
    /// When its client last took or gave some.
    pub progress_at: Instant,
}

/// The phase of a connection.
#[derive(Debug)]
pub enum Phase {
    /// The client chooses an export.
    Negotiating(Box<Handshake>),
    /// It has one.
    Serving(Box<Serving>),
}

/// A connection that has chosen.
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
    /// The last request had its payload streamed: the next one is expected to, and only its head is received with
    /// others, so that its payload goes from the socket straight into frames.
    pub streams: bool,
    /// A read whose answer must not be interrupted by others: it waits until nothing else runs.
    pub held: Option<Request>,
    /// Such a read runs: nothing else is begun.
    pub alone: Option<Token>,
}

/// A large payload on its way from the socket into frames.
#[derive(Debug)]
pub struct Stream {
    /// Its request.
    pub token: Token,
    /// Bytes that came along with the header.
    pub early: Vec<u8>,
    /// How many of them are used up.
    pub early_used: usize,
    /// Its destinations, in order.
    pub transfers: VecDeque<Transfer>,
    /// Bytes of the first transfer that are there.
    pub done: u32,
    /// The request is over: its payload is read and forgotten.
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

    /// The serving half, if it got that far.
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

    /// It waits for its client, or does so no more; `moved` if the client took or gave bytes just now.
    pub fn set_waits(&mut self, waits: bool, moved: bool, now: Instant) {
        if waits && !self.waits {
            self.waits_since = now;
        }
        if moved || !self.waits {
            self.progress_at = now;
        }
        self.waits = waits;
    }

    /// Tell the kernel what to report, where that changed.
    pub fn register(&mut self, epoll: &Epoll, wanted: Interest) {
        if wanted != self.registered {
            let changed = epoll.modify(&self.socket, self.event_token, wanted);
            changed.unwrap_or_else(|error| panic!("bug: a connection is not in the set that is waited for: {error}"));
            self.registered = wanted;
        }
    }
}

/// Must the data of this read follow its one header without anything between, as this client understands it?
#[must_use]
#[inline]
pub fn in_one_piece(session: &Session, request: &Request) -> bool {
    !session.structured || matches!(request.command, Command::Read { dont_fragment: true })
}

/// Is this read so long that its answer is passed on as it comes? No other answer may come between then, so nothing
/// else runs, and once it has begun it cannot end in an error.
#[must_use]
#[inline]
pub fn must_be_alone(session: &Session, request: &Request) -> bool {
    request.length.get() > GATHERED_READ_BYTES_MAX && in_one_piece(session, request)
}
