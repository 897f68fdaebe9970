//! The controller's cache: one set of lines for reads and writes of all arrays.
//!
//! A cached write is copied from its piece's frames into lines; its dirty sectors are written to the members later,
//! stripe by stripe ([`destage`]). A read takes the data that lines have, and the rest from the members.
//!
//! **Only copies touch the bytes of lines** ([`crate::actions::JobKind::Copy`]), and copies are carried out in the
//! order in which they are issued. So a line can be written while a copy out of it is still under way. Drive commands
//! and parity jobs never point into lines; they use copies, which do not change.
//!
//! This module decides; the lists are in [`lines`] and [`dirty_units`].

pub(crate) mod destage;
mod destage_sweep;
mod dirty_bands;
pub(crate) mod dirty_units;
pub mod figures;
#[cfg(test)]
mod fixture;
pub(crate) mod flush_waits;
pub(crate) mod lines;
mod linked_list;
mod place_table;
mod prefetch;
pub(crate) mod read;
pub(crate) mod readahead;
pub mod set_figures;
pub(crate) mod shares;
pub(crate) mod streams;
pub(crate) mod write;

use crate::cache::lines::{Lines, Mask};
use crate::geometry::cache_units::{lines_of, LINE_SECTORS};
use dirty_units::{UnitState, Units};
use openraid_units::{Instant, Nanos, PoolOffset, Sectors, SetId, SetLba};
use readahead::Ahead;
use set_figures::CacheFigures;
use shares::Shares;

use crate::array::set::Set;
use crate::geometry::cache_units::unit_at;
use crate::geometry::shape::Shape;
use crate::limits::Limits;
use crate::per_set::PerSet;

/// Share of the dirty limit that the other sets may always use, however much failed sets keep in the cache: one part in
/// this number.
const OTHERS_SHARE: u32 = 8;

/// Figures of the cache since it started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheCounters {
    /// Sectors of reads that were in the cache, and that were not.
    pub read_hits: u64,
    /// See `read_hits`.
    pub read_misses: u64,
    /// Sectors that were read ahead (`ahead_used`: that hosts requested later).
    pub ahead_read: u64,
    /// See `ahead_read`.
    pub ahead_used: u64,
    /// Sectors that were read ahead and then overwritten or evicted before a host requested them.
    pub ahead_wasted: u64,
    /// Sectors that writes put into the cache, and the sectors among them that were dirty before: those never went to the
    /// members.
    pub written: u64,
    /// See `written`.
    pub overwritten: u64,
    /// Sectors of host data that were destaged to the members.
    pub destaged: u64,
    /// Number of dirty units that were written because they were full, because they were old, because memory was short,
    /// and because a request waited for them.
    pub full: u64,
    /// See `full`.
    pub aged: u64,
    /// See `full`.
    pub pressed: u64,
    /// See `full`.
    pub urgent: u64,
    /// Time in which the maximum number of dirty units was being written.
    pub crowded: Nanos,
}

/// The cache of a controller.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(super) lines: Lines,
    pub(super) units: Units,
    shares: Shares,
    /// Lines with a dirty sector.
    pub(super) dirty: u32,
    /// Number of dirty units that operations write.
    pub(super) writing: u32,
    /// Maximum of `writing`, and the time since which it is reached, if it is.
    writing_max: u32,
    crowded_since: Instant,
    /// Number of dirty lines of failed sets.
    pub(super) held: u32,
    /// Number of lines that were dirty in the units of `writing` when their operations began: they count as clean.
    pub(super) leaving: u32,
    /// Were the dirty lines above the high mark, and are they not below the low mark yet?
    pub(super) draining: bool,
    /// Has a wait for the dirty data of a set begun or ended since the drives were last informed?
    pub(super) awaited_changed: bool,
    /// Maximum number of dirty lines, and the marks between which destage drains.
    pub(super) dirty_max: u32,
    high: u32,
    low: u32,
    /// The read-ahead of all arrays.
    ahead: Ahead,
    pub(super) counters: CacheCounters,
    /// The figures of each set.
    figures: PerSet<CacheFigures>,
}

/// Is the order of addresses useful for a set? It is not if no member rotates, or if all members of a zone would be one
/// member while the others are idle.
fn may_sweep(set: &Set) -> bool {
    !set.is_flash() && !set.shape().is_linear()
}

