//! The uncertainty of a figure, mainly of a healthy level's.
//!
//! Every value that has a range in the profiles of drive, controller, host and bus is set to both of its ends, one
//! value after the other. Such a run also changes everything random, so the same figure with other seeds shows which
//! part of the change is chance. A value counts only with the part above that, and chance counts separately. Both are
//! combined as independent errors: the root of the sum of their squares.

use super::uncertain_values::Uncertain;

/// Healthy figures of a level, in requests per second.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Runs {
    /// The figure of the requested cell.
    pub base: f64,
    /// The figures with other seeds; none for a run that failed.
    pub seeds: Vec<Option<f64>>,
    /// The figures with each uncertain value of the profiles at its low end and at its high end.
    pub values: Vec<(String, [Option<f64>; 2])>,
}

/// The possible errors of a figure and their causes, in percent.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Doubt {
    /// The effect of chance alone.
    pub chance: f64,
    /// The effect of each value beyond chance, in the order of the profiles.
    pub values: Vec<(String, f64)>,
    /// The percentage by which chance and all values together may lower the figure.
    pub down: f64,
    /// The percentage by which chance and all values together may raise the figure.
    pub up: f64,
}

impl Doubt {
    /// The percentages below and above the figure.
    pub const fn sides(&self) -> (f64, f64) {
        (self.down, self.up)
    }

    /// The whole uncertainty: chance and all values, combined as independent errors.
    pub fn total(&self) -> f64 {
        let squares: f64 = self.values.iter().map(|(_, change)| change * change).sum();
        (self.chance * self.chance + squares).sqrt()
    }
}

impl Runs {
    /// Holds only the figure of the requested cell; other runs are added later.
    pub fn new(base: f64, values: &[Uncertain]) -> Self {
        let values = values.iter().map(|value| (value.to_string(), [None; 2])).collect();
        Self { base, seeds: Vec::new(), values }
    }

    /// The uncertainty of the figure.
    pub fn doubt(&self) -> Doubt {
        let share = |iops: &Option<f64>| iops.map(|iops| (iops / self.base - 1.0) * 100.0);
        doubt(
            self.seeds.iter().map(share),
            self.values.iter().map(|(name, ends)| (name.clone(), ends.iter().map(share).collect())),
        )
    }
}

/// Computes the uncertainty from the changes with other seeds and at the ends of values, in percent.
fn doubt(seeds: impl Iterator<Item = Option<f64>>, values: impl Iterator<Item = (String, Vec<Option<f64>>)>) -> Doubt {
    // The figure itself is one of the random results.
    let (low, high) = seeds.flatten().fold((0.0f64, 0.0f64), |(low, high), change| (low.min(change), high.max(change)));
    let chance = high - low;
    let (mut down, mut up) = (low * low, high * high);
    let mut beyond = |changes: Vec<Option<f64>>| {
        let most = |sign: f64| {
            let most = changes.iter().flatten().fold(0.0f64, |most, change| most.max(change * sign));
            (most - chance).max(0.0)
        };
        let (lower, higher) = (most(-1.0), most(1.0));
        down += lower * lower;
        up += higher * higher;
        lower.max(higher)
    };
    let values = values.map(|(name, changes)| (name, beyond(changes))).collect();
    Doubt { chance, values, down: down.sqrt(), up: up.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(base: f64, seeds: [f64; 2], values: &[(&str, f64, f64)]) -> Runs {
        let values = values.iter().map(|(name, low, high)| ((*name).into(), [Some(*low), Some(*high)]));
        Runs { base, seeds: seeds.map(Some).to_vec(), values: values.collect() }
    }

    #[test]
    fn a_value_counts_with_what_exceeds_chance_and_chance_counts_by_itself() {
        // Seeds from 97 to 101: chance is 4 %. One value changes 3 % and does not count, the other changes 7 % and
        // counts 3 %.
        let doubt = runs(100.0, [97.0, 101.0], &[("idle", 103.0, 100.0), ("busy", 98.0, 93.0)]).doubt();
        let near = |one: f64, two: f64| (one - two).abs() < 1e-9;
        assert!(near(doubt.chance, 4.0) && near(doubt.values[0].1, 0.0) && near(doubt.values[1].1, 3.0), "{doubt:?}");
        assert!(near(doubt.total(), 5.0), "{doubt:?}");
        // Down: 3 % by chance and 3 % by the value. Up: 1 % by chance alone.
        assert!(near(doubt.down, 18.0f64.sqrt()) && near(doubt.up, 1.0), "{doubt:?}");
        let failed = Runs {
            seeds: vec![None, Some(101.0)],
            values: vec![("x".into(), [None; 2])],
            ..runs(100.0, [0.0; 2], &[])
        };
        assert!(near(failed.doubt().chance, 1.0) && near(failed.doubt().total(), 1.0));
    }
}
