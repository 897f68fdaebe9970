//! Redfish: the server in DMTF's words. It is one `Storage`: its drives are the members of all arrays and the drives that are free
//! for new ones, its volumes are the arrays.
//!
//! Everything goes through the same commands as the API. Deleting a volume takes the array out of service; members keep its data.

pub mod accounts;
pub mod changes;
pub mod chassis;
pub mod conditions;
pub mod drives;
pub mod events;
pub mod managers;
pub mod oem;
pub mod rates;
pub mod registries;
pub mod routes;
pub mod sessions;
pub mod storage;
pub mod subscriptions;
pub mod tasks;
pub mod telemetry;
pub mod time;
pub mod volumes;

pub use routes::ROUTES;

use std::ops::RangeBounds;

use serde_json::{json, Map, Value};

use crate::api::state_version as api_version;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

const ROOT: &str = "/redfish/v1";
/// The folder of DMTF's schemas.
const DMTF: &str = "http://redfish.dmtf.org/schemas/v1";
/// Types that the service has, for `$metadata` and `JsonSchemas`.
const TYPES: [(&str, &str); 26] = [
    ("ServiceRoot", "v1_16_0"),
    ("ComputerSystem", "v1_20_0"),
    ("Chassis", "v1_25_0"),
    ("Storage", "v1_15_0"),
    ("StorageController", "v1_7_0"),
    ("Drive", "v1_18_0"),
    ("Volume", "v1_10_0"),
    ("SessionService", "v1_1_9"),
    ("Session", "v1_7_0"),
    ("AccountService", "v1_15_0"),
    ("ManagerAccount", "v1_12_0"),
    ("Role", "v1_3_1"),
    ("TaskService", "v1_2_0"),
    ("Task", "v1_7_3"),
    ("EventService", "v1_10_0"),
    ("EventDestination", "v1_14_0"),
    ("Event", "v1_10_0"),
    ("Manager", "v1_19_0"),
    ("LogService", "v1_5_0"),
    ("LogEntry", "v1_16_0"),
    ("MessageRegistryFile", "v1_1_3"),
    ("MessageRegistry", "v1_6_2"),
    ("JsonSchemaFile", "v1_1_4"),
    ("TelemetryService", "v1_3_1"),
    ("MetricReportDefinition", "v1_4_2"),
    ("MetricReport", "v1_5_0"),
];
const COLLECTIONS: [&str; 18] = [
    "ComputerSystemCollection",
    "ChassisCollection",
    "StorageCollection",
    "StorageControllerCollection",
    "VolumeCollection",
    "SessionCollection",
    "DriveCollection",
    "ManagerAccountCollection",
    "RoleCollection",
    "TaskCollection",
    "EventDestinationCollection",
    "ManagerCollection",
    "LogServiceCollection",
    "LogEntryCollection",
    "MessageRegistryFileCollection",
    "JsonSchemaFileCollection",
    "MetricReportDefinitionCollection",
    "MetricReportCollection",
];

/// Messages of DMTF's base registry: our word, the message, its text.
const MESSAGES: [(&str, &str, &str); 11] = [
    ("property-unknown", "PropertyUnknown", "The property %1 is not in the list of valid properties for the resource."),
    (
        "property-missing",
        "PropertyMissing",
        "The property %1 is a required property and must be included in the request.",
    ),
    ("property-value", "PropertyValueError", "The value provided for the property %1 is not valid."),
    (
        "property-read-only",
        "PropertyNotWritable",
        "The property %1 is a read-only property and cannot be assigned a value.",
    ),
    (
        "no-operation",
        "NoOperation",
        "The request body submitted contain no data to act upon and no changes to the resource took place.",
    ),
    ("action-not-supported", "ActionNotSupported", "The action %1 is not supported by the resource."),
    (
        "property-type",
        "PropertyValueTypeError",
        "The value '%1' for the property %2 is not a type that the property can accept.",
    ),
    (
        "property-word",
        "PropertyValueNotInList",
        "The value '%1' for the property %2 is not in the list of acceptable values.",
    ),
    (
        "property-range",
        "PropertyValueOutOfRange",
        "The value '%1' for the property %2 is not in the supported range of acceptable values.",
    ),
    (
        "parameter-missing",
        "ActionParameterMissing",
        "The action %1 requires the parameter %2 to be present in the request body.",
    ),
    (
        "in-use",
        "ResourceInUse",
        "The change to the requested resource failed because the resource is in use or in transition.",
    ),
];

