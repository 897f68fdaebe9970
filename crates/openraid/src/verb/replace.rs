//! `openraid replace`: copies a working member to another drive, with full redundancy during the copy.

use super::{ask_to_confirm, member_name, seen, Context};
use crate::arguments::ReplaceArguments;
use crate::control::Command;
use crate::failure::Outcome;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &ReplaceArguments, context: &Context) -> Outcome {
    let member = member_name(&arguments.member)?;
    let with = arguments.with.as_deref().map(member_name).transpose()?;
    let mut server = context.servers.must_serve(&arguments.array)?;
    let device = seen(&mut server, &arguments.array, &member)?;
    let command = |split| Command::Replace {
        array: arguments.array.clone(),
        member: member.clone(),
        with: with.clone(),
        overwrite: arguments.yes && arguments.overwrite,
        device: device.clone(),
        split,
    };
    ask_to_confirm(context, &mut server, &command(arguments.yes), &command(true))
}
