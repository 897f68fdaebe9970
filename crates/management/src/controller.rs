//! The calls that this crate needs of a server.

use std::sync::Arc;

use openraid_status::alarm::AlarmModel;
use openraid_status::care::{PatrolModel, SetHistoryModel};
use openraid_status::schedules::ScheduleModel;
use openraid_status::sinks::{SinkModel, TestModel};
use openraid_status::DriveClass;
pub use openraid_status::EventModel;
use openraid_status::{ArrayModel, Command, Exit, JournalModel, LimitModel, ReshapePlanModel, ServerModel};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api_values::{KeptInput, KeptModel};
use crate::lab::{ChoicesModel, JobInput, JobModel, LabModel, PredictionInput, PredictionModel};
use crate::stripe_map::PlaceModel;

/// Why a server did not carry out a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The exit code that the command line would have.
    pub exit: Exit,
    pub text: String,
    /// The change is in force, and could not be kept: no refusal for a client.
    pub in_force: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandResult {
    pub text: String,
    /// The array after the command, if it still exists.
    pub array: Option<Box<ArrayModel>>,
}

/// An array that is to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Creation {
    /// Name of the array.
    pub name: String,
    /// Level of the array, as in `openraid create --level`.
    pub level: String,
    /// Absolute paths or addresses of its members, in the order of the slots.
    pub members: Vec<String>,
    /// Absolute paths or addresses of its spares.
    #[serde(default)]
    pub spares: Vec<String>,
    /// Size of a chunk, as in `64K`; without it, the default of the level.
    #[serde(default)]
    pub chunk: Option<String>,
    /// Number of spans of a nested array.
    #[serde(default)]
    pub spans: Option<u16>,
    /// Use members even if they hold something, which is lost.
    #[serde(default)]
    pub overwrite: bool,
}

/// A schedule that is to be kept: the words of a table `[schedules.NAME]` of the configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleInput {
    /// Name of the schedule.
    pub name: String,
    /// Task that it begins: `check` (members are compared) or `patrol` (drives are read).
    pub task: String,
    /// Names of the arrays that it is for; empty: all arrays.
    #[serde(default)]
    pub arrays: Vec<String>,
    /// Time from one run to the next, as in `12h`, `30d`, `4w`.
    pub every: String,
    /// Time of day in which the task may run, as `HH:MM-HH:MM` in UTC; without it, at any time.
    #[serde(default)]
    pub window: Option<String>,
    /// Rate of a patrol: bytes of each drive a second, as in `20M`.
    #[serde(default)]
    pub rate: Option<String>,
    /// Does a patrol read SSDs too? Without it, a patrol leaves them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssd: Option<bool>,
}

/// The plan of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanModel {
    /// Size of the array for hosts.
    pub size_bytes: u64,
    /// Number of members that can be lost, whichever they are, after the initial sync.
    pub survives: u32,
    /// Name of the level, such as `raid5`.
    pub level: String,
    /// Size of a chunk; null if the level has no chunks.
    pub chunk_bytes: Option<u64>,
    /// The command line that makes the same array.
    pub command: String,
    /// What the members hold now, a sentence each; it would be lost.
    pub holds: Vec<String>,
    /// The class of all members, `rotating` or `ssd`; none if it is unknown for one of them, or if they differ.
    #[schema(value_type = Option<String>)]
    pub class: Option<DriveClass>,
    /// Values of settings that suit this class and level better than the defaults.
    pub offers: Vec<OfferModel>,
}

/// A value of a setting for a class of drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OfferModel {
    /// The class: `rotating` or `ssd`.
    #[schema(value_type = String)]
    pub class: DriveClass,
    /// The setting.
    pub setting: String,
    /// The value that suits the class better.
    pub value: String,
    /// Levels for which it is meant; empty: all.
    pub levels: Vec<String>,
    /// The reason.
    pub why: String,
}

