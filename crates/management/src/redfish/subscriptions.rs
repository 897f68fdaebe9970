//! Event destinations: streams that are open, which end if they are deleted, and servers to which events are pushed. A subscription lives
//! as long as this server; sinks of alarms outlive it.

use std::sync::{Arc, Weak};

use serde_json::{json, Value};

use super::events::{message, EventListener};
use super::{collection, found, object, property, resource, text, with};
use crate::controller::EventModel;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::{EVENTS_MAX, PUSH_INTERVAL, STREAM_INTERVAL, SUBSCRIPTIONS_MAX};
use crate::shared_state::ApiState;

/// The collection.
pub const DESTINATIONS: &str = "/redfish/v1/EventService/Subscriptions";
/// The longest address to which events are pushed.
const URL_BYTES_MAX: usize = 1024;

/// All open streams and subscriptions.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let open = request.state.listeners.open();
    let paths: Vec<String> = open.iter().map(|stream| format!("{DESTINATIONS}/{}", stream.number)).collect();
    Ok(found(&collection(DESTINATIONS, "EventDestinationCollection", "Subscriptions", &paths)))
}

fn named(request: &HttpRequest) -> Result<EventListener, Problem> {
    let id = request.parts[0].as_str();
    let found = request.state.listeners.open().into_iter().find(|stream| stream.number.to_string() == id);
    found.ok_or_else(|| Problem::missing(format!("there is no subscription {id:?}")))
}

fn document(listener: &EventListener) -> Value {
    let id = listener.number.to_string();
    let is_push = listener.destination.is_some();
    let mut more = json!({
        "Destination": listener.destination,
        "Protocol": "Redfish",
        "SubscriptionType": if is_push { "RedfishEvent" } else { "SSE" },
        "EventFormatType": "Event",
        "Context": listener.context,
        "Status": {"State": "Enabled", "Health": "OK"},
    });
    if is_push {
        more["DeliveryRetryPolicy"] = "RetryForever".into();
    }
    let name = format!("{} at {}", listener.user, listener.address);
    with(resource(&format!("{DESTINATIONS}/{id}"), "EventDestination", &id, &name), more)
}

/// One open stream or subscription.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&document(&named(request)?)))
}

/// An address of another server.
fn url(name: &str, value: &Value) -> Result<String, Problem> {
    let url = text(name, value)?;
    let is_url = url.len() <= URL_BYTES_MAX && (url.starts_with("https://") || url.starts_with("http://"));
    if !is_url || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(property("property-value", name, "use an address that begins with https:// or http://"));
    }
    Ok(url)
}

/// The request in a body.
fn asked(request: &HttpRequest) -> Result<EventListener, Problem> {
    let mut listener = EventListener::of(request);
    let mut has_protocol = false;
    for (key, value) in object(request)? {
        let fixed = match key.as_str() {
            "Destination" => {
                listener.destination = Some(url(&key, &value)?);
                continue;
            }
            "Context" => {
                listener.context = Some(text(&key, &value)?);
                continue;
            }
            "Protocol" => {
                has_protocol = true;
                "Redfish"
            }
            "SubscriptionType" => "RedfishEvent",
            "EventFormatType" => "Event",
            "DeliveryRetryPolicy" => "RetryForever",
            _ => return Err(property("property-unknown", &key, "a subscription has no such property here")),
        };
        if text(&key, &value)? != fixed {
            return Err(property("property-value", &key, &format!("use {fixed}")));
        }
    }
    let missing = |name: &str| property("property-missing", name, "it is missing");
    if listener.destination.is_none() {
        return Err(missing("Destination"));
    }
    if !has_protocol {
        return Err(missing("Protocol"));
    }
    Ok(listener)
}

/// Push events to another server, until that is deleted or this server ends.
pub fn add(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let mut listener = asked(request)?;
    let listeners = &request.state.listeners;
    if listeners.open().iter().filter(|stream| stream.destination.is_some()).count() >= SUBSCRIPTIONS_MAX {
        let text = format!("at most {SUBSCRIPTIONS_MAX} subscriptions are possible; delete one");
        return Err(Problem::new(503, "unavailable", text));
    }
    listener.number = listeners.add(listener.clone());
    let (state, pushed, first_test) = (Arc::downgrade(&request.state), listener.clone(), listeners.last_test());
    let thread =
        std::thread::Builder::new().name("redfish-push".into()).spawn(move || push(&state, &pushed, first_test));
    if let Err(error) = thread {
        listeners.end(listener.number);
        return Err(Problem::new(503, "unavailable", format!("no thread for the subscription: {error}")));
    }
    let to = listener.destination.as_deref().unwrap_or_default();
    request.state.controller.audit(None, format!("{} by HTTP: events are pushed to {to}", request.user()));
    let reply = found(&document(&listener)).with("location", format!("{DESTINATIONS}/{}", listener.number));
    Ok(HttpReply { status: 201, ..reply })
}

/// Push events until the subscription or the server ends, and test events after this one. What was not taken is sent again, with what
/// came since.
fn push(state: &Weak<ApiState>, listener: &EventListener, first_test: u64) {
    let (mut last, mut test) = (None, first_test);
    let url = listener.destination.as_deref().unwrap_or_default();
    while let Some(state) = state.upgrade().filter(|state| state.listeners.has(listener.number)) {
        let Ok(events) = state.controller.events() else { return };
        let newest = events.last().map_or(0, |event| event.number);
        let from = *last.get_or_insert(newest);
        let fresh: Vec<&EventModel> = events.iter().filter(|event| event.number > from).take(EVENTS_MAX).collect();
        let mut pause = STREAM_INTERVAL;
        for event in state.listeners.tests_after(test) {
            if state.controller.push(url, &event.message(listener.context.as_deref())).is_err() {
                pause = PUSH_INTERVAL;
                break;
            }
            test = event.number;
        }
        if let Some(newest) = fresh.last() {
            match state.controller.push(url, &message(&fresh, listener.context.as_deref())) {
                Ok(()) => last = Some(newest.number),
                Err(_) => pause = PUSH_INTERVAL,
            }
        }
        drop(state);
        std::thread::sleep(pause);
    }
}

/// End a stream or a subscription.
pub fn end(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let listener = named(request)?;
    let session = request.session.as_ref();
    if !session
        .is_some_and(|session| session.role == openraid_status::Role::Administrator || session.user == listener.user)
    {
        return Err(Problem::new(403, "forbidden", "the subscription of another user is ended by an administrator"));
    }
    request.state.listeners.end(listener.number);
    Ok(HttpReply::empty(204).with("odata-version", "4.0"))
}