/// A property of a body, and why it is refused. `word` is one of [`MESSAGES`].
fn property(word: &'static str, name: &str, why: &str) -> Problem {
    let (arguments, property) = (vec![name.to_owned()], Some(name.to_owned()));
    Problem { arguments, property, ..Problem::new(400, word, format!("{name}: {why}")) }
}

/// The value of a property of a body, and why it is refused. `word` is one of [`MESSAGES`] that names the value too.
fn refused(word: &'static str, name: &str, value: &Value, why: &str) -> Problem {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let arguments = vec![shown.clone(), name.to_owned()];
    let property = Some(name.to_owned());
    Problem { arguments, property, ..Problem::new(400, word, format!("{name}: {shown}: {why}")) }
}

/// An error as Redfish has it.
pub fn error(problem: &Problem) -> HttpReply {
    let mut message = json!({
        "@odata.type": "#Message.v1_1_2.Message",
        "MessageId": "Base.1.18.GeneralError",
        "Message": problem.text,
        "Severity": "Critical",
        "MessageSeverity": "Critical",
        "Resolution": problem.text,
    });
    if let Some((_, id, text)) = MESSAGES.iter().find(|(word, ..)| *word == problem.word) {
        message["MessageId"] = format!("Base.1.18.{id}").into();
        let given = &problem.arguments;
        let mut filled = (*text).to_owned();
        given
            .iter()
            .enumerate()
            .for_each(|(nth, argument)| filled = filled.replace(&format!("%{}", nth + 1), argument));
        message["MessageArgs"] = json!(given);
        message["Message"] = filled.into();
        message["MessageSeverity"] = "Warning".into();
        message["Severity"] = "Warning".into();
        // A pointer has no spaces; a name that the client made up may have some.
        if let Some(name) = problem.property.as_ref().filter(|name| !name.contains(' ')) {
            message["RelatedProperties"] = json!([format!("#/{}", name.replace('.', "/"))]);
        }
    }
    let document = json!({"error": {
        "code": message["MessageId"],
        "message": problem.text,
        "@Message.ExtendedInfo": [message],
    }});
    let reply = HttpReply::json(problem.status, &document).with("odata-version", "4.0");
    problem.headers.iter().fold(reply, |reply, (name, value)| reply.with(name, value))
}

/// Redfish ignores queries that it does not know, unless they begin with a dollar sign.
///
/// # Errors
/// There is such a one, or the client speaks another version of OData.
pub fn check(request: &HttpRequest) -> Result<(), Problem> {
    if let Some(version) = request.header("odata-version").filter(|version| *version != "4.0") {
        return Err(Problem::new(412, "odata-version", format!("OData-Version {version}: this service has 4.0")));
    }
    match request.query.iter().find(|(key, _)| key.starts_with('$')) {
        Some((key, _)) => Err(Problem::new(501, "query", format!("{key}: this service has no such query"))),
        None => Ok(()),
    }
}

/// Properties that change all the time, and do not change the version of a document.
const FLEETING: [&str; 12] = [
    "DateTime",
    "Entries",
    "FlushCommands",
    "FlushRequests",
    "OtherRequests",
    "ReadBytes",
    "ReadCommands",
    "ReadRequests",
    "UsedBytes",
    "WriteCommands",
    "WriteRequests",
    "WrittenBytes",
];

fn found(document: &Value) -> HttpReply {
    described(document).with("etag", version(document))
}

/// A document with a state that changes are conditional on, `state` in short.
fn versioned(document: Value, state: &str) -> HttpReply {
    let version = api_version::in_two_parts(state, &version(&document));
    of_version(document, version)
}

/// A document of this version.
fn of_version(mut document: Value, version: String) -> HttpReply {
    document["@odata.etag"] = version.as_str().into();
    described(&document).with("etag", version)
}

/// The version of a document.
fn version(document: &Value) -> String {
    let mut lasting = document.clone();
    forget_fleeting(&mut lasting);
    api_version::hashed(&lasting.to_string())
}

fn forget_fleeting(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !FLEETING.contains(&key.as_str()) || value.is_object());
            map.values_mut().for_each(forget_fleeting);
        }
        Value::Array(list) => list.iter_mut().for_each(forget_fleeting),
        _ => {}
    }
}

