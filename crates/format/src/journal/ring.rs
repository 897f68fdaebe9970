//! Places in the journal's ring, and nothing that is in it.
//!
//! ```text
//!  device   | first copy | free | ring ...                                   | last copy |
//!                               ring.start                                   device end, whole 4 KiB
//!  RingSector                   0 ------------------------------------------> ring.sectors, then 0 again
//! ```
//!
//! Entries begin at multiples of [`JOURNAL_ALIGN`] and never reach over the end of the ring.

use super::JOURNAL_ALIGN;
use crate::identity::Uuid;
use core::fmt;
use openraid_units::{DriveLba, Sectors};

/// A position in the ring: sectors from its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RingSector(pub u64);

impl fmt::Debug for RingSector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingSector({}s)", self.0)
    }
}

/// A position in the log: the number of an entry, and its place in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct LogPlace {
    /// Number of the entry; the first of a journal is 1.
    pub sequence: u64,
    /// Position of its header.
    pub position: RingSector,
}

/// The geometry and identity that are needed to read and write entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JournalRing {
    /// Identity of the journal, which every entry has.
    pub journal: Uuid,
    /// Sector of the device where the ring begins.
    pub start: DriveLba,
    /// Length of the ring: a multiple of [`JOURNAL_ALIGN`], and not zero.
    pub sectors: Sectors,
}

impl JournalRing {
    /// Can an entry begin at this position?
    #[must_use]
    pub const fn holds(&self, position: RingSector) -> bool {
        position.0 < self.sectors.0 && position.0.is_multiple_of(JOURNAL_ALIGN.0)
    }

    /// Sectors from a position to the end of the ring.
    ///
    /// # Panics
    /// The position is outside the ring.
    #[must_use]
    pub const fn to_end(&self, position: RingSector) -> Sectors {
        assert!(position.0 < self.sectors.0, "the ring does not have this place");
        Sectors(self.sectors.0 - position.0)
    }

    /// Sectors forward from one position to another; less than the length of the ring.
    ///
    /// # Panics
    /// A position is outside the ring.
    #[must_use]
    pub const fn distance(&self, from: RingSector, to: RingSector) -> Sectors {
        assert!(from.0 < self.sectors.0 && to.0 < self.sectors.0, "the ring does not have these places");
        if to.0 >= from.0 {
            Sectors(to.0 - from.0)
        } else {
            Sectors(self.sectors.0 - from.0 + to.0)
        }
    }

    /// The position after `len` sectors. After the last sector comes the first one.
    ///
    /// # Panics
    /// The sectors extend past the end of the ring.
    #[must_use]
    pub const fn behind(&self, position: RingSector, len: Sectors) -> RingSector {
        assert!(len.0 <= self.to_end(position).0, "nothing reaches over the end of the ring");
        RingSector((position.0 + len.0) % self.sectors.0)
    }

    /// Is a filler needed at `head` first, because an entry with this payload would extend past the end of the ring?
    ///
    /// # Panics
    /// `head` is outside the ring.
    #[must_use]
    pub const fn needs_wrap(&self, head: RingSector, payload: Sectors) -> bool {
        entry_sectors(payload).0 > self.to_end(head).0
    }

    /// The sector of the device for a position in the ring.
    ///
    /// # Panics
    /// The position is outside the ring.
    #[must_use]
    pub const fn drive_lba(&self, position: RingSector) -> DriveLba {
        assert!(position.0 < self.sectors.0, "the ring does not have this place");
        DriveLba(self.start.0 + position.0)
    }
}

/// Sectors from the header of an entry with this payload to the next header.
///
/// # Panics
/// A payload near 2^64 sectors, which cannot exist.
#[must_use]
pub const fn entry_sectors(payload: Sectors) -> Sectors {
    Sectors(JOURNAL_ALIGN.0 + payload.0.next_multiple_of(JOURNAL_ALIGN.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ends_at_the_end_of_the_ring_at_the_latest() {
        let ring = JournalRing { journal: Uuid([1; 16]), start: DriveLba(8), sectors: Sectors(64) };
        assert_eq!(entry_sectors(Sectors(0)), Sectors(8));
        assert_eq!(entry_sectors(Sectors(1)), Sectors(16));
        assert!(!ring.needs_wrap(RingSector(48), Sectors(8)));
        assert!(ring.needs_wrap(RingSector(48), Sectors(9)));
        assert_eq!(ring.behind(RingSector(48), Sectors(16)), RingSector(0));
        assert_eq!(ring.distance(RingSector(56), RingSector(8)), Sectors(16));
        assert_eq!(ring.distance(RingSector(8), RingSector(8)), Sectors(0));
        assert!(ring.holds(RingSector(56)) && !ring.holds(RingSector(64)) && !ring.holds(RingSector(57)));
    }
}
