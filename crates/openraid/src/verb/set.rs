//! `openraid set`: settings of an array that is served.

use super::{ask, Context};
use crate::arguments::SetArguments;
use crate::control::Command;
use crate::exit::{Failure, Outcome};

/// Do it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn run(arguments: &SetArguments, context: &Context) -> Outcome {
    let mut settings = Vec::new();
    for text in &arguments.settings {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!("{text:?} is no setting; write KEY=VALUE, as in rebuild.rate=50M"))
        })?;
        let volatile = matches!((key, value), ("write.cache", "volatile") | ("profile", "performance"));
        if volatile && !arguments.yes {
            return Err(Failure::usage(format!(
                "{text}: writes are then acknowledged before they are on the members, and what was not \
                 flushed is lost when the power goes or the server ends; add --yes if clients flush what they need"
            )));
        }
        settings.push((key.to_owned(), value.to_owned()));
    }
    ask(context, &arguments.array, &Command::Set { array: arguments.array.clone(), settings })
}
