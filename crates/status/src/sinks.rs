//! The sinks of alarms, as the server reports them, and the result of a test alarm.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alarm::Severity;
use crate::words::SinkWord;

/// A sink of alarms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SinkModel {
    /// Name of the sink.
    pub name: String,
    /// Kind of the sink: `exec`, `webhook`, `mail` or `journald`.
    #[schema(value_type = String)]
    pub kind: SinkWord,
    /// Alarms below this level are not sent.
    #[schema(value_type = String)]
    pub level: Severity,
    /// The destination: the program, the address of the webhook, the receivers of the mail, or the socket.
    pub target: String,
    /// Line of the configuration file that defines it.
    pub line: u32,
    /// Why its last message failed, if it did.
    #[serde(default)]
    pub error: Option<String>,
}

/// The result of a test alarm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TestModel {
    /// Name of the sink.
    pub sink: String,
    /// Kind of the sink: `exec`, `webhook`, `mail` or `journald`.
    #[schema(value_type = String)]
    pub kind: SinkWord,
    /// Why it did not accept the alarm; none if it did.
    pub error: Option<String>,
}
