//! Figures of the cache for one set.

use openraid_units::Nanos;

/// Figures of a set, or of all sets of an array, since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheFigures {
    /// Sectors of host reads that were in the cache, and that were not.
    pub read_hits: u64,
    /// See `read_hits`.
    pub read_misses: u64,
    /// Sectors that writes put into the cache, and the sectors among them that were dirty before: those cost no write to the
    /// members.
    pub written: u64,
    /// See `written`.
    pub merged: u64,
    /// Sectors of host data that were destaged to the members.
    pub destaged: u64,
    /// Number of dirty units that were written; `destaged` divided by it is the mean size of one.
    pub units: u64,
    /// Time from the oldest write of a unit until it was on the members: the sum, and the longest.
    pub waited: Nanos,
    /// See `waited`.
    pub waited_max: Nanos,
}

impl core::ops::Add for CacheFigures {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read_hits: self.read_hits + other.read_hits,
            read_misses: self.read_misses + other.read_misses,
            written: self.written + other.written,
            merged: self.merged + other.merged,
            destaged: self.destaged + other.destaged,
            units: self.units + other.units,
            waited: self.waited + other.waited,
            waited_max: self.waited_max.max(other.waited_max),
        }
    }
}
