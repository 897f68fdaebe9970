//! Figures from measurements: histograms, counts, ratings.

pub mod fio;
mod histogram;
mod rating;
mod tally;

pub use histogram::Histogram;
pub use rating::{RatingError, Scheme};
pub use tally::{Recorder, Tally};
