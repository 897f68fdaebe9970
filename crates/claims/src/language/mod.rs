//! The check language: one boolean Starlark expression over metrics, helpers, constants and names of arrays.
//!
//! ```text
//!   text --> syntax  one expression, known names only, few loops, guarded operators
//!             |
//!         session   evaluated with limits on steps, memory and calls; every metric call is recorded
//! ```
//!
//! The language must never run a check that it cannot bound. So there are no statements, no functions of the claim's
//! own, and no sequence of more than [`guard::ITEMS_MAX`] items.

pub mod functions;
pub mod guard;
pub mod helpers;
pub mod names;
pub mod session;
pub mod syntax;

pub use syntax::{CheckError, CHECK_BYTES_MAX};
