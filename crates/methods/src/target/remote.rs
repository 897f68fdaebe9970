//! An NBD export as a target: one connection with many requests under way.

use super::block::RealOptions;
use super::payload_frames::{Patience, TargetFrames, SILENCE_SECONDS_MAX};
use super::target_name::Choice;
use super::{HostIo, IoDone, IoKind, ReplyStatus, Target, TargetCounters, TargetError, TargetFacts};
use crate::cell::PartName;
use openraid_nbd::client::{
    ClientEvent, ClientHandshake, ClientOptions, ClientTransmission, Goal, Pending, PendingTable, ReplyEvent,
};
use openraid_nbd::{Cookie, ExportFlags, NbdCommand, NbdRequest};
use openraid_nbd::{NbdUri, Transport};
use openraid_sys::{clock, Epoll, Events, Interest, MessagePiece, PoolRange, Progress, Socket};
use openraid_units::{ArrayOffset, Bytes, Instant, Nanos};
use std::collections::VecDeque;
use std::net::ToSocketAddrs;

/// Maximum number of bytes of replies in one receive.
const INBOX_BYTES: usize = 64 << 10;
/// Maximum time in seconds for the negotiation with the server.
const GREETING_SECONDS_MAX: u64 = 10;

struct Underway {
    pending: Pending,
    memory: PoolRange,
    id: u64,
}

struct Table(Vec<Option<Underway>>);

impl PendingTable for Table {
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending> {
        let slot = usize::try_from(cookie.0).ok()?;
        self.0.get_mut(slot)?.as_mut().map(|underway| &mut underway.pending)
    }
}

/// A request that is being sent: header, payload, number of bytes sent.
struct RequestToSend {
    header: [u8; 28],
    payload: Option<PoolRange>,
    sent: usize,
}

/// An NBD export as a target; see the module's description.
pub struct NbdTarget {
    facts: TargetFacts,
    frames: TargetFrames,
    socket: Socket,
    parser: ClientTransmission,
    table: Table,
    outbox: VecDeque<RequestToSend>,
    inbox: Vec<u8>,
    filled: usize,
    /// Payload that is received directly into a frame.
    incoming: Option<PoolRange>,
    epoll: Epoll,
    events: Events,
    patience: Patience,
    wants_write: bool,
    outstanding: usize,
}

impl NbdTarget {
    /// Connects. Nothing is written.
    ///
    /// # Errors
    /// The server does not exist or refuses. Or the export is write-protected although it must be written, or too
    /// small.
    pub fn open(uri: &NbdUri, options: &RealOptions) -> Result<Self, TargetError> {
        let choice = Choice::Nbd(uri.clone());
        let name = uri.to_string();
        let wrong = |reason: String| TargetError::Open { name: name.clone(), reason };
        let destroy = options.destroy.as_ref().is_some_and(|proof| proof.covers(&choice));
        let socket = connect(uri).map_err(wrong)?;
        let epoll = Epoll::new().map_err(|error| wrong(error.to_string()))?;
        epoll.add(&socket, 0, Interest::READ).map_err(|error| wrong(error.to_string()))?;
        let frames = TargetFrames::new(&name, options.outstanding, options.bytes_max, options.seed)?;
        let mut target = Greeting { socket, epoll, events: Events::new(), inbox: vec![0; INBOX_BYTES], filled: 0 };
        let parser = target.greet(&frames, &uri.export).map_err(wrong)?;
        let session = parser.session();
        let read_only = session.flags.contains(ExportFlags::READ_ONLY);
        if destroy && read_only {
            return Err(wrong("the export is read-only; let the server offer it for writing".into()));
        }
        if session.size < Bytes(u64::from(options.bytes_max)) {
            let (size, bytes) = (session.size, options.bytes_max);
            return Err(wrong(format!(
                "it holds {size} only, less than one request of {bytes} bytes; use a larger one"
            )));
        }
        let block = session.blocks.map_or(512, |blocks| blocks.minimum().max(1));
        let maximum = session.blocks.map_or(32 << 20, |blocks| blocks.maximum());
        if options.bytes_max > maximum {
            let bytes = options.bytes_max;
            return Err(wrong(format!("the server takes {maximum} bytes at once, not {bytes}; use smaller requests")));
        }
        let facts = TargetFacts {
            name: name.clone(),
            capacity: session.size,
            block: Bytes(u64::from(block)),
            simulated: false,
            writable: destroy,
            page_cache: false,
            link_mbps: None,
            bed: vec![format!("{name}: NBD export, {}, one connection", session.size).into()],
        };
        let slots = usize::try_from(options.outstanding.max(1)).expect("few requests");
        Ok(Self {
            facts,
            frames,
            socket: target.socket,
            parser,
            table: Table((0..slots).map(|_| None).collect()),
            outbox: VecDeque::new(),
            inbox: target.inbox,
            filled: target.filled,
            incoming: None,
            epoll: target.epoll,
            events: target.events,
            patience: Patience::with(&name),
            wants_write: false,
            outstanding: 0,
        })
    }

