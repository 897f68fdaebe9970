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

pub mod log_records;
#[cfg(test)]
mod name_tables;
mod news;
pub mod points_in_time;
pub mod segments;
pub mod writer;

pub use log_records::{Draft, Event, Severity};
pub use news::{plain, News};
pub use segments::EventLog;
pub use writer::EventWriter;
