//! Invariants of an array, checked from outside the engine.

pub mod content;
pub mod history;
pub mod knowing_host;
pub mod redundancy;
pub mod versions;

#[cfg(test)]
mod versions_tests;

pub use content::{stamped, Content};
pub use knowing_host::HostSession;
pub use redundancy::Members;
pub use versions::{Mismatch, VersionStanding, VersionView, Versions};
