//! The event log for output.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event of the log, as `openraid events --json` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventModel {
    /// Its number: numbers only grow, and none is given twice.
    pub number: u64,
    /// `info`, `warning` or `critical`.
    pub level: String,
    /// Seconds since 1970.
    pub at_seconds: u64,
    /// The event's name: mdadm's if it has one.
    pub event: String,
    /// The array.
    pub array: Option<String>,
    /// The span of a nested array.
    pub span: Option<usize>,
    /// The slot.
    pub slot: Option<u16>,
    /// The member.
    pub member: Option<String>,
    /// In words.
    pub text: String,
    /// A user has taken note of it.
    pub acknowledged: bool,
}
