//! The event log.

use openraid_status::alarm::Severity;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::controller::EventModel;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::{EVENTS_MAX, EVENT_NUMBER_MAX};
use crate::redfish::time;

/// Some events.
#[derive(Serialize, ToSchema)]
pub struct EventsModel {
    /// The events, the oldest first.
    pub events: Vec<EventModel>,
    /// Does the log have more events before the first one?
    pub more: bool,
}

/// Events to acknowledge.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Acknowledge {
    /// Number of the first event to acknowledge.
    from: u64,
    /// Number of the last event to acknowledge; without it, only the first one.
    #[serde(default)]
    to: Option<u64>,
}

/// The requested events: the newest ones, unless `after` is given. Are there more?
fn found(request: &HttpRequest) -> Result<(Vec<EventModel>, bool), Problem> {
    let (after, before) = (request.number("after")?, request.number("before")?);
    let limit = request.number("limit")?.map_or(100, |limit| usize::try_from(limit).unwrap_or(EVENTS_MAX));
    if !(1..=EVENTS_MAX).contains(&limit) {
        return Err(Problem::bad(format!("limit={limit}: use 1 to {EVENTS_MAX}")));
    }
    let least = request.asked("level").map_or(Ok(Severity::Info), |word| {
        let unknown = || Problem::bad(format!("level={word}: use {}", Severity::ALL.map(Severity::word).join(", ")));
        Severity::named(word).ok_or_else(unknown)
    })?;
    let open = match request.asked("unacknowledged") {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => return Err(Problem::bad(format!("unacknowledged={other}: use true or false"))),
    };
    let text = request.asked("text").map(str::to_lowercase);
    let has = |event: &EventModel, words: &str| {
        let parts = [Some(&event.text), Some(&event.event), event.array.as_ref(), event.member.as_ref()];
        parts.into_iter().flatten().any(|part| part.to_lowercase().contains(words))
    };
    let all = request.state.controller.events()?;
    let is_asked = |event: &&EventModel| {
        after.is_none_or(|after| event.number > after)
            && before.is_none_or(|before| event.number < before)
            && event.level >= least
            && request.asked("array").is_none_or(|array| event.array.as_deref() == Some(array))
            && !(open && event.acknowledged)
            && text.as_deref().is_none_or(|words| has(event, words))
    };
    let found: Vec<&EventModel> = all.iter().filter(is_asked).collect();
    let more = found.len() > limit;
    let kept =
        if after.is_some() { &found[..found.len().min(limit)] } else { &found[found.len().saturating_sub(limit)..] };
    let events = kept.iter().map(|event| (*event).clone()).collect();
    Ok((events, more))
}

/// The requested events.
pub fn list(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let (events, more) = found(request)?;
    Ok(HttpReply::json(200, &EventsModel { events, more }))
}

/// The requested events as lines with commas (RFC 4180), the first one with the names of the columns. Times are UTC.
pub fn lines(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let (events, _) = found(request)?;
    let mut text = String::from("number,time,level,event,array,span,slot,member,text,acknowledged\r\n");
    for event in &events {
        let number = |text: Option<String>| text.unwrap_or_default();
        let cells = [
            event.number.to_string(),
            time::text(event.at_seconds),
            event.level.word().into(),
            event.event.clone(),
            event.array.clone().unwrap_or_default(),
            number(event.span.map(|span| span.to_string())),
            number(event.slot.map(|slot| slot.to_string())),
            event.member.clone().unwrap_or_default(),
            event.text.clone(),
            event.acknowledged.to_string(),
        ];
        text.push_str(&cells.map(|cell| quoted(&cell)).join(","));
        text.push_str("\r\n");
    }
    Ok(HttpReply::text("text/csv; charset=utf-8", text)
        .with("content-disposition", "attachment; filename=\"openraid-events.csv\""))
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// Acknowledge events.
pub fn acknowledge(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let Acknowledge { from, to } = request.input()?;
    let to = to.unwrap_or(from);
    if from.max(to) > EVENT_NUMBER_MAX {
        return Err(Problem::bad(format!("from, to: events have numbers up to {EVENT_NUMBER_MAX}")));
    }
    let all = request.state.controller.events()?;
    let open = all.iter().filter(|event| (from..=to).contains(&event.number) && !event.acknowledged).count();
    if !all.iter().any(|event| (from..=to).contains(&event.number)) {
        return Err(Problem::missing(format!("there is no event with a number from {from} to {to}")));
    }
    if open > 0 {
        request.state.controller.acknowledge(from, to)?;
        let which = if from == to { format!("event {from}") } else { format!("{open} of the events {from} to {to}") };
        let text = format!("{} by HTTP: {which} acknowledged", request.user());
        request.state.controller.audit(None, text);
    }
    Ok(HttpReply::json(200, &serde_json::json!({ "acknowledged": open })))
}
