//! Changes of volumes: made, changed, taken out of service, checked.

use openraid_status::check_results::CheckWord;
use openraid_status::{ArrayModel, Command, StateWord, TaskWord};
use serde_json::{Map, Value};

use super::drives::{drive_id, drive_named, drives};
use super::volumes::{has_property, volume_path, volume_reply, LEVELS, READ_AHEADS, WRITE_CACHES};
use super::{no_operation, number, object, oem, property, refused, tasks, text};
use crate::api::manage::{answered, target};
use crate::controller::Creation;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::MEMBERS_MAX;

/// A new volume in the body of a request.
#[derive(Default)]
struct VolumeChange {
    name: Option<String>,
    level: Option<&'static str>,
    drives: Vec<String>,
    spares: Vec<String>,
    capacity: Option<u64>,
    chunk: Option<u64>,
    spans: Option<u16>,
    overwrite: bool,
    settings: Settings,
}

const NOT_ABOVE_0: &str = "it is not a number above 0";

/// Settings by their names.
type Settings = Vec<(String, String)>;

fn wrong(name: &str, why: impl AsRef<str>) -> Problem {
    property("property-value", name, why.as_ref())
}

/// The value of a setting for a word of Redfish.
fn setting(name: &str, value: &Value, table: &[(&str, &str)]) -> Result<String, Problem> {
    let word = text(name, value)?;
    let words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
    let found = table.iter().find(|(known, _)| *known == word).map(|(_, value)| (*value).to_owned());
    found.ok_or_else(|| refused("property-word", name, value, &format!("use {}", words.join(", "))))
}

/// The drives that links lead to.
fn linked(request: &HttpRequest, name: &str, value: &Value) -> Result<Vec<String>, Problem> {
    let all = value.as_array().ok_or_else(|| refused("property-type", name, value, "it is not a list"))?;
    if all.len() > MEMBERS_MAX {
        return Err(wrong(name, format!("at most {MEMBERS_MAX} drives")));
    }
    let mut specs = Vec::new();
    for entry in all {
        let path = entry["@odata.id"].as_str().ok_or_else(|| wrong(name, "each entry is {\"@odata.id\": \"PATH\"}"))?;
        let id = path.strip_prefix("/redfish/v1/Systems/1/Storage/openraid/Drives/");
        let drive = id.map(|id| drive_named(&request.state, id));
        let drive =
            drive.and_then(Result::ok).ok_or_else(|| wrong(name, format!("{path} is not a drive of this storage")))?;
        if specs.contains(&drive.spec) {
            return Err(wrong(name, format!("{path} is named twice")));
        }
        specs.push(drive.spec);
    }
    Ok(specs)
}

fn apply_time(value: &Value) -> Result<(), Problem> {
    match value.as_str() {
        Some("Immediate") => Ok(()),
        _ => Err(refused(
            "property-word",
            "@Redfish.OperationApplyTime",
            value,
            "everything is done at once; use \"Immediate\" or leave it out",
        )),
    }
}

/// Properties that Redfish does not define: `Oem.Openraid`.
fn oem(value: &Value, change: &mut VolumeChange) -> Result<(), Problem> {
    let oem = value.get("Openraid").and_then(Value::as_object);
    let oem = oem.ok_or_else(|| wrong("Oem", "this service knows Oem.Openraid, an object"))?;
    for (key, value) in oem {
        match key.as_str() {
            "@odata.type" => {}
            "Overwrite" => {
                let no_switch = || refused("property-type", "Oem.Openraid.Overwrite", value, "use true or false");
                change.overwrite = value.as_bool().ok_or_else(no_switch)?;
            }
            other => {
                let name = format!("Oem.Openraid.{other}");
                return Err(property("property-unknown", &name, "use Overwrite"));
            }
        }
    }
    Ok(())
}

fn links(request: &HttpRequest, value: &Value, change: &mut VolumeChange) -> Result<(), Problem> {
    let all = value.as_object().ok_or_else(|| refused("property-type", "Links", value, "it is not an object"))?;
    for (key, value) in all {
        let name = format!("Links.{key}");
        match key.as_str() {
            "Drives" => change.drives = linked(request, &name, value)?,
            "DedicatedSpareDrives" => change.spares = linked(request, &name, value)?,
            "Drives@odata.count" | "DedicatedSpareDrives@odata.count" => {}
            _ => return Err(property("property-unknown", &name, "use Drives, DedicatedSpareDrives")),
        }
    }
    Ok(())
}

