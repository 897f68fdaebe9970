//! Requests out of received bytes: many from one buffer, none copied, none allocated.
//!
//! A server receives as much as possible into one large buffer and calls [`Transmission::parse`] on the rest of it
//! until [`TransmissionEvent::Incomplete`]. Receiving many requests in one call makes a server cheap, so small write
//! payloads stay in that buffer. Large ones are announced as soon as their header is there, and the caller receives the
//! rest straight to its destination (a vectored receive can fill the payload's memory and then the batch buffer in one
//! call).
//!
//! Every request is checked here, in one place: [`TransmissionEvent::Request`] has a known command with known flags
//! that were negotiated, and a range that is not empty, aligned, inside the export and at most as long as was
//! advertised. Anything else is a [`RequestRefusal`]; [`NbdSession::push_refusal`] makes its reply.
//!
//! It must never give a write's payload to the parser as a request: bytes of refused writes are skipped here, bytes
//! of announced ones are counted by [`Transmission::payload_received`].

use super::options::NbdSession;
use crate::error_numbers::NbdError;
use crate::export::BlockSizes;
use crate::flags::ExportFlags;
use crate::limits::{INLINE_PAYLOAD_MAX, PAYLOAD_HARD_MAX};
use crate::request::{Cookie, NbdCommand, NbdRequest, REQUEST_BYTES};
use crate::wire::{cmd, cmd_flag, to_usize, MAGIC_REQUEST};
use core::fmt;
use core::ops::Range;
use openraid_units::{ArrayOffset, Bytes};

/// The way in which payload is passed to the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PayloadTuning {
    /// A payload below this size, in bytes, stays in the receive buffer if it is complete.
    pub inline_below: u32,
    /// The handling of such a payload if it is not complete. `true`: wait, so that the caller moves header and payload
    /// to the start of its buffer and receives the rest after them. `false`: announce it like a large payload.
    pub wait_for_small: bool,
}

impl Default for PayloadTuning {
    fn default() -> Self {
        Self { inline_below: INLINE_PAYLOAD_MAX, wait_for_small: true }
    }
}

/// The place of a request's payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestPayload {
    /// There is no payload.
    None,
    /// The complete payload, in this range of the buffer.
    Inline(Range<usize>),
    /// The first bytes of the payload, in this range of the buffer (perhaps none). Receive exactly `remaining` bytes
    /// after them, and report each arrival to [`Transmission::payload_received`]. `remaining` is zero only if
    /// `received` has all bytes.
    Streaming {
        /// Bytes that were received together with the header.
        received: Range<usize>,
        /// Number of bytes still to be received.
        remaining: u32,
    },
}

/// The reason why a request is refused. It determines the error of the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The command is unknown.
    UnknownCommand(u16),
    /// The command exists but was not advertised for this export.
    NotAdvertised,
    /// These flags do not belong to the command, or were not advertised.
    BadFlags(u16),
    /// A flush has a range.
    FlushWithRange,
    /// The export is read-only.
    ReadOnly,
    /// The range is empty.
    Empty,
    /// The range extends past the end of the export.
    OutOfRange,
    /// The range is not in units of the minimum block size.
    Misaligned,
    /// The payload exceeds the advertised maximum.
    TooLarge,
    /// Block status was requested, but no context was chosen in the negotiation.
    NoContext,
}

impl Reason {
    /// A message for the client's user, for replies that have room for it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::UnknownCommand(_) => "unknown command",
            Self::NotAdvertised => "this export does not offer the command",
            Self::BadFlags(_) => "flags that do not belong to the command or were not offered",
            Self::FlushWithRange => "offset and length of a flush must be zero",
            Self::ReadOnly => "the export is read-only",
            Self::Empty => "the length must not be zero",
            Self::OutOfRange => "beyond the end of the export",
            Self::Misaligned => "offset and length must be multiples of the minimum block size",
            Self::TooLarge => "longer than the advertised largest payload",
            Self::NoContext => "no metadata context was negotiated",
        }
    }
}

