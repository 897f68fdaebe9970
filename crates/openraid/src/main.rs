//! The openraid command.
//!
//! ```text
//!  arguments --> verb --> server (control socket)      for arrays that are served
//!                   \---> service in this process      for everything else
//! ```
//!
//! It must never write to a member that the user has not named or registered, and never destroy without `--yes`.

#![forbid(unsafe_code)]

mod alarms;
mod arguments;
mod bad_blocks;
mod care;
mod causes;
mod check_history;
mod checks;
mod completion;
mod consistency;
mod control;
mod demo;
mod departed;
mod desired;
mod events;
mod exit;
mod halves;
mod holding;
#[cfg(test)]
mod hostile;
mod in_process;
mod job;
mod kept;
mod kernels;
mod laboratory;
mod lockless;
mod making;
mod members;
mod notify;
mod output;
mod patrol_history;
mod quantity;
mod registry;
mod room;
mod server;
mod sets;
mod settings;
mod story;
mod swarm;
mod taken_by_md;
mod trial;
mod verb;
mod wiping;
mod words;

use std::process::ExitCode;

pub(crate) use openraid_status as model;

use clap::error::ErrorKind;
use clap::Parser;

use arguments::Arguments;
use control::Servers;
use exit::Exit;
use openraid_units::Nanos;
use output::Output;
use registry::Registry;

fn main() -> ExitCode {
    job::attend();
    completion::attend();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if let Some(text) = arguments::instead(&error) {
                eprintln!("openraid: {text}");
                return Exit::Usage.into();
            }
            // A reader that closes the pipe is not an error.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { Exit::Fine.into() } else { Exit::Usage.into() };
        }
    };
    let output = Output { json: arguments.common.json, verb: arguments.verb.name(), typed: arguments.verb.typed() };
    if let Some(seconds) = arguments.common.open_seconds {
        members::set_patience(Nanos::from_secs(seconds));
    }
    let registry = Registry::at(arguments.common.registry.as_deref());
    let context = verb::Context {
        output,
        registry: registry.clone(),
        servers: Servers::new(arguments.common.control.as_deref(), registry),
        common: arguments.common,
    };
    match verb::run(&arguments.verb, &context) {
        Ok(exit) => exit.into(),
        Err(failure) => output.fail(&failure).into(),
    }
}
