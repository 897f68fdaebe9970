//! Arrays, members and the journal, as the control socket, `--json` and the HTTP API carry them.
//!
//! Plain data, so that the engine's types can change and the schema stays. Sizes are in bytes, rates in bytes a second.

use openraid_core::admin::TaskKind;
use openraid_core::reason::FailReason;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alarm::AlarmModel;
use crate::care::SmartModel;
use crate::check_results::{CheckModel, OutcomeModel};
use crate::exit::Exit;
use crate::level::LevelWord;
use crate::shape::{OtherSizeModel, ReshapeModel};
use crate::words::{
    AccessWord, DriveClass, JournalArrayWord, JournalWord, LimitPart, PathWord, PolicyWord, SessionWord,
};

/// The health of an array in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthWord {
    /// All members in sync.
    Optimal,
    /// Redundancy is reduced.
    Degraded,
    /// Its data cannot be read.
    Failed,
    /// It is wanted and is not served: it did not start.
    Offline,
}

/// The state of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateWord {
    /// The slot has no member.
    Missing,
    /// Waits to be needed.
    Spare,
    /// Is being filled.
    Rebuilding,
    /// A full member.
    InSync,
    /// Failed, not yet recorded on the others.
    Failing,
    /// Failed.
    Faulty,
    /// Its replacement has taken its slot; it can be taken out.
    Replaced,
}

/// A background task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskWord {
    /// A slot is filled from the others.
    Rebuild,
    /// A working member is copied to its replacement.
    Replace,
    /// Parity or copies are made consistent.
    Resync,
    /// Everything is read and compared.
    Check,
    /// The same, and corrected.
    Repair,
    /// Data moves to the places of another shape.
    Reshape,
}

impl TaskWord {
    /// For people: the engine's word.
    ///
    /// # Panics
    /// The word is of no kind of task: `TaskKind::ALL` lacks one.
    #[must_use]
    pub fn text(self) -> &'static str {
        let kind = TaskKind::ALL.into_iter().find(|kind| Self::from(*kind) == self);
        kind.expect("each word is of a kind").name()
    }

    /// Does it compare?
    pub const fn is_check(self) -> bool {
        matches!(self, Self::Check | Self::Repair)
    }
}

impl From<TaskKind> for TaskWord {
    fn from(kind: TaskKind) -> Self {
        match kind {
            TaskKind::Rebuild => Self::Rebuild,
            TaskKind::Replace => Self::Replace,
            TaskKind::Resync => Self::Resync,
            TaskKind::Check => Self::Check,
            TaskKind::Repair => Self::Repair,
            TaskKind::Reshape => Self::Reshape,
        }
    }
}

/// A member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberModel {
    /// Slot of the member; null for a spare and for a member that left its slot.
    pub slot: Option<u16>,
    /// The former slot of a member that failed or was replaced since the array was started.
    #[serde(default)]
    pub left_slot: Option<u16>,
    /// The server's number for it: commands accept `drive:NUMBER` in place of its name.
    #[serde(default)]
    pub drive: Option<u16>,
    /// Its identity in its superblock, if it has one.
    #[serde(default)]
    pub device: Option<String>,
    /// Its serial number, of a device of this machine that has one.
    #[serde(default)]
    pub serial: Option<String>,
    /// Its model, of a device of this machine that has one.
    #[serde(default)]
    pub model: Option<String>,
    /// Its place in an enclosure, if the kernel knows it.
    #[serde(default)]
    pub bay: Option<String>,
    /// Is its light on by order, so that a hand finds the drive? Null if no program switches lights.
    #[serde(default)]
    pub located: Option<bool>,
    /// Its class, if it is known: `rotating` or `ssd`. It is unknown for files, remote members and memory.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub class: Option<DriveClass>,
    /// The health that the drive reported, if it was asked.
    #[serde(default)]
    pub smart: Option<Box<SmartModel>>,
    /// Path or address of the member; null for a missing one.
    pub member: Option<String>,
    /// State of the member.
    pub state: StateWord,
    /// The state in words.
    #[serde(default)]
    pub text: String,
    /// Why the member failed, in words.
    pub reason: Option<String>,
    /// Why the member failed, for the server that has it.
    #[serde(skip)]
    pub failed: Option<FailReason>,
    /// The finding at its path, in words, if it is not there any more: it was deleted, replaced or unmounted, and lives only while the server runs.
    #[serde(default)]
    pub displaced: Option<String>,
    /// Is it being filled while the member that it replaces still works?
    pub replacement: bool,
    /// The flags in its superblock, by mdadm's names: `write-mostly`, `failfast`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Bytes that are already filled, if the member is being filled.
    pub done_bytes: Option<u64>,
    /// Size of the drive.
    pub size_bytes: Option<u64>,
    /// Number of media errors since the start: places that could not be read. A place with redundancy was rewritten, any
    /// other is a bad range.
    pub media_errors: u32,
    /// Number of ranges in its bad-block log.
    pub bad_ranges: u32,
    /// Number of commands that the drive holds now.
    pub outstanding: u32,
    /// Number of read commands since the array was started.
    pub reads: u64,
    /// Number of write commands since the array was started.
    pub writes: u64,
    /// Number of flush commands since the array was started.
    pub flushes: u64,
    /// Bytes read from the member since the array was started.
    pub read_bytes: u64,
    /// Bytes written to the member since the array was started.
    pub written_bytes: u64,
    /// Is the drive's own write cache on? None if that is unknown: files, remote members, memory.
    #[serde(default)]
    pub drive_cache: Option<String>,
    /// Its storage is full: the refused writes, and the place where room must be made, in words. Null if there is room.
    #[serde(default)]
    pub full: Option<String>,
    /// Fallbacks in the use of this member, and trouble with a remote one; a sentence each.
    pub notes: Vec<String>,
}

