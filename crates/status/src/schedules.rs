//! The schedules of checks and patrol reads, as the server reports them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::ScheduleWord;

/// A schedule of checks or patrol reads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleModel {
    /// Name of the schedule.
    pub name: String,
    /// Task that it begins: `check` (members are compared) or `patrol` (drives are read).
    #[schema(value_type = String)]
    pub task: ScheduleWord,
    /// Rate of a patrol: bytes of each drive a second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Does a patrol read SSDs too? Without it, a patrol leaves them out.
    #[serde(default)]
    pub ssd: Option<bool>,
    /// Names of the arrays that it is for; empty: all arrays.
    pub arrays: Vec<String>,
    /// Time between two runs, in seconds.
    pub every_seconds: u64,
    /// `HH:MM-HH:MM` in UTC; none: at any time.
    pub window: Option<String>,
    /// The line of the configuration file; 0 if the server keeps it and the file does not have it.
    pub line: u32,
}