fn asked(request: &HttpRequest, body: &Map<String, Value>) -> Result<VolumeChange, Problem> {
    let mut change = VolumeChange::default();
    for (key, value) in body {
        match key.as_str() {
            "Name" | "DisplayName" => change.name = Some(text(key, value)?),
            "RAIDType" => {
                let word = text(key, value)?;
                let level = LEVELS.iter().find(|(known, _)| *known == word);
                let types: Vec<&str> = LEVELS.iter().map(|(known, _)| *known).collect();
                let unknown = || refused("property-word", key, value, &format!("use {}", types.join(", ")));
                change.level = Some(level.ok_or_else(unknown)?.1);
            }
            "Links" => links(request, value, &mut change)?,
            "CapacityBytes" => change.capacity = Some(number(key, value, 1.., NOT_ABOVE_0)?),
            "MediaSpanCount" => {
                let spans = u16::try_from(number(key, value, 1.., NOT_ABOVE_0)?);
                let too_many = |_| refused("property-range", key, value, "more spans than an array may have");
                change.spans = Some(spans.map_err(too_many)?);
            }
            "VolumeUsage" if value == "Data" => {}
            "StripSizeBytes" => change.chunk = Some(number(key, value, 1.., NOT_ABOVE_0)?),
            "WriteCachePolicy" => {
                change.settings.push(("write.cache".into(), setting(key, value, &WRITE_CACHES)?));
            }
            "ReadCachePolicy" => change.settings.push(("read-ahead".into(), setting(key, value, &READ_AHEADS)?)),
            "InitializeMethod" if value == "Background" => {}
            "InitializeMethod" => {
                let why = "the first sync runs in the background and spares nothing; use \"Background\"";
                return Err(refused("property-word", key, value, why));
            }
            "@Redfish.OperationApplyTime" => apply_time(value)?,
            "Oem" => oem(value, &mut change)?,
            "Description" => {}
            _ => return Err(property("property-unknown", key, "a new volume has no such property here")),
        }
    }
    Ok(change)
}

/// `volume1`, or the first number after it that no array has.
fn free_name(request: &HttpRequest) -> Result<String, Problem> {
    let arrays = request.state.arrays()?;
    let is_free = |name: &String| !arrays.iter().any(|array| array.name == *name);
    let name = (1..).map(|number| format!("volume{number}")).find(is_free);
    name.ok_or_else(|| Problem::bad("no name is free"))
}

/// The array that a body describes, and its settings.
fn creation(request: &HttpRequest, body: &Map<String, Value>) -> Result<(Creation, Settings), Problem> {
    let change = asked(request, body)?;
    let missing = |name: &str| property("property-missing", name, "it is missing");
    let level = change.level.ok_or_else(|| missing("RAIDType"))?;
    if change.drives.is_empty() {
        return Err(missing("Links.Drives"));
    }
    let known = drives(&request.state)?;
    for spec in change.drives.iter().chain(&change.spares) {
        if let Some((array, _)) = known.iter().find(|drive| drive.spec == *spec).and_then(|drive| drive.owner.as_ref())
        {
            return Err(wrong("Links.Drives", format!("{} belongs to volume {array}", drive_id(spec))));
        }
    }
    let is_nested = level == "50" || level == "60";
    let (settings, capacity) = (change.settings, change.capacity);
    let creation = Creation {
        name: change.name.map_or_else(|| free_name(request), Ok)?,
        level: level.into(),
        members: change.drives,
        spares: change.spares,
        chunk: change.chunk.map(|bytes| bytes.to_string()),
        spans: change.spans.or(is_nested.then_some(2)),
        overwrite: change.overwrite,
    };
    if let Some(wanted) = capacity {
        let plan = request.state.controller.plan(&creation)?;
        if plan.size_bytes != wanted {
            let why = format!(
                "{wanted}: a volume takes its drives whole, which makes {} here; use that or leave it out",
                plan.size_bytes
            );
            return Err(wrong("CapacityBytes", why));
        }
    }
    Ok((creation, settings))
}

/// The array that a prediction is for: the properties of a new volume.
pub fn predicted(request: &HttpRequest, body: &Map<String, Value>) -> Result<Creation, Problem> {
    creation(request, body).map(|(creation, _)| creation)
}

/// Make a volume of drives that are free.
pub fn create(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let (creation, settings) = creation(request, &object(request)?)?;
    let what = format!("create, level {}, of {}", creation.level, creation.members.join(" "));
    let done = request.state.controller.create(&creation);
    answered(request, &creation.name, &what, done)?;
    let mut array = array(request, &creation.name)?;
    if !settings.is_empty() {
        set(request, &array, settings, true)?;
        array = self::array(request, &creation.name)?;
    }
    let reply = volume_reply(&array).with("location", volume_path(&creation.name));
    Ok(HttpReply { status: 201, ..reply })
}

