//! Drives the core in virtual time: the machine in which the engine is tested and measured.
//!
//! A [`World`] holds a controller, its frames, drives in memory and hosts, and lets them act on each other at
//! times that are numbers. The engine under test is the one that serves: there is no second one for
//! simulation. Nothing here may use a clock, a thread, the environment or the order of a hash map; the same
//! seed is the same run.

#![forbid(unsafe_code)]

pub mod claims;
pub mod digest;
pub mod drive;
pub mod fault;
pub mod jobs;
pub mod machine;
pub mod oracle;
pub mod probe;
pub mod record;
pub mod rig;
pub mod shape;
pub mod words;
pub mod world;

pub use openraid_drives::random::{self, Random};
pub use rig::{Loss, Rig, RigOptions};
pub use shape::Shape;
pub use world::{World, WorldSpec};