/// A request that is answered with an error and never reaches the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestRefusal {
    /// The client's number for the request.
    pub cookie: Cookie,
    /// The error to send.
    pub error: NbdError,
    /// The reason of the refusal.
    pub reason: Reason,
}

/// The reason why a connection cannot continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fatal {
    /// A request begins with these bytes instead of its magic number: client and server are no longer synchronised.
    BadMagic(u32),
    /// A write is so large that skipping it would only help an attacker; its length.
    PayloadTooLarge(u32),
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic(magic) => {
                write!(f, "the client sent {magic:#010x} where a request starts; the connection is out of step")
            }
            Self::PayloadTooLarge(n) => {
                write!(
                    f,
                    "the client announced a write of {n} bytes; above {PAYLOAD_HARD_MAX} the connection is closed"
                )
            }
        }
    }
}

impl std::error::Error for Fatal {}

/// The result of one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransmissionEvent {
    /// A request to execute. Ranges count from the start of the buffer that was passed.
    Request(NbdRequest, RequestPayload),
    /// A request that must be answered with its error. Its payload, if any, is skipped.
    Refused(RequestRefusal),
    /// The client ends the connection: finish the requests under way, then close. There is no reply, and later bytes
    /// are ignored.
    Disconnect,
    /// There are not enough bytes for the next step: keep the unused bytes and receive more after them.
    Incomplete {
        /// Number of bytes from the first unused one that the next step needs at least. Never above
        /// [`Transmission::buffer_min`].
        needed: usize,
    },
    /// Close the connection.
    Fatal(Fatal),
}

/// The number of bytes used, and the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parsed {
    /// Number of bytes of the buffer that were used, including an inline payload.
    pub consumed: usize,
    /// Event for the server.
    pub event: TransmissionEvent,
}

/// Parser of one connection's requests.
#[derive(Clone, Debug)]
pub struct Transmission {
    size: u64,
    flags: ExportFlags,
    blocks: BlockSizes,
    alignment_mask: u64,
    tuning: PayloadTuning,
    has_contexts: bool,
    /// Number of bytes of a refused write that must still be skipped.
    skip: u32,
    /// Number of bytes of an announced payload that the caller has not yet reported.
    streaming: u32,
}

struct Header {
    magic: u32,
    flags: u16,
    kind: u16,
    cookie: Cookie,
    offset: u64,
    length: u32,
}

impl Header {
    #[inline]
    fn read(bytes: &[u8; REQUEST_BYTES]) -> Self {
        let [m0, m1, m2, m3, f0, f1, k0, k1, c0, c1, c2, c3, c4, c5, c6, c7, o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] =
            *bytes;
        Self {
            magic: u32::from_be_bytes([m0, m1, m2, m3]),
            flags: u16::from_be_bytes([f0, f1]),
            kind: u16::from_be_bytes([k0, k1]),
            cookie: Cookie(u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7])),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }
}

impl Transmission {
    /// A parser for the negotiated session.
    #[must_use]
    pub fn new(session: &NbdSession, tuning: PayloadTuning) -> Self {
        Self {
            size: session.size.get(),
            flags: session.flags,
            blocks: session.blocks,
            alignment_mask: u64::from(session.blocks.unit()) - 1,
            tuning,
            has_contexts: !session.contexts.is_empty(),
            skip: 0,
            streaming: 0,
        }
    }

    /// Refuses writes from the next request on, or accepts them again. The client is not informed, because the protocol
    /// only informs it at the start.
    pub fn set_read_only(&mut self, read_only: bool) {
        let plain = self.flags.without(ExportFlags::READ_ONLY);
        self.flags = if read_only { plain.with(ExportFlags::READ_ONLY) } else { plain };
    }

    /// Minimum size of the receive buffer in bytes. A larger one is better, because one call then receives many
    /// requests.
    #[must_use]
    pub fn buffer_min(&self) -> usize {
        REQUEST_BYTES + if self.tuning.wait_for_small { to_usize(self.tuning.inline_below) } else { 0 }
    }

