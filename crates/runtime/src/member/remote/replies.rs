//! Replies of the server: data directly into frames, ends of requests, errors as errors of the core.

use openraid_core::events::DriveError;
use openraid_nbd::client::{Pending, PendingTable, ReplyEvent, ReplyParsed};
use openraid_nbd::{Cookie, NbdCommand, NbdError, NbdRequest};
use openraid_sys::{PoolRange, Progress};
use openraid_units::{ArrayOffset, Bytes, DriveLba, Token};

use super::link::{RemoteError, RemoteLink, Up};
use super::{EndedCommand, Part, Remote, Surroundings, Work};
use crate::slab::{GrowingSlab, SlabKey};

/// Maximum bytes that one call receives from one server, so that others get their turn.
const BYTES_PER_CALL_MAX: usize = 4 << 20;

/// The destination of read data that is still in the socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadDestination {
    Frames(PoolRange),
    /// Into [`Remote`]'s own block.
    Sector {
        from: usize,
        len: usize,
    },
}

impl ReadDestination {
    fn advance(&mut self, count: usize) {
        match self {
            Self::Frames(range) => {
                let came = Bytes(count as u64);
                *range = range.part(came, range.len - came);
            }
            Self::Sector { from, len } => {
                *from += count;
                *len -= count;
            }
        }
    }
}

struct Table<'a>(&'a mut GrowingSlab<Part>);

impl PendingTable for Table<'_> {
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending> {
        self.0.get_mut(SlabKey::from_token(Token(cookie.0))).map(|part| &mut part.pending)
    }
}

impl Remote {
    /// Receive the bytes of the socket.
    pub(super) fn receive(
        &mut self,
        around: &mut Surroundings<'_>,
        done: &mut Vec<EndedCommand>,
    ) -> Result<(), RemoteError> {
        let mut taken = 0;
        while taken < BYTES_PER_CALL_MAX {
            let RemoteLink::Up(up) = &mut self.link else { return Ok(()) };
            let progress = match up.incoming {
                Some(ReadDestination::Frames(range)) => up.socket.receive_into_pool(around.pool, range),
                Some(ReadDestination::Sector { from, len }) => up.socket.receive(&mut self.sector[from..from + len]),
                None => up.socket.receive(&mut up.buffer[up.filled..]),
            };
            let count = match progress {
                Ok(Progress::Bytes(count)) => count,
                Ok(Progress::Blocked) => return Ok(()),
                Ok(Progress::Closed) => return Err(RemoteError::Closed),
                Err(error) => return Err(RemoteError::Connect(error)),
            };
            taken += count;
            match &mut up.incoming {
                Some(incoming) => {
                    incoming.advance(count);
                    let count = u32::try_from(count).expect("a read is below 4 GiB");
                    if up.parser.payload_received(count) == 0 {
                        up.incoming = None;
                        self.parse(around, done)?;
                    }
                }
                None => {
                    up.filled += count;
                    self.parse(around, done)?;
                }
            }
        }
        Ok(())
    }

    /// Parse the buffer.
    fn parse(&mut self, around: &mut Surroundings<'_>, done: &mut Vec<EndedCommand>) -> Result<(), RemoteError> {
        let mut at = 0;
        loop {
            let RemoteLink::Up(up) = &mut self.link else { return Ok(()) };
            let Up { parser, buffer, filled, .. } = up.as_mut();
            let ReplyParsed { consumed, event } = parser.parse(&buffer[at..*filled], &mut Table(&mut self.parts));
            let base = at;
            at += consumed;
            match event {
                ReplyEvent::Data { cookie, offset, received, remaining } => {
                    let received = base + received.start..base + received.end;
                    if self.on_data(cookie, offset, received, remaining, around) {
                        break;
                    }
                }
                ReplyEvent::Hole { cookie, offset, length } => {
                    if let Some(range) = self.place(cookie, offset, length) {
                        around.pool.slice_mut(range).fill(0);
                    }
                }
                // The server shuts down: the next connection repeats its unanswered requests.
                ReplyEvent::Done { result: Err(NbdError::ShuttingDown), .. } => return Err(RemoteError::ShuttingDown),
                ReplyEvent::Done { cookie, result } => {
                    let key = SlabKey::from_token(Token(cookie.0));
                    self.outstanding -= 1;
                    let request = *self.parts.get(key).expect("the parser has found it").pending.request();
                    let result = result.map_err(|error| drive_error(error, &request));
                    if result.is_ok() {
                        self.keep(key, around.pool);
                    }
                    self.end_part(key, result, done)?;
                }
                ReplyEvent::Error { .. } | ReplyEvent::Extents { .. } => {}
                ReplyEvent::Incomplete { .. } => break,
                ReplyEvent::Violation(violation) => return Err(RemoteError::Protocol(violation.to_string())),
            }
        }
        if let RemoteLink::Up(up) = &mut self.link {
            up.buffer.copy_within(at..up.filled, 0);
            up.filled -= at;
        }
        Ok(())
    }

