//! Why a description of a set is refused.

use super::{Level, CHUNK_MIN, SECTORS_MAX};
use core::fmt;
use openraid_units::{Sectors, Slot};

/// A description that no geometry can be built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GeometryError {
    /// Too few or too many members for the level.
    Members {
        /// The requested level.
        level: Level,
        /// The requested number of members.
        members: u16,
        /// Minimum number of members of the level.
        least: u16,
        /// Maximum number of members of the level.
        most: u16,
    },
    /// RAID 0 with chunk 0.
    ChunkZero,
    /// A chunk that is not a power of two, or is below [`CHUNK_MIN`], for a level that needs this.
    Chunk {
        /// The requested level.
        level: Level,
        /// The requested chunk.
        chunk: Sectors,
    },
    /// A layout number that the level does not have.
    Layout {
        /// The requested level.
        level: Level,
        /// md's number of the requested layout.
        layout: u32,
    },
    /// RAID 0 over unequal members without a statement which of the two maps is meant.
    StripedLayout {
        /// md's number of the requested layout.
        layout: u32,
    },
    /// RAID 10 with fewer than two copies, or more copies than members.
    Copies {
        /// md's number of the requested layout.
        layout: u32,
        /// near times far copies of that layout.
        copies: u32,
        /// Members of the set.
        members: u16,
    },
    /// RAID 10 whose map would put two chunks at one place.
    Overlap {
        /// md's number of the requested layout.
        layout: u32,
        /// Members of the set.
        members: u16,
    },
    /// A list of member sizes that does not have one entry per slot.
    SizeCount {
        /// Number of sizes.
        given: usize,
        /// Members of the set.
        members: u16,
    },
    /// A member that cannot hold the smallest unit of the layout.
    SizeTooSmall {
        /// The member; `None` if the size is common to all.
        slot: Option<Slot>,
        /// Size of the member.
        size: Sectors,
        /// Minimum size for the layout.
        least: Sectors,
    },
    /// A member beyond [`SECTORS_MAX`].
    SizeTooLarge {
        /// The member; `None` if the size is common to all.
        slot: Option<Slot>,
        /// Size of the member.
        size: Sectors,
    },
    /// A set beyond [`SECTORS_MAX`].
    CapacityTooLarge {
        /// Sum of the members.
        capacity: Sectors,
    },
}

/// "member in slot 3" or "each member".
struct Whose(Option<Slot>);

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(slot) => write!(f, "the member in slot {slot}"),
            None => f.write_str("each member"),
        }
    }
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Members { level, members, least, most } => {
                write!(f, "{level} cannot have {members} members: give {least} to {most}")
            }
            Self::ChunkZero => f.write_str("RAID 0 needs a chunk size, and it is 0: give one, for example 64K"),
            Self::Chunk { level, chunk } => {
                write!(f, "{level} cannot have a chunk of {chunk}: give a power of two of at least {CHUNK_MIN} (4 KiB)")
            }
            Self::Layout { level, layout } => write_layout(f, level, layout),
            Self::StripedLayout { layout } => write!(
                f,
                "RAID 0 over members of unequal size has two possible maps, and layout {layout} says neither: \
                 `original` (arrays made before Linux 3.14, of March 2014) or `alternate` (later ones); the wrong one \
                 shows scrambled data after the end of the smallest member; to read it: `openraid copy-out --layout \
                 alternate` or `openraid serve --read-only --layout alternate`; to write it down: `mdadm --assemble \
                 --update=layout-alternate`"
            ),
            Self::Copies { layout, copies, members } => write!(
                f,
                "RAID 10 layout {layout:#x} means {copies} copies on {members} members: copies must be 2 or \
                 more, and not more than there are members"
            ),
            Self::Overlap { layout, members } => write!(
                f,
                "RAID 10 layout {layout:#x} on {members} members puts two chunks at the same place and would \
                 destroy data: use near, far or offset copies alone, or a number of members that the near copies \
                 divide"
            ),
            Self::SizeCount { given, members } => {
                write!(f, "sizes of {given} members are known, but the set has {members}: all are needed")
            }
            Self::SizeTooSmall { slot, size, least } => {
                write!(f, "{} has {size} for data, and this layout needs at least {least}: ", Whose(slot))?;
                f.write_str("use a larger member or a smaller chunk")
            }
            Self::SizeTooLarge { slot, size } => write!(
                f,
                "{} has {size} for data by its superblock, and at most {SECTORS_MAX} can be addressed: the superblock \
                 is damaged",
                Whose(slot)
            ),
            Self::CapacityTooLarge { capacity } => write!(
                f,
                "the set would have {capacity}, and the most that can be addressed is {SECTORS_MAX}: use fewer or \
                 smaller members"
            ),
        }
    }
}

fn write_layout(f: &mut fmt::Formatter<'_>, level: Level, layout: u32) -> fmt::Result {
    let allowed = match level {
        Level::Raid5 => "0 to 5",
        Level::Raid6 => "0 to 5, 8 to 10 and 16 to 20",
        _ => "near copies + 256 * far copies, with 0x10000 for offset and 0x20000 or 0x40000 for far sets",
    };
    write!(f, "{level} has no layout {layout} ({layout:#x}): the layouts are {allowed}")
}

impl core::error::Error for GeometryError {}
