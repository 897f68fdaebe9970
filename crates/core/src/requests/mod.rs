//! Host requests: admission, pieces with frames, payload in and out, operations for them, replies.

pub(crate) mod piece;
mod plain;
pub(crate) mod progress;
pub(crate) mod request;
mod split;
mod starved;
