//! Every limit of the protocol engine, in one place.
//!
//! Memory that the other side can make this crate hold is a sum of these numbers; nothing grows with a length
//! field that was merely announced.

/// Longest string of the protocol in bytes (names, descriptions, context queries, messages). The protocol
/// document's own limit.
pub const STRING_MAX: usize = 4096;

/// Largest option payload that a server keeps, in bytes. A `GO` with the longest name and thirty thousand
/// information requests still fits; longer payloads are skipped and answered with "too big".
pub const OPTION_PAYLOAD_MAX: usize = 64 << 10;

/// Largest option payload that a server skips to stay in step with the client, in bytes. A longer one is a client
/// that only wants to occupy the connection, which is closed.
pub const OPTION_SKIP_MAX: u32 = 32 << 20;

/// Options a client may send before it must have chosen an export. Listing tools ask two options for each export
/// on one connection, so this serves a few hundred exports.
pub const OPTIONS_MAX: u32 = 1024;

/// Queries in one option about metadata contexts; two contexts exist.
pub const QUERIES_MAX: u32 = 64;

/// Largest payload of one request that an export may advertise, in bytes. Also the size from which on a request
/// counts as an attack: a larger write closes the connection, because skipping it would only serve the attacker.
/// The protocol asks to bear at least 32 MiB.
pub const PAYLOAD_HARD_MAX: u32 = 64 << 20;

/// Largest payload advertised by default, in bytes: what clients may assume without being told.
pub const PAYLOAD_DEFAULT_MAX: u32 = 32 << 20;

/// A write payload below this many bytes is yielded in the receive buffer, by default. Copying it there is cheaper
/// than a receive call of its own.
pub const INLINE_PAYLOAD_MAX: u32 = 32 << 10;

/// Extents in one block status chunk that a server sends. The protocol allows 2^20; a client simply asks again.
pub const EXTENTS_MAX: usize = 4096;

/// Largest option reply payload that a client keeps, in bytes. A longer one ends the negotiation.
pub const OPTION_REPLY_MAX: usize = 64 << 10;

/// Replies to one option that a client reads before it gives up on the server.
pub const OPTION_REPLIES_MAX: u32 = 4096;

/// Bytes of export names and descriptions that a client keeps of one list.
pub const LIST_BYTES_MAX: usize = 1 << 20;

/// Metadata contexts that a client can ask for.
pub const CLIENT_CONTEXTS_MAX: usize = 16;

/// Largest payload of an error chunk that a client accepts, in bytes: the longest message and its fields, twice
/// over for fields of the future.
pub const ERROR_CHUNK_MAX: usize = 2 * STRING_MAX;

const _: () = assert!(OPTION_PAYLOAD_MAX > 2 * STRING_MAX);
const _: () = assert!(OPTION_SKIP_MAX as usize > OPTION_PAYLOAD_MAX);
const _: () = assert!(OPTION_REPLY_MAX > 2 * STRING_MAX);
const _: () = assert!(PAYLOAD_HARD_MAX >= PAYLOAD_DEFAULT_MAX && PAYLOAD_DEFAULT_MAX >= 32 << 20);
const _: () = assert!(INLINE_PAYLOAD_MAX < PAYLOAD_DEFAULT_MAX);
const _: () = assert!(ERROR_CHUNK_MAX > STRING_MAX + 14);
