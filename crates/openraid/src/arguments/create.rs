//! `openraid create`.

use crate::words;
use crate::words::consistency::ConsistencyWord;
use crate::{arguments::member_help, quantity};
use clap::{Args, ValueEnum};
use openraid_format::MinorVersion;
use openraid_units::{ArrayLevel, Bytes, Sectors};

const EXAMPLES: &str = "\
Examples:
  openraid create data --level 5 --chunk 64K /dev/sdb /dev/sdc /dev/sdd
  openraid create data --level 6 --file-size 1G --spare s1 d1 d2 d3 d4 d5
  openraid create data --level 10 --layout f2 d1 d2 d3 missing
  openraid create data --level 60 --spans 2 d1 d2 d3 d4 d5 d6 d7 d8
  openraid create raw --level jbod /dev/sdb

The word `missing` leaves a slot empty. Without --bitmap, an array gets an internal write-intent bitmap if it uses 100 GiB \
or more of each member, as with mdadm; smaller arrays resync quickly without one. The initial sync of a redundant array \
runs in the background when the array is first served.";

/// Keep a write-intent bitmap?
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BitmapWord {
    /// No bitmap
    None,
    /// On the members, next to the superblock
    Internal,
}

/// What `create` takes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CreateArguments {
    /// Name of the array
    #[arg(value_parser = words::array_name)]
    pub name: String,
    /// Members in order of their slots, or the word `missing`
    #[arg(required = true, value_name = "MEMBER", long_help = member_help("Members in order of their slots, or the word `missing`"))]
    pub members: Vec<String>,
    /// Level: jbod, single, linear, 0, 1, 1e, 4, 5, 6, 10, 50, 60
    #[arg(short, long, value_parser = words::level)]
    pub level: ArrayLevel,
    /// Chunk, from 4K on [default: 512K; 64K for linear]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::sectors)]
    pub chunk: Option<Sectors>,
    /// Layout, in mdadm's words: left-symmetric, ls, ddf-N-restart, n2, f2, o3, ...
    #[arg(long, value_name = "WORD")]
    pub layout: Option<String>,
    /// Number of spans of a nested array (50, 60); each gets the same number of members, in order [default: 2]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(2..=64))]
    pub spans: Option<u16>,
    /// A hot spare; may be given several times
    #[arg(long, value_name = "MEMBER")]
    pub spare: Vec<String>,
    /// Write-intent bitmap [default: internal if 100 GiB or more of each member are used]
    #[arg(long, value_enum)]
    pub bitmap: Option<BitmapWord>,
    /// How the array becomes consistent after a crash [default: follows --bitmap]
    #[arg(long, value_name = "POLICY", value_enum)]
    pub consistency_policy: Option<ConsistencyWord>,
    /// Use at most this much of each member
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::sectors)]
    pub size: Option<Sectors>,
    /// The members are known to be consistent (all zero, or copied): no initial sync
    #[arg(long)]
    pub assume_clean: bool,
    /// Place of the superblock: 1.2 (4 KiB from the start), 1.1 (at the start), 1.0 (at the end)
    #[arg(long, value_name = "VERSION", default_value = "1.2", value_parser = metadata)]
    pub metadata: MinorVersion,
    /// Create the members as sparse files of this size; they must not exist. Sparse files take space as they are written:
    /// if their file system becomes full, the array refuses writes
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub file_size: Option<Bytes>,
    /// Let the files of --file-size have all of their space from the start
    #[arg(long, requires = "file_size")]
    pub allocate: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: use members that hold a file system, a partition table or another array; their content is lost
    #[arg(long)]
    pub overwrite: bool,
}

fn metadata(text: &str) -> Result<MinorVersion, String> {
    let found = MinorVersion::ALL.into_iter().find(|version| version.to_string() == text);
    match (found, text) {
        (Some(version), _) => Ok(version),
        (None, "1" | "default") => Ok(MinorVersion::V1_2),
        (None, _) => Err(format!("unknown metadata version {text:?}; use 1.2, 1.1 or 1.0")),
    }
}
