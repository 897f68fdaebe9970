//! Care for drives: the past checks and patrol reads, and the health that drives report.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::check_results::CheckModel;

/// The findings of a check on a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberCheckModel {
    /// Slot of the member.
    pub slot: u16,
    /// Path or address of the member at the time of the check.
    pub member: Option<String>,
    /// Serial number of the drive, if it has one.
    pub serial: Option<String>,
    /// Number of sectors of 512 bytes in which it disagreed with the others, in the kept ranges.
    pub mismatches: u64,
    /// Number of media errors since its server was started: places that could not be read.
    pub media_errors: u32,
}

/// A past check, without its ranges.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PastCheckModel {
    /// The result of the check.
    #[serde(flatten)]
    pub check: CheckModel,
    /// The members of the set at the time of the check.
    pub members: Vec<MemberCheckModel>,
}

/// The checks of an array, or of a span of it, the newest last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SetHistoryModel {
    /// Name of the set.
    pub name: String,
    /// UUID of the set.
    pub uuid: String,
    /// The last checks and repairs, the newest last.
    pub checks: Vec<PastCheckModel>,
}

/// The findings of a patrol read on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PatrolMemberModel {
    /// Path of the drive.
    pub member: String,
    /// Its slot then; a spare has none.
    pub slot: Option<u16>,
    /// Serial number of the drive, if it has one.
    pub serial: Option<String>,
    /// Number of bytes that were read.
    pub read_bytes: u64,
    /// Size of the drive.
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
    /// When it began: seconds since 1970.
    pub at_seconds: u64,
    /// When it ended: seconds since 1970. None if its server ended before it.
    pub ended_seconds: Option<u64>,
    /// Name of the schedule that began it.
    pub schedule: String,
    /// Drives that were read or left out.
    pub members: Vec<PatrolMemberModel>,
}

/// The health that a drive reports through smartctl. A value that it does not report is null.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SmartModel {
    /// The time of the answer: seconds since 1970.
    pub at_seconds: u64,
    /// Model of the drive.
    pub model: Option<String>,
    /// Serial number of the drive.
    pub serial: Option<String>,
    /// Version of the drive's firmware.
    #[serde(default)]
    pub firmware: Option<String>,
    /// The speed of its link, in words.
    #[serde(default)]
    pub link: Option<String>,
    /// Its own verdict: `false` if it expects to fail.
    pub passed: Option<bool>,
    /// Names of the attributes that are below the vendor's thresholds now.
    #[serde(default)]
    pub failing_attributes: Vec<String>,
    /// The critical warning of NVMe, in bits.
    pub critical_warning: Option<u64>,
    /// Temperature of the drive, degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// Does the drive rotate?
    pub rotating: Option<bool>,
    /// Number of the drive's sectors that it replaced by spare ones.
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
    /// Hours for which the drive was powered on in its life.
    pub power_on_hours: Option<u64>,
}
