//! Drives of the simulation: their kinds, answer times and content.

pub mod drive_faults;
pub mod image;
pub mod lack_of_room;
pub mod memory;
pub mod null;

use openraid_core::events::DriveInfo;
use openraid_units::{BlockSize, Nanos, Sectors};

use crate::random::Random;
pub use drive_faults::{Defect, Faults, LateCommands, Trap, Wrong, WrongAnswer};
pub use image::{FreshContent, Image};
pub use lack_of_room::DriveRoom;
pub use memory::MemoryDrive;

/// The answer time of a drive: a uniform random value, so that commands overtake each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// Least time.
    pub least: Nanos,
    /// Greatest time.
    pub most: Nanos,
    /// All times are multiples of this, so that some completions coincide.
    pub grain: Nanos,
}

impl Latency {
    /// A flash drive: 20 to 200 microseconds.
    pub const FLASH: Self =
        Self { least: Nanos::from_micros(20), most: Nanos::from_micros(200), grain: Nanos::from_micros(5) };
    /// A disk: 1 to 20 milliseconds.
    pub const SPINDLE: Self =
        Self { least: Nanos::from_millis(1), most: Nanos::from_millis(20), grain: Nanos::from_micros(100) };

    /// The time of one command.
    pub fn draw(&self, random: &mut Random) -> Nanos {
        let grains = random.between(self.least.get(), self.most.get()) / self.grain.get().max(1);
        Nanos(grains * self.grain.get().max(1))
    }
}

/// The specification of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveSpec {
    pub capacity: Sectors,
    /// Smallest unit of a command.
    pub block: BlockSize,
    /// Service times.
    pub latency: Latency,
    /// The time of a flush as a multiple of that of another command.
    pub flush_times: u64,
    /// Whether the drive is a disk.
    pub rotational: bool,
    /// Whether the drive accepts discards.
    pub discard: bool,
    /// Whether a discarded range reads as zero.
    pub discard_zeroes: bool,
    /// Whether the drive accepts the command that writes zeroes.
    pub write_zeroes: bool,
    /// Whether the drive loses unflushed writes in a power cut.
    pub volatile_cache: bool,
    /// The content of unwritten places.
    pub fresh: FreshContent,
    /// How long its storage keeps a write that has no room before it refuses the write.
    pub room_wait: Nanos,
    /// Whether its storage may keep flushes and discards as well.
    pub flush_waits: bool,
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
            fresh: FreshContent::Zeroes,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        }
    }

    /// The description that the controller gets with the drive.
    #[must_use]
    pub const fn info(&self) -> DriveInfo {
        DriveInfo {
            capacity: self.capacity,
            block: self.block,
            rotational: self.rotational,
            discard: self.discard,
            discard_zeroes: self.discard_zeroes,
            write_zeroes: self.write_zeroes,
            room_wait: self.room_wait,
            flush_waits: self.flush_waits,
        }
    }
}
