//! The back end of a disk of virtual machines (vhost-user-blk) without any I/O: arrays as disks of guests.
//!
//! The front end is a virtual machine's process. It hands over its guest's memory and the guest's queues by messages on a
//! socket; from then on requests and payload are in shared memory, and events are the only system calls.
//!
//! ```text
//!  messages --Session::handle--> answers             a guest's queue --Session::next_step--> BlockCommand --> engine
//!                                                     guest memory <--copy_from_guest, copy_to_guest--> frames       |
//!                                                     a guest's queue <--Session::end <-------------------------------+
//! ```
//!
//! A [`VhostSession`] is one connection of a front end. It reaches files, mappings and events through a [`Platform`] only.
//!
//! **A killed server.** The front end keeps a file, the in-flight region. A request is marked there before the guest's queue is
//! moved on, and is unmarked after its end is in the queue. The next server finds the marked requests, and does them again in
//! their order. So the guest sees a pause and no error.
//!
//! **Memory that changes.** A guest may write its memory at any time. Each descriptor is copied once, and only the copy is
//! checked and used. A ring that breaks a rule is stopped; a message that breaks a rule ends the connection. Neither can cause
//! a panic, a hang, or memory beyond [`limits`].
//!
//! This crate must never touch a socket, a mapping, a clock or a thread.
//!
//! Source of all numbers: the vhost-user protocol as QEMU documents it, and virtio 1.2. Not supported: packed rings, an IOMMU,
//! the log of written pages (so migration of a running machine).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod block;
mod bytes;
mod chain;
mod inflight;
pub mod limits;
mod memory;
mod message;
mod queue;
mod ring;
mod session;
mod violation;

pub use block::{BlockCommand, DiskCommandKind, DiskOutcome, RequestId, VhostDisk};
pub use memory::{GuestGone, Platform, SharedBytes};
pub use message::{MessageHeader, MessageRefusal, MessageReply, HEADER_BYTES};
pub use session::{RingStep, VhostSession};
pub use violation::{MessageViolation, RingFault};
