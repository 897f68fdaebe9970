//! The number of things inside something, over time: requests in an array, commands at a drive.
//!
//! Two samples of it give the share of the time in which anything was inside, the mean number inside, and, with the
//! number of arrivals (Little's law: N = X R), the mean time of a stay.

use openraid_units::{Instant, Nanos};

pub use crate::io::state::drive_queues::DriveLoad;

/// The sums so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Occupied {
    /// Inside now.
    pub level: u32,
    /// Time in which anything was inside.
    pub busy: Nanos,
    /// The number inside, integrated over time: nanoseconds of stay of all of them.
    pub stays: u128,
}

/// The running sums.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Occupancy {
    sum: Occupied,
    since: Instant,
}

impl Occupancy {
    /// From `now` on, `level` things are inside.
    #[inline(always)]
    pub(crate) fn set(&mut self, now: Instant, level: u32) {
        // Many events have the same time, and add nothing.
        if now != self.since {
            self.sum = self.at(now);
            self.since = now;
        }
        self.sum.level = level;
    }

    /// One more is inside from `now` on.
    pub(crate) fn enter(&mut self, now: Instant) {
        self.set(now, self.sum.level + 1);
    }

    /// One less is inside from `now` on.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.set(now, self.sum.level - 1);
    }

    /// The sums at this time.
    #[inline(always)]
    pub(crate) fn at(&self, now: Instant) -> Occupied {
        let time = now.since(self.since).get();
        let Occupied { level, busy, stays } = self.sum;
        let busy = if level > 0 { busy + Nanos(time) } else { busy };
        Occupied { level, busy, stays: stays + u128::from(level) * u128::from(time) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_and_busy_time_are_those_of_what_was_inside() {
        let mut inside = Occupancy::default();
        // Two from 10 to 30, one of them until 100; none until 150; one since then.
        inside.enter(Instant(10));
        inside.enter(Instant(10));
        inside.leave(Instant(30));
        inside.leave(Instant(100));
        inside.enter(Instant(150));
        let sum = inside.at(Instant(160));
        assert_eq!(sum, Occupied { level: 1, busy: Nanos(90 + 10), stays: 20 + 90 + 10 });
        assert_eq!(inside.at(Instant(160)), sum, "looking changes nothing");
    }
}
