//! The output of the desired state: each value with its source.

use std::path::PathBuf;

use openraid_config::{
    ArrayId, DesiredArray, DesiredCare, DesiredManagement, DesiredSchedule, DesiredSink, DesiredState, FileValue,
    ScheduleTask, SinkKind, SpareFor,
};
use openraid_status::schedules::ScheduleModel;
use openraid_status::sinks::SinkModel;
use openraid_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::kept_settings::{ACCESS, PROFILE};
use crate::output::table::TextTable;
use crate::quantity::{counted, human};
use crate::registry::RegisteredArray;

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceWord {
    /// The configuration file.
    File,
    /// `openraid set`, which is kept.
    Set,
    /// An option of `serve`, which has priority over the file.
    CommandLine,
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ValueModel {
    /// Name of the setting or of the server's option.
    pub key: String,
    /// The value, as it is written in the configuration file.
    pub value: String,
    /// The source that gave the value.
    pub from: SourceWord,
    /// The line of the configuration file, if the file gave the value.
    pub line: Option<u32>,
}

/// The desired state of an array. A setting that is not listed has its default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ArrayConfigModel {
    /// Its name; the UUID if the file names the array by its UUID only.
    pub name: String,
    /// The array's UUID, if it is known.
    pub uuid: Option<String>,
    /// Is the array in the registry?
    pub remembered: bool,
    /// Paths and addresses of its members.
    pub members: Vec<String>,
    /// Names under which clients reach the array; empty: only the array's own name.
    pub exports: Vec<String>,
    /// Access mode and settings of the array that are not at their defaults.
    pub values: Vec<ValueModel>,
}

/// A spare.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SpareConfigModel {
    /// Path or address of the drive.
    pub member: String,
    /// Name of the array that the spare is for; null: for all arrays.
    pub array: Option<String>,
    /// Number of the span of a nested array, from 0, if the spare is for one span.
    pub span: Option<u32>,
    /// The line of the configuration file.
    pub line: u32,
}

/// A sink for output.
pub fn sink(sink: &DesiredSink) -> SinkModel {
    let target = match &sink.kind {
        SinkKind::Exec { program } => program.display().to_string(),
        SinkKind::Webhook { url, .. } => url.clone(),
        SinkKind::Mail { to, .. } => to.join(", "),
        SinkKind::Journald { socket } => socket.display().to_string(),
    };
    let (kind, level) = (sink.kind.word(), sink.level);
    SinkModel { name: sink.name.clone(), kind, level, target, line: sink.line, error: None }
}

/// A schedule for output.
pub fn schedule(schedule: &DesiredSchedule) -> ScheduleModel {
    let time = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
    let (rate, ssd) = match schedule.task {
        ScheduleTask::Check => (None, None),
        ScheduleTask::Patrol { rate, ssd } => (Some(rate.get()), Some(ssd)),
    };
    ScheduleModel {
        name: schedule.name.clone(),
        task: schedule.task.word(),
        rate,
        ssd,
        arrays: schedule.arrays.clone(),
        every_seconds: schedule.every_seconds,
        window: schedule.window.map(|(from, to)| format!("{}-{}", time(from), time(to))),
        line: schedule.line,
    }
}

/// The desired state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConfigModel {
    /// Path of the configuration file, if there is one.
    pub path: Option<String>,
    /// Options of the server.
    pub server: Vec<ValueModel>,
    /// The arrays, in the order of their names.
    pub arrays: Vec<ArrayConfigModel>,
    /// Spares that the configuration file names.
    pub spares: Vec<SpareConfigModel>,
    /// Sinks to which alarms are sent.
    #[serde(default)]
    pub sinks: Vec<SinkModel>,
    /// Schedules of checks and patrol reads.
    #[serde(default)]
    pub schedules: Vec<ScheduleModel>,
    /// Values that are valid, but look like mistakes; a sentence each.
    pub notes: Vec<String>,
}

/// The result of `openraid reload`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReloadModel {
    /// Path of the configuration file.
    pub path: String,
    /// Changes that are in force now, a sentence each.
    pub applied: Vec<String>,
    /// Changes that take effect at the next start of the server.
    pub restart: Vec<String>,
    /// Changes that failed, and values that may be mistakes.
    pub notes: Vec<String>,
}

