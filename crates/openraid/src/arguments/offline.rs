//! Verbs that need no server: examine, scan, assemble, doctor, erase, copy-out, copy-in.

use super::MEMBER_HELP;
use crate::quantity;
use clap::Args;
use openraid_units::Bytes;
use std::path::PathBuf;

/// What `assemble` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is written to any member unless a running server takes the array over. With a running server (the only one, \
or the one of --control) the array is handed to it and served at once; otherwise it is remembered for `serve`.

Examples:
  openraid assemble /dev/sdb /dev/sdc /dev/sdd
  openraid assemble --scan /dev/disk/by-id
  openraid assemble data --forget, or: openraid forget data")]
pub struct AssembleArguments {
    /// Members, or the name of an array that is remembered
    #[arg(value_name = "MEMBER|NAME", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
    /// Look for members in this folder
    #[arg(long, value_name = "DIR")]
    pub scan: Vec<PathBuf>,
    /// Take stale members where the array cannot start without them, and start a dirty, degraded array
    #[arg(short, long)]
    pub force: bool,
    /// Start it without the journal that holds promises for it: those are lost
    #[arg(long)]
    pub journal_lost: bool,
    /// Do not hand the array to a running server
    #[arg(long)]
    pub no_serve: bool,
    /// Forget the named array instead: its members stay as they are
    #[arg(long, conflicts_with_all = ["scan", "force", "journal_lost", "no_serve"])]
    pub forget: bool,
}

/// What `forget` takes.
#[derive(Args, Debug)]
pub struct ForgetArguments {
    /// Its name
    #[arg(value_name = "NAME")]
    pub array: String,
}

/// What `examine` takes.
#[derive(Args, Debug)]
pub struct ExamineArguments {
    /// Members to look at; nothing is written
    #[arg(required = true, value_name = "MEMBER", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
}

/// What `scan` takes.
#[derive(Args, Debug)]
pub struct ScanArguments {
    /// Folders and members to look at [default: all block devices]
    #[arg(value_name = "DIR|MEMBER")]
    pub places: Vec<PathBuf>,
}

/// What `doctor` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is ever written to a member: the array is tried with all writes kept in memory.

Example:
  openraid doctor d1 d2 d3 d4 --read 1G")]
pub struct DoctorArguments {
    /// Members, or the name of an array that is remembered
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
    /// Read this much from the start of the array in the try
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "1M")]
    pub read: Bytes,
}

/// What `erase` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Wiped are the places of superblocks 1.0, 1.1 and 1.2, and the areas of the bitmap and the bad-block log. Data stay \
where they are, but nothing says any more how they belong together.")]
pub struct EraseArguments {
    /// Members to wipe
    #[arg(required = true, value_name = "MEMBER", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
    /// Do it; without it, only what would be done is said
    #[arg(short, long)]
    pub yes: bool,
}

/// What `update` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Linux 6.19 and later store the logical block of an array in its superblocks; kernels before 6.19 refuse the array then \
(\"does not have a valid v1.2 superblock\"). The field is cleared on all members if hosts see the same blocks without it: \
if the largest logical block of the drives is at least what the field says. Without --yes only the plan is shown.

Each member is written durably before the next. If it is interrupted, the same command finishes it.

Example:
  openraid update --for-kernels-before 6.19 /dev/sdb /dev/sdc /dev/sdd --yes")]
pub struct UpdateArguments {
    /// All members, or the name of an array that is remembered
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
    /// The kernels that are to take the array: those before this version
    #[arg(long, value_name = "VERSION", required = true, value_parser = ["6.19"])]
    pub for_kernels_before: String,
    /// Go on although slots are without a member
    #[arg(long)]
    pub degraded: bool,
    /// Hosts may see smaller blocks than now
    #[arg(long)]
    pub smaller_blocks: bool,
    /// Only show what would be done, and end with 0
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do it; without it, only what would be done is said
    #[arg(short, long)]
    pub yes: bool,
}

/// What `copy-out` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is written to any member. A degraded array is read through its redundancy; of 50 and 60 name the members of \
all legs. With --json the summary goes to standard error.

Examples:
  openraid copy-out d1 d2 d4 > image
  openraid copy-out --skip-bad data > image
  openraid copy-out data | dd of=image bs=1M conv=sparse")]
pub struct CopyOutArguments {
    /// Members, or the name of an array that is remembered
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
    /// Take stale members where the array cannot start without them, and read a dirty, degraded array
    #[arg(short, long)]
    pub force: bool,
    /// Do not look for a stripe over the arrays (levels 50 and 60)
    #[arg(long)]
    pub flat: bool,
    /// Go on after what cannot be read: copy zeroes in its place, list the ranges, and end with exit code 7
    #[arg(long)]
    pub skip_bad: bool,
}

/// What `copy-in` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The array is filled from its start; what lies behind the end of the input stays as it is. Input that is longer than \
the array is refused: a file before anything is written, a pipe when the array is full. At the end a first sync is \
finished, so that the array survives what its level promises.

Example:
  openraid copy-in d1 d2 d3 d4 < image")]
pub struct CopyInArguments {
    /// Members, or the name of an array that is remembered
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = MEMBER_HELP)]
    pub members: Vec<String>,
    /// Do not wait until a first sync or resync is over: it then goes on when the array is served
    #[arg(long)]
    pub no_sync: bool,
}
