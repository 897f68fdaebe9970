//! Shared by the tests of this crate: a host that knows only the specification, and a target with an array in memory.

#![allow(dead_code)] // every test program uses a part of this

pub mod bytes;
pub mod host;
#[path = "../../../nbd/tests/support/random.rs"]
pub mod random;
pub mod served;
pub mod session;