/// The place of a value. A kept value has no line.
fn place(line: u32) -> String {
    if line == 0 {
        "kept by the server".into()
    } else {
        format!("line {line}")
    }
}

fn of_file(key: &str, value: String, line: u32) -> ValueModel {
    let (from, line) = if line == 0 { (SourceWord::Set, None) } else { (SourceWord::File, Some(line)) };
    ValueModel { key: key.into(), value, from, line }
}

/// The file's values for the HTTP interfaces.
fn management_values(management: &DesiredManagement) -> Vec<ValueModel> {
    let path = |key: &str, given: &Option<FileValue<PathBuf>>| {
        given.as_ref().map(|placed| of_file(key, placed.value.display().to_string(), placed.line))
    };
    let list = |key: &str, given: &Option<FileValue<Vec<String>>>| {
        given.as_ref().map(|placed| of_file(key, placed.value.join(", "), placed.line))
    };
    let all = [
        management.listen.as_ref().map(|listen| of_file("management.listen", listen.value.clone(), listen.line)),
        path("management.certificate", &management.certificate),
        path("management.key", &management.key),
        path("management.client-ca", &management.client_ca),
        list("management.names", &management.names),
        management
            .metrics_md
            .as_ref()
            .map(|metrics_md| of_file("management.metrics-md", metrics_md.value.to_string(), metrics_md.line)),
        list("management.drives", &management.drives),
    ];
    all.into_iter().flatten().collect()
}

