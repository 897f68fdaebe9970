//! `openraid journal`.

use crate::quantity;
use clap::{Args, Subcommand};
use openraid_units::Bytes;

/// What `journal` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A journal stores writes durably before they reach the members: writes are as fast as its device, and no acknowledged write is \
lost in a power failure. One journal serves all arrays of a server.

Example:
  openraid journal create /dev/nvme0n1p3 /dev/nvme1n1p3
  openraid serve data --journal /dev/nvme0n1p3 --journal /dev/nvme1n1p3
  openraid set data write.cache=journal")]
pub struct JournalArguments {
    /// What to do with a journal
    #[command(subcommand)]
    pub verb: JournalVerb,
}

/// The verbs for a journal.
#[derive(Subcommand, Debug)]
pub enum JournalVerb {
    /// Create an empty journal on one device, or mirrored on two of the same size
    Create(JournalCreateArguments),
    /// Show the content of a journal: the running server's, or one on given devices
    Show(JournalShowArguments),
    /// Attach a device to the running server's journal: the dropped one, or a new one in its place
    Attach(JournalAttachArguments),
    /// Discard the journal's entries of an array; those acknowledged writes are lost
    Discard(JournalDiscardArguments),
    /// Adopt a journal of another controller, or one whose registry was lost
    Adopt(JournalAdoptArguments),
}

/// What `journal create` takes.
#[derive(Args, Debug)]
pub struct JournalCreateArguments {
    /// One or two files, partitions or drives; with two, either alone is enough
    #[arg(required = true, num_args = 1..=2, value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Create the devices as files of this size, at least 8M; they must not exist
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub size: Option<Bytes>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: use devices that hold data; it is lost
    #[arg(long)]
    pub overwrite: bool,
}

/// What `journal show` takes.
#[derive(Args, Debug)]
pub struct JournalShowArguments {
    /// Devices of a journal [default: the journal of the running server]
    #[arg(num_args = 0..=2, value_name = "DEVICE")]
    pub devices: Vec<String>,
}

/// What `journal attach` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A dropped journal device is attached again automatically when it answers. This verb tries at once, or takes another device of \
the same size in its place. The device is brought up to date while the arrays are served. At the next start of the server, \
name both devices with --journal.

Example:
  openraid journal attach /dev/nvme2n1p3")]
pub struct JournalAttachArguments {
    /// A file, partition or drive of the same size as the other device [default: the dropped device]
    pub device: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: use a device that holds data; it is lost
    #[arg(long)]
    pub overwrite: bool,
}

/// What `journal discard` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --on, the running server discards the entries. The entries of a running array cannot be discarded. Name a failed array by its name, and an array \
whose members are gone by its identity (`openraid journal show` lists both).")]
pub struct JournalDiscardArguments {
    /// Name of the array, or the identity of its set
    pub array: String,
    /// Discard the entries for good. Without this option the command only prints what would be lost
    #[arg(long)]
    pub lost: bool,
    /// The journal is on this device and not in use; may be given twice
    #[arg(long, value_name = "DEVICE")]
    pub on: Vec<String>,
    /// With --on: the other device is dead. It may have held more entries
    #[arg(long, requires = "on")]
    pub alone: bool,
}

/// What `journal adopt` takes.
#[derive(Args, Debug)]
pub struct JournalAdoptArguments {
    /// All devices of the journal
    #[arg(required = true, num_args = 1..=2, value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Do it. The former controller must not use the journal any more
    #[arg(short, long)]
    pub yes: bool,
    /// The other device is dead: use this one alone. The other device may have held more entries, and is refused if it
    /// returns
    #[arg(long)]
    pub alone: bool,
}
