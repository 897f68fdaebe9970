//! Replies out of received bytes, and the check that a request may be sent at all.
//!
//! The caller keeps the outstanding requests in a [`PendingTable`]; the parser looks replies up there and notes how
//! much of a read has come. Payload is never copied: the part in the buffer is given as a range. The caller receives
//! the rest straight to its destination and reports it to [`ClientTransmission::payload_received`].
//!
//! Every request ends with exactly one [`ReplyEvent::Done`]. The parser must never report success for a read that did
//! not get all its bytes. A server that says "done" too early, sends a byte outside the request, or answers a request
//! that does not exist, commits a [`Violation`], after which the connection is useless.

use super::handshake::ClientSession;
use crate::block_status::StatusExtent;
use crate::error_numbers::NbdError;
use crate::flags::ExportFlags;
use crate::limits::{ERROR_CHUNK_MAX, PAYLOAD_DEFAULT_MAX};
use crate::request::{Cookie, NbdCommand, NbdRequest, REQUEST_BYTES};
use crate::wire::{
    chunk, cmd, to_usize, Reader, CHUNK_BYTES, MAGIC_SIMPLE_REPLY, MAGIC_STRUCTURED_REPLY, SIMPLE_REPLY_BYTES,
};
use core::fmt;
use core::ops::Range;
use openraid_units::{ArrayOffset, Bytes};

/// A request that was sent and not yet answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    request: NbdRequest,
    /// Number of bytes of a read that were received or announced.
    covered: u64,
    /// Contexts for which the server has sent block status.
    contexts: u32,
    error: Option<NbdError>,
}

impl Pending {
    /// The entry for a request.
    #[must_use]
    pub const fn new(request: NbdRequest) -> Self {
        Self { request, covered: 0, contexts: 0, error: None }
    }
    /// The request.
    #[must_use]
    pub const fn request(&self) -> &NbdRequest {
        &self.request
    }
}

/// The caller's table of the outstanding requests of the connection.
pub trait PendingTable {
    /// The entry of a request that was sent and has not ended; `None` for any other cookie.
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending>;
}

/// The reason why a request must not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// The server does not support the command, or one of its flags.
    NotOffered,
    /// The export is read-only.
    ReadOnly,
    /// The range is empty, or a flush has a range.
    Empty,
    /// The range extends past the end of the export, or its length exceeds 32 bits.
    OutOfRange,
    /// The request is not in units of the server's minimum block size, which is given.
    Misaligned(u32),
    /// The payload exceeds the server's maximum, which is given.
    TooLarge(u32),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str("the NBD server does not offer this command for the export"),
            Self::ReadOnly => f.write_str("the NBD export is read-only"),
            Self::Empty => f.write_str("a request needs a range, a flush must have none"),
            Self::OutOfRange => f.write_str("the request ends beyond the NBD export"),
            Self::Misaligned(unit) => write!(f, "the NBD export is addressed in units of {unit} bytes"),
            Self::TooLarge(most) => write!(f, "the NBD server takes at most {most} bytes in a request"),
        }
    }
}

impl std::error::Error for RequestError {}

