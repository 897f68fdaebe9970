//! A histogram of latencies: exact below 128 ns, above it 128 steps for each doubling.
//!
//! ```text
//!   value   63 ....... 0
//!           [0..01][7 bits: step within the doubling][dropped]
//!              \ the doubling
//! ```
//!
//! A value is off by less than 1/128 (0.8 %); means and extremes are exact. The layout is that of HdrHistogram and of
//! fio (which keeps 64 steps).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const STEP_BITS: u32 = 7;
const STEPS: usize = 1 << STEP_BITS;
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS;

/// Counts by value.
#[derive(Clone, PartialEq, Debug)]
pub struct Histogram {
    /// Empty until the first value; then it has [`BUCKETS`] entries.
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: Vec::new(), count: 0, sum: 0, squares: 0.0, min: u64::MAX, max: 0 }
    }
}

/// The stored form: only buckets that are not empty.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Histogram)]
struct StoredHistogram {
    /// Sum of all latencies.
    sum_ns: f64,
    /// Sum of the squares of all latencies, in square nanoseconds.
    squares: f64,
    /// The shortest latency.
    min_ns: u64,
    /// The longest latency.
    max_ns: u64,
    /// Number of each bucket that is not empty, and its count.
    buckets: Vec<(u32, u64)>,
}

fn bucket(value: u64) -> usize {
    if value < STEPS as u64 {
        return usize::try_from(value).expect("below 128");
    }
    let top = 63 - value.leading_zeros();
    let step = usize::try_from(value >> (top - STEP_BITS)).expect("8 bits") & (STEPS - 1);
    (top - STEP_BITS + 1) as usize * STEPS + step
}

/// The value in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (low, width) = extent(bucket);
    low + (width >> 1)
}

/// The lowest value of a bucket, and the number of values that belong to it.
fn extent(bucket: usize) -> (u64, u64) {
    if bucket < STEPS {
        return (bucket as u64, 1);
    }
    let shift = bucket / STEPS - 1;
    (((STEPS + bucket % STEPS) as u64) << shift, 1 << shift)
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a value in nanoseconds.
    pub fn record(&mut self, value: u64) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.squares += (value as f64) * (value as f64);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        for (count, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += others;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The lowest value; 0 if there is none.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.count == 0 {
            0
        } else {
            self.min
        }
    }

    /// The highest value.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The exact mean; 0 if there is no value.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The standard deviation.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.squares / self.count as f64 - mean * mean).max(0.0).sqrt()
    }

    /// The value below which `percent` percent of the values are. The error is below 0.8 %. 0 if there is no value.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let share = (percent.clamp(0.0, 100.0) / 100.0 * self.count as f64).ceil();
        // A share of a count is far below 2^63 and not negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = (share as u64).clamp(1, self.count);
        if rank == self.count {
            return self.max;
        }
        let mut seen = 0;
        for (number, count) in self.buckets.iter().enumerate() {
            if seen + count >= rank {
                return self.inside(number, rank - seen, *count);
            }
            seen += count;
        }
        self.max
    }

    /// The `place`th of the `count` values in a bucket. This is an estimate: it takes the values as evenly spread over the
    /// bucket. The lowest and the highest recorded value limit the first and the last bucket.
    fn inside(&self, bucket: usize, place: u64, count: u64) -> u64 {
        let (low, width) = extent(bucket);
        let (low, last) = (low.max(self.min), (low + (width - 1)).min(self.max));
        let part = u128::from(last - low + 1) * (2 * u128::from(place) - 1) / (2 * u128::from(count));
        low + u64::try_from(part).expect("a part of a bucket")
    }

    /// The share of values in a range, from 0 to 1. The range includes its start but not its end. The error is at most
    /// the share in the buckets at both ends.
    #[must_use]
    pub fn share(&self, range: std::ops::Range<u64>) -> f64 {
        let within = self.entries().filter(|(value, _)| range.contains(value)).map(|(_, count)| count).sum::<u64>();
        if self.count == 0 {
            0.0
        } else {
            within as f64 / self.count as f64
        }
    }

    /// Values with their counts, for curves: the middle of each bucket that is not empty.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, count)| **count > 0).map(|(number, count)| (middle(number), *count))
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let held = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let buckets = held.map(|(number, count)| (u32::try_from(number).expect("few buckets"), *count)).collect();
        let written = StoredHistogram {
            sum_ns: self.sum as f64,
            squares: self.squares,
            min_ns: self.min(),
            max_ns: self.max,
            buckets,
        };
        written.serialize(serializer)
    }
}

