//! `openraid alarms`: the alarms of servers, or those in the file if no server runs.

use std::path::Path;

use serde::Serialize;

use super::Context;
use crate::alarms::alarm_states::{Alarm, Book};
use crate::alarms::running_alarms::is_meant;
use crate::alarms::test_alarm::{test, TestModel};
use crate::alarms::{AlarmModel, AlarmStore};
use crate::arguments::{AlarmsArguments, AlarmsVerb};
use crate::control::{Command, ControlConnection, ServerAnswer};
use crate::desired;
use crate::events::plain;
use crate::events::segments::EventEntry;
use crate::events::{Draft, EventLog};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::table::TextTable;
use crate::quantity::{counted, one_line, utc};
use openraid_status::EventName;

/// Alarms.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AlarmsBody {
    /// The alarms that match the options, open ones first.
    alarms: Vec<AlarmModel>,
}

/// Alarms that this command acknowledged.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AlarmsAcknowledged {
    /// Names of the alarms that were acknowledged.
    acknowledged: Vec<String>,
}

/// Runs the verb.
///
/// # Errors
/// The alarms cannot be read or written, or there is no such alarm.
pub fn run(arguments: &AlarmsArguments, context: &Context) -> Outcome {
    match &arguments.verb {
        None => list(arguments, context),
        Some(AlarmsVerb::Acknowledge { which }) => acknowledge(which, context),
        Some(AlarmsVerb::Test { sink, config }) => try_out(sink.as_deref(), config.as_deref(), context),
    }
}

fn store(context: &Context) -> AlarmStore {
    AlarmStore::at(context.registry.folder_beside("alarms"))
}

/// Alarms of the servers, and stored alarms that no server manages.
fn all(servers: &mut [ControlConnection], context: &Context) -> Result<Vec<AlarmModel>, Failure> {
    let mut all_alarms = Vec::new();
    for server in servers {
        match server.ask(&Command::Alarms)? {
            ServerAnswer::Alarms(alarms) => all_alarms.extend(alarms),
            _ => return Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
        }
    }
    let kept: Book =
        store(context).read().map_err(|error| Failure::failed(format!("the stored alarms cannot be read: {error}")))?;
    let others =
        kept.alarms.iter().map(Alarm::model).filter(|kept| !all_alarms.iter().any(|known| is_same(known, kept)));
    let others: Vec<AlarmModel> = others.collect();
    all_alarms.extend(others);
    all_alarms.sort_by(|a, b| (a.since_seconds, &a.id).cmp(&(b.since_seconds, &b.id)));
    Ok(all_alarms)
}

fn is_same(known: &AlarmModel, kept: &AlarmModel) -> bool {
    known.since_seconds == kept.since_seconds && known.what.is_same(&kept.what)
}

fn list(arguments: &AlarmsArguments, context: &Context) -> Outcome {
    // After a crash no server answers, and its alarms are what people look for.
    let mut servers = context.servers.connect().unwrap_or_else(|failure| {
        context.output.warn(&format!("{}; the list is as the last server left it", failure.text()));
        Vec::new()
    });
    let mut alarms = all(&mut servers, context)?;
    alarms.retain(|alarm| {
        (arguments.ended || alarm.until_seconds.is_none())
            && arguments.level.is_none_or(|level| alarm.what.level >= level)
            && arguments.array.as_ref().is_none_or(|array| alarm.what.array.as_ref() == Some(array))
    });
    let text = if alarms.is_empty() { "no alarms".into() } else { text(&alarms) };
    Ok(context.output.answer(Exit::Fine, &AlarmsBody { alarms }, &text))
}

fn text(alarms: &[AlarmModel]) -> String {
    let mut lines = Vec::new();
    for alarm in alarms {
        let mut table = TextTable::plain().indented(2);
        let until = alarm.until_seconds.map_or_else(String::new, |until| format!(", until {}", utc(until)));
        table.row(["since", &format!("{}{until}", utc(alarm.since_seconds))]);
        if let Some(at) = alarm.acknowledged_seconds {
            table.row(["acknowledged", &utc(at)]);
        }
        if let (Some(next), None) = (&alarm.what.next_step, alarm.until_seconds) {
            table.row(["next step", next]);
        }
        lines.push(format!("{:8}  {}", alarm.what.level.word(), alarm.id));
        lines.push(format!("  {}", one_line(&alarm.what.text)));
        lines.push(table.text().trim_end().to_owned());
    }
    lines.join("\n")
}

