//! The laboratory of a server: reviews, plans and comparisons that run as its jobs, and their reports.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::controller::Creation;

/// A review of a simulated machine, as `openraid-lab review` makes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewInput {
    /// Name of the report.
    pub name: String,
    /// Name of the controller's profile; without it, `openraid`.
    #[serde(default)]
    pub system: Option<String>,
    /// Name of the drives' profile; without it, the controller's own drives.
    #[serde(default)]
    pub drive: Option<String>,
    /// The arrays, such as `raid5x4`.
    pub arrays: Vec<String>,
    /// Names of the methods.
    pub methods: Vec<String>,
    /// Size of the controller's cache, MiB; without it, the one of the profile.
    #[serde(default)]
    pub cache_mib: Option<u32>,
    /// Measure with normal effort (means within 1 %) instead of quick effort. It takes longer.
    #[serde(default)]
    pub thorough: bool,
}

/// A plan, as `openraid-lab plan --effort quick` makes it: several arrays under one load.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanInput {
    /// Name of the report.
    pub name: String,
    /// Name of the controller's profile; without it, `openraid`.
    #[serde(default)]
    pub system: Option<String>,
    /// Names of drives' profiles, one machine for each; without them, the controller's own drives.
    #[serde(default)]
    pub drive: Vec<String>,
    /// Are these profiles the nearest ones, of other drives? Ranges are wider then.
    #[serde(default)]
    pub nearest: bool,
    /// Numbers of drives, one machine for each.
    pub drives: Vec<u16>,
    /// Levels to compare; without them, the usual ones.
    #[serde(default)]
    pub levels: Vec<String>,
    /// Name of the load; without it, `database`.
    #[serde(default)]
    pub load: Option<String>,
    /// Number of outstanding requests of each worker.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Percentage of reads among the requests.
    #[serde(default)]
    pub reads: Option<u8>,
    /// Size of the controller's cache, MiB; without it, the one of the profile.
    #[serde(default)]
    pub cache_mib: Option<u32>,
}

/// A comparison of two reviews, as `openraid-lab compare` makes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparisonInput {
    /// Name of the new report.
    pub name: String,
    /// Name of the first review's report.
    pub a: String,
    /// Name of the second review's report.
    pub b: String,
}

/// A job that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobInput {
    Review(ReviewInput),
    Plan(PlanInput),
    Comparison(ComparisonInput),
}

impl JobInput {
    /// The name of its report.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Review(review) => &review.name,
            Self::Plan(plan) => &plan.name,
            Self::Comparison(comparison) => &comparison.name,
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
    /// Number of the job. It counts from the start of the server.
    pub number: u64,
    /// Kind of the job: `review`, `plan` or `comparison`.
    pub kind: String,
    /// Name of its report.
    pub name: String,
    /// Name of the user that began it.
    pub user: String,
    /// The command line that does the same.
    pub command: String,
    /// State of the job.
    pub state: JobState,
    /// When it began, in seconds since 1970.
    pub began_seconds: u64,
    /// When it ended, in seconds since 1970; null while it runs.
    pub ended_seconds: Option<u64>,
    /// Number of runs that have ended, while the job runs.
    pub done: Option<u64>,
    /// Number of all runs, as far as that is known.
    pub total: Option<u64>,
    /// The result in sentences, or why there is none.
    pub text: String,
}

/// A report that is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportModel {
    /// Name of the report.
    pub name: String,
    /// Kind of the report: `review`, `plan` or `comparison`; `part` for a review that has not ended.
    pub kind: String,
    /// The command line that made it, if this server ran it.
    pub command: Option<String>,
    /// When it was written, in seconds since 1970.
    pub at_seconds: u64,
    /// Names of its files.
    pub files: Vec<String>,
}

/// The laboratory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LabModel {
    /// Path of the folder with the reports.
    pub folder: String,
    /// Jobs, the newest first.
    pub jobs: Vec<JobModel>,
    /// Reports, the newest first.
    pub reports: Vec<ReportModel>,
    /// Maximum number of reports that are kept.
    pub reports_max: usize,
}

/// A word that can be chosen, and its meaning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChoiceModel {
    /// The word, as in other requests.
    pub name: String,
    /// Meaning of the word.
    pub title: String,
}

/// Systems, drives and patterns of the simulator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChoicesModel {
    /// Profiles of controllers.
    pub systems: Vec<ChoiceModel>,
    /// Profiles of drives.
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
    /// The array that the user is about to make.
    pub creation: Creation,
    /// Name of the load; without it, `database`.
    #[serde(default)]
    pub load: Option<String>,
    /// Name of the drives' profile; without it, the one nearest to the drives.
    #[serde(default)]
    pub drive: Option<String>,
}

/// The speed of an array in one state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PredictedSpeed {
    /// Requests that end each second.
    pub iops: f64,
    /// Mean latency of a request.
    pub mean_ms: f64,
}

/// A level as the simulator predicts it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PredictedLevel {
    /// The level, as in `openraid create --level`.
    pub level: String,
    /// Speed with all members.
    pub healthy: Option<PredictedSpeed>,
    /// Speed with one member missing.
    pub degraded: Option<PredictedSpeed>,
    /// Speed while one member is being filled.
    pub rebuilding: Option<PredictedSpeed>,
    /// Duration of the rebuild of a whole drive without load, hours.
    pub rebuild_hours: Option<f64>,
    /// Duration of the rebuild of a whole drive under the load, hours.
    pub rebuild_loaded_hours: Option<f64>,
    /// The part that limits the healthy array, in words.
    pub limit: Option<String>,
    /// Why there are no figures, in a sentence.
    pub impossible: Option<String>,
}

/// A prediction, or how far it is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PredictionModel {
    /// Is the prediction not complete? Then ask again: it is being computed, or waits for another one.
    pub waits: bool,
    /// Number of runs that have ended, while it is computed.
    pub done: Option<u64>,
    /// Number of all runs, as far as that is known.
    pub total: Option<u64>,
    /// Name of the drives' profile.
    pub drive: String,
    /// Title of the drives' profile.
    pub drive_title: String,
    /// Why this profile was chosen, in a sentence.
    pub why: String,
    /// The command line that predicts the same.
    pub command: String,
    /// The figures of each level.
    pub levels: Vec<PredictedLevel>,
    /// Why there is no prediction, in a sentence.
    pub error: Option<String>,
}
