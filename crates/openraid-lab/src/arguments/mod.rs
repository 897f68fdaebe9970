//! The command line: verbs, options, help. The man pages and completions are made from these definitions.

mod console;
mod machine;
mod torture;
mod validate;

pub use console::{ConsoleArguments, ConsoleVerb, ProfileArguments};
pub use machine::{
    CacheChoice, CacheWord, CompareArguments, DriveCacheWord, DriveReadAheadWord, DriveStateWord, EffortWord,
    LoadArguments, MachineArguments, MergeArguments, PlanArguments, RehearseArguments, ReviewArguments,
    SimulateArguments, StandInWord, WayWord,
};
pub use torture::TortureArguments;
pub use validate::ValidateArguments;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use openraid::arguments::Common;
use openraid::failure::Exit;

const ABOUT: &str =
    "The laboratory of openraid: predictions for arrays before they are bought, measurements of arrays, \
and proofs of the engine on simulated drives";

const EXAMPLES: &str = "\
All verbs of openraid are verbs of this program too. Members may then have the timing of a modelled drive:
  openraid-lab serve --level 5 --name data --nbd-unix /tmp/data.sock model:wd740gd model:wd740gd model:wd740gd";

/// The exit codes and examples.
fn after_help() -> String {
    format!("Exit codes:\n{}\n{EXAMPLES}", Exit::table())
}

/// The command.
#[derive(Parser, Debug)]
#[command(name = "openraid-lab", version, about = ABOUT, after_help = after_help(), max_term_width = 100, infer_subcommands = false)]
pub struct LabArguments {
    /// What applies to every verb.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum LabVerb {
    /// Predict an array's performance under one load, in virtual time
    Simulate(Box<SimulateArguments>),
    /// Measure or simulate with the methods of storage reviews, and write a report
    Review(Box<ReviewArguments>),
    /// Join the parts of a review or plan that were run with --shard
    Merge(MergeArguments),
    /// Compare two reviews
    Compare(CompareArguments),
    /// Check a prediction: run the same loads on a simulated array and on a served one with paced members
    Rehearse(Box<RehearseArguments>),
    /// Compare RAID levels for given drives and a given load
    Plan(Box<PlanArguments>),
    /// Check claims about arrays against the simulation; print verdicts and values
    Validate(ValidateArguments),
    /// Cut the power thousands of times in a simulated machine, and check that no acknowledged write is lost
    Torture(TortureArguments),
    /// Answer a server whose console has a laboratory
    #[command(hide = true)]
    Console(ConsoleArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a directory
    Man {
        /// The directory; created if missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl LabVerb {
    /// The verb as the user types it, which is the name of the form in which it answers with `--json`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Simulate(_) => "simulate",
            Self::Review(_) => "review",
            Self::Merge(_) => "merge",
            Self::Compare(_) => "compare",
            Self::Rehearse(_) => "rehearse",
            Self::Plan(_) => "plan",
            Self::Validate(_) => "validate",
            Self::Torture(_) => "torture",
            Self::Console(_) => "console",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use openraid::lab_program::VERBS;

    use super::*;

    #[test]
    fn the_definition_is_consistent_and_openraid_knows_the_verbs_that_it_hands_over() {
        let command = LabArguments::command();
        command.clone().debug_assert();
        let shared = ["completions", "man"];
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name);
        let verbs: Vec<&str> = verbs.filter(|verb| !shared.contains(verb)).collect();
        assert_eq!(verbs, VERBS);
        let openraid = openraid::arguments::Arguments::command();
        assert!(VERBS.iter().all(|verb| openraid.find_subcommand(verb).is_none()));
        assert!(shared.iter().all(|verb| openraid.find_subcommand(verb).is_some()));
    }
}
