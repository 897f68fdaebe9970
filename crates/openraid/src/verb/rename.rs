//! `openraid rename`: gives a served array another name.

use super::{ask, Context};
use crate::arguments::RenameArguments;
use crate::control::Command;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &RenameArguments, context: &Context) -> Outcome {
    let command = Command::Rename { array: arguments.array.clone(), to: arguments.to.clone() };
    ask(context, &arguments.array, &command)
}
