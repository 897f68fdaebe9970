//! All limits of the protocol engine.
//!
//! The memory that the other side can make this crate use is a sum of these limits. Memory never grows with a length
//! that was only announced.

/// Maximum length of a string in bytes (names, descriptions, context queries, messages). The limit is that of the
/// protocol document.
pub const STRING_MAX: usize = 4096;

/// Maximum option payload that a server keeps, in bytes. A `GO` with the longest name and thirty thousand information
/// requests fits. Longer payloads are skipped and answered with "too big".
pub const OPTION_PAYLOAD_MAX: usize = 64 << 10;

/// Maximum option payload that a server skips, in bytes. A client that sends a longer one only wants to occupy the
/// connection, which is then closed.
pub const OPTION_SKIP_MAX: u32 = 32 << 20;

/// Maximum number of options that a client may send before it chooses an export. A program that lists exports sends two
/// options for each export on one connection, so this is enough for a few hundred exports.
pub const OPTIONS_MAX: u32 = 1024;

/// Maximum number of queries in one option about metadata contexts; two contexts exist.
pub const QUERIES_MAX: u32 = 64;

/// Maximum payload of one request that an export may advertise, in bytes. A larger write counts as an attack and closes
/// the connection, because skipping it would only help the attacker. The protocol requires at least 32 MiB.
pub const PAYLOAD_HARD_MAX: u32 = 64 << 20;

/// Maximum payload that is advertised by default, in bytes. Clients may assume this value if the server sends none.
pub const PAYLOAD_DEFAULT_MAX: u32 = 32 << 20;

/// By default, a write payload below this number of bytes is returned in the receive buffer. Copying such a payload
/// costs less than a separate receive call.
pub const INLINE_PAYLOAD_MAX: u32 = 32 << 10;

/// Maximum number of extents in one block status chunk of a server. The protocol allows 2^20. A client that needs more
/// sends another request.
pub const EXTENTS_MAX: usize = 4096;

/// Maximum option reply payload that a client keeps, in bytes. A longer one ends the negotiation.
pub const OPTION_REPLY_MAX: usize = 64 << 10;

/// Maximum number of replies to one option that a client reads. More replies end the negotiation.
pub const OPTION_REPLIES_MAX: u32 = 4096;

/// Maximum number of bytes of export names and descriptions that a client keeps of one list.
pub const LIST_BYTES_MAX: usize = 1 << 20;

/// Maximum number of metadata contexts that a client can request.
pub const CLIENT_CONTEXTS_MAX: usize = 16;

/// Maximum payload of an error chunk that a client accepts, in bytes: twice the longest message with its fields, to
/// leave room for later fields.
pub const ERROR_CHUNK_MAX: usize = 2 * STRING_MAX;

const _: () = assert!(OPTION_PAYLOAD_MAX > 2 * STRING_MAX);
const _: () = assert!(OPTION_SKIP_MAX as usize > OPTION_PAYLOAD_MAX);
const _: () = assert!(OPTION_REPLY_MAX > 2 * STRING_MAX);
const _: () = assert!(PAYLOAD_HARD_MAX >= PAYLOAD_DEFAULT_MAX && PAYLOAD_DEFAULT_MAX >= 32 << 20);
const _: () = assert!(INLINE_PAYLOAD_MAX < PAYLOAD_DEFAULT_MAX);
const _: () = assert!(ERROR_CHUNK_MAX > STRING_MAX + 14);
