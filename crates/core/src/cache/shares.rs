//! The shares of sets in the cache, and the choice of the next set. A set whose dirty data cannot be written must not
//! keep other sets from writing or from being written.
//!
//! - Each set that collects writes has an equal part of the places for dirty units in work, at least one.
//! - The room between the high mark and the maximum of dirty lines is reserved for these sets in equal parts. A set may
//!   use all of the rest.
//! - Above the high mark, a set is drained if it has more than its part of the low mark, or more than half of its own
//!   share. At least one set has, and a set that hangs does not cause others to be drained.

use alloc::vec::Vec;
use openraid_units::{Instant, Nanos, SetId};

use super::dirty_units::{DirtyUnit, UnitState};
use super::set_figures::CacheFigures;
use super::{Cache, OTHERS_SHARE};
use crate::array::sets::Sets;
use crate::settings::WriteCache;

/// The share of a set in the cache.
#[derive(Clone, Copy, Default, Debug)]
struct Share {
    /// Number of dirty lines.
    dirty: u32,
    /// Number of dirty lines that are being written and count as clean already.
    /// Number of dirty lines that are being written and count as clean already.
    leaving: u32,
    /// Dirty units in work.
    writing: u32,
    /// Does it collect writes?
    collects: bool,
}

/// The dirty units of a set that something waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AwaitedUnits {
    /// No units.
    None,
    /// A flush waits for the units that were dirty when it came, before this epoch.
    Before {
        /// The epoch that the flush began.
        epoch: u32,
    },
    /// All: the set is being stopped or has failed, or its data in the journal must be on the members.
    All,
}

impl AwaitedUnits {
    /// Does something wait for this unit?
    pub(crate) fn has(self, unit: &DirtyUnit) -> bool {
        match self {
            Self::None => false,
            Self::Before { epoch } => unit.epoch != epoch,
            Self::All => true,
        }
    }
}

/// How a set's dirty units are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Units for which a request waits: they are written at once.
    pub(super) awaited: AwaitedUnits,
    /// Time for which units collect further writes, and for which they rest after the first refusal.
    pub(super) delay: Nanos,
    /// Units that the members refused are tried again.
    pub(super) again: bool,
    /// Units are written in the order of their addresses, not of their age.
    pub(super) sweeps: bool,
    /// Number of units that may be in work if the controller has no other sets.
    pub(super) places: u32,
}

impl Pace {
    /// Are units written in the order of their addresses, not of their age?
    pub(crate) const fn sweeps(&self) -> bool {
        self.sweeps
    }
}

/// The shares of all sets.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    sets: Vec<Share>,
    /// Number of sets that collect writes.
    collectors: u32,
    /// The set whose turn it is if several have something to write.
    turn: u16,
}

impl Shares {
    fn of(&mut self, set: SetId) -> &mut Share {
        &mut self.sets[set.index()]
    }

    pub(crate) fn dirtied(&mut self, set: SetId) {
        self.of(set).dirty += 1;
    }

    pub(crate) fn cleaned(&mut self, set: SetId) {
        self.of(set).dirty -= 1;
    }
}

impl Cache {
    /// Make room for a set with this number, which is being started.
    pub(crate) fn make_room_for(&mut self, set: SetId) {
        if self.shares.sets.len() <= set.index() {
            self.shares.sets.resize_with(set.index() + 1, Share::default);
        }
        self.units.make_room_for(set);
        self.figures.begin(set, CacheFigures::default);
    }

    /// Count the sets that collect writes, because they share the cache.
    pub(crate) fn count_collectors(&mut self, sets: &Sets) {
        if !self.is_on() {
            return;
        }
        self.set_collectors(|id| {
            let set = sets.find(id);
            set.is_some_and(|set| !set.has_failed() && set.write_cache() != WriteCache::Through)
        });
    }

    /// Note which sets collect writes now.
    fn set_collectors(&mut self, collects: impl Fn(SetId) -> bool) {
        self.shares.collectors = 0;
        for (share, number) in self.shares.sets.iter_mut().zip(0..) {
            share.collects = collects(SetId(number));
            self.shares.collectors += u32::from(share.collects);
        }
    }

    /// A dirty unit of a set is being written; it has about `lines` lines.
    pub(crate) fn begin_writing(&mut self, now: Instant, set: SetId, lines: u32) {
        self.writing += 1;
        if self.writing == self.writing_max {
            self.crowded_since = now;
        }
        self.leaving += lines;
        let share = self.shares.of(set);
        (share.writing, share.leaving) = (share.writing + 1, share.leaving + lines);
    }

    /// The unit was written.
    pub(crate) fn end_writing(&mut self, now: Instant, set: SetId, lines: u32) {
        self.counters.crowded = self.crowded(now);
        self.writing -= 1;
        self.leaving -= lines;
        let share = self.shares.of(set);
        (share.writing, share.leaving) = (share.writing - 1, share.leaving - lines);
    }

    /// Time until now in which the maximum number of dirty units was being written.
    pub(crate) fn crowded(&self, now: Instant) -> Nanos {
        let open = if self.writing == self.writing_max { now.since(self.crowded_since) } else { Nanos::ZERO };
        self.counters.crowded + open
    }

