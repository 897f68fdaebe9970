//! `openraid-lab console`: questions of a server whose console has a laboratory. The answers are JSON.

use clap::{Args, Subcommand};

/// What `console` takes.
#[derive(Args, Debug)]
pub struct ConsoleArguments {
    /// The question.
    #[command(subcommand)]
    pub verb: ConsoleVerb,
}

/// The question.
#[derive(Subcommand, Debug)]
pub enum ConsoleVerb {
    /// The words that other verbs take
    Choices,
    /// The drive profile for a drive
    Profile(ProfileArguments),
}

/// The known facts about a drive.
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct ProfileArguments {
    /// The chosen profile
    #[arg(long, value_name = "PROFILE")]
    pub chosen: Option<String>,
    /// The profile of a modelled drive
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Its model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Does it spin? Known for block devices only
    #[arg(long, value_name = "BOOL")]
    pub spins: Option<bool>,
    /// Its size in bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub bytes: u64,
}