/// A background task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskModel {
    /// Kind of the task.
    pub kind: TaskWord,
    /// Bytes of each member that are done.
    pub done_bytes: u64,
    /// Bytes of each member that the task covers.
    pub total_bytes: u64,
    /// Has an administrator paused it?
    pub paused: bool,
    /// Its present rate: bytes of each member a second.
    pub rate: u64,
    /// Seconds left, if they can be estimated.
    pub eta_seconds: Option<u64>,
    /// Number of sectors of 512 bytes that did not match so far.
    pub mismatches: u64,
    /// All of it in words.
    #[serde(default)]
    pub text: String,
}

impl TaskModel {
    /// Per cent done, rounded down.
    pub fn percent(&self) -> u64 {
        if self.total_bytes == 0 {
            return 100;
        }
        u64::try_from(u128::from(self.done_bytes) * 100 / u128::from(self.total_bytes)).unwrap_or(100)
    }
}

/// A setting that was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeModel {
    /// Name of the setting.
    pub setting: String,
    /// Value before the change.
    pub from: String,
    /// Value after the change.
    pub to: String,
}

impl From<openraid_core::settings::Change> for ChangeModel {
    fn from(change: openraid_core::settings::Change) -> Self {
        Self { setting: change.name.into(), from: change.from.to_string(), to: change.to.to_string() }
    }
}

/// The profile of an array's settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProfileModel {
    /// Name of the profile: `protection`, `balanced` or `performance`.
    pub name: String,
    /// Was it set? If not, the array has the default, which is `balanced` without a journal.
    pub set: bool,
    /// Settings whose values differ from the profile.
    pub changes: Vec<ChangeModel>,
    /// The settings while the array is degraded.
    pub degraded: DegradedModel,
}

/// Settings of a degraded array's rebuild. The other settings do not change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DegradedModel {
    /// Maximum rate of the rebuild, bytes of each member a second; 0 means no limit.
    pub rebuild_rate: u64,
    /// Maximum number of operations of the rebuild at once.
    pub depth: u32,
}

/// The cache of the server, and its effect for an array since the array was started.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CacheModel {
    /// Size of the server's cache, which all arrays share.
    pub size_bytes: u64,
    /// Data of all arrays in the cache that the members do not have yet.
    pub dirty_bytes: u64,
    /// Maximum of dirty data of all arrays together.
    pub dirty_max_bytes: u64,
    /// Data that was read ahead, for all arrays.
    pub ahead_read_bytes: u64,
    /// The part of the data read ahead that hosts requested later.
    pub ahead_used_bytes: u64,
    /// The part of the data read ahead that was overwritten or evicted before a host requested it.
    pub ahead_wasted_bytes: u64,
    /// Bytes of reads that were in the cache.
    pub read_hit_bytes: u64,
    /// Bytes of reads that were not in the cache.
    pub read_miss_bytes: u64,
    /// Bytes of writes that were put into the cache.
    pub written_bytes: u64,
    /// The part of these writes that overwrote dirty data, so the members did not have to write that data.
    pub merged_bytes: u64,
    /// Host data that was destaged to the members, without parity and copies.
    pub destaged_bytes: u64,
    /// Number of destaged units: stripes, or ranges of a set without parity.
    pub destaged_units: u64,
    /// Mean age of a unit's oldest data when the unit was on the members.
    pub waited_mean_ms: u64,
    /// Maximum age of a unit's oldest data when the unit was on the members.
    pub waited_max_ms: u64,
}