    /// Is a dirty unit of a set being written?
    pub(crate) fn is_writing(&self, set: SetId) -> bool {
        self.writing_of(set) > 0
    }

    /// Number of dirty units of a set that are being written.
    pub(crate) fn writing_of(&self, set: SetId) -> u32 {
        self.shares.sets[set.index()].writing
    }

    /// Number of lines of a set with a dirty sector.
    pub(crate) fn dirty_of(&self, set: SetId) -> u32 {
        self.shares.sets[set.index()].dirty
    }

    /// Is there at most one set that collects writes, and no failed set with dirty lines?
    pub(crate) fn is_of_one_set(&self) -> bool {
        self.shares.collectors <= 1 && self.held == 0
    }

    /// May one more unit of a set be written, if `places` units of all sets may be in work at once?
    fn has_place(&self, set: SetId, places: u32) -> bool {
        let share = (places / self.shares.collectors.max(1)).max(1);
        self.shares.sets[set.index()].writing < share
    }

    /// The number of dirty lines reserved for each set.
    fn kept_part(&self) -> u32 {
        (self.dirty_max - self.high) / self.shares.collectors.max(1)
    }

    /// Number of dirty lines of sets that have not failed, and the maximum of that number. Failed sets reduce the room,
    /// but never to zero.
    fn dirty_room(&self) -> (u32, u32) {
        let most = (self.dirty_max - self.held.min(self.dirty_max)).max(self.dirty_max / OTHERS_SHARE);
        (self.dirty - self.held, most)
    }

