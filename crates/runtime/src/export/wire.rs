//! The protocols of clients, as one type. A wire turns received bytes into commands for the engine, and the engine's
//! answers into bytes.
//!
//! ```text
//!  received bytes --parse--> HostCommand ------------------------> engine
//!  received bytes --incoming, payload_came--> frames <--ask_payload--|
//!  bytes to send <--data_head, end-----------------------------------+
//! ```
//!
//! A wire has no socket, and must never wait. Limits, stalls and the order of output belong to the connection. Only this
//! file and the file of a protocol may name the protocol.

mod nbd;

use std::ops::Range;

use openraid_core::actions::{ReplyStatus, Transfer};
use openraid_core::events::RequestKind;
use openraid_nbd::{ExportError, ExportInfo};
use openraid_sys::PoolRange;
use openraid_units::{ArrayId, ArrayOffset, Tag};

use super::offers::{Catalog, Offer};
use crate::hosts::HostRequest;
use nbd::NbdWire;

/// One client's protocol, and the state of its conversation.
#[derive(Debug)]
pub enum Wire {
    /// A network block device.
    Nbd(NbdWire),
}

/// A request for the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostCommand {
    /// The client's name for the request, in a form that only the wire understands.
    pub id: u64,
    /// The kind of the request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: ArrayOffset,
    /// Bytes.
    pub len: u64,
    /// The place of its payload.
    pub payload: CommandPayload,
}

/// The place of a write's payload, and the form of a read's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandPayload {
    /// No payload. The data of a read are sent piece by piece, each piece with a head.
    None,
    /// The payload is complete, in this range of the input.
    Received(Range<usize>),
    /// The payload is not complete. Bytes of it may follow in the input: [`Wire::payload_left`] tells how much is payload.
    Awaited,
    /// The data of a read follow one head, with nothing between.
    OnePiece,
}

/// The result of one step of a parser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WireEvent {
    /// A request for the engine.
    Command(HostCommand),
    /// A request of this length that needs no engine; its answer is in the output.
    Answered(u64),
    /// A step of the protocol without a request: an option, a refusal. An answer to it is in the output.
    Step,
    /// The client has chosen this array. All commands come after the choice.
    Chosen(ArrayId),
    /// More bytes are needed.
    NeedMore,
    /// The client ends the conversation: its running requests are answered, and later bytes are ignored.
    Goodbye,
    /// The client breaks the protocol.
    Close,
}

/// The number of input bytes that were used, and the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireStep {
    /// Number of bytes, a complete payload included.
    pub consumed: usize,
    /// The result.
    pub event: WireEvent,
}

/// The destination of the next bytes from the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// They are commands, for the parser.
    Commands,
    /// They are payload, for these frames.
    Frames(PoolRange),
    /// They are payload. The engine has to name the frames.
    Unplaced,
    /// They are payload of a request that has ended: this number of bytes is dropped.
    Unneeded(u32),
}

/// A part of a read's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPart {
    /// First byte within the request.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// No part follows, and no error can follow.
    pub last: bool,
}

/// Was the end of a request told to the client?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The answer is in the output.
    Answered,
    /// The protocol has no form for this end: the connection has to be closed.
    Untellable,
}

impl Wire {
    /// The wire of a client that was just accepted. The server's first bytes, if the protocol has any, are appended.
    #[must_use]
    pub fn greet(out: &mut Vec<u8>) -> Self {
        Self::Nbd(NbdWire::greet(out))
    }

    /// Take one step in the input, and append the answer if there is one.
    #[inline]
    pub fn parse(&mut self, input: &[u8], catalog: &mut Catalog<'_>, out: &mut Vec<u8>) -> WireStep {
        match self {
            Self::Nbd(wire) => wire.parse(input, catalog, out),
        }
    }

    /// Bytes of the next command's head if its payload will probably follow in pieces. Receiving no more than the head
    /// saves a copy of the payload.
    #[must_use]
    pub fn head_expected(&self) -> Option<usize> {
        match self {
            Self::Nbd(wire) => wire.head_expected(),
        }
    }

    /// The destination of the next bytes from the socket.
    #[must_use]
    pub fn incoming(&self) -> Incoming {
        match self {
            Self::Nbd(wire) => wire.incoming(),
        }
    }

    /// Number of bytes from here on that are payload; 0 if the next byte is for the parser.
    #[must_use]
    #[inline]
    pub fn payload_left(&self) -> u32 {
        match self {
            Self::Nbd(wire) => wire.payload_left(),
        }
    }

    /// This number of payload bytes came, and went to the destination that [`Wire::incoming`] named. Returns the transfer
    /// that is complete by them.
    pub fn payload_came(&mut self, count: u32) -> Option<Transfer> {
        match self {
            Self::Nbd(wire) => wire.payload_came(count),
        }
    }

    /// The engine needs this part of an awaited payload. A protocol whose clients send only what they were asked for
    /// appends the question.
    pub fn ask_payload(&mut self, host: &HostRequest, transfer: &Transfer, out: &mut Vec<u8>) {
        match self {
            Self::Nbd(wire) => wire.ask_payload(host, transfer, out),
        }
    }

    /// Append the head of a part of a read's data. The data follow it.
    #[inline]
    pub fn data_head(&self, host: &HostRequest, part: DataPart, out: &mut Vec<u8>) {
        match self {
            Self::Nbd(wire) => wire.data_head(host, part, out),
        }
    }

    /// A request has ended without data: append the answer.
    #[inline]
    pub fn end(&mut self, host: &HostRequest, status: ReplyStatus, out: &mut Vec<u8>) -> Ending {
        match self {
            Self::Nbd(wire) => wire.end(host, status, out),
        }
    }

    /// Bytes of all transfers that wait for payload.
    #[must_use]
    pub fn open_bytes(&self) -> u64 {
        match self {
            Self::Nbd(wire) => wire.open_bytes(),
        }
    }

    /// The client is gone: `dropped` is called for each transfer that waits for payload.
    pub fn abandon(self, dropped: impl FnMut(Tag)) {
        match self {
            Self::Nbd(wire) => wire.abandon(dropped),
        }
    }

    /// Refuse writing from the next request on, or allow it again.
    pub fn set_read_only(&mut self, read_only: bool) {
        match self {
            Self::Nbd(wire) => wire.set_read_only(read_only),
        }
    }
}

/// The offers in the form in which each protocol announces them, in the order of the offers.
#[derive(Debug, Default)]
pub struct Announced {
    nbd: Vec<ExportInfo>,
}

impl Announced {
    /// The announcement of these offers.
    #[must_use]
    pub fn of(offers: &[Offer]) -> Self {
        Self { nbd: offers.iter().map(nbd::announce).collect() }
    }
}

/// Why an array cannot be offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfferError {
    /// A network block device cannot have this form.
    Nbd(ExportError),
}

impl std::fmt::Display for OfferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nbd(error) => write!(f, "{error}"),
        }
    }
}
impl std::error::Error for OfferError {}

/// Can every protocol announce this offer?
///
/// # Errors
/// The first rule that the offer breaks.
pub fn check(offer: &Offer) -> Result<(), OfferError> {
    nbd::announce(offer).check().map_err(OfferError::Nbd)
}
