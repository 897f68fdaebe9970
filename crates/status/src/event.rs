//! The event log for output.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alarm::Severity;

/// An event of the log, as `openraid events --json` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventModel {
    /// Its number: numbers only grow, and none is given twice.
    pub number: u64,
    /// How much the event matters: `info`, `warning` or `critical`.
    #[schema(value_type = String)]
    pub level: Severity,
    /// When it happened: seconds since 1970, by the wall clock.
    pub at_seconds: u64,
    /// The event's name: mdadm's if it has one.
    pub event: String,
    /// Name of the array; null if the event is about the server.
    pub array: Option<String>,
    /// Number of the span of a nested array, from 0.
    pub span: Option<usize>,
    /// Slot of the member, from 0.
    pub slot: Option<u16>,
    /// Path or address of the member, or the name of a device, sink or file.
    pub member: Option<String>,
    /// The event in a sentence.
    pub text: String,
    /// Has a user acknowledged it?
    pub acknowledged: bool,
}
