//! The connection to the server: made, negotiated, lost, and made again.
//!
//! ```text
//!  Down --pause over--> Connecting --> Negotiating --> Up
//!    ^                      |              |            |
//!    +----------------------+--------------+------------+   refused, silent, broken, gone
//! ```

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use openraid_core::events::DriveError;
use openraid_nbd::client::{ClientError, ClientEvent, ClientHandshake, ClientOptions, ClientTransmission, Goal};
use openraid_sys::{Errno, Interest, MessagePiece, NetError, Progress, Socket};
use openraid_units::{Instant, Nanos};

use super::replies::ReadDestination;
use super::{EndedCommand, Remote, Surroundings};
use crate::export::output::ConnectionOutput;
use crate::limits::{CONNECT_TIME_MAX, RECONNECT_PAUSE_MAX, RECONNECT_PAUSE_MIN};

/// The address of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    /// By a unix socket.
    Unix(PathBuf),
}

/// Why a remote member cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RemoteError {
    /// The server's name has no address.
    Unresolved(String),
    /// No connection.
    Net(NetError),
    /// A connection that failed while it was made.
    Connect(Errno),
    /// The negotiation failed.
    Negotiation(ClientError),
    /// The server broke the protocol.
    Protocol(String),
    /// The server said nothing for too long.
    Silent,
    /// The server closed the connection.
    Closed,
    /// The export is read-only.
    ReadOnly,
    /// The server has no flush.
    NoFlush,
    /// The export has a block size that no member can have.
    BlockSize(u32),
    /// The export has no bytes.
    Empty,
    /// After a reconnection the export differs from the one before.
    Changed,
    /// After a reconnection another member answers, or an older state of this one.
    Another,
    /// The server may have lost writes that cannot be repeated.
    Forgotten,
    /// After a reconnection the server fails the steps that must come before commands.
    Resume(DriveError),
    /// The server shuts down.
    ShuttingDown,
}

impl RemoteError {
    /// The fault, without the remedy.
    #[must_use]
    pub fn fault(&self) -> String {
        let fault = match self {
            Self::Unresolved(why) => return format!("the name of the server cannot be resolved: {why}"),
            Self::Net(error) => return error.to_string(),
            Self::Connect(error) => return format!("no connection: {error}"),
            Self::Negotiation(error) => return error.to_string(),
            Self::BlockSize(size) => return format!("the export is addressed in units of {size} bytes"),
            Self::Resume(error) => return format!("the server is back, but cannot continue: {error}"),
            Self::Protocol(what) => what,
            Self::Silent => "the server does not answer",
            Self::Closed => "the server closed the connection",
            Self::ReadOnly => "the export is read-only",
            Self::NoFlush => "the server has no flush, so nothing it stores is ever known to be safe",
            Self::Empty => "the export has no room",
            Self::Changed => "the export changed its size or abilities while it was away",
            Self::Another => {
                "while the connection was lost the export became another drive, or went back to an older state"
            }
            Self::Forgotten => {
                "the connection was lost before a flush had succeeded, so the server may have lost writes"
            }
            Self::ShuttingDown => "the server is shutting down",
        };
        fault.into()
    }

    /// What to do about it, if this can be said.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Unresolved(_) | Self::Net(_) | Self::Negotiation(_) | Self::Protocol(_) | Self::Resume(_) => {
                return None
            }
            Self::Closed | Self::Empty | Self::ShuttingDown => return None,
            Self::Connect(_) => "is the server running?",
            Self::Silent => "is it the right address?",
            Self::ReadOnly => "allow writing at the server",
            Self::NoFlush => "use another server, or say explicitly that its writes are durable at once",
            Self::BlockSize(_) => "at most 4096 can be used",
            Self::Changed => "add it again",
            Self::Another => "check the server, then add the member again",
            Self::Forgotten => "add the member again",
        };
        Some(remedy.into())
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}
impl std::error::Error for RemoteError {}

/// The connection.
#[derive(Debug)]
pub(super) enum RemoteLink {
    Down { retry_at: Instant, pause: Nanos, next: usize, why: Option<RemoteError> },
    Making(Box<Making>),
    Up(Box<Up>),
}

/// A connection that is being made.
#[derive(Debug)]
pub(super) struct Making {
    socket: Socket,
    handshake: ClientHandshake,
    connected: bool,
    deadline: Instant,
    out: Vec<u8>,
    registered: Interest,
    /// The pause before the next attempt, if this one fails.
    pause: Nanos,
    next: usize,
}

/// A connection in use.
#[derive(Debug)]
pub(super) struct Up {
    pub socket: Socket,
    pub parser: ClientTransmission,
    pub output: ConnectionOutput,
    /// Bytes received and not parsed yet.
    pub buffer: Vec<u8>,
    pub filled: usize,
    /// The destination of read data that is still in the socket.
    pub incoming: Option<ReadDestination>,
    pub registered: Interest,
}