    fn send(&mut self) -> Result<(), TargetError> {
        while let Some(next) = self.outbox.front_mut() {
            let header = MessagePiece::Bytes(&next.header);
            let pieces = [header, MessagePiece::Pool(next.payload.unwrap_or_default())];
            let pieces = if next.payload.is_some() { &pieces[..] } else { &pieces[..1] };
            let total = 28 + next.payload.map_or(0, |range| usize::try_from(range.len.get()).expect("a frame"));
            match self.socket.send(&self.frames.pool, pieces, next.sent) {
                Ok(Progress::Bytes(count)) => {
                    next.sent += count;
                    if next.sent == total {
                        self.outbox.pop_front();
                    }
                }
                Ok(Progress::Blocked) => break,
                Ok(Progress::Closed) => return Err(self.patience.gone("the server closed the connection".into())),
                Err(error) => return Err(self.patience.gone(format!("the connection broke: {error}"))),
            }
        }
        if self.wants_write == self.outbox.is_empty() {
            self.wants_write = !self.outbox.is_empty();
            let interest = if self.wants_write { Interest::BOTH } else { Interest::READ };
            let changed = self.epoll.modify(&self.socket, 0, interest);
            changed.map_err(|error| self.patience.gone(error.to_string()))?;
        }
        Ok(())
    }

    fn receive(&mut self, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        loop {
            let progress = match self.incoming {
                Some(range) => self.socket.receive_into_pool(&mut self.frames.pool, range),
                None => self.socket.receive(&mut self.inbox[self.filled..]),
            };
            let count = match progress {
                Ok(Progress::Bytes(count)) => count,
                Ok(Progress::Blocked) => return Ok(()),
                Ok(Progress::Closed) => return Err(self.patience.gone("the server closed the connection".into())),
                Err(error) => return Err(self.patience.gone(format!("the connection broke: {error}"))),
            };
            match &mut self.incoming {
                Some(range) => {
                    let came = Bytes(count as u64);
                    *range = range.part(came, range.len - came);
                    if self.parser.payload_received(u32::try_from(count).expect("below 4 GiB")) == 0 {
                        self.incoming = None;
                    }
                }
                None => self.filled += count,
            }
            if self.incoming.is_none() {
                self.parse(done)?;
            }
        }
    }

    fn parse(&mut self, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        let mut at = 0;
        loop {
            let parsed = self.parser.parse(&self.inbox[at..self.filled], &mut self.table);
            let base = at;
            at += parsed.consumed;
            match parsed.event {
                ReplyEvent::Data { cookie, offset, received, remaining } => {
                    let received = base + received.start..base + received.end;
                    let slot = usize::try_from(cookie.0).expect("the parser found it");
                    let underway = self.table.0[slot].as_ref().expect("the parser found it");
                    let skip = Bytes(offset.get() - underway.pending.request().offset.get());
                    let here = Bytes(received.len() as u64);
                    let into = underway.memory.part(skip, here);
                    let rest = underway.memory.part(skip + here, Bytes(u64::from(remaining)));
                    self.frames.pool.slice_mut(into).copy_from_slice(&self.inbox[received]);
                    if remaining > 0 {
                        self.incoming = Some(rest);
                        break;
                    }
                }
                ReplyEvent::Done { cookie, result } => {
                    let slot = usize::try_from(cookie.0).expect("the parser found it");
                    let underway = self.table.0[slot].take().expect("the parser found it");
                    self.outstanding -= 1;
                    let why = result.as_ref().err().map(|error| format!("{error}; look at the log of its server"));
                    self.patience.answer(why)?;
                    let status = if result.is_ok() { ReplyStatus::Ok } else { ReplyStatus::IoError };
                    done.push(IoDone { id: underway.id, at: clock::now(), status });
                }
                ReplyEvent::Hole { .. } | ReplyEvent::Error { .. } | ReplyEvent::Extents { .. } => {}
                ReplyEvent::Incomplete { .. } => break,
                ReplyEvent::Violation(violation) => return Err(self.patience.gone(violation.to_string())),
            }
        }
        self.inbox.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }
}

fn connect(uri: &NbdUri) -> Result<Socket, String> {
    match &uri.transport {
        Transport::Unix { socket } => Socket::connect_unix(socket).map_err(|error| error.to_string()),
        Transport::Tcp { host, port } => {
            let found = (host.as_str(), *port).to_socket_addrs();
            let mut addresses = found.map_err(|error| format!("{host} is not known: {error}; check the name"))?;
            let address = addresses.next().ok_or_else(|| format!("{host} has no address; check the name"))?;
            Socket::connect_tcp(address).map_err(|error| error.to_string())
        }
    }
}

