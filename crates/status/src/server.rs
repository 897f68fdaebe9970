//! A server, as it describes itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alarm::AlarmModel;

/// A server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerModel {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// The addresses for clients.
    pub listens: Vec<String>,
    /// Connected clients.
    pub clients: u64,
    /// The kernel's engine in words.
    pub engine: String,
    /// The parity kernels in use.
    pub kernels: String,
    /// Fallbacks taken.
    pub notes: Vec<String>,
    /// It continues when the last array is stopped.
    #[serde(default)]
    pub stays: bool,
    /// Alarms of the server itself, without those of its arrays.
    #[serde(default)]
    pub alarms: Vec<AlarmModel>,
}
