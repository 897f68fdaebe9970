//! `openraid locate`: shows by its light which drive a member is.

use super::{member_name, print_done, Context};
use crate::arguments::LocateArguments;
use crate::control::Command;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &LocateArguments, context: &Context) -> Outcome {
    let array = arguments.member.array.clone();
    let member = member_name(&arguments.member.member)?;
    let mut server = context.servers.must_serve(&array)?;
    print_done(context, &server.ask(&Command::Locate { array, member, off: arguments.off })?)
}
