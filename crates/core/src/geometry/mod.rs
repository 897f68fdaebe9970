//! Pure maps from array addresses to member addresses, for every level and layout that md knows.
//!
//! A geometry is built once from the numbers of a superblock (or of a creation) and then only answers questions. It has
//! no state, does no I/O and does not know which members are present. The maps and capacities equal md's to the sector,
//! because the kernel must be able to use the same members. Linux md is the reference, with its quirks, which are named
//! in their places.
//!
//! It must never guess: a description that md refuses, or whose map would put two blocks at one place, is an error.
//! Numbers of a superblock may be hostile: they end in a [`GeometryError`], never in a panic. The caller guarantees the
//! addresses handed to a built geometry: one outside the set is a bug and panics.
//!
//! Allocation happens in [`Geometry::new`] only.

pub(crate) mod cache_units;
mod divisor;
mod error;
mod linear;
mod mirror;
mod parity;
pub(crate) mod reshape;
mod rotation;
mod row_segments;
pub(crate) mod shape;
mod striped;
pub(crate) mod takeover;

pub use divisor::Divisor;
pub use error::GeometryError;
pub use linear::Linear;
pub use mirror::{CopyIter, Mirror};
pub use parity::{Parity, Row, StripeRole};
pub use rotation::Rotation;
pub use row_segments::{RowSegment, Split};
pub use striped::{Striped, StripedLayout};

use crate::limits::MEMBERS_MAX;
use crate::slot_set::SlotSet;
use core::fmt;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// Maximum number of sectors of a member or a set: 2^63 bytes, the end of a signed 64-bit byte offset, which the kernel
/// and every file system use. It keeps all sums over [`MEMBERS_MAX`] members below 2^64.
pub const SECTORS_MAX: Sectors = Sectors(1 << 54);

/// Smallest chunk of levels 4, 5, 6 and 10: one page of 4 KiB, as md.
pub const CHUNK_MIN: Sectors = Sectors::kib(4);

/// The preferred unit of requests if the level has no chunk: 4 KiB, one page and the physical block of today's drives.
pub const UNIT_WITHOUT_CHUNK: Sectors = Sectors::kib(4);

const _: () = assert!(SECTORS_MAX.0.checked_mul(MEMBERS_MAX as u64).is_some());
const _: () = assert!(MEMBERS_MAX <= 253, "slots and roles are kept in bytes, next to two marks");

/// A contiguous piece on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// The slot of the member.
    pub slot: Slot,
    /// Its start in the member's data area.
    pub lba: MemberLba,
    /// Its length, never zero.
    pub len: Sectors,
}

/// The arrangement of data over members, by its redundancy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// One member, address by address; no metadata.
    Passthrough,
    /// Members one after the other (md level -1).
    Linear,
    /// Chunks in turn over all members, no redundancy.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// XOR parity on the last member.
    Raid4,
    /// XOR parity, one chunk of every stripe.
    Raid5,
    /// P and Q parity, two chunks of every stripe.
    Raid6,
    /// Chunks in turn, each with copies on other members.
    Raid10,
}

impl Level {
    /// The level that md's superblock means by this number.
    #[must_use]
    pub const fn from_md(number: i32) -> Option<Self> {
        match number {
            -1 => Some(Self::Linear),
            0 => Some(Self::Raid0),
            1 => Some(Self::Raid1),
            4 => Some(Self::Raid4),
            5 => Some(Self::Raid5),
            6 => Some(Self::Raid6),
            10 => Some(Self::Raid10),
            _ => None,
        }
    }
    /// md's number; a pass-through has none.
    #[must_use]
    pub const fn md_number(self) -> Option<i32> {
        match self {
            Self::Passthrough => None,
            Self::Linear => Some(-1),
            Self::Raid0 => Some(0),
            Self::Raid1 => Some(1),
            Self::Raid4 => Some(4),
            Self::Raid5 => Some(5),
            Self::Raid6 => Some(6),
            Self::Raid10 => Some(10),
        }
    }
    /// Minimum number of members, as in md.
    #[must_use]
    pub const fn members_min(self) -> u16 {
        match self {
            Self::Passthrough | Self::Linear | Self::Raid0 | Self::Raid1 => 1,
            Self::Raid4 | Self::Raid5 | Self::Raid10 => 2,
            Self::Raid6 => 4,
        }
    }
    /// Maximum number of members.
    #[must_use]
    pub const fn members_max(self) -> u16 {
        match self {
            Self::Passthrough => 1,
            _ => MEMBERS_MAX,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passthrough => "pass-through",
            Self::Linear => "linear",
            Self::Raid0 => "RAID 0",
            Self::Raid1 => "RAID 1",
            Self::Raid4 => "RAID 4",
            Self::Raid5 => "RAID 5",
            Self::Raid6 => "RAID 6",
            Self::Raid10 => "RAID 10",
        })
    }
}

