//! Redfish, for reading: the same arrays in DMTF's words. Each array is a `Storage` with its drives, a controller and one volume.
//!
//! Changes are not offered here: stopping an array is no deletion in the sense of Redfish, and the API has everything.

use openraid_status::{ArrayModel, HealthWord, MemberModel, StateWord};
use serde::Deserialize;
use serde_json::{json, Value};
use utoipa::ToSchema;

use crate::api::session::by_password;
use crate::auth::sessions::Session;
use crate::http::reply::{Problem, Reply};
use crate::http::request::Request;

const ROOT: &str = "/redfish/v1";
const STORAGE: &str = "/redfish/v1/Systems/1/Storage";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
/// Types that the service has, for `$metadata`.
const TYPES: [(&str, &str); 8] = [
    ("ServiceRoot", "v1_16_0"),
    ("ComputerSystem", "v1_20_0"),
    ("Storage", "v1_15_0"),
    ("StorageController", "v1_7_0"),
    ("Drive", "v1_18_0"),
    ("Volume", "v1_10_0"),
    ("SessionService", "v1_1_9"),
    ("Session", "v1_7_0"),
];
const COLLECTIONS: [&str; 6] = [
    "ComputerSystemCollection",
    "StorageCollection",
    "StorageControllerCollection",
    "VolumeCollection",
    "SessionCollection",
    "DriveCollection",
];

/// A name and a password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The user's name.
    #[serde(rename = "UserName")]
    name: String,
    /// The password.
    #[serde(rename = "Password")]
    password: String,
}

/// An error as Redfish has it.
pub fn error(problem: &Problem) -> Reply {
    let message = json!({
        "@odata.type": "#Message.v1_1_2.Message",
        "MessageId": "Base.1.18.GeneralError",
        "Message": problem.text,
        "Severity": "Critical",
        "Resolution": problem.text,
    });
    let document = json!({"error": {
        "code": "Base.1.18.GeneralError",
        "message": problem.text,
        "@Message.ExtendedInfo": [message],
    }});
    problem.headers.iter().fold(Reply::json(problem.status, &document), |reply, (name, value)| reply.with(name, value))
}

/// Redfish ignores queries that it does not know, unless they begin with a dollar sign.
///
/// # Errors
/// There is such a one, or the client speaks another version of OData.
pub fn check(request: &Request) -> Result<(), Problem> {
    if let Some(version) = request.header("odata-version").filter(|version| *version != "4.0") {
        return Err(Problem::new(412, "odata-version", format!("OData-Version {version}: this service has 4.0")));
    }
    match request.query.iter().find(|(key, _)| key.starts_with('$')) {
        Some((key, _)) => Err(Problem::new(501, "query", format!("{key}: this service has no such query"))),
        None => Ok(()),
    }
}

fn found(document: &Value) -> Reply {
    described(document).with("allow", "GET, HEAD")
}

/// A document, with the address of its schema.
fn described(document: &Value) -> Reply {
    let reply = Reply::json(200, document).with("odata-version", "4.0");
    let kind = document["@odata.type"].as_str().unwrap_or_default().trim_start_matches('#');
    let file: Vec<&str> = kind.split('.').collect();
    match file.split_last() {
        Some((_, space)) if !space.is_empty() => reply
            .with("link", format!("<http://redfish.dmtf.org/schemas/v1/{}.json>; rel=describedby", space.join("."))),
        _ => reply,
    }
}

fn resource(path: &str, kind: &str, id: &str, name: &str) -> Value {
    let version = TYPES.iter().find(|(own, _)| *own == kind).map_or("v1_0_0", |(_, version)| version);
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
    if let (Some(own), Value::Object(more)) = (document.as_object_mut(), more) {
        own.extend(more);
    }
    document
}

/// The versions that there are.
pub fn versions(_: &Request) -> Result<Reply, Problem> {
    Ok(found(&json!({"v1": "/redfish/v1/"})))
}

/// The root.
pub fn root(request: &Request) -> Result<Reply, Problem> {
    let uuid = dashed(&request.state.service_uuid);
    let document = resource("/redfish/v1/", "ServiceRoot", "RootService", "openraid");
    Ok(found(&with(
        document,
        json!({
            "RedfishVersion": "1.19.0",
            "UUID": uuid,
            "Product": "openraid",
            "Systems": link("/redfish/v1/Systems"),
            "SessionService": link("/redfish/v1/SessionService"),
            "Links": {"Sessions": link(SESSIONS)},
            "ProtocolFeaturesSupported": {
                "FilterQuery": false, "SelectQuery": false, "ExcerptQuery": false, "OnlyMemberQuery": false,
                "ExpandQuery": {"ExpandAll": false, "Levels": false, "Links": false, "NoLinks": false},
            },
        }),
    )))
}

