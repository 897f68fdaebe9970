//! `openraid set`: changes settings of a served array.

use super::{ask, Context};
use crate::arguments::SetArguments;
use crate::control::Command;
use crate::failure::{Failure, Outcome};
use crate::model::PolicyWord;
use crate::words::consistency::ConsistencyWord;

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &SetArguments, context: &Context) -> Outcome {
    let mut settings = Vec::new();
    for text in &arguments.settings {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!("{text:?} is not a setting; write KEY=VALUE, as in rebuild.rate=50M"))
        })?;
        settings.push((key.to_owned(), value.to_owned()));
    }
    if let Some(policy) = arguments.consistency_policy {
        let value = write_cache_of(policy, &arguments.array, context)?;
        let other = settings.iter().find(|(key, other)| key == "write.cache" && other != value);
        if let Some((_, other)) = other {
            return Err(Failure::usage(format!(
                "--consistency-policy {} is write.cache={value}, which contradicts write.cache={other}; leave one of them out",
                policy.text()
            )));
        }
        // The write cache is set after the other settings, because a profile also sets it.
        settings.push(("write.cache".to_owned(), value.to_owned()));
    }
    // The server decides whether the change needs a confirmation.
    let command = Command::Set { array: arguments.array.clone(), settings, yes: arguments.yes };
    ask(context, &arguments.array, &command)
}

/// The setting of the write cache for a consistency policy, for an array that was created with one.
fn write_cache_of(policy: ConsistencyWord, name: &str, context: &Context) -> Result<&'static str, Failure> {
    if policy == ConsistencyWord::ControllerJournal {
        return Ok("journal");
    }
    let array = context.servers.must_serve(name)?.show(name)?;
    let sets = array.sets();
    let has_bitmap = sets.iter().all(|set| set.bitmap.is_some());
    let fits = match policy {
        ConsistencyWord::Bitmap => has_bitmap,
        ConsistencyWord::Resync => !has_bitmap && array.consistency_policy != Some(PolicyWord::Ppl),
        ConsistencyWord::Ppl | ConsistencyWord::ControllerJournal => array.consistency_policy == Some(PolicyWord::Ppl),
    };
    if fits {
        return Ok("through");
    }
    Err(Failure::usage(format!(
        "{name} was not made with consistency policy {}; that is chosen when an array is created, only controller-journal \
         can be switched on and off later",
        policy.text()
    )))
}
