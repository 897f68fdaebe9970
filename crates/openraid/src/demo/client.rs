//! A small blocking NBD client: one request at a time over a unix socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use openraid_nbd::client::{
    ClientEvent, ClientHandshake, ClientOptions, ClientTransmission, Goal, Pending, PendingTable, ReplyEvent,
};
use openraid_nbd::{Cookie, NbdCommand, NbdRequest};
use openraid_units::{ArrayOffset, Bytes};

/// A server that does not answer for this long is not waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes received in one call.
const BATCH_BYTES: usize = 64 << 10;

/// The one request that is under way.
struct Underway {
    pending: Option<Pending>,
    data: Vec<u8>,
}

impl PendingTable for Underway {
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending> {
        self.pending.as_mut().filter(|pending| pending.request().cookie == cookie)
    }
}

pub struct DemoClient {
    stream: UnixStream,
    transmission: ClientTransmission,
    inbox: Vec<u8>,
    cookies: u64,
}

impl DemoClient {
    /// Connect and choose an export.
    ///
    /// # Errors
    /// In words.
    pub fn connect(socket: &Path, export: &str) -> Result<Self, String> {
        let mut stream =
            UnixStream::connect(socket).map_err(|error| format!("the server cannot be reached: {error}"))?;
        let timeouts =
            stream.set_read_timeout(Some(ANSWER_TIME_MAX)).and(stream.set_write_timeout(Some(ANSWER_TIME_MAX)));
        timeouts.map_err(|error| error.to_string())?;
        let options = ClientOptions { goal: Goal::Use(export.into()), structured: true, contexts: Vec::new() };
        let mut handshake = ClientHandshake::start(options).map_err(|error| error.to_string())?;
        let mut inbox = Vec::new();
        loop {
            receive(&mut stream, &mut inbox)?;
            let mut out = Vec::new();
            let step = handshake.receive(&inbox, &mut out);
            inbox.drain(..step.consumed);
            stream.write_all(&out).map_err(|error| error.to_string())?;
            match step.event {
                ClientEvent::NeedMore => {}
                ClientEvent::Ready(session) => {
                    let transmission = ClientTransmission::new(session);
                    return Ok(Self { stream, transmission, inbox, cookies: 0 });
                }
                ClientEvent::Failed(error) => return Err(error.to_string()),
                ClientEvent::Listed(_) => return Err("the server listed exports instead of serving one".into()),
            }
        }
    }

    /// Size of the export.
    pub fn size(&self) -> u64 {
        self.transmission.session().size.get()
    }

    /// Read.
    ///
    /// # Errors
    /// In words.
    pub fn read(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, String> {
        self.call(NbdCommand::Read { dont_fragment: false }, offset, len, &[])
    }

    /// Write.
    ///
    /// # Errors
    /// In words.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        self.call(NbdCommand::Write { fua: false }, offset, bytes.len(), bytes).map(drop)
    }

    /// Make everything durable.
    ///
    /// # Errors
    /// In words.
    pub fn flush(&mut self) -> Result<(), String> {
        self.call(NbdCommand::Flush, 0, 0, &[]).map(drop)
    }

    fn call(&mut self, command: NbdCommand, offset: u64, len: usize, payload: &[u8]) -> Result<Vec<u8>, String> {
        self.cookies += 1;
        let request = NbdRequest {
            cookie: Cookie(self.cookies),
            command,
            offset: ArrayOffset(offset),
            length: Bytes(len as u64),
        };
        let header = self.transmission.encode(&request).map_err(|error| error.to_string())?;
        let sent = self.stream.write_all(&header).and_then(|()| self.stream.write_all(payload));
        sent.map_err(|error| format!("the server takes nothing: {error}"))?;
        let data = vec![0; if command.is_read() { len } else { 0 }];
        let mut underway = Underway { pending: Some(Pending::new(request)), data };
        while !self.step(&mut underway, offset)? {}
        Ok(underway.data)
    }

    /// Take one event of the answer; true at its end.
    fn step(&mut self, underway: &mut Underway, start: u64) -> Result<bool, String> {
        let parsed = self.transmission.parse(&self.inbox, underway);
        let place = |offset: ArrayOffset| usize::try_from(offset.get() - start).expect("within the request");
        let mut end = false;
        match parsed.event {
            ReplyEvent::Data { offset, received, remaining, .. } => {
                let (at, here) = (place(offset), received.len());
                let rest = usize::try_from(remaining).expect("within the request");
                underway.data[at..at + here].copy_from_slice(&self.inbox[received]);
                let into = &mut underway.data[at + here..at + here + rest];
                self.stream.read_exact(into).map_err(|error| format!("the server sends nothing: {error}"))?;
                self.transmission.payload_received(remaining);
            }
            ReplyEvent::Hole { offset, length, .. } => {
                let at = place(offset);
                underway.data[at..at + usize::try_from(length.get()).expect("within the request")].fill(0);
            }
            ReplyEvent::Extents { .. } | ReplyEvent::Error { .. } => {}
            ReplyEvent::Done { result, .. } => match result {
                Ok(()) => end = true,
                Err(error) => return Err(format!("the request at byte {start} failed: {error}")),
            },
            ReplyEvent::Incomplete { .. } => {
                self.inbox.drain(..parsed.consumed);
                receive(&mut self.stream, &mut self.inbox)?;
                return Ok(false);
            }
            ReplyEvent::Violation(violation) => return Err(violation.to_string()),
        }
        self.inbox.drain(..parsed.consumed);
        Ok(end)
    }
}

impl Drop for DemoClient {
    fn drop(&mut self) {
        // A server that has gone needs no disconnect request.
        let _ = self.stream.write_all(&ClientTransmission::disconnect());
    }
}

fn receive(stream: &mut UnixStream, inbox: &mut Vec<u8>) -> Result<(), String> {
    let before = inbox.len();
    inbox.resize(before + BATCH_BYTES, 0);
    let read = stream.read(&mut inbox[before..]).map_err(|error| format!("the server does not answer: {error}"))?;
    inbox.truncate(before + read);
    if read == 0 {
        return Err("the server closed the connection".into());
    }
    Ok(())
}