/// A client that has this version of a document already is told so, without the document.
pub fn unless_known(reply: HttpReply, known: Option<&str>) -> HttpReply {
    let version = reply.headers.iter().find(|(name, _)| *name == "etag").map(|(_, version)| version);
    let is_known = known.zip(version).is_some_and(|(known, version)| api_version::has_document(known, version));
    if reply.status != 200 || !is_known {
        return reply;
    }
    let headers = reply.headers.into_iter().filter(|(name, _)| matches!(*name, "etag" | "odata-version")).collect();
    HttpReply { status: 304, headers, body: Vec::new() }
}

/// A request that names a version is carried out for that version only.
fn check_version(request: &HttpRequest, document: &Value) -> Result<(), Problem> {
    let Some(wanted) = request.header("if-match") else { return Ok(()) };
    let now = version(document);
    if api_version::has_state(wanted, &now) {
        return Ok(());
    }
    Err(Problem::new(412, "stale", format!("this has changed since it was read (version {now} now); read it again")))
}

/// The body as an object, without OData's own words for it.
fn object(request: &HttpRequest) -> Result<Map<String, Value>, Problem> {
    match request.input()? {
        Value::Object(mut map) => {
            map.retain(|key, _| !key.starts_with("@odata."));
            Ok(map)
        }
        other => Err(Problem::bad(format!("the body is {other}, not an object"))),
    }
}

/// There is nothing to do.
fn no_operation(hint: &str) -> Problem {
    Problem::new(400, "no-operation", format!("nothing to change: use {hint}"))
}

/// A text of a body.
fn text(name: &str, value: &Value) -> Result<String, Problem> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| refused("property-type", name, value, "it is not a string"))
}

/// A number of this range. `why` is told if it is not one.
fn number(name: &str, value: &Value, range: impl RangeBounds<u64>, why: &str) -> Result<u64, Problem> {
    let word = if value.is_number() { "property-range" } else { "property-type" };
    value.as_u64().filter(|number| range.contains(number)).ok_or_else(|| refused(word, name, value, why))
}

/// The members of an object.
fn members<'a>(name: &str, value: &'a Value) -> Result<&'a Map<String, Value>, Problem> {
    value.as_object().ok_or_else(|| refused("property-type", name, value, "it is not an object"))
}

/// A document, with the address of its schema.
fn described(document: &Value) -> HttpReply {
    let reply = HttpReply::json(200, document).with("odata-version", "4.0");
    let kind = document["@odata.type"].as_str().unwrap_or_default().trim_start_matches('#');
    let file: Vec<&str> = kind.split('.').collect();
    match file.split_last() {
        Some((_, [space, ..])) if oem::is_own(space) => {
            reply.with("link", format!("<{}/{}_v1.xml>; rel=describedby", oem::FOLDER, space))
        }
        Some((_, space)) if !space.is_empty() => {
            reply.with("link", format!("<{DMTF}/{}.json>; rel=describedby", space.join(".")))
        }
        _ => reply,
    }
}

fn resource(path: &str, kind: &str, id: &str, name: &str) -> Value {
    // Types of our own have the version `v1_0_0`.
    let version = TYPES.iter().find(|(known, _)| *known == kind).map_or("v1_0_0", |(_, version)| version);
    json!({"@odata.id": path, "@odata.type": format!("#{kind}.{version}.{kind}"), "Id": id, "Name": name})
}

fn collection(path: &str, kind: &str, name: &str, members: &[String]) -> Value {
    json!({
        "@odata.id": path,
        "@odata.type": format!("#{kind}.{kind}"),
        "Name": name,
        "Members": members.iter().map(|path| link(path)).collect::<Vec<_>>(),
        "Members@odata.count": members.len(),
    })
}

fn link(path: &str) -> Value {
    json!({ "@odata.id": path })
}

/// A document with these properties more.
fn with(mut document: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (document.as_object_mut(), more) {
        fields.extend(more);
    }
    document
}

/// The versions that there are.
pub fn versions(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&json!({"v1": "/redfish/v1/"})))
}

pub fn root(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let uuid = dashed(&request.state.service_uuid);
    let document = resource("/redfish/v1/", "ServiceRoot", "RootService", "openraid");
    Ok(found(&with(
        document,
        json!({
            "RedfishVersion": "1.19.0",
            "UUID": uuid,
            "Product": "openraid",
            "Systems": link("/redfish/v1/Systems"),
            "Chassis": link(chassis::ALL),
            "Managers": link("/redfish/v1/Managers"),
            "SessionService": link("/redfish/v1/SessionService"),
            "AccountService": link("/redfish/v1/AccountService"),
            "Tasks": link("/redfish/v1/TaskService"),
            "EventService": link("/redfish/v1/EventService"),
            "TelemetryService": link(telemetry::SERVICE),
            "Registries": link("/redfish/v1/Registries"),
            "JsonSchemas": link("/redfish/v1/JsonSchemas"),
            "Links": {"Sessions": link(sessions::SESSIONS), "ManagerProvidingService": link("/redfish/v1/Managers/1")},
            "ProtocolFeaturesSupported": {
                "FilterQuery": false, "SelectQuery": false, "ExcerptQuery": false, "OnlyMemberQuery": false,
                "ExpandQuery": {"ExpandAll": false, "Levels": false, "Links": false, "NoLinks": false},
            },
        }),
    )))
}

