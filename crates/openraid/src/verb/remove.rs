//! `openraid remove`: removes a failed member or a spare from its array.

use super::{member_name, print_done, seen, Context};
use crate::arguments::MemberArguments;
use crate::control::Command;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &MemberArguments, context: &Context) -> Outcome {
    order(arguments, false, context)
}

/// As [`run`]; with `spare`, only if the member is a spare.
///
/// # Errors
/// As [`run`].
pub fn order(arguments: &MemberArguments, spare: bool, context: &Context) -> Outcome {
    let array = arguments.array.clone();
    let member = member_name(&arguments.member)?;
    let mut server = context.servers.must_serve(&array)?;
    let device = seen(&mut server, &array, &member)?;
    print_done(context, &server.ask(&Command::Remove { array, member, spare, device })?)
}
