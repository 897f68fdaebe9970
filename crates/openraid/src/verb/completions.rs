//! `openraid completions`: a script that is made from the definition of the command line.

use clap::CommandFactory;
use std::io::Write;

use crate::arguments::Arguments;
use crate::exit::{Exit, Outcome};

/// Prints the script.
///
/// # Errors
/// None.
pub fn run(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "openraid", &mut script);
    // If the reader closes the pipe early, this is not an error.
    let _ = std::io::stdout().lock().write_all(&script);
    Ok(Exit::Fine)
}
