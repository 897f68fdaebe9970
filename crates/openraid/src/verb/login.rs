//! `openraid login`: prints a link that signs in to the console once, or a token for scripts; revokes a token.

use openraid_status::Role;
use serde::Serialize;

use super::Context;
use crate::arguments::LoginArguments;
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};

/// The ways to sign in to the console.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct LoginBody {
    /// Link that signs in to the console once; null if a token was asked for.
    link: Option<String>,
    /// Token for programs, to be sent as `Authorization: Bearer`; null if a link was asked for.
    token: Option<String>,
    /// Name of the token that was revoked; null if none was to be.
    revoked: Option<String>,
}

/// Runs the verb.
///
/// # Errors
/// No server runs, several do, or it has no console.
pub fn run(arguments: &LoginArguments, context: &Context) -> Outcome {
    let role = Role::of(&arguments.role)
        .ok_or_else(|| Failure::usage(format!("{}: use Administrator, Operator or ReadOnly", arguments.role)))?;
    let mut servers = context.servers.connect()?;
    let token = arguments.token;
    let command = match &arguments.revoke {
        Some(name) => Command::RevokeToken { name: name.clone() },
        None => Command::Login { role, token, name: arguments.name.clone() },
    };
    let answer = match servers.as_mut_slice() {
        [] => {
            return Err(Failure::cannot_tell("no server runs; start one with `openraid serve --http 127.0.0.1:8440`"))
        }
        [server] => server.ask(&command)?,
        _ => return Err(Failure::usage("several servers run: say with --control which one is meant")),
    };
    let ServerAnswer::Done { text, .. } = answer else {
        return Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version"));
    };
    let revoked = arguments.revoke.clone();
    let is_link = !token && revoked.is_none();
    let human = if is_link { format!("{text}\nIt signs in once, within 15 minutes.") } else { text.clone() };
    let body = LoginBody { link: is_link.then(|| text.clone()), token: token.then_some(text), revoked };
    Ok(context.output.answer(Exit::Fine, &body, &human))
}
