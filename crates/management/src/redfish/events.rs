//! The event service: events of the log as server-sent events. Each open stream is an `EventDestination` (`subscriptions.rs`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use serde_json::{json, Value};
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::managers::message_id;
use super::subscriptions::DESTINATIONS;
use super::{found, link, object, property, refused, resource, text, time, with};
use crate::api::stream::StreamPlace;
use crate::auth::sessions::UserSession;
use crate::controller::EventModel;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::{EVENTS_MAX, PUSH_INTERVAL, STALL_TIME_MAX, STREAM_INTERVAL, TEST_EVENTS_MAX};
use crate::shared_state::ApiState;

const SERVICE: &str = "/redfish/v1/EventService";
/// The path of the stream.
pub const STREAM: &str = "/redfish/v1/EventService/SSE";
/// The path of the action that sends a test event.
pub const TEST: &str = "/redfish/v1/EventService/Actions/EventService.SubmitTestEvent";
/// The severities that Redfish has.
const SEVERITIES: [&str; 3] = ["OK", "Warning", "Critical"];

/// A stream that is open, or a server to which events are pushed.
#[derive(Clone, Debug)]
pub struct EventListener {
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
    open: Vec<EventListener>,
    last: u64,
    /// The newest test events. They are not in the log.
    tests: VecDeque<TestEvent>,
    last_test: u64,
}

/// A test event that a client has asked for.
#[derive(Clone, Debug)]
pub struct TestEvent {
    /// Its number among the test events.
    pub number: u64,
    record: Value,
}

impl TestEvent {
    /// As a document.
    pub fn message(&self, context: Option<&str>) -> Value {
        let id = format!("test-{}", self.number);
        let mut record = self.record.clone();
        record["MemberId"] = id.as_str().into();
        if record.get("EventId").is_none() {
            record["EventId"] = id.as_str().into();
        }
        document(&id, &[record], context)
    }
}

/// Open streams and subscriptions.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Table>);

impl Listeners {
    /// All open ones.
    pub fn open(&self) -> Vec<EventListener> {
        self.table().open.clone()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the newest test event.
    pub fn last_test(&self) -> u64 {
        self.table().last_test
    }

    /// The test events after this one.
    pub fn tests_after(&self, number: u64) -> Vec<TestEvent> {
        self.table().tests.iter().filter(|test| test.number > number).cloned().collect()
    }

    fn submit(&self, record: Value) {
        let mut table = self.table();
        table.last_test += 1;
        let number = table.last_test;
        table.tests.push_back(TestEvent { number, record });
        if table.tests.len() > TEST_EVENTS_MAX {
            table.tests.pop_front();
        }
    }

    /// Add one, and return its number.
    pub fn add(&self, listener: EventListener) -> u64 {
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.open.push(EventListener { number, ..listener });
        number
    }

    /// Is it open?
    pub fn has(&self, number: u64) -> bool {
        self.table().open.iter().any(|stream| stream.number == number)
    }

    pub fn end(&self, number: u64) {
        self.table().open.retain(|stream| stream.number != number);
    }
}

impl EventListener {
    /// A listener of this client.
    pub fn of(request: &HttpRequest) -> Self {
        let (user, address) = (request.user().into(), request.peer.to_string());
        Self { number: 0, user, address, destination: None, context: None }
    }
}

/// The event service.
pub fn service(_: &HttpRequest) -> Result<HttpReply, Problem> {
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
            "Actions": {"#EventService.SubmitTestEvent": {"target": TEST}},
        }),
    )))
}

/// A stream is no document.
pub fn unreachable(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Err(Problem::new(406, "stream", "this path is a stream of events"))
}

/// An open stream, closed when it is dropped.
struct OpenStream {
    _place: StreamPlace,
    state: Arc<ApiState>,
    number: u64,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.state.listeners.end(self.number);
    }
}