/// The present and past choices of an array's adaptive policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdaptiveModel {
    /// The choice in force.
    pub now: TuningModel,
    /// Number of periods that it has evaluated.
    pub windows: u64,
    /// Number of times that the choice was changed.
    pub switches: u64,
    /// The last changes, the oldest first.
    pub last: Vec<SwitchModel>,
}

/// A choice of the adaptive policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TuningModel {
    /// Value that is in force for the setting `read-ahead`.
    pub read_ahead: String,
    /// Value that is in force for the setting `mirror-read`.
    pub mirror_read: String,
    /// Age from which dirty data is destaged, in milliseconds.
    pub destage_millis: u64,
}

/// A change by the adaptive policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SwitchModel {
    /// Seconds since the change.
    pub ago_seconds: u64,
    /// The choice before the change.
    pub from: TuningModel,
    /// The choice after the change.
    pub to: TuningModel,
    /// The measured figures that caused the change.
    pub why: String,
}

/// The number of decisions of a kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReasonModel {
    /// Name of the reason, which does not change between versions.
    pub reason: String,
    /// The decision and its reason, in words.
    pub text: String,
    /// Number of times that the engine decided so since the array was started.
    pub count: u64,
}

/// Requests of hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostModel {
    /// Number of read requests.
    pub reads: u64,
    /// Number of write requests.
    pub writes: u64,
    /// Number of flush requests.
    pub flushes: u64,
    /// Number of other requests: TRIM and zeroing.
    pub others: u64,
    /// Bytes that hosts read.
    pub read_bytes: u64,
    /// Bytes that hosts wrote.
    pub written_bytes: u64,
}

/// A part of an array in the last seconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PartModel {
    /// Kind of the part: `member`, `journal` or `processor`.
    #[schema(value_type = String)]
    pub part: LimitPart,
    /// Path or address of the member or of the journal's device.
    pub name: Option<String>,
    /// Slot of the member.
    pub slot: Option<u16>,
    /// Share of the time in which it had work, percent.
    pub busy_percent: u64,
    /// Mean number of commands that it held, in tenths.
    pub depth_tenths: u64,
    /// Number of commands that it completed.
    pub commands: u64,
    /// Mean time from the issue of a command to the drive until its end.
    pub service_ns: u64,
    /// Mean time of a command in the controller's queue before that.
    pub queued_ns: u64,
}

/// The limit of an array now.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitModel {
    /// The part that limits the array: `member`, `journal`, `memory`, `cache`, `processor`, `redo`, `locks`, `clients`,
    /// `nothing` or `unknown`.
    #[schema(value_type = String)]
    pub part: LimitPart,
    /// The limit in a sentence.
    pub text: String,
    /// The setting or change that raises the limit, in words.
    #[serde(rename = "knob")]
    pub suggestion: String,
    /// Length of the period that was measured.
    pub window_ms: u64,
    /// Number of requests of hosts that ended in the period.
    pub requests: u64,
    /// Bytes that these requests read and wrote.
    pub bytes: u64,
    /// Mean number of requests in the array, in tenths.
    pub depth_tenths: u64,
    /// Mean time of a request in the array.
    pub mean_ns: u64,
    /// Number of waits of requests and operations for memory.
    pub waits_for_memory: u64,
    /// Number of writes that waited for room in the cache.
    pub waits_for_cache: u64,
    /// Number of writes that waited for the journal.
    pub waits_for_journal: u64,
    /// Number of requests that waited for another one on the same rows.
    pub waits_for_others: u64,
    /// All parts of the array, with their figures.
    pub parts: Vec<PartModel>,
}

/// A write-intent bitmap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BitmapModel {
    /// Number of regions whose bit is set: they may be out of sync after a crash.
    pub marked: u64,
    /// Number of regions, one for each bit.
    pub regions: u64,
    /// Size of a region: bytes of data for each bit.
    #[serde(default)]
    pub chunk_bytes: u64,
    /// Number of pages of counters that md would need in memory for the bitmap.
    #[serde(default)]
    pub pages: u64,
    /// Number of these pages with a marked region.
    #[serde(default)]
    pub pages_marked: u64,
}

