//! Models of drives: when a command that is given now will be done.
//!
//! A model has no payload and no faults; it has the queue, the mechanism or the dies, the caches and the link of one
//! drive. It knows no clock: its user calls [`DriveModel::advance`] at the times that [`DriveModel::next`] gives and
//! before submitting anything at a later time. The simulator gives it virtual time, the service real time. Parameters
//! come from `openraid-models`. A model never uses the figures of the data sheet, which are for comparison. Times are
//! whole nanoseconds, chance comes from a seeded generator, and the same seed is the same run.

#![forbid(unsafe_code)]

mod constant;
pub mod disk;
mod outbox;
pub mod random;
pub mod ssd;
pub mod trial;

pub use constant::ConstantDrive;
pub use disk::Disk;
pub use outbox::Outbox;
pub use random::Random;
pub use ssd::Ssd;

use openraid_core::actions::DriveCommand;
use openraid_models::{DriveKind, DriveProfile};
use openraid_units::{Instant, Nanos, Tag};
use std::sync::Arc;

/// Commands that a drive was given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Given {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Sectors read.
    pub sectors_read: u64,
    /// Sectors written.
    pub sectors_written: u64,
}

/// Parts of a drive that commands pass one after the other, with the time for which each has worked. A part that the
/// model does not have has not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passing {
    /// Time for which the firmware takes no other command.
    pub firmware: Nanos,
    /// The way through the drive's controller: out of the drive, into it.
    pub path: [Nanos; 2],
    /// The drive's own link: out of the drive, into it; both in the first where they share it.
    pub link: [Nanos; 2],
}

/// A drive in virtual time.
pub trait DriveModel {
    /// Its size in sectors of 512 bytes.
    fn sectors(&self) -> u64;
    /// A command arrives. Its range must be within the drive; its payload is not looked at.
    fn submit(&mut self, now: Instant, command: &DriveCommand);
    /// When `advance` has something to do; none if nothing will complete before more is submitted.
    fn next(&self) -> Option<Instant>;
    /// Time passes until `now`; commands that end by then, at the drive's interface, are added to `done` in order.
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>);
    /// Time for which the mechanism or the dies have worked by `now`; for a drive with dies, their sum over the number of
    /// dies.
    fn busy(&self, now: Instant) -> Nanos;
    /// Sectors that it has acknowledged and that are not where they stay yet: in its write buffer, or in one-bit cells.
    fn held(&self, now: Instant) -> u64 {
        let _ = now;
        0
    }
    /// The work of its other parts for the given commands: their times follow from the commands.
    fn passing(&self, given: &Given) -> Passing {
        let _ = given;
        Passing::default()
    }
}

/// How full an SSD has been before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DriveState {
    /// Written over completely at least once, so that collecting is at work.
    #[default]
    Steady,
    /// Not yet written full: nothing has to be collected until it is.
    Fresh,
}

/// The differences between drives of one profile.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// Write cache on or off; `None` leaves it as the factory did.
    pub write_cache: Option<bool>,
    /// How full it has been.
    pub state: DriveState,
    /// The run's seed.
    pub seed: u64,
    /// Which drive of the run this is: decides its phase and its chance.
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
    /// Make a profile ready.
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
    /// With synthetic service times.
    Constant(Box<ConstantDrive>),
}

impl DriveModel for AnyDrive {
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
    fn passing(&self, given: &Given) -> Passing {
        match self {
            Self::Disk(drive) => drive.passing(given),
            Self::Ssd(drive) => drive.passing(given),
            Self::Constant(drive) => drive.passing(given),
        }
    }
}
