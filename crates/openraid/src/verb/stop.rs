//! `openraid stop`: stops serving an array, or ends a server.

use super::{print_done, Context};
use crate::arguments::StopArguments;
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &StopArguments, context: &Context) -> Outcome {
    if let Some(array) = &arguments.array {
        let mut server = context.servers.must_serve(array)?;
        let answer = server.ask(&Command::Stop { array: array.clone(), yes: arguments.yes })?;
        let stays = matches!(server.ask(&Command::Hello), Ok(ServerAnswer::Server(server_model)) if server_model.stays);
        let goes_on = stays || server.list().is_ok_and(|arrays| !arrays.is_empty());
        if !goes_on {
            server.wait_for_end();
        }
        return print_done(context, &answer);
    }
    let mut servers = context.servers.connect()?;
    if servers.is_empty() {
        return Err(Failure::cannot_tell("no server runs, so there is nothing to stop"));
    }
    for server in &mut servers {
        let answer = server.ask(&Command::StopAll { yes: arguments.yes })?;
        server.wait_for_end();
        print_done(context, &answer)?;
    }
    Ok(Exit::Fine)
}
