//! `openraid journal`.

use crate::quantity;
use clap::{Args, Subcommand};
use openraid_units::Bytes;

/// What `journal` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A journal holds what hosts were promised before the members have it: writes are as quick as its device, and nothing \
acknowledged is lost when the power goes. One journal serves all arrays of a server.

Example:
  openraid journal create /dev/nvme0n1p3 /dev/nvme1n1p3
  openraid serve data --journal /dev/nvme0n1p3 --journal /dev/nvme1n1p3
  openraid set data write.cache=journal")]
pub struct JournalArguments {
    /// What to do with a journal
    #[command(subcommand)]
    pub verb: JournalVerb,
}

/// What to do with a journal.
#[derive(Subcommand, Debug)]
pub enum JournalVerb {
    /// Make a new, empty journal on one device, or mirrored over two of the same size
    Create(JournalCreateArguments),
    /// Say what a journal holds: that of the running server, or one on devices
    Show(JournalShowArguments),
    /// Let a device join the journal of the running server: the one that was dropped, or a new one in its place
    Attach(JournalAttachArguments),
    /// Give up what a journal holds for an array; what it had promised is lost
    Discard(JournalDiscardArguments),
    /// Make a journal this controller's own, after it came from another one or the registry was lost
    Adopt(JournalAdoptArguments),
}

/// What `journal create` takes.
#[derive(Args, Debug)]
pub struct JournalCreateArguments {
    /// A file, partition or drive, or two: then either of them is enough
    #[arg(required = true, num_args = 1..=2, value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Make the devices as files of this size first; they must not exist. 8M at least
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub size: Option<Bytes>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Together with --yes: use devices that hold something, and lose it
    #[arg(long)]
    pub overwrite: bool,
}

/// What `journal show` takes.
#[derive(Args, Debug)]
pub struct JournalShowArguments {
    /// Devices of a journal, whoever uses it [default: the journal of the running server]
    #[arg(num_args = 0..=2, value_name = "DEVICE")]
    pub devices: Vec<String>,
}

/// What `journal attach` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A device of the journal that was dropped comes back by itself when it answers again. This asks it at once, or takes another \
device of the same size in its place. It is brought up to date while everything goes on; from then on either of the two is \
enough. Name both with --journal when the server is started next.

Example:
  openraid journal attach /dev/nvme2n1p3")]
pub struct JournalAttachArguments {
    /// A file, partition or drive of the same size as the other one [default: the device that was dropped]
    pub device: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Together with --yes: take a device that holds something, and lose it
    #[arg(long)]
    pub overwrite: bool,
}

/// What `journal discard` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --on the running server does it. An array that runs keeps what it has; one that has failed is asked for by its \
name, one that is nowhere by its identity (`openraid journal show` lists them).")]
pub struct JournalDiscardArguments {
    /// Name of the array, or the identity of its set
    pub array: String,
    /// Give up what the journal holds for it, for good. Without this option nothing is changed and only said what would
    /// be lost
    #[arg(long)]
    pub lost: bool,
    /// The journal is on this device and nobody uses it; may be given twice
    #[arg(long, value_name = "DEVICE")]
    pub on: Vec<String>,
    /// With --on: the other one of two devices is dead. It may have held more
    #[arg(long, requires = "on")]
    pub alone: bool,
}

/// What `journal adopt` takes.
#[derive(Args, Debug)]
pub struct JournalAdoptArguments {
    /// All devices of the journal
    #[arg(required = true, num_args = 1..=2, value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Do it: the controller that it belonged to must not use it any more
    #[arg(short, long)]
    pub yes: bool,
    /// The other one of two devices is dead: take this one alone. The other one may have held more, and is refused if it
    /// comes back
    #[arg(long)]
    pub alone: bool,
}
