//! `openraid check`: everything is read and compared, nothing is changed.

use super::show::{self, Until};
use super::{ask, Context};
use crate::arguments::CheckArguments;
use crate::checks::CheckWord;
use crate::control::Command;
use crate::exit::Outcome;

/// Do it.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &CheckArguments, context: &Context) -> Outcome {
    let array = arguments.array.clone();
    if arguments.stop {
        return ask(context, &arguments.array, &Command::StopCheck { array });
    }
    begin(context, &array, CheckWord::Check, arguments.follow)
}

/// Begin a check or repair, and wait for its end where that is wanted.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn begin(context: &Context, name: &str, kind: CheckWord, follow: bool) -> Outcome {
    let command = Command::Check { array: name.into(), kind };
    if !follow {
        return ask(context, name, &command);
    }
    context.servers.must_serve(name)?.ask(&command)?;
    show::follow(context, name, Until::Checked)
}