fn array(request: &HttpRequest, name: &str) -> Result<ArrayModel, Problem> {
    let arrays = request.state.arrays()?;
    let found = arrays.iter().find(|array| array.name == name).cloned();
    found.ok_or_else(|| Problem::missing(format!("there is no volume {name}")))
}

/// Change settings. `yes`: the client has named the risk itself, as with the word UnprotectedWriteBack.
pub fn set(request: &HttpRequest, array: &ArrayModel, settings: Settings, yes: bool) -> Result<(), Problem> {
    let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let command = Command::Set { array: array.name.clone(), settings, yes };
    answered(request, &array.name, &format!("set {}", words.join(" ")), request.state.controller.change(command))
        .map(drop)
}

/// Add and remove spares, so that the array has these.
fn set_spares(request: &HttpRequest, array: &ArrayModel, wanted: &[String]) -> Result<(), Problem> {
    let members = array.sets().into_iter().flat_map(|set| &set.members);
    let spares: Vec<String> =
        members.filter(|member| member.state == StateWord::Spare).filter_map(|member| member.member.clone()).collect();
    let name = || array.name.clone();
    for spec in wanted.iter().filter(|spec| !spares.contains(spec)) {
        let command = Command::Add { array: name(), member: spec.clone(), span: None, overwrite: false, split: false };
        answered(request, &array.name, &format!("add {spec}"), request.state.controller.change(command))?;
    }
    for spec in spares.iter().filter(|spec| !wanted.contains(spec)) {
        let command = Command::Remove { array: name(), member: spec.clone(), spare: true, device: None };
        answered(request, &array.name, &format!("remove {spec}"), request.state.controller.change(command))?;
    }
    Ok(())
}

/// Change a volume: the policies of its caches, its spares, its name, which is a part of its address.
pub fn change(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let (mut settings, mut spares, mut name, mut of_oem) = (Vec::new(), None, None, oem::OemChange::default());
    for (key, value) in object(request)? {
        match key.as_str() {
            "WriteCachePolicy" => settings.push(("write.cache".to_owned(), setting(&key, &value, &WRITE_CACHES)?)),
            "ReadCachePolicy" => settings.push(("read-ahead".to_owned(), setting(&key, &value, &READ_AHEADS)?)),
            "Links" => {
                let mut change = VolumeChange::default();
                links(request, &value, &mut change)?;
                if value.get("Drives").is_some() {
                    let why = "members are replaced with `openraid replace` or the API";
                    return Err(property("property-read-only", "Links.Drives", why));
                }
                spares = value.get("DedicatedSpareDrives").map(|_| change.spares);
            }
            "@Redfish.OperationApplyTime" => apply_time(&value)?,
            "Oem" => of_oem = oem::asked(request, &value)?,
            "Name" | "DisplayName" if value == array.name.as_str() => {}
            "Name" | "DisplayName" => name = Some(text(&key, &value)?),
            other if has_property(&array, other) => {
                return Err(property("property-read-only", other, "it follows from the drives and the level"))
            }
            other => return Err(property("property-unknown", other, "a volume has no such property here")),
        }
    }
    if settings.is_empty() && spares.is_none() && name.is_none() && of_oem.settings.is_empty() {
        let all = "Name, WriteCachePolicy, ReadCachePolicy, Links.DedicatedSpareDrives, Oem.Openraid.Settings";
        return Err(no_operation(all));
    }
    if !settings.is_empty() {
        set(request, &array, settings, true)?;
    }
    if !of_oem.settings.is_empty() {
        set(request, &array, of_oem.settings, of_oem.accepts_risk)?;
    }
    if let Some(spares) = spares {
        set_spares(request, &array, &spares)?;
    }
    if let Some(to) = &name {
        let command = Command::Rename { array: array.name.clone(), to: to.clone() };
        answered(request, &array.name, &format!("rename to {to}"), request.state.controller.change(command))?;
    }
    Ok(volume_reply(&self::array(request, name.as_ref().unwrap_or(&array.name))?))
}

/// Let hosts have the first part of a volume, or all of it again. Nothing is lost.
pub fn limit_capacity(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let mut to = "max".to_owned();
    for (key, value) in object(request)? {
        match key.as_str() {
            "CapacityBytes" if value.is_null() => {}
            "CapacityBytes" => {
                let bytes = number(&key, &value, 1.., NOT_ABOVE_0)?;
                if !bytes.is_multiple_of(array.block_bytes) {
                    return Err(wrong(&key, format!("{bytes}: use whole blocks of {} bytes", array.block_bytes)));
                }
                to = bytes.to_string();
            }
            other => return Err(property("property-unknown", other, "use CapacityBytes")),
        }
    }
    let command = Command::LimitSize { array: array.name.clone(), to, yes: true };
    let what = command.change().map_or_else(String::new, |(_, what)| what);
    answered(request, &array.name, &what, request.state.controller.change(command))?;
    Ok(volume_reply(&self::array(request, &array.name)?))
}

