//! `openraid events`: queries, follows and acknowledges the event log. No server is needed.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::Context;
use crate::arguments::EventsArguments;
use crate::events::segments::{EventEntry, LogContent, ReadSegments};
use crate::events::{points_in_time, Event, EventLog};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::table::TextTable;
use crate::quantity::{counted, one_line, utc};

/// Time between two reads of the log while it is followed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

/// Events of the log.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct EventsBody<'a> {
    /// The events that match the options, the oldest first.
    events: Vec<&'a Event>,
    /// Lines of the log that cannot be read.
    damaged: u64,
}

/// Events that this command acknowledged.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct EventsAcknowledged {
    /// Numbers of the events that were acknowledged.
    acknowledged: Vec<u64>,
}

/// Runs the verb.
///
/// # Errors
/// The log cannot be read or written, or no event has the number.
pub fn run(arguments: &EventsArguments, context: &Context) -> Outcome {
    let log = EventLog::at(context.registry.folder_beside("events"));
    if let Some(which) = &arguments.acknowledge {
        return acknowledge(which, &log, context);
    }
    let since = arguments.since.as_deref().map(|text| points_in_time::since(text, openraid_sys::clock::wall_seconds()));
    let since = since.transpose().map_err(|why| Failure::usage(format!("--since {why}")))?;
    let mut seen = ReadSegments::default();
    let content = read(&log, &mut seen)?;
    let mut events: Vec<&Event> = content.events.iter().filter(|event| is_asked(arguments, since, event)).collect();
    let more = arguments.last.map_or(0, |last| events.len().saturating_sub(last));
    events.drain(..more);
    let mut text = if events.is_empty() && !arguments.follow { "no events".into() } else { table(&events) };
    if content.damaged > 0 {
        let lines = counted(content.damaged, "line", "lines");
        text.push_str(&format!("\n{lines} of the log cannot be read: the disk or another program has damaged the log"));
    }
    let exit = Exit::Fine;
    if !arguments.follow {
        return Ok(context.output.answer(exit, &EventsBody { events, damaged: content.damaged }, &text));
    }
    if !events.is_empty() {
        context.output.answer(exit, &EventsBody { events, damaged: content.damaged }, &text);
    }
    let mut last = content.events.last().map_or(0, |event| event.number);
    loop {
        thread::sleep(FOLLOW_INTERVAL);
        let content = read(&log, &mut seen)?;
        let is_new = |event: &&Event| event.number > last && is_asked(arguments, None, event);
        let events: Vec<&Event> = content.events.iter().filter(is_new).collect();
        if !events.is_empty() {
            let text = table(&events);
            context.output.answer(exit, &EventsBody { events, damaged: 0 }, &text);
        }
        last = content.events.last().map_or(last, |event| event.number.max(last));
    }
}

fn read(log: &EventLog, seen: &mut ReadSegments) -> Result<LogContent, Failure> {
    log.read_again(seen).map_err(|error| Failure::failed(format!("the event log cannot be read: {error}")))
}

fn is_asked(arguments: &EventsArguments, since: Option<u64>, event: &Event) -> bool {
    since.is_none_or(|since| event.what.at_seconds >= since)
        && arguments.level.is_none_or(|level| event.level >= level)
        && arguments.array.as_ref().is_none_or(|array| event.what.array.as_ref() == Some(array))
        && !(arguments.unacknowledged && event.acknowledged)
}

fn table(events: &[&Event]) -> String {
    let mut table = TextTable::plain();
    for event in events {
        let mark = if event.acknowledged { "ack" } else { "" };
        let what = format!("{}: {}", event.what.event, one_line(&event.what.text));
        table.row([&event.number.to_string(), &utc(event.what.at_seconds), event.level.word(), mark, &what]);
    }
    table.text().trim_end().to_owned()
}

fn acknowledge(which: &str, log: &EventLog, context: &Context) -> Outcome {
    let content = read(log, &mut ReadSegments::default())?;
    let open: Vec<u64> = content.events.iter().filter(|event| !event.acknowledged).map(|event| event.number).collect();
    let known: Vec<u64> = match which.parse::<u64>() {
        _ if which == "all" => open,
        Ok(number) if content.events.iter().any(|event| event.number == number) => vec![number],
        Ok(number) => return Err(Failure::refused(format!("there is no event {number}; see `openraid events`"))),
        Err(_) => return Err(Failure::usage(format!("--acknowledge {which}: give the number of an event, or all"))),
    };
    if let (Some(from), Some(to)) = (known.first(), known.last()) {
        let written = log.append(&[EventEntry::Acknowledge { from: *from, to: *to }]);
        written.map_err(|error| Failure::failed(format!("the event log cannot be written: {error}")))?;
    }
    let text = format!("{} acknowledged", counted(known.len() as u64, "event", "events"));
    Ok(context.output.answer(Exit::Fine, &EventsAcknowledged { acknowledged: known }, &text))
}
