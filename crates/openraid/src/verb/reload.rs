//! `openraid reload`: makes a server read its configuration again.

use super::Context;
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};

/// Runs the verb.
///
/// # Errors
/// No server runs, several do, or the file has problems.
pub fn run(context: &Context) -> Outcome {
    let mut servers = context.servers.connect()?;
    let answer = match servers.as_mut_slice() {
        [] => return Err(Failure::cannot_tell("no server runs; start one with `openraid serve --config FILE`")),
        [server] => server.ask(&Command::Reload)?,
        _ => return Err(Failure::usage("several servers run: say with --control which one is meant")),
    };
    match answer {
        ServerAnswer::Reloaded(model) => Ok(context.output.answer(Exit::Fine, model.as_ref(), &model.text())),
        _ => Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
    }
}