    /// May one more line of any set be dirty?
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let (used, most) = self.dirty_room();
        used < most
    }

    /// May one more line of a set be dirty?
    pub(crate) fn has_dirty_room(&self, set: SetId) -> bool {
        let (used, most) = self.dirty_room();
        if self.shares.collectors <= 1 {
            return used < most;
        }
        let (part, others) = (self.kept_part(), self.shares.collectors - 1);
        if used + part * others < most {
            return true;
        }
        let rest = |(number, share): (usize, &Share)| {
            if share.collects && number != set.index() {
                part.saturating_sub(share.dirty)
            } else {
                0
            }
        };
        used + self.shares.sets.iter().enumerate().map(rest).sum::<u32>() < most
    }

    /// Must a set be drained?
    pub(crate) fn is_drained(&self, set: SetId) -> bool {
        let count = self.shares.collectors;
        if !self.draining || count <= 1 {
            return self.draining;
        }
        let share = &self.shares.sets[set.index()];
        share.dirty - share.leaving.min(share.dirty) > (self.low / count).min(self.kept_part() / 2)
    }

    /// The next dirty unit to be written, and the reason. Ready units come first, one of each set in turn. Then comes a
    /// unit of the set with the oldest unit, if memory is short or a write waits, if the journal needs it written (it
    /// keeps an entry below `pressed`), or if it has waited long enough. That is the oldest unit, or the next one in
    /// order of address.
    pub(crate) fn pick(&mut self, now: Instant, pace_of: impl Fn(SetId) -> Pace, pressed: u64) -> Option<u32> {
        self.draining &= self.dirty - self.leaving.min(self.dirty) > self.low;
        let (count, turn) = (self.units.sets(), self.shares.turn);
        let mut oldest: Option<(u32, Pace)> = None;
        for set in (turn..count).chain(0..turn.min(count)).map(SetId) {
            if self.units.is_idle(set) {
                continue;
            }
            let pace = pace_of(set);
            if !self.has_place(set, pace.places) {
                continue;
            }
            if let Some(rested) = self.first_rested(set, now, pace, pressed) {
                self.counters.aged += 1;
                self.units.set_state(rested, UnitState::Ready);
            }
            if let Some(unit) = self.units.first_ready(set) {
                self.shares.turn = set.0 + 1;
                return Some(unit);
            }
            let Some(unit) = self.units.first_waiting(set) else { continue };
            let since = self.units.get(unit).since;
            let due = self.is_hurried(pace, unit, pressed) || since + pace.delay <= now;
            if due && oldest.is_none_or(|(other, _)| since < self.units.get(other).since) {
                oldest = Some((unit, pace));
            }
        }
        let (oldest, pace) = oldest?;
        let set = self.units.get(oldest).set;
        let unit = if pace.sweeps { self.sweep(set, oldest, now, pace, pressed) } else { oldest };
        let (awaited, hurried) = (pace.awaited.has(self.units.get(unit)), self.is_hurried(pace, unit, pressed));
        let counters = &mut self.counters;
        let counter = match (awaited, hurried) {
            (true, _) => &mut counters.urgent,
            (false, true) => &mut counters.pressed,
            (false, false) => &mut counters.aged,
        };
        *counter += 1;
        Some(unit)
    }

    /// The unit of a set that is nearest above the last one that was written, among the units with the same urgency as
    /// the oldest: a flush waits for them, the journal needs them written, memory is short, or they are old. No more
    /// urgent unit is skipped. If the journal needs everything written, it is the oldest unit.
    fn sweep(&mut self, set: SetId, oldest: u32, now: Instant, pace: Pace, pressed: u64) -> u32 {
        let flushed = pace.awaited.has(self.units.get(oldest));
        let drained = self.is_drained(set);
        let presses = self.keeps_entry_below(oldest, pressed);
        if presses && pressed == u64::MAX {
            return oldest;
        }
        let Self { units, lines, .. } = self;
        units.sweep(set, oldest, now, |unit| match (flushed, presses) {
            (true, _) => pace.awaited.has(unit),
            (false, true) => lines.keeps_entry_below(unit, pressed),
            (false, false) => drained || unit.since + pace.delay <= now,
        })
    }

    /// Must a waiting unit be written before it is old?
    fn is_hurried(&self, pace: Pace, unit: u32, pressed: u64) -> bool {
        let entry = self.units.get(unit);
        pace.awaited.has(entry) || self.is_drained(entry.set) || self.keeps_entry_below(unit, pressed)
    }

    /// The dirty unit of a set that is tried once more. A unit that was not tried yet and is due as well comes first if
    /// it has waited longer: otherwise repeated attempts of refused units would keep the members from getting units
    /// that they accept.
    fn first_rested(&self, set: SetId, now: Instant, pace: Pace, pressed: u64) -> Option<u32> {
        let rested = self.units.first_resting(set).filter(|_| pace.again)?;
        let unit = self.units.get(rested);
        let due = unit.since + unit.rest(pace.delay);
        let before = |unit: u32| {
            let since = self.units.get(unit).since;
            since <= due && (since + pace.delay <= now || self.is_hurried(pace, unit, pressed))
        };
        (due <= now && !self.units.first_waiting(set).is_some_and(before)).then_some(rested)
    }

    /// Does the line of this dirty unit that has been dirty longest need an entry of the journal below this one?
    pub(crate) fn keeps_entry_below(&self, unit: u32, sequence: u64) -> bool {
        self.lines.keeps_entry_below(self.units.get(unit), sequence)
    }

    /// The time at which the next dirty unit is due.
    pub(crate) fn next_due(&self, now: Instant, pace_of: impl Fn(SetId) -> Pace, pressed: u64) -> Option<Instant> {
        let mut first: Option<Instant> = None;
        for set in (0..self.units.sets()).map(SetId) {
            if self.units.is_idle(set) {
                continue;
            }
            let pace = pace_of(set);
            if !self.has_place(set, pace.places) {
                continue;
            }
            if self.units.first_ready(set).is_some() {
                return Some(now);
            }
            let after_delay = |unit: u32| self.units.get(unit).since + pace.delay;
            let waited = |unit| if self.is_hurried(pace, unit, pressed) { now } else { after_delay(unit) };
            let after_rest = |unit: &DirtyUnit| unit.since + unit.rest(pace.delay);
            let rested =
                self.units.first_resting(set).filter(|_| pace.again).map(|unit| after_rest(self.units.get(unit)));
            first = first.into_iter().chain(rested).chain(self.units.first_waiting(set).map(waited)).min();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::Bytes;

    use super::*;
    use crate::limits::Limits;

    fn cache() -> Cache {
        let limits = Limits { cache: Bytes::mib(4), pool: Bytes::mib(8), ..Limits::small() };
        let mut cache = Cache::new(&limits);
        (0..3).for_each(|number| cache.make_room_for(SetId(number)));
        cache
    }

    #[test]
    fn each_set_that_collects_writes_has_an_equal_part_of_the_places_and_at_least_one() {
        let mut cache = cache();
        cache.set_collectors(|set| set.0 < 2);
        for _ in 0..2 {
            assert!(cache.has_place(SetId(0), 4));
            cache.begin_writing(Instant::ZERO, SetId(0), 1);
        }
        assert!(!cache.has_place(SetId(0), 4) && cache.has_place(SetId(1), 4));
        cache.end_writing(Instant::ZERO, SetId(0), 1);
        assert!(cache.has_place(SetId(0), 4));
        assert!(cache.has_place(SetId(1), 1), "a set has one place, however few there are");
    }

    #[test]
    fn room_above_the_high_mark_is_kept_for_the_sets_that_have_not_used_their_part() {
        let mut cache = cache();
        cache.set_collectors(|set| set.0 < 2);
        let part = (cache.dirty_max - cache.high) / 2;
        assert!(part > 1);
        // Set 0 has all dirty lines: it leaves the part of set 1, and no more.
        for dirty in [cache.dirty_max - part - 1, cache.dirty_max - part] {
            cache.dirty = dirty;
            cache.shares.of(SetId(0)).dirty = dirty;
            assert_eq!(cache.has_dirty_room(SetId(0)), dirty < cache.dirty_max - part);
            assert!(cache.has_dirty_room(SetId(1)));
        }
        // A set that is alone may use everything.
        cache.set_collectors(|set| set.0 < 1);
        assert!(cache.has_dirty_room(SetId(0)));
    }
}
