//! The manager: this program, with its log.

use serde_json::{json, Value};

use super::{collection, dashed, found, link, registries, resource, time, with};
use crate::controller::EventModel;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::LOG_ENTRIES_MAX;

const MANAGER: &str = "/redfish/v1/Managers/1";
const LOGS: &str = "/redfish/v1/Managers/1/LogServices";
const ENTRIES: &str = "/redfish/v1/Managers/1/LogServices/Log/Entries";

/// All managers: this program.
pub fn all(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&collection("/redfish/v1/Managers", "ManagerCollection", "Managers", &[MANAGER.into()])))
}

/// The manager.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let uuid = dashed(&request.state.service_uuid);
    Ok(found(&with(
        resource(MANAGER, "Manager", "1", "openraid"),
        json!({
            "ManagerType": "Service",
            "Manufacturer": "openraid",
            "Model": "openraid",
            "FirmwareVersion": env!("CARGO_PKG_VERSION"),
            "UUID": uuid,
            "ServiceEntryPointUUID": uuid,
            "DateTime": time::text(time::now()),
            "DateTimeLocalOffset": "+00:00",
            "Status": {"State": "Enabled", "Health": "OK"},
            "LogServices": link(LOGS),
            "Links": {
                "ManagerForServers": [link("/redfish/v1/Systems/1")],
                "ManagerForServers@odata.count": 1,
                "ManagerForChassis": [link(super::chassis::ONE)],
                "ManagerForChassis@odata.count": 1,
            },
        }),
    )))
}

pub fn logs(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&collection(LOGS, "LogServiceCollection", "Logs", &[format!("{LOGS}/Log")])))
}

pub fn log(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&with(
        resource(&format!("{LOGS}/Log"), "LogService", "Log", "Event log"),
        json!({
            "ServiceEnabled": true,
            "LogEntryType": "Event",
            "OverWritePolicy": "WrapsWhenFull",
            "DateTime": time::text(time::now()),
            "DateTimeLocalOffset": "+00:00",
            "Status": {"State": "Enabled", "Health": "OK"},
            "Entries": link(ENTRIES),
        }),
    )))
}

/// How bad it is, in a word of Redfish.
pub fn severity(event: &EventModel) -> &'static str {
    registries::severity(event.level)
}

/// The message of our own registry that an event has.
pub fn message_id(event: &EventModel) -> String {
    format!("Openraid.1.0.{}", event.event)
}

fn document(event: &EventModel) -> Value {
    let id = event.number.to_string();
    let mut more = json!({
        "EntryType": "Event",
        "Created": time::text(event.at_seconds),
        "Severity": severity(event),
        "Message": event.text,
        "MessageArgs": [event.text],
        "MessageId": message_id(event),
        "Resolved": event.acknowledged,
    });
    if let Some(array) = &event.array {
        more["Links"] = json!({"OriginOfCondition": link(&super::volumes::volume_path(array))});
    }
    with(resource(&format!("{ENTRIES}/{id}"), "LogEntry", &id, &event.event), more)
}

/// The newest entries of the log, the last one first, as documents.
pub fn entries(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let events = request.state.controller.events()?;
    let served = request.state.arrays()?;
    let newest: Vec<Value> =
        events.iter().rev().take(LOG_ENTRIES_MAX).map(|event| alive(document(event), &served)).collect();
    let count = newest.len();
    let document = collection(ENTRIES, "LogEntryCollection", "Entries", &[]);
    Ok(found(&with(document, json!({"Members": newest, "Members@odata.count": count}))))
}

/// A link to a volume that is not there any more is left out.
fn alive(mut document: Value, served: &[openraid_status::ArrayModel]) -> Value {
    let origin = document["Links"]["OriginOfCondition"]["@odata.id"].as_str().unwrap_or_default();
    let is_there = served.iter().any(|array| origin.ends_with(&format!("/{}", array.name)));
    if !is_there {
        document.as_object_mut().map(|fields| fields.remove("Links"));
    }
    document
}

/// One entry of the log.
pub fn entry(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let id = request.parts[0].as_str();
    let events = request.state.controller.events()?;
    let event = events.iter().find(|event| event.number.to_string() == id);
    let event = event.ok_or_else(|| Problem::missing(format!("the log has no entry {id:?}")))?;
    Ok(found(&alive(document(event), &request.state.arrays()?)))
}
