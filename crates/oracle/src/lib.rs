//! Oracles for tests: the real Linux md driver, and data that knows where it belongs.
//!
//! A test of ours that compares our bytes with our bytes proves little. Here md itself says what is right:
//! Debian's package `user-mode-linux` runs a Linux kernel with its md driver as an ordinary process, without
//! root and without a module in the host. [`Guest`] boots it with image files as drives and runs a job in it.
//! [`stamp`] fills drives with sectors that say which sector they are, so that a misplaced, stale or torn one
//! is recognised as such. [`layout`] reads off where md puts every chunk.
//!
//! For tests only: nothing that ships depends on this crate.

#![forbid(unsafe_code)]

mod error;
mod guest;
pub mod layout;

pub use error::OracleError;
pub use guest::{Guest, GuestOutput, Running};