/// The service document of OData.
pub fn odata(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let entry = |name: &str, path: &str| json!({"name": name, "kind": "Singleton", "url": path});
    Ok(found(&json!({
        "@odata.context": "/redfish/v1/$metadata",
        "value": [
            entry("Service", "/redfish/v1/"),
            entry("Systems", "/redfish/v1/Systems"),
            entry("Chassis", chassis::ALL),
            entry("Managers", "/redfish/v1/Managers"),
            entry("SessionService", "/redfish/v1/SessionService"),
            entry("Sessions", sessions::SESSIONS),
            entry("AccountService", "/redfish/v1/AccountService"),
            entry("Tasks", "/redfish/v1/TaskService"),
            entry("EventService", "/redfish/v1/EventService"),
            entry("TelemetryService", telemetry::SERVICE),
            entry("Registries", "/redfish/v1/Registries"),
            entry("JsonSchemas", "/redfish/v1/JsonSchemas"),
        ],
    })))
}

/// The schemas that are used.
pub fn metadata(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<edmx:Edmx xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\" \
         Version=\"4.0\">\n",
    );
    let mut refer = |folder: &str, file: &str, spaces: &[String]| {
        text.push_str(&format!("<edmx:Reference Uri=\"{folder}/{file}_v1.xml\">\n"));
        spaces.iter().for_each(|space| text.push_str(&format!("  <edmx:Include Namespace=\"{space}\"/>\n")));
        text.push_str("</edmx:Reference>\n");
    };
    for (kind, version) in TYPES {
        refer(DMTF, kind, &[kind.into(), format!("{kind}.{version}")]);
    }
    COLLECTIONS.iter().for_each(|kind| refer(DMTF, kind, &[(*kind).to_owned()]));
    refer(DMTF, "RedfishExtensions", &["RedfishExtensions.v1_0_0".into()]);
    for (kind, _) in oem::SCHEMAS {
        refer(oem::FOLDER, kind, &[kind.into(), format!("{kind}.v1_0_0")]);
    }
    text.push_str(
        "<edmx:DataServices>\n<Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"Service\">\n\
         <EntityContainer Name=\"Service\" Extends=\"ServiceRoot.v1_16_0.ServiceContainer\"/>\n</Schema>\n\
         </edmx:DataServices>\n</edmx:Edmx>\n",
    );
    Ok(HttpReply::text("application/xml", text).with("odata-version", "4.0"))
}

/// md writes a UUID in four groups of eight digits.
fn dashed(uuid: &str) -> String {
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    if digits.len() != 32 {
        return uuid.into();
    }
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Is this a path of Redfish? Errors have another form there.
pub fn is_own(path: &str) -> bool {
    path == "/redfish" || path.starts_with("/redfish/") || path == ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_gets_another_version_by_progress_and_none_by_time_and_counters() {
        let at = |percent: u64, time: &str, bytes: u64| {
            json!({
                "DateTime": time,
                "Entries": {"@odata.id": "/x"},
                "Operations": [{"PercentageComplete": percent}],
                "Oem": {"Openraid": {"Host": {"ReadBytes": bytes}, "Survives": 1}},
            })
        };
        let first = at(1, "2026-01-01T00:00:00Z", 5);
        assert_eq!(version(&first), version(&at(1, "2026-01-01T00:00:01Z", 6)));
        let later = at(2, "2026-01-01T00:00:00Z", 5);
        assert_ne!(version(&first), version(&later));
        let tags = [first, later].map(|document_state| versioned(document_state, "\"5\""));
        let tag =
            |reply: &HttpReply| reply.headers.iter().find(|(name, _)| *name == "etag").expect("a version").1.clone();
        assert_ne!(tag(&tags[0]), tag(&tags[1]));
        // A change that was decided before the progress is carried out.
        assert!(api_version::has_state(&tag(&tags[0]), "\"5\""));
    }
}
