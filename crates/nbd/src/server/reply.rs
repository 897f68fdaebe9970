//! The headers of replies. Payload is never copied: a server sends headers and payload in one vectored call.
//!
//! Fixed headers are arrays, so that they can be stored with the request. Errors have a text and are appended to a
//! buffer of the caller. [`NbdSession`] knows which form of reply its client supports: use its methods, unless a read is
//! answered in several chunks.

use super::options::NbdSession;
use super::transmission::RequestRefusal;
use crate::block_status::StatusExtent;
use crate::error_numbers::NbdError;
use crate::export::MetaContext;
use crate::limits::{EXTENTS_MAX, STRING_MAX};
use crate::request::{Cookie, NbdCommand, NbdRequest};
use crate::wire::{
    chunk, length_u32, put, CHUNK_BYTES, MAGIC_SIMPLE_REPLY, MAGIC_STRUCTURED_REPLY, SIMPLE_REPLY_BYTES,
};
use openraid_units::{ArrayOffset, Bytes};

/// Bytes of a simple reply: `magic 4, error 4, cookie 8`.
pub const SIMPLE_BYTES: usize = SIMPLE_REPLY_BYTES;
/// Bytes before the data of a data chunk: `magic 4, flags 2, type 2, cookie 8, length 4, offset 8`.
pub const CHUNK_DATA_BYTES: usize = CHUNK_BYTES + 8;
/// Bytes of a hole chunk: as a data chunk, then `length of the hole 4`.
pub const CHUNK_HOLE_BYTES: usize = CHUNK_BYTES + 12;
/// Bytes of the chunk that ends a reply.
pub const CHUNK_DONE_BYTES: usize = CHUNK_BYTES;

/// A reply header, stored inline.
#[derive(Clone, Copy, Debug)]
pub struct ReplyHead {
    bytes: [u8; CHUNK_DATA_BYTES],
    length: u8,
}

impl ReplyHead {
    fn new<const N: usize>(header: [u8; N]) -> Self {
        const { assert!(N <= CHUNK_DATA_BYTES) };
        let mut bytes = [0; CHUNK_DATA_BYTES];
        put(&mut bytes, 0, header);
        #[allow(clippy::cast_possible_truncation)] // 28 at most, asserted above
        Self { bytes, length: N as u8 }
    }

    /// The bytes to send.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl NbdSession {
    /// The header of a successful reply. For a read, all data of the request must follow it directly; all other replies
    /// end with it.
    ///
    /// # Panics
    /// The request is a block status request, for which [`chunk_status`] makes the answer.
    #[must_use]
    pub fn success(&self, request: &NbdRequest) -> ReplyHead {
        match request.command {
            NbdCommand::BlockStatus { .. } => panic!("block status is answered with extents"),
            NbdCommand::Read { .. } if self.structured => {
                ReplyHead::new(chunk_data(request.cookie, request.offset, request.length, true))
            }
            _ => ReplyHead::new(simple(request.cookie, None)),
        }
    }

    /// Appends the complete reply to a request that the parser refused.
    pub fn push_refusal(&self, refusal: &RequestRefusal, out: &mut Vec<u8>) {
        self.push_failure(refusal.cookie, refusal.error, refusal.reason.message(), out);
    }

    /// Appends the complete reply of a failed request. `message` is for the client's user; it is dropped if the reply
    /// has no room for it.
    pub fn push_failure(&self, cookie: Cookie, error: NbdError, message: &str, out: &mut Vec<u8>) {
        if self.structured {
            chunk_error(out, cookie, error, message, true);
        } else {
            out.extend_from_slice(&simple(cookie, Some(error)));
        }
    }
}

/// A simple reply. After the success of a read, its data must follow.
#[must_use]
pub fn simple(cookie: Cookie, error: Option<NbdError>) -> [u8; SIMPLE_BYTES] {
    let mut out = [0; SIMPLE_BYTES];
    put(&mut out, 0, MAGIC_SIMPLE_REPLY.to_be_bytes());
    put(&mut out, 4, error.map_or(0, NbdError::code).to_be_bytes());
    put(&mut out, 8, cookie.0.to_be_bytes());
    out
}

fn chunk_head<const N: usize>(cookie: Cookie, kind: u16, payload: u32, last: bool) -> [u8; N] {
    let mut out = [0; N];
    put(&mut out, 0, MAGIC_STRUCTURED_REPLY.to_be_bytes());
    put(&mut out, 4, (if last { chunk::FLAG_DONE } else { 0 }).to_be_bytes());
    put(&mut out, 6, kind.to_be_bytes());
    put(&mut out, 8, cookie.0.to_be_bytes());
    put(&mut out, 16, payload.to_be_bytes());
    out
}