/// A violation of the protocol by the server. The connection must be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A reply begins with these bytes instead of its magic number.
    BadMagic(u32),
    /// The reply is for a request that is not outstanding.
    UnknownCookie(Cookie),
    /// The reply is structured, but structured replies were not negotiated.
    NotNegotiated,
    /// The reply is simple, but only a structured one is allowed.
    SimpleReplyNotAllowed,
    /// The type of the chunk does not belong to the command; the type.
    UnexpectedChunk(u16),
    /// The length of the chunk does not fit its type; type and length.
    ChunkLength(u16, u32),
    /// The data are outside the range of the read, or more than the read requested.
    OutsideRequest,
    /// The reply ended before all data were received; number of received bytes.
    Incomplete(u64),
    /// Block status came twice for a context, not for all contexts, or for a context that was not negotiated.
    WrongContexts,
    /// An extent has length zero, so the client would make no progress.
    EmptyExtent,
    /// An error chunk has no error.
    ErrorWithoutError,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the NBD server broke the protocol: ")?;
        match self {
            Self::BadMagic(magic) => write!(f, "a reply starts with {magic:#010x}"),
            Self::UnknownCookie(cookie) => write!(f, "an answer to request {:#x}, which was not sent", cookie.0),
            Self::NotNegotiated => f.write_str("a structured reply that was not agreed on"),
            Self::SimpleReplyNotAllowed => f.write_str("a simple reply where a structured one is required"),
            Self::UnexpectedChunk(kind) => write!(f, "a chunk of type {kind} in a reply it does not belong to"),
            Self::ChunkLength(kind, length) => write!(f, "a chunk of type {kind} with the length {length}"),
            Self::OutsideRequest => f.write_str("data that was not requested"),
            Self::Incomplete(came) => write!(f, "the end of a read after only {came} bytes"),
            Self::WrongContexts => f.write_str("a block status that does not match the metadata contexts"),
            Self::EmptyExtent => f.write_str("a block status with an empty extent"),
            Self::ErrorWithoutError => f.write_str("an error report without an error"),
        }
    }
}

impl std::error::Error for Violation {}

/// An error chunk. There may be several before the request ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyError {
    /// The error.
    pub error: NbdError,
    /// The offset of the error, if the server sent one.
    pub offset: Option<ArrayOffset>,
    /// The server's message, as a range of the buffer. It may be empty and need not be UTF-8.
    pub message: Range<usize>,
}

/// The end of a request: success, or the first reported error.
pub type Finished = Result<(), NbdError>;

/// The result of one step. Ranges count from the start of the buffer that was passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplyEvent {
    /// Data of a read: its first bytes in the buffer (none, some or all), and `remaining` bytes still to come. Receive
    /// exactly those, and report each arrival to [`ClientTransmission::payload_received`].
    Data {
        /// The request.
        cookie: Cookie,
        /// Offset of the data in the export.
        offset: ArrayOffset,
        /// Range of the received bytes.
        received: Range<usize>,
        /// Number of bytes still to be received.
        remaining: u32,
    },
    /// A part of a read that consists of zeroes.
    Hole {
        /// The request.
        cookie: Cookie,
        /// Offset of the part in the export.
        offset: ArrayOffset,
        /// Length of the part.
        length: Bytes,
    },
    /// Extents of one context, in order; [`StatusExtent::from_wire`] decodes them from the range. A long list comes in
    /// several pieces.
    Extents {
        /// The request.
        cookie: Cookie,
        /// The context; see [`ClientSession::contexts`].
        context: u32,
        /// Range of complete records in the buffer.
        records: Range<usize>,
    },
    /// The server reports an error. The request continues until it has ended.
    Error {
        /// The request.
        cookie: Cookie,
        /// The error and its offset.
        report: ReplyError,
    },
    /// The request has ended: remove it from the table.
    Done {
        /// The request.
        cookie: Cookie,
        /// The result of the request.
        result: Finished,
    },
    /// There are not enough bytes for the next step: keep the unused bytes and receive more after them.
    Incomplete {
        /// Number of bytes that the next step needs at least. Never above [`ClientTransmission::BUFFER_MIN`].
        needed: usize,
    },
    /// Close the connection; no later byte of it can be trusted.
    Violation(Violation),
}

/// The number of bytes used, and the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyParsed {
    /// Number of bytes of the buffer that were used.
    pub consumed: usize,
    /// Event that the bytes are.
    pub event: ReplyEvent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A reply begins at the next byte.
    Start,
    /// The caller receives data. `last` says whether the reply ends after them.
    Data { cookie: Cookie, left: u32, last: bool },
    /// Extents follow.
    Extents { cookie: Cookie, context: u32, left: u32, last: bool },
}