/// A setting that an array has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SettingModel {
    /// Name of the setting, as in `openraid set`.
    pub name: String,
    /// Kind of its values: `words`, `switch`, `number`, `size` (in bytes) or `rate` (in bytes a second).
    pub kind: String,
    /// Value in a new array.
    pub default: String,
    /// The valid words, if its values are words.
    pub words: Vec<String>,
    /// The valid values, in words.
    pub values: String,
    /// What the setting needs to have an effect; empty if it needs nothing.
    pub needs: String,
    /// The meaning of the setting, in words.
    pub help: String,
}

/// A server, as this crate sees it. Every call may block for a short time.
pub trait Controller: Send + Sync + 'static {
    /// The server itself.
    ///
    /// # Errors
    /// It is ending.
    fn server(&self) -> Result<ServerModel, Refusal>;
    /// All arrays.
    ///
    /// # Errors
    /// The server is ending.
    fn arrays(&self) -> Result<Vec<ArrayModel>, Refusal>;
    /// The members of all recorded arrays, also of arrays that are not served.
    fn recorded_members(&self) -> Vec<String>;
    /// The journal, if there is one.
    ///
    /// # Errors
    /// The server is ending.
    fn journal(&self) -> Result<Option<Box<JournalModel>>, Refusal>;
    /// The limit of an array now.
    ///
    /// # Errors
    /// It is not served.
    fn limit(&self, array: &str) -> Result<LimitModel, Refusal>;
    /// The number of clients that are connected to an array.
    ///
    /// # Errors
    /// It is not served.
    fn clients(&self, array: &str) -> Result<u64, Refusal>;
    /// The members that hold a byte of an array.
    ///
    /// # Errors
    /// The array is not served, or has no such byte.
    fn place(&self, array: &str, offset: u64) -> Result<PlaceModel, Refusal>;
    /// The decisions of an array and their reasons, as in `openraid explain --json`.
    ///
    /// # Errors
    /// It is not served.
    fn explain(&self, array: &str) -> Result<serde_json::Value, Refusal>;
    /// Stories of the slowest requests of an array, this many, as `openraid explain --json --slowest` shows them. Requests are
    /// recorded while it is asked for.
    ///
    /// # Errors
    /// It is not served.
    fn slowest(&self, array: &str, count: u64) -> Result<serde_json::Value, Refusal>;
    /// The story of one request.
    ///
    /// # Errors
    /// It is not served; nothing is known of the request.
    fn story(&self, array: &str, request: u64) -> Result<serde_json::Value, Refusal>;
    /// Jobs and reports of the laboratory.
    ///
    /// # Errors
    /// The folder of reports cannot be read.
    fn lab(&self) -> Result<LabModel, Refusal>;
    /// Systems, drives and patterns of the simulator.
    ///
    /// # Errors
    /// The laboratory is not installed.
    fn choices(&self) -> Result<ChoicesModel, Refusal>;
    /// Begin a job in a process of its own.
    ///
    /// # Errors
    /// It makes no sense; another one runs; its report exists already.
    fn begin_job(&self, input: &JobInput, user: &str) -> Result<JobModel, Refusal>;
    /// End a job; `None` if no such job runs.
    fn cancel_job(&self, number: u64) -> Option<JobModel>;
    /// A file of a report; `None` if there is no such report, or it has no such file.
    ///
    /// # Errors
    /// It cannot be read.
    fn report(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, Refusal>;
    /// Remove a report. Was there one?
    ///
    /// # Errors
    /// A job writes it; it cannot be removed.
    fn remove_report(&self, name: &str) -> Result<bool, Refusal>;
    /// Predicted figures of arrays of these drives. Returns at once; a separate process computes missing figures.
    ///
    /// # Errors
    /// The drives cannot be opened; there is no such profile or load.
    fn predict(&self, input: &PredictionInput) -> Result<PredictionModel, Refusal>;
    /// The desired state in force, as `openraid config show --json` shows it.
    ///
    /// # Errors
    /// The registry cannot be read.
    fn settings(&self) -> Result<serde_json::Value, Refusal>;
    /// Values of settings for classes of drives.
    fn offers(&self) -> Vec<OfferModel>;
    /// Every setting that an array has.
    fn known_settings(&self) -> Vec<SettingModel>;
    /// Plan an array. Nothing is written.
    ///
    /// # Errors
    /// It cannot be made.
    fn plan(&self, creation: &Creation) -> Result<PlanModel, Refusal>;
    /// Make an array and serve it.
    ///
    /// # Errors
    /// It cannot be made; or a member holds something.
    fn create(&self, creation: &Creation) -> Result<CommandResult, Refusal>;
    /// Stop an array and forget it; its members keep their data. `yes`: also if that loses data that lives only while the server runs.
    ///
    /// # Errors
    /// The server's refusal; or the registry cannot be written.
    fn retire(&self, array: &str, yes: bool) -> Result<CommandResult, Refusal>;
    /// What a change of shape would do; nothing is written. The command is a `Reshape` that asks for a plan.
    ///
    /// # Errors
    /// The change cannot begin.
    fn plan_reshape(&self, command: Command) -> Result<ReshapePlanModel, Refusal>;
    /// Carry a command out.
    ///
    /// # Errors
    /// The server's refusal.
    fn change(&self, command: Command) -> Result<CommandResult, Refusal>;
    /// All alarms of the server and its arrays, ended ones included.
    ///
    /// # Errors
    /// The server is ending.
    fn alarms(&self) -> Result<Vec<AlarmModel>, Refusal>;
    /// Take note of alarms that hold: the one of this name, those of this array, or `all`; their names.
    ///
    /// # Errors
    /// The server is ending.
    fn acknowledge_alarms(&self, which: &str) -> Result<Vec<String>, Refusal>;
    /// Send a test alarm to a sink, or to all.
    ///
    /// # Errors
    /// There is no such sink, or none at all.
    fn test_alarm(&self, sink: Option<&str>) -> Result<Vec<TestModel>, Refusal>;
    /// The sinks of the configuration file.
    fn sinks(&self) -> Vec<SinkModel>;
    /// The schedules of the configuration file, and kept ones.
    fn schedules(&self) -> Vec<ScheduleModel>;
    /// Keep a schedule; a kept one of this name is replaced.
    ///
    /// # Errors
    /// A value cannot be; the configuration file has one of this name; it cannot be written down.
    fn keep_schedule(&self, input: &ScheduleInput) -> Result<ScheduleModel, Refusal>;
    /// Forget a schedule that was kept; true if there was one.
    ///
    /// # Errors
    /// The configuration file has it; the change cannot be written down.
    fn forget_schedule(&self, name: &str) -> Result<bool, Refusal>;
    /// The values that are kept apart from the configuration file.
    fn kept(&self) -> KeptModel;
    /// Change kept values, and apply them. Returns the changes in force, the changes for the next start, and the failures, a sentence on
    /// each line.
    ///
    /// # Errors
    /// A value cannot be; the configuration file has it; there is no configuration file; it cannot be written down.
    fn keep(&self, input: &KeptInput) -> Result<String, Refusal>;
    /// The last checks and repairs of an array, and its patrol reads.
    ///
    /// # Errors
    /// It is not served.
    fn checks(&self, array: &str) -> Result<(Vec<SetHistoryModel>, Vec<PatrolModel>), Refusal>;
    /// Send a document to another server, which has subscribed to it. Maximum time: 20 seconds.
    ///
    /// # Errors
    /// Why that server did not take it.
    fn push(&self, url: &str, document: &serde_json::Value) -> Result<(), String>;
    /// All events of the log, oldest first.
    ///
    /// # Errors
    /// It cannot be read.
    fn events(&self) -> Result<Arc<Vec<EventModel>>, Refusal>;
    /// Acknowledge events.
    ///
    /// # Errors
    /// The log cannot be written.
    fn acknowledge(&self, from: u64, to: u64) -> Result<(), Refusal>;
    /// Write to the event log that a user has changed something, or was refused.
    fn audit(&self, array: Option<&str>, text: String);
}
