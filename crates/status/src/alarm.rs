//! An alarm's text, and the words that other tools have for it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::event_name::EventName;

/// How much an event matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Level)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something is worse than it was, or was not done.
    Warning,
    /// Data or redundancy is lost, or an array is not there.
    Critical,
}

impl Severity {
    /// The level of an array that lacks members: critical if the loss of one more member loses data. Event and alarm have
    /// it. `survives`: number of further members that may fail.
    #[must_use]
    pub const fn of_degraded(survives: u32) -> Self {
        match survives {
            0 => Self::Critical,
            _ => Self::Warning,
        }
    }

    /// The level of an event, by its name; `Info` if the name is not known (an old log may have such a name).
    #[must_use]
    pub fn of(event: &str) -> Self {
        EventName::named(event).map_or(Self::Info, EventName::level)
    }

    /// All levels, the least important first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// The level with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// The word in documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// A next step about a drive of an array, for the server that has the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveStep {
    /// Add a drive.
    Add,
    /// Remove the drive with this number.
    Remove(u16),
}

/// A state that needs attention.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Condition {
    /// The event's name: mdadm's if mdadm has one.
    pub event: String,
    /// How severe the state is.
    pub level: Severity,
    /// The array; none if it is about the server.
    pub array: Option<String>,
    /// The identity of the array: the alarm stays the same when the array is renamed.
    pub uuid: Option<String>,
    /// Number of the span of a nested array, from 0.
    #[serde(alias = "leg")]
    pub span: Option<usize>,
    /// Slot of the member, from 0.
    pub slot: Option<u16>,
    /// Path or address of the member, or the name of a device, sink or file.
    pub member: Option<String>,
    /// The state in a sentence.
    pub text: String,
    /// The command that helps or shows more.
    pub next_step: Option<String>,
    /// What that command does with a drive, for the server that has the array.
    #[serde(skip)]
    pub drive_step: Option<DriveStep>,
    /// Does it stay until it is acknowledged, also after the state has ended? Example: data lost by a forced start.
    #[serde(default)]
    pub until_acknowledged: bool,
}

impl Condition {
    /// A state of the server itself, with the level of its name.
    #[must_use]
    pub fn of_server(event: EventName, text: String) -> Self {
        Self {
            event: event.word().into(),
            level: event.level(),
            array: None,
            uuid: None,
            span: None,
            slot: None,
            member: None,
            text,
            next_step: None,
            drive_step: None,
            until_acknowledged: false,
        }
    }

    /// Its name: the array or `server`, the event, and the place if there can be several.
    #[must_use]
    pub fn id(&self) -> String {
        let mut id = format!("{}:{}", self.array.as_deref().unwrap_or("server"), self.event);
        if let Some(span) = self.span {
            id.push_str(&format!(":span{span}"));
        }
        if let Some(member) = &self.member {
            id.push_str(&format!(":{member}"));
        }
        id
    }

    /// Is it the same state as another one, whatever its words and its array's name are?
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |alarm: &Self| (alarm.event.clone(), alarm.span, alarm.member.clone());
        let subject = |alarm: &Self| alarm.uuid.clone().or_else(|| alarm.array.clone());
        key(self) == key(other) && subject(self) == subject(other)
    }

    /// The MessageId that Redfish has for it: of DMTF's registries if they have one, else of our own.
    #[must_use]
    pub fn message_id(&self) -> String {
        let standard = match self.event.as_str() {
            "DegradedArray" => "StorageDevice.1.2.VolumeDegraded",
            "FailedArray" => "StorageDevice.1.2.VolumeFailure",
            "DeviceDisappeared" => "StorageDevice.1.2.VolumeOffline",
            "Fail" | "FailSpare" => "StorageDevice.1.2.DriveFailure",
            "DriveMissing" => "StorageDevice.1.2.DriveMissing",
            "DrivePredictiveFailure" => "StorageDevice.1.2.DrivePredictiveFailure",
            "JournalLost" | "JournalFull" | "JournalDegraded" => "StorageDevice.1.2.WriteCacheDegraded",
            "NotProtected" => "StorageDevice.1.2.WriteCacheTemporarilyDegraded",
            "RebuildStarted" | "ResyncStarted" => "TaskEvent.1.0.TaskStarted",
            other => return format!("Openraid.1.0.{other}"),
        };
        standard.into()
    }
}

/// An alarm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlarmModel {
    /// Its name, used to acknowledge it. An alarm that ended and a later one may have the same name.
    pub id: String,
    /// Identifier of the message in Redfish.
    pub message_id: String,
    /// The fault.
    #[serde(flatten)]
    pub what: Condition,
    /// When the state began, or was found: seconds since 1970.
    pub since_seconds: u64,
    /// When the state ended: seconds since 1970. None while the alarm is open.
    pub until_seconds: Option<u64>,
    /// When a user acknowledged it: seconds since 1970. None if none did.
    pub acknowledged_seconds: Option<u64>,
}

impl AlarmModel {
    /// Does it hold, and has it not been acknowledged?
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.until_seconds.is_none() && self.acknowledged_seconds.is_none()
    }
}