/// Parser of one connection's replies.
#[derive(Clone, Debug)]
pub struct ClientTransmission {
    session: ClientSession,
    state: State,
}

/// The header of a chunk.
struct Chunk {
    last: bool,
    kind: u16,
    cookie: Cookie,
    length: u32,
}

impl ClientTransmission {
    /// Minimum size of the receive buffer in bytes.
    pub const BUFFER_MIN: usize = CHUNK_BYTES + ERROR_CHUNK_MAX;

    /// A parser for the negotiated session.
    #[must_use]
    pub fn new(session: ClientSession) -> Self {
        Self { session, state: State::Start }
    }

    /// The negotiated session.
    #[must_use]
    pub fn session(&self) -> &ClientSession {
        &self.session
    }

    /// Checks a request and encodes its header. The checks are what the server may require. The payload of a
    /// write must follow the header.
    ///
    /// # Errors
    /// The server would have to refuse the request.
    pub fn encode(&self, request: &NbdRequest) -> Result<[u8; REQUEST_BYTES], RequestError> {
        let flags = self.session.flags;
        let needed = match request.command {
            NbdCommand::Read { dont_fragment: true } => ExportFlags::DONT_FRAGMENT,
            NbdCommand::Read { .. } | NbdCommand::BlockStatus { .. } => ExportFlags::NONE,
            NbdCommand::Write { fua } => with_fua(ExportFlags::NONE, fua),
            NbdCommand::Flush => ExportFlags::FLUSH,
            NbdCommand::Trim { fua } => with_fua(ExportFlags::TRIM, fua),
            NbdCommand::Cache => ExportFlags::CACHE,
            NbdCommand::WriteZeroes { fua, fast: false, .. } => with_fua(ExportFlags::WRITE_ZEROES, fua),
            NbdCommand::WriteZeroes { fua, fast: true, .. } => {
                with_fua(ExportFlags::WRITE_ZEROES.with(ExportFlags::FAST_ZERO), fua)
            }
        };
        let no_context = matches!(request.command, NbdCommand::BlockStatus { .. }) && self.session.contexts.is_empty();
        if !flags.contains(needed) || no_context {
            return Err(RequestError::NotOffered);
        }
        let changes = matches!(
            request.command,
            NbdCommand::Write { .. } | NbdCommand::Trim { .. } | NbdCommand::WriteZeroes { .. }
        );
        if changes && flags.contains(ExportFlags::READ_ONLY) {
            return Err(RequestError::ReadOnly);
        }
        self.check_range(request).map(|()| request.encode())
    }

    fn check_range(&self, request: &NbdRequest) -> Result<(), RequestError> {
        let (offset, length) = (request.offset.get(), request.length.get());
        if matches!(request.command, NbdCommand::Flush) {
            return if offset == 0 && length == 0 { Ok(()) } else { Err(RequestError::Empty) };
        }
        if length == 0 {
            return Err(RequestError::Empty);
        }
        let size = self.session.size.get();
        if u32::try_from(length).is_err() || offset > size || length > size - offset {
            return Err(RequestError::OutOfRange);
        }
        let minimum = self.session.blocks.map_or(1, |blocks| blocks.minimum());
        if (offset | length) & (u64::from(minimum) - 1) != 0 {
            return Err(RequestError::Misaligned(minimum));
        }
        let maximum = self.session.blocks.map_or(PAYLOAD_DEFAULT_MAX, |blocks| blocks.maximum());
        if (request.command.is_read() || request.command.is_write()) && length > u64::from(maximum) {
            return Err(RequestError::TooLarge(maximum));
        }
        Ok(())
    }

    /// The last message: the client ends the connection. Send it when no request is outstanding, then close.
    #[must_use]
    pub fn disconnect() -> [u8; REQUEST_BYTES] {
        crate::request::encode_raw(0, cmd::DISC, Cookie(0), 0, 0)
    }

