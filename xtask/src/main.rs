//! Repository chores: `cargo xtask <command>`.
//!
//! Everything that decides whether a change may land is here, in one program without dependencies to speak
//! of, so that it runs the same on every machine. It never changes a source file, except for `bless`.

#![forbid(unsafe_code)]

mod ci;
mod step;

use std::process::ExitCode;

/// What the program can do: name, function, one sentence.
const COMMANDS: &[(&str, fn() -> step::Outcome, &str)] = &[
    ("ci", ci::ci, "everything that must hold before a change lands"),
    ("lint", ci::lint, "the part of ci that reads sources and runs nothing of them, and cargo-deny"),
    ("soak", ci::soak, "all tests, the long ones included, with the optimiser on"),
    ("bench", ci::bench, "every benchmark of the workspace"),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, run, _)) = COMMANDS.iter().find(|(name, _, _)| *name == wanted) else {
        println!("cargo xtask <command>");
        for (name, _, what) in COMMANDS {
            println!("  {name:8} {what}");
        }
        return ExitCode::from(64);
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask {wanted}: {why}");
            ExitCode::FAILURE
        }
    }
}
