//! The laboratory of a server: reviews, plans and comparisons that run as its jobs, and their reports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::controller::Creation;

/// A review of a simulated machine, as `openraid review` makes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewInput {
    /// The name of its report.
    pub name: String,
    /// The controller's profile; `openraid` without it.
    #[serde(default)]
    pub system: Option<String>,
    /// The drives' profile; the controller's own without it.
    #[serde(default)]
    pub drive: Option<String>,
    /// Arrays, as in `raid5x4`.
    pub arrays: Vec<String>,
    /// Methods by name.
    pub methods: Vec<String>,
    /// Size of the controller's cache.
    #[serde(default)]
    pub cache_mib: Option<u32>,
    /// Also means within 1 %, which takes longer.
    #[serde(default)]
    pub thorough: bool,
}

/// A plan, as `openraid plan --effort quick` makes it: several arrays under one load.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanInput {
    /// The name of its report.
    pub name: String,
    /// The controller's profile; `openraid` without it.
    #[serde(default)]
    pub system: Option<String>,
    /// Profiles of drives, each a machine of its own; the controller's own without them.
    #[serde(default)]
    pub drive: Vec<String>,
    /// Numbers of drives, each a machine of its own.
    pub drives: Vec<u16>,
    /// Levels; without them the usual ones.
    #[serde(default)]
    pub levels: Vec<String>,
    /// The load by name; `database` without it.
    #[serde(default)]
    pub load: Option<String>,
    /// Queue depth of each worker.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Share of reads in percent.
    #[serde(default)]
    pub reads: Option<u8>,
    /// Size of the controller's cache.
    #[serde(default)]
    pub cache_mib: Option<u32>,
}

/// A comparison of two reviews, as `openraid compare` makes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparisonInput {
    /// The name of its report.
    pub name: String,
    /// The first review's report.
    pub a: String,
    /// The second review's report.
    pub b: String,
}

/// A job that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobInput {
    /// A review.
    Review(ReviewInput),
    /// A plan.
    Plan(PlanInput),
    /// A comparison.
    Comparison(ComparisonInput),
}

impl JobInput {
    /// The name of its report.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Review(own) => &own.name,
            Self::Plan(own) => &own.name,
            Self::Comparison(own) => &own.name,
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It runs.
    Running,
    /// It has ended, and its report is there.
    Done,
    /// It has ended without a report.
    Failed,
    /// A user has ended it.
    Cancelled,
}

/// A job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobModel {
    /// Its number since the server was started.
    pub number: u64,
    /// `review`, `plan` or `comparison`.
    pub kind: String,
    /// The name of its report.
    pub name: String,
    /// The user that began it.
    pub user: String,
    /// The command line that does the same.
    pub command: String,
    /// How far it is.
    pub state: JobState,
    /// When it began, in seconds since 1970.
    pub began_seconds: u64,
    /// When it ended.
    pub ended_seconds: Option<u64>,
    /// Runs that are done, of a job that runs.
    pub done: Option<u64>,
    /// Runs in all, as far as that is known.
    pub total: Option<u64>,
    /// The result in words, or why there is none.
    pub text: String,
}

/// A report that is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportModel {
    /// Its name.
    pub name: String,
    /// `review`, `plan`, `comparison`; `part` of a review that has not ended.
    pub kind: String,
    /// The command line that made it, if this server did.
    pub command: Option<String>,
    /// When it was written, in seconds since 1970.
    pub at_seconds: u64,
    /// Its files that can be read.
    pub files: Vec<String>,
}

/// The laboratory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LabModel {
    /// The folder of the reports.
    pub folder: String,
    /// Jobs, the newest first.
    pub jobs: Vec<JobModel>,
    /// Reports, the newest first.
    pub reports: Vec<ReportModel>,
    /// Reports that are kept at most.
    pub reports_max: usize,
}

/// A word that can be chosen, and its meaning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChoiceModel {
    /// The word.
    pub name: String,
    /// Its meaning.
    pub title: String,
}

/// Systems, drives and patterns of the simulator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChoicesModel {
    /// Controllers.
    pub systems: Vec<ChoiceModel>,
    /// Drives.
    pub drives: Vec<ChoiceModel>,
    /// Methods of reviews.
    pub methods: Vec<ChoiceModel>,
    /// Loads of plans.
    pub loads: Vec<ChoiceModel>,
}

/// The drives of the predicted arrays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictionInput {
    /// The array that is to be made.
    pub creation: Creation,
    /// The load by name; `database` without it.
    #[serde(default)]
    pub load: Option<String>,
    /// The profile of the drives; the nearest one without it.
    #[serde(default)]
    pub drive: Option<String>,
}

/// The speed of an array in one state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PredictedSpeed {
    /// Requests a second.
    pub iops: f64,
    /// Mean latency.
    pub mean_ms: f64,
}

/// A level as the simulator predicts it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PredictedLevel {
    /// The level, as in `openraid create --level`.
    pub level: String,
    /// Healthy.
    pub healthy: Option<PredictedSpeed>,
    /// With one member missing.
    pub degraded: Option<PredictedSpeed>,
    /// While one member is filled.
    pub rebuilding: Option<PredictedSpeed>,
    /// Hours of a rebuild of a drive of the wanted size without load.
    pub rebuild_hours: Option<f64>,
    /// The same under the load.
    pub rebuild_loaded_hours: Option<f64>,
    /// The part that limits it when it is healthy.
    pub limit: Option<String>,
    /// Why there are no figures.
    pub impossible: Option<String>,
}

/// A prediction, or how far it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PredictionModel {
    /// It is being computed, or waits for another one: ask again.
    pub waits: bool,
    /// The profile of the drives.
    pub drive: String,
    /// Its title.
    pub drive_title: String,
    /// Why it is this one.
    pub why: String,
    /// The command line that predicts the same.
    pub command: String,
    /// Levels.
    pub levels: Vec<PredictedLevel>,
    /// Why there is no prediction.
    pub error: Option<String>,
}
