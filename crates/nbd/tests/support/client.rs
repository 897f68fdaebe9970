//! A small blocking client, for one request at a time or many at once.

use openraid_nbd::client::{
    ClientError, ClientEvent, ClientHandshake, ClientOptions, ClientSession, ClientTransmission, Finished, Goal,
    ListedExport, Pending, PendingTable, ReplyEvent,
};
use openraid_nbd::{Cookie, NbdCommand, NbdRequest, NbdUri, StatusExtent, Transport};
use openraid_units::{ArrayOffset, Bytes};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The result of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub result: Finished,
    /// For a read: the data, with the length of the request.
    pub data: Vec<u8>,
    /// Context and extent.
    pub extents: Vec<(u32, StatusExtent)>,
}

/// A request that is under way, with its result so far.
struct Underway {
    pending: Pending,
    data: Vec<u8>,
    extents: Vec<(u32, StatusExtent)>,
}

#[derive(Default)]
pub struct Table(BTreeMap<Cookie, Underway>);

impl PendingTable for Table {
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending> {
        self.0.get_mut(&cookie).map(|underway| &mut underway.pending)
    }
}

impl Table {
    pub fn insert(&mut self, request: NbdRequest) {
        let length = if request.command.is_read() { request.length.get() } else { 0 };
        let data = vec![0xee; usize::try_from(length).expect("small")];
        let before =
            self.0.insert(request.cookie, Underway { pending: Pending::new(request), data, extents: Vec::new() });
        assert!(before.is_none(), "a cookie was used twice");
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The destination of a read's data.
    pub fn place(&mut self, cookie: Cookie, offset: ArrayOffset, length: usize) -> &mut [u8] {
        let underway = self.underway(cookie);
        let start = usize::try_from((offset - underway.pending.request().offset).get()).expect("small");
        &mut underway.data[start..start + length]
    }

    pub fn extend(&mut self, cookie: Cookie, context: u32, records: &[u8]) {
        self.underway(cookie).extents.extend(StatusExtent::from_wire(records).map(|extent| (context, extent)));
    }

    pub fn finish(&mut self, cookie: Cookie, result: Finished) -> Answer {
        let underway = self.0.remove(&cookie).expect("events name requests that are outstanding");
        Answer { result, data: underway.data, extents: underway.extents }
    }

    fn underway(&mut self, cookie: Cookie) -> &mut Underway {
        self.0.get_mut(&cookie).expect("events name requests that are outstanding")
    }
}

pub struct Client {
    stream: Box<dyn Stream>,
    transmission: ClientTransmission,
    table: Table,
    inbox: Vec<u8>,
    cookies: u64,
}

pub fn connect_stream(uri: &NbdUri) -> Box<dyn Stream> {
    match &uri.transport {
        Transport::Tcp { host, port } => Box::new(TcpStream::connect((host.as_str(), *port)).expect("connects")),
        Transport::Unix { socket } => Box::new(UnixStream::connect(socket).expect("connects")),
    }
}

fn negotiate(stream: &mut dyn Stream, options: ClientOptions) -> (ClientEvent, Vec<u8>) {
    let mut handshake = ClientHandshake::start(options).expect("sensible options");
    let mut batch = vec![0; 4096];
    loop {
        let count = stream.read(&mut batch).expect("the server answers");
        assert!(count > 0, "the server closed the connection");
        let mut out = Vec::new();
        let step = handshake.receive(&batch[..count], &mut out);
        stream.write_all(&out).expect("the server listens");
        if step.event != ClientEvent::NeedMore {
            return (step.event, batch[step.consumed..count].to_vec());
        }
    }
}

/// The exports that a server offers.
pub fn list(uri: &NbdUri) -> Vec<ListedExport> {
    let options = ClientOptions { goal: Goal::List, structured: false, contexts: vec![] };
    match negotiate(&mut *connect_stream(uri), options).0 {
        ClientEvent::Listed(list) => list,
        other => panic!("{other:?}"),
    }
}

impl Client {
    pub fn connect(uri: &NbdUri, structured: bool, contexts: &[&str]) -> Result<Self, ClientError> {
        let mut stream = connect_stream(uri);
        let contexts = contexts.iter().map(|name| (*name).to_owned()).collect();
        let options = ClientOptions { goal: Goal::Use(uri.export.clone()), structured, contexts };
        match negotiate(&mut *stream, options) {
            (ClientEvent::Ready(session), inbox) => {
                let transmission = ClientTransmission::new(session);
                Ok(Self { stream, transmission, table: Table::default(), inbox, cookies: 0 })
            }
            (ClientEvent::Failed(error), _) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    pub fn session(&self) -> &ClientSession {
        self.transmission.session()
    }

    pub fn request(&mut self, command: NbdCommand, offset: u64, length: u64) -> NbdRequest {
        self.cookies += 1;
        let cookie = Cookie(self.cookies);
        NbdRequest { cookie, command, offset: ArrayOffset(offset), length: Bytes(length) }
    }

    /// Sends a request that is known to be valid.
    pub fn send(&mut self, request: NbdRequest, payload: &[u8]) {
        let header = self.transmission.encode(&request).expect("the test asks for nothing forbidden");
        self.table.insert(request);
        self.stream.write_all(&[&header, payload].concat()).expect("the server listens");
    }

    /// Sends several requests in one call, each with this payload.
    #[allow(dead_code)] // not every test pipelines
    pub fn send_together(&mut self, requests: &[NbdRequest], payload: &[u8]) {
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend_from_slice(&self.transmission.encode(request).expect("the test asks for nothing forbidden"));
            bytes.extend_from_slice(payload);
            self.table.insert(*request);
        }
        self.stream.write_all(&bytes).expect("the server listens");
    }

    /// Waits for the end of any request.
    pub fn wait(&mut self) -> (Cookie, Answer) {
        let mut batch = vec![0; 64 << 10];
        loop {
            let parsed = self.transmission.parse(&self.inbox, &mut self.table);
            match parsed.event {
                ReplyEvent::Data { cookie, offset, received, remaining } => {
                    let here = received.len();
                    let place = self.table.place(cookie, offset, here + remaining as usize);
                    place[..here].copy_from_slice(&self.inbox[received]);
                    self.stream.read_exact(&mut place[here..]).expect("the server sends what it announced");
                    self.transmission.payload_received(remaining);
                }
                ReplyEvent::Hole { cookie, offset, length } => {
                    self.table.place(cookie, offset, usize::try_from(length.get()).expect("small")).fill(0);
                }
                ReplyEvent::Extents { cookie, context, records } => {
                    self.table.extend(cookie, context, &self.inbox[records]);
                }
                ReplyEvent::Error { report, .. } => {
                    assert!(std::str::from_utf8(&self.inbox[report.message]).is_ok());
                }
                ReplyEvent::Done { cookie, result } => {
                    self.inbox.drain(..parsed.consumed);
                    return (cookie, self.table.finish(cookie, result));
                }
                ReplyEvent::Incomplete { .. } => {
                    self.inbox.drain(..parsed.consumed);
                    let count = self.stream.read(&mut batch).expect("the server answers");
                    assert!(count > 0, "the server closed the connection");
                    self.inbox.extend_from_slice(&batch[..count]);
                    continue;
                }
                ReplyEvent::Violation(violation) => panic!("{violation}"),
            }
            self.inbox.drain(..parsed.consumed);
        }
    }

    /// One request and its answer.
    pub fn call(&mut self, command: NbdCommand, offset: u64, length: u64, payload: &[u8]) -> Answer {
        let request = self.request(command, offset, length);
        self.send(request, payload);
        let (cookie, answer) = self.wait();
        assert_eq!(cookie, request.cookie);
        answer
    }

    pub fn disconnect(mut self) {
        assert!(self.table.is_empty());
        self.stream.write_all(&ClientTransmission::disconnect()).expect("the server listens");
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).expect("the server closes");
        assert!(rest.is_empty(), "the server said something after goodbye");
    }
}
