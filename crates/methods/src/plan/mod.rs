//! Compares levels for given drives and a given load. For each level a plan has the capacity, the number of failures
//! that the level survives, and its speed when it is healthy, degraded and rebuilding. A plan also has the bottleneck,
//! the effect of the write cache and of its size, and the uncertainty of each figure.
//!
//! [`run`] does the measurements. [`varied_runs`] runs a cell at both ends of each of the [`uncertain_values`] that have a range.
//! [`uncertainty`] derives the uncertainty of a figure from these runs, and [`pairs`] decides which of two levels is faster.
//! [`rebuild`] computes the time of a rebuild, [`data_loss_risk`] the probability of data loss during it.

mod data_loss_risk;
mod electricity;
mod journal;
mod knowledge;
mod level;
mod model_error;
mod pairs;
mod rebuild;
mod reshape;
mod run;
mod uncertain_values;
mod uncertainty;
mod varied_runs;

use crate::cell::{
    ArrayState, Axes, CellResult, CellSpec, Effort, Flag, Level, MemberPart, PartName, Pattern, Subject,
};
use crate::reader::RequestTrace;
use serde::Serialize;
use std::sync::Arc;
use uncertainty::Runs;

pub use data_loss_risk::{over_years, risk, Frailty, Risk};
pub use electricity::Energy;
pub use journal::JournalEffect;
pub use knowledge::{Knowledge, ProfileFit, StandIns};
pub use level::weakest;
pub use model_error::{widened, ErrorTerm, LoadClass, FRESH, JUDGED};
pub use pairs::{Gain, Lead};
pub use rebuild::Rebuild;
pub use reshape::{ReshapePlace, ReshapeTime};
pub use run::{events_max, EVENT_LIMIT};
pub use uncertain_values::{uncertain, Uncertain};
pub use varied_runs::Range;

/// The request for a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanRequest {
    /// Name of the controller's profile.
    pub system: String,
    /// Name of the drive's profile. None selects the drives of the system.
    pub drive: Option<String>,
    /// Number of drives.
    pub drives: u16,
    /// Levels to compare.
    pub levels: Vec<Level>,
    /// The load.
    pub pattern: Pattern,
    /// Values of the load's axes.
    pub axes: Axes,
    /// The length of each measurement.
    pub effort: Effort,
    pub seed: u64,
    /// If true, the plan also varies every uncertain value of the profiles, tries the other mode of the write cache,
    /// and tries other sizes of that cache. If false, the plan only compares the levels, with as many seeds as the
    /// comparison needs.
    pub thorough: bool,
    /// A trace that replaces the pattern's load. The levels are then compared by the mean latency of its requests.
    pub trace: Option<Arc<RequestTrace>>,
    /// Hours until a failed drive is replaced; its rebuild begins then. 0 with a spare.
    pub replacement_hours: u32,
    /// Parts whose profiles describe other parts.
    pub stand_ins: StandIns,
}

/// The speed of an array in one state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Speed {
    /// Requests that end each second.
    pub iops: f64,
    /// MB (10^6 bytes) that requests move each second.
    pub mbps: f64,
    /// Mean latency of a request.
    pub mean_ms: f64,
    /// 99th percentile of the latency of requests.
    pub p99_ms: f64,
}

/// The speed of a healthy array with another size of the controller's cache.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct CacheSize {
    /// Size of the controller's cache, MiB.
    pub cache_mib: u32,
    /// How fast it is then.
    #[serde(flatten)]
    pub speed: Speed,
    /// Gain in requests each second over the present cache, percent, with the same seed.
    pub change_percent: f64,
    /// The gain in requests each second over all seeds, with its range.
    pub gain: Option<Gain>,
    /// Had the load become steady for both figures?
    pub steady: bool,
}

/// A part that is the limit.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Bottleneck {
    /// The name of the part: `members`, `bus`, `controller`, `xor`, `host` or another one.
    #[schema(value_type = String)]
    pub part: PartName,
    /// If the members are the limit: their busiest part, unless that is the medium.
    #[schema(value_type = Option<String>)]
    pub of_members: Option<MemberPart>,
    /// Share of the time in which it works, 0 to 1.
    pub busy: f64,
}