/// Room to receive replies; data of reads bypasses it if possible.
const BUFFER_BYTES: usize = 64 << 10;
const _: () = assert!(BUFFER_BYTES >= ClientTransmission::BUFFER_MIN);

impl RemoteLink {
    pub(super) fn new() -> Self {
        Self::Down { retry_at: Instant::ZERO, pause: RECONNECT_PAUSE_MIN, next: 0, why: None }
    }
}

impl Remote {
    /// The time of the next call of [`Remote::on_time`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let link = match &self.link {
            RemoteLink::Down { retry_at, .. } => Some(*retry_at),
            RemoteLink::Making(making) => Some(making.deadline),
            RemoteLink::Up(_) => None,
        };
        let oldest = self.tasks.iter().map(|(_, task)| task.since + self.options.command_timeout).min();
        [link.filter(|_| self.lost.is_none()), oldest].into_iter().flatten().min()
    }

    /// Carry out the actions that are due.
    pub fn on_time(&mut self, around: &mut Surroundings<'_>, done: &mut Vec<EndedCommand>) {
        match &self.link {
            RemoteLink::Down { retry_at, .. } if *retry_at <= around.now && self.lost.is_none() => self.begin(around),
            RemoteLink::Making(making) if making.deadline <= around.now => self.drop_link(RemoteError::Silent, around),
            _ => {}
        }
        let timeout = self.options.command_timeout;
        if self.tasks.iter().any(|(_, task)| around.now.since(task.since) >= timeout) {
            if self.is_up() {
                // Only after the old connection is closed, it is certain that nothing writes into the frames any more.
                self.drop_link(RemoteError::Silent, around);
            }
            self.give_up(around.now, done);
        }
    }

    /// The kernel reports an event of the socket.
    pub fn on_event(&mut self, around: &mut Surroundings<'_>, done: &mut Vec<EndedCommand>) {
        let result = match &self.link {
            RemoteLink::Down { .. } => Ok(()),
            RemoteLink::Making(_) => self.negotiate(around),
            RemoteLink::Up(_) => self.receive(around, done),
        };
        match result {
            Ok(()) => self.pump(around, done),
            Err(error) => self.drop_link(error, around),
        }
        if self.lost.is_some() {
            self.give_up(around.now, done);
        }
    }

    fn begin(&mut self, around: &mut Surroundings<'_>) {
        let RemoteLink::Down { pause, next, .. } = self.link else { return };
        let address = &self.addresses[next % self.addresses.len()];
        let socket = match address {
            Address::Tcp(address) => Socket::connect_tcp(*address),
            Address::Unix(path) => Socket::connect_unix(path),
        };
        let options = ClientOptions { goal: Goal::Use(self.export.clone()), structured: true, contexts: Vec::new() };
        let made = socket.map_err(RemoteError::Net).and_then(|socket| {
            let handshake = ClientHandshake::start(options).map_err(RemoteError::Negotiation)?;
            around.epoll.add(&socket, around.token, Interest::BOTH).map_err(RemoteError::Connect)?;
            Ok((socket, handshake))
        });
        match made {
            Ok((socket, handshake)) => {
                self.link = RemoteLink::Making(Box::new(Making {
                    socket,
                    handshake,
                    connected: false,
                    deadline: around.now + CONNECT_TIME_MAX,
                    out: Vec::new(),
                    registered: Interest::BOTH,
                    pause,
                    next: next + 1,
                }));
            }
            Err(why) => self.go_down(around.now, pause, next + 1, why),
        }
    }

    fn go_down(&mut self, now: Instant, pause: Nanos, next: usize, why: RemoteError) {
        let longer = Nanos((pause.get() * 2).min(RECONNECT_PAUSE_MAX.get()));
        self.link = RemoteLink::Down { retry_at: now + pause, pause: longer, next, why: Some(why) };
        self.failures += 1;
    }

    fn negotiate(&mut self, around: &mut Surroundings<'_>) -> Result<(), RemoteError> {
        let RemoteLink::Making(making) = &mut self.link else { return Ok(()) };
        if !making.connected {
            if !making.socket.connected().map_err(RemoteError::Connect)? {
                return Ok(());
            }
            making.connected = true;
        }
        let mut bytes = [0; 4096];
        let session = loop {
            match making.socket.receive(&mut bytes) {
                Ok(Progress::Bytes(count)) => {
                    let step = making.handshake.receive(&bytes[..count], &mut making.out);
                    match step.event {
                        ClientEvent::NeedMore => {}
                        ClientEvent::Ready(session) if step.consumed == count => break Some(session),
                        ClientEvent::Ready(_) => {
                            return Err(RemoteError::Protocol("the server sent more data than requested".into()))
                        }
                        ClientEvent::Failed(error) => return Err(RemoteError::Negotiation(error)),
                        ClientEvent::Listed(_) => return Err(RemoteError::Closed),
                    }
                }
                Ok(Progress::Blocked) => break None,
                Ok(Progress::Closed) => return Err(RemoteError::Closed),
                Err(error) => return Err(RemoteError::Connect(error)),
            }
            making.send(around)?;
        };
        making.send(around)?;
        match session {
            Some(session) => self.go_up(session, around),
            None => Ok(()),
        }
    }

    fn go_up(
        &mut self,
        session: openraid_nbd::client::ClientSession,
        around: &mut Surroundings<'_>,
    ) -> Result<(), RemoteError> {
        let again = self.info.is_some();
        if let Err(error) = self.on_session(&session) {
            self.lost = self.info.is_some().then(|| error.clone());
            return Err(error);
        }
        let RemoteLink::Making(making) = std::mem::replace(&mut self.link, RemoteLink::new()) else { return Ok(()) };
        let Making { socket, mut registered, .. } = *making;
        let _ = socket.set_buffers(crate::limits::SOCKET_BUFFER_BYTES, crate::limits::SOCKET_BUFFER_BYTES);
        register(&socket, &mut registered, Interest::READ, around);
        self.failures = 0;
        self.link = RemoteLink::Up(Box::new(Up {
            socket,
            parser: ClientTransmission::new(session),
            output: ConnectionOutput::default(),
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            incoming: None,
            registered,
        }));
        if again {
            self.begin_to_resume();
        }
        Ok(())
    }

    /// Close the connection; another one is tried after a pause.
    pub(super) fn drop_link(&mut self, why: RemoteError, around: &mut Surroundings<'_>) {
        let was_up = self.is_up();
        let (pause, next) = match &self.link {
            RemoteLink::Down { .. } => return,
            RemoteLink::Making(making) => {
                let _ = around.epoll.remove(&making.socket);
                (making.pause, making.next)
            }
            RemoteLink::Up(up) => {
                let _ = around.epoll.remove(&up.socket);
                (RECONNECT_PAUSE_MIN, 0)
            }
        };
        self.go_down(around.now, pause, next, why.clone());
        self.on_link_lost(was_up);
        if was_up {
            self.note_outage(around.now, why);
        }
    }

    /// Leave this epoll set: the member moves to another one.
    pub fn leave(&mut self, around: &mut Surroundings<'_>) {
        match &self.link {
            RemoteLink::Down { .. } => {}
            RemoteLink::Making(_) => self.drop_link(RemoteError::Closed, around),
            RemoteLink::Up(up) => {
                let _ = around.epoll.remove(&up.socket);
            }
        }
    }

    /// Join this epoll set.
    ///
    /// # Errors
    /// The kernel has no room for one more descriptor.
    pub fn arrive(&mut self, around: &mut Surroundings<'_>) -> Result<(), Errno> {
        match &self.link {
            RemoteLink::Up(up) => around.epoll.add(&up.socket, around.token, up.registered),
            RemoteLink::Down { .. } | RemoteLink::Making(_) => Ok(()),
        }
    }

    /// Send the disconnect request, if the server is connected.
    pub fn part_in_good_form(&self, pool: &openraid_sys::FramePool) {
        if let RemoteLink::Up(up) = &self.link {
            let _ = up.socket.send(pool, &[MessagePiece::Bytes(&ClientTransmission::disconnect())], 0);
        }
    }
}

impl Making {
    fn send(&mut self, around: &mut Surroundings<'_>) -> Result<(), RemoteError> {
        while !self.out.is_empty() {
            match self.socket.send(around.pool, &[MessagePiece::Bytes(&self.out)], 0) {
                Ok(Progress::Bytes(count)) => drop(self.out.drain(..count)),
                Ok(Progress::Blocked) => break,
                Ok(Progress::Closed) => return Err(RemoteError::Closed),
                Err(error) => return Err(RemoteError::Connect(error)),
            }
        }
        let wanted = if self.out.is_empty() { Interest::READ } else { Interest::BOTH };
        register(&self.socket, &mut self.registered, wanted, around);
        Ok(())
    }
}

/// Tell the kernel the events to report, if they changed.
pub(super) fn register(socket: &Socket, registered: &mut Interest, wanted: Interest, around: &mut Surroundings<'_>) {
    if *registered != wanted {
        let changed = around.epoll.modify(socket, around.token, wanted);
        changed.unwrap_or_else(|error| panic!("bug: a remote member is not in the set that is waited for: {error}"));
        *registered = wanted;
    }
}
