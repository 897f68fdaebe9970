//! Drives of the simulation: their kinds, their answer times, their content.

pub mod fault;
pub mod image;
pub mod memory;
pub mod null;

use openraid_core::events::DriveInfo;
use openraid_units::{BlockSize, Nanos, Sectors};

use crate::random::Random;
pub use fault::{Defect, Faults, Late, Silent, Trap, Wrong};
pub use image::{Fresh, Image};
pub use memory::MemoryDrive;

/// How long a drive takes: a uniform choice, so that commands overtake each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// The least.
    pub least: Nanos,
    /// The most.
    pub most: Nanos,
    /// All times are multiples of this, so that completions also come together.
    pub grain: Nanos,
}

impl Latency {
    /// A drive of flash: 20 to 200 microseconds.
    pub const FLASH: Self =
        Self { least: Nanos::from_micros(20), most: Nanos::from_micros(200), grain: Nanos::from_micros(5) };
    /// A drive that spins: 1 to 20 milliseconds.
    pub const SPINDLE: Self =
        Self { least: Nanos::from_millis(1), most: Nanos::from_millis(20), grain: Nanos::from_micros(100) };

    /// The time of one command.
    pub fn draw(&self, random: &mut Random) -> Nanos {
        let grains = random.between(self.least.get(), self.most.get()) / self.grain.get().max(1);
        Nanos(grains * self.grain.get().max(1))
    }
}

/// A drive to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveSpec {
    /// Size.
    pub capacity: Sectors,
    /// Smallest unit of a command.
    pub block: BlockSize,
    /// Service times.
    pub latency: Latency,
    /// A flush takes this many times as long as another command.
    pub flush_times: u64,
    /// Does it spin?
    pub rotational: bool,
    /// Does it take discards?
    pub discard: bool,
    /// Does a discarded range read as zero?
    pub discard_zeroes: bool,
    /// Does it take the command that writes zeroes?
    pub write_zeroes: bool,
    /// Does it lose writes that were not flushed when power goes?
    pub volatile_cache: bool,
    /// The content of unwritten places.
    pub fresh: Fresh,
}

impl DriveSpec {
    /// A flash drive of 512-byte blocks with a volatile cache and all optional commands.
    #[must_use]
    pub const fn new(capacity: Sectors) -> Self {
        Self {
            capacity,
            block: BlockSize::B512,
            latency: Latency::FLASH,
            flush_times: 1,
            rotational: false,
            discard: true,
            discard_zeroes: true,
            write_zeroes: true,
            volatile_cache: true,
            fresh: Fresh::Zeroes,
        }
    }

    /// The description for the controller when the drive is attached.
    #[must_use]
    pub const fn info(&self) -> DriveInfo {
        DriveInfo {
            capacity: self.capacity,
            block: self.block,
            rotational: self.rotational,
            discard: self.discard,
            discard_zeroes: self.discard_zeroes,
            write_zeroes: self.write_zeroes,
        }
    }
}