    /// Data of a read: the first bytes are in the buffer; true if the rest is still in the socket.
    fn on_data(
        &mut self,
        cookie: Cookie,
        offset: ArrayOffset,
        received: std::ops::Range<usize>,
        remaining: u32,
        around: &mut Surroundings<'_>,
    ) -> bool {
        let key = SlabKey::from_token(Token(cookie.0));
        let part = self.parts.get(key).expect("the parser lets no data pass that was not asked for");
        if part.work == Work::Identity {
            let from = usize::try_from((offset - part.pending.request().offset).get()).expect("a block is small");
            return self.on_sector(from, received, remaining);
        }
        let here = received.len() as u64;
        let range = self.place(cookie, offset, Bytes(here + u64::from(remaining)));
        let range = range.expect("the parser lets no data pass that was not asked for");
        let RemoteLink::Up(up) = &mut self.link else { return true };
        around.pool.slice_mut(range.part(Bytes::ZERO, Bytes(here))).copy_from_slice(&up.buffer[received]);
        if remaining > 0 {
            let rest = range.part(Bytes(here), Bytes(u64::from(remaining)));
            up.incoming = Some(ReadDestination::Frames(rest));
        }
        remaining > 0
    }

    /// The same for the block that identifies the member.
    fn on_sector(&mut self, from: usize, received: std::ops::Range<usize>, remaining: u32) -> bool {
        let RemoteLink::Up(up) = &mut self.link else { return true };
        let rest = from + received.len();
        self.sector[from..rest].copy_from_slice(&up.buffer[received]);
        if remaining > 0 {
            up.incoming = Some(ReadDestination::Sector { from: rest, len: remaining as usize });
        }
        remaining > 0
    }

    /// The destination in the pool of a part of a read's data.
    fn place(&self, cookie: Cookie, offset: ArrayOffset, length: Bytes) -> Option<PoolRange> {
        let key = SlabKey::from_token(Token(cookie.0));
        let request = self.parts.get(key)?.pending.request();
        let frames = self.frames_of(key)?;
        Some(PoolRange::new(frames, request.length).part(offset - request.offset, length))
    }
}

/// An error of the server as an error of a drive.
fn drive_error(error: NbdError, request: &NbdRequest) -> DriveError {
    let lba = DriveLba(request.offset.get() / 512);
    match (error, request.command) {
        (NbdError::ShuttingDown, _) => DriveError::Gone,
        (_, NbdCommand::Flush) => DriveError::FlushFailed,
        (NbdError::InputOutput, _) => DriveError::Media { lba },
        (NbdError::NotPermitted, _) => DriveError::ReadOnly,
        (NbdError::NoSpace, _) => DriveError::NoSpace,
        (NbdError::NotSupported, _) | (NbdError::Invalid, NbdCommand::Trim { .. } | NbdCommand::WriteZeroes { .. }) => {
            DriveError::Unsupported
        }
        (NbdError::Invalid | NbdError::NoMemory | NbdError::Overflow, _) => DriveError::Protocol,
    }
}
