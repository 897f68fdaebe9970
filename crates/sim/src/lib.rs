//! Runs the core in virtual time: the machine in which the engine is tested and measured.
//!
//! A [`World`] has a controller, its frames, drives in memory and hosts. They act on each other at times that are
//! numbers. The engine under test is the production engine; the simulation has no other one. This crate must not use a
//! clock, a thread, the environment or the order of a hash map. The same seed gives the same run.

#![forbid(unsafe_code)]

pub mod bytes_in_flight;
pub mod digest;
pub mod drive;
pub mod fault;
pub mod machine;
pub mod number_words;
pub mod oracle;
pub mod parity_jobs;
pub mod probe;
pub mod record;
pub mod rig;
pub mod test_arrays;
pub mod world;

pub use openraid_drives::random::{self, Random};
pub use rig::{Loss, Rig, RigOptions};
pub use test_arrays::ArrayShape;
pub use world::{World, WorldSpec};
