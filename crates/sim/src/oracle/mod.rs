//! Invariants of an array, checked from outside the engine.

pub mod content;
pub mod history;
pub mod members;
pub mod session;
pub mod versions;

#[cfg(test)]
mod versions_tests;

pub use content::{stamped, Content};
pub use members::Members;
pub use session::HostSession;
pub use versions::{Mismatch, VersionStanding, VersionView, Versions};
