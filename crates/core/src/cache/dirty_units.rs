//! Dirty units: the stripes (of parity sets) and ranges (of others) that have dirty data.
//!
//! ```text
//!             first dirty line            full, urgent, old, or memory is short
//!   (none) -------------------> Waiting ----------------------------------------> Ready
//!     ^                            ^                                                |
//!     | nothing dirty is left      | written to meanwhile                           | an operation takes it
//!     +----------------------------+------------------ Writing <-------------------+
//! ```
//!
//! A unit that could not be written rests before it is tried again, longer each time, unless a request waits for it or
//! a flush needs it. Otherwise a shortage of memory would try it again and again at one instant, although it is unknown
//! when its members will accept it. A unit of a failed set is held until the set is stopped.

use alloc::vec::Vec;
use openraid_units::{Instant, Nanos, SetId, SetLba};

use super::destage_sweep::{Sweep, NO_ZONE};
use super::linked_list::{Link, List};
use super::place_table::Places;
use crate::slab::NONE;

/// State of a dirty unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnitState {
    /// Not in use.
    Free,
    /// Collects writes.
    Waiting,
    /// To be written as soon as there is room.
    Ready,
    /// An operation writes it.
    Writing,
    /// It could not be written.
    Resting,
    /// Its set has failed.
    Held,
}

/// A dirty unit. It fills one line of the processor's caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct DirtyUnit {
    pub(super) set: SetId,
    /// Its first sector in the set, which names it.
    pub(super) start: SetLba,
    pub(super) state: UnitState,
    /// Its dirty lines.
    pub(super) lines: List,
    /// Dirty sectors.
    pub(super) sectors: u32,
    /// Time of the oldest dirty data.
    pub(super) since: Instant,
    /// The epoch of its set at that time: a flush ends an epoch and waits for its units.
    pub(super) epoch: u32,
    /// A request waits for it: it is written at once, and once more if it was written to meanwhile.
    pub(super) urgent: bool,
    /// Number of failed writes in a row.
    pub(super) refusals: u8,
    /// First of the pieces that wait for it.
    pub(super) waiters: u32,
    /// Its address in its set, if the set is swept over.
    pub(super) zone: u16,
}
const _: () = assert!(size_of::<DirtyUnit>() == 64);

/// Maximum time for which a unit rests that was refused repeatedly.
const REST_MOST: Nanos = Nanos::from_secs(180);

impl DirtyUnit {
    /// Its set.
    pub(crate) const fn set(&self) -> SetId {
        self.set
    }

    /// Did the members refuse the last write?
    pub(crate) fn is_refused(&self) -> bool {
        self.refusals > 0
    }

    /// Time for which it rests: the time for which dirty data collects further writes, doubled after each further
    /// refusal.
    pub(crate) fn rest(&self, delay: Nanos) -> Nanos {
        let doubled = 1_u64.checked_shl(u32::from(self.refusals.saturating_sub(1))).unwrap_or(u64::MAX);
        Nanos(delay.get().saturating_mul(doubled).min(REST_MOST.get()).max(delay.get()))
    }
}

/// Indices of a set's lists.
const WAITING: usize = 0;
const READY: usize = 1;
const RESTING: usize = 2;

/// The list of the units in a state.
fn list_of(state: UnitState) -> Option<usize> {
    match state {
        UnitState::Waiting => Some(WAITING),
        UnitState::Ready => Some(READY),
        UnitState::Resting => Some(RESTING),
        UnitState::Writing | UnitState::Held | UnitState::Free => None,
    }
}

/// The facts about a unit that its lists need.
#[derive(Clone, Copy)]
struct UnitFacts {
    set: SetId,
    zone: u16,
    is_refused: bool,
}

/// All dirty units.
#[derive(Debug)]
pub(crate) struct Units {
    units: Vec<DirtyUnit>,
    /// Links of each unit: in the list of free ones, or in one of the lists of its set.
    links: Vec<Link>,
    places: Places,
    free: u32,
    /// For each set: its waiting units, the oldest first; its ready units; its resting units, the longest first.
    lists: Vec<[List; 3]>,
    /// Links from each waiting unit to its neighbours in the same zone.
    zone_links: Vec<Link>,
    sweeps: Vec<Sweep>,
    zones: u32,
    /// Number of units that are being written and were not refused before.
    promising: u32,
    /// For each set: number of units whose last write the members refused.
    refused: Vec<u32>,
}