/// A figure that is missing in a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = MissingFigure)]
pub struct Missing {
    /// Which: `degraded`, `rebuilding`, `rebuild`, `loss`, `write_back_ratio`, `without journal`, `cache of N MiB`, `chance`, or the value of a profile.
    pub what: String,
    /// Why the figure is missing, in a sentence.
    pub reason: String,
    /// Did its run fail? Otherwise the figure does not apply.
    pub failed: bool,
}

/// The probability of data loss while a drive is rebuilt under the load.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct LossRisk {
    /// Hours for these probabilities: until the drive is replaced, and of the rebuild.
    pub window_hours: f64,
    /// The probabilities with the figures of the drive's profile.
    #[serde(flatten)]
    pub risk: Risk,
    /// Probability of a year for the highest failure rate of the profile's range and the longest rebuild of its range.
    pub year_high: f64,
    /// Probability over five years at the same rate, with the profile's figures.
    pub five_years: f64,
    /// The same probability with the highest failure rate and the longest rebuild.
    pub five_years_high: f64,
    /// Probability over five years that the array is lost, with the profile's figures, and with the highest failure rate and the
    /// longest rebuild.
    pub array_five_years: [f64; 2],
    /// Probability over five years that sectors are lost while the array survives, likewise.
    pub sector_five_years: [f64; 2],
    /// Percentage of drives that fail in a year, and the high end of its range.
    pub afr: [f64; 2],
    /// Probability that a bit which is read is unreadable.
    pub errors_per_bit: f64,
    /// The source of these figures, with a note if no data sheet is available.
    pub source: String,
    /// Are the figures an estimate because no data sheet is available?
    pub estimated: bool,
}

/// A level of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct LevelPlan {
    /// The array, such as `raid6x8`.
    pub array: Subject,
    /// Size of the array for hosts, bytes.
    pub capacity: u64,
    /// Number of failures that it always survives, and the maximum.
    pub survives: (u16, u16),
    /// Speed with all members.
    pub healthy: Speed,
    /// Speed with one member missing, if the array survives that.
    pub degraded: Option<Speed>,
    /// During the rebuild of one member, if it survives a failure.
    pub rebuilding: Option<Speed>,
    /// The time of a rebuild, if it survives a failure.
    pub rebuild: Option<Rebuild>,
    /// The probability of data loss during the rebuild.
    pub loss: Option<LossRisk>,
    /// Electricity of its drives under the load, if their profiles have the figures.
    pub energy: Option<Energy>,
    /// If its drives differ: the profile of the busiest one, and its load, 0 to 1.
    pub weakest: Option<(String, f64)>,
    /// The part that limits the healthy array.
    pub bottleneck: Option<Bottleneck>,
    /// The controller's cache, MiB; 0 without one.
    pub cache_mib: u32,
    /// The same with other sizes of the cache, the smallest first: for the fastest level that survives a failure (or
    /// the fastest level, if none does), if there is a cache.
    pub cache_sizes: Vec<CacheSize>,
    /// The effect of its journal, if it has one.
    pub journal: Option<JournalEffect>,
    /// Write-back divided by write-through, if the controller can do both and the load writes.
    pub write_back_ratio: Option<f64>,
    /// The gain in requests each second of write-back over write-through, over all seeds.
    pub write_back: Option<Gain>,
    /// Percentage by which the healthy figure may be off because of chance and of uncertain values of the profiles.
    pub uncertain_percent: f64,
    /// Percentage by which the healthy figure may be lower: by chance, by uncertain values, by the model's own error, and
    /// by unknown parts of the machine.
    pub low_percent: f64,
    /// Percentage by which the healthy figure may be higher.
    pub high_percent: f64,
    /// The model's own error for loads of this class, percent: from figures that were not used to choose a constant.
    pub model_percent: f64,
    /// Percentages below and above the figure for unknown parts of the machine.
    pub unknown_percent: [f64; 2],
    /// The knowledge of the machine and of the place of its load.
    pub knowledge: Knowledge,
    /// Spread between seeds, percent of the healthy figure from the lowest to the highest.
    pub chance_percent: f64,
    /// Uncertain values and the effect of each beyond chance, percent; the largest first. Empty if they were not
    /// varied.
    pub uncertain: Vec<(String, f64)>,
    /// Had the load become steady before the healthy figure was measured? Otherwise the figure may be too high or too
    /// low.
    pub steady: bool,
    /// The other runs whose load had not become steady: `degraded`, `rebuilding` and the like.
    pub unsteady_beside: Vec<String>,
    /// Reasons why its rates are not those of the drives.
    pub flags: Vec<Flag>,
    /// The same for the other runs (degraded, rebuilding, other caches), with the name of the run.
    pub flags_beside: Vec<(String, Flag)>,
    /// Figures that this plan does not have, and the reasons.
    pub missing: Vec<Missing>,
    /// Are levels compared by mean latency instead of requests each second? They are if the requests come at fixed
    /// times.
    pub by_latency: bool,
    /// Is the load one of large requests, for which MB each second say more than requests?
    pub by_throughput: bool,
    /// Healthy figures of other runs, to compare levels by.
    #[serde(skip)]
    runs: Runs,
}

