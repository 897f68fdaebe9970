//! The uncertainty of a figure, from runs of its cell with other seeds and with every uncertain value of the profiles
//! at both ends of its range.

use super::model_error::floor;
use super::uncertain_values::{uncertain, Uncertain};
use super::uncertainty::Runs;
use super::Missing;
use crate::cell::{machine_spec, run_counted, CellError, CellResult, CellSpec};
use crate::reader::RequestTrace;
use crate::run::run_all;
use openraid_models::{Edge, Library};
use serde::Serialize;
use std::sync::atomic::AtomicU64;

/// Number of seeds in addition to the requested one; they follow it. Two are used, because an outlier among three
/// figures can be recognised.
pub(super) const OTHER_SEEDS: u64 = 2;
const ENDS: [Edge; 2] = [Edge::Low, Edge::High];

/// The result of a run.
pub(super) type Ran = Result<CellResult, CellError>;

/// A run that differs from the cell's own run by its seed or by one uncertain value.
#[derive(Clone, Copy)]
pub(super) enum Variation {
    Seed(u64),
    /// An uncertain value, by its index, set to one end of its range.
    Value(usize, Edge),
}

impl Variation {
    /// All variations of a cell with this seed and this number of uncertain values.
    pub fn all(seed: u64, values: usize) -> impl Iterator<Item = Self> {
        let seeds = (1..=OTHER_SEEDS).map(move |by| Self::Seed(seed.wrapping_add(by)));
        seeds.chain((0..values).flat_map(|value| ENDS.map(|end| Self::Value(value, end))))
    }

    /// Runs the cell with this variation. If there is a trace, the trace is the load.
    pub fn run(
        self,
        library: &Library,
        cell: &CellSpec,
        values: &[Uncertain],
        trace: Option<&RequestTrace>,
        events: &AtomicU64,
    ) -> Ran {
        match self {
            Self::Seed(seed) => run_either(library, &CellSpec { seed, ..cell.clone() }, trace, events),
            Self::Value(number, end) => {
                let mut spec = machine_spec(library, cell)?;
                values[number].put(library, &mut spec, end)?;
                run_counted(library, cell, &spec, trace, events)
            }
        }
    }

    /// The name of the seed or value.
    pub fn what(self, runs: &Runs) -> String {
        match self {
            Self::Seed(_) => "chance".into(),
            Self::Value(number, _) => runs.values[number].0.clone(),
        }
    }

    /// Adds the figure of this run to the others.
    pub fn note(self, runs: &mut Runs, iops: Option<f64>) {
        match self {
            Self::Seed(_) => runs.seeds.push(iops),
            Self::Value(number, end) => runs.values[number].1[usize::from(end == Edge::High)] = iops,
        }
    }
}

/// Runs a cell's load, or the trace in its place. The number of simulated events is added to `events`.
pub(super) fn run_either(library: &Library, cell: &CellSpec, trace: Option<&RequestTrace>, events: &AtomicU64) -> Ran {
    run_counted(library, cell, &machine_spec(library, cell)?, trace, events)
}

/// The uncertainty of a result's requests per second.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Range)]
pub struct Range {
    /// Percentage by which the figures may be off because of chance and of uncertain values of the profiles.
    pub uncertain_percent: f64,
    /// Percentage by which the figures may be lower: by chance, by uncertain values, and by the model's own error.
    pub low_percent: f64,
    /// Percentage by which the figures may be higher.
    pub high_percent: f64,
    /// The model's own error for loads of this class, percent: from figures that were not used to choose a constant.
    pub model_percent: f64,
    /// Spread between seeds, percent from the lowest to the highest.
    pub chance_percent: f64,
    /// Uncertain values and the effect of each beyond chance, percent; the largest first.
    pub uncertain: Vec<(String, f64)>,
    /// Runs that failed, and why.
    pub missing: Vec<Missing>,
}

impl Range {
    /// Computes the range from the figures that exist and from the model's own error.
    pub(super) fn of(runs: &Runs, missing: Vec<Missing>, model_percent: f64) -> Self {
        let doubt = runs.doubt();
        // The error of the model and the errors of the parameters are independent of each other.
        let wide = |parameters: f64| (parameters * parameters + model_percent * model_percent).sqrt();
        let (low_percent, high_percent) = (wide(doubt.down).min(100.0), wide(doubt.up));
        let (uncertain_percent, chance_percent, mut uncertain) = (doubt.total(), doubt.chance, doubt.values);
        uncertain.sort_by(|one, two| two.1.total_cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
        Self { uncertain_percent, low_percent, high_percent, model_percent, chance_percent, uncertain, missing }
    }

    /// Measures the range of a cell's result in any state, with `threads` threads: two runs for each uncertain value,
    /// and two more seeds. A trace cannot be run again as a cell, because its requests have their own times. After each
    /// run `ended` gets the number of finished runs and the number of all runs.
    ///
    /// # Errors
    /// A profile does not exist.
    pub fn run(
        library: &Library,
        result: &CellResult,
        threads: usize,
        ended: impl Fn(usize, usize) + Sync,
    ) -> Result<Self, CellError> {
        let cell = &result.spec;
        let values = uncertain(library, cell)?;
        let all: Vec<Variation> = Variation::all(cell.seed, values.len()).collect();
        let one_ended = |done: usize| {
            ended(done, all.len());
            true
        };
        let ran = run_all(&all, threads, |one| one.run(library, cell, &values, None, &AtomicU64::new(0)), one_ended);
        let (mut runs, mut missing) = (Runs::new(result.iops, &values), Vec::new());
        for (one, ran) in all.iter().zip(ran.into_iter().flatten()) {
            if let Err(error) = &ran {
                missing.push(Missing { what: one.what(&runs), reason: error.to_string(), failed: true });
            }
            one.note(&mut runs, ran.ok().map(|ran| ran.iops));
        }
        Ok(Self::of(&runs, missing, floor(cell)))
    }
}
