//! The verbs, one file each.

pub mod compare;
mod console;
pub mod merge;
pub mod plan;
pub mod rehearse;
pub mod review;
pub mod simulate;
pub mod torture;
pub mod validate;

use clap::CommandFactory;
use openraid::exit::Outcome;
use openraid::verb::{completions, man, Context};

use crate::arguments::{Arguments, Verb};

/// Runs a verb.
///
/// # Errors
/// The reason why the verb failed.
pub fn run(verb: &Verb, context: &Context) -> Outcome {
    match verb {
        Verb::Simulate(arguments) => simulate::run(arguments, context),
        Verb::Review(arguments) => review::run(arguments, context),
        Verb::Merge(arguments) => merge::run(arguments, context),
        Verb::Compare(arguments) => compare::run(arguments, context),
        Verb::Rehearse(arguments) => rehearse::run(arguments, context),
        Verb::Plan(arguments) => plan::run(arguments, context),
        Verb::Validate(arguments) => validate::run(arguments, context),
        Verb::Torture(arguments) => torture::run(arguments, context),
        Verb::Console(arguments) => console::run(arguments),
        Verb::Completions { shell } => completions::run(*shell),
        Verb::Man { folder } => man::run(Arguments::command(), folder, context),
    }
}
