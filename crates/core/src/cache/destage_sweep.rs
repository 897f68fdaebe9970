//! The order in which dirty units go to rotating members: zone by zone upwards, and then from the lowest again.
//!
//! A set is divided into zones of equal length. In each zone, waiting units are in the order in which they began to
//! wait. The hand moves over the zones and takes the units that were there when it came. So it reaches every zone once
//! in a turn, however much is written to one place meanwhile. Within a zone the drives' queues sort the commands.

use alloc::vec::Vec;
use openraid_units::{Instant, Sectors, SetLba};

use super::linked_list::{Link, List};

/// The zone number of a unit in no zone.
pub(crate) const NO_ZONE: u16 = u16::MAX;
/// Maximum number of zones that are examined for one unit. If many zones have a unit that may be written, one of the
/// first does.
const LOOKS_MAX: u32 = 16;

/// The zone in which an address lies, if a set of this capacity is divided into `zones` zones. All zones have the same
/// number of sectors, a power of two.
pub(crate) fn zone_of(zones: u32, capacity: Sectors, at: SetLba) -> u16 {
    let bits = u64::BITS - capacity.get().saturating_sub(1).leading_zeros();
    let zone = at.get() >> bits.saturating_sub(zones.trailing_zeros());
    u16::try_from(zone).expect("as many zones as there are at most")
}

/// The zones of a set.
#[derive(Debug)]
pub(crate) struct Sweep {
    zones: Vec<List>,
    /// Bit set of the zones that have a unit.
    taken: Vec<u64>,
    /// The zone in work, and the time when the hand came there.
    hand: u32,
    since: Option<Instant>,
}

impl Sweep {
    /// A sweep over `zones` zones, in which nothing waits.
    pub(crate) fn new(zones: u32) -> Self {
        let words = zones.div_ceil(u64::BITS) as usize;
        Self { zones: alloc::vec![List::EMPTY; zones as usize], taken: alloc::vec![0; words], hand: 0, since: None }
    }

    /// A unit of a zone waits.
    pub(crate) fn push(&mut self, links: &mut [Link], zone: u16, unit: u32) {
        self.zones[usize::from(zone)].push(links, unit);
        self.taken[usize::from(zone / 64)] |= 1 << (zone % 64);
    }

    /// A unit of a zone no longer waits.
    pub(crate) fn remove(&mut self, links: &mut [Link], zone: u16, unit: u32) {
        let list = &mut self.zones[usize::from(zone)];
        list.remove(links, unit);
        if list.is_empty() {
            self.taken[usize::from(zone / 64)] &= !(1 << (zone % 64));
        }
    }

    /// The first zone from this one on that has a unit.
    fn taken_from(&self, zone: u32) -> Option<u32> {
        let mut word = zone / 64;
        let mut bits = *self.taken.get(word as usize)? & (u64::MAX << (zone % 64));
        while bits == 0 {
            word += 1;
            bits = *self.taken.get(word as usize)?;
        }
        Some(word * 64 + bits.trailing_zeros())
    }

    /// Continue: the next unit that may be written, among the first units of the zones. `None` if none of the examined
    /// zones has one.
    pub(crate) fn next(&mut self, now: Instant, may: impl Fn(u32, Instant) -> bool) -> Option<u32> {
        let (mut zone, mut since, mut is_below) = (self.hand, self.since.unwrap_or(now), false);
        for look in 0..LOOKS_MAX {
            let mut next = self.taken_from(zone);
            if next.is_none() && !is_below {
                (next, is_below) = (self.taken_from(0), true);
            }
            // Finally the hand's own zone again, with units that came since.
            let found = next.filter(|found| !is_below || *found <= self.hand)?;
            if look > 0 || found != self.hand {
                since = now;
            }
            let unit = self.zones[found as usize].head;
            if may(unit, since) {
                (self.hand, self.since) = (found, Some(since));
                return Some(unit);
            }
            zone = found + 1;
        }
        None
    }

    /// Move the hand to a zone out of turn.
    pub(crate) fn jump(&mut self, zone: u16, now: Instant) {
        (self.hand, self.since) = (u32::from(zone), Some(now));
    }

