//! Levels and layouts as numbers in a superblock.

use crate::layout_words::named_layouts;
use core::fmt;

/// The levels of Linux md that this crate decodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MdLevel {
    /// Members in sequence.
    Linear,
    /// Stripes without redundancy.
    Raid0,
    /// Copies.
    Raid1,
    /// Stripes with parity on one fixed member.
    Raid4,
    /// Stripes with rotating parity.
    Raid5,
    /// Stripes with P and Q.
    Raid6,
    /// Stripes of copies on any number of members.
    Raid10,
}

impl MdLevel {
    /// Every level.
    pub const ALL: [Self; 7] =
        [Self::Linear, Self::Raid0, Self::Raid1, Self::Raid4, Self::Raid5, Self::Raid6, Self::Raid10];

    /// The level for the number in a superblock.
    #[must_use]
    pub const fn from_number(number: i32) -> Option<Self> {
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
    /// The number in a superblock.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Linear => -1,
            Self::Raid0 => 0,
            Self::Raid1 => 1,
            Self::Raid4 => 4,
            Self::Raid5 => 5,
            Self::Raid6 => 6,
            Self::Raid10 => 10,
        }
    }
    /// Does the set survive the failure of one member?
    #[must_use]
    pub const fn is_redundant(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid0)
    }
    /// Does the level divide data into chunks? For linear, `chunk` is only the unit to which member sizes are rounded.
    #[must_use]
    pub const fn is_striped(self) -> bool {
        !matches!(self, Self::Linear | Self::Raid1)
    }
    /// The minimum number of members with which md runs this level.
    #[must_use]
    pub const fn members_min(self) -> u32 {
        match self {
            Self::Linear | Self::Raid0 | Self::Raid1 => 1,
            Self::Raid4 | Self::Raid5 | Self::Raid10 => 2,
            Self::Raid6 => 4,
        }
    }
    /// Does md know this layout number for this level and this number of members? Levels whose layout has no meaning
    /// (linear, 1, 4) accept any number. The layout of RAID 0 is checked with its feature bit, not here.
    #[must_use]
    pub fn layout_is_known(self, layout: u32, members: u32) -> bool {
        match self {
            Self::Linear | Self::Raid0 | Self::Raid1 | Self::Raid4 => true,
            Self::Raid5 | Self::Raid6 => named_layouts(self).any(|known| known.number == layout),
            Self::Raid10 => Raid10Layout::from_number(layout).is_some_and(|it| it.copies() <= members),
        }
    }
}

/// Prints mdadm's name: `raid5`, `linear` and so on.
impl fmt::Display for MdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear => f.write_str("linear"),
            level => write!(f, "raid{}", level.number()),
        }
    }
}

/// The order of chunks in a RAID 0 after the end of its smaller members. Kernels before 3.14 and later kernels use
/// different orders and did not record the order on disk. Since 5.4 the superblock records it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Raid0Layout {
    /// The order of the kernels before 3.14.
    Original,
    /// The order of the kernels since 3.14.
    Alternate,
}

impl Raid0Layout {
    /// The layout for the number in a superblock.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Original),
            2 => Some(Self::Alternate),
            _ => None,
        }
    }
    /// The number in a superblock.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Original => 1,
            Self::Alternate => 2,
        }
    }
}

/// The members over which the far copies of a RAID 10 rotate. md reads this field, but no option of mdadm sets it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FarSets {
    /// Over all members.
    Whole,
    /// Within groups of `members / far` members.
    Divided,
    /// Within groups of `near * far` members.
    ByCopies,
}

/// The copies of a RAID 10.
///
/// ```text
///  31        19 18      17   16    15     8 7      0
///  [ must be 0 | far sets |offset| far    | near   ]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Raid10Layout {
    /// Number of copies in neighbouring chunks of one row.
    pub near: u8,
    /// Number of copies of each row in other parts of the members.
    pub far: u8,
    /// Are the far copies in the next row, instead of the next part of the member?
    pub offset: bool,
    /// The members over which the far copies rotate.
    pub far_sets: FarSets,
}

impl Raid10Layout {
    const OFFSET: u32 = 1 << 16;
    const FAR_SETS_SHIFT: u32 = 17;

    /// The copies for the number in a superblock. `None` if bits without a meaning are set, or if there would be fewer
    /// than two copies.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        let [near, far, _, _] = number.to_le_bytes();
        let far_sets = match number >> Self::FAR_SETS_SHIFT {
            0 => FarSets::Whole,
            1 => FarSets::Divided,
            2 => FarSets::ByCopies,
            _ => return None,
        };
        let layout = Self { near, far, offset: number & Self::OFFSET != 0, far_sets };
        if layout.copies() < 2 {
            None
        } else {
            Some(layout)
        }
    }
    /// The number in a superblock.
    #[must_use]
    pub const fn number(self) -> u32 {
        let far_sets = match self.far_sets {
            FarSets::Whole => 0,
            FarSets::Divided => 1,
            FarSets::ByCopies => 2,
        };
        self.near as u32
            | (self.far as u32) << 8
            | if self.offset { Self::OFFSET } else { 0 }
            | far_sets << Self::FAR_SETS_SHIFT
    }
    /// Number of copies of every chunk.
    #[must_use]
    pub const fn copies(self) -> u32 {
        self.near as u32 * self.far as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_copies_go_there_and_back() {
        for level in MdLevel::ALL {
            assert_eq!(MdLevel::from_number(level.number()), Some(level));
        }
        for number in [0x102, 0x201, 0x10201, 0x103, 0x301, 0x202, 0x20201, 0x40201] {
            assert_eq!(Raid10Layout::from_number(number).map(Raid10Layout::number), Some(number));
        }
    }

    #[test]
    fn layouts_without_a_second_copy_or_with_more_copies_than_members_are_unknown() {
        assert_eq!(Raid10Layout::from_number(0x101), None);
        assert_eq!(Raid10Layout::from_number(0x100), None);
        assert_eq!(Raid10Layout::from_number(0x6_0102), None);
        assert!(MdLevel::Raid10.layout_is_known(0x103, 3));
        assert!(!MdLevel::Raid10.layout_is_known(0x103, 2));
        assert!(!MdLevel::Raid5.layout_is_known(6, 3));
        assert!(!MdLevel::Raid6.layout_is_known(7, 5));
        assert!(MdLevel::Raid6.layout_is_known(20, 5));
    }
}
