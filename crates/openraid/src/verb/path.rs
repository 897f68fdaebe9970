//! `openraid path`: says how good the paths of NVMe hosts to a served array are.

use super::{ask, Context};
use crate::arguments::PathArguments;
use crate::control::Command;
use crate::failure::{Failure, Outcome};
use crate::words::host_path;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &PathArguments, context: &Context) -> Outcome {
    let state = host_path::read(&arguments.state).map_err(Failure::usage)?;
    let command = Command::Path { array: arguments.array.clone(), state };
    ask(context, &arguments.array, &command)
}