/// Begin a stream. With `Last-Event-ID` it begins after that event.
///
/// # Errors
/// There are too many.
pub fn begin(request: &HttpRequest) -> Result<Receiver<Bytes>, Problem> {
    let after = match request.header("last-event-id").map(str::parse::<u64>) {
        Some(Err(_)) => return Err(Problem::bad("Last-Event-ID is not the number of an event")),
        other => other.and_then(Result::ok),
    };
    let place = StreamPlace::take(&request.state).ok_or_else(StreamPlace::problem)?;
    let number = request.state.listeners.add(EventListener::of(request));
    let open = OpenStream { _place: place, state: Arc::clone(&request.state), number };
    let session = request.session.clone();
    let (sender, receiver) = channel(16);
    tokio::spawn(feed(open, session, after, sender));
    Ok(receiver)
}

async fn feed(open: OpenStream, session: Option<UserSession>, after: Option<u64>, sender: Sender<Bytes>) {
    let (mut last, mut test) = (after, open.state.listeners.last_test());
    loop {
        let (state, number, of_client, from) = (Arc::clone(&open.state), open.number, session.clone(), last);
        let tests = open.state.listeners.tests_after(test);
        test = tests.last().map_or(test, |test| test.number);
        let work = tokio::task::spawn_blocking(move || round(&state, number, of_client.as_ref(), from));
        let Ok(Some((mut text, newest))) = work.await else { return };
        last = Some(newest);
        // They have no number in the log, so a client that comes back does not name them.
        tests.iter().for_each(|test| text.push_str(&format!("data: {}\n\n", test.message(None))));
        if !matches!(timeout(STALL_TIME_MAX, sender.send(Bytes::from(text))).await, Ok(Ok(()))) {
            return;
        }
        sleep(STREAM_INTERVAL).await;
    }
}

/// New events; nothing when the stream, the session or the server has ended. A comment tells that the connection lives.
fn round(state: &ApiState, number: u64, session: Option<&UserSession>, last: Option<u64>) -> Option<(String, u64)> {
    if !state.listeners.has(number) || !state.is_signed_in(session?) {
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
    let id = events.last().map_or(0, |event| event.number).to_string();
    document(&id, &events.iter().map(|event| record(event)).collect::<Vec<_>>(), context)
}

fn document(id: &str, records: &[Value], context: Option<&str>) -> Value {
    let mut document = json!({
        "@odata.type": "#Event.v1_10_0.Event",
        "Id": id,
        "Name": "Events of openraid",
        "Events": records,
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
        record["OriginOfCondition"] = link(&super::volumes::volume_path(array));
    }
    record
}

/// Send a test event to all streams and subscriptions. It has what the body says, and is not written to the log.
pub fn submit_test(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let mut record = json!({
        "EventType": "Alert",
        "EventTimestamp": time::text(time::now()),
        "Message": "A test of event subscriptions.",
        "MessageId": "Openraid.1.0.TestMessage",
        "MessageArgs": ["A test of event subscriptions."],
        "MessageSeverity": "OK",
    });
    let body = object(request)?;
    if body.contains_key("MessageId") {
        // The arguments belong to the message.
        record.as_object_mut().map(|fields| fields.remove("MessageArgs"));
    }
    for (key, value) in body {
        let checked = match key.as_str() {
            "EventType" | "EventId" | "EventTimestamp" | "Message" | "MessageId" => text(&key, &value)?.into(),
            "Severity" | "MessageSeverity" => {
                let word = text(&key, &value)?;
                if !SEVERITIES.contains(&word.as_str()) {
                    return Err(refused("property-word", &key, &value, &format!("use {}", SEVERITIES.join(", "))));
                }
                word.into()
            }
            "EventGroupId" if value.is_i64() => value,
            "MessageArgs" if value.as_array().is_some_and(|all| all.iter().all(Value::is_string)) => value,
            "EventGroupId" | "MessageArgs" => {
                return Err(refused("property-type", &key, &value, "use a number, and a list of strings"))
            }
            "OriginOfCondition" => link(&text(&key, &value)?),
            _ => return Err(property("property-unknown", &key, "a test event has no such parameter")),
        };
        record[key] = checked;
    }
    request.state.listeners.submit(record);
    request.state.controller.audit(None, format!("{} by HTTP: a test event is sent", request.user()));
    Ok(HttpReply::empty(204).with("odata-version", "4.0"))
}
