//! News: an event with the names of array and member, as the event log, the terminal and `--json` show it.

use openraid_status::EventName;
use serde::Serialize;

use super::Severity;
use crate::model::ChangeModel;

/// A piece of news.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct News {
    /// The event's name: mdadm's if mdadm has one.
    pub event: &'static str,
    /// Name of the array; null if the event is about the server.
    pub array: Option<String>,
    /// Number of the span of a nested array, from 0.
    pub span: Option<usize>,
    /// Slot of the member, from 0.
    pub slot: Option<u16>,
    /// Path or address of the member, or the name of a device, sink or file.
    pub member: Option<String>,
    /// Settings that were changed; only of the event `PolicyChanged`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeModel>,
    /// The event in a sentence.
    pub text: String,
    /// Its severity, if its name does not say it.
    #[serde(skip)]
    pub level: Option<Severity>,
}

/// A piece of news about the server itself.
pub fn plain(event: EventName, text: String) -> News {
    News {
        event: event.word(),
        array: None,
        span: None,
        slot: None,
        member: None,
        changes: Vec::new(),
        text,
        level: None,
    }
}
