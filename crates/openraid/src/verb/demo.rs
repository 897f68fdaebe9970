//! `openraid demo`: see [`crate::demo`].

use super::Context;
use crate::arguments::DemoArguments;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// A byte was wrong, or a step failed.
pub fn run(arguments: &DemoArguments, context: &Context) -> Outcome {
    crate::demo::run(arguments, context)
}