/// The input of a geometry: the unchecked numbers of a superblock.
#[derive(Clone, Copy, Debug)]
pub struct SetSpec<'a> {
    /// Level of the set.
    pub level: Level,
    /// Number of slots, missing ones included.
    pub members: u16,
    /// Chunk. No meaning for a pass-through and RAID 1; zero is allowed for linear and means no rounding.
    pub chunk: Sectors,
    /// md's layout number. Read for levels 0 (when members are unequal), 5, 6 and 10.
    pub layout: u32,
    /// The part of each member that is used, for the pass-through and levels 1, 4, 5, 6 and 10: the superblock's
    /// `size`.
    pub member_size: Sectors,
    /// The data area of each member by slot, for linear and RAID 0 (there all members must be known); not
    /// read for other levels.
    pub member_sizes: &'a [Sectors],
}

impl SetSpec<'_> {
    /// Check that the level can have this number of members.
    fn check_members(&self) -> Result<(), GeometryError> {
        let (least, most) = (self.level.members_min(), self.level.members_max());
        if self.members < least || self.members > most {
            return Err(GeometryError::Members { level: self.level, members: self.members, least, most });
        }
        Ok(())
    }
    /// Check that `member_size` is possible and at least `least`.
    fn check_member_size(&self, least: Sectors) -> Result<(), GeometryError> {
        check_size(self.member_size, least, None)
    }
    /// Check that there is one size for every slot, and that each is possible and at least `least`.
    fn check_member_sizes(&self, least: Sectors) -> Result<(), GeometryError> {
        if self.member_sizes.len() != usize::from(self.members) {
            return Err(GeometryError::SizeCount { given: self.member_sizes.len(), members: self.members });
        }
        for (slot, size) in (0..).zip(self.member_sizes) {
            check_size(*size, least, Some(Slot(slot)))?;
        }
        Ok(())
    }
    /// Check that levels 4, 5, 6 and 10 can have the chunk. Returns its logarithm.
    fn check_chunk_power(&self) -> Result<u32, GeometryError> {
        if !self.chunk.0.is_power_of_two() || self.chunk < CHUNK_MIN {
            return Err(GeometryError::Chunk { level: self.level, chunk: self.chunk });
        }
        Ok(self.chunk.0.trailing_zeros())
    }
}

fn check_size(size: Sectors, least: Sectors, slot: Option<Slot>) -> Result<(), GeometryError> {
    if size < least {
        return Err(GeometryError::SizeTooSmall { slot, size, least });
    }
    if size > SECTORS_MAX {
        return Err(GeometryError::SizeTooLarge { slot, size });
    }
    Ok(())
}

fn check_capacity(capacity: Sectors) -> Result<Sectors, GeometryError> {
    if capacity > SECTORS_MAX {
        return Err(GeometryError::CapacityTooLarge { capacity });
    }
    Ok(capacity)
}

/// One member, address by address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passthrough {
    capacity: Sectors,
}

impl Passthrough {
    fn new(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        spec.check_member_size(Sectors(1))?;
        Ok(Self { capacity: spec.member_size })
    }
    /// Size of the set.
    #[must_use]
    pub const fn capacity(&self) -> Sectors {
        self.capacity
    }
    /// The piece from `at` to the end of the member.
    #[must_use]
    pub fn map(&self, at: SetLba) -> Fragment {
        assert!(at.0 < self.capacity.0, "{at:?} is outside a pass-through of {}", self.capacity);
        Fragment { slot: Slot(0), lba: MemberLba(at.0), len: Sectors(self.capacity.0 - at.0) }
    }
}

/// Maximum number of copies of a mirror whose places can be named together, and which the journal can protect.
pub(crate) const COPIES_MAX: usize = 16;

/// The map of one redundancy set, or of the outer stripe of a nested array (where a slot is a span).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Geometry {
    /// One member as it is.
    Passthrough(Passthrough),
    /// Members one after the other.
    Linear(Linear),
    /// RAID 0.
    Striped(Striped),
    /// RAID 1 and 10.
    Mirror(Mirror),
    /// RAID 4, 5 and 6.
    Parity(Parity),
}