/// The journal's state for an array: it protects the array's writes, or still holds some.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProtectionModel {
    /// Does the journal protect its writes now?
    pub protected: bool,
    /// Why the journal does not protect the array's writes, in words.
    pub reason: Option<String>,
    /// The state: `off`, `settling`, `entering`, `marking`, `on`, `leaving`, `unmarking`.
    #[schema(value_type = String)]
    pub session: SessionWord,
    /// The state in words.
    #[serde(default)]
    pub text: String,
}

/// A device of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalDeviceModel {
    /// Path of the device.
    pub device: String,
    /// Does the device work? Otherwise it failed or is missing.
    pub works: bool,
}

/// The data that the journal has of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalArrayModel {
    /// UUID of the set.
    pub uuid: String,
    /// Name of the array, if it is known.
    pub name: Option<String>,
    /// `live` (the array uses the journal), `preserved` (the array failed, and its entries are kept until it is back)
    /// or `discarded` (an administrator gave its entries up).
    #[schema(value_type = String)]
    pub state: JournalArrayWord,
    /// Number of entries that wait for the start of the array.
    pub waiting_entries: u64,
    /// Valid host data of the array in the log; known for a journal that is not in use.
    pub data_bytes: Option<u64>,
}

/// Counters of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct JournalCountersModel {
    /// Number of entries that were written.
    pub entries: u64,
    /// Bytes that were written to each device, headers included.
    pub written_bytes: u64,
    /// Bytes of host data among them.
    pub data_bytes: u64,
    /// Number of redo records that were written.
    pub redo_records: u64,
    /// Bytes of these redo records.
    pub redo_bytes: u64,
    /// Number of times that the tail was moved.
    pub rounds: u64,
    /// Bytes that were loaded as dirty when arrays were started.
    pub replayed_bytes: u64,
    /// Number of member writes that were repeated when arrays were started.
    pub replayed_redos: u64,
}

/// A device of the journal that is being brought up to date.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalJoinModel {
    /// Path of the device.
    pub device: String,
    /// Bytes of the log that are copied to the device.
    pub copied_bytes: u64,
    /// Bytes of the log when the copy began.
    pub total_bytes: u64,
}

/// A journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalModel {
    /// `opening`, `live`, `closing`, `lost`, `full`; for named devices `unused` if no server uses them, and `in-use`
    /// if another server does.
    #[schema(value_type = String)]
    pub state: JournalWord,
    /// Why the lost journal, or its lost device, is not back.
    pub trouble: Option<String>,
    /// The damage of its log, which prevents its use: the other figures are for the log before the damage.
    #[serde(default)]
    pub damage: Option<String>,
    /// Its identity; none if it is lost and was not found again.
    pub uuid: Option<String>,
    /// The controller that it belongs to, if it was read.
    pub controller: Option<String>,
    /// The devices of the journal.
    pub devices: Vec<JournalDeviceModel>,
    /// Is it on two devices of which only one was named? The other one may hold more.
    #[serde(default)]
    pub other_missing: bool,
    /// The device that is being brought up to date, if there is one.
    pub joining: Option<JournalJoinModel>,
    /// Size of the ring.
    pub ring_bytes: u64,
    /// Bytes of the ring that are in use, from the tail to the head.
    pub used_bytes: u64,
    /// Number of entries from the tail to the head.
    pub entries: u64,
    /// Bytes in the area before the ring that are in use, for entries that only absent arrays need.
    pub kept_bytes: u64,
    /// Size of the area before the ring.
    pub kept_bytes_max: u64,
    /// The arrays of which the journal has entries or a record.
    pub arrays: Vec<JournalArrayModel>,
    /// Work of the journal since it was opened; null if it is not in use.
    pub counters: Option<JournalCountersModel>,
}

/// A range of an array's data that may be lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LostRangeModel {
    /// UUID of the set: of the array, or of one of its spans.
    pub set: String,
    /// First byte of the range, in the data of the set.
    pub offset_bytes: u64,
    /// Length of the range.
    pub bytes: u64,
}

