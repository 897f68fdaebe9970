//! `openraid add`: a drive joins an array that is served.

use super::{ask_to_confirm, member_name, Context};
use crate::arguments::AddArguments;
use crate::control::Command;
use crate::failure::Outcome;
use crate::members::{lasting_spec, NewFiles};

/// Runs the verb.
///
/// # Errors
/// No server serves the array, the drive cannot be used, or the server refuses.
pub fn run(arguments: &AddArguments, context: &Context) -> Outcome {
    let mut server = context.servers.must_serve(&arguments.array)?;
    let spec = lasting_spec(&arguments.member)?;
    let files = match arguments.file_size {
        Some(size) => Some(NewFiles::make(std::slice::from_ref(&spec), size)?),
        None => None,
    };
    let member = member_name(&arguments.member)?;
    let command = |split| Command::Add {
        array: arguments.array.clone(),
        member: member.clone(),
        span: arguments.span,
        overwrite: arguments.yes && arguments.overwrite,
        split,
    };
    let outcome = ask_to_confirm(context, &mut server, &command(arguments.yes), &command(true))?;
    if let Some(files) = files {
        files.keep();
    }
    Ok(outcome)
}
