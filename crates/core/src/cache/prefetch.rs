//! Prefetching the parts of the cache's tables that will be needed soon.
//!
//! Requests and dirty units come in batches, and each needs memory that was not touched for long. If the work meets
//! them one by one, the processor waits for each access. If short loops access them together, without depending on each
//! other, it waits for all of them as long as for one. Nothing is decided or changed here; the values are discarded.

use core::hint::black_box;
use openraid_units::{Bytes, SetId};

use super::place_table::Places;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::cache::Cache;
use crate::events::{BlockRequest, RequestKind};
use crate::geometry::cache_units::unit_at;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::slab::NONE;

/// Maximum number of requests that are looked up together: a little more than the cache misses that a processor can
/// have outstanding.
const GLANCES_MAX: usize = 32;

impl Cache {
    /// Touch the entries for requests that are about to be admitted, and for the lines that make room for them.
    #[inline(never)]
    pub(crate) fn glance_at_requests<'a>(
        &self,
        submitted: impl Iterator<Item = &'a BlockRequest>,
        arrays: &Arrays,
        sets: &Sets,
    ) {
        let (mut lines, mut units) = ([0; GLANCES_MAX], [0; GLANCES_MAX]);
        let (mut count, mut writes) = (0, 0);
        let shape_of = |set: SetId| sets.get(set).shape();
        for request in submitted.take(GLANCES_MAX) {
            let Some(array) = arrays.find(request.array) else { continue };
            let at = Bytes(request.offset.get()).sectors_floor();
            if at >= array.capacity(shape_of) {
                continue;
            }
            let (set, at, _) = array.volume().map(at, shape_of);
            lines[count] = Places::hash_of(set, at.get() / LINE_SECTORS);
            count += 1;
            if matches!(request.kind, RequestKind::Write { .. }) {
                units[writes] = Places::hash_of(set, unit_at(shape_of(set), at).0.get());
                writes += 1;
            }
        }
        let in_lines = lines[..count].iter().fold(0, |seen, hash| seen ^ self.lines.place_seen(*hash));
        let in_units = units[..writes].iter().fold(0, |seen, hash| seen ^ self.units.place_seen(*hash));
        let mut evicted = [NONE; GLANCES_MAX];
        self.lines.evicted_next(&mut evicted[..count]);
        let lines = &self.lines;
        let leaving = evicted[..count]
            .iter()
            .fold(0, |seen, index| seen ^ lines.line_seen(*index) ^ lines.place_of_line_seen(*index));
        black_box(in_lines ^ in_units ^ leaving);
    }

    /// Touch the dirty units of a set that are likely to be written next.
    #[inline(never)]
    pub(crate) fn glance_at_units(&self, set: SetId, sweeps: bool) {
        let mut indices = [NONE; GLANCES_MAX];
        self.units.coming(set, sweeps, &mut indices);
        let mut seen = 0;
        for index in &mut indices {
            let (entry, line) = self.units.unit_seen(*index);
            seen ^= entry;
            *index = line;
        }
        for index in &indices {
            seen ^= self.lines.line_seen(*index);
        }
        black_box(seen);
    }
}
