//! Room in the journal that a write past the cache reserves (`reservation.rs`).

/// Room in the journal: sectors of the ring, and places in the table of entries.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct LogRoom {
    pub(super) sectors: u32,
    pub(super) entries: u32,
}

impl LogRoom {
    pub(crate) const NONE: Self = Self { sectors: 0, entries: 0 };
}
