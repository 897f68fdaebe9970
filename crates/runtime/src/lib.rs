//! Runs the core on real members and exports arrays over NBD, NVMe/TCP and vhost-user.
//!
//! ```text
//!  client --NBD--> export --requests--> control (the core) --commands--> member (files, devices, RAM, remote)
//!                     ^                        |
//!                     +---- frames, replies ---+
//! ```
//!
//! One shard is one thread, with one engine of the core, one pool of frames, one io_uring for member I/O, and one epoll
//! set. [`Service`] starts it and talks to it from other threads. It must never decide about redundancy, and never wait
//! for a single client or member.

#![forbid(unsafe_code)]

mod engine_access;
pub mod engine_recorder;
mod export;
mod host_requests;
pub mod limits;
pub mod member;
pub mod parity_jobs;
mod round_pause;
pub mod service;
mod shard;
mod slab;
mod vhost;

pub use service::{Service, ServiceConfig, ServiceHandle};
