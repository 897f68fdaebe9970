//! The NBD protocol, both sides, without any I/O.
//!
//! The crate takes received bytes, and returns typed events and bytes to send. The owner of the socket decides when to
//! read, where payload is stored and when to write. The same code therefore serves blocking sockets, io_uring, and
//! tests that pass one byte at a time.
//!
//! ```text
//!            server                                                   client
//!   bytes -> Handshake    -> replies, Session               bytes -> ClientHandshake    -> options, ClientSession
//!   bytes -> Transmission -> Request | Refusal              bytes -> ClientTransmission -> data, extents, Done
//!   Request, outcome -> reply:: -> header bytes             Request -> encode -> header bytes
//! ```
//!
//! This crate must never touch a socket, a clock or a thread, must never copy payload, and must never trust the other
//! side. Invalid bytes end in a refusal or in a reason to close the connection; the memory for them is bounded by
//! [`limits`].
//!
//! Source of all numbers: the NBD protocol document (`doc/proto.md` of the NBD project, 2026-05) and, for addresses of
//! exports, its `doc/uri.md`. Supported: fixed newstyle negotiation with `EXPORT_NAME`, `ABORT`, `LIST`, `INFO`, `GO`,
//! `STRUCTURED_REPLY` and metadata contexts; simple and structured replies; every standard command. Not supported: TLS
//! and extended headers (both are refused as the protocol requires). [`server::before_tls`] has the negotiation of an address
//! that has TLS only; the owner of the socket encrypts.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod block_status;
pub mod client;
mod error_numbers;
mod export;
mod flags;
pub mod limits;
mod request;
pub mod server;
mod uri;
mod wire;

pub use block_status::StatusExtent;
pub use error_numbers::NbdError;
pub use export::{BlockSizes, BlockSizesError, ContextSet, ExportError, ExportInfo, MetaContext};
pub use flags::ExportFlags;
pub use request::{Cookie, NbdCommand, NbdRequest, REQUEST_BYTES};
pub use uri::{NbdUri, Transport, UriError, PORT_DEFAULT};