    /// Does the next step in `buffer`, which begins with the first unused byte.
    ///
    /// # Panics
    /// Bytes of an announced payload are outstanding: the caller must receive them.
    #[inline]
    pub fn parse(&mut self, buffer: &[u8]) -> Parsed {
        assert!(self.streaming == 0, "{} bytes of the last payload are still outstanding", self.streaming);
        let skipped = to_usize(self.skip).min(buffer.len());
        if skipped > 0 {
            self.skip_bytes(skipped);
            if self.skip > 0 {
                return Parsed { consumed: skipped, event: TransmissionEvent::Incomplete { needed: 1 } };
            }
        }
        let buffer = &buffer[skipped..];
        let Some(header) = buffer.first_chunk::<REQUEST_BYTES>() else {
            return Parsed { consumed: skipped, event: TransmissionEvent::Incomplete { needed: REQUEST_BYTES } };
        };
        self.on_header(&Header::read(header), skipped, buffer.len() - REQUEST_BYTES)
    }

    /// Reports that `count` bytes of an announced payload were received. Returns the number of bytes still to come.
    ///
    /// # Panics
    /// More bytes than announced.
    pub fn payload_received(&mut self, count: u32) -> u32 {
        assert!(count <= self.streaming, "{count} bytes received of {} outstanding", self.streaming);
        self.streaming -= count;
        self.streaming
    }

    /// Number of bytes of an announced payload that were not yet reported.
    #[must_use]
    pub fn payload_outstanding(&self) -> u32 {
        self.streaming
    }

    fn skip_bytes(&mut self, count: usize) {
        self.skip -= u32::try_from(count).expect("no more is skipped than was announced");
    }

    /// Handles a header at `skipped` that is followed by this number of bytes in the buffer.
    #[inline]
    fn on_header(&mut self, header: &Header, skipped: usize, behind: usize) -> Parsed {
        let start = skipped + REQUEST_BYTES;
        if header.magic != MAGIC_REQUEST {
            return Parsed { consumed: skipped, event: TransmissionEvent::Fatal(Fatal::BadMagic(header.magic)) };
        }
        if header.kind == cmd::DISC {
            return Parsed { consumed: start, event: TransmissionEvent::Disconnect };
        }
        let checked = self.check(header);
        if header.kind != cmd::WRITE {
            let event = match checked {
                Ok(command) => TransmissionEvent::Request(request(header, command), RequestPayload::None),
                Err(reason) => TransmissionEvent::Refused(refusal(header, reason)),
            };
            return Parsed { consumed: start, event };
        }
        match checked {
            Ok(command) => self.on_write(header, command, start, behind),
            Err(_) if header.length > PAYLOAD_HARD_MAX => {
                let fatal = Fatal::PayloadTooLarge(header.length);
                Parsed { consumed: skipped, event: TransmissionEvent::Fatal(fatal) }
            }
            Err(reason) => {
                let here = to_usize(header.length).min(behind);
                self.skip = header.length;
                self.skip_bytes(here);
                Parsed { consumed: start + here, event: TransmissionEvent::Refused(refusal(header, reason)) }
            }
        }
    }

    #[inline]
    fn on_write(&mut self, header: &Header, command: NbdCommand, start: usize, behind: usize) -> Parsed {
        let length = to_usize(header.length);
        let small = header.length < self.tuning.inline_below;
        if small && behind >= length {
            let payload = RequestPayload::Inline(start..start + length);
            let event = TransmissionEvent::Request(request(header, command), payload);
            return Parsed { consumed: start + length, event };
        }
        if small && self.tuning.wait_for_small {
            let event = TransmissionEvent::Incomplete { needed: REQUEST_BYTES + length };
            return Parsed { consumed: start - REQUEST_BYTES, event };
        }
        let here = length.min(behind);
        self.streaming = header.length - u32::try_from(here).expect("at most the 32-bit length");
        let payload = RequestPayload::Streaming { received: start..start + here, remaining: self.streaming };
        Parsed { consumed: start + here, event: TransmissionEvent::Request(request(header, command), payload) }
    }

