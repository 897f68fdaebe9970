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
//! advertised. Anything else is a [`Refusal`]; [`Session::push_refusal`] makes its reply.
//!
//! It must never give a write's payload to the parser as a request: bytes of refused writes are skipped here, bytes
//! of announced ones are counted by [`Transmission::payload_received`].

use super::options::Session;
use crate::error::NbdError;
use crate::export::BlockSizes;
use crate::flags::ExportFlags;
use crate::limits::{INLINE_PAYLOAD_MAX, PAYLOAD_HARD_MAX};
use crate::request::{Command, Cookie, Request, REQUEST_BYTES};
use crate::wire::{cmd, cmd_flag, to_usize, MAGIC_REQUEST};
use core::fmt;
use core::ops::Range;
use openraid_units::{ArrayOffset, Bytes};

/// How payload is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Payload shorter than this, in bytes, stays in the receive buffer when all of it is there.
    pub inline_below: u32,
    /// Handling of such a payload when only part of it is there. `true`: wait, so that the caller moves the header and
    /// the part to the start of its buffer and receives the rest after it. `false`: announce it like a large one.
    pub wait_for_small: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { inline_below: INLINE_PAYLOAD_MAX, wait_for_small: true }
    }
}

/// Where the payload of a request is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// There is none.
    None,
    /// All of it, in this range of the buffer.
    Inline(Range<usize>),
    /// Its first bytes in this range of the buffer (perhaps none), the others still to come: receive exactly
    /// `remaining` bytes, never zero of them unless `received` has all, and report each arrival to
    /// [`Transmission::payload_received`].
    Streaming {
        /// Bytes that came along with the header.
        received: Range<usize>,
        /// Bytes still to be received.
        remaining: u32,
    },
}

/// Why a request is refused. The reply's error follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No such command.
    UnknownCommand(u16),
    /// The command exists and was not advertised for this export.
    NotAdvertised,
    /// These flags do not belong to the command, or were not advertised.
    BadFlags(u16),
    /// A flush has no range.
    FlushWithRange,
    /// The export is read-only.
    ReadOnly,
    /// Nothing to do: the range is empty.
    Empty,
    /// The range ends after the export.
    OutOfRange,
    /// The range is not in units of the minimum block size.
    Misaligned,
    /// More payload than was advertised as the largest.
    TooLarge,
    /// Block status without a context chosen in the negotiation.
    NoContext,
}

impl Reason {
    /// A sentence for the user of the client, for replies that have room for it.
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
pub struct Refusal {
    /// The client's name for the request.
    pub cookie: Cookie,
    /// The error to send.
    pub error: NbdError,
    /// The fault.
    pub reason: Reason,
}

/// Why a connection cannot continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fatal {
    /// These bytes stand where a request should start: the two sides are out of step.
    BadMagic(u32),
    /// A write so large that even skipping it would only serve an attacker; its length.
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

/// What came out of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransmissionEvent {
    /// A request to execute. Ranges count from the start of the buffer that was handed in.
    Request(Request, Payload),
    /// A request to answer with its error. Its payload, if any, is skipped.
    Refused(Refusal),
    /// The client ends the connection: finish the requests under way, then close. No reply; later bytes do not count.
    Disconnect,
    /// Not enough bytes for the next step: keep the unconsumed bytes and receive more after them.
    Incomplete {
        /// Bytes that have to be there, counted from the first one not consumed, before another call can come to
        /// anything. Never above [`Transmission::buffer_min`].
        needed: usize,
    },
    /// Close the connection.
    Fatal(Fatal),
}

/// How much of the buffer is used up, and what came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parsed {
    /// Bytes of the buffer that are used up, an inline payload included.
    pub consumed: usize,
    /// What came out.
    pub event: TransmissionEvent,
}

