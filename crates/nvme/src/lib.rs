//! An NVMe/TCP target without any I/O: arrays as disks of hosts.
//!
//! The crate takes received bytes, and returns commands for the engine and bytes to send. The owner of the sockets decides when
//! to read, where payload is stored and when to write; it also gives the time.
//!
//! ```text
//!  received bytes --HostQueue::parse--> NvmeCommand ------------------------> engine
//!  received bytes --next_bytes, payload_came--> frames <--HostQueue::ask_payload--|
//!  bytes to send <--HostQueue::data_head, data_tail, end--------------------------+
//!
//!  NvmeTarget: subsystems (arrays), ports, associations of hosts --Errand--> connections that get an event, or are closed
//! ```
//!
//! A [`HostQueue`] is the parser of one connection. An [`NvmeTarget`] has everything that connections share. A host has an
//! association: one admin queue and some I/O queues. Each array is a subsystem with one namespace, and lists its hosts.
//!
//! This crate must never touch a socket, a clock or a thread, must never copy payload, and must never trust a host. Invalid
//! bytes end in a refusal or in a reason to close the connection; the memory for them is bounded by [`limits`].
//!
//! Source of all numbers: NVM Express base specification 2.0, NVM command set 1.0, TCP transport 1.0. Not supported:
//! authentication, TLS, Compare, fused commands, metadata, more than one namespace in a subsystem, PRP, ranges of a deallocation
//! outside of the capsule.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod admin_commands;
mod association;
mod async_events;
mod capsule;
mod connect;
mod connection;
mod connection_rules;
mod discovery;
mod engine_command;
mod features;
mod icreq;
mod identify;
mod in_flight;
mod io_commands;
pub mod limits;
mod log_pages;
mod nqn;
mod registers;
mod requested_payload;
mod status;
mod subsystem;
mod target;
mod violation;
mod wire;

pub use connection::{ArrivedTransfer, Closing, HostQueue, NextBytes, QueueEvent, QueueStep, ReadPart};
pub use engine_command::{CommandId, CommandKind, NvmeCommand, PayloadSource};
pub use nqn::{Nqn, NqnError, DISCOVERY_NQN};
pub use status::CommandOutcome;
pub use subsystem::{AllowedHosts, PathState, Port, PortId, Preferred, Subsystem};
pub use target::{AttachedHost, ConnectionId, Errand, NvmeTarget, NvmeTargetError, SubsystemError, TargetSettings};
pub use violation::ProtocolViolation;
