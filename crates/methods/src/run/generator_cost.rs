//! The cost of the generator itself: its processor time for each request to a target that does nothing.

use crate::load::{one_size, ClosedLoop, LoopOptions, Mixed, Stop, Zone};
use crate::target::{NullTarget, Target as _};
use openraid_sys::clock;
use openraid_units::{Bytes, Nanos};

/// Length of the measurement.
const LOOK: Nanos = Nanos::from_millis(500);
/// Outstanding requests during the measurement.
const DEPTH: u32 = 32;
/// Number of requests between two checks of the time.
const ROUND: u64 = 10_000;
/// Size of the target.
const SIZE: u64 = 1 << 40;

/// Processor time of the generator for a request of 4 KiB in nanoseconds, measured for half a second.
#[must_use]
pub fn generator_cost() -> f64 {
    let mut target = NullTarget::new(Bytes(SIZE));
    let zone = Zone { start: 0, len: SIZE };
    let mut source = Mixed::new(&one_size("overhead", 4096, 100, 100), 1, zone, 1, 1);
    let mut closed = ClosedLoop::new(LoopOptions { workers: 1, depth: DEPTH, jitter: Nanos::ZERO, seed: 1 });
    let (cpu, begun) = (clock::thread_cpu().get(), target.now());
    let mut ended = 0;
    while target.now().since(begun).get() < LOOK.get() {
        let stop = Stop { requests: ROUND, at: begun + LOOK };
        ended += closed.run(&mut target, &mut source, stop, None).expect("a target that does nothing does not go away");
    }
    (clock::thread_cpu().get() - cpu) as f64 / ended.max(1) as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_request_costs_something() {
        assert!(super::generator_cost() > 0.0);
    }
}
