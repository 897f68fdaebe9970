//! The program `openraid-lab`: simulates, plans, reviews and rehearses arrays, checks claims about them, and tortures the
//! engine.
//!
//! ```text
//!  arguments --> verb --> methods, claims, sim            the laboratory's verbs
//!           \---> openraid                                all verbs of openraid, with models of drives for members
//! ```

#![forbid(unsafe_code)]

mod arguments;
#[cfg(test)]
mod forms;
mod paced;
mod profile;
mod shared_parts;
mod torture_threads;
mod verb;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use openraid::completion;
use openraid::lab_program::PROGRAM;
use openraid::verb::Context;

use arguments::LabArguments;

fn main() -> ExitCode {
    openraid::output::set_program(PROGRAM);
    openraid::lab_job::attend();
    completion::attend(LabArguments::command);
    openraid_runtime::member::paced::set_models(paced::find);
    let arguments = match LabArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            return match openraid::arguments::typed_verb(&error).filter(|verb| is_of_openraid(verb)) {
                Some(_) => openraid::run(),
                None => openraid::not_understood(&error),
            }
        }
    };
    let context = Context::new(arguments.common, arguments.verb.name(), arguments.verb.name());
    context.end(verb::run(&arguments.verb, &context))
}

/// Is this a verb of `openraid`?
fn is_of_openraid(verb: &str) -> bool {
    openraid::arguments::Arguments::command().find_subcommand(verb).is_some()
}
