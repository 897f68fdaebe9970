//! The part of each member that an array uses.

use core::fmt;
use openraid_units::Sectors;

/// The sectors of each member that an array uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedSize {
    /// All that the smallest member has.
    Max,
    /// This number.
    Of(Sectors),
}

/// A size that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SizeError {
    /// The members have no more room than the array uses.
    NoLarger {
        /// Sectors of each member that the array uses.
        used: Sectors,
    },
    /// The members have less than was asked for.
    TooLarge {
        /// Sectors of each member that were asked for.
        asked: Sectors,
        /// Sectors that the smallest member has.
        room: Sectors,
    },
    /// A size of members that is not whole chunks.
    NotWhole {
        /// Sectors of each member that were asked for.
        asked: Sectors,
        /// The length of which the size must be a multiple.
        chunk: Sectors,
    },
    /// Hosts would lose the end of the array, and no administrator has cut that off.
    Cuts {
        /// Sectors that hosts have.
        has: Sectors,
        /// Sectors that the array would have.
        left: Sectors,
    },
    /// Far copies are not where they are on members of another size.
    FarCopies,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLarger { used } => write!(
                f,
                "the array uses {} of each member, and the smallest member has no more; replace each smaller drive first",
                used.readable()
            ),
            Self::TooLarge { asked, room } => write!(
                f,
                "{} of each member were asked for, and the smallest has {}: ask for that, or replace each smaller drive first",
                asked.readable(),
                room.readable()
            ),
            Self::NotWhole { asked, chunk } => write!(
                f,
                "{} of each member are not a multiple of {}: ask for {}",
                asked.readable(),
                chunk.readable(),
                asked.round_down(*chunk).max(*chunk).readable()
            ),
            Self::Cuts { has, left } => write!(
                f,
                "hosts have {}, and the array would have {}: make the data on the array smaller, then cut off its end with \
                 `openraid reshape ARRAY --array-size {}K` (nothing is lost yet), look whether all is there, and ask again",
                has.readable(),
                left.readable(),
                left.get() / 2
            ),
            Self::FarCopies => f.write_str(
                "far copies would move if the members had another size; make an array with near or offset copies, and copy",
            ),
        }
    }
}

impl core::error::Error for SizeError {}