/// The zone in which an address lies, if its set is divided into `zones` zones.
fn zone_at(set: &Set, zones: u32, at: SetLba) -> u16 {
    if may_sweep(set) {
        destage_sweep::zone_of(zones, set.shape().capacity(), at)
    } else {
        destage_sweep::NO_ZONE
    }
}

impl Cache {
    pub(crate) fn new(limits: &Limits) -> Self {
        let base = PoolOffset((limits.pool - limits.cache).get());
        let lines = Lines::new(base, limits.cache.get());
        let share = |percent: u64| u32::try_from(u64::from(lines.len()) * percent / 100).expect("a share of a u32");
        Self {
            units: Units::new(lines.len(), limits.destage_zones),
            shares: Shares::default(),
            dirty: 0,
            writing: 0,
            writing_max: limits.destage_units_max,
            crowded_since: Instant::ZERO,
            held: 0,
            leaving: 0,
            draining: false,
            awaited_changed: false,
            dirty_max: share(limits.dirty_max_percent),
            high: share(limits.dirty_high_percent),
            low: share(limits.dirty_low_percent),
            ahead: Ahead::new(limits),
            counters: CacheCounters::default(),
            figures: PerSet::new(),
            lines,
        }
    }

    /// Is there a cache?
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Lines with a dirty sector.
    pub(crate) const fn dirty_lines(&self) -> u32 {
        self.dirty
    }

    /// Number of all lines.
    pub(crate) fn line_count(&self) -> u32 {
        self.lines.len()
    }

    /// Pieces wait for more destage, however much is in work: the lines may be dirty again.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// A flush or a stop begins or ends to wait for the dirty data of a set.
    pub(crate) fn wait_changed(&mut self) {
        self.awaited_changed = true;
    }

    /// The line of a place, if there is one.
    pub(crate) fn find_line(&self, set: SetId, number: u64) -> Option<u32> {
        self.lines.find(set, number)
    }

    /// The place of a sector of a line in the pool.
    pub(crate) fn frame_of(&self, line: u32, sector: u64) -> PoolOffset {
        self.lines.frame(line, sector)
    }

    /// The newest entry of the journal with data of the line of a place.
    pub(crate) fn newest_entry_of(&self, set: SetId, number: u64) -> Option<u64> {
        Some(self.lines.get(self.lines.find(set, number)?).newest)
    }

    /// The line of a place, if it is in this dirty unit.
    pub(crate) fn line_of_unit(&self, unit: u32, set: SetId, number: u64) -> Option<&lines::Line> {
        Some(self.lines.get(self.line_in_unit(unit, set, number)?))
    }

    /// No line needs its entries of the journal any more.
    pub(crate) fn release_all_pins(&mut self) {
        for line in 0..self.lines.len() {
            self.lines.get_mut(line).release_pins();
        }
    }

    /// The first sector of a dirty unit in its set.
    pub(crate) fn start_of_unit(&self, unit: u32) -> SetLba {
        self.units.get(unit).start
    }

    /// Free a dirty unit of a set that has no dirty line; false if there is none.
    pub(crate) fn free_empty_unit(&mut self, set: SetId) -> bool {
        let empty = self.units.first_empty(set);
        if let Some(unit) = empty {
            self.units.free(unit);
        }
        empty.is_some()
    }

    /// Can any dirty unit of a set still be written, because its members have not refused it?
    pub(crate) fn is_any_promising(&self, set: SetId) -> bool {
        self.units.is_any_promising(set)
    }

    /// Dirty units of a set that were refused are tried again.
    pub(crate) fn end_rest(&mut self, set: SetId) {
        self.units.end_rest(set);
    }

    /// Its content, for [`Controller::write_waiting`](crate::controller::Controller::write_waiting).
    pub(crate) fn write_state(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        writeln!(
            out,
            "cache: {} lines, {} dirty, {} held, {} leaving, {} units in work, draining {}, room {}",
            self.lines.len(),
            self.dirty,
            self.held,
            self.leaving,
            self.writing,
            self.draining,
            self.lines.room(),
        )?;
        self.write_units(out)
    }