/// A level, or why it is impossible.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Planned {
    /// It is possible.
    Possible(Box<LevelPlan>),
    /// It is impossible.
    Impossible {
        /// The array, such as `raid6x8`.
        array: Subject,
        /// Why the array is impossible, in a sentence.
        reason: String,
    },
}

/// Number of failures that an array survives: first for every choice of failed drives, then for the best choice.
#[must_use]
pub fn survives(level: Level, members: u16) -> (u16, u16) {
    match level {
        Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => (0, 0),
        Level::Raid1 => (members - 1, members - 1),
        Level::Raid1e | Level::Raid10 => (1, members / 2),
        Level::Raid4 | Level::Raid5 => (1, 1),
        Level::Raid6 => (2, 2),
        Level::Raid50 => (1, 2),
        Level::Raid60 => (2, 4),
    }
}

impl LevelPlan {
    /// The figure by which levels are compared; more is better.
    #[must_use]
    pub const fn merit(&self) -> f64 {
        if self.by_latency {
            1e3 / self.healthy.mean_ms
        } else {
            self.healthy.iops
        }
    }

    /// The lead of this level over another level of the same plan. There is none if no seed has a figure for both.
    #[must_use]
    pub fn lead_over(&self, other: &Self) -> Option<Lead> {
        pairs::lead(&self.runs, &other.runs)
    }
}

impl PlanRequest {
    /// The cell that measures an array in a state.
    #[must_use]
    pub fn cell(&self, level: Level, state: ArrayState) -> CellSpec {
        let axes = Axes { drive: self.axes.drive.clone().or_else(|| self.drive.clone()), ..self.axes.clone() };
        let subject = Subject::Array { level, members: self.drives };
        let cell = CellSpec::new(&self.system, subject, self.pattern.clone()).with(axes);
        CellSpec { state, effort: self.effort, seed: self.seed, ..cell }
    }
}

/// The figure by which levels are compared; more is better. For a load it is the requests per second. The requests of a
/// trace come at fixed times, so for a trace it is one divided by the mean latency in seconds.
fn merit(result: &CellResult) -> f64 {
    match result.spec.pattern {
        Pattern::Trace(_) => 1e3 / result.mean_ms(),
        _ => result.iops,
    }
}

fn speed(result: &CellResult) -> Speed {
    Speed {
        iops: result.iops,
        mbps: result.mbps,
        mean_ms: result.mean_ms(),
        p99_ms: result.histogram().percentile(99.0) as f64 / 1e6,
    }
}

#[cfg(test)]
mod tests;
