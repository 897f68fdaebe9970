//! The server's side: negotiation, requests, replies.

pub mod before_tls;
mod handshake;
mod options;
mod reply;
mod transmission;

pub use handshake::{CloseReason, Handshake, HandshakeEvent, HandshakeStep, Policy, StartTls};
pub use options::NbdSession;
pub use reply::{
    chunk_data, chunk_done, chunk_error, chunk_hole, chunk_status, simple, ReplyHead, CHUNK_DATA_BYTES,
    CHUNK_DONE_BYTES, CHUNK_HOLE_BYTES, SIMPLE_BYTES,
};
pub use transmission::{
    Fatal, Parsed, PayloadTuning, Reason, RequestPayload, RequestRefusal, Transmission, TransmissionEvent,
};
