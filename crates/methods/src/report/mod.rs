//! Results as a page and as text.
//!
//! ```text
//!  cells --> assemble
//!               |
//!  data::Review --> findings::explain --> render        one HTML file with SVG charts
//!                                     \-> terminal_text::render  tables and bars for a terminal
//! ```
//!
//! All parts except [`assemble`] read [`data::Review`] and nothing else. They must never measure, guess a number or
//! load anything from elsewhere. The rules of the charts: at most [`LINES_MAX`] lines, each named at its end; colour by
//! level, dashes and marks by member count, the same in the whole report; linear axes of y begin at zero, logarithmic
//! ones say so; one chart answers one question, with the answer above it and the numbers next to it.

pub mod assemble;
pub mod data;
pub mod findings;
pub mod predicted_and_measured;
pub mod terminal_text;

mod bar_chart;
mod format;
mod html_page;
mod labels;
mod line_chart;
mod markup;
mod scale;
mod split_charts;
mod style;
mod table;

pub use html_page::{is_report, render, MARK_BYTES_MAX};

/// Maximum number of lines in one chart; more are difficult to distinguish.
pub const LINES_MAX: usize = 5;
