//! `openraid-lab validate`: claims about arrays, compared with the simulation.

use super::EffortWord;
use clap::Args;
use std::path::PathBuf;

/// What `validate` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A claim is an expression about simulated arrays that is true or false; docs/lab/claims.md describes the language. Measured values \
are cached in a directory, and measured again after a change of the program or of a profile. The exit code says whether the \
claims could be evaluated, not whether they hold.

With --json the output is one list: [{\"id\", \"verdict\": \"pass\"|\"fail\"|\"not-applicable\", \"measured\", \"reason\"}, ...]; \
with --several-seeds each has \"seeds\" and \"decided\", and a claim that is not decided has failed; \
with --perturb each has \"changed\": [{\"change\", \"verdict\": \"holds\"|\"fails\"|\"excused\", \"reason\"}, ...], too.

Examples:
  openraid-lab validate
  openraid-lab validate --only 9650se-021 --only icp-
  openraid-lab validate --only 9260- --several-seeds --perturb
  openraid-lab validate --claims mine.json --json")]
pub struct ValidateArguments {
    /// File with claims [default: the findings of five published reviews]
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    /// Only claims whose id is, or starts with, this text; may be given several times
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// Evaluate each claim that holds again, with 3, 5, 6 and 8 drives, other block sizes, other seeds, and
    /// several of these at once; takes several times as long
    #[arg(long)]
    pub perturb: bool,
    /// Decide each claim by three seeds if they agree, or else by nine; takes three to nine times as long. --seed is the
    /// first of them
    #[arg(long)]
    pub several_seeds: bool,
    /// Requests per measured value
    #[arg(long, value_enum, default_value = "normal")]
    pub effort: EffortWord,
    /// Claims evaluated in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Directory with own profiles (drives, buses, controllers, hosts)
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Cache values in this directory [default: $XDG_CACHE_HOME/openraid, or ~/.cache/openraid]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Do not cache values
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
}
