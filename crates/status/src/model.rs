//! Arrays, members and the journal, as the control socket, `--json` and the HTTP API carry them.
//!
//! Everything here is plain data with names of its own, so that the engine's types can change without the schema
//! changing. Sizes are in bytes, rates in bytes a second.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alarm::AlarmModel;
use crate::care::SmartModel;
use crate::check::{CheckModel, OutcomeModel};
use crate::exit::Exit;

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
}

impl TaskWord {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Replace => "replacement",
            Self::Resync => "resync",
            Self::Check => "check",
            Self::Repair => "repair",
        }
    }
    /// Does it compare?
    pub const fn is_check(self) -> bool {
        matches!(self, Self::Check | Self::Repair)
    }
}

/// A member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemberModel {
    /// Its slot, if it has one.
    pub slot: Option<u16>,
    /// The slot that it had, of one that failed or was replaced since the array was started.
    #[serde(default)]
    pub left_slot: Option<u16>,
    /// The number that the server gave it: orders take `drive:NUMBER` for its name.
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
    /// The health that it reports, if it was asked.
    #[serde(default)]
    pub smart: Option<Box<SmartModel>>,
    /// Its name; none for a missing one.
    pub member: Option<String>,
    /// State.
    pub state: StateWord,
    /// Why it failed.
    pub reason: Option<String>,
    /// It is being filled while the member that it replaces still works.
    pub replacement: bool,
    /// Bytes that are good, if the member is being filled.
    pub done_bytes: Option<u64>,
    /// Size of the drive.
    pub size_bytes: Option<u64>,
    /// Media errors repaired so far.
    pub media_errors: u32,
    /// Known bad ranges.
    pub bad_ranges: u32,
    /// Commands outstanding.
    pub outstanding: u32,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Is the write cache inside of it `on` or `off`? None if that is not known: files, remote members, memory.
    #[serde(default)]
    pub drive_cache: Option<String>,
    /// Fallbacks taken, and trouble of a remote member.
    pub notes: Vec<String>,
}

/// What runs in the background.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskModel {
    /// What.
    pub kind: TaskWord,
    /// Bytes of each member done.
    pub done_bytes: u64,
    /// Bytes of each member in all.
    pub total_bytes: u64,
    /// Is it held?
    pub paused: bool,
    /// Bytes of each member a second, lately.
    pub rate: u64,
    /// Seconds left, where that can be said.
    pub eta_seconds: Option<u64>,
    /// Sectors of 512 bytes that did not match so far.
    pub mismatches: u64,
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
    /// Its name.
    pub setting: String,
    /// The value before.
    pub from: String,
    /// The value now.
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
    /// `protection`, `balanced` or `performance`.
    pub name: String,
    /// Was it set? If not, the array is as it was at first, which is `balanced` without a journal.
    pub set: bool,
    /// Settings that differ from it.
    pub changes: Vec<ChangeModel>,
    /// What holds while the array is degraded.
    pub degraded: DegradedModel,
}

/// An array's work for its redundancy while it is degraded. No other setting depends on that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DegradedModel {
    /// The rebuild's upper bound, bytes of each member a second; zero is no bound.
    pub rebuild_rate: u64,
    /// Rows in work at once.
    pub depth: u32,
}

/// The cache of the server, and its effect for an array since the array was started.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CacheModel {
    /// Size of the server's cache.
    pub size_bytes: u64,
    /// Data in it that the members do not have yet.
    pub dirty_bytes: u64,
    /// The bound of that.
    pub dirty_max_bytes: u64,
    /// Data that was read ahead.
    pub ahead_read_bytes: u64,
    /// The part of it that hosts asked for afterwards.
    pub ahead_used_bytes: u64,
    /// The part of it that was overwritten or evicted before a host asked for it.
    pub ahead_wasted_bytes: u64,
    /// Bytes that reads found in it.
    pub read_hit_bytes: u64,
    /// Bytes that reads did not find there.
    pub read_miss_bytes: u64,
    /// Bytes that writes put into it.
    pub written_bytes: u64,
    /// The part of it that overwrote data which the members did not have yet, and so cost them nothing.
    pub merged_bytes: u64,
    /// Data of hosts that went from it to the members, parity and copies not counted.
    pub destaged_bytes: u64,
    /// In this many parts: stripes, or stretches of a set without parity.
    pub destaged_units: u64,
    /// How long the oldest of a part had waited when the part was on the members: the mean.
    pub waited_mean_ms: u64,
    /// The longest.
    pub waited_max_ms: u64,
}