/// The service document of OData.
pub fn odata(_: &Request) -> Result<Reply, Problem> {
    let entry = |name: &str, path: &str| json!({"name": name, "kind": "Singleton", "url": path});
    Ok(found(&json!({
        "@odata.context": "/redfish/v1/$metadata",
        "value": [
            entry("Service", "/redfish/v1/"),
            entry("Systems", "/redfish/v1/Systems"),
            entry("SessionService", "/redfish/v1/SessionService"),
            entry("Sessions", SESSIONS),
        ],
    })))
}

/// The schemas that are used.
pub fn metadata(_: &Request) -> Result<Reply, Problem> {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<edmx:Edmx xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\" \
         Version=\"4.0\">\n",
    );
    let mut refer = |file: &str, spaces: &[String]| {
        text.push_str(&format!("<edmx:Reference Uri=\"http://redfish.dmtf.org/schemas/v1/{file}_v1.xml\">\n"));
        spaces.iter().for_each(|space| text.push_str(&format!("  <edmx:Include Namespace=\"{space}\"/>\n")));
        text.push_str("</edmx:Reference>\n");
    };
    for (kind, version) in TYPES {
        refer(kind, &[kind.into(), format!("{kind}.{version}")]);
    }
    COLLECTIONS.iter().for_each(|kind| refer(kind, &[(*kind).to_owned()]));
    refer("RedfishExtensions", &["RedfishExtensions.v1_0_0".into()]);
    text.push_str(
        "<edmx:DataServices>\n<Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"Service\">\n\
         <EntityContainer Name=\"Service\" Extends=\"ServiceRoot.v1_16_0.ServiceContainer\"/>\n</Schema>\n\
         </edmx:DataServices>\n</edmx:Edmx>\n",
    );
    Ok(Reply::text("application/xml", text).with("odata-version", "4.0"))
}

/// All systems: this one.
pub fn systems(_: &Request) -> Result<Reply, Problem> {
    let path = "/redfish/v1/Systems";
    Ok(found(&collection(path, "ComputerSystemCollection", "Systems", &[format!("{path}/1")])))
}

/// The system.
pub fn system(request: &Request) -> Result<Reply, Problem> {
    let arrays = request.state.arrays()?;
    let worst = arrays.iter().map(|array| array.health).max().unwrap_or(HealthWord::Optimal);
    let document = resource("/redfish/v1/Systems/1", "ComputerSystem", "1", "The machine of this server");
    Ok(found(&with(
        document,
        json!({
            "SystemType": "OS",
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": health(worst)},
            "Storage": link(STORAGE),
        }),
    )))
}

/// All arrays.
pub fn storages(request: &Request) -> Result<Reply, Problem> {
    let arrays = request.state.arrays()?;
    let paths: Vec<String> = arrays.iter().map(path_of).collect();
    Ok(found(&collection(STORAGE, "StorageCollection", "Arrays", &paths)))
}

fn path_of(array: &ArrayModel) -> String {
    format!("{STORAGE}/{}", array.name)
}

fn array(request: &Request) -> Result<ArrayModel, Problem> {
    crate::api::arrays::named(request)
}

const fn health(word: HealthWord) -> &'static str {
    match word {
        HealthWord::Optimal => "OK",
        HealthWord::Degraded => "Warning",
        HealthWord::Failed => "Critical",
    }
}

/// Members that are there, with their numbers in Redfish's paths.
fn drives(array: &ArrayModel) -> Vec<(String, &MemberModel)> {
    let members = array.sets().into_iter().flat_map(|set| &set.members);
    members.filter_map(|member| Some((member.drive?.to_string(), member))).collect()
}

fn drive_paths(array: &ArrayModel) -> Vec<String> {
    drives(array).iter().map(|(id, _)| format!("{}/Drives/{id}", path_of(array))).collect()
}

fn links(paths: &[String]) -> Value {
    paths.iter().map(|path| link(path)).collect()
}

