//! `openraid completions`: a script by which a shell asks this program at each key.

use std::io::Write;

use crate::completion;
use crate::failure::{Exit, Outcome};

/// Prints the script.
///
/// # Errors
/// None.
pub fn run(shell: clap_complete::Shell) -> Outcome {
    // If the reader closes the pipe early, this is not an error.
    let _ = std::io::stdout().lock().write_all(&completion::script(shell));
    Ok(Exit::Fine)
}