/// The present and past choices of an array's adaptive policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdaptiveModel {
    /// The choice in force.
    pub now: TuningModel,
    /// Stretches of time that it has looked at.
    pub windows: u64,
    /// Changes that it has made.
    pub switches: u64,
    /// The last of them, oldest first.
    pub last: Vec<SwitchModel>,
}

/// A choice of the adaptive policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TuningModel {
    /// As the setting.
    pub read_ahead: String,
    /// As the setting.
    pub mirror_read: String,
    /// How long dirty data waits at most.
    pub destage_millis: u64,
}

/// A change by the adaptive policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SwitchModel {
    /// How many seconds ago.
    pub ago_seconds: u64,
    /// The choice before.
    pub from: TuningModel,
    /// The choice since then.
    pub to: TuningModel,
    /// The figures that it was taken from.
    pub why: String,
}

/// How often a decision was taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReasonModel {
    /// Its name.
    pub reason: String,
    /// In words.
    pub text: String,
    /// How often.
    pub count: u64,
}

/// Requests of hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostModel {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Others.
    pub others: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A part of an array in the last seconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PartModel {
    /// `member`, `journal` or `processor`.
    pub part: String,
    /// The member or the device.
    pub name: Option<String>,
    /// Its slot.
    pub slot: Option<u16>,
    /// Share of the time in which it had anything to do.
    pub busy_percent: u64,
    /// Commands that it had on average, in tenths.
    pub depth_tenths: u64,
    /// Commands that it was given.
    pub commands: u64,
    /// Mean time of one.
    pub service_ns: u64,
    /// Mean time that one waited in the controller.
    pub queued_ns: u64,
}

/// What limits an array now.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LimitModel {
    /// `member`, `journal`, `memory`, `cache`, `processor`, `locks`, `clients`, `nothing` or `unknown`.
    pub part: String,
    /// In a sentence.
    pub text: String,
    /// What moves it.
    pub knob: String,
    /// How long was looked at.
    pub window_ms: u64,
    /// Requests of hosts in that time.
    pub requests: u64,
    /// Bytes, both ways.
    pub bytes: u64,
    /// Requests inside on average, in tenths.
    pub depth_tenths: u64,
    /// Mean time of a request.
    pub mean_ns: u64,
    /// Times that something waited for memory.
    pub waits_for_memory: u64,
    /// Times that a write waited for room in the cache.
    pub waits_for_cache: u64,
    /// Times that something waited for the journal.
    pub waits_for_journal: u64,
    /// Times that a request waited for another one on the same rows.
    pub waits_for_others: u64,
    /// Its parts.
    pub parts: Vec<PartModel>,
}

/// A write-intent bitmap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BitmapModel {
    /// Regions that may differ.
    pub marked: u64,
    /// Regions in all.
    pub regions: u64,
    /// The bytes that a region covers.
    #[serde(default)]
    pub chunk_bytes: u64,
    /// Pages of counters that md would have in memory for it, and those of them with a marked region.
    #[serde(default)]
    pub pages: u64,
    /// See `pages`.
    #[serde(default)]
    pub pages_marked: u64,
}

/// The journal's part for an array: it promises the array's writes, or still holds some.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProtectionModel {
    /// Are its writes promised by the journal now?
    pub protected: bool,
    /// Why not.
    pub reason: Option<String>,
    /// How far the journal's part is, in a word: `off`, `settling`, `entering`, `marking`, `on`, `leaving`,
    /// `unmarking`.
    pub session: String,
}

/// A device of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalDeviceModel {
    /// Its name.
    pub device: String,
    /// Does it work?
    pub works: bool,
}

/// The data that the journal has of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalArrayModel {
    /// Identity of its set.
    pub uuid: String,
    /// Its name, where that is known.
    pub name: Option<String>,
    /// `live`, `preserved` or `discarded`.
    pub state: String,
    /// Entries that wait for the array to be started.
    pub waiting_entries: u64,
    /// Host data in the log that count for it; known of a journal that is not in use.
    pub data_bytes: Option<u64>,
}

