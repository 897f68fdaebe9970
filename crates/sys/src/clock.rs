//! Clocks: monotonic time for the engine, CPU time for measurements, wall-clock time for metadata.
//!
//! Only the driver of the core may read a clock; the core receives the time.

use openraid_units::{Instant, Nanos};

/// Monotonic time now. It begins at the start of the machine and does not include time in suspend.
#[must_use]
pub fn now() -> Instant {
    Instant(read(libc::CLOCK_MONOTONIC))
}

/// CPU time that the calling thread has used, user and system.
#[must_use]
pub fn thread_cpu() -> Nanos {
    Nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// CPU time of the process: of all its threads, including ended ones.
#[must_use]
pub fn process_cpu() -> Nanos {
    Nanos(read(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// The time since 1970 by the wall clock, which may jump. Zero if the clock is set before 1970.
#[must_use]
pub fn wall() -> Nanos {
    Nanos(read(libc::CLOCK_REALTIME))
}

/// The time since 1970 by the wall clock, in whole seconds.
#[must_use]
pub fn wall_seconds() -> u64 {
    wall().as_secs()
}

/// Makes sleeps and timeouts of the calling thread end at their exact time. By default Linux may end them up to 50 us
/// later, so that it can wake several threads together.
pub fn make_timers_exact() {
    const SLACK_NS: libc::c_ulong = 1;
    // SAFETY: no memory involved.
    let set = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
    // A sandbox may refuse the call. Then timers are late, which has no other effect.
    let _ = set;
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill.
    let returned = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert!(returned == 0, "clock {clock} cannot be read: the kernel lacks a clock that every Linux has");
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    // 64 bits can hold 584 years of nanoseconds.
    seconds * 1_000_000_000 + nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_exact_timers_has_no_slack() {
        let slack = || {
            // SAFETY: no memory involved.
            unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }
        };
        let others = std::thread::spawn(slack).join().expect("it ends");
        assert_ne!(others, 1, "the kernel's default is larger");
        let exact = std::thread::spawn(move || {
            make_timers_exact();
            slack()
        });
        assert_eq!(exact.join().expect("it ends"), 1);
    }

    #[test]
    fn clocks_run_forward_and_cpu_time_counts_work() {
        let (start, cpu) = (now(), thread_cpu());
        let mut sum = 0u64;
        while thread_cpu().get() - cpu.get() < 1_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(now().since(start).get() >= 1_000_000, "a millisecond of CPU takes a millisecond at least");
        assert!(process_cpu() >= thread_cpu());
        let oracle = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        assert!(wall_seconds().abs_diff(oracle) <= 1);
    }
}