    /// Reports that `count` bytes of announced data were received. Returns the number of bytes still to come.
    ///
    /// # Panics
    /// More bytes than announced.
    pub fn payload_received(&mut self, count: u32) -> u32 {
        match &mut self.state {
            State::Data { left, .. } if count <= *left => {
                *left -= count;
                *left
            }
            _ => panic!("{count} bytes of data were reported but never announced"),
        }
    }

    /// Does the next step in `buffer`, which begins with the first unused byte. Call this again, also with an empty
    /// buffer, until [`ReplyEvent::Incomplete`].
    ///
    /// # Panics
    /// Announced data are outstanding: the caller must receive those bytes.
    pub fn parse(&mut self, buffer: &[u8], table: &mut impl PendingTable) -> ReplyParsed {
        match self.step(buffer, table) {
            Ok(parsed) => parsed,
            Err(violation) => ReplyParsed { consumed: 0, event: ReplyEvent::Violation(violation) },
        }
    }

    fn step(&mut self, buffer: &[u8], table: &mut impl PendingTable) -> Result<ReplyParsed, Violation> {
        match self.state {
            State::Data { left, .. } if left > 0 => panic!("{left} bytes of the last data are still outstanding"),
            State::Data { cookie, last: true, .. } => {
                self.state = State::Start;
                return finish(cookie, table, 0, &self.session);
            }
            State::Extents { cookie, context, left, last } => {
                return self.on_extents(buffer, 0, cookie, context, left, last);
            }
            State::Data { .. } | State::Start => self.state = State::Start,
        }
        let mut reader = Reader::new(buffer);
        match reader.u32() {
            None => Ok(incomplete(SIMPLE_REPLY_BYTES)),
            Some(MAGIC_SIMPLE_REPLY) => self.on_simple(buffer, table),
            Some(MAGIC_STRUCTURED_REPLY) if !self.session.structured => Err(Violation::NotNegotiated),
            Some(MAGIC_STRUCTURED_REPLY) => self.on_chunk(buffer, table),
            Some(other) => Err(Violation::BadMagic(other)),
        }
    }

    fn on_simple(&mut self, buffer: &[u8], table: &mut impl PendingTable) -> Result<ReplyParsed, Violation> {
        let mut reader = Reader::new(buffer);
        let (_, error, cookie) = (reader.u32(), reader.u32(), reader.u64().map(Cookie));
        let (Some(error), Some(cookie)) = (error, cookie) else { return Ok(incomplete(SIMPLE_REPLY_BYTES)) };
        let pending = table.pending(cookie).ok_or(Violation::UnknownCookie(cookie))?;
        let command = pending.request.command;
        if self.session.structured && command.is_read() {
            return Err(Violation::SimpleReplyNotAllowed);
        }
        pending.error = pending.error.or(NbdError::from_code(error));
        if pending.error.is_none() && command.is_read() {
            let length = u32::try_from(pending.request.length.get()).expect("a request has a 32-bit length");
            let offset = pending.request.offset;
            pending.covered = u64::from(length);
            return Ok(self.on_data(buffer, SIMPLE_REPLY_BYTES, cookie, offset, length, true));
        }
        if pending.error.is_none() && matches!(command, NbdCommand::BlockStatus { .. }) {
            return Err(Violation::SimpleReplyNotAllowed);
        }
        finish(cookie, table, SIMPLE_REPLY_BYTES, &self.session)
    }