/// Counters of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct JournalCountersModel {
    /// Entries written.
    pub entries: u64,
    /// Bytes written to each device.
    pub written_bytes: u64,
    /// Host data among them.
    pub data_bytes: u64,
    /// Redo records.
    pub redo_records: u64,
    /// Bytes written for them.
    pub redo_bytes: u64,
    /// Times that its tail moved.
    pub rounds: u64,
    /// Bytes that were loaded as dirty when arrays were started.
    pub replayed_bytes: u64,
    /// Writes to members that were done again when arrays were started.
    pub replayed_redos: u64,
}

/// A device of the journal that is being brought up to date.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalJoinModel {
    /// Its name.
    pub device: String,
    /// Bytes of the log that it has, out of the bytes that were there when it began.
    pub copied_bytes: u64,
    /// See `copied_bytes`.
    pub total_bytes: u64,
}

/// A journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalModel {
    /// `opening`, `live`, `closing`, `lost`, `full`. Devices that were named are `unused` if no server uses them, and
    /// `in-use` if another server does.
    pub state: String,
    /// Why it, or its other device, is not back, where that is lost.
    pub trouble: Option<String>,
    /// The damage of its log, because of which it cannot be used: the other figures are about the log before the damage.
    #[serde(default)]
    pub damage: Option<String>,
    /// Its identity; none if it is lost and was not found again.
    pub uuid: Option<String>,
    /// The controller that it belongs to, where that was read.
    pub controller: Option<String>,
    /// Its devices.
    pub devices: Vec<JournalDeviceModel>,
    /// It is on two devices and only one of them was named: the other one may hold more.
    #[serde(default)]
    pub other_missing: bool,
    /// The one of them that is being brought up to date.
    pub joining: Option<JournalJoinModel>,
    /// Length of the ring.
    pub ring_bytes: u64,
    /// The part of it that entries take.
    pub used_bytes: u64,
    /// Entries from the tail to the head.
    pub entries: u64,
    /// Bytes before the ring that keep what only absent arrays need, and how many may be kept there.
    pub kept_bytes: u64,
    /// See `kept_bytes`.
    pub kept_bytes_max: u64,
    /// Its arrays.
    pub arrays: Vec<JournalArrayModel>,
    /// Its work since it was opened; none if it is not in use.
    pub counters: Option<JournalCountersModel>,
}

/// A range of an array's data that may be lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LostRangeModel {
    /// Identity of the set: of the array, or of a span of it.
    pub set: String,
    /// Its first byte, in the data of the set.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u64,
}

/// The data that a journal holds for an array, which are lost with the journal.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct LossModel {
    /// It was given up; otherwise only said what it is.
    pub given_up: bool,
    /// Entries that speak of the array, where that is known.
    pub entries: Option<u64>,
    /// Host data in them.
    pub data_sectors: Option<u64>,
    /// The same in bytes.
    pub data_bytes: Option<u64>,
    /// Writes to members that were under way.
    pub member_writes: Option<u64>,
    /// The ranges that hosts wrote and that are lost, if that is known: ranges that touch are one. If the array lacks a
    /// member, other data in the same stripes is lost as well.
    #[serde(default)]
    pub ranges: Vec<LostRangeModel>,
    /// Number of further ones that are not named.
    #[serde(default)]
    pub more_ranges: u64,
    /// The damage of the log: more may have followed it, which cannot be counted.
    #[serde(default)]
    pub damage: Option<String>,
    /// All of it in words.
    pub text: String,
}

