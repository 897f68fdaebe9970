//! `openraid fail`: makes the server treat a member as failed.

use super::{member_name, print_done, seen, Context};
use crate::arguments::FailArguments;
use crate::control::Command;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &FailArguments, context: &Context) -> Outcome {
    let array = arguments.member.array.clone();
    let member = member_name(&arguments.member.member)?;
    let mut server = context.servers.must_serve(&array)?;
    let device = seen(&mut server, &array, &member)?;
    print_done(context, &server.ask(&Command::Fail { array, member, unsynced: arguments.yes, device })?)
}
