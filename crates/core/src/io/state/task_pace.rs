//! How much a task works on at once: next to hosts less, on drives without heads.

use openraid_units::{Instant, Sectors};

use crate::limits::{BESIDE_HOSTS_PART, MOVE_PARTS_MAX, PACE_MINIMUM_TIME, PACE_WINDOW};

/// The amount that a task of a set works on at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskPace {
    /// Its drives rotate, or hosts do not use them: `background.depth` units, in parts as large as the frames allow.
    Full,
    /// Hosts use its drives, which do not rotate: one unit, in parts of [`BESIDE_HOSTS_PART`], one
    /// at a time.
    BesideHosts,
    /// The same, and they left less than `rebuild.minimum`: this rate, in parts as large as the frames allow. Flash has less
    /// work with long writes.
    Minimum,
}

impl TaskPace {
    /// Maximum number of sectors of a part. With little memory, a part is a quarter of these.
    pub(crate) fn rows(self, most: u32) -> u32 {
        match self {
            Self::Full | Self::Minimum => most,
            Self::BesideHosts => (most / 4).next_multiple_of(8).min(BESIDE_HOSTS_PART).min(most),
        }
    }

    /// Maximum number of units in work, if the settings allow `most`. The parts of one unit follow each other, and flash
    /// has less work with writes that follow each other.
    pub(crate) fn units(self, most: u32) -> u32 {
        match self {
            Self::Full | Self::Minimum => most,
            Self::BesideHosts => 1,
        }
    }

    /// Maximum number of parts of a move in work.
    pub(crate) fn parts(self) -> u32 {
        match self {
            Self::Full | Self::Minimum => MOVE_PARTS_MAX,
            Self::BesideHosts => 1,
        }
    }

    /// The rate of a task, of the settings for it and for its minimum.
    pub(crate) fn rate(self, rate: Sectors, minimum: Sectors) -> Sectors {
        match self {
            Self::Full | Self::BesideHosts => rate,
            Self::Minimum if rate.is_zero() => minimum,
            Self::Minimum => rate.min(minimum),
        }
    }
}

/// The pace of a set's task, and how far the task was when the pace was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    pace: TaskPace,
    since: Instant,
    from: Sectors,
}

impl Pacing {
    /// No task has run yet.
    pub(crate) const START: Self = Self { pace: TaskPace::Full, since: Instant::ZERO, from: Sectors::ZERO };

    /// The pace for a task that has done this part of a member now. `minimum` is its rate, zero if there is none.
    pub(crate) fn next(self, is_beside_hosts: bool, (done, minimum): (Sectors, Sectors), now: Instant) -> Self {
        let other = |pace| Self { pace, since: now, from: done };
        let time = now.since(self.since);
        match self.pace {
            TaskPace::Full if is_beside_hosts => other(TaskPace::BesideHosts),
            TaskPace::BesideHosts | TaskPace::Minimum if !is_beside_hosts => other(TaskPace::Full),
            TaskPace::BesideHosts if time >= PACE_WINDOW => {
                let moved = u128::from(done.saturating_sub(self.from).get()) * 1_000_000_000;
                let is_below = moved < u128::from(minimum.get()) * u128::from(time.get());
                other(if is_below { TaskPace::Minimum } else { TaskPace::BesideHosts })
            }
            TaskPace::Minimum if time >= PACE_MINIMUM_TIME => other(TaskPace::BesideHosts),
            _ => self,
        }
    }

    /// See [`TaskPace`].
    pub(crate) const fn pace(self) -> TaskPace {
        self.pace
    }

    /// The time at which the pace is chosen again although the task does not go on.
    pub(crate) fn due(self) -> Option<Instant> {
        (self.pace == TaskPace::BesideHosts).then_some(self.since + PACE_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_to_hosts_one_unit_is_in_work_in_small_parts_and_without_them_all_that_may_be() {
        let (rate, minimum) = (Sectors::mib(200), Sectors::mib(20));
        for (pace, rows, units, parts, expected) in [
            (TaskPace::Full, 512, 8, 8, rate),
            (TaskPace::BesideHosts, 128, 1, 1, rate),
            (TaskPace::Minimum, 512, 8, 8, minimum),
        ] {
            assert_eq!((pace.rows(512), pace.units(8), pace.parts()), (rows, units, parts), "{pace:?}");
            assert_eq!((pace.rate(rate, minimum), pace.rows(8)), (expected, 8), "{pace:?}");
        }
        // A quarter of few rows, and whole blocks.
        assert_eq!([32, 40, 128].map(|most| TaskPace::BesideHosts.rows(most)), [8, 16, 32]);
        assert_eq!(TaskPace::Minimum.rate(Sectors::ZERO, minimum), minimum, "no limit");
        assert_eq!(TaskPace::Minimum.rate(Sectors::mib(10), minimum), Sectors::mib(10), "a limit below the minimum");
    }

    #[test]
    fn a_task_that_hosts_leave_less_than_its_minimum_gets_it_for_five_seconds_and_then_gives_way_again() {
        // A thousand sectors in a window.
        let minimum = Sectors(4000);
        let mut pacing = Pacing::START;
        let mut look = |hosts, done, tenths: u64| {
            let now = Instant(PACE_WINDOW.get() / 10 * tenths);
            pacing = pacing.next(hosts, (Sectors(done), minimum), now);
            pacing.pace
        };
        assert_eq!([look(false, 0, 0), look(false, 9000, 50)], [TaskPace::Full; 2]);
        // Just the minimum in each window, and then less.
        assert_eq!([look(true, 9000, 60), look(true, 9000, 69), look(true, 10_000, 70)], [TaskPace::BesideHosts; 3]);
        assert_eq!(look(true, 10_999, 80), TaskPace::Minimum);
        assert_eq!([look(true, 90_000, 279), look(true, 90_000, 280)], [TaskPace::Minimum, TaskPace::BesideHosts]);
        // Hosts pause in the middle.
        assert_eq!([look(false, 90_000, 285), look(true, 90_000, 286)], [TaskPace::Full, TaskPace::BesideHosts]);
        assert_eq!([look(true, 90_000, 296), look(false, 90_000, 297)], [TaskPace::Minimum, TaskPace::Full]);
    }
}
