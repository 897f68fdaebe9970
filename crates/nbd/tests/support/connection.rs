//! One connection of a server without a socket: it takes received bytes, returns bytes to send, and keeps a log of
//! parsed events.

use super::disk::{is_zero, Disk, STATUS_UNIT};
use openraid_nbd::server::{
    chunk_data, chunk_done, chunk_hole, chunk_status, Handshake, HandshakeEvent, NbdSession, PayloadTuning, Policy,
    RequestPayload, RequestRefusal, Transmission, TransmissionEvent,
};
use openraid_nbd::{ExportInfo, MetaContext, NbdCommand, NbdRequest, StatusExtent};
use openraid_units::{ArrayOffset, Bytes};
use std::sync::Arc;

/// An event that the server parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    Entered(NbdSession),
    Executed(NbdRequest, Vec<u8>),
    Refused(RequestRefusal),
    Closed(String),
}

enum Phase {
    Negotiating(Handshake),
    Serving(Box<Transmission>),
    /// A large write: its payload so far.
    Receiving(Box<Transmission>, NbdRequest, Vec<u8>),
    Closed,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The step made progress; do another step.
    Progress,
    /// More bytes are needed.
    Starved,
    /// Send the output and close.
    Closed,
}

pub struct Connection {
    phase: Phase,
    session: Option<NbdSession>,
    exports: Arc<Vec<ExportInfo>>,
    disk: Arc<Disk>,
    tuning: PayloadTuning,
    inbox: Vec<u8>,
    used: usize,
    pub out: Vec<u8>,
    /// Filled when `Some`.
    pub log: Option<Vec<Entry>>,
}

impl Connection {
    pub fn new(exports: Arc<Vec<ExportInfo>>, disk: Arc<Disk>, tuning: PayloadTuning) -> Self {
        let mut out = Vec::new();
        let handshake = Handshake::start(Policy::default(), &mut out);
        let phase = Phase::Negotiating(handshake);
        Self { phase, session: None, exports, disk, tuning, inbox: Vec::new(), used: 0, out, log: None }
    }

