//! Repository chores: `cargo xtask <command>`.
//!
//! Everything that decides whether a change may land is here, in one program without dependencies to speak
//! of, so that it runs the same on every machine. It never changes a source file, except for `bless`, and `plain` lowers its
//! counts.

#![forbid(unsafe_code)]

mod bless;
mod ci;
mod deny;
mod docs;
mod floors;
mod imports;
mod layers;
mod licences;
mod links;
mod names;
mod oldest;
mod pictures;
mod places;
mod plain;
mod programs;
mod purity;
mod quick;
mod rust;
mod step;
mod tidy;
mod tree;

use std::process::ExitCode;

/// A chore: its name, its function, one sentence.
type Chore = (&'static str, fn() -> step::Outcome, &'static str);

const COMMANDS: &[Chore] = &[
    ("ci", ci::ci, "everything that must hold before a change lands"),
    (
        "quick",
        quick::quick,
        "the same of what changed since the last push and what builds on that, without tests of programs",
    ),
    ("lint", ci::lint, "the part of ci that reads sources and runs nothing of them, and cargo-deny"),
    ("tidy", tidy::tidy, "style that can be checked"),
    (
        "layers",
        layers::print,
        "how far the parts of the core are apart: circles of imports, imports that run up, counted",
    ),
    ("plain", plain::plain, "count the patterns of the old style, and lower the counts that are stored"),
    ("purity", purity::purity, "the allowed imports of each crate, and words that the core must not use"),
    ("licences", licences::licences, "licences, bans and sources of dependencies"),
    ("deny", deny::deny, "the same by cargo-deny, which is installed if it is missing"),
    ("docs", docs::docs, "build the book of docs/ and follow its links; mdbook is installed if it is missing"),
    ("determinism", ci::determinism, "the same seeds give the same decisions in two builds; a part of ci and of soak"),
    ("bless", bless::bless, "make golden files again from their oracles"),
    (
        "oldest",
        oldest::oldest,
        "build with the minimum Rust version of the manifest, which is installed if it is missing",
    ),
    (
        "soak",
        ci::soak,
        "all tests, the long ones included, with the optimiser on, and a build with the minimum Rust version",
    ),
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
