//! The task service: rebuilds, syncs and checks that run, and the last ones that ended.

use std::sync::{Mutex, PoisonError};

use openraid_status::check_results::OutcomeModel;
use openraid_status::shell_quoting::command;
use openraid_status::{ArrayModel, Command, HealthWord, TaskWord};
use serde_json::{json, Value};

use super::{collection, described, found, link, resource, time, with};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::TASKS_MAX;
use crate::shared_state::ApiState;

const SERVICE: &str = "/redfish/v1/TaskService";
const TASKS: &str = "/redfish/v1/TaskService/Tasks";
const MONITORS: &str = "/redfish/v1/TaskService/TaskMonitors";

/// The last state of a task.
#[derive(Clone, Debug)]
struct TaskRecord {
    number: u64,
    array: String,
    /// The span of a nested array.
    set: usize,
    kind: TaskWord,
    percent: u64,
    paused: bool,
    begun: u64,
    /// When it ended, and how: a word of Redfish.
    ended: Option<(u64, &'static str)>,
}

#[derive(Debug, Default)]
struct Table {
    tasks: Vec<TaskRecord>,
    last: u64,
}

#[derive(Debug, Default)]
pub struct Tasks(Mutex<Table>);

impl Table {
    fn add(&mut self, array: &str, set: usize, kind: TaskWord) -> &mut TaskRecord {
        if self.tasks.len() >= TASKS_MAX {
            let oldest = self.tasks.iter().position(|task| task.ended.is_some()).unwrap_or(0);
            self.tasks.remove(oldest);
        }
        self.last += 1;
        let (number, begun) = (self.last, time::now());
        self.tasks.push(TaskRecord {
            number,
            array: array.into(),
            set,
            kind,
            percent: 0,
            paused: false,
            begun,
            ended: None,
        });
        let nth = self.tasks.len() - 1;
        &mut self.tasks[nth]
    }

    /// Update the tasks from the arrays.
    fn look(&mut self, arrays: &[ArrayModel]) {
        for seen in self.tasks.iter_mut().filter(|seen| seen.ended.is_none()) {
            let set = arrays
                .iter()
                .find(|array| array.name == seen.array)
                .and_then(|array| array.sets().get(seen.set).copied());
            match set.and_then(|set| set.task.as_ref()).filter(|task| task.kind == seen.kind) {
                Some(task) => (seen.percent, seen.paused) = (task.percent(), task.paused),
                None => seen.ended = Some((time::now(), outcome(seen.kind, set))),
            }
        }
        for array in arrays {
            for (nth, set) in array.sets().into_iter().enumerate() {
                let Some(task) = &set.task else { continue };
                let is_known = |seen: &TaskRecord| {
                    seen.ended.is_none()
                        && (seen.array.as_str(), seen.set, seen.kind) == (array.name.as_str(), nth, task.kind)
                };
                if !self.tasks.iter().any(is_known) {
                    let seen = self.add(&array.name, nth, task.kind);
                    (seen.percent, seen.paused) = (task.percent(), task.paused);
                }
            }
        }
    }
}

/// How a task ended that does not run any more.
fn outcome(kind: TaskWord, set: Option<&ArrayModel>) -> &'static str {
    let Some(set) = set else { return "Cancelled" };
    let check = set.last_check.as_ref().filter(|_| kind.is_check());
    match check.map(|check| &check.outcome) {
        Some(OutcomeModel::Aborted { .. }) => "Cancelled",
        Some(OutcomeModel::NotComparable { .. }) => "Exception",
        Some(_) => "Completed",
        None if kind == TaskWord::Rebuild && set.health != HealthWord::Optimal => "Exception",
        None if kind == TaskWord::Resync && set.consistent_to_bytes.is_some() => "Cancelled",
        None => "Completed",
    }
}

/// All tasks now.
fn all_now(state: &ApiState) -> Result<Vec<TaskRecord>, Problem> {
    let arrays = state.arrays()?;
    let mut table = state.tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
    table.look(&arrays);
    Ok(table.tasks.clone())
}

fn named(request: &HttpRequest) -> Result<TaskRecord, Problem> {
    let id = request.parts[0].as_str();
    let found = all_now(&request.state)?.into_iter().find(|task| task.number.to_string() == id);
    found.ok_or_else(|| Problem::missing(format!("there is no task {id:?}; the last {TASKS_MAX} are kept")))
}