    fn on_chunk(&mut self, buffer: &[u8], table: &mut impl PendingTable) -> Result<ReplyParsed, Violation> {
        let mut reader = Reader::new(buffer);
        let (_, flags, kind) = (reader.u32(), reader.u16(), reader.u16());
        let (cookie, length) = (reader.u64().map(Cookie), reader.u32());
        let (Some(flags), Some(kind), Some(cookie), Some(length)) = (flags, kind, cookie, length) else {
            return Ok(incomplete(CHUNK_BYTES));
        };
        let chunk = Chunk { last: flags & chunk::FLAG_DONE != 0, kind, cookie, length };
        let pending = table.pending(cookie).ok_or(Violation::UnknownCookie(cookie))?;
        if kind & chunk::ERROR_BIT != 0 {
            return self.on_error_chunk(buffer, &chunk, table);
        }
        let wrong_length = Violation::ChunkLength(kind, length);
        let body = &buffer[CHUNK_BYTES..];
        match (kind, pending.request.command) {
            (chunk::NONE, _) if length != 0 || !chunk.last => Err(wrong_length),
            (chunk::NONE, _) => finish(cookie, table, CHUNK_BYTES, &self.session),
            (chunk::OFFSET_DATA, NbdCommand::Read { .. }) if length < 9 => Err(wrong_length),
            (chunk::OFFSET_DATA, NbdCommand::Read { .. }) => {
                let Some(offset) = Reader::new(body).u64() else { return Ok(incomplete(CHUNK_BYTES + 8)) };
                cover(pending, offset, length - 8)?;
                Ok(self.on_data(buffer, CHUNK_BYTES + 8, cookie, ArrayOffset(offset), length - 8, chunk.last))
            }
            (chunk::OFFSET_HOLE, NbdCommand::Read { .. }) if length != 12 => Err(wrong_length),
            (chunk::OFFSET_HOLE, NbdCommand::Read { .. }) => {
                let mut reader = Reader::new(body);
                let (Some(offset), Some(hole)) = (reader.u64(), reader.u32()) else {
                    return Ok(incomplete(CHUNK_BYTES + 12));
                };
                cover(pending, offset, hole)?;
                self.state = State::Data { cookie, left: 0, last: chunk.last };
                let event = ReplyEvent::Hole { cookie, offset: ArrayOffset(offset), length: Bytes(u64::from(hole)) };
                Ok(ReplyParsed { consumed: CHUNK_BYTES + 12, event })
            }
            (chunk::BLOCK_STATUS, NbdCommand::BlockStatus { .. }) if length < 12 || length % 8 != 4 => {
                Err(wrong_length)
            }
            (chunk::BLOCK_STATUS, NbdCommand::BlockStatus { .. }) => {
                let Some(context) = Reader::new(body).u32() else { return Ok(incomplete(CHUNK_BYTES + 4)) };
                let known = self.session.contexts.iter().position(|chosen| chosen.id == context);
                let bit = 1 << known.ok_or(Violation::WrongContexts)?;
                if pending.contexts & bit != 0 {
                    return Err(Violation::WrongContexts);
                }
                pending.contexts |= bit;
                self.on_extents(buffer, CHUNK_BYTES + 4, cookie, context, length - 4, chunk.last)
            }
            _ => Err(Violation::UnexpectedChunk(kind)),
        }
    }

    fn on_error_chunk(
        &mut self,
        buffer: &[u8],
        chunk: &Chunk,
        table: &mut impl PendingTable,
    ) -> Result<ReplyParsed, Violation> {
        let wrong_length = Violation::ChunkLength(chunk.kind, chunk.length);
        let length = to_usize(chunk.length);
        if !(6..=ERROR_CHUNK_MAX).contains(&length) {
            return Err(wrong_length);
        }
        let Some(body) = buffer.get(CHUNK_BYTES..CHUNK_BYTES + length) else {
            return Ok(incomplete(CHUNK_BYTES + length));
        };
        let mut reader = Reader::new(body);
        let error = reader.u32().and_then(NbdError::from_code).ok_or(Violation::ErrorWithoutError)?;
        let message_length = usize::from(reader.u16().ok_or(wrong_length)?);
        reader.bytes(message_length).ok_or(wrong_length)?;
        let offset = match chunk.kind {
            chunk::ERROR_OFFSET => Some(ArrayOffset(reader.u64().ok_or(wrong_length)?)),
            _ => None,
        };
        let pending = table.pending(chunk.cookie).ok_or(Violation::UnknownCookie(chunk.cookie))?;
        pending.error = pending.error.or(Some(error));
        self.state = State::Data { cookie: chunk.cookie, left: 0, last: chunk.last };
        let message = CHUNK_BYTES + 6..CHUNK_BYTES + 6 + message_length;
        let event = ReplyEvent::Error { cookie: chunk.cookie, report: ReplyError { error, offset, message } };
        Ok(ReplyParsed { consumed: CHUNK_BYTES + length, event })
    }