impl Units {
    /// Size in bytes of the tables for `count` units.
    pub(crate) const fn table_bytes(count: u64) -> u64 {
        count * (size_of::<DirtyUnit>() + 2 * size_of::<Link>()) as u64 + Places::table_bytes(count)
    }

    /// Room for one unit for each line, and `zones` zones for each set.
    pub(crate) fn new(count: u32, zones: u32) -> Self {
        let blank = DirtyUnit {
            set: SetId(0),
            start: SetLba::ZERO,
            state: UnitState::Free,
            lines: List::EMPTY,
            sectors: 0,
            since: Instant::ZERO,
            epoch: 0,
            urgent: false,
            refusals: 0,
            waiters: NONE,
            zone: NO_ZONE,
        };
        let units = alloc::vec![blank; count as usize];
        let links = Link::chain(count);
        let places = Places::new(count);
        let free = if count == 0 { NONE } else { 0 };
        Self {
            units,
            links,
            places,
            free,
            lists: Vec::new(),
            zone_links: alloc::vec![Link::NEW; count as usize],
            sweeps: Vec::new(),
            // Without a cache there are no zones.
            zones: if count == 0 { 1 } else { zones },
            promising: 0,
            refused: Vec::new(),
        }
    }

    pub(crate) fn get(&self, index: u32) -> &DirtyUnit {
        &self.units[index as usize]
    }
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut DirtyUnit {
        &mut self.units[index as usize]
    }

    /// The dirty unit that begins here, if there is one.
    pub(crate) fn find(&self, set: SetId, start: SetLba) -> Option<u32> {
        self.places.find(set, start.get(), |index| {
            let unit = &self.units[index as usize];
            unit.start == start && unit.set == set
        })
    }

    /// Touch the table entry of a unit: see [`super::prefetch`].
    pub(crate) fn place_seen(&self, hash: u32) -> u32 {
        self.places.seen(hash)
    }

    /// The units of a set that are likely to be written next, as many as there is room for.
    pub(crate) fn coming(&self, set: SetId, sweeps: bool, indices: &mut [u32]) {
        let places = indices.iter_mut();
        if sweeps {
            let swept = self.sweeps[set.index()].coming(&self.zone_links);
            places.zip(swept).for_each(|(place, unit)| *place = unit);
        } else {
            places.zip(self.all(set, UnitState::Waiting)).for_each(|(place, unit)| *place = unit);
        }
    }

    /// Touch a unit and its table entry. Returns its first line: see [`super::prefetch`].
    pub(crate) fn unit_seen(&self, index: u32) -> (u32, u32) {
        let Some(unit) = self.units.get(index as usize) else { return (0, NONE) };
        (self.places.seen(Places::hash_of(unit.set, unit.start.get())), unit.lines.head)
    }

    /// Make a new dirty unit that begins here, where none does.
    pub(crate) fn make(&mut self, (set, start, zone): (SetId, SetLba, u16), now: Instant, epoch: u32) -> u32 {
        debug_assert!(self.find(set, start).is_none());
        let index = self.free;
        assert!(index != NONE, "there are as many units as lines");
        self.free = self.links[index as usize].next;
        self.places.insert(Places::hash_of(set, start.get()), index);
        self.units[index as usize] = DirtyUnit {
            set,
            start,
            state: UnitState::Waiting,
            lines: List::EMPTY,
            sectors: 0,
            since: now,
            epoch,
            urgent: false,
            refusals: 0,
            waiters: NONE,
            zone,
        };
        self.push(index, UnitFacts { set, zone, is_refused: false }, UnitState::Waiting);
        index
    }

    /// Nothing in it is dirty any more.
    pub(crate) fn free(&mut self, index: u32) {
        let unit = &self.units[index as usize];
        debug_assert!(unit.sectors == 0 && unit.waiters == NONE && unit.lines.head == NONE);
        self.refused[unit.set.index()] -= u32::from(unit.is_refused());
        self.pull(index);
        let DirtyUnit { set, start, .. } = self.units[index as usize];
        self.places.remove(Places::hash_of(set, start.get()), index);
        let unit = &mut self.units[index as usize];
        unit.state = UnitState::Free;
        self.links[index as usize].next = self.free;
        self.free = index;
    }

    /// Change its state; it goes to the end of the list of that state.
    pub(crate) fn set_state(&mut self, index: u32, state: UnitState) {
        let known = self.pull(index);
        self.units[index as usize].state = state;
        self.push(index, known, state);
    }

