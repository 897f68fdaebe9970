//! `openraid validate`: claims about arrays, held against the simulation.

use super::EffortWord;
use clap::Args;
use std::path::PathBuf;

/// What `validate` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A claim is an expression that is true or false of a simulated array; docs/claims.md describes the language. Values that \
were measured once are kept in a cache folder, and measured anew when the program or a profile has changed. The exit code \
says whether the claims could be evaluated, not whether they hold.

With --json the answer is one list: [{\"id\", \"verdict\": \"pass\"|\"fail\"|\"not-applicable\", \"measured\", \"reason\"}, ...].

Examples:
  openraid validate
  openraid validate --only 9650se-021 --only icp-
  openraid validate --claims mine.json --json")]
pub struct ValidateArguments {
    /// The claims [default: what five published reviews found]
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    /// Only claims with this id, or with an id that begins so; may be given more than once
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// How much is measured for each value
    #[arg(long, value_enum, default_value = "normal")]
    pub effort: EffortWord,
    /// Claims that are evaluated at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// A folder with profiles of your own (drives, buses, controllers, hosts)
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Where all chance comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Keep values in this folder [default: $XDG_CACHE_HOME/openraid, or ~/.cache/openraid]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Keep no values
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
}
