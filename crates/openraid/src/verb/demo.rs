//! `openraid demo`: see [`crate::demo`].

use super::Context;
use crate::arguments::DemoArguments;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// A byte was wrong, or something did not work.
pub fn run(arguments: &DemoArguments, context: &Context) -> Outcome {
    crate::demo::run(arguments, context)
}
