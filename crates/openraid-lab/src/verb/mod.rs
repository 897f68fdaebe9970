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
use openraid::failure::Outcome;
use openraid::verb::{completions, man, Context};

use crate::arguments::{LabArguments, LabVerb};

/// Runs a verb.
///
/// # Errors
/// The reason why the verb failed.
pub fn run(verb: &LabVerb, context: &Context) -> Outcome {
    match verb {
        LabVerb::Simulate(arguments) => simulate::run(arguments, context),
        LabVerb::Review(arguments) => review::run(arguments, context),
        LabVerb::Merge(arguments) => merge::run(arguments, context),
        LabVerb::Compare(arguments) => compare::run(arguments, context),
        LabVerb::Rehearse(arguments) => rehearse::run(arguments, context),
        LabVerb::Plan(arguments) => plan::run(arguments, context),
        LabVerb::Validate(arguments) => validate::run(arguments, context),
        LabVerb::Torture(arguments) => torture::run(arguments, context),
        LabVerb::Console(arguments) => console::run(arguments),
        LabVerb::Completions { shell } => completions::run(*shell),
        LabVerb::Man { folder } => man::run(LabArguments::command(), folder, context),
    }
}
