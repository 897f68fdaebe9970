//! `openraid remove`: a failed member or a spare leaves its array.

use super::{ask, member_name, Context};
use crate::arguments::MemberArguments;
use crate::control::Command;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn run(arguments: &MemberArguments, context: &Context) -> Outcome {
    let array = arguments.array.clone();
    let member = member_name(&arguments.member)?;
    ask(context, &arguments.array, &Command::Remove { array, member, spare: false })
}