    /// Checks all rules of the protocol for a request, except its magic number.
    #[inline]
    fn check(&self, header: &Header) -> Result<NbdCommand, Reason> {
        let command = self.command(header)?;
        if matches!(command, NbdCommand::Flush) {
            return if header.offset == 0 && header.length == 0 { Ok(command) } else { Err(Reason::FlushWithRange) };
        }
        if self.flags.contains(ExportFlags::READ_ONLY)
            && matches!(command, NbdCommand::Write { .. } | NbdCommand::Trim { .. } | NbdCommand::WriteZeroes { .. })
        {
            return Err(Reason::ReadOnly);
        }
        if header.length == 0 {
            return Err(Reason::Empty);
        }
        let length = u64::from(header.length);
        if header.offset > self.size || length > self.size - header.offset {
            return Err(Reason::OutOfRange);
        }
        if (header.offset | length) & self.alignment_mask != 0 {
            return Err(Reason::Misaligned);
        }
        if header.length > self.blocks.maximum() && (command.is_read() || command.is_write()) {
            return Err(Reason::TooLarge);
        }
        Ok(command)
    }

    /// Decodes the command of a header: it must be known and advertised, with valid flags.
    #[inline]
    fn command(&self, header: &Header) -> Result<NbdCommand, Reason> {
        let bits = header.flags;
        let set = |flag: u16| bits & flag != 0;
        let fua = set(cmd_flag::FUA);
        let (command, valid, advertised) = match header.kind {
            cmd::READ => {
                let valid = if self.flags.contains(ExportFlags::DONT_FRAGMENT) { cmd_flag::DF } else { 0 };
                (NbdCommand::Read { dont_fragment: set(cmd_flag::DF) }, valid, ExportFlags::NONE)
            }
            cmd::WRITE => (NbdCommand::Write { fua }, 0, ExportFlags::NONE),
            cmd::FLUSH => (NbdCommand::Flush, 0, ExportFlags::FLUSH),
            cmd::TRIM => (NbdCommand::Trim { fua }, 0, ExportFlags::TRIM),
            cmd::CACHE => (NbdCommand::Cache, 0, ExportFlags::CACHE),
            cmd::WRITE_ZEROES => {
                let fast = if self.flags.contains(ExportFlags::FAST_ZERO) { cmd_flag::FAST_ZERO } else { 0 };
                let command =
                    NbdCommand::WriteZeroes { fua, no_hole: set(cmd_flag::NO_HOLE), fast: set(cmd_flag::FAST_ZERO) };
                (command, cmd_flag::NO_HOLE | fast, ExportFlags::WRITE_ZEROES)
            }
            cmd::BLOCK_STATUS if !self.has_contexts => return Err(Reason::NoContext),
            cmd::BLOCK_STATUS => {
                (NbdCommand::BlockStatus { one: set(cmd_flag::REQ_ONE) }, cmd_flag::REQ_ONE, ExportFlags::NONE)
            }
            unknown => return Err(Reason::UnknownCommand(unknown)),
        };
        if !self.flags.contains(advertised) {
            return Err(Reason::NotAdvertised);
        }
        let known = valid | if self.flags.contains(ExportFlags::FUA) { cmd_flag::FUA } else { 0 };
        if bits & !known != 0 {
            return Err(Reason::BadFlags(bits & !known));
        }
        Ok(command)
    }
}

fn request(header: &Header, command: NbdCommand) -> NbdRequest {
    NbdRequest {
        cookie: header.cookie,
        command,
        offset: ArrayOffset(header.offset),
        length: Bytes(u64::from(header.length)),
    }
}

#[cold]
fn refusal(header: &Header, reason: Reason) -> RequestRefusal {
    let error = match reason {
        Reason::ReadOnly => NbdError::NotPermitted,
        Reason::OutOfRange if matches!(header.kind, cmd::WRITE | cmd::WRITE_ZEROES) => NbdError::NoSpace,
        _ => NbdError::Invalid,
    };
    RequestRefusal { cookie: header.cookie, error, reason }
}

#[cfg(test)]
mod tests;