/// Take a volume out of service, and forget it. Its drives keep their data.
pub fn delete(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let body = object(request)?;
    if let Some(value) = body.get("@Redfish.OperationApplyTime") {
        apply_time(value)?;
    }
    let clients = request.state.controller.clients(&array.name)?;
    let is_confirmed = body.get("Oem").map(|oem| &oem["Openraid"]["Confirm"]) == Some(&array.name.as_str().into());
    if clients > 0 && !is_confirmed {
        let text = format!(
            "{name} is in use: {clients} connected; they would get errors. End them first, or confirm with the body \
             {{\"Oem\": {{\"Openraid\": {{\"Confirm\": \"{name}\"}}}}}}",
            name = array.name,
            clients = if clients == 1 { "1 client is".to_owned() } else { format!("{clients} clients are") },
        );
        return Err(Problem::new(409, "in-use", text));
    }
    let done = request.state.controller.retire(&array.name, is_confirmed);
    answered(request, &array.name, "stop and forget", done)?;
    Ok(HttpReply::empty(204).with("odata-version", "4.0"))
}

/// Begin a check. The answer is the task.
pub fn check(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    for (key, value) in object(request)? {
        match key.as_str() {
            "@Redfish.OperationApplyTime" => apply_time(&value)?,
            other => return Err(property("property-unknown", other, "this action has no parameters")),
        }
    }
    let command = Command::Check { array: array.name.clone(), kind: CheckWord::Check };
    answered(request, &array.name, "check", request.state.controller.change(command))?;
    tasks::begun(&request.state, &array.name, TaskWord::Check)
}

/// Change the shape of a volume. `Drives` are all drives that it has afterwards. The answer is the task.
pub fn change_layout(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let (mut drives, mut level, mut chunk) = (None, None, None);
    for (key, value) in object(request)? {
        match key.as_str() {
            "Drives" => drives = Some(linked(request, &key, &value)?),
            "RAIDType" => {
                let word = text(&key, &value)?;
                let found = LEVELS.iter().find(|(known, _)| *known == word);
                let unknown = || refused("property-word", &key, &value, "use a RAID type of the controller");
                level = Some(found.ok_or_else(unknown)?.1.to_owned());
            }
            "StripSizeBytes" => chunk = Some(number(&key, &value, 1.., NOT_ABOVE_0)?.to_string()),
            "MediaSpanCount" if value == 1 => {}
            "@Redfish.OperationApplyTime" => apply_time(&value)?,
            other => return Err(property("property-unknown", other, "use Drives, RAIDType, StripSizeBytes")),
        }
    }
    let present = array.sets().into_iter().flat_map(|set| &set.members).filter(|member| member.slot.is_some());
    let present: Vec<&String> = present.filter_map(|member| member.member.as_ref()).collect();
    let mut members = Vec::new();
    let mut raid_devices = None;
    if let Some(drives) = drives {
        if let Some(lacks) = present.iter().find(|drive| !drives.contains(drive)) {
            let why = format!("Drives lacks {}, a drive of the volume: it must have all of them", drive_id(lacks));
            return Err(not_supported(CHANGE_LAYOUT, &why));
        }
        raid_devices = u16::try_from(drives.len()).ok();
        members = drives.into_iter().filter(|drive| !present.contains(&drive)).collect();
    }
    let command = Command::Reshape {
        array: array.name.clone(),
        members,
        raid_devices,
        level,
        chunk,
        layout: None,
        size: None,
        plan: false,
        overwrite: false,
        yes: true,
    };
    let what = command.change().map_or_else(String::new, |(_, what)| what);
    let done = request.state.controller.change(command);
    if let Err(refusal) = &done {
        let why = refusal.text.clone();
        let _ = answered(request, &array.name, &what, done);
        return Err(not_supported(CHANGE_LAYOUT, &why));
    }
    answered(request, &array.name, &what, done)?;
    tasks::begun(&request.state, &array.name, TaskWord::Reshape)
}

const CHANGE_LAYOUT: &str = "Volume.ChangeRAIDLayout";

/// An action that is not possible, with the reason.
fn not_supported(action: &str, why: &str) -> Problem {
    let refused = Problem::new(400, "action-not-supported", format!("{action}: {why}"));
    Problem { arguments: vec![action.into()], ..refused }
}

/// Initialising an array again would lose its data.
pub fn initialize(request: &HttpRequest) -> Result<HttpReply, Problem> {
    target(request)?;
    let why = "a volume is initialised in the background after it was made, and only then; to begin again, delete it and make \
               another one with Oem.Openraid.Overwrite";
    Err(not_supported("Volume.Initialize", why))
}
