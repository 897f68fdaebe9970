//! The clock of a shard: monotonic time without the periods in which the loop did not run.
//!
//! If the process is stopped (Ctrl-Z), a container frozen, or a machine suspended or overloaded, the loop does not run,
//! and the kernel's workers that carry out its commands may not run either. A drive whose answer was not read in that
//! time may have answered, so a deadline must not pass in it. Every time limit of the engine, of remote members and of
//! clients uses this clock, and none uses the system's monotonic clock.
//!
//! ```text
//!  monotonic   ----wait----|- round -|=========== stopped ===========|- round -|----wait----
//!  this clock  ----wait----|- round -|=|- round -|----wait----
//!                                     ^ STANDSTILL_MIN at most
//! ```
//!
//! While there is a deadline, a wait is at most [`LOOP_WAIT_MAX`] long, so that a stop within a wait is noticed, too.
//! Without a deadline a wait has no limit, and all of it counts: nothing can expire in it.

use openraid_units::{Instant, Nanos};

use crate::limits::{LOOP_WAIT_MAX, STANDSTILL_MIN};

/// The clock of one shard.
#[derive(Debug)]
pub struct ShardClock {
    /// The monotonic time at the last reading.
    read: Instant,
    /// Sum of the standstills until then.
    stood: Nanos,
}

/// Maximum time of the loop from one reading to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The loop sleeps until an event, without limit.
    Unlimited,
    /// The loop sleeps at most this long.
    UpTo(Nanos),
}

impl Wait {
    /// The wait until the next deadline, after this time.
    pub fn until(deadline: Option<Nanos>) -> Self {
        deadline.map_or(Self::Unlimited, |left| Self::UpTo(left.min(LOOP_WAIT_MAX)))
    }

    /// May the loop sleep in it?
    pub fn sleeps(self) -> bool {
        self != Self::UpTo(Nanos::ZERO)
    }

    /// The timeout for the kernel.
    pub fn timeout(self) -> Option<Nanos> {
        match self {
            Self::Unlimited => None,
            Self::UpTo(most) => Some(most),
        }
    }
}

impl ShardClock {
    /// A clock without standstills, at this monotonic time.
    pub fn new(monotonic: Instant) -> Self {
        Self { read: monotonic, stood: Nanos::ZERO }
    }

    /// Read the monotonic clock after such a wait. Returns the length of the standstill since the last reading, if
    /// there was one.
    pub fn advance(&mut self, monotonic: Instant, wait: Wait) -> Option<Nanos> {
        let elapsed = monotonic.since(self.read);
        self.read = monotonic;
        let Wait::UpTo(most) = wait else { return None };
        if elapsed <= most + STANDSTILL_MIN {
            return None;
        }
        // Part of it counts: a loop whose every round is this slow must still see time pass.
        let stood = Nanos(elapsed.get() - STANDSTILL_MIN.get());
        self.stood += stood;
        Some(stood)
    }

    /// The shard's time at this monotonic time.
    pub fn at(&self, monotonic: Instant) -> Instant {
        Instant(monotonic.since(Instant::ZERO).get() - self.stood.get())
    }

    /// The shard's time at the last reading.
    pub fn now(&self) -> Instant {
        self.at(self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);
    const START: Instant = Instant(1_000_000_000_000);

    fn after(seconds: u64) -> Instant {
        START + Nanos::from_secs(seconds)
    }

    #[test]
    fn a_loop_that_runs_sees_all_of_the_time() {
        let mut clock = ShardClock::new(START);
        for second in 1..=100 {
            assert_eq!(clock.advance(after(second), Wait::UpTo(SECOND)), None);
        }
        assert_eq!(clock.now(), after(100));
    }

    #[test]
    fn a_stop_of_36_seconds_costs_a_deadline_no_more_than_the_named_limit() {
        for wait in [Nanos::ZERO, Nanos::from_millis(3), LOOP_WAIT_MAX] {
            let mut clock = ShardClock::new(START);
            let stood = Nanos(36 * SECOND.get() - STANDSTILL_MIN.get());
            assert_eq!(clock.advance(after(36), Wait::UpTo(wait)), Some(stood));
            assert_eq!(clock.now(), START + STANDSTILL_MIN);
            assert_eq!(clock.advance(after(37), Wait::UpTo(SECOND)), None);
            assert_eq!(clock.now(), START + STANDSTILL_MIN + SECOND);
        }
    }

    #[test]
    fn a_slow_round_is_none_and_a_loop_of_slow_rounds_sees_time_pass() {
        let mut clock = ShardClock::new(START);
        assert_eq!(clock.advance(START + STANDSTILL_MIN, Wait::UpTo(Nanos::ZERO)), None);
        assert_eq!(clock.now(), START + STANDSTILL_MIN);
        let from = clock.now();
        for round in 1..=60 {
            assert!(clock.advance(after(10 * round), Wait::UpTo(Nanos::ZERO)).is_some());
        }
        assert_eq!(clock.now(), from + STANDSTILL_MIN * 60);
    }

    #[test]
    fn while_nothing_can_expire_all_of_the_time_counts() {
        let mut clock = ShardClock::new(START);
        assert_eq!(clock.advance(after(86_400), Wait::until(None)), None);
        assert_eq!(clock.now(), after(86_400));
    }

    #[test]
    fn a_far_deadline_is_waited_for_in_short_waits() {
        assert_eq!(Wait::until(Some(SECOND * 3600)).timeout(), Some(LOOP_WAIT_MAX));
        assert_eq!(Wait::until(Some(Nanos(5))).timeout(), Some(Nanos(5)));
        assert_eq!(Wait::until(None).timeout(), None);
    }
}
