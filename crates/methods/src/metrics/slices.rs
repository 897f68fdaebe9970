//! Latency by time slice: the change of the fastest and the slowest requests while a load runs.

use super::histogram::Histogram;
use openraid_units::{Instant, Nanos};
use serde::{Deserialize, Serialize};

/// Slices at most. When there are more, each two become one, so that any length of time has at least half as many.
const SLICES_MAX: usize = 40;
/// Initial length of a slice.
const WIDTH_FIRST: Nanos = Nanos::from_millis(1);

/// The latency of the requests that ended within a slice of time. All times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Slice {
    /// Beginning of the slice, from the beginning of the measurement.
    pub at_ns: u64,
    /// Length of the slice.
    pub width_ns: u64,
    /// Number of requests that ended in the slice.
    pub requests: u64,
    /// The longest latency among the fastest 1 % of the requests.
    pub first_ns: u64,
    /// The median latency.
    pub median_ns: u64,
    /// The 99th percentile of the latency.
    pub rare_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
}

/// Requests by the slice in which they ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Slices {
    from: Instant,
    width: Nanos,
    all: Vec<Histogram>,
}

impl Slices {
    /// Slices from this moment on.
    #[must_use]
    pub const fn new(from: Instant) -> Self {
        Self { from, width: WIDTH_FIRST, all: Vec::new() }
    }

    /// Counts a request that ended at `at`, which must not be before the first moment.
    pub fn add(&mut self, at: Instant, latency_ns: u64) {
        let since = at.since(self.from).get();
        while since / self.width.get() >= SLICES_MAX as u64 {
            self.halve();
        }
        let number = usize::try_from(since / self.width.get()).expect("few slices");
        if self.all.len() <= number {
            self.all.resize_with(number + 1, Histogram::new);
        }
        self.all[number].record(latency_ns);
    }

    fn halve(&mut self) {
        let mut halves = Vec::with_capacity(SLICES_MAX);
        for pair in self.all.chunks(2) {
            let mut both = pair[0].clone();
            if let Some(second) = pair.get(1) {
                both.merge(second);
            }
            halves.push(both);
        }
        self.all = halves;
        self.width = Nanos(self.width.get() * 2);
    }

    /// All slices in which requests ended.
    #[must_use]
    pub fn all(&self) -> Vec<Slice> {
        let width_ns = self.width.get();
        let slice = |(number, one): (u64, &Histogram)| Slice {
            at_ns: number * width_ns,
            width_ns,
            requests: one.count(),
            first_ns: one.percentile(1.0),
            median_ns: one.percentile(50.0),
            rare_ns: one.percentile(99.0),
            max_ns: one.max(),
        };
        (0..).zip(&self.all).map(slice).filter(|slice| slice.requests > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_grow_with_the_time_and_lose_no_request() {
        let mut slices = Slices::new(Instant::ZERO);
        // One request per millisecond for a second; the one at 700 ms takes a thousand times as long.
        for ms in 0..1000u64 {
            let latency = if ms == 700 { 5_000_000 } else { 5_000 };
            slices.add(Instant::ZERO + Nanos::from_millis(ms), latency);
        }
        let all = slices.all();
        // 1 ms is doubled until 40 slices can hold 1000 ms: 32 ms.
        assert_eq!((all.len(), all[0].width_ns, all[0].requests), (32, 32_000_000, 32));
        assert_eq!(all.iter().map(|slice| slice.requests).sum::<u64>(), 1000);
        let slow: Vec<u64> = all.iter().filter(|slice| slice.max_ns > 1_000_000).map(|slice| slice.at_ns).collect();
        assert_eq!(slow, [700 / 32 * 32 * 1_000_000]);
        assert!(all.iter().all(|slice| slice.median_ns < 5_100 && slice.first_ns <= slice.median_ns));
    }
}