/// The length of a chunk's content. The protocol has 32 bits for the length and 8 or 12 bytes of the header together.
fn content_length(length: Bytes) -> u32 {
    let length = u32::try_from(length.get()).ok().filter(|length| *length > 0 && *length <= u32::MAX - 12);
    length.expect("a chunk has from one byte to 4 GiB less 12")
}

/// The header of a piece of read data; exactly `length` bytes must follow. `last` ends the reply and promises that no
/// error can follow.
///
/// # Panics
/// The piece is empty.
#[must_use]
pub fn chunk_data(cookie: Cookie, offset: ArrayOffset, length: Bytes, last: bool) -> [u8; CHUNK_DATA_BYTES] {
    let mut out = chunk_head(cookie, chunk::OFFSET_DATA, content_length(length) + 8, last);
    put(&mut out, CHUNK_BYTES, offset.get().to_be_bytes());
    out
}

/// A piece of a read that consists of zeroes, which are not sent.
///
/// # Panics
/// The piece is empty.
#[must_use]
pub fn chunk_hole(cookie: Cookie, offset: ArrayOffset, length: Bytes, last: bool) -> [u8; CHUNK_HOLE_BYTES] {
    let mut out = chunk_head(cookie, chunk::OFFSET_HOLE, 12, last);
    put(&mut out, CHUNK_BYTES, offset.get().to_be_bytes());
    put(&mut out, CHUNK_BYTES + 8, content_length(length).to_be_bytes());
    out
}

/// The end of a structured reply.
#[must_use]
pub fn chunk_done(cookie: Cookie) -> [u8; CHUNK_DONE_BYTES] {
    chunk_head(cookie, chunk::NONE, 0, true)
}

/// The message, cut between two characters if it is too long.
fn clipped(message: &str) -> &str {
    let longest = message.len().min(STRING_MAX);
    let end = (0..=longest).rev().find(|at| message.is_char_boundary(*at)).expect("0 is a boundary");
    &message[..end]
}

/// Appends an error of the whole request. Messages above 4096 bytes are cut. The protocol also has an error at an offset,
/// which says which bytes of a read are good; a server that knows only that a request failed has no use for it.
pub fn chunk_error(out: &mut Vec<u8>, cookie: Cookie, error: NbdError, message: &str, last: bool) {
    let message = clipped(message).as_bytes();
    let message_length = u16::try_from(message.len()).expect("messages are clipped to 4096 bytes");
    out.extend_from_slice(&chunk_head::<CHUNK_BYTES>(cookie, chunk::ERROR, length_u32(6 + message.len()), last));
    out.extend_from_slice(&error.code().to_be_bytes());
    out.extend_from_slice(&message_length.to_be_bytes());
    out.extend_from_slice(message);
}

/// Appends the extents of one context, in answer to a block status request. The extents are consecutive and begin at
/// the offset of the request. Neighbours with the same status are merged. Extents past the end of the request, or
/// beyond "one extent only" or [`EXTENTS_MAX`], are left out. `last` must be set for the last negotiated context.
///
/// # Panics
/// The request is another one, or the extents are empty.
pub fn chunk_status(
    out: &mut Vec<u8>,
    request: &NbdRequest,
    context: MetaContext,
    extents: impl IntoIterator<Item = StatusExtent>,
    last: bool,
) {
    let NbdCommand::BlockStatus { one } = request.command else {
        panic!("{:?} is not answered with extents", request.command);
    };
    let start = out.len();
    out.extend_from_slice(&chunk_head::<CHUNK_BYTES>(request.cookie, chunk::BLOCK_STATUS, 0, last));
    out.extend_from_slice(&context.id().to_be_bytes());
    let limit = if one { 1 } else { EXTENTS_MAX };
    let mut left = u32::try_from(request.length.get()).expect("a request has a 32-bit length");
    let mut pending: Option<StatusExtent> = None;
    let mut count = 0;
    for extent in extents {
        let length = extent.length.min(left);
        if length == 0 {
            continue;
        }
        match &mut pending {
            Some(open) if open.status == extent.status => open.length += length,
            Some(_) if count + 1 == limit => break,
            Some(open) => {
                out.extend_from_slice(&open.to_wire());
                *open = StatusExtent { length, ..extent };
                count += 1;
            }
            None => pending = Some(StatusExtent { length, ..extent }),
        }
        left -= length;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&pending.expect("a block status has at least one extent").to_wire());
    let payload = length_u32(out.len() - start - CHUNK_BYTES);
    put(&mut out[start..], 16, payload.to_be_bytes());
}

#[cfg(test)]
mod tests;
