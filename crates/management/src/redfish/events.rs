//! The event service: events of the log as server-sent events. Each open stream is an `EventDestination` (`subscriptions.rs`).

use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use serde_json::{json, Value};
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::managers::message_id;
use super::subscriptions::DESTINATIONS;
use super::{found, link, resource, time, with};
use crate::api::stream::Place;
use crate::controller::EventModel;
use crate::http::reply::{Problem, Reply};
use crate::http::request::Request;
use crate::limits::{EVENTS_MAX, PUSH_INTERVAL, STALL_TIME_MAX, STREAM_INTERVAL};
use crate::state::State;

const SERVICE: &str = "/redfish/v1/EventService";
/// The path of the stream.
pub const STREAM: &str = "/redfish/v1/EventService/SSE";

/// A stream that is open, or a server to which events are pushed.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Its number.
    pub number: u64,
    /// The user that has opened it.
    pub user: String,
    /// The address that it was opened from.
    pub address: String,
    /// The address to which events are pushed.
    pub destination: Option<String>,
    /// The subscriber's own words.
    pub context: Option<String>,
}

#[derive(Debug, Default)]
struct Table {
    open: Vec<Listener>,
    last: u64,
}

/// Open streams and subscriptions.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Table>);

impl Listeners {
    /// All open ones.
    pub fn open(&self) -> Vec<Listener> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open.clone()
    }

    /// Add one, and return its number.
    pub fn add(&self, listener: Listener) -> u64 {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.last += 1;
        let number = table.last;
        table.open.push(Listener { number, ..listener });
        number
    }

    /// Is it open?
    pub fn has(&self, number: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open.iter().any(|own| own.number == number)
    }

    /// End it.
    pub fn end(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open.retain(|own| own.number != number);
    }
}

impl Listener {
    /// A listener of this client.
    pub fn of(request: &Request) -> Self {
        let (user, address) = (request.user().into(), request.peer.to_string());
        Self { number: 0, user, address, destination: None, context: None }
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
            "DeliveryRetryIntervalSeconds": PUSH_INTERVAL.as_secs(),
            "RegistryPrefixes": ["Openraid", "StorageDevice", "TaskEvent"],
            "Subscriptions": link(DESTINATIONS),
        }),
    )))
}

/// A stream is no document.
pub fn unreachable(_: &Request) -> Result<Reply, Problem> {
    Err(Problem::new(406, "stream", "this path is a stream of events"))
}

/// An open stream, closed when it is dropped.
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

/// Begin a stream. With `Last-Event-ID` it begins after that event.
///
/// # Errors
/// There are too many.
pub fn begin(request: &Request) -> Result<Receiver<Bytes>, Problem> {
    let after = match request.header("last-event-id").map(str::parse::<u64>) {
        Some(Err(_)) => return Err(Problem::bad("Last-Event-ID is not the number of an event")),
        other => other.and_then(Result::ok),
    };
    let place = Place::take(&request.state).ok_or_else(Place::problem)?;
    let number = request.state.listeners.add(Listener::of(request));
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
    if !state.listeners.has(number) || !state.sessions.all().iter().any(|own| Some(own.number) == session) {
        return None;
    }
    let events = state.controller.events().ok()?;
    let newest = events.last().map_or(0, |event| event.number);
    let from = last.unwrap_or(newest);
    let fresh: Vec<&EventModel> = events.iter().filter(|event| event.number > from).take(EVENTS_MAX).collect();
    let Some(last) = fresh.last() else { return Some((": nothing new\n\n".into(), newest.max(from))) };
    Some((format!("id: {}\ndata: {}\n\n", last.number, message(&fresh, None)), last.number))
}

/// Events as one document.
pub fn message(events: &[&EventModel], context: Option<&str>) -> Value {
    let mut document = json!({
        "@odata.type": "#Event.v1_10_0.Event",
        "Id": events.last().map_or(0, |event| event.number).to_string(),
        "Name": "Events of openraid",
        "Events": events.iter().map(|event| record(event)).collect::<Vec<_>>(),
    });
    if let Some(context) = context {
        document["Context"] = context.into();
    }
    document
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
