//! Messages of the vhost-user protocol.
//!
//! ```text
//!  request u32, flags u32 (version 1, bit 2 answer, bit 3 answer wanted), length u32 | payload
//! ```

use crate::bytes::le32;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::violation::MessageViolation;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 12;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;

/// Numbers of requests.
pub mod request {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const RESET_OWNER: u32 = 4;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_CHANNEL: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const SET_CONFIG: u32 = 25;
    pub const GET_INFLIGHT_FD: u32 = 31;
    pub const SET_INFLIGHT_FD: u32 = 32;
}

/// The request of this side that asks to read the configuration space again: number 2, version 1, no payload. No answer is wanted.
pub const CONFIG_CHANGED: [u8; HEADER_BYTES] = [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

/// Features of rings and of the connection, by bit.
pub mod feature {
    pub const INDIRECT: u64 = 1 << 28;
    pub const EVENTS: u64 = 1 << 29;
    pub const PROTOCOL: u64 = 1 << 30;
    pub const VERSION_1: u64 = 1 << 32;
}

/// Features of the protocol, by bit.
pub mod protocol {
    pub const QUEUES: u64 = 1 << 0;
    pub const ANSWERS: u64 = 1 << 3;
    pub const BACKEND_CHANNEL: u64 = 1 << 5;
    pub const CONFIG: u64 = 1 << 9;
    /// Both are needed for a change of the configuration space.
    pub const CONFIG_CHANGES: u64 = CONFIG | BACKEND_CHANNEL;
    pub const INFLIGHT: u64 = 1 << 12;
    pub const ALL: u64 = QUEUES | ANSWERS | BACKEND_CHANNEL | CONFIG | INFLIGHT;
}

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageHeader {
    /// The number of the request.
    pub request: u32,
    /// Does the front end want an answer to a request that has none?
    pub wants_answer: bool,
    /// Bytes that follow.
    pub len: usize,
}

impl MessageHeader {
    /// The header in these bytes.
    ///
    /// # Errors
    /// It is not one of a request.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, MessageViolation> {
        let (request, flags, len) = (le32(bytes, 0), le32(bytes, 4), le32(bytes, 8));
        if flags & VERSION_MASK != VERSION || flags & ANSWER != 0 {
            return Err(MessageViolation::Flags(flags));
        }
        match usize::try_from(len) {
            Ok(short) if short <= MESSAGE_BYTES_MAX => {
                Ok(Self { request, wants_answer: flags & WANTS_ANSWER != 0, len: short })
            }
            _ => Err(MessageViolation::TooLong(len)),
        }
    }
}

/// An answer, with a file if there is one.
#[derive(Debug)]
pub struct MessageReply<F> {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// The file that goes with them.
    pub file: Option<F>,
}

/// A message that breaks a rule: the connection has to be closed.
#[derive(Debug)]
pub struct MessageRefusal<F> {
    /// The rule.
    pub violation: MessageViolation,
    /// The answer, if the front end wants one.
    pub reply: Option<MessageReply<F>>,
}

impl<F> MessageReply<F> {
    pub(crate) fn new(request: u32, payload: &[u8]) -> Self {
        let len = u32::try_from(payload.len()).expect("an answer is short");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        for word in [request, VERSION | ANSWER, len] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(payload);
        Self { bytes, file: None }
    }
}