    fn write_units(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        for set in (0..self.units.sets()).map(SetId) {
            for state in [UnitState::Waiting, UnitState::Ready, UnitState::Resting] {
                let units = self.units.all(set, state);
                for unit in units.map(|index| self.units.get(index)).take(crate::limits::STATE_LINES_MAX) {
                    let (start, sectors, since, epoch) = (unit.start, unit.sectors, unit.since, unit.epoch);
                    let (urgent, refused) = (unit.urgent, unit.refusals);
                    writeln!(
                        out,
                        "unit at {start:?} of set {set:?}: {state:?} since {since:?}, {sectors} sectors, epoch {epoch}, urgent \
                         {urgent}, {refused} refusals"
                    )?;
                }
            }
        }
        Ok(())
    }

    /// The line of a place in this dirty unit. Most units have only one line, which needs no search.
    pub(crate) fn line_in_unit(&self, unit: u32, set: SetId, number: u64) -> Option<u32> {
        let first = self.units.get(unit).lines.head;
        let is_it = |line: &lines::Line| line.number == number && line.set == set;
        if first != crate::slab::NONE && is_it(self.lines.get(first)) {
            return Some(first);
        }
        self.lines.find(set, number)
    }

    /// The first dirty unit with a dirty sector in an extent, which lies in one unit.
    fn dirty_in_unit(&self, unit: Option<u32>, set: SetId, at: SetLba, len: Sectors) -> Option<u32> {
        let unit = unit?;
        let touched = |(number, from, to): (u64, u64, u64)| {
            let line = self.lines.find(set, number).map(|index| self.lines.get(index));
            line.is_some_and(|line| line.dirty.0 & Mask::range(from, to).0 != 0)
        };
        lines_of(at, len).any(touched).then_some(unit)
    }

    /// The first dirty unit with a dirty sector in an extent.
    pub(crate) fn dirty_unit_in(&self, shape: &Shape, set: SetId, at: SetLba, len: Sectors) -> Option<u32> {
        if self.dirty == 0 {
            return None;
        }
        let (mut at, end) = (at, at + len);
        while at < end {
            let (start, sectors) = unit_at(shape, at);
            let part = (end - at).min((start + sectors) - at);
            let found = self.dirty_in_unit(self.units.find(set, start), set, at, part);
            if found.is_some() {
                return found;
            }
            at += part;
        }
        None
    }

    /// The members get, or have, other bytes in these sectors than a clean line has.
    pub(crate) fn invalidate(&mut self, set: SetId, at: SetLba, len: Sectors) {
        for (number, from, to) in lines_of(at, len) {
            let Some(index) = self.lines.find(set, number) else { continue };
            self.forget_clean_part(index, Mask::range(from, to));
        }
    }

    /// The members may have other bytes than any clean line of this set.
    pub(crate) fn invalidate_set(&mut self, set: SetId) {
        for index in 0..self.lines.len() {
            if self.lines.is_used(index) && self.lines.get(index).set == set {
                self.forget_clean_part(index, Mask::range(0, LINE_SECTORS));
            }
        }
    }

    /// Drop the clean sectors of this part of a line, and the result of a read of them that is under way.
    fn forget_clean_part(&mut self, index: u32, mask: Mask) {
        let mask = mask.without(self.lines.get(index).dirty);
        if self.lines.get(index).filling.is_empty() {
            self.lines.waste(index);
        }
        let was_clean = self.lines.is_clean(index);
        if was_clean {
            self.lines.lift(index);
        }
        let line = self.lines.get_mut(index);
        line.valid = line.valid.without(mask);
        line.filling = line.filling.without(mask);
        self.release_unless_used(index);
    }

    /// Put a line that is in no list into its list, unless something still holds it.
    pub(crate) fn release_unless_used(&mut self, index: u32) {
        let line = self.lines.get(index);
        if line.dirty.is_empty() && line.filling.is_empty() {
            self.lines.get_mut(index).filler = crate::slab::NONE;
            self.lines.release(index);
        }
    }

    /// The line for a place, empty if it is new, in no list except that of its dirty unit. `None` if every line is
    /// dirty or being filled.
    pub(crate) fn line_for(&mut self, set: SetId, number: u64) -> Option<u32> {
        if let Some(index) = self.lines.find(set, number) {
            if self.lines.is_clean(index) {
                self.lines.lift(index);
            }
            return Some(index);
        }
        self.lines.take(set, number)
    }

