//! Figures from measurements: histograms, counts, ratings.

pub mod fio;
mod histogram;
mod rating;
mod slices;
mod tally;

pub use histogram::Histogram;
pub use rating::{RatingError, Scheme};
pub use slices::{Slice, Slices};
pub use tally::{Recorder, Tally};
