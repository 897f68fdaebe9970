//! Results as a page and as text.
//!
//! Reads [`data::Review`] and nothing else; must never measure, guess a number or load anything from elsewhere.

pub mod data;

/// Lines that one chart may hold; more are hard to tell apart.
pub const LINES_MAX: usize = 5;
