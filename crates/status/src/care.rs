//! Care for arrays and drives: the places that alarms are sent to, schedules, the history of checks, what drives say of themselves.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::check::CheckModel;

/// A sink of alarms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SinkModel {
    /// Its name.
    pub name: String,
    /// `exec`, `webhook`, `mail` or `journald`.
    pub kind: String,
    /// Alarms below this level are not sent.
    pub level: String,
    /// The program, address, receivers or socket.
    pub target: String,
    /// The line of the configuration file.
    pub line: u32,
    /// Why its last message failed, if it did.
    #[serde(default)]
    pub error: Option<String>,
}

/// The result of a test alarm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TestModel {
    /// The name of the sink.
    pub sink: String,
    /// `exec`, `webhook`, `mail` or `journald`.
    pub kind: String,
    /// Why it did not accept the alarm; none if it did.
    pub error: Option<String>,
}

/// A schedule of checks or patrol reads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleModel {
    /// Its name.
    pub name: String,
    /// `check` or `patrol`.
    pub task: String,
    /// Rate of a patrol: bytes of each drive a second.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Does a patrol read SSDs too?
    #[serde(default)]
    pub ssd: Option<bool>,
    /// Names of arrays; empty: all.
    pub arrays: Vec<String>,
    /// Interval in seconds.
    pub every_seconds: u64,
    /// `HH:MM-HH:MM` in UTC; none: at any time.
    pub window: Option<String>,
    /// The line of the configuration file; 0 if the server keeps it and the file does not have it.
    pub line: u32,
}

/// The findings of a check on a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberCheckModel {
    /// Its slot.
    pub slot: u16,
    /// Its name then.
    pub member: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// Number of sectors of 512 bytes in which it disagreed with the others, in the kept ranges.
    pub mismatches: u64,
    /// Number of defects that were repaired on it since its server was started.
    pub media_errors: u32,
}

/// A past check, without its ranges.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PastCheckModel {
    /// How it ended.
    #[serde(flatten)]
    pub check: CheckModel,
    /// Its members.
    pub members: Vec<MemberCheckModel>,
}

/// The checks of an array, or of a span of it, the newest last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SetHistoryModel {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uuid: String,
    /// The checks.
    pub checks: Vec<PastCheckModel>,
}

/// The findings of a patrol read on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PatrolMemberModel {
    /// The drive.
    pub member: String,
    /// Its slot then; a spare has none.
    pub slot: Option<u16>,
    /// Its serial number.
    pub serial: Option<String>,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Its size.
    pub size_bytes: u64,
    /// Number of ranges of 1 MiB that could not be read.
    pub errors: u64,
    /// The place of the first one, in bytes from the start of the drive.
    pub first_error_bytes: Option<u64>,
    /// Why the read stopped before the end of the drive, if it did.
    pub trouble: Option<String>,
    /// Why the drive was left out, if it was: then nothing of it was read.
    #[serde(default)]
    pub left_out: Option<String>,
}

/// A patrol read of an array's drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PatrolModel {
    /// Its begin: seconds since 1970.
    pub at_seconds: u64,
    /// Its end; none if its server ended before it.
    pub ended_seconds: Option<u64>,
    /// The schedule that began it.
    pub schedule: String,
    /// Drives that were read or left out.
    pub members: Vec<PatrolMemberModel>,
}

/// The health that a drive reports through smartctl. A value that it does not report is null.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SmartModel {
    /// The time of the answer: seconds since 1970.
    pub at_seconds: u64,
    /// Its model.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The version of its firmware.
    #[serde(default)]
    pub firmware: Option<String>,
    /// The speed of its link, in words.
    #[serde(default)]
    pub link: Option<String>,
    /// Its own verdict: `false` if it expects to fail.
    pub passed: Option<bool>,
    /// Attributes below the vendor's thresholds now.
    #[serde(default)]
    pub failing_attributes: Vec<String>,
    /// The critical warning of NVMe, in bits.
    pub critical_warning: Option<u64>,
    /// Its temperature in degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// Does it rotate?
    pub rotating: Option<bool>,
    /// Number of replaced sectors.
    pub reallocated_sectors: Option<u64>,
    /// Number of sectors that it could not read and has not replaced yet.
    pub pending_sectors: Option<u64>,
    /// Number of sectors that it could not correct.
    pub uncorrectable_sectors: Option<u64>,
    /// Number of errors that it has reported to the host.
    pub reported_errors: Option<u64>,
    /// Number of commands that timed out in it.
    pub command_timeouts: Option<u64>,
    /// The part of its rated life that is used, in per cent.
    pub used_percent: Option<u64>,
    /// Hours of operation.
    pub power_on_hours: Option<u64>,
}