    fn on_data(
        &mut self,
        buffer: &[u8],
        start: usize,
        cookie: Cookie,
        offset: ArrayOffset,
        length: u32,
        last: bool,
    ) -> ReplyParsed {
        let here = to_usize(length).min(buffer.len() - start);
        let remaining = length - u32::try_from(here).expect("at most the 32-bit length");
        self.state = State::Data { cookie, left: remaining, last };
        let event = ReplyEvent::Data { cookie, offset, received: start..start + here, remaining };
        ReplyParsed { consumed: start + here, event }
    }

    /// The complete records that are in the buffer.
    fn on_extents(
        &mut self,
        buffer: &[u8],
        start: usize,
        cookie: Cookie,
        context: u32,
        left: u32,
        last: bool,
    ) -> Result<ReplyParsed, Violation> {
        let here = to_usize(left).min(buffer.len() - start) / StatusExtent::BYTES * StatusExtent::BYTES;
        if here == 0 {
            self.state = State::Extents { cookie, context, left, last };
            return Ok(ReplyParsed { consumed: start, event: ReplyEvent::Incomplete { needed: StatusExtent::BYTES } });
        }
        let records = start..start + here;
        if StatusExtent::from_wire(&buffer[records.clone()]).any(|extent| extent.length == 0) {
            return Err(Violation::EmptyExtent);
        }
        let left = left - u32::try_from(here).expect("at most the 32-bit length");
        self.state = match left {
            0 => State::Data { cookie, left: 0, last },
            _ => State::Extents { cookie, context, left, last },
        };
        Ok(ReplyParsed { consumed: start + here, event: ReplyEvent::Extents { cookie, context, records } })
    }
}

const fn with_fua(needed: ExportFlags, fua: bool) -> ExportFlags {
    if fua {
        needed.with(ExportFlags::FUA)
    } else {
        needed
    }
}

const fn incomplete(needed: usize) -> ReplyParsed {
    ReplyParsed { consumed: 0, event: ReplyEvent::Incomplete { needed } }
}

/// Counts a content chunk of a read. It must be inside the request, and the sum of all chunks must not exceed the
/// request. Two overlapping chunks that leave a gap of the same length elsewhere are accepted; a server could equally
/// send wrong data.
fn cover(pending: &mut Pending, offset: u64, length: u32) -> Result<(), Violation> {
    let start = pending.request.offset.get();
    let whole = pending.request.length.get();
    let relative = offset.checked_sub(start).ok_or(Violation::OutsideRequest)?;
    let length = u64::from(length);
    if length == 0 || relative >= whole || length > whole - relative || length > whole - pending.covered {
        return Err(Violation::OutsideRequest);
    }
    pending.covered += length;
    Ok(())
}

fn finish(
    cookie: Cookie,
    table: &mut impl PendingTable,
    consumed: usize,
    session: &ClientSession,
) -> Result<ReplyParsed, Violation> {
    let pending = table.pending(cookie).ok_or(Violation::UnknownCookie(cookie))?;
    let result = pending.error.map_or(Ok(()), Err);
    if result.is_ok() && pending.request.command.is_read() && pending.covered != pending.request.length.get() {
        return Err(Violation::Incomplete(pending.covered));
    }
    let status = matches!(pending.request.command, NbdCommand::BlockStatus { .. });
    if result.is_ok() && status && to_usize(pending.contexts.count_ones()) != session.contexts.len() {
        return Err(Violation::WrongContexts);
    }
    Ok(ReplyParsed { consumed, event: ReplyEvent::Done { cookie, result } })
}

#[cfg(test)]
mod tests;