/// An array.
pub fn storage(request: &Request) -> Result<Reply, Problem> {
    let array = array(request)?;
    let path = path_of(&array);
    let paths = drive_paths(&array);
    let document = resource(&path, "Storage", &array.name, &array.name);
    Ok(found(&with(
        document,
        json!({
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": health(array.health)},
            "Controllers": link(&format!("{path}/Controllers")),
            "Drives": links(&paths),
            "Drives@odata.count": paths.len(),
            "Volumes": link(&format!("{path}/Volumes")),
        }),
    )))
}

/// Controllers of an array: this program.
pub fn controllers(request: &Request) -> Result<Reply, Problem> {
    let path = format!("{}/Controllers", path_of(&array(request)?));
    Ok(found(&collection(&path, "StorageControllerCollection", "Controllers", &[format!("{path}/1")])))
}

/// The controller.
pub fn controller(request: &Request) -> Result<Reply, Problem> {
    let array = array(request)?;
    let document = resource(&format!("{}/Controllers/1", path_of(&array)), "StorageController", "1", "openraid");
    let rate = |bytes: u64| bytes / (1 << 20);
    Ok(found(&with(
        document,
        json!({
            "Manufacturer": "openraid",
            "Model": "openraid",
            "FirmwareVersion": env!("CARGO_PKG_VERSION"),
            "Status": {"State": "Enabled", "Health": "OK"},
            "CacheSummary": {"TotalCacheSizeMiB": array.cache.as_ref().map_or(0, |cache| rate(cache.size_bytes))},
            "SupportedRAIDTypes": ["None", "RAID0", "RAID1", "RAID4", "RAID5", "RAID6", "RAID10", "RAID50", "RAID60"],
        }),
    )))
}

/// A drive.
pub fn drive(request: &Request) -> Result<Reply, Problem> {
    let array = array(request)?;
    let id = request.parts.get(1).map(String::as_str).unwrap_or_default();
    let all = drives(&array);
    let member = all.iter().find(|(own, _)| own == id).map(|(_, member)| *member);
    let member = member.ok_or_else(|| Problem::missing(format!("{} has no drive {id}", array.name)))?;
    let (health, state, indicator) = match member.state {
        StateWord::InSync => ("OK", "Enabled", "OK"),
        StateWord::Spare => ("OK", "StandbySpare", "Hotspare"),
        StateWord::Rebuilding => ("Warning", "Updating", "Rebuild"),
        StateWord::Replaced => ("Warning", "Disabled", "OK"),
        StateWord::Missing | StateWord::Failing | StateWord::Faulty => ("Critical", "Disabled", "Fail"),
    };
    let path = path_of(&array);
    let name = member.member.clone().unwrap_or_default();
    let document = resource(&format!("{path}/Drives/{id}"), "Drive", id, &name);
    let mut more = json!({
        "Status": {"State": state, "Health": health},
        "StatusIndicator": indicator,
        "CapacityBytes": member.size_bytes,
        "HotspareType": if member.state == StateWord::Spare { "Dedicated" } else { "None" },
        "Links": {"Volumes": [link(&format!("{path}/Volumes/1"))]},
    });
    if let Some(serial) = &member.serial {
        more["SerialNumber"] = serial.as_str().into();
    }
    Ok(found(&with(document, more)))
}

/// Volumes of an array: one.
pub fn volumes(request: &Request) -> Result<Reply, Problem> {
    let path = format!("{}/Volumes", path_of(&array(request)?));
    Ok(found(&collection(&path, "VolumeCollection", "Volumes", &[format!("{path}/1")])))
}

/// A setting that is a word; empty if the array has none of this name.
fn setting<'a>(array: &'a ArrayModel, key: &str) -> &'a str {
    array.settings.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The volume.
