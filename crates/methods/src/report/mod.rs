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
//! load anything from elsewhere. The rules of the charts: all arrays of a write cache in one chart, up to [`LINES_MAX`],
//! each named at an end of its line; colour by level, mark by member count, dashes by write cache, the same in every
//! report; linear axes of y begin at zero, logarithmic ones say so; one chart answers one question, with the answer above
//! it and the numbers next to it.

pub mod assemble;
pub mod data;
pub mod findings;
pub mod predicted_and_measured;
pub mod terminal_text;

mod bar_chart;
mod format;
mod heat_map;
mod html_page;
mod labels;
mod line_chart;
mod markup;
mod scale;
mod split_charts;
mod style;
mod table;

pub use html_page::{is_report, render, MARK_BYTES_MAX};

/// Maximum number of lines in one chart: the height has room for their names, and for those of the guides.
pub const LINES_MAX: usize = 12;
