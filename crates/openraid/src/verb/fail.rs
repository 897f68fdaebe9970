//! `openraid fail`: a member is treated as if it had broken.

use super::{ask, member_name, Context};
use crate::arguments::FailArguments;
use crate::control::Command;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn run(arguments: &FailArguments, context: &Context) -> Outcome {
    let array = arguments.member.array.clone();
    let member = member_name(&arguments.member.member)?;
    ask(context, &arguments.member.array, &Command::Fail { array, member, unsynced: arguments.yes })
}