/// The file's values for the server.
pub fn server_values(desired: &DesiredState) -> Vec<ValueModel> {
    let (server, value) = (&desired.server, of_file);
    let path = |key: &str, given: &Option<FileValue<PathBuf>>| {
        given.as_ref().map(|placed| of_file(key, placed.value.display().to_string(), placed.line))
    };
    let paths = |all: &[PathBuf]| -> String {
        all.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let all = [
        server.nbd.as_ref().map(|nbd| value("nbd", nbd.value.join(", "), nbd.line)),
        server.nbd_unix.as_ref().map(|nbd_unix| value("nbd-unix", paths(&nbd_unix.value), nbd_unix.line)),
        server.nbd_tls.as_ref().map(|nbd_tls| value("nbd-tls", nbd_tls.value.join(", "), nbd_tls.line)),
        path("nbd-tls-certificate", &server.nbd_tls_certificate),
        path("nbd-tls-key", &server.nbd_tls_key),
        path("nbd-tls-client-ca", &server.nbd_tls_client_ca),
        server.nvme.as_ref().map(|nvme| value("nvme", nvme.value.join(", "), nvme.line)),
        server.vhost.as_ref().map(|vhost| value("vhost", vhost.value.join(", "), vhost.line)),
        server.memory.as_ref().map(|memory| value("memory", human(memory.value), memory.line)),
        server.cache.as_ref().map(|cache| value("cache", human(cache.value), cache.line)),
        server
            .drive_depth
            .as_ref()
            .map(|drive_depth| value("drive-depth", drive_depth.value.to_string(), drive_depth.line)),
        server.queue_age.as_ref().map(|queue_age| value("queue-age", queue_age.value.to_string(), queue_age.line)),
        server.journal.as_ref().map(|journal| value("journal", journal.value.join(", "), journal.line)),
        server.after_power_cut.as_ref().map(|cut| value("after-power-cut", cut.value.word().into(), cut.line)),
    ];
    let all = all.into_iter().flatten().chain(management_values(&desired.management));
    all.chain(care_values(&desired.care)).collect()
}

/// The file's values for the care of drives; values that are the defaults are left out.
fn care_values(care: &DesiredCare) -> Vec<ValueModel> {
    let first = DesiredCare::default();
    let value = |key: &str, value: String| ValueModel { key: key.into(), value, from: SourceWord::File, line: None };
    let time = |key: &str, seconds: Option<u64>, first: Option<u64>| {
        (seconds != first).then(|| value(key, seconds.map_or_else(|| "never".into(), interval)))
    };
    let path = |key: &str, given: &Option<FileValue<PathBuf>>| {
        given
            .as_ref()
            .map(|placed| ValueModel { line: Some(placed.line), ..value(key, placed.value.display().to_string()) })
    };
    let all = [
        time("care.idle-probe", care.idle_probe, first.idle_probe),
        time("care.smart", care.smart, first.smart),
        time("care.slow-window", care.slow_window, first.slow_window),
        path("care.smartctl", &care.smartctl),
        path("care.led", &care.led),
    ];
    all.into_iter().flatten().collect()
}

/// Seconds, as the file has them.
fn interval(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    let whole = units.into_iter().find(|(one, _)| seconds.is_multiple_of(*one));
    whole.map_or_else(|| format!("{seconds}s"), |(one, unit)| format!("{}{unit}", seconds / one))
}

/// The desired state of arrays, from a file and from the registry.
pub fn config(
    path: Option<String>,
    server: Vec<ValueModel>,
    desired: &DesiredState,
    entries: &[RegisteredArray],
) -> ConfigModel {
    let is_of = |desired: &DesiredArray, entry: &RegisteredArray| match &desired.id {
        ArrayId::Uuid(uuid) => entry.uuid.as_deref() == Some(uuid.to_string().as_str()),
        ArrayId::Name(name) => entry.name == *name,
    };
    let mut arrays: Vec<ArrayConfigModel> = entries
        .iter()
        .map(|entry| {
            let mut found: Vec<&DesiredArray> = desired.arrays.iter().filter(|desired| is_of(desired, entry)).collect();
            found.sort_by_key(|desired| matches!(desired.id, ArrayId::Name(_)));
            array(Some(entry), found.first().copied())
        })
        .collect();
    let strangers = desired.arrays.iter().filter(|desired| !entries.iter().any(|entry| is_of(desired, entry)));
    arrays.extend(strangers.map(|desired| array(None, Some(desired))));
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    let spares = desired.spares.iter().map(|spare| {
        let (array, span) = match &spare.whom {
            SpareFor::All => (None, None),
            SpareFor::Array { name, span } => (Some(name.clone()), *span),
        };
        SpareConfigModel { member: spare.member.clone(), array, span, line: spare.line }
    });
    let notes = desired.notes.iter().map(ToString::to_string).collect();
    let sinks = desired.sinks.iter().map(sink).collect();
    let schedules = desired.schedules.iter().map(schedule).collect();
    ConfigModel { path, server, arrays, spares: spares.collect(), sinks, schedules, notes }
}

/// The arrays of a file as the registry knows them: their names, and whether they are remembered. Values of the registry are left
/// out.
pub fn know(config: &mut ConfigModel, entries: &[RegisteredArray]) {
    for array in &mut config.arrays {
        let is_it =
            |entry: &&RegisteredArray| entry.name == array.name || array.uuid.is_some() && entry.uuid == array.uuid;
        if let Some(entry) = entries.iter().find(is_it) {
            array.remembered = true;
            array.name.clone_from(&entry.name);
            array.uuid.clone_from(&entry.uuid);
        }
    }
}

fn array(entry: Option<&RegisteredArray>, desired: Option<&DesiredArray>) -> ArrayConfigModel {
    let of_file = desired.map_or(&[][..], |desired| &desired.settings[..]);
    let file = |key: &str, value: &str, line: u32| ValueModel {
        key: key.into(),
        value: value.into(),
        from: SourceWord::File,
        line: Some(line),
    };
    let mut values: Vec<ValueModel> = Vec::new();
    let access = desired.and_then(|desired| desired.access.as_ref());
    values.extend(access.map(|access| file(ACCESS, access.value.word(), access.line)));
    values.extend(of_file.iter().map(|setting| file(&setting.key, &setting.value, setting.line)));
    let named: Vec<String> = values.iter().map(|value| value.key.clone()).collect();
    let kept = entry.map(|entry| &entry.kept);
    let profile = kept.and_then(|kept| kept.profile.as_ref()).map(|profile| (PROFILE.to_owned(), profile.clone()));
    let kept = kept.into_iter().flat_map(|kept| kept.settings.clone()).chain(profile);
    let kept = kept.filter(|(key, _)| !named.contains(key));
    values.extend(kept.map(|(key, value)| ValueModel { key, value, from: SourceWord::Set, line: None }));
    let name = match (entry, desired.map(|desired| &desired.id)) {
        (Some(entry), _) => entry.name.clone(),
        (None, Some(id)) => id.to_string(),
        (None, None) => String::new(),
    };
    let own_uuid = desired.and_then(|desired| match &desired.id {
        ArrayId::Uuid(uuid) => Some(uuid.to_string()),
        ArrayId::Name(_) => None,
    });
    let members = desired.map(|desired| desired.members.clone()).filter(|members| !members.is_empty());
    ArrayConfigModel {
        name,
        uuid: entry.and_then(|entry| entry.uuid.clone()).or(own_uuid),
        remembered: entry.is_some(),
        members: members.or_else(|| entry.map(|entry| entry.members.clone())).unwrap_or_default(),
        exports: desired.map(|desired| desired.exports.clone()).unwrap_or_default(),
        values,
    }
}

impl ConfigModel {
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let rows = |values: &[ValueModel]| {
            let mut table = TextTable::plain().indented(2);
            values.iter().for_each(|value| table.row([value.key.clone(), value.value.clone(), source(value)]));
            table.text().trim_end().to_owned()
        };
        if !self.server.is_empty() {
            lines.push("server".into());
            lines.push(rows(&self.server));
        }
        for array in &self.arrays {
            let known = if array.remembered || !array.members.is_empty() { "" } else { " (not known yet)" };
            lines.push(format!("array {}{known}", array.name));
            if !array.members.is_empty() {
                lines.push(format!("  members  {}", array.members.join(", ")));
            }
            if !array.exports.is_empty() {
                lines.push(format!("  exports  {}", array.exports.join(", ")));
            }
            lines.push(if array.values.is_empty() { "  defaults".into() } else { rows(&array.values) });
        }
        for spare in &self.spares {
            let whom = match (&spare.array, spare.span) {
                (None, _) => "all arrays".into(),
                (Some(array), None) => format!("array {array}"),
                (Some(array), Some(span)) => format!("span {span} of array {array}"),
            };
            lines.push(format!("spare {} for {whom} ({})", spare.member, place(spare.line)));
        }
        for sink in &self.sinks {
            let SinkModel { name, kind, level, target, line, .. } = sink;
            lines.push(format!("sink {name}: {kind} {target}, level {} and above ({})", level.word(), place(*line)));
        }
        for schedule in &self.schedules {
            let arrays = if schedule.arrays.is_empty() { "all arrays".into() } else { schedule.arrays.join(", ") };
            let window = schedule.window.as_ref().map_or_else(String::new, |window| format!(", {window} UTC"));
            let every = whole(schedule.every_seconds);
            let rate =
                schedule.rate.map_or_else(String::new, |rate| format!(" at {}/s of each drive", human(Bytes(rate))));
            let ssd = if schedule.ssd == Some(true) { ", SSDs too" } else { "" };
            let ScheduleModel { name, task, .. } = schedule;
            let from = place(schedule.line);
            lines.push(format!("schedule {name}: {task} of {arrays} every {every}{window}{rate}{ssd} ({from})"));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        if lines.is_empty() {
            lines.push("nothing is set: every setting has its default".into());
        }
        lines.join("\n")
    }
}

/// The time between two checks: whole hours, and days if they are whole.
fn whole(seconds: u64) -> String {
    match (seconds / 86_400, seconds % 86_400) {
        (days, 0) => counted(days, "day", "days"),
        _ => counted(seconds / 3600, "hour", "hours"),
    }
}

fn source(value: &ValueModel) -> String {
    match (value.from, value.line) {
        (SourceWord::File, Some(line)) => format!("line {line}"),
        (SourceWord::File, None) => "the file".into(),
        (SourceWord::Set, _) => "openraid set".into(),
        (SourceWord::CommandLine, _) => "option of serve".into(),
    }
}

impl ReloadModel {
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{} is read again", self.path)];
        if self.applied.is_empty() && self.restart.is_empty() && self.notes.is_empty() {
            lines.push("  nothing has changed".into());
        }
        lines.extend(self.applied.iter().map(|line| format!("  {line}")));
        lines.extend(self.restart.iter().map(|line| format!("  takes effect after a restart: {line}")));
        lines.extend(self.notes.iter().map(|line| format!("  note: {line}")));
        lines.join("\n")
    }
}
