//! `openraid stop`: an array is served no more, or a server ends.

use super::{ask, tell_done, Context};
use crate::arguments::StopArguments;
use crate::control::Command;
use crate::exit::{Exit, Failure, Outcome};

/// Do it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn run(arguments: &StopArguments, context: &Context) -> Outcome {
    if let Some(array) = &arguments.array {
        return ask(context, array, &Command::Stop { array: array.clone() });
    }
    let mut servers = context.servers.connect()?;
    if servers.is_empty() {
        return Err(Failure::cannot_tell("no server runs, so there is nothing to stop"));
    }
    for server in &mut servers {
        let answer = server.ask(&Command::StopAll)?;
        tell_done(context, &answer)?;
    }
    Ok(Exit::Fine)
}
