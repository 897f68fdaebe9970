//! The event log: what happened to arrays and servers, kept next to the registry.
//!
//! ```text
//!  server --Draft--> EventWriter (a thread) --lines--> segments of a fixed size, the oldest is used again
//!                                                     |
//!  openraid events --reads, acknowledges--------------+
//! ```
//!
//! Servers and commands of one user share a log; each writes under its lock. The log must never delay a server, and
//! never grow beyond [`segments::SEGMENTS_MAX`] files of [`segments::SEGMENT_BYTES`].

#[cfg(test)]
mod names;
mod news;
pub mod record;
pub mod segments;
pub mod when;
pub mod writer;

pub use news::{plain, News};
pub use record::{Draft, Event, Severity};
pub use segments::EventLog;
pub use writer::EventWriter;
