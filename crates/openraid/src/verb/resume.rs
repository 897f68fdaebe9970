//! `openraid resume`: background work of an array continues.

use super::{ask, Context};
use crate::arguments::ArrayArgument;
use crate::control::Command;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &ArrayArgument, context: &Context) -> Outcome {
    ask(context, &arguments.array, &Command::Resume { array: arguments.array.clone() })
}
