//! Figures of the cache for readers: of each set, and of the whole. Nothing depends on them.

use openraid_units::{Bytes, Instant, Sectors, SetId};

use super::dirty_units::Units;
use super::lines::Lines;
pub use super::set_figures::CacheFigures;
use super::CacheCounters;
use crate::cache::Cache;
use crate::limits::FRAME_BYTES;

/// The cache of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheStatus {
    /// Size of the cache.
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

    /// The figures of a set since it was started.
    pub(crate) fn figures_of(&self, set: SetId) -> CacheFigures {
        *self.figures.get(set)
    }

    /// Count the reads of a set from here on.
    pub(crate) fn forget_reads(&mut self, set: SetId) {
        let figures = self.figures.get_mut(set);
        (figures.read_hits, figures.read_misses) = (0, 0);
    }

    /// A write put `written` sectors into the cache; `merged` of them were dirty before.
    pub(crate) fn note_cached(&mut self, set: SetId, written: Sectors, merged: u64) {
        let figures = self.figures.get_mut(set);
        figures.written += written.get();
        figures.merged += merged;
    }

    /// A dirty unit is on the members.
    pub(super) fn note_destaged(&mut self, now: Instant, set: SetId, unit: u32) {
        let waited = now.since(self.units.get(unit).since);
        let figures = self.figures.get_mut(set);
        figures.units += 1;
        figures.waited += waited;
        figures.waited_max = figures.waited_max.max(waited);
    }
}
