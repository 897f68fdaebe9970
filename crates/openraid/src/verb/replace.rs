//! `openraid replace`: a working member is copied to another one, without a moment of less redundancy.

use super::{ask, member_name, Context};
use crate::arguments::ReplaceArguments;
use crate::control::Command;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn run(arguments: &ReplaceArguments, context: &Context) -> Outcome {
    let command = Command::Replace {
        array: arguments.array.clone(),
        member: member_name(&arguments.member)?,
        with: arguments.with.as_deref().map(member_name).transpose()?,
        overwrite: arguments.yes && arguments.overwrite,
    };
    ask(context, &arguments.array, &command)
}