fn acknowledge(which: &str, context: &Context) -> Outcome {
    let mut servers = context.servers.connect()?;
    let alarms = all(&mut servers, context)?;
    let mut known = Vec::new();
    let mut looked_after = Vec::new();
    for server in &mut servers {
        if let ServerAnswer::Acknowledged(more) = server.ask(&Command::AcknowledgeAlarms { which: which.into() })? {
            known.extend(more);
        }
        if let ServerAnswer::Alarms(of_server) = server.ask(&Command::Alarms)? {
            looked_after.extend(of_server);
        }
    }
    let is_others = |alarm: &Alarm| !looked_after.iter().any(|known| is_same(known, &alarm.model()));
    let mut others = Vec::new();
    let is_open = |alarm: &AlarmModel| alarm.is_open() && !looked_after.iter().any(|known| is_same(known, alarm));
    if alarms.iter().any(is_open) {
        let changed = store(context).change(|mut book: Book| {
            let now = openraid_sys::clock::wall_seconds();
            others = book.acknowledge(now, |alarm| is_others(alarm) && is_meant(alarm, which));
            book
        });
        changed.map_err(|error| Failure::failed(format!("alarms cannot be stored: {error}")))?;
    }
    if !others.is_empty() {
        let log = EventLog::at(context.registry.folder_beside("events"));
        let draft = Draft::now(&plain(EventName::AlarmAcknowledged, format!("acknowledged: {}", others.join(", "))));
        // The alarms themselves are stored, so a failure to log the event is ignored.
        let _ = log.append(&[EventEntry::Event(draft)]);
    }
    known.extend(others);
    let is_there = alarms.iter().any(|alarm| {
        alarm.until_seconds.is_none() && (alarm.id == which || alarm.what.array.as_deref() == Some(which))
    });
    if known.is_empty() && which != "all" && !is_there {
        return Err(Failure::refused(format!("there is no alarm {which}; see `openraid alarms`")));
    }
    let text = format!("{} acknowledged", counted(known.len() as u64, "alarm", "alarms"));
    Ok(context.output.answer(Exit::Fine, &AlarmsAcknowledged { acknowledged: known }, &text))
}

/// The result of a test alarm.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AlarmTest {
    /// The sinks that were tried, and whether each accepted the alarm.
    sinks: Vec<TestModel>,
}

/// The server itself sends the test, because it may have another network and other files than this process.
fn try_out(sink: Option<&str>, config: Option<&Path>, context: &Context) -> Outcome {
    let mut servers = if config.is_some() { Vec::new() } else { context.servers.connect()? };
    let sinks = match servers.as_mut_slice() {
        [] => {
            let path = config.map(Path::to_path_buf).or_else(desired::default_path);
            let path = path.ok_or_else(|| {
                Failure::usage("no server runs, and there is no configuration file; name one with --config FILE")
            })?;
            test(&desired::load(&path)?.sinks, sink)?
        }
        [server] => match server.ask(&Command::TestAlarm { sink: sink.map(Into::into) })? {
            ServerAnswer::Tested(sinks) => sinks,
            _ => return Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
        },
        _ => return Err(Failure::usage("several servers run: say with --control which one is meant")),
    };
    let line = |attempt: &TestModel| match &attempt.error {
        None => format!("{} ({}): delivered", attempt.sink, attempt.kind),
        Some(why) => format!("{} ({}): NOT delivered: {why}", attempt.sink, attempt.kind),
    };
    let text = sinks.iter().map(line).collect::<Vec<_>>().join("\n");
    let exit = if sinks.iter().all(|attempt| attempt.error.is_none()) { Exit::Fine } else { Exit::Error };
    Ok(context.output.answer(exit, &AlarmTest { sinks }, &text))
}
