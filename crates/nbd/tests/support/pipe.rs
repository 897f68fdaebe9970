//! Both sides in memory, connected by a pipe that cuts the bytes into pieces.

use super::client::{Answer, Table};
use super::connection::{Connection, Step};
use super::random::Random;
use openraid_nbd::client::{
    ClientError, ClientEvent, ClientHandshake, ClientOptions, ClientSession, ClientTransmission, ReplyEvent, Violation,
};
use openraid_nbd::{Cookie, NbdRequest};

/// The way in which bytes are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    Whole,
    EachByte,
    Random(u64),
}

impl Cut {
    /// The pieces of `bytes`, in order.
    pub fn pieces(self, bytes: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Whole => vec![bytes],
            Self::EachByte => bytes.chunks(1).collect(),
            Self::Random(seed) => {
                let (mut random, mut rest, mut out) = (Random::new(seed ^ bytes.len() as u64), bytes, Vec::new());
                while !rest.is_empty() {
                    let most = *random.pick(&[1, 7, 40, 600, 20_000]);
                    let (piece, tail) = rest.split_at((1 + random.below(most)).min(rest.len()));
                    out.push(piece);
                    rest = tail;
                }
                out
            }
        }
    }
}

enum Phase {
    Negotiating(ClientHandshake),
    Using(Box<ClientTransmission>),
    Over,
}

/// A client that sends all its requests together, as early as possible.
pub struct PipeClient {
    phase: Phase,
    requests: Vec<(NbdRequest, Vec<u8>)>,
    table: Table,
    inbox: Vec<u8>,
    /// The destination of announced data that are still to come: request, offset, length.
    announced: Option<(Cookie, openraid_units::ArrayOffset, usize)>,
    pub out: Vec<u8>,
    pub session: Option<ClientSession>,
    pub answers: Vec<(Cookie, Answer)>,
    pub failure: Option<ClientError>,
    pub violation: Option<Violation>,
}

impl PipeClient {
    pub fn new(options: ClientOptions, requests: Vec<(NbdRequest, Vec<u8>)>) -> Self {
        let handshake = ClientHandshake::start(options).expect("sensible options");
        Self {
            phase: Phase::Negotiating(handshake),
            requests,
            table: Table::default(),
            inbox: Vec::new(),
            announced: None,
            out: Vec::new(),
            session: None,
            answers: Vec::new(),
            failure: None,
            violation: None,
        }
    }

    /// The stored bytes from the server, without the data of reads.
    pub fn held_bytes(&self) -> usize {
        let phase = match &self.phase {
            Phase::Negotiating(handshake) => handshake.held_bytes(),
            Phase::Using(_) | Phase::Over => 0,
        };
        phase + self.inbox.len()
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        loop {
            let before = (self.inbox.len(), self.answers.len());
            let more = match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Negotiating(handshake) => self.negotiate(handshake),
                Phase::Using(transmission) => self.progress(transmission),
                Phase::Over => {
                    self.inbox.clear();
                    false
                }
            };
            if !more {
                return;
            }
            let after = (self.inbox.len(), self.answers.len());
            assert!(before != after || self.is_over(), "a step without progress");
        }
    }

    fn negotiate(&mut self, mut handshake: ClientHandshake) -> bool {
        let step = handshake.receive(&self.inbox, &mut self.out);
        self.inbox.drain(..step.consumed);
        match step.event {
            ClientEvent::NeedMore => {
                assert!(self.inbox.is_empty());
                self.phase = Phase::Negotiating(handshake);
                return false;
            }
            ClientEvent::Ready(session) => {
                self.session = Some(session.clone());
                self.phase = Phase::Using(Box::new(ClientTransmission::new(session)));
                for (request, payload) in std::mem::take(&mut self.requests) {
                    self.table.insert(request);
                    self.out.extend_from_slice(&request.encode());
                    self.out.extend_from_slice(&payload);
                }
                self.out.extend_from_slice(&ClientTransmission::disconnect());
            }
            ClientEvent::Failed(error) => self.failure = Some(error),
            ClientEvent::Listed(_) => {}
        }
        true
    }

    /// Does one step; returns whether there is more to do.
    fn progress(&mut self, mut transmission: Box<ClientTransmission>) -> bool {
        if let Some((cookie, offset, length)) = self.announced.take() {
            let here = length.min(self.inbox.len());
            self.table.place(cookie, offset, here).copy_from_slice(&self.inbox[..here]);
            self.inbox.drain(..here);
            transmission.payload_received(u32::try_from(here).expect("small"));
            self.phase = Phase::Using(transmission);
            if here < length {
                let offset = offset + openraid_units::Bytes(here as u64);
                self.announced = Some((cookie, offset, length - here));
                return false;
            }
            return true;
        }
        let parsed = transmission.parse(&self.inbox, &mut self.table);
        let mut more = true;
        match parsed.event {
            ReplyEvent::Data { cookie, offset, received, remaining } => {
                let here = received.len();
                self.table.place(cookie, offset, here).copy_from_slice(&self.inbox[received]);
                if remaining > 0 {
                    let offset = offset + openraid_units::Bytes(here as u64);
                    self.announced = Some((cookie, offset, remaining as usize));
                }
            }
            ReplyEvent::Hole { cookie, offset, length } => {
                self.table.place(cookie, offset, usize::try_from(length.get()).expect("small")).fill(0);
            }
            ReplyEvent::Extents { cookie, context, records } => {
                self.table.extend(cookie, context, &self.inbox[records]);
            }
            ReplyEvent::Error { report, .. } => assert!(self.inbox.get(report.message).is_some()),
            ReplyEvent::Done { cookie, result } => self.answers.push((cookie, self.table.finish(cookie, result))),
            ReplyEvent::Incomplete { needed } => {
                assert!(self.inbox.len() - parsed.consumed < needed && needed <= ClientTransmission::BUFFER_MIN);
                more = false;
            }
            ReplyEvent::Violation(violation) => {
                self.violation = Some(violation);
                return true;
            }
        }
        self.inbox.drain(..parsed.consumed);
        self.phase = Phase::Using(transmission);
        more
    }
}

/// Runs both sides until neither has bytes to send. Returns all bytes to the server and all bytes to the client.
pub fn converse(client: &mut PipeClient, server: &mut Connection, cut: Cut) -> (Vec<u8>, Vec<u8>) {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut closed = false;
    loop {
        let answers = std::mem::take(&mut server.out);
        let questions = std::mem::take(&mut client.out);
        if answers.is_empty() && (questions.is_empty() || closed) {
            return (to_server, to_client);
        }
        cut.pieces(&answers).into_iter().for_each(|piece| client.receive(piece));
        for piece in cut.pieces(&questions) {
            closed = closed || server.run(piece) == Step::Closed;
        }
        to_client.extend(answers);
        to_server.extend(questions);
    }
}