/// An array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ArrayModel {
    /// Its name.
    pub name: String,
    /// Its identity; none for a raw drive.
    pub uuid: Option<String>,
    /// Its level in a word: `raid5`, `raid60`, `single`, `jbod`.
    pub level: String,
    /// Its layout in mdadm's word, if it has one.
    pub layout: Option<String>,
    /// Its chunk, if it has one.
    pub chunk_bytes: Option<u64>,
    /// Size.
    pub size_bytes: u64,
    /// Its logical block.
    #[serde(default)]
    pub block_bytes: u64,
    /// The logical block that its superblocks name, as Linux from 6.19 on does; of a nested array, the outer ones.
    #[serde(default)]
    pub superblock_block_bytes: Option<u64>,
    /// Metadata version; none for a raw drive.
    pub metadata: Option<String>,
    /// Slots; of a nested array those of all spans.
    pub slots: u32,
    /// Health.
    pub health: HealthWord,
    /// Members that can be lost now, whichever they are: none while parity or copies are not in sync.
    pub survives: u32,
    /// The same when the sync or rebuild that runs, or is due, has passed.
    #[serde(default)]
    pub survives_later: u32,
    /// Is the active mark on disk?
    pub active: bool,
    /// Copies or parity agree below this; none when they agree everywhere.
    pub consistent_to_bytes: Option<u64>,
    /// The bitmap, if it has one.
    pub bitmap: Option<BitmapModel>,
    /// How it becomes consistent again after a crash: `resync`, `bitmap`, `ppl`, `controller-journal`; none without
    /// redundancy and journal.
    #[serde(default)]
    pub consistency_policy: Option<String>,
    /// The journal's part for it, if its policy is to use one.
    #[serde(default)]
    pub journal: Option<ProtectionModel>,
    /// md's event count.
    pub events: u64,
    /// Sectors of 512 bytes that did not match in the last check or repair, if it came to its end.
    pub last_check_mismatches: Option<u64>,
    /// How the last check or repair ended, if that is known and none runs; of a nested array, ask its spans.
    #[serde(default)]
    pub last_check: Option<CheckModel>,
    /// The last check or repair before that one that came to its end and compared, if that one did not.
    #[serde(default)]
    pub last_complete_check: Option<CheckModel>,
    /// Task in the background.
    pub task: Option<TaskModel>,
    /// Is it being stopped?
    pub stopping: bool,
    /// Started by force: what may be lost.
    pub forced: Option<String>,
    /// Alarms that hold now, the most important first. A span has none: its alarms are in the whole array's list.
    #[serde(default)]
    pub alarms: Vec<AlarmModel>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Addresses at which clients find them.
    pub addresses: Vec<String>,
    /// The access of hosts: `read-write`, `read-only` or `blocked`.
    #[serde(default)]
    pub access: String,
    /// The profile in force; a span, a raw drive, and an array that is not served have none.
    #[serde(default)]
    pub profile: Option<ProfileModel>,
    /// Members by slot, then spares and the failed; none of a nested array.
    pub members: Vec<MemberModel>,
    /// Spans of a nested array.
    #[serde(alias = "legs")]
    #[schema(no_recursion)]
    pub spans: Vec<ArrayModel>,
    /// Settings by their names, with `_` in place of `.` and `-`; rates in bytes a second, sizes in bytes.
    #[schema(value_type = Object)]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The choices of the adaptive policy, while it is on.
    pub adaptive: Option<AdaptiveModel>,
    /// Requests of hosts.
    pub host: HostModel,
    /// The cache's effect for it, if the server has one.
    #[serde(default)]
    pub cache: Option<CacheModel>,
    /// Decisions counted.
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

    /// The tasks of all its sets.
    pub fn tasks(&self) -> impl Iterator<Item = (&ArrayModel, &TaskModel)> {
        self.sets().into_iter().filter_map(|set| Some((set, set.task.as_ref()?)))
    }

    /// Mismatches that are still there in this set, as far as is known. A check that could not compare says nothing of them.
    pub fn mismatches_left(&self) -> u64 {
        let is_refused = |check: &&CheckModel| matches!(check.outcome, OutcomeModel::NotComparable { .. });
        let last = self.last_check.as_ref();
        let told = if last.as_ref().is_some_and(is_refused) { self.last_complete_check.as_ref() } else { last };
        told.map_or(0, CheckModel::left)
    }

    /// The exit code that its state stands for: mismatches that are left come before a member that is missing.
    pub fn exit(&self) -> Exit {
        let left = |set: &ArrayModel| set.mismatches_left() > 0;
        match self.health {
            HealthWord::Failed => Exit::Failed,
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
    /// It goes on when the last array is stopped.
    #[serde(default)]
    pub stays: bool,
    /// Alarms of the server itself, without those of its arrays.
    #[serde(default)]
    pub alarms: Vec<AlarmModel>,
}
