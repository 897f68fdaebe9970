//! The uncertainty of a figure, from runs of its cell with other seeds and with every uncertain value of the profiles
//! at both ends of its range.

use super::knowledge::{elsewhere, Knowledge};
use super::model_error::{widened, LoadClass};
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
pub(super) const ENDS: [Edge; 2] = [Edge::Low, Edge::High];
/// The name of a load's place among the values that are varied.
const PLACE: &str = "place of the load in the array";

/// The result of a run.
pub(super) type Ran = Result<CellResult, CellError>;

/// A run that differs from the cell's own run by its seed or by one uncertain value.
#[derive(Clone, Copy)]
pub(super) enum Variation {
    Seed(u64),
    /// An uncertain value, by its index, set to one end of its range.
    Value(usize, Edge),
    /// Another place of the load in an array of this size, if its place is not known: everywhere, and the array's end.
    Place(Edge, u64),
}

impl Variation {
    /// All variations of a cell with this seed and this number of uncertain values, in an array of this size if the place
    /// of the load in it is not known.
    pub fn all(seed: u64, values: usize, place: Option<u64>) -> impl Iterator<Item = Self> {
        let seeds = (1..=OTHER_SEEDS).map(move |by| Self::Seed(seed.wrapping_add(by)));
        let places = place.into_iter().flat_map(|capacity| ENDS.map(|end| Self::Place(end, capacity)));
        seeds.chain((0..values).flat_map(|value| ENDS.map(|end| Self::Value(value, end)))).chain(places)
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
            Self::Place(end, capacity) => {
                run_either(library, &elsewhere(cell, capacity, end == Edge::High), trace, events)
            }
        }
    }

    /// The name of the seed or value.
    pub fn what(self, runs: &Runs) -> String {
        match self {
            Self::Seed(_) => "chance".into(),
            Self::Value(number, _) => runs.values[number].0.clone(),
            Self::Place(..) => PLACE.into(),
        }
    }

    /// Adds the figure of this run to the others.
    pub fn note(self, runs: &mut Runs, iops: Option<f64>) {
        match self {
            Self::Seed(_) => runs.seeds.push(iops),
            Self::Value(number, end) => runs.values[number].1[usize::from(end == Edge::High)] = iops,
            Self::Place(end, _) => {
                if runs.values.last().is_none_or(|(name, _)| name != PLACE) {
                    runs.values.push((PLACE.into(), [None; 2]));
                }
                if let Some((_, ends)) = runs.values.last_mut() {
                    ends[usize::from(end == Edge::High)] = iops;
                }
            }
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
    /// Percentage by which the figures may be lower: by chance, by uncertain values, by the model's own error, and by
    /// unknown parts of the machine.
    pub low_percent: f64,
    /// Percentage by which the figures may be higher.
    pub high_percent: f64,
    /// The model's own error for loads of this class, percent: from figures that were not used to choose a constant.
    pub model_percent: f64,
    /// Spread between seeds, percent from the lowest to the highest.
    pub chance_percent: f64,
    /// Uncertain values and the effect of each beyond chance, percent; the largest first.
    pub uncertain: Vec<(String, f64)>,
    /// Percentages below and above the figures for unknown parts of the machine.
    pub unknown_percent: [f64; 2],
    /// The knowledge of the machine and of the place of its load.
    pub knowledge: Knowledge,
    /// Runs that failed, and why.
    pub missing: Vec<Missing>,
}

impl Range {
    /// Computes the range from the figures that exist, from the model's own error, and from the knowledge of the machine.
    pub(super) fn of(runs: &Runs, missing: Vec<Missing>, class: LoadClass, knowledge: Knowledge) -> Self {
        let (doubt, model_percent) = (runs.doubt(), class.percent());
        let of_model = widened(doubt.sides(), (model_percent, model_percent));
        let unknown = knowledge.unknown_percent(class);
        let (low_percent, high_percent) = widened(of_model, unknown);
        let (uncertain_percent, chance_percent, mut uncertain) = (doubt.total(), doubt.chance, doubt.values);
        uncertain.sort_by(|one, two| two.1.total_cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
        Self {
            uncertain_percent,
            low_percent,
            high_percent,
            model_percent,
            chance_percent,
            uncertain,
            unknown_percent: unknown.into(),
            knowledge,
            missing,
        }
    }

    /// Measures the range of a cell's result in any state, with `threads` threads: two runs for each uncertain value, if
    /// they are `varied`, two for a place that is not known, and two more seeds. A trace cannot be run again as a cell, because its requests have their own times. After each
    /// run `ended` gets the number of finished runs and the number of all runs.
    ///
    /// # Errors
    /// A profile does not exist.
    pub fn run(
        library: &Library,
        result: &CellResult,
        (knowledge, varied): (Knowledge, bool),
        threads: usize,
        ended: impl Fn(usize, usize) + Sync,
    ) -> Result<Self, CellError> {
        let cell = &result.spec;
        let values = if varied { uncertain(library, cell)? } else { Vec::new() };
        let place = (!knowledge.place).then_some(result.capacity);
        let all: Vec<Variation> = Variation::all(cell.seed, values.len(), place).collect();
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
        Ok(Self::of(&runs, missing, LoadClass::of(cell), knowledge))
    }
}