/// A connection during the negotiation.
struct Greeting {
    socket: Socket,
    epoll: Epoll,
    events: Events,
    inbox: Vec<u8>,
    filled: usize,
}

impl Greeting {
    fn greet(&mut self, frames: &TargetFrames, export: &str) -> Result<ClientTransmission, String> {
        let options = ClientOptions { goal: Goal::Use(export.into()), structured: true, contexts: Vec::new() };
        let mut handshake = ClientHandshake::start(options).map_err(|error| error.to_string())?;
        let ends = clock::now() + Nanos::from_secs(GREETING_SECONDS_MAX);
        loop {
            match self.socket.receive(&mut self.inbox[self.filled..]) {
                Ok(Progress::Bytes(count)) => self.filled += count,
                Ok(Progress::Closed) => return Err("the server closed the connection; see its log".into()),
                Ok(Progress::Blocked) => {
                    let now = clock::now();
                    if now >= ends {
                        return Err(format!("no greeting within {GREETING_SECONDS_MAX} s; is it an NBD server?"));
                    }
                    let waited = self.epoll.wait(&mut self.events, Some(ends.since(now)));
                    waited.map_err(|error| error.to_string())?;
                    continue;
                }
                Err(error) => return Err(format!("cannot connect: {error}; is the server running?")),
            }
            let mut out = Vec::new();
            let step = handshake.receive(&self.inbox[..self.filled], &mut out);
            self.inbox.copy_within(step.consumed..self.filled, 0);
            self.filled -= step.consumed;
            self.send_all(frames, &out)?;
            match step.event {
                ClientEvent::NeedMore => {}
                ClientEvent::Ready(session) => return Ok(ClientTransmission::new(session)),
                ClientEvent::Failed(error) => return Err(error.to_string()),
                ClientEvent::Listed(_) => return Err("the server listed exports instead of serving one".into()),
            }
        }
    }

    /// A few hundred bytes, which fit into the socket's buffer.
    fn send_all(&self, frames: &TargetFrames, bytes: &[u8]) -> Result<(), String> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.socket.send(&frames.pool, &[MessagePiece::Bytes(bytes)], sent) {
                Ok(Progress::Bytes(count)) => sent += count,
                Ok(Progress::Blocked) => std::thread::yield_now(),
                Ok(Progress::Closed) => return Err("the server closed the connection; see its log".into()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

impl Target for NbdTarget {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn submit(&mut self, io: HostIo) {
        let command = match io.kind {
            IoKind::Read => NbdCommand::Read { dont_fragment: false },
            IoKind::Write => {
                assert!(self.facts.writable, "bug: a write to a target that was opened for reading");
                NbdCommand::Write { fua: false }
            }
            IoKind::Flush => NbdCommand::Flush,
        };
        let memory = self.frames.of(&io);
        let length = Bytes(u64::from(io.len));
        let request = NbdRequest { cookie: Cookie(io.id), command, offset: ArrayOffset(io.offset), length };
        let header = self.parser.encode(&request).expect("bug: a request that the server does not offer");
        let slot = usize::try_from(io.id).expect("names are small");
        self.table.0[slot] = Some(Underway { pending: Pending::new(request), memory, id: io.id });
        self.outstanding += 1;
        let payload = (io.kind == IoKind::Write).then_some(memory);
        self.outbox.push_back(RequestToSend { header, payload, sent: 0 });
    }

    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        let before = done.len();
        let silence_ends = clock::now() + Nanos::from_secs(SILENCE_SECONDS_MAX);
        loop {
            self.send()?;
            self.receive(done)?;
            let now = clock::now();
            if done.len() > before || now >= until {
                return Ok(());
            }
            if now >= silence_ends && self.outstanding > 0 {
                return Err(self.patience.silent());
            }
            let timeout = until.min(silence_ends).since(now);
            let waited = self.epoll.wait(&mut self.events, Some(timeout));
            waited.map_err(|error| self.patience.gone(error.to_string()))?;
        }
    }

    fn counters(&self) -> Option<TargetCounters> {
        let time = clock::thread_cpu();
        Some(TargetCounters {
            host: Some(time),
            components: vec![(PartName::Generator, time)],
            ..TargetCounters::default()
        })
    }
}

impl Drop for NbdTarget {
    fn drop(&mut self) {
        // Sends a goodbye. If the server is already gone, no goodbye is needed.
        let _ = self.socket.send(&self.frames.pool, &[MessagePiece::Bytes(&ClientTransmission::disconnect())], 0);
    }
}
