//! Shared by the tests of this crate: a disk in memory, a server connection and a client that use the crate as a
//! product would, and the means to run foreign programs.

#![allow(dead_code)] // every test program uses a part of this

pub mod client;
pub mod connection;
pub mod disk;
pub mod net;
pub mod pipe;
pub mod programs;
pub mod random;
