//! What `attach` and `detach` take.

use crate::disk::AttachWay;
use clap::builder::PossibleValuesParser;
use clap::Args;

/// What `attach` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The array becomes a block device, for any file system, LVM or virtual machine: /dev/openraid/NAME. The way is the best one that the \
kernel and the server have: nvme-tcp, then nbd, then fuse (nbdfuse, nbdkit and a loop device, if the kernel has no module); it is said \
why better ones were not taken. Requests wait for a server that restarts: with nvme-tcp as long as it takes, else 300 s.

Examples:
  openraid attach data
  openraid attach data --unit
  openraid attach
  openraid detach data")]
pub struct AttachArguments {
    /// Name of the array; without one, the attached arrays are listed
    pub array: Option<String>,
    /// Attach by this way only
    #[arg(long, value_name = "WAY", value_parser = PossibleValuesParser::new(AttachWay::CHOICES.map(AttachWay::word)), requires = "array")]
    pub via: Option<String>,
    /// Attach it now and at every boot, by the unit openraid-disk@NAME.service
    #[arg(long, requires = "array", conflicts_with = "via")]
    pub unit: bool,
    /// Stay, and bring the kernel another socket when the server is back
    #[arg(long, hide = true, requires = "array", conflicts_with_all = ["via", "unit"])]
    pub keep: bool,
    /// Standard input is the device's socket, and standard output the lock of its keeper
    #[arg(long, hide = true, requires = "keep")]
    pub inherits: bool,
    /// A unit does this, and another one has the keeper
    #[arg(long, hide = true, requires = "array", conflicts_with_all = ["unit", "keep"])]
    pub by_unit: bool,
}

/// What `detach` takes.
#[derive(Args, Debug)]
pub struct DetachArguments {
    /// Name of the array
    pub array: String,
    /// A unit that stops does this: an array that is not attached is fine
    #[arg(long, hide = true)]
    pub by_unit: bool,
}