    /// The units that are likely to come next, as many as there is room for.
    pub(crate) fn coming<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = u32> + 'a {
        let mut zone = self.hand;
        let mut unit = self.zones[zone as usize].head;
        core::iter::from_fn(move || {
            if unit == crate::slab::NONE {
                zone = self.taken_from(zone + 1)?;
                unit = self.zones[zone as usize].head;
            }
            let here = unit;
            unit = links[here as usize].next;
            Some(here)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Nanos;

    const UNITS: usize = 64;

    struct Model {
        sweep: Sweep,
        links: Vec<Link>,
        since: [Instant; UNITS],
        zone: [u16; UNITS],
        now: Instant,
    }

    impl Model {
        fn new(zones: u32) -> Self {
            let (since, zone) = ([Instant::ZERO; UNITS], [0; UNITS]);
            Self { sweep: Sweep::new(zones), links: alloc::vec![Link::NEW; UNITS], since, zone, now: Instant::ZERO }
        }

        fn push(&mut self, unit: u32, zone: u16) {
            self.now = self.now + Nanos(1);
            (self.since[unit as usize], self.zone[unit as usize]) = (self.now, zone);
            self.sweep.push(&mut self.links, zone, unit);
        }

        /// Remove the next unit that is not barred.
        fn take(&mut self, barred: &[u32]) -> Option<u32> {
            self.now = self.now + Nanos(1);
            let since = self.since;
            let may = |unit: u32, arrived| since[unit as usize] <= arrived && !barred.contains(&unit);
            let unit = self.sweep.next(self.now, may)?;
            self.sweep.remove(&mut self.links, self.zone[unit as usize], unit);
            Some(unit)
        }
    }

    #[test]
    fn zones_have_the_length_of_a_power_of_two_and_hold_the_set() {
        // 1000 sectors: bits 10, so that four zones have 256 sectors each.
        let zone = |at| zone_of(4, Sectors(1000), SetLba(at));
        assert_eq!([0, 255, 256, 999].map(zone), [0, 0, 1, 3]);
        assert_eq!(zone_of(1, Sectors(1000), SetLba(999)), 0);
        // More zones than sectors.
        assert_eq!([0, 1, 2].map(|at| zone_of(1024, Sectors(3), SetLba(at))), [0, 1, 2]);
        assert_eq!(zone_of(1024, Sectors(1 << 40), SetLba((1 << 40) - 1)), 1023);
    }

    #[test]
    fn the_hand_goes_upwards_and_begins_again_below() {
        let mut model = Model::new(128);
        for (unit, zone) in [(0, 100), (1, 3), (2, 3), (3, 64), (4, 127)] {
            model.push(unit, zone);
        }
        assert_eq!([model.take(&[]), model.take(&[]), model.take(&[])], [Some(1), Some(2), Some(3)]);
        model.push(5, 2);
        assert_eq!(model.take(&[0]), Some(4), "one that may not be written is passed over");
        assert_eq!([model.take(&[]), model.take(&[]), model.take(&[])], [Some(5), Some(0), None]);
    }

    #[test]
    fn a_zone_that_is_written_to_without_end_keeps_no_other_waiting() {
        let mut model = Model::new(64);
        model.push(0, 7);
        model.push(1, 7);
        model.push(2, 50);
        assert_eq!(model.take(&[]), Some(0));
        for round in 0..10 {
            model.push(3 + 2 * round, 7);
            model.push(4 + 2 * round, 7);
            let next = model.take(&[]);
            match round {
                0 => assert_eq!(next, Some(1)),
                1 => assert_eq!(next, Some(2), "what came to the zone after the hand waits for the next turn"),
                _ => assert_eq!(next, Some(round + 1)),
            }
        }
    }

    #[test]
    fn no_more_zones_are_looked_at_than_the_limit() {
        let mut model = Model::new(128);
        let barred: Vec<u32> = (0..LOOKS_MAX).collect();
        for unit in &barred[1..] {
            model.push(*unit, u16::try_from(*unit).expect("few"));
        }
        let last = LOOKS_MAX + 1;
        model.push(last, 100);
        assert_eq!(model.take(&barred), Some(last), "the last look finds it");
        model.sweep.jump(0, model.now);
        model.push(barred[0], 0);
        model.push(last, 100);
        assert_eq!(model.take(&barred), None, "one zone more is before it");
        model.sweep.jump(100, model.now);
        assert_eq!(model.take(&barred), Some(last));
        assert_eq!(model.take(&barred), None, "no zone is searched twice");
    }

    #[test]
    fn the_sweep_returns_units_in_the_order_of_places() {
        let mut model = Model::new(64);
        for (unit, zone) in [(0, 9), (1, 60), (2, 9), (3, 0)] {
            model.push(unit, zone);
        }
        model.sweep.jump(9, model.now);
        let coming: Vec<u32> = model.sweep.coming(&model.links).collect();
        assert_eq!(coming, [0, 2, 1]);
    }
}
