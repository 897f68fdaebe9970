//! The shares of sets in the cache, and which set is next: a set that cannot get rid of its dirty data keeps no other
//! set from writing or from being written.
//!
//! - Each set that collects writes has an equal part of the places for dirty units in work, at least one.
//! - What lies between the high mark and the most that may be dirty is kept for them in equal parts. A set may have all of
//!   the rest.
//! - Above the high mark, sets are drained that have more than their part of the low mark, or more than half of their
//!   own share: at least one set has, and a set that hangs presses no others.

use alloc::vec::Vec;
use openraid_units::{Instant, Nanos, SetId};

use super::units::{DirtyUnit, UnitState};
use super::{Cache, OTHERS_SHARE};

/// What a set has in the cache.
#[derive(Clone, Copy, Default, Debug)]
struct Share {
    /// Lines with a dirty sector, and those of them that are as good as clean.
    dirty: u32,
    leaving: u32,
    /// Dirty units in work.
    writing: u32,
    /// It collects writes.
    collects: bool,
}

/// Which dirty units of a set are waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaited {
    /// None.
    None,
    /// A flush waits for the units that were dirty when it came, before this epoch began.
    Before {
        /// The one that the flush began.
        epoch: u32,
    },
    /// All: the set is being stopped or has failed, or what it has in the journal is to be on its members.
    All,
}

impl Awaited {
    /// Is this unit one of them?
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
    /// A request waits for these: they do not wait for more.
    pub(super) awaited: Awaited,
    /// How long they may wait for more, and rest when the members did not take them for the first time.
    pub(super) delay: Nanos,
    /// Units that the members did not take are tried again.
    pub(super) again: bool,
    /// Units that may be written go in the order of their addresses, not of their age.
    pub(super) sweeps: bool,
    /// Number of units that may be in work if the controller has no other sets.
    pub(super) places: u32,
}

/// What all sets have.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    sets: Vec<Share>,
    /// Sets that collect writes.
    collectors: u32,
    /// Whose turn it is when several have something to be written.
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
    /// There may be a set of this number.
    pub(crate) fn make_room_for(&mut self, set: SetId) {
        if self.shares.sets.len() <= set.index() {
            self.shares.sets.resize_with(set.index() + 1, Share::default);
        }
        self.units.make_room_for(set);
    }

    /// Which sets collect writes now.
    pub(crate) fn set_collectors(&mut self, collects: impl Fn(SetId) -> bool) {
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

    /// It was.
    pub(crate) fn end_writing(&mut self, now: Instant, set: SetId, lines: u32) {
        self.counters.crowded = self.crowded(now);
        self.writing -= 1;
        self.leaving -= lines;
        let share = self.shares.of(set);
        (share.writing, share.leaving) = (share.writing - 1, share.leaving - lines);
    }

    /// Time in which as many dirty units were being written as may be, until now.
    pub(crate) fn crowded(&self, now: Instant) -> Nanos {
        let open = if self.writing == self.writing_max { now.since(self.crowded_since) } else { Nanos::ZERO };
        self.counters.crowded + open
    }

    /// Is a dirty unit of a set being written?
    pub(crate) fn is_writing(&self, set: SetId) -> bool {
        self.writing_of(set) > 0
    }

    /// How many are.
    pub(crate) fn writing_of(&self, set: SetId) -> u32 {
        self.shares.sets[set.index()].writing
    }

    /// Lines with a dirty sector of a set.
    pub(crate) fn dirty_of(&self, set: SetId) -> u32 {
        self.shares.sets[set.index()].dirty
    }

    /// Is there one set that collects writes, at most, and none that has failed with dirty lines?
    pub(crate) fn is_of_one_set(&self) -> bool {
        self.shares.collectors <= 1 && self.held == 0
    }

    /// May one more unit of a set be written, if `places` units of all sets may be in work at once?
    fn has_place(&self, set: SetId, places: u32) -> bool {
        let own = (places / self.shares.collectors.max(1)).max(1);
        self.shares.sets[set.index()].writing < own
    }

    /// The part of the dirty lines that is kept for each set.
    fn kept_part(&self) -> u32 {
        (self.dirty_max - self.high) / self.shares.collectors.max(1)
    }

    /// Lines that are dirty of sets that have not failed, and how many may be. What failed sets keep takes room away, but
    /// never all of it.
    fn dirty_room(&self) -> (u32, u32) {
        let most = (self.dirty_max - self.held.min(self.dirty_max)).max(self.dirty_max / OTHERS_SHARE);
        (self.dirty - self.held, most)
    }

    /// May one more line be dirty of any set?
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let (used, most) = self.dirty_room();
        used < most
    }

    /// May one more line of a set be dirty?
    pub(crate) fn has_dirty_room(&self, set: SetId) -> bool {
        let (used, most) = self.dirty_room();
        let (part, others) = (self.kept_part(), self.shares.collectors.saturating_sub(1));
        if used + part * others < most || others == 0 {
            return used < most;
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

    /// Is a set drained?
    pub(crate) fn is_drained(&self, set: SetId) -> bool {
        let count = self.shares.collectors;
        if !self.draining || count <= 1 {
            return self.draining;
        }
        let share = &self.shares.sets[set.index()];
        share.dirty - share.leaving.min(share.dirty) > (self.low / count).min(self.kept_part() / 2)
    }

    /// The next dirty unit to be written, and why. Ready units come first, one of each set in turn. Then a unit of the
    /// set with the oldest one: while memory is short or a write waits, while the journal needs it gone (it keeps an
    /// entry below `pressed`), or when it has waited long enough. That is the oldest unit or the next in the order of
    /// addresses.
    pub(crate) fn pick(&mut self, now: Instant, pace_of: impl Fn(SetId) -> Pace, pressed: u64) -> Option<u32> {
        self.draining &= self.dirty - self.leaving.min(self.dirty) > self.low;
        let (count, turn) = (self.units.sets(), self.shares.turn);
        let mut oldest: Option<u32> = None;
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
            if due && oldest.is_none_or(|other| since < self.units.get(other).since) {
                oldest = Some(unit);
            }
        }
        let oldest = oldest?;
        let set = self.units.get(oldest).set;
        let pace = pace_of(set);
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

    /// The unit of a set that is nearest above the one that was written last, of those for which the same holds as for the
    /// oldest: a flush waits for them, the journal needs them gone, memory is short, or they are old. Nothing is passed
    /// over for what helps less; where the journal needs everything gone that is the oldest.
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

    /// Is a unit that waits not to wait until it is old?
    fn is_hurried(&self, pace: Pace, unit: u32, pressed: u64) -> bool {
        let entry = self.units.get(unit);
        pace.awaited.has(entry) || self.is_drained(entry.set) || self.keeps_entry_below(unit, pressed)
    }

    /// The dirty unit of a set whose turn it is to be tried once more. What was not tried yet and is to be written as well
    /// comes first, if it waits since longer: else what members do not take, tried again and again, would keep everything
    /// from them that they do take.
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

    /// Does the line of this dirty unit that is dirty since longest need an entry of the journal below this one?
    pub(crate) fn keeps_entry_below(&self, unit: u32, sequence: u64) -> bool {
        self.lines.keeps_entry_below(self.units.get(unit), sequence)
    }

    /// When the next dirty unit is due.
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
