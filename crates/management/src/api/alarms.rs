//! Alarms, the sinks that they are sent to, schedules, and the history of checks.

use openraid_status::alarm::{AlarmModel, Severity};
use openraid_status::care::{PatrolModel, SetHistoryModel};
use openraid_status::schedules::ScheduleModel;
use openraid_status::sinks::{SinkModel, TestModel};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::named;
use super::users::noted;
use crate::controller::{Refusal, ScheduleInput};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

/// Alarms.
#[derive(Serialize, ToSchema)]
pub struct AlarmsModel {
    /// The alarms: open ones first, then ended ones; within each group the most severe first, then the newest.
    pub alarms: Vec<AlarmModel>,
}

/// Alarms to acknowledge.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeAlarms {
    /// The name of an alarm, the name of an array, or `all`.
    which: String,
}

/// Alarms that this command acknowledged.
#[derive(Serialize, ToSchema)]
pub struct AcknowledgedModel {
    /// Names of the alarms that were acknowledged.
    pub acknowledged: Vec<String>,
}

/// A test of sinks.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestInput {
    /// Name of the sink to test; without it, all sinks are tested.
    #[serde(default)]
    sink: Option<String>,
}

/// The result of a test.
#[derive(Serialize, ToSchema)]
pub struct TestsModel {
    /// The sinks that were tested, and whether each accepted the test alarm.
    pub sinks: Vec<TestModel>,
}

/// Sinks.
#[derive(Serialize, ToSchema)]
pub struct SinksModel {
    /// The sinks of the configuration file.
    pub sinks: Vec<SinkModel>,
}

/// Schedules.
#[derive(Serialize, ToSchema)]
pub struct SchedulesModel {
    /// The schedules of the configuration file, and the ones that were added by the API.
    pub schedules: Vec<ScheduleModel>,
}

/// The history of checks of an array.
#[derive(Serialize, ToSchema)]
pub struct ChecksModel {
    /// Checks of the set; of each span for a nested array.
    pub sets: Vec<SetHistoryModel>,
    /// Patrol reads of the array's drives, the newest last.
    pub patrols: Vec<PatrolModel>,
}

/// The requested alarms.
pub fn list(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let least = request.asked("level").map_or(Ok(Severity::Info), |word| {
        let words = Severity::ALL.map(Severity::word).join(", ");
        Severity::named(word).ok_or_else(|| Problem::bad(format!("level={word}: use {words}")))
    })?;
    let ended = match request.asked("ended") {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => return Err(Problem::bad(format!("ended={other}: use true or false"))),
    };
    let mut alarms = request.state.controller.alarms()?;
    alarms.retain(|alarm| {
        (ended || alarm.until_seconds.is_none())
            && alarm.what.level >= least
            && request.asked("array").is_none_or(|array| alarm.what.array.as_deref() == Some(array))
    });
    let order =
        |alarm: &AlarmModel| (!alarm.is_open(), alarm.until_seconds.is_some(), std::cmp::Reverse(alarm.what.level));
    alarms.sort_by(|a, b| order(a).cmp(&order(b)).then(b.since_seconds.cmp(&a.since_seconds)).then(a.id.cmp(&b.id)));
    Ok(HttpReply::json(200, &AlarmsModel { alarms }))
}

/// Acknowledge alarms.
pub fn acknowledge(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let AcknowledgeAlarms { which } = request.input()?;
    let controller = &request.state.controller;
    let fits = |alarm: &AlarmModel| {
        which == "all"
            || alarm.until_seconds.is_none() && (alarm.id == which || alarm.what.array.as_ref() == Some(&which))
    };
    if !controller.alarms()?.iter().any(fits) && which != "all" {
        return Err(Problem::missing(format!("there is no alarm {which} that holds")));
    }
    let acknowledged = controller.acknowledge_alarms(&which)?;
    request.state.forget_snapshot();
    if !acknowledged.is_empty() {
        let text = format!("{} by HTTP: alarms acknowledged: {}", request.user(), acknowledged.join(", "));
        controller.audit(None, text);
    }
    Ok(HttpReply::json(200, &AcknowledgedModel { acknowledged }))
}

/// Send a test alarm.
pub fn test(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let TestInput { sink } = request.input()?;
    let sinks = request.state.controller.test_alarm(sink.as_deref())?;
    Ok(HttpReply::json(200, &TestsModel { sinks }))
}

pub fn sinks(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &SinksModel { sinks: request.state.controller.sinks() }))
}

pub fn schedules(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &SchedulesModel { schedules: request.state.controller.schedules() }))
}

pub fn keep_schedule(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let input: ScheduleInput = request.input()?;
    let kept = request.state.controller.keep_schedule(&input);
    let what = format!("schedule {}: {} every {}", input.name, input.task, input.every);
    noted(request, format!("{what}: {}", came(&kept)));
    Ok(HttpReply::json(200, &kept?))
}

pub fn forget_schedule(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let name = &request.parts[0];
    let forgotten = request.state.controller.forget_schedule(name);
    noted(request, format!("schedule {name} removed: {}", came(&forgotten)));
    if forgotten? {
        return Ok(HttpReply::empty(204));
    }
    Err(Problem::missing(format!("there is no schedule named {name:?}")))
}

fn came<T>(done: &Result<T, Refusal>) -> String {
    match done {
        Ok(_) => "done".into(),
        Err(refusal) => format!("refused: {}", refusal.text),
    }
}

/// The history of checks of an array.
pub fn checks(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    let (sets, patrols) = request.state.controller.checks(&array.name)?;
    Ok(HttpReply::json(200, &ChecksModel { sets, patrols }))
}
