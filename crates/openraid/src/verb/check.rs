//! `openraid check`: everything is read and compared, nothing is changed.

use super::{ask, show, Context};
use crate::arguments::CheckArguments;
use crate::control::Command;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn run(arguments: &CheckArguments, context: &Context) -> Outcome {
    let array = arguments.array.clone();
    if arguments.stop {
        return ask(context, &arguments.array, &Command::StopCheck { array });
    }
    begin(context, &array, false, arguments.follow)
}

/// Begin a check or repair, and wait for its end where that is wanted.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn begin(context: &Context, name: &str, repair: bool, follow: bool) -> Outcome {
    let command = Command::Check { array: name.into(), repair };
    if !follow {
        return ask(context, name, &command);
    }
    context.servers.must_serve(name)?.ask(&command)?;
    show::follow(context, name)
}
