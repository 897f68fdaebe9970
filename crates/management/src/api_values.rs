//! Values of a server that the console and the API keep apart from its configuration file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A sink without secrets and without programs: those stand in the configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptSink {
    /// Name of the sink.
    pub name: String,
    /// Kind of the sink: `webhook`, `mail` or `journald`.
    pub kind: String,
    /// Alarms below this level are not sent: `info`, `warning` or `critical`; without it, `warning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Address of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Form of a webhook's documents: `json` or `alertmanager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Mail server, as `HOST:PORT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Encryption to the mail server: `starttls`, `tls` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Sender of mails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Receivers of mails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
}

/// The values that are kept apart from the configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeptModel {
    /// Size of the cache, as in `1G`, from the next start on; null: as the configuration file has it.
    pub cache: Option<String>,
    /// Devices of the journal from the next start on; empty: as the configuration file has it.
    pub journal: Vec<String>,
    /// Drives that are spares for all arrays.
    pub spares: Vec<String>,
    /// Sinks of alarms.
    pub sinks: Vec<KeptSink>,
    /// Names under which clients find an array, by its UUID.
    pub exports: BTreeMap<String, Vec<String>>,
}

/// A change of it: parts that are null stay as they are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeptInput {
    /// Size of the cache, as in `1G`; empty: as the configuration file has it.
    pub cache: Option<String>,
    /// Devices of the journal; empty: as the configuration file has it.
    pub journal: Option<Vec<String>>,
    /// Drives that are spares for all arrays.
    pub spares: Option<Vec<String>>,
    /// All sinks that are kept.
    pub sinks: Option<Vec<KeptSink>>,
    /// Names under which clients find arrays, by the array's name; an empty list: the array's own.
    pub exports: Option<BTreeMap<String, Vec<String>>>,
}