    /// The write of a unit has ended; its new state is set next.
    pub(crate) fn was_written(&mut self, index: u32, refused: bool) {
        let unit = &mut self.units[index as usize];
        self.promising -= u32::from(!unit.is_refused());
        let count = &mut self.refused[unit.set.index()];
        *count = *count + u32::from(refused) - u32::from(unit.is_refused());
        unit.refusals = if refused { unit.refusals.saturating_add(1) } else { 0 };
    }

    /// Is there a unit of a set whose last write the members refused?
    pub(crate) fn is_any_refused(&self, set: SetId) -> bool {
        self.refused[set.index()] > 0
    }

    /// Are all dirty units refused ones, or units of failed sets? Then no line will become clean for some time,
    /// whichever unit is tried again.
    pub(crate) fn is_all_refused(&self) -> bool {
        self.promising == 0 && !(0..self.sets()).any(|set| self.is_any_promising(SetId(set)))
    }

    /// Is a unit of a set waiting to be written that was not refused before?
    pub(crate) fn is_any_promising(&self, set: SetId) -> bool {
        let promises = |list: usize| {
            let mut index = self.lists[set.index()][list].head;
            while index != NONE && self.units[index as usize].is_refused() {
                index = self.links[index as usize].next;
            }
            index != NONE
        };
        promises(READY) || promises(WAITING)
    }

    /// Make room for a set with this number.
    pub(crate) fn make_room_for(&mut self, set: SetId) {
        if self.lists.len() <= set.index() {
            self.lists.resize(set.index() + 1, [List::EMPTY; 3]);
            self.sweeps.resize_with(set.index() + 1, || Sweep::new(self.zones));
            self.refused.resize(set.index() + 1, 0);
        }
    }

    /// Upper bound of the set numbers.
    pub(crate) fn sets(&self) -> u16 {
        u16::try_from(self.lists.len()).expect("sets have numbers of 16 bits")
    }

    /// Put a unit into the list of its state. The unit itself is not accessed: if it was written just now, its cache
    /// line may still be on its way.
    fn push(&mut self, index: u32, known: UnitFacts, state: UnitState) {
        let UnitFacts { set, zone, is_refused } = known;
        self.promising += u32::from(state == UnitState::Writing && !is_refused);
        let Some(list) = list_of(state) else { return };
        self.lists[set.index()][list].push(&mut self.links, index);
        if list == WAITING && zone != NO_ZONE {
            self.sweeps[set.index()].push(&mut self.zone_links, zone, index);
        }
    }

    /// Take a unit out of the list of its state.
    fn pull(&mut self, index: u32) -> UnitFacts {
        let unit = &self.units[index as usize];
        let (state, known) = (unit.state, UnitFacts { set: unit.set, zone: unit.zone, is_refused: unit.is_refused() });
        let Some(list) = list_of(state) else { return known };
        self.lists[known.set.index()][list].remove(&mut self.links, index);
        if list == WAITING && known.zone != NO_ZONE {
            self.sweeps[known.set.index()].remove(&mut self.zone_links, known.zone, index);
        }
        known
    }

    /// The next unit of a set in order of address, among the first units of the zones that may be written. If none of
    /// the next zones has one, it is the unit that has waited longest. That unit is also chosen if it is in no zone:
    /// otherwise its turn would never come.
    pub(crate) fn sweep(&mut self, set: SetId, oldest: u32, now: Instant, may: impl Fn(&DirtyUnit) -> bool) -> u32 {
        let Self { sweeps, units, .. } = self;
        let (sweep, zone) = (&mut sweeps[set.index()], units[oldest as usize].zone);
        if zone == NO_ZONE {
            return oldest;
        }
        let found = sweep.next(now, |index, arrived| {
            let unit = &units[index as usize];
            unit.since <= arrived && may(unit)
        });
        if found.is_none() {
            sweep.jump(zone, now);
        }
        found.unwrap_or(oldest)
    }

    /// A waiting or ready unit of a set in which nothing is dirty any more.
    pub(crate) fn first_empty(&self, set: SetId) -> Option<u32> {
        for list in [WAITING, READY] {
            let mut index = self.lists[set.index()][list].head;
            while index != NONE {
                let unit = &self.units[index as usize];
                if unit.sectors == 0 {
                    return Some(index);
                }
                index = self.links[index as usize].next;
            }
        }
        None
    }