impl Geometry {
    /// Build the map.
    ///
    /// # Errors
    /// The value that mathematics or md refuses, and the allowed ones.
    pub fn new(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        spec.check_members()?;
        match spec.level {
            Level::Passthrough => Passthrough::new(spec).map(Self::Passthrough),
            Level::Linear => Linear::new(spec).map(Self::Linear),
            Level::Raid0 => Striped::new(spec).map(Self::Striped),
            Level::Raid1 | Level::Raid10 => Mirror::new(spec).map(Self::Mirror),
            Level::Raid4 | Level::Raid5 | Level::Raid6 => Parity::new(spec).map(Self::Parity),
        }
    }
    /// The places of the first part of an extent's data on the members, one for each copy, and the length of that part. A mirror has
    /// at most [`COPIES_MAX`] copies.
    pub(crate) fn places_of(&self, at: SetLba, left: Sectors) -> ([Option<(Slot, MemberLba)>; COPIES_MAX], Sectors) {
        let mut places = [None; COPIES_MAX];
        let one = match self {
            Self::Passthrough(g) => g.map(at),
            Self::Linear(g) => g.map(at),
            Self::Striped(g) => g.map(at),
            Self::Mirror(g) => {
                let mut len = left;
                for (place, copy) in places.iter_mut().zip(g.copies(at)) {
                    *place = Some((copy.slot, copy.lba));
                    len = len.min(copy.len);
                }
                return (places, len);
            }
            Self::Parity(g) => {
                let (stripe, column, within) = g.locate(at);
                let (slot, lba) = (g.slot_of(stripe, column), g.member_lba(stripe, within));
                Fragment { slot, lba, len: g.chunk() - within }
            }
        };
        places[0] = Some((one.slot, one.lba));
        (places, one.len.min(left))
    }

    /// Size of the set, exactly md's.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        match self {
            Self::Passthrough(g) => g.capacity(),
            Self::Linear(g) => g.capacity(),
            Self::Striped(g) => g.capacity(),
            Self::Mirror(g) => g.capacity(),
            Self::Parity(g) => g.capacity(),
        }
    }
    /// Number of slots, missing ones included.
    #[must_use]
    pub fn members(&self) -> u16 {
        match self {
            Self::Passthrough(_) => 1,
            Self::Linear(g) => g.members(),
            Self::Striped(g) => g.members(),
            Self::Mirror(g) => g.members(),
            Self::Parity(g) => g.members(),
        }
    }
    /// Is all data available if exactly these slots are missing? Slots that the set does not have are ignored.
    #[must_use]
    pub fn survives(&self, missing: SlotSet) -> bool {
        let missing = missing & SlotSet::first_n(self.members());
        match self {
            Self::Passthrough(_) | Self::Linear(_) | Self::Striped(_) => missing.is_empty(),
            Self::Mirror(g) => g.survives(missing),
            Self::Parity(g) => missing.len() <= u32::from(g.parities()),
        }
    }
    /// Number of members that may be lost in the worst case, whichever they are.
    #[must_use]
    pub fn losses_survived(&self) -> u16 {
        self.losses_survived_without(SlotSet::EMPTY)
    }
    /// Number of further members that may be lost in the worst case, if these are missing already.
    #[must_use]
    pub fn losses_survived_without(&self, missing: SlotSet) -> u16 {
        match self {
            Self::Passthrough(_) | Self::Linear(_) | Self::Striped(_) => 0,
            Self::Mirror(g) => g.losses_survived_without(missing),
            Self::Parity(g) => {
                let missing = (missing & SlotSet::first_n(self.members())).len();
                g.parities().saturating_sub(u16::try_from(missing).expect("a set has few slots"))
            }
        }
    }
    /// Could the set, without these members, lose one more and still have some of its data?
    #[must_use]
    pub fn is_redundant_without(&self, missing: SlotSet) -> bool {
        match self {
            Self::Passthrough(_) | Self::Linear(_) | Self::Striped(_) => false,
            Self::Mirror(g) => g.is_redundant_without(missing),
            Self::Parity(g) => (missing & SlotSet::first_n(g.members())).len() < u32::from(g.parities()),
        }
    }
    /// The write that uses every member once: the preferred size of large requests (md's `io_opt`).
    #[must_use]
    pub fn full_stripe(&self) -> Sectors {
        match self {
            Self::Passthrough(_) | Self::Linear(_) => UNIT_WITHOUT_CHUNK,
            Self::Striped(g) => g.full_stripe(),
            Self::Mirror(g) => g.full_stripe(),
            Self::Parity(g) => g.full_stripe(),
        }
    }
    /// The chunk: a request within one goes to one member (md's `io_min`). [`UNIT_WITHOUT_CHUNK`] if the level has
    /// none.
    #[must_use]
    pub fn io_min(&self) -> Sectors {
        match self {
            Self::Passthrough(_) | Self::Linear(_) => UNIT_WITHOUT_CHUNK,
            Self::Striped(g) => g.chunk(),
            Self::Mirror(g) => g.chunk().unwrap_or(UNIT_WITHOUT_CHUNK),
            Self::Parity(g) => g.chunk(),
        }
    }
}
