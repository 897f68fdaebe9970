//! Verbs that need no server: examine, scan, assemble, doctor, erase, copy-out, copy-in.

use super::member_help;
use crate::quantity;
use crate::words;
use clap::Args;
use openraid_units::Bytes;
use std::path::PathBuf;

/// What `assemble` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
If a server is running (the only one, or the one of --control), it takes the array over and serves it at once. If none is \
running, nothing is written to any member, and the array is remembered for `serve`.

Examples:
  openraid assemble /dev/sdb /dev/sdc /dev/sdd
  openraid assemble --scan /dev/disk/by-id
  openraid assemble data --forget, or: openraid forget data")]
pub struct AssembleArguments {
    /// Members, or the name of a remembered array
    #[arg(value_name = "MEMBER|NAME", long_help = member_help("Members, or the name of a remembered array"))]
    pub members: Vec<String>,
    /// Look for members in this directory
    #[arg(long, value_name = "DIR")]
    pub scan: Vec<PathBuf>,
    /// Use stale members if the array cannot start without them, and start a dirty, degraded array
    #[arg(short, long)]
    pub force: bool,
    /// Start without the journal that holds acknowledged writes of the array: those writes are lost
    #[arg(long)]
    pub journal_lost: bool,
    /// Do not hand the array over to a running server
    #[arg(long)]
    pub no_serve: bool,
    /// Same as `forget NAME`
    #[arg(long, conflicts_with_all = ["scan", "force", "journal_lost", "no_serve"])]
    pub forget: bool,
}

/// What `forget` takes.
#[derive(Args, Debug)]
pub struct ForgetArguments {
    /// Name of the array
    #[arg(value_name = "NAME")]
    pub array: String,
}

/// What `examine` takes.
#[derive(Args, Debug)]
pub struct ExamineArguments {
    /// Members; nothing is written
    #[arg(required = true, value_name = "MEMBER", long_help = member_help("Members; nothing is written"))]
    pub members: Vec<String>,
}

/// What `scan` takes.
#[derive(Args, Debug)]
pub struct ScanArguments {
    /// Directories and members to look at [default: all block devices]
    #[arg(value_name = "DIR|MEMBER")]
    pub places: Vec<PathBuf>,
}

/// What `doctor` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is written to a member: while the array is tried, all writes stay in memory.

Example:
  openraid doctor d1 d2 d3 d4 --read 1G")]
pub struct DoctorArguments {
    /// Members, or the name of a remembered array
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = member_help("Members, or the name of a remembered array"))]
    pub members: Vec<String>,
    /// Read this much from the start of the array
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "1M")]
    pub read: Bytes,
}

/// What `erase` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Clears superblocks 1.0, 1.1 and 1.2, the bitmap and the bad-block log. The data remains on the drives, but no metadata \
says any more how to assemble it.")]
pub struct WipeMetadataArguments {
    /// Members whose metadata is cleared
    #[arg(required = true, value_name = "MEMBER", long_help = member_help("Members whose metadata is cleared"))]
    pub members: Vec<String>,
    /// Do it; without this option the plan is printed and nothing is changed
    #[arg(short, long)]
    pub yes: bool,
}

/// What `update` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Linux 6.19 and later store the logical block size of an array in its superblocks. Kernels before 6.19 then refuse the array \
(\"does not have a valid v1.2 superblock\"). The command clears the field on all members. It is refused if hosts would see smaller \
blocks: if every drive's logical block is smaller than the field. Without --yes only the plan is printed.

With --recheck-bad-blocks the ranges in the bad-block logs are read, and the whole array is compared, as by a check. Entries that are good are cleared, the others stay and are listed; then the exit code is 7.

Members are written one after the other, each durably. If the command is interrupted, run it again.

Examples:
  openraid update --for-kernels-before 6.19 /dev/sdb /dev/sdc /dev/sdd --yes
  openraid update --recheck-bad-blocks data --yes")]
pub struct UpdateArguments {
    /// All members, or the name of a remembered array
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = member_help("All members, or the name of a remembered array"))]
    pub members: Vec<String>,
    /// The array is to be accepted by kernels before this version
    #[arg(long, value_name = "VERSION", required_unless_present = "recheck_bad_blocks", value_parser = ["6.19"])]
    pub for_kernels_before: Option<String>,
    /// Read the ranges of the bad-block logs again, and clear the entries that read well and agree with parity or copies
    #[arg(long, conflicts_with_all = ["for_kernels_before", "degraded", "smaller_blocks"])]
    pub recheck_bad_blocks: bool,
    /// Go on although members are missing
    #[arg(long)]
    pub degraded: bool,
    /// Accept that hosts see smaller blocks than now
    #[arg(long)]
    pub smaller_blocks: bool,
    /// Print what would be done, and exit with 0
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do it; without this option the plan is printed and nothing is changed
    #[arg(short, long)]
    pub yes: bool,
}

/// What `copy-out` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is written to any member. A degraded array is read through its redundancy. For levels 50 and 60, name the members of \
all spans. With --json the summary goes to standard error.

Examples:
  openraid copy-out d1 d2 d4 > image
  openraid copy-out --skip-bad data > image
  openraid copy-out data | dd of=image bs=1M conv=sparse")]
pub struct CopyOutArguments {
    /// Members, or the name of a remembered array
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = member_help("Members, or the name of a remembered array"))]
    pub members: Vec<String>,
    /// Use stale members if the array cannot start without them, and read a dirty, degraded array
    #[arg(short, long)]
    pub force: bool,
    /// Do not look for the outer stripe of levels 50 and 60
    #[arg(long)]
    pub flat: bool,
    /// Replace unreadable ranges by zeroes, list them, and exit with 7
    #[arg(long)]
    pub skip_bad: bool,
    /// Read the ranges that the bad-block logs of the members exclude
    #[arg(long)]
    pub ignore_bad_blocks: bool,
    /// The map of a RAID 0 over members of unequal size whose superblocks do not say it: original (arrays made before Linux
    /// 3.14) or alternate
    #[arg(long, value_name = "LAYOUT", value_parser = words::raid0_layout)]
    pub layout: Option<u32>,
}

/// What `copy-in` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The array is written from its start; content past the end of the input is not changed. Input that is longer than the array is \
refused: a file before anything is written, a pipe when the array is full. The command then finishes the initial sync, so \
that the array is redundant.

Example:
  openraid copy-in d1 d2 d3 d4 < image")]
pub struct CopyInArguments {
    /// Members, or the name of a remembered array
    #[arg(required = true, value_name = "MEMBER|NAME", long_help = member_help("Members, or the name of a remembered array"))]
    pub members: Vec<String>,
    /// Do not finish the initial sync or resync: it follows when the array is served
    #[arg(long)]
    pub no_sync: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: write although the array holds a file system, a partition table or the like; its content is lost
    #[arg(long)]
    pub overwrite: bool,
}
