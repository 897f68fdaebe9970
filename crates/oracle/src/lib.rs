//! Oracles for tests: the real Linux md driver, and data that names its own place.
//!
//! A test that compares our bytes with our bytes proves little. Here md itself gives the right result: Debian's package
//! `user-mode-linux` runs a Linux kernel with its md driver as an ordinary process, without root and without a module
//! in the host. [`Guest`] boots it with image files as drives and runs a job in it. [`stamp`] fills drives with sectors
//! that name their own address, so that a misplaced, stale or torn one is recognised as such. [`layout`] reads md's
//! placement of every chunk off its members.
//!
//! For tests only: nothing that ships depends on this crate.

#![forbid(unsafe_code)]

pub mod churn;
mod error;
mod extended_state;
pub mod golden;
mod guest;
pub mod layout;
mod processor;
pub mod stamp;
pub mod survey;

pub use error::OracleError;
pub use guest::{Guest, GuestOutput, RunningGuest};

/// Set on machines with all packages installed: a test must then not pass by being skipped.
pub const REQUIRE_PEERS: &str = "OPENRAID_REQUIRE_PEERS";

/// Set for a soak: tests that take a slice of their cases then take all of them.
pub const SOAK: &str = "OPENRAID_SOAK";

/// For tests: the oracle's answer, or `None`, with a message, if its package is not installed.
///
/// # Panics
/// On every other error, and on a missing package if [`REQUIRE_PEERS`] is set.
pub fn answer<T>(outcome: Result<T, OracleError>) -> Option<T> {
    use std::io::Write;
    match outcome {
        Ok(answer) => Some(answer),
        Err(error) if error.is_missing_package() && std::env::var_os(REQUIRE_PEERS).is_none() => {
            // Past the test's capture, which swallows it if the test passes.
            let _ = writeln!(std::io::stderr(), "skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
