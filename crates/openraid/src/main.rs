//! The program `openraid`: serves, administers and recovers arrays.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::CommandFactory;
use openraid::arguments::Arguments;
use openraid::completion;

fn main() -> ExitCode {
    completion::attend(|| completion::with_candidates(Arguments::command()));
    openraid::run()
}