impl utoipa::PartialSchema for Histogram {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        StoredHistogram::schema()
    }
}

impl utoipa::ToSchema for Histogram {}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = StoredHistogram::deserialize(deserializer)?;
        let mut histogram = Self::new();
        if written.buckets.is_empty() {
            return Ok(histogram);
        }
        histogram.buckets = vec![0; BUCKETS];
        for (number, count) in written.buckets {
            let Some(place) = histogram.buckets.get_mut(number as usize) else {
                return Err(serde::de::Error::custom(format!("a histogram has no bucket {number}")));
            };
            *place = count;
            histogram.count = histogram.count.saturating_add(count);
        }
        // The sum is a nanosecond figure far below 2^100.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let sum = written.sum_ns as u128;
        histogram.sum = sum;
        histogram.squares = written.squares;
        histogram.min = written.min_ns;
        histogram.max = written.max_ns;
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_sim::Random;

    #[test]
    fn percentiles_are_within_a_step_of_sorted_values() {
        let mut random = Random::new(3);
        let mut values: Vec<u64> = (0..20_000).map(|_| random.below(1 << (10 + random.clone().below(30)))).collect();
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        values.sort_unstable();
        for percent in [0.5, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9] {
            // For 20,000 values.
            #[allow(clippy::cast_possible_truncation)]
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            let (exact, found) = (values[rank - 1], histogram.percentile(percent));
            assert!(found.abs_diff(exact) as f64 <= exact as f64 / 128.0 + 1.0, "{percent}: {found} for {exact}");
        }
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        assert!((histogram.mean() - mean).abs() < 1e-3);
        assert_eq!((histogram.min(), histogram.max()), (values[0], *values.last().unwrap()));
        assert_eq!(histogram.percentile(100.0), histogram.max());
    }

    #[test]
    fn a_rank_has_its_place_in_the_bucket() {
        let mut equal = Histogram::new();
        (0..1000).for_each(|_| equal.record(130_440));
        assert_eq!([0.1, 50.0, 99.0, 100.0].map(|percent| equal.percentile(percent)), [130_440; 4]);
        // One bucket with 1024 values: each percentile is the value of that rank, within one.
        let mut even = Histogram::new();
        (0..1024).for_each(|step| even.record(131_072 + step));
        assert_eq!(
            [1.0, 25.0, 50.0, 99.0].map(|percent| even.percentile(percent)),
            [131_082, 131_327, 131_583, 132_085]
        );
    }

    #[test]
    fn every_value_is_in_a_bucket_with_a_near_middle() {
        for value in [0, 1, 127, 128, 129, 255, 256, 1 << 20, (1 << 40) + 12345, u64::MAX] {
            let near = middle(bucket(value));
            assert!(near.abs_diff(value) <= value / 128, "{value}: {near}");
            assert!(bucket(value) < BUCKETS);
        }
    }

    #[test]
    fn merging_and_writing_down_lose_nothing() {
        let (mut one, mut two, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in 0..1000u64 {
            (if value % 3 == 0 { &mut one } else { &mut two }).record(value * value);
            both.record(value * value);
        }
        one.merge(&two);
        assert_eq!(one.percentile(50.0), both.percentile(50.0));
        let again: Histogram = serde_json::from_str(&serde_json::to_string(&both).unwrap()).unwrap();
        assert_eq!(again, both);
        let empty: Histogram = serde_json::from_str(&serde_json::to_string(&Histogram::new()).unwrap()).unwrap();
        assert_eq!((empty.count(), empty.percentile(50.0), empty.mean()), (0, 0, 0.0));
    }
}
