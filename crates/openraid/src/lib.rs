//! The openraid command as a library, with which the program `openraid` consists of one call. The program `openraid-lab`
//! uses it as well: its rehearsals and reviews serve arrays in their own process.
//!
//! ```text
//!  arguments --> verb --> server (control socket)      for arrays that are served
//!                   \---> service in this process      for everything else
//! ```
//!
//! It must never write to a member that the user has not named or registered, and never destroy without `--yes`.

#![forbid(unsafe_code)]

mod alarms;
pub mod arguments;
mod care;
pub mod completion;
mod context;
pub mod control;
mod demo;
mod desired;
pub mod disk;
mod events;
pub mod failure;
mod history;
pub mod in_process;
mod kept_settings;
pub mod lab_job;
pub mod lab_program;
pub mod members;
pub mod new_arrays;
mod on_disk;
pub mod output;
pub mod program_settings;
pub mod quantity;
pub mod registry;
mod sd_notify;
pub mod server;
mod service_exit;
pub mod story;
pub mod verb;
pub mod words;

use std::process::ExitCode;

pub use openraid_status as model;

use clap::error::ErrorKind;
use clap::Parser;

use arguments::Arguments;
use context::Context;
use failure::Exit;
use output::program;

/// Run the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            return match arguments::typed_verb(&error).filter(|verb| lab_program::VERBS.contains(&verb.as_str())) {
                Some(verb) => lab_program::hand_over(&verb).into(),
                None => not_understood(&error),
            }
        }
    };
    let context = Context::new(arguments.common, arguments.verb.name(), arguments.verb.typed());
    context.end(verb::run(&arguments.verb, &context))
}

/// Print why the command line could not be parsed, or the help that it asks for.
pub fn not_understood(error: &clap::Error) -> ExitCode {
    if let Some(text) = arguments::instead(error, program()) {
        eprintln!("{}: {text}", program());
        return Exit::Usage.into();
    }
    // A reader that closes the pipe is not an error.
    let _ = error.print();
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked { Exit::Fine } else { Exit::Usage }.into()
}