pub fn volume(request: &Request) -> Result<Reply, Problem> {
    let array = array(request)?;
    let document = resource(&format!("{}/Volumes/1", path_of(&array)), "Volume", "1", &array.name);
    let state = if array.health == HealthWord::Failed { "Disabled" } else { "Enabled" };
    let operation = |task: &openraid_status::TaskModel| json!({"Operation": if task.kind.is_check() { "CheckConsistency" } else { "Rebuild" }, "PercentageComplete": task.percent()});
    let mut more = json!({
        "Status": {"State": state, "Health": health(array.health)},
        "RAIDType": raid_type(&array.level),
        "CapacityBytes": array.size_bytes,
        "BlockSizeBytes": array.block_bytes,
        "ReadCachePolicy": match setting(&array, "read_ahead") {
            "none" => "Off",
            "always" => "ReadAhead",
            _ => "AdaptiveReadAhead",
        },
        "WriteCachePolicy": match setting(&array, "write_cache") {
            "journal" => "ProtectedWriteBack",
            "volatile" => "UnprotectedWriteBack",
            _ => "WriteThrough",
        },
        "Operations": array.tasks().map(|(_, task)| operation(task)).collect::<Vec<_>>(),
        "Links": {"Drives": links(&drive_paths(&array))},
    });
    if let Some(chunk) = array.chunk_bytes {
        more["StripSizeBytes"] = chunk.into();
    }
    if let Some(uuid) = &array.uuid {
        more["Identifiers"] = json!([{"DurableName": dashed(uuid), "DurableNameFormat": "UUID"}]);
    }
    Ok(found(&with(document, more)))
}

fn raid_type(level: &str) -> &'static str {
    let known = ["RAID0", "RAID1", "RAID4", "RAID5", "RAID6", "RAID10", "RAID50", "RAID60"];
    known.into_iter().find(|own| own.eq_ignore_ascii_case(level)).unwrap_or("None")
}

/// md writes a UUID in four groups of eight digits.
fn dashed(uuid: &str) -> String {
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    if digits.len() != 32 {
        return uuid.into();
    }
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The session service.
pub fn session_service(_: &Request) -> Result<Reply, Problem> {
    let document = resource("/redfish/v1/SessionService", "SessionService", "SessionService", "Sessions");
    Ok(found(&with(
        document,
        json!({
            "ServiceEnabled": true,
            "SessionTimeout": crate::limits::SESSION_IDLE_MAX.as_secs(),
            "Status": {"State": "Enabled", "Health": "OK"},
            "Sessions": link(SESSIONS),
        }),
    )))
}

/// Sessions that the client may see: its own, and all of them for an administrator.
fn visible(request: &Request) -> Vec<Session> {
    let own = request.session.as_ref();
    let is_seen =
        |other: &Session| own.is_some_and(|own| own.role == crate::Role::Administrator || own.number == other.number);
    request.state.sessions.all().into_iter().filter(is_seen).collect()
}

/// All sessions.
pub fn sessions(request: &Request) -> Result<Reply, Problem> {
    let paths: Vec<String> = visible(request).iter().map(|session| format!("{SESSIONS}/{}", session.number)).collect();
    let reply = described(&collection(SESSIONS, "SessionCollection", "Sessions", &paths));
    Ok(reply.with("allow", "GET, HEAD, POST"))
}

fn session_document(session: &Session) -> Value {
    let (path, id) = (format!("{SESSIONS}/{}", session.number), session.number.to_string());
    with(resource(&path, "Session", &id, "A session"), json!({"UserName": session.user, "Password": null}))
}

/// One session.
pub fn session(request: &Request) -> Result<Reply, Problem> {
    let id = request.parts[0].clone();
    let known = visible(request).into_iter().find(|session| session.number.to_string() == id);
    let known = known.ok_or_else(|| Problem::missing(format!("there is no session {id}")))?;
    Ok(described(&session_document(&known)).with("allow", "GET, HEAD, DELETE"))
}

/// Sign in.
pub fn begin(request: &Request) -> Result<Reply, Problem> {
    let Credentials { name, password } = request.input()?;
    let (secret, session) = by_password(request, &name, &password)?;
    let reply = Reply::json(201, &session_document(&session)).with("odata-version", "4.0");
    Ok(reply.with("x-auth-token", secret).with("location", format!("{SESSIONS}/{}", session.number)))
}

/// Sign out.
pub fn end(request: &Request) -> Result<Reply, Problem> {
    let id = request.parts[0].clone();
    let known = visible(request).into_iter().find(|session| session.number.to_string() == id);
    let known = known.ok_or_else(|| Problem::missing(format!("there is no session {id}")))?;
    request.state.sessions.end(known.number);
    Ok(Reply::empty(204).with("odata-version", "4.0"))
}

/// Is this a path of Redfish? Errors have another form there.
pub fn is_own(path: &str) -> bool {
    path == "/redfish" || path.starts_with("/redfish/") || path == ROOT
}
