//! Figures of the cache for readers: of each set, and of the whole. Nothing depends on them.

use openraid_units::Instant;
use openraid_units::{Bytes, Nanos, Sectors};

use super::lines::Lines;
use super::units::Units;
use super::CacheCounters;
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::limits::FRAME_BYTES;

/// Figures of a set, or of all sets of an array, since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheFigures {
    /// Sectors of host reads that were in the cache, and that were not.
    pub read_hits: u64,
    /// See `read_hits`.
    pub read_misses: u64,
    /// Sectors that writes put into the cache, and the ones of them that were dirty already: those cost no write to the
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

/// The figures of one set.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SetFigures(pub(super) CacheFigures);

impl SetFigures {
    /// What it is about.
    pub(crate) const fn figures(self) -> CacheFigures {
        self.0
    }

    /// No read was asked for yet.
    pub(crate) fn forget_reads(&mut self) {
        (self.0.read_hits, self.0.read_misses) = (0, 0);
    }
}

/// The cache of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheStatus {
    /// Its size.
    pub size: Bytes,
    /// Size of the lines with dirty sectors, and the maximum.
    pub dirty: Bytes,
    /// See `dirty`.
    pub dirty_max: Bytes,
    /// Its figures for all arrays since it was made.
    pub counters: CacheCounters,
}

/// Memory for the tables of a cache of this size, in addition to it.
#[must_use]
pub const fn table_bytes(cache: Bytes) -> Bytes {
    let lines = cache.0 / FRAME_BYTES;
    Bytes(Lines::table_bytes(lines) + Units::table_bytes(lines))
}

impl Sets {
    /// A write put `written` sectors into the cache; `merged` of them were dirty before.
    pub(crate) fn note_cached(&mut self, set: openraid_units::SetId, written: Sectors, merged: u64) {
        let figures = &mut self.get_mut(set).cached.0;
        figures.written += written.get();
        figures.merged += merged;
    }
}

impl Cache {
    /// Its status, if there is one.
    pub(crate) fn status(&self, now: Instant) -> Option<CacheStatus> {
        let bytes = |lines: u32| Bytes(u64::from(lines) * FRAME_BYTES);
        self.is_on().then(|| CacheStatus {
            size: bytes(self.lines.len()),
            dirty: bytes(self.dirty),
            dirty_max: bytes(self.dirty_max),
            counters: self.counters(now),
        })
    }

    /// Its figures since it started.
    pub(crate) fn counters(&self, now: Instant) -> CacheCounters {
        CacheCounters { ahead_wasted: self.lines.wasted, crowded: self.crowded(now), ..self.counters }
    }

    /// A dirty unit is on the members.
    pub(crate) fn note_destaged(&mut self, sets: &mut Sets, now: Instant, set: openraid_units::SetId, unit: u32) {
        let waited = now.since(self.units.get(unit).since);
        let figures = &mut sets.get_mut(set).cached.0;
        figures.units += 1;
        figures.waited += waited;
        figures.waited_max = figures.waited_max.max(waited);
    }
}