    /// The units of a set rest no longer.
    pub(crate) fn end_rest(&mut self, set: SetId) {
        while let Some(unit) = self.first_resting(set) {
            self.set_state(unit, UnitState::Ready);
        }
    }

    /// Has a set no unit to write, now or later?
    pub(crate) fn is_idle(&self, set: SetId) -> bool {
        let lists = &self.lists[set.index()];
        lists.iter().all(List::is_empty)
    }

    /// Is there a unit of a set that is to be written and was not tried since the last end of its rest?
    pub(crate) fn is_any_untried(&self, set: SetId) -> bool {
        self.first_ready(set).or(self.first_waiting(set)).is_some()
    }

    /// The first ready unit of a set.
    pub(crate) fn first_ready(&self, set: SetId) -> Option<u32> {
        self.first(set, READY)
    }
    /// The unit of a set that has rested longest.
    pub(crate) fn first_resting(&self, set: SetId) -> Option<u32> {
        self.first(set, RESTING)
    }
    /// The unit of a set that has waited longest.
    pub(crate) fn first_waiting(&self, set: SetId) -> Option<u32> {
        self.first(set, WAITING)
    }

    /// The units of a set in this state, among the units that wait for something.
    pub(crate) fn all(&self, set: SetId, state: UnitState) -> impl Iterator<Item = u32> + '_ {
        let mut index = list_of(state).map_or(NONE, |list| self.lists[set.index()][list].head);
        core::iter::from_fn(move || {
            let here = index;
            index = self.links.get(here as usize)?.next;
            Some(here)
        })
    }

    fn first(&self, set: SetId, list: usize) -> Option<u32> {
        self.lists[set.index()][list].first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: SetId = SetId(0);

    fn units() -> (Units, [u32; 2]) {
        let mut units = Units::new(4, 1);
        units.make_room_for(SET);
        let made = [3, 9].map(|start| units.make((SET, SetLba(start), NO_ZONE), Instant(1), 0));
        (units, made)
    }

    #[test]
    fn a_unit_is_in_the_list_of_its_state_and_in_no_other() {
        let (mut units, [first, second]) = units();
        assert!(units.all(SET, UnitState::Waiting).eq([first, second]));
        for (state, first_of) in [
            (UnitState::Ready, Units::first_ready as fn(&Units, SetId) -> Option<u32>),
            (UnitState::Resting, Units::first_resting),
            (UnitState::Waiting, Units::first_waiting),
        ] {
            units.set_state(first, state);
            let lists = [UnitState::Waiting, UnitState::Ready, UnitState::Resting];
            let holds = |listed: &UnitState| units.all(SET, *listed).any(|unit| unit == first);
            assert!(lists.iter().filter(|listed| holds(listed)).eq([&state]), "{state:?}");
            assert!(first_of(&units, SET).is_some());
        }
        // It comes after the unit that has waited all the time.
        assert!(units.all(SET, UnitState::Waiting).eq([second, first]));
        units.set_state(second, UnitState::Resting);
        units.end_rest(SET);
        assert_eq!((units.first_resting(SET), units.first_ready(SET)), (None, Some(second)));
    }

    #[test]
    fn a_refused_unit_promises_nothing_until_it_is_written() {
        let (mut units, [first, second]) = units();
        units.free(second);
        units.set_state(first, UnitState::Writing);
        assert!(!units.is_all_refused(), "what is being written may become clean");
        units.was_written(first, true);
        units.set_state(first, UnitState::Ready);
        assert!(units.is_any_refused(SET) && units.is_all_refused() && !units.is_any_promising(SET));
        units.set_state(first, UnitState::Writing);
        units.was_written(first, false);
        units.set_state(first, UnitState::Waiting);
        assert!(!units.is_any_refused(SET) && units.is_any_promising(SET));
        assert_eq!(units.first_empty(SET), Some(first));
        units.free(first);
        assert!(units.is_idle(SET) && units.find(SET, SetLba(3)).is_none());
    }

    #[test]
    fn each_refusal_doubles_the_rest_up_to_three_minutes() {
        let (units, [first, _]) = units();
        let rest = |refusals| DirtyUnit { refusals, ..*units.get(first) }.rest(Nanos::from_secs(1));
        assert_eq!([1, 2, 3, 8].map(rest), [1, 2, 4, 128].map(Nanos::from_secs));
        assert_eq!([9, 65, 255].map(rest), [Nanos::from_secs(180); 3]);
    }
}
