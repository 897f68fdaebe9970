//! The event service: events of the log as server-sent events. Each open stream is an `EventDestination`; deleting that ends the
//! stream. Pushing events to a client is what sinks of alarms are for.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use serde_json::{json, Value};
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::managers::message_id;
use super::{collection, found, link, resource, time, with};
use crate::api::stream::Place;
use crate::controller::EventModel;
use crate::http::reply::{Problem, Reply};
use crate::http::request::Request;
use crate::limits::{EVENTS_MAX, STALL_TIME_MAX, STREAM_INTERVAL};
use crate::state::State;

const SERVICE: &str = "/redfish/v1/EventService";
const DESTINATIONS: &str = "/redfish/v1/EventService/Subscriptions";
/// The path of the stream.
pub const STREAM: &str = "/redfish/v1/EventService/SSE";

#[derive(Debug, Default)]
struct Table {
    /// Number, user, address.
    open: Vec<(u64, String, String)>,
    last: u64,
}

/// Open streams.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Table>);

impl Listeners {
    fn open(&self) -> Vec<(u64, String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open.clone()
    }

    fn add(&self, user: &str, address: String) -> u64 {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.last += 1;
        let number = table.last;
        table.open.push((number, user.into(), address));
        number
    }

    fn end(&self, number: u64) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = table.open.len();
        table.open.retain(|(own, ..)| *own != number);
        table.open.len() < before
    }
}

/// The event service.
pub fn service(_: &Request) -> Result<Reply, Problem> {
    let no = [
        "EventFormatType",
        "MessageId",
        "MetricReportDefinition",
        "OriginResource",
        "RegistryPrefix",
        "ResourceType",
        "SubordinateResources",
    ];
    let filters: serde_json::Map<String, Value> =
        no.iter().map(|name| ((*name).to_owned(), Value::Bool(false))).collect();
    Ok(found(&with(
        resource(SERVICE, "EventService", "EventService", "Events"),
        json!({
            "ServiceEnabled": true,
            "Status": {"State": "Enabled", "Health": "OK"},
            "ServerSentEventUri": STREAM,
            "SSEFilterPropertiesSupported": filters,
            "EventFormatTypes": ["Event"],
            "RegistryPrefixes": ["Openraid", "StorageDevice", "TaskEvent"],
            "Subscriptions": link(DESTINATIONS),
        }),
    )))
}

/// All open streams.
pub fn destinations(request: &Request) -> Result<Reply, Problem> {
    let open = request.state.listeners.open();
    let paths: Vec<String> = open.iter().map(|(number, ..)| format!("{DESTINATIONS}/{number}")).collect();
    Ok(found(&collection(DESTINATIONS, "EventDestinationCollection", "Streams", &paths)))
}

fn named(request: &Request) -> Result<(u64, String, String), Problem> {
    let id = request.parts[0].as_str();
    let found = request.state.listeners.open().into_iter().find(|(number, ..)| number.to_string() == id);
    found.ok_or_else(|| Problem::missing(format!("there is no open stream {id:?}")))
}

/// One open stream.
pub fn destination(request: &Request) -> Result<Reply, Problem> {
    let (number, user, address) = named(request)?;
    let id = number.to_string();
    Ok(found(&with(
        resource(&format!("{DESTINATIONS}/{id}"), "EventDestination", &id, &format!("{user} at {address}")),
        json!({
            "Destination": null,
            "Protocol": "Redfish",
            "SubscriptionType": "SSE",
            "EventFormatType": "Event",
            "Context": null,
            "Status": {"State": "Enabled", "Health": "OK"},
        }),
    )))
}

/// End a stream.
pub fn end(request: &Request) -> Result<Reply, Problem> {
    let (number, user, _) = named(request)?;
    let session = request.session.as_ref();
    if !session.is_some_and(|own| own.role == crate::Role::Administrator || own.user == user) {
        return Err(Problem::new(403, "forbidden", "the stream of another user is ended by an administrator"));
    }
    request.state.listeners.end(number);
    Ok(Reply::empty(204).with("odata-version", "4.0"))
}

/// A stream is no document.
pub fn unreachable(_: &Request) -> Result<Reply, Problem> {
    Err(Problem::new(406, "stream", "this path is a stream of events"))
}

/// An open stream, closed when it goes.
struct Open {
    _place: Place,
    state: Arc<State>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.state.listeners.end(self.number);
    }
}

/// Begin a stream. `Last-Event-ID` gives what came after that event.
///
/// # Errors
/// There are too many.
pub fn begin(request: &Request) -> Result<Receiver<Bytes>, Problem> {
    let after = match request.header("last-event-id").map(str::parse::<u64>) {
        Some(Err(_)) => return Err(Problem::bad("Last-Event-ID is no number of an event")),
        other => other.and_then(Result::ok),
    };
    let place = Place::take(&request.state).ok_or_else(Place::problem)?;
    let number = request.state.listeners.add(request.user(), request.peer.to_string());
    let open = Open { _place: place, state: Arc::clone(&request.state), number };
    let session = request.session.as_ref().map(|session| session.number);
    let (sender, receiver) = channel(16);
    tokio::spawn(feed(open, session, after, sender));
    Ok(receiver)
}

async fn feed(open: Open, session: Option<u64>, after: Option<u64>, sender: Sender<Bytes>) {
    let mut last = after;
    loop {
        let (state, number, from) = (Arc::clone(&open.state), open.number, last);
        let work = tokio::task::spawn_blocking(move || round(&state, number, session, from));
        let Ok(Some((text, newest))) = work.await else { return };
        last = Some(newest);
        if !matches!(timeout(STALL_TIME_MAX, sender.send(Bytes::from(text))).await, Ok(Ok(()))) {
            return;
        }
        sleep(STREAM_INTERVAL).await;
    }
}

/// New events; nothing when the stream, the session or the server has ended. A comment tells that the connection lives.
fn round(state: &State, number: u64, session: Option<u64>, last: Option<u64>) -> Option<(String, u64)> {
    let is_open = state.listeners.open().iter().any(|(own, ..)| *own == number);
    if !is_open || !state.sessions.all().iter().any(|own| Some(own.number) == session) {
        return None;
    }
    let events = state.controller.events().ok()?;
    let newest = events.last().map_or(0, |event| event.number);
    let from = last.unwrap_or(newest);
    let fresh: Vec<&EventModel> = events.iter().filter(|event| event.number > from).take(EVENTS_MAX).collect();
    let Some(last) = fresh.last() else { return Some((": nothing new\n\n".into(), newest.max(from))) };
    let document = json!({
        "@odata.type": "#Event.v1_10_0.Event",
        "Id": last.number.to_string(),
        "Name": "Events of openraid",
        "Events": fresh.iter().map(|event| record(event)).collect::<Vec<_>>(),
    });
    Some((format!("id: {}\ndata: {document}\n\n", last.number), last.number))
}

fn record(event: &EventModel) -> Value {
    let number = event.number.to_string();
    let mut record = json!({
        "MemberId": number,
        "EventId": number,
        "EventType": "Alert",
        "EventTimestamp": time::text(event.at_seconds),
        "Message": event.text,
        "MessageArgs": [event.text],
        "MessageId": message_id(event),
        "MessageSeverity": super::managers::severity(event),
    });
    if let Some(array) = &event.array {
        record["OriginOfCondition"] = link(&format!("{}/{array}", super::storage::VOLUMES));
    }
    record
}