fn document(task: &TaskRecord) -> Value {
    let id = task.number.to_string();
    let state = match task.ended {
        Some((_, word)) => word,
        None if task.paused => "Suspended",
        None => "Running",
    };
    let name = format!("{} of {}", task.kind.text(), task.array);
    let is_exception = state == "Exception";
    let (message, text) = match state {
        "Completed" => ("TaskCompletedOK", "has completed"),
        "Exception" => ("TaskCompletedWarning", "has completed with warnings"),
        "Cancelled" => ("TaskCancelled", "has been cancelled"),
        "Suspended" => ("TaskPaused", "has been paused"),
        _ => ("TaskStarted", "has started"),
    };
    let severity = if is_exception { "Warning" } else { "OK" };
    let message = json!({
        "MessageId": format!("TaskEvent.1.0.{message}"),
        "MessageArgs": [id],
        "Message": format!("The task with Id '{id}' {text}."),
        "Severity": severity,
        "MessageSeverity": severity,
        "Resolution": if is_exception { format!("See `{}`.", command("show", [&task.array])) } else { "None.".into() },
    });
    let mut more = json!({
        "TaskState": state,
        "TaskStatus": severity,
        "StartTime": time::text(task.begun),
        "PercentComplete": if state == "Completed" { 100 } else { task.percent },
        "TaskMonitor": format!("{MONITORS}/{id}"),
        "Messages": [message],
        "HidePayload": true,
        "Links": {"CreatedResources": []},
    });
    if let Some((at, _)) = task.ended {
        more["EndTime"] = time::text(at).into();
    }
    with(resource(&format!("{TASKS}/{id}"), "Task", &id, &name), more)
}

/// The task service.
pub fn service(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&with(
        resource(SERVICE, "TaskService", "TaskService", "Tasks"),
        json!({
            "ServiceEnabled": true,
            "Status": {"State": "Enabled", "Health": "OK"},
            "DateTime": time::text(time::now()),
            "CompletedTaskOverWritePolicy": "Oldest",
            "LifeCycleEventOnTaskStateChange": false,
            "Tasks": link(TASKS),
        }),
    )))
}

/// All tasks.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let paths: Vec<String> = all_now(&request.state)?.iter().map(|task| format!("{TASKS}/{}", task.number)).collect();
    Ok(found(&collection(TASKS, "TaskCollection", "Tasks", &paths)))
}

/// One task.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&document(&named(request)?)))
}

/// While a task runs, 202; when it has ended, 200.
pub fn monitor(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let task = named(request)?;
    Ok(if task.ended.is_some() { found(&document(&task)) } else { accepted(&task) })
}

fn accepted(task: &TaskRecord) -> HttpReply {
    let reply = described(&document(task)).with("location", format!("{MONITORS}/{}", task.number));
    HttpReply { status: 202, ..reply.with("retry-after", "1") }
}

/// A task that has ended is forgotten, a check that runs is ended.
pub fn end(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let task = named(request)?;
    if task.ended.is_none() {
        if !task.kind.is_check() {
            let text =
                format!("a {} is not cancelled; `{}` holds it", task.kind.text(), command("pause", [&task.array]));
            return Err(Problem::new(409, "refused", text));
        }
        let command = Command::StopCheck { array: task.array.clone() };
        let done = request.state.controller.change(command);
        crate::api::manage::answered(request, &task.array, "stop the check", done)?;
        return Ok(HttpReply::empty(204).with("odata-version", "4.0"));
    }
    let mut table = request.state.tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
    table.tasks.retain(|kept| kept.number != task.number);
    Ok(HttpReply::empty(204).with("odata-version", "4.0"))
}

/// The answer to an action that has begun a task of this kind for this array.
///
/// # Errors
/// The server is ending.
pub fn begun(state: &ApiState, array: &str, kind: TaskWord) -> Result<HttpReply, Problem> {
    let is_it = |task: &&TaskRecord| task.array == array && task.kind == kind && task.ended.is_none();
    let running = |all: &[TaskRecord]| all.iter().rev().find(is_it).cloned();
    if let Some(task) = running(&all_now(state)?) {
        return Ok(accepted(&task));
    }
    // It was over before anybody looked.
    let task = {
        let mut table = state.tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
        let task = table.add(array, 0, kind);
        task.clone()
    };
    Ok(accepted(&task))
}
