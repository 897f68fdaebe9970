//! Models of drives: the completion times of commands.
//!
//! A model has no payload and no faults. It has the queue, the mechanism or the dies, the caches and the link of one
//! drive. It has no clock. Its user calls [`VirtualDrive::advance`] at the times that [`VirtualDrive::next`] returns, and
//! before submitting a command at a later time. The simulator uses virtual time, the service real time. Parameters come
//! from `openraid-models`. A model never uses the figures of the data sheet, which are for comparison. Times are whole
//! nanoseconds, and chance comes from a seeded generator. The same seed gives the same run.

#![forbid(unsafe_code)]

mod constant;
pub mod disk;
mod future_completions;
pub mod one_drive_load;
pub mod random;
pub mod ssd;

pub use constant::ConstantDrive;
pub use disk::Disk;
pub use future_completions::Outbox;
pub use random::Random;
pub use ssd::Ssd;

use openraid_core::actions::DriveCommand;
use openraid_models::{DriveKind, DriveProfile};
use openraid_units::{Instant, Nanos, Tag};
use std::sync::Arc;

/// Commands that a drive was given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CommandCounts {
    pub reads: u64,
    pub writes: u64,
    pub sectors_read: u64,
    pub sectors_written: u64,
}

/// Parts of a drive that commands pass one after the other, each with its working time. The time of a part that the
/// model does not have is zero.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passing {
    /// Time in which the firmware takes no other command.
    pub firmware: Nanos,
    /// The path through the drive's controller: out of the drive, into the drive.
    pub path: [Nanos; 2],
    /// The drive's own link: out of the drive, into the drive; both in the first if they share the link.
    pub link: [Nanos; 2],
}

/// A drive in virtual time.
pub trait VirtualDrive {
    /// Its size in sectors of 512 bytes.
    fn sectors(&self) -> u64;
    /// Submit a command. Its range must be within the drive. Its payload is ignored.
    fn submit(&mut self, now: Instant, command: &DriveCommand);
    /// The time at which `advance` next has work; `None` if no command will complete before another is submitted.
    fn next(&self) -> Option<Instant>;
    /// Advance the time to `now`. Commands that end by then at the drive's interface are added to `done` in order.
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>);
    /// Time for which the mechanism or the dies have worked by `now`. For a drive with dies, the mean over the dies.
    fn busy(&self, now: Instant) -> Nanos;
    /// Acknowledged sectors that are not yet at their final place: in the write buffer, in one-bit cells, or in the cache
    /// of a shingled disk.
    fn held(&self, now: Instant) -> u64 {
        let _ = now;
        0
    }
    /// The work of the drive's other parts for the given commands. Their times follow from the commands.
    fn passing(&self, given: &CommandCounts) -> Passing {
        let _ = given;
        Passing::default()
    }
}

/// The fill state of an SSD.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DriveState {
    /// The whole drive has been written at least once, so collecting is active.
    #[default]
    Steady,
    /// The drive has not been written full: it collects nothing until it is.
    Fresh,
}

/// The differences between drives of one profile.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// Write cache on or off; `None` keeps the factory setting.
    pub write_cache: Option<bool>,
    /// Read-ahead on or off; `None` keeps the factory setting. A drive that does not read ahead keeps what it has read.
    pub read_ahead: Option<bool>,
    /// The fill state of an SSD.
    pub state: DriveState,
    /// The run's seed.
    pub seed: u64,
    /// Number of the drive in the run: it determines the drive's phase and its random choices.
    pub index: u64,
}

/// A prepared profile: values that drives of one profile share are computed once.
#[derive(Clone, Debug)]
pub struct DriveKit {
    profile: Arc<DriveProfile>,
    tables: Tables,
}

#[derive(Clone, Debug)]
enum Tables {
    Disk(Arc<disk::DiskTables>),
    Ssd(Arc<ssd::SsdTables>),
    Constant(Arc<[u64]>),
}

impl DriveKit {
    /// Prepare a profile.
    #[must_use]
    pub fn new(profile: &DriveProfile) -> Self {
        let tables = match &profile.kind {
            DriveKind::Disk(disk) => Tables::Disk(Arc::new(disk::DiskTables::new(disk, profile.capacity.value))),
            DriveKind::Ssd(ssd) => Tables::Ssd(Arc::new(ssd::SsdTables::new(ssd, profile.capacity.value))),
            DriveKind::Constant(_) => Tables::Constant(constant::exponential_table()),
        };
        Self { profile: Arc::new(profile.clone()), tables }
    }

    /// A drive of this profile.
    ///
    /// # Panics
    /// Never: the tables are those of the profile's kind.
    #[must_use]
    pub fn build(&self, options: &DriveOptions) -> AnyDrive {
        let mut random = Random::derived(options.seed, options.index);
        let capacity = self.profile.capacity.value;
        match (&self.profile.kind, &self.tables) {
            (_, Tables::Disk(tables)) => AnyDrive::Disk(Box::new(Disk::new(Arc::clone(tables), options, &mut random))),
            (_, Tables::Ssd(tables)) => AnyDrive::Ssd(Box::new(Ssd::new(Arc::clone(tables), options, random))),
            (DriveKind::Constant(profile), Tables::Constant(table)) => {
                AnyDrive::Constant(Box::new(ConstantDrive::new(profile, capacity, Arc::clone(table), random)))
            }
            _ => unreachable!("the tables are those of the profile's kind"),
        }
    }
}

/// A drive of any kind.
#[derive(Clone, Debug)]
pub enum AnyDrive {
    /// A hard disk.
    Disk(Box<Disk>),
    /// A solid-state drive.
    Ssd(Box<Ssd>),
    /// A drive with synthetic service times.
    Constant(Box<ConstantDrive>),
}

impl VirtualDrive for AnyDrive {
    fn sectors(&self) -> u64 {
        match self {
            Self::Disk(drive) => drive.sectors(),
            Self::Ssd(drive) => drive.sectors(),
            Self::Constant(drive) => drive.sectors(),
        }
    }
    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        match self {
            Self::Disk(drive) => drive.submit(now, command),
            Self::Ssd(drive) => drive.submit(now, command),
            Self::Constant(drive) => drive.submit(now, command),
        }
    }
    #[inline]
    fn next(&self) -> Option<Instant> {
        match self {
            Self::Disk(drive) => drive.next(),
            Self::Ssd(drive) => drive.next(),
            Self::Constant(drive) => drive.next(),
        }
    }
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        match self {
            Self::Disk(drive) => drive.advance(now, done),
            Self::Ssd(drive) => drive.advance(now, done),
            Self::Constant(drive) => drive.advance(now, done),
        }
    }
    fn busy(&self, now: Instant) -> Nanos {
        match self {
            Self::Disk(drive) => drive.busy(now),
            Self::Ssd(drive) => drive.busy(now),
            Self::Constant(drive) => drive.busy(now),
        }
    }
    fn held(&self, now: Instant) -> u64 {
        match self {
            Self::Disk(drive) => drive.held(now),
            Self::Ssd(drive) => drive.held(now),
            Self::Constant(drive) => drive.held(now),
        }
    }
    fn passing(&self, given: &CommandCounts) -> Passing {
        match self {
            Self::Disk(drive) => drive.passing(given),
            Self::Ssd(drive) => drive.passing(given),
            Self::Constant(drive) => drive.passing(given),
        }
    }
}