    /// Passes received bytes; [`Connection::step`] then handles them.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.inbox.drain(..self.used);
        self.used = 0;
        self.inbox.extend_from_slice(bytes);
    }

    /// Number of bytes that the connection holds, without its output.
    pub fn held_bytes(&self) -> usize {
        let phase = match &self.phase {
            Phase::Negotiating(handshake) => handshake.held_bytes(),
            Phase::Receiving(_, _, payload) => payload.len(),
            Phase::Serving(_) | Phase::Closed => 0,
        };
        phase + self.inbox.len() - self.used
    }

    /// Passes `bytes` and does steps until there is no more progress.
    pub fn run(&mut self, bytes: &[u8]) -> Step {
        self.feed(bytes);
        loop {
            match self.step() {
                Step::Progress => {}
                end => return end,
            }
        }
    }

    pub fn step(&mut self) -> Step {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Negotiating(handshake) => self.negotiate(handshake),
            Phase::Serving(transmission) => self.serve(transmission),
            Phase::Receiving(transmission, request, payload) => self.receive(transmission, request, payload),
            Phase::Closed => Step::Closed,
        }
    }

    fn note(&mut self, entry: impl FnOnce() -> Entry) {
        if let Some(log) = &mut self.log {
            log.push(entry());
        }
    }

    fn close(&mut self, why: &dyn std::fmt::Display) -> Step {
        self.note(|| Entry::Closed(why.to_string()));
        Step::Closed
    }

    fn negotiate(&mut self, mut handshake: Handshake) -> Step {
        let step = handshake.receive(&self.inbox[self.used..], &self.exports, &mut self.out);
        self.used += step.consumed;
        match step.event {
            HandshakeEvent::NeedMore => {
                assert_eq!(self.used, self.inbox.len(), "a negotiation that needs more has used everything");
                self.phase = Phase::Negotiating(handshake);
                Step::Starved
            }
            HandshakeEvent::Replied => {
                self.phase = Phase::Negotiating(handshake);
                Step::Progress
            }
            HandshakeEvent::Ready(session) => {
                self.note(|| Entry::Entered(session));
                self.phase = Phase::Serving(Box::new(Transmission::new(&session, self.tuning)));
                self.session = Some(session);
                Step::Progress
            }
            HandshakeEvent::Close(reason) => self.close(&reason),
        }
    }

    fn serve(&mut self, mut transmission: Box<Transmission>) -> Step {
        let start = self.used;
        let parsed = transmission.parse(&self.inbox[start..]);
        self.used += parsed.consumed;
        match parsed.event {
            TransmissionEvent::Request(request, RequestPayload::Streaming { received, .. }) => {
                let payload = self.inbox[start..][received].to_vec();
                self.phase = Phase::Receiving(transmission, request, payload);
                Step::Progress
            }
            TransmissionEvent::Request(request, payload) => {
                let payload = match payload {
                    RequestPayload::Inline(range) => self.inbox[start..][range].to_vec(),
                    _ => Vec::new(),
                };
                self.execute(&request, &payload);
                self.phase = Phase::Serving(transmission);
                Step::Progress
            }
            TransmissionEvent::Refused(refusal) => {
                self.note(|| Entry::Refused(refusal));
                self.session().push_refusal(&refusal, &mut self.out);
                self.phase = Phase::Serving(transmission);
                Step::Progress
            }
            TransmissionEvent::Incomplete { needed } => {
                assert!(self.inbox.len() - self.used < needed && needed <= transmission.buffer_min());
                self.phase = Phase::Serving(transmission);
                Step::Starved
            }
            TransmissionEvent::Disconnect => self.close(&"goodbye"),
            TransmissionEvent::Fatal(fatal) => self.close(&fatal),
        }
    }

    /// Takes the available bytes of a large payload. A server with a socket would receive them directly to their
    /// destination.
    fn receive(&mut self, mut transmission: Box<Transmission>, request: NbdRequest, mut payload: Vec<u8>) -> Step {
        let outstanding = transmission.payload_outstanding() as usize;
        let here = outstanding.min(self.inbox.len() - self.used);
        payload.extend_from_slice(&self.inbox[self.used..self.used + here]);
        self.used += here;
        if transmission.payload_received(u32::try_from(here).expect("at most the outstanding bytes")) > 0 {
            self.phase = Phase::Receiving(transmission, request, payload);
            return Step::Starved;
        }
        self.execute(&request, &payload);
        self.phase = Phase::Serving(transmission);
        Step::Progress
    }

    fn session(&self) -> NbdSession {
        self.session.expect("requests come after the negotiation")
    }

    fn execute(&mut self, request: &NbdRequest, payload: &[u8]) {
        self.note(|| Entry::Executed(*request, payload.to_vec()));
        let session = self.session();
        let start = usize::try_from(request.offset.get()).expect("checked against the size");
        let length = usize::try_from(request.length.get()).expect("checked against the size");
        let range = start..start + length;
        match request.command {
            NbdCommand::Read { dont_fragment } => {
                let disk = Arc::clone(&self.disk);
                let bytes = disk.read();
                if session.structured && !dont_fragment {
                    self.push_pieces(request, start, &bytes[range]);
                } else {
                    self.out.extend_from_slice(session.success(request).as_bytes());
                    self.out.extend_from_slice(&bytes[range]);
                }
                return;
            }
            NbdCommand::Write { .. } => self.disk.write()[range].copy_from_slice(payload),
            NbdCommand::Trim { .. } | NbdCommand::WriteZeroes { .. } => self.disk.write()[range].fill(0),
            NbdCommand::Flush | NbdCommand::Cache => {}
            NbdCommand::BlockStatus { .. } => {
                let mut contexts = session.contexts.iter().peekable();
                while let Some(context) = contexts.next() {
                    let extents = match context {
                        MetaContext::Allocation => self.disk.extents(start, length),
                        MetaContext::Degraded => {
                            vec![StatusExtent { length: u32::try_from(length).expect("32 bits"), status: 0 }]
                        }
                    };
                    chunk_status(&mut self.out, request, context, extents, contexts.peek().is_none());
                }
                return;
            }
        }
        self.out.extend_from_slice(session.success(request).as_bytes());
    }

    /// A structured read in units; zeroes are sent as holes.
    fn push_pieces(&mut self, request: &NbdRequest, start: usize, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let stop = ((start + at) / STATUS_UNIT * STATUS_UNIT + STATUS_UNIT - start).min(bytes.len());
            let (offset, length) = (ArrayOffset((start + at) as u64), Bytes((stop - at) as u64));
            if is_zero(&bytes[at..stop]) {
                self.out.extend_from_slice(&chunk_hole(request.cookie, offset, length, false));
            } else {
                self.out.extend_from_slice(&chunk_data(request.cookie, offset, length, false));
                self.out.extend_from_slice(&bytes[at..stop]);
            }
            at = stop;
        }
        self.out.extend_from_slice(&chunk_done(request.cookie));
    }
}
