//! `openraid pause`: pauses the background work of an array.

use super::{ask, Context};
use crate::arguments::ArrayArgument;
use crate::control::Command;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &ArrayArgument, context: &Context) -> Outcome {
    ask(context, &arguments.array, &Command::Pause { array: arguments.array.clone() })
}