/// The data that a journal holds for an array; they are lost with the journal.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct LossModel {
    /// Was it discarded? Otherwise it was only listed.
    pub given_up: bool,
    /// Number of entries for the array, if it is known.
    pub entries: Option<u64>,
    /// Number of sectors of host data in these entries.
    pub data_sectors: Option<u64>,
    /// Bytes of host data in these entries.
    pub data_bytes: Option<u64>,
    /// Number of member writes that were under way.
    pub member_writes: Option<u64>,
    /// The ranges that hosts wrote and that are lost, if that is known: ranges that touch are one. If the array lacks a
    /// member, other data in the same stripes is lost as well.
    #[serde(default)]
    pub ranges: Vec<LostRangeModel>,
    /// Number of further ranges that are not listed.
    #[serde(default)]
    pub more_ranges: u64,
    /// The damage of the log: further entries may have followed, which cannot be counted.
    #[serde(default)]
    pub damage: Option<String>,
    /// The answer in sentences, with all of these figures.
    pub text: String,
}

/// The next step for an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NextStepModel {
    /// The step in words.
    pub text: String,
    /// The command line.
    pub command: String,
    /// The number of the drive that it is about, if it is about one.
    #[serde(default)]
    pub drive: Option<u16>,
}

/// An array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ArrayModel {
    /// Name of the array.
    pub name: String,
    /// UUID of the array; null for a raw drive.
    pub uuid: Option<String>,
    /// Name of the level, such as `raid5`, `raid60`, `single`, `jbod`.
    #[schema(value_type = String)]
    pub level: LevelWord,
    /// mdadm's name of its layout, if it has one.
    pub layout: Option<String>,
    /// Size of a chunk on a member, for a nested array that of its spans; null if the level has no chunks.
    pub chunk_bytes: Option<u64>,
    /// Bytes that a nested array places on one span before the next one; null if the array is not nested.
    #[serde(default)]
    pub outer_chunk_bytes: Option<u64>,
    /// Size of the array for hosts.
    pub size_bytes: u64,
    /// Logical block of the array: the smallest unit of its requests.
    #[serde(default)]
    pub block_bytes: u64,
    /// The logical block in its superblocks, as written by Linux since 6.19; for a nested array, in the outer ones.
    #[serde(default)]
    pub superblock_block_bytes: Option<u64>,
    /// Metadata version; none for a raw drive.
    pub metadata: Option<String>,
    /// Number of slots; for a nested array those of all spans.
    pub slots: u32,
    /// Health of the array.
    pub health: HealthWord,
    /// Why the array is not served, if it is offline.
    #[serde(default)]
    pub offline: Option<String>,
    /// The state in sentences, without figures that change by themselves.
    #[serde(default)]
    pub sentence: String,
    /// The next step, if an alarm is open that asks for one.
    #[serde(default)]
    pub next_step: Option<NextStepModel>,
    /// Number of members that can be lost now, whichever they are: 0 while parity or copies are not in sync.
    pub survives: u32,
    /// The same number after the running or pending sync or rebuild.
    #[serde(default)]
    pub survives_later: u32,
    /// Is the active mark in the superblocks: may writes be under way?
    pub active: bool,
    /// Copies or parity are in sync below this; none if they are in sync everywhere.
    pub consistent_to_bytes: Option<u64>,
    /// State of the write-intent bitmap, if the array has one.
    pub bitmap: Option<BitmapModel>,
    /// The method that makes it consistent after a crash: `resync`, `bitmap`, `ppl`, `controller-journal`; none
    /// without redundancy and journal.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub consistency_policy: Option<PolicyWord>,
    /// The journal's state for it, if its policy asks for the journal.
    #[serde(default)]
    pub journal: Option<ProtectionModel>,
    /// md's event count, which grows with each change of the superblocks.
    pub events: u64,
    /// Number of sectors of 512 bytes that did not match in the last check or repair, if it was complete.
    pub last_check_mismatches: Option<u64>,
    /// The end of the last check or repair, if it is known and none runs. A nested array has this in its spans.
    #[serde(default)]
    pub last_check: Option<CheckModel>,
    /// The last complete check or repair before that one, if that one was not complete.
    #[serde(default)]
    pub last_complete_check: Option<CheckModel>,
    /// The result of the last check or repair in words, a line for each fact.
    #[serde(default)]
    pub check_text: Vec<String>,
    /// The background task that runs or is paused.
    pub task: Option<TaskModel>,
    /// The change of its shape that is under way.
    #[serde(default)]
    pub shape: Option<ReshapeModel>,
    /// Connected clients that know another size of it.
    #[serde(default)]
    pub other_sizes: Vec<OtherSizeModel>,
    /// Has the stop of the array begun?
    pub stopping: bool,
    /// Possible losses, if it was started by force.
    pub forced: Option<String>,
    /// Why hosts are refused, if acknowledged writes may be lost: until `serve --after-loss`.
    #[serde(default)]
    pub refused: Option<String>,
    /// Why acknowledged writes may be lost, if hosts are served all the same (`server.after-power-cut = "admit"`).
    #[serde(default)]
    pub admitted: Option<String>,
    /// Open alarms, the most severe first. A span has none: its alarms are in the whole array's list.
    #[serde(default)]
    pub alarms: Vec<AlarmModel>,
    /// Names under which clients reach the array.
    pub exports: Vec<String>,
    /// Addresses (URIs) under which clients reach the array.
    pub addresses: Vec<String>,
    /// The access of hosts: `read-write`, `read-only` or `blocked`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub access: AccessWord,
    /// How NVMe hosts reach the array by the addresses of the server: `optimized`, `non-optimized` or `inaccessible`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub path: PathWord,
    /// The profile in force; a span, a raw drive, and an array that is not served have none.
    #[serde(default)]
    pub profile: Option<ProfileModel>,
    /// Members by slot, then spares and failed ones; none for a nested array.
    pub members: Vec<MemberModel>,
    /// The spans of a nested array, each in the form of an array.
    #[schema(no_recursion)]
    pub spans: Vec<ArrayModel>,
    /// Settings by their names, with `_` in place of `.` and `-`; rates in bytes a second, sizes in bytes.
    #[schema(value_type = Object)]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The choices of the adaptive policy, while it is on.
    pub adaptive: Option<AdaptiveModel>,
    /// Requests of hosts since the array was started.
    pub host: HostModel,
    /// The cache's effect for it, if the server has one.
    #[serde(default)]
    pub cache: Option<CacheModel>,
    /// The engine's decisions since the array was started, with the number of each.
    pub reasons: Vec<ReasonModel>,
}

