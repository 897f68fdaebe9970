//! Registries of messages, and places of schemas.

use openraid_status::alarm::Severity;
use openraid_status::EventName;
use serde_json::{json, Map, Value};

use super::{collection, found, resource, with, TYPES};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

const REGISTRIES: &str = "/redfish/v1/Registries";
const SCHEMAS: &str = "/redfish/v1/JsonSchemas";
/// Registries: prefix, version as messages name it, version as it is published.
const KNOWN: [(&str, &str, &str); 4] = [
    ("Base", "1.18", "1.18.1"),
    ("StorageDevice", "1.2", "1.2.1"),
    ("TaskEvent", "1.0", "1.0.3"),
    ("Openraid", "1.0", "1.0.0"),
];
/// All registries.
pub fn all(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let paths: Vec<String> =
        KNOWN.iter().map(|(prefix, version, _)| format!("{REGISTRIES}/{prefix}.{version}")).collect();
    Ok(found(&collection(REGISTRIES, "MessageRegistryFileCollection", "Registries", &paths)))
}

/// The place of a registry; or our own registry, which is a file next to it.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let id = request.parts[0].as_str();
    if id == "Openraid.1.0.0.json" {
        return Ok(found(&openraid()));
    }
    let known = KNOWN.iter().find(|(prefix, version, _)| format!("{prefix}.{version}") == id);
    let (prefix, version, published) = known.ok_or_else(|| Problem::missing(format!("there is no registry {id:?}")))?;
    let mut place = json!({"Language": "en"});
    if *prefix == "Openraid" {
        place["Uri"] = format!("{REGISTRIES}/{prefix}.{published}.json").into();
    } else {
        place["PublicationUri"] = format!("https://redfish.dmtf.org/registries/{prefix}.{published}.json").into();
    }
    let more = json!({"Registry": format!("{prefix}.{version}"), "Languages": ["en"], "Location": [place]});
    Ok(found(&with(
        resource(&format!("{REGISTRIES}/{id}"), "MessageRegistryFile", id, &format!("{prefix} messages")),
        more,
    )))
}

/// A level in a word of Redfish.
pub(super) const fn severity(level: Severity) -> &'static str {
    match level {
        Severity::Critical => "Critical",
        Severity::Warning => "Warning",
        Severity::Info => "OK",
    }
}

/// Our own registry: a message for each event or alarm. The text of the event is its only argument.
fn openraid() -> Value {
    let mut messages = Map::new();
    for event in EventName::ALL {
        let about = event.about();
        let severity = severity(event.level());
        let message = json!({
            "Description": about,
            "LongDescription": about,
            "Message": "%1",
            "Severity": severity,
            "MessageSeverity": severity,
            "NumberOfArgs": 1,
            "ParamTypes": ["string"],
            "ArgDescriptions": ["The event, in words."],
            "Resolution": if severity == "OK" { "None." } else { "See `openraid alarms`, which names the command that helps." },
        });
        messages.insert(event.word().into(), message);
    }
    json!({
        "@odata.type": "#MessageRegistry.v1_6_2.MessageRegistry",
        "Id": "Openraid.1.0.0",
        "Name": "Messages of openraid",
        "Language": "en",
        "Description": "Events of openraid that no registry of DMTF has.",
        "RegistryPrefix": "Openraid",
        "RegistryVersion": "1.0.0",
        "OwningEntity": "openraid",
        "Messages": messages,
    })
}

/// All schemas that are used.
pub fn schemas(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let paths: Vec<String> = TYPES.iter().map(|(kind, version)| format!("{SCHEMAS}/{kind}.{version}")).collect();
    Ok(found(&collection(SCHEMAS, "JsonSchemaFileCollection", "Schemas", &paths)))
}

/// The place of a schema.
pub fn schema(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let id = request.parts[0].as_str();
    let known = TYPES.iter().find(|(kind, version)| format!("{kind}.{version}") == id);
    let (kind, _) = known.ok_or_else(|| Problem::missing(format!("there is no schema {id:?}")))?;
    let uri = format!("http://redfish.dmtf.org/schemas/v1/{id}.json");
    let more = json!({
        "Schema": format!("#{kind}.{kind}"),
        "Languages": ["en"],
        "Location": [{"Language": "en", "PublicationUri": uri}],
    });
    Ok(found(&with(resource(&format!("{SCHEMAS}/{id}"), "JsonSchemaFile", id, &format!("Schema of {kind}")), more)))
}