/// Parser of one connection's requests.
#[derive(Clone, Debug)]
pub struct Transmission {
    size: u64,
    flags: ExportFlags,
    blocks: BlockSizes,
    alignment_mask: u64,
    tuning: Tuning,
    has_contexts: bool,
    /// Bytes of a refused write still to be skipped.
    skip: u32,
    /// Bytes of an announced payload that the caller has not reported yet.
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
    pub fn new(session: &Session, tuning: Tuning) -> Self {
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

    /// Refuse writing from the next request on, or allow it again. The client is not told: it was told at its start.
    pub fn set_read_only(&mut self, read_only: bool) {
        let plain = self.flags.without(ExportFlags::READ_ONLY);
        self.flags = if read_only { plain.with(ExportFlags::READ_ONLY) } else { plain };
    }

    /// The smallest receive buffer that gets along, in bytes. Large ones, for many requests in one call, are better.
    #[must_use]
    pub fn buffer_min(&self) -> usize {
        REQUEST_BYTES + if self.tuning.wait_for_small { to_usize(self.tuning.inline_below) } else { 0 }
    }

    /// Takes the next step in `buffer`, which starts with the first byte not consumed so far.
    ///
    /// # Panics
    /// While bytes of an announced payload are outstanding: they are the caller's.
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

    /// Reports that `count` bytes of an announced payload were received. Returns the number that is still outstanding.
    ///
    /// # Panics
    /// On more bytes than were announced.
    pub fn payload_received(&mut self, count: u32) -> u32 {
        assert!(count <= self.streaming, "{count} bytes received of {} outstanding", self.streaming);
        self.streaming -= count;
        self.streaming
    }

    /// Bytes of an announced payload that were not reported yet.
    #[must_use]
    pub fn payload_outstanding(&self) -> u32 {
        self.streaming
    }

    fn skip_bytes(&mut self, count: usize) {
        self.skip -= u32::try_from(count).expect("no more is skipped than was announced");
    }

    /// A header at `skipped`, followed by more bytes in the buffer, this many.
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
                Ok(command) => TransmissionEvent::Request(request(header, command), Payload::None),
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
    fn on_write(&mut self, header: &Header, command: Command, start: usize, behind: usize) -> Parsed {
        let length = to_usize(header.length);
        let small = header.length < self.tuning.inline_below;
        if small && behind >= length {
            let payload = Payload::Inline(start..start + length);
            let event = TransmissionEvent::Request(request(header, command), payload);
            return Parsed { consumed: start + length, event };
        }
        if small && self.tuning.wait_for_small {
            let event = TransmissionEvent::Incomplete { needed: REQUEST_BYTES + length };
            return Parsed { consumed: start - REQUEST_BYTES, event };
        }
        let here = length.min(behind);
        self.streaming = header.length - u32::try_from(here).expect("at most the 32-bit length");
        let payload = Payload::Streaming { received: start..start + here, remaining: self.streaming };
        Parsed { consumed: start + here, event: TransmissionEvent::Request(request(header, command), payload) }
    }

    /// Everything the protocol asks of a request but its magic.
    #[inline]
    fn check(&self, header: &Header) -> Result<Command, Reason> {
        let command = self.command(header)?;
        if matches!(command, Command::Flush) {
            return if header.offset == 0 && header.length == 0 { Ok(command) } else { Err(Reason::FlushWithRange) };
        }
        if self.flags.contains(ExportFlags::READ_ONLY)
            && matches!(command, Command::Write { .. } | Command::Trim { .. } | Command::WriteZeroes { .. })
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

    /// The command of a header: known, advertised, and with flags of its own only.
    #[inline]
    fn command(&self, header: &Header) -> Result<Command, Reason> {
        let bits = header.flags;
        let set = |flag: u16| bits & flag != 0;
        let fua = set(cmd_flag::FUA);
        let (command, own, advertised) = match header.kind {
            cmd::READ => {
                let own = if self.flags.contains(ExportFlags::DONT_FRAGMENT) { cmd_flag::DF } else { 0 };
                (Command::Read { dont_fragment: set(cmd_flag::DF) }, own, ExportFlags::NONE)
            }
            cmd::WRITE => (Command::Write { fua }, 0, ExportFlags::NONE),
            cmd::FLUSH => (Command::Flush, 0, ExportFlags::FLUSH),
            cmd::TRIM => (Command::Trim { fua }, 0, ExportFlags::TRIM),
            cmd::CACHE => (Command::Cache, 0, ExportFlags::CACHE),
            cmd::WRITE_ZEROES => {
                let fast = if self.flags.contains(ExportFlags::FAST_ZERO) { cmd_flag::FAST_ZERO } else { 0 };
                let command =
                    Command::WriteZeroes { fua, no_hole: set(cmd_flag::NO_HOLE), fast: set(cmd_flag::FAST_ZERO) };
                (command, cmd_flag::NO_HOLE | fast, ExportFlags::WRITE_ZEROES)
            }
            cmd::BLOCK_STATUS if !self.has_contexts => return Err(Reason::NoContext),
            cmd::BLOCK_STATUS => {
                (Command::BlockStatus { one: set(cmd_flag::REQ_ONE) }, cmd_flag::REQ_ONE, ExportFlags::NONE)
            }
            unknown => return Err(Reason::UnknownCommand(unknown)),
        };
        if !self.flags.contains(advertised) {
            return Err(Reason::NotAdvertised);
        }
        let known = own | if self.flags.contains(ExportFlags::FUA) { cmd_flag::FUA } else { 0 };
        if bits & !known != 0 {
            return Err(Reason::BadFlags(bits & !known));
        }
        Ok(command)
    }
}

fn request(header: &Header, command: Command) -> Request {
    Request {
        cookie: header.cookie,
        command,
        offset: ArrayOffset(header.offset),
        length: Bytes(u64::from(header.length)),
    }
}

#[cold]
fn refusal(header: &Header, reason: Reason) -> Refusal {
    let error = match reason {
        Reason::ReadOnly => NbdError::NotPermitted,
        Reason::OutOfRange if matches!(header.kind, cmd::WRITE | cmd::WRITE_ZEROES) => NbdError::NoSpace,
        _ => NbdError::Invalid,
    };
    Refusal { cookie: header.cookie, error, reason }
}

#[cfg(test)]
mod tests;