impl ArrayModel {
    /// Itself, or its spans: the sets that have members.
    pub fn sets(&self) -> Vec<&ArrayModel> {
        if self.spans.is_empty() {
            vec![self]
        } else {
            self.spans.iter().collect()
        }
    }

    /// Members that have a drive now: in a slot, as a spare, or failed and not removed. Every interface counts these.
    pub fn attached(&self) -> impl Iterator<Item = &MemberModel> {
        self.sets().into_iter().flat_map(|set| &set.members).filter(|member| member.drive.is_some())
    }

    /// Number of members in a state.
    pub fn count(&self, state: StateWord) -> u64 {
        let members = self.sets().into_iter().flat_map(|set| &set.members);
        members.filter(|member| member.state == state).count() as u64
    }

    /// The tasks of all its sets.
    pub fn tasks(&self) -> impl Iterator<Item = (&ArrayModel, &TaskModel)> {
        self.sets().into_iter().filter_map(|set| Some((set, set.task.as_ref()?)))
    }

    /// Mismatches that are still there in this set, as far as is known. A check that could not compare says nothing of them.
    pub fn mismatches_left(&self) -> u64 {
        let is_refused = |check: &&CheckModel| matches!(check.outcome, OutcomeModel::NotComparable { .. });
        let last = self.last_check.as_ref();
        let shown = if last.as_ref().is_some_and(is_refused) { self.last_complete_check.as_ref() } else { last };
        shown.map_or(0, CheckModel::left)
    }

    /// The exit code that its state stands for: mismatches that are left come before a member that is missing.
    pub fn exit(&self) -> Exit {
        let left = |set: &ArrayModel| set.mismatches_left() > 0;
        match self.health {
            HealthWord::Failed | HealthWord::Offline => Exit::Failed,
            _ if self.sets().into_iter().any(left) => Exit::Mismatches,
            HealthWord::Degraded => Exit::Degraded,
            HealthWord::Optimal => Exit::Fine,
        }
    }

    /// The exit code of a check or repair that was waited for.
    pub fn check_exit(&self) -> Exit {
        let sets = self.sets();
        let outcomes = || sets.iter().filter_map(|set| set.last_check.as_ref()).map(|check| &check.outcome);
        let is_compared = |outcome: &OutcomeModel| !matches!(outcome, OutcomeModel::NotComparable { .. });
        if outcomes().any(|outcome| matches!(outcome, OutcomeModel::Aborted { .. })) {
            Exit::Aborted
        } else if outcomes().any(is_compared) {
            self.exit()
        } else {
            Exit::NotComparable
        }
    }

    /// Is parity, or are copies, in sync everywhere?
    pub fn is_synced(&self) -> bool {
        self.sets().into_iter().all(|set| set.consistent_to_bytes.is_none())
    }
}
