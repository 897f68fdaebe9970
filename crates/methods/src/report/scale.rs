//! Converts values to positions on a chart, and chooses the positions of ticks.
//!
//! It must never place a value outside its range.

use super::data::{ChartAxis, Scale};
use super::format::drawable;

/// Number of nines at which percentile 100, the slowest request, is drawn: above any percentile that a run can measure.
const NINES_MAX: f64 = 6.0;
/// An axis with at most this number of different values has its ticks at these values.
const OWN_TICKS_MAX: usize = 14;
/// Desired number of intervals on a linear axis.
const INTERVALS: f64 = 5.0;
/// An axis by powers of ten with at most this number of decades also has ticks at 2 and 5.
const FINE_DECADES: f64 = 3.0;
/// An x axis that begins below this share of its end begins at zero instead.
const NEAR_ZERO: f64 = 0.25;

/// The range of an axis, and its conversion from values to positions.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleMapping {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl ScaleMapping {
    /// Converts `low..=high` to the positions `from..=to`; `to` may be below `from`.
    #[must_use]
    pub fn new(scale: Scale, (low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        Self { scale, low, high, from, to }
    }

    /// Position of a value. A value outside the range is placed at an end.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        self.open(value.clamp(self.low, self.high)).clamp(self.from.min(self.to), self.from.max(self.to))
    }

    /// Position of a value. If the value is outside the range, the position is outside the chart.
    #[must_use]
    pub fn open(&self, value: f64) -> f64 {
        let (low, high) = (step(self.scale, self.low), step(self.scale, self.high));
        if high <= low {
            return f64::midpoint(self.from, self.to);
        }
        let share = (step(self.scale, value) - low) / (high - low);
        self.from + share.clamp(-10.0, 10.0) * (self.to - self.from)
    }

    /// Is the value within the range?
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The positions of ticks, lowest first. `own` has the drawn values.
    #[must_use]
    pub fn ticks(&self, values: &[f64]) -> Vec<f64> {
        if !values.is_empty() && values.len() <= OWN_TICKS_MAX {
            return values.iter().copied().filter(|&value| self.holds(value)).collect();
        }
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high),
            Scale::Log2 => powers(2.0, &[1.0], self.low, self.high),
            Scale::Log10 if (self.high / self.low).log10() <= FINE_DECADES => {
                powers(10.0, &[1.0, 2.0, 5.0], self.low, self.high)
            }
            Scale::Log10 => powers(10.0, &[1.0], self.low, self.high),
            Scale::Nines => {
                let nines = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
                nines.into_iter().filter(|&value| self.holds(value)).collect()
            }
        }
    }
}

/// The value on the linear form of the scale.
fn step(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log2 => value.max(f64::MIN_POSITIVE).log2(),
        Scale::Log10 => value.max(f64::MIN_POSITIVE).log10(),
        Scale::Nines => {
            let over = 1.0 - value / 100.0;
            if over <= 0.0 {
                NINES_MAX
            } else {
                (-over.log10()).clamp(0.0, NINES_MAX)
            }
        }
    }
}

/// The range of an x axis that contains all these values.
#[must_use]
pub fn range_x(axis: &ChartAxis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = extent(axis.scale, values);
    match axis.scale {
        Scale::Linear if low >= 0.0 && low < high * NEAR_ZERO => (0.0, high),
        Scale::Linear if low == high => (low - 0.5, high + 0.5),
        Scale::Log2 | Scale::Log10 if low == high => (low / 2.0, high * 2.0),
        Scale::Nines if low == high => (0.0, 100.0),
        _ => (low, high),
    }
}

/// The range of a y axis that contains all these values and ends at ticks. A linear one contains zero.
#[must_use]
pub fn range_y(axis: &ChartAxis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = extent(axis.scale, values);
    match axis.scale {
        Scale::Linear => {
            let (low, high) = (low.min(0.0), high.max(0.0));
            let step = nice_step(low, high);
            let high = if high == 0.0 && low == 0.0 { step } else { (high / step - 1e-9).ceil() * step };
            ((low / step + 1e-9).floor() * step + 0.0, high)
        }
        Scale::Log2 => wide(below(2.0, &[1.0], low), above(2.0, &[1.0], high)),
        Scale::Log10 => wide(below(10.0, &[1.0, 2.0, 5.0], low), above(10.0, &[1.0, 2.0, 5.0], high)),
        Scale::Nines => (low, if high > low { high } else { 100.0 }),
    }
}

/// Lowest and highest of the values that can be drawn; default values if there are none.
fn extent(scale: Scale, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut found: Option<(f64, f64)> = None;
    for value in values.filter(|&value| drawable(value, scale)) {
        let (low, high) = found.unwrap_or((value, value));
        found = Some((low.min(value), high.max(value)));
    }
    found.unwrap_or(match scale {
        Scale::Linear => (0.0, 1.0),
        Scale::Log2 | Scale::Log10 => (1.0, 10.0),
        Scale::Nines => (0.0, 100.0),
    })
}

