//! The dirty parts of a unit: bands of a stripe, runs of a range.

use openraid_units::{SetLba, Slot, StripeIndex};

use super::dirty_units::DirtyUnit;
use super::Cache;
use crate::cache::lines::Line;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::geometry::Parity;
use crate::slab::NONE;
use crate::slot_set::SlotSet;

/// The columns and rows of a stripe, for its lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripeLines {
    /// First sector of the stripe in the set.
    pub(super) start: SetLba,
    /// Sectors of a column, a power of two.
    pub(super) chunk: u64,
}

impl StripeLines {
    /// The columns and rows of this stripe.
    pub(crate) fn of(stripe: StripeIndex, parity: &Parity) -> Self {
        Self { start: parity.stripe_start(stripe), chunk: parity.chunk().get() }
    }

    /// Column and first row of a line.
    fn place(self, line: &Line) -> (u16, u64) {
        let offset = line.number * LINE_SECTORS - self.start.get();
        (u16::try_from(offset >> self.chunk.trailing_zeros()).expect("few columns"), offset & (self.chunk - 1))
    }
}

impl Cache {
    fn lines_of_unit(&self, unit: &DirtyUnit) -> impl Iterator<Item = &Line> {
        let mut index = unit.lines.head;
        core::iter::from_fn(move || {
            if index == NONE {
                return None;
            }
            let line = self.lines.get(index);
            index = self.lines.next(index);
            Some(line)
        })
    }

    /// The first dirty row from `row` on.
    pub(crate) fn dirty_row_from(&self, unit: &DirtyUnit, rows: StripeLines, row: u64) -> Option<u64> {
        let first = |line: &Line| {
            let (_, start) = rows.place(line);
            let from = row.saturating_sub(start).min(LINE_SECTORS);
            let left = u16::from(line.dirty.0) >> from;
            (left != 0).then(|| start + from + u64::from(left.trailing_zeros()))
        };
        self.lines_of_unit(unit).filter_map(first).min()
    }

    /// The columns that are dirty in a row, as slots of their numbers.
    pub(crate) fn dirty_columns_at(&self, unit: &DirtyUnit, rows: StripeLines, row: u64) -> SlotSet {
        let mut columns = SlotSet::EMPTY;
        for line in self.lines_of_unit(unit) {
            let (column, start) = rows.place(line);
            let inside = (start..start + LINE_SECTORS).contains(&row);
            if inside && line.dirty.0 >> (row - start) & 1 == 1 {
                columns.insert(Slot(column));
            }
        }
        columns
    }

    /// The row up to which the same columns are dirty as in row `from`.
    pub(crate) fn band_end(&self, unit: &DirtyUnit, rows: StripeLines, from: u64, columns: SlotSet) -> u64 {
        if unit.lines.head == unit.lines.tail {
            let line = self.lines.get(unit.lines.head);
            let (_, start) = rows.place(line);
            return start + line.dirty.run(from - start).1;
        }
        let mut end = from;
        loop {
            // Nothing changes before this row.
            let change = |line: &Line| {
                let (_, start) = rows.place(line);
                if end >= start + LINE_SECTORS {
                    return None;
                }
                if end < start {
                    return Some(start + u64::from(line.dirty.0.trailing_zeros()));
                }
                Some(start + line.dirty.run(end - start).1)
            };
            let Some(next) = self.lines_of_unit(unit).filter_map(change).min() else { return end };
            end = next;
            if end >= rows.chunk || self.dirty_columns_at(unit, rows, end) != columns {
                return end;
            }
        }
    }

    /// The first run of dirty sectors of a unit that begins at `start`, from its sector `from` on: both ends.
    pub(crate) fn dirty_run(&self, unit: &DirtyUnit, start: SetLba, from: u64) -> Option<(u64, u64)> {
        let cursor = start.get() + from;
        let first = |line: &Line| {
            let base = line.number * LINE_SECTORS;
            let skip = cursor.saturating_sub(base).min(LINE_SECTORS);
            let left = u16::from(line.dirty.0) >> skip;
            (left != 0).then(|| base + skip + u64::from(left.trailing_zeros()))
        };
        let begin = self.lines_of_unit(unit).filter_map(first).min()?;
        let mut end = begin;
        if unit.lines.head == unit.lines.tail {
            let (_, to) = self.lines.get(unit.lines.head).dirty.run(begin % LINE_SECTORS);
            return Some((begin - start.get(), begin - begin % LINE_SECTORS + to - start.get()));
        }
        loop {
            let line = self.lines.find(unit.set, end / LINE_SECTORS).map(|index| self.lines.get(index));
            // Is it in the same unit, and dirty here?
            let Some(line) = line.filter(|line| line.unit == self.unit_of(unit)) else { break };
            let within = end % LINE_SECTORS;
            let (dirty, to) = line.dirty.run(within);
            if !dirty {
                break;
            }
            end += to - within;
            if to < LINE_SECTORS {
                break;
            }
        }
        Some((begin - start.get(), end - start.get()))
    }

    /// The number of a dirty unit, as its lines have it.
    fn unit_of(&self, unit: &DirtyUnit) -> u32 {
        self.lines.get(unit.lines.head).unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::fixture::{Bench, SET};
    use crate::geometry::shape::Side;
    use crate::geometry::Level;

    fn slots(of: &[u16]) -> SlotSet {
        of.iter().map(|slot| Slot(*slot)).collect()
    }

    #[test]
    fn a_band_ends_where_other_columns_are_dirty() {
        let mut bench = Bench::new(Level::Raid5);
        // Chunks of 128 sectors: rows 2 to 17 of column 0, rows 8 to 11 of column 1.
        bench.dirty(2, 16);
        let unit = bench.dirty(128 + 8, 4);
        let rows = StripeLines::of(StripeIndex(0), bench.sets.get(SET).shape().parity(Side::Old));
        let (cache, unit) = (&bench.cache, bench.cache.units.get(unit));
        let mut bands = alloc::vec::Vec::new();
        let mut row = 0;
        while let Some(first) = cache.dirty_row_from(unit, rows, row) {
            let columns = cache.dirty_columns_at(unit, rows, first);
            row = cache.band_end(unit, rows, first, columns);
            bands.push((first, row, columns));
        }
        assert_eq!(bands, [(2, 8, slots(&[0])), (8, 12, slots(&[0, 1])), (12, 18, slots(&[0]))]);
    }

    #[test]
    fn a_run_goes_over_lines_and_ends_at_the_first_clean_sector() {
        let mut bench = Bench::new(Level::Raid1);
        bench.dirty(256 + 6, 12);
        let unit = bench.dirty(256 + 40, 3);
        let (cache, unit) = (&bench.cache, bench.cache.units.get(unit));
        let run = |from| cache.dirty_run(unit, SetLba(256), from);
        assert_eq!([0, 6, 10, 18, 43].map(run), [Some((6, 18)), Some((6, 18)), Some((10, 18)), Some((40, 43)), None]);
    }
}