    /// These sectors of a line are dirty from now on: their bytes are being copied into it.
    pub(crate) fn mark_dirty(&mut self, index: u32, mask: Mask, unit: u32, unit_sectors: u64) {
        if self.lines.get(index).filling.is_empty() {
            self.lines.waste(index);
        }
        let line = self.lines.get_mut(index);
        let fresh = mask.without(line.dirty);
        let was_dirty = !line.dirty.is_empty();
        line.dirty = line.dirty.with(mask);
        line.valid = line.valid.with(mask);
        line.filling = line.filling.without(mask);
        line.staged = false;
        self.counters.written += u64::from(mask.len());
        self.counters.overwritten += u64::from(mask.len() - fresh.len());
        if !was_dirty {
            line.unit = unit;
            self.dirty += 1;
            self.shares.dirtied(line.set);
            let entry = self.units.get_mut(unit);
            entry.lines.push(self.lines.links_mut(), index);
        }
        let entry = self.units.get_mut(unit);
        entry.sectors += fresh.len();
        if entry.state == UnitState::Waiting && u64::from(entry.sectors) == unit_sectors {
            self.counters.full += 1;
            self.units.set_state(unit, UnitState::Ready);
        }
        self.draining |= self.dirty - self.leaving.min(self.dirty) > self.high;
    }

    /// These sectors of a line are on the members, unless they were written since they were staged. Entries of the
    /// journal protect a line until then. Returns the entries that no longer protect this line; 0 stands for none.
    pub(crate) fn mark_written(&mut self, index: u32, mask: Mask) -> [u64; 2] {
        let line = self.lines.get_mut(index);
        if !line.staged {
            if line.staged_whole && line.repin != 0 {
                line.staged_whole = false;
                let pin = core::mem::replace(&mut line.pin, line.repin);
                line.repin = 0;
                return [pin, 0];
            }
            return [0, 0];
        }
        self.counters.destaged += u64::from(Mask(mask.0 & self.lines.get(index).dirty.0).len());
        self.make_clean(index, mask)
    }

    /// These sectors of a line are not dirty any more: their content is void.
    pub(crate) fn revoke(&mut self, index: u32, mask: Mask) -> [u64; 2] {
        let line = self.lines.get_mut(index);
        if line.dirty.is_empty() {
            return [0, 0];
        }
        line.valid = line.valid.without(mask);
        self.make_clean(index, mask)
    }

    fn make_clean(&mut self, index: u32, mask: Mask) -> [u64; 2] {
        let line = self.lines.get_mut(index);
        let cleaned = Mask(mask.0 & line.dirty.0);
        line.dirty = line.dirty.without(cleaned);
        let (unit, clean) = (line.unit, line.dirty.is_empty());
        let entry = self.units.get_mut(unit);
        entry.sectors -= cleaned.len();
        if clean {
            entry.lines.remove(self.lines.links_mut(), index);
            let line = self.lines.get_mut(index);
            (line.unit, line.staged) = (crate::slab::NONE, false);
            let pins = line.release_pins();
            self.dirty -= 1;
            self.shares.cleaned(line.set);
            self.release_unless_used(index);
            return pins;
        }
        [0, 0]
    }

    /// Are all dirty lines of failed sets, or in units that could not be written? Then no line becomes clean for some
    /// time.
    pub(crate) fn is_held(&self) -> bool {
        self.units.is_all_refused()
    }

    /// A set has ended: free its lines. Returns the number of dirty sectors.
    pub(crate) fn forget_set(&mut self, set: SetId, mut unpin: impl FnMut(u64)) -> u64 {
        let mut lost = 0;
        for index in 0..self.lines.len() {
            let line = *self.lines.get(index);
            if !self.lines.is_used(index) || line.set != set {
                continue;
            }
            if self.lines.is_clean(index) {
                self.lines.lift(index);
            }
            if !line.dirty.is_empty() {
                lost += u64::from(line.dirty.len());
                self.dirty -= 1;
                self.shares.cleaned(set);
                let unit = self.units.get_mut(line.unit);
                self.held -= u32::from(unit.state == UnitState::Held);
                unit.sectors -= line.dirty.len();
                unit.lines.remove(self.lines.links_mut(), index);
                if self.units.get(line.unit).sectors == 0 {
                    self.units.free(line.unit);
                }
            }
            self.lines.waste(index);
            let line = self.lines.get_mut(index);
            line.release_pins().into_iter().filter(|sequence| *sequence != 0).for_each(&mut unpin);
            (line.valid, line.dirty, line.filling) = (Mask::NONE, Mask::NONE, Mask::NONE);
            self.lines.release(index);
        }
        lost
    }
}
