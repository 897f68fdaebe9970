//! Room in the journal that a write past the cache reserves (`journal/reservation.rs`).

/// Room in the journal: sectors of the ring, and places in the table of entries.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct LogRoom {
    sectors: u32,
    entries: u32,
}

impl LogRoom {
    pub(crate) const NONE: Self = Self { sectors: 0, entries: 0 };

    pub(crate) const fn new(sectors: u32, entries: u32) -> Self {
        Self { sectors, entries }
    }

    /// Sectors of the ring.
    pub(crate) const fn sectors(self) -> u32 {
        self.sectors
    }

    /// Places in the table.
    pub(crate) const fn entries(self) -> u32 {
        self.entries
    }
}