/// 1, 2 or 5 times a power of ten, so that the range has about [`INTERVALS`] steps.
fn nice_step(low: f64, high: f64) -> f64 {
    let rough = (high - low) / INTERVALS;
    if rough <= 1e-12 {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough * 0.999_999).unwrap_or(10.0);
    step * power
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let step = nice_step(low, high);
    let first = (low / step - 1e-9).ceil();
    let mut ticks = Vec::new();
    let mut n = 0.0;
    // A step is a fifth to a half of the range, so there are at most a dozen.
    while (first + n) * step <= high + step * 1e-9 && n < 16.0 {
        ticks.push(((first + n) * step).clamp(low, high) + 0.0);
        n += 1.0;
    }
    ticks
}

/// `factors` times powers of `base` from `low` to `high`. If there are too many, only every k-th power.
fn powers(base: f64, factors: &[f64], low: f64, high: f64) -> Vec<f64> {
    let (first, last) = ((low.ln() / base.ln()).floor(), (high.ln() / base.ln()).ceil());
    let stride = ((last - first) / 24.0).ceil().max(1.0);
    let mut ticks = Vec::new();
    let mut exponent = first;
    while exponent <= last {
        let power = base.powf(exponent);
        ticks.extend(factors.iter().map(|factor| factor * power).filter(|&tick| {
            // A value just outside the range counts as its end.
            tick >= low * (1.0 - 1e-9) && tick <= high * (1.0 + 1e-9)
        }));
        exponent += stride;
    }
    ticks
}

/// The largest of `factors` times powers of `base` that is not above `value`, which is positive.
fn below(base: f64, factors: &[f64], value: f64) -> f64 {
    let power = base.powf((value.ln() / base.ln() + 1e-9).floor());
    factors.iter().rev().map(|factor| factor * power).find(|&tick| tick <= value * (1.0 + 1e-9)).unwrap_or(power)
}

/// The smallest of `factors` times powers of `base` that is not below `value`, which is positive.
fn above(base: f64, factors: &[f64], value: f64) -> f64 {
    let power = base.powf((value.ln() / base.ln() + 1e-9).floor());
    let next = factors.iter().copied().chain([base]).map(|factor| factor * power);
    next.into_iter().find(|&tick| tick >= value * (1.0 - 1e-9)).unwrap_or(power * base)
}

/// A range by powers that is not empty.
fn wide(low: f64, high: f64) -> (f64, f64) {
    (low, if high > low { high } else { low * 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::Unit;

    fn axis(scale: Scale) -> ChartAxis {
        ChartAxis::new("a", Unit::None, scale)
    }

    #[test]
    fn ranges_of_y_hold_zero_and_end_at_ticks() {
        assert_eq!(range_y(&axis(Scale::Linear), [71.4, 203.5].into_iter()), (0.0, 250.0));
        assert_eq!(range_y(&axis(Scale::Linear), [0.0].into_iter()), (0.0, 1.0));
        assert_eq!(range_y(&axis(Scale::Linear), [-3.0, 9.0].into_iter()), (-5.0, 10.0));
        assert_eq!(range_y(&axis(Scale::Log10), [0.07, 31.0].into_iter()), (0.05, 50.0));
        assert_eq!(range_y(&axis(Scale::Log2), [3.0, 64.0].into_iter()), (2.0, 64.0));
        let none = range_y(&axis(Scale::Linear), [f64::NAN].into_iter());
        assert_eq!(none, (0.0, 1.0));
    }

    #[test]
    fn ticks_are_the_values_themselves_where_they_are_few() {
        let mapping = ScaleMapping::new(Scale::Log2, (1.0, 256.0), (0.0, 80.0));
        assert_eq!(mapping.ticks(&[1.0, 4.0, 16.0, 64.0, 256.0]), [1.0, 4.0, 16.0, 64.0, 256.0]);
        assert_eq!(mapping.ticks(&[]), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
        assert_eq!(mapping.place(16.0), 40.0);
        let linear = ScaleMapping::new(Scale::Linear, (0.0, 250.0), (100.0, 0.0));
        assert_eq!(linear.ticks(&[]), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
        assert_eq!(linear.place(50.0), 80.0);
    }

    #[test]
    fn nines_are_equally_far_from_each_other() {
        let mapping = ScaleMapping::new(Scale::Nines, (0.0, 100.0), (0.0, 60.0));
        let places: Vec<f64> =
            [0.0, 90.0, 99.0, 99.9, 100.0].iter().map(|&p| (mapping.place(p) * 1e6).round() / 1e6).collect();
        assert_eq!(places, [0.0, 10.0, 20.0, 30.0, 60.0]);
    }

    #[test]
    fn no_value_is_placed_outside_of_the_range() {
        for scale in [Scale::Linear, Scale::Log2, Scale::Log10, Scale::Nines] {
            for values in [[1.0, 1.0], [0.5, 99.0], [1e-8, 99.9], [3.0, 90.0]] {
                for range in [range_x(&axis(scale), values.into_iter()), range_y(&axis(scale), values.into_iter())] {
                    let mapping = ScaleMapping::new(scale, range, (200.0, 10.0));
                    assert!(range.0 < range.1, "{scale:?} {values:?} {range:?}");
                    assert!(mapping.ticks(&[]).len() <= 80);
                    for value in [-1e300, 0.0, 1.0, 99.0, 1e300, values[0], values[1]] {
                        assert!((10.0..=200.0).contains(&mapping.place(value)), "{scale:?} {values:?} {value}");
                    }
                    assert!(values.iter().all(|&value| mapping.holds(value)), "{scale:?} {values:?} {range:?}");
                }
            }
        }
    }
}
