//! What has no word of Redfish: settings, decisions and their reasons, the stripe map, predictions, the journal. Each is what the
//! API gives, under `Oem.Openraid`, with schemas that the service has.

use openraid_status::{ArrayModel, MemberModel};
use serde_json::{json, Map, Value};

use super::{changes, described, found, link, members, number, object, property, refused, resource, volumes, with};
use crate::api::arrays::named;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::lab::{PredictedSpeed, PredictionInput};
use crate::shared_state::ApiState;

/// The folder of our own schemas.
pub const FOLDER: &str = "/redfish/v1/Schemas";
/// Predicts a volume.
pub const PREDICT: &str = "/redfish/v1/Systems/1/Storage/openraid/Actions/Oem/OpenraidStorage.Predict";
/// Our own schemas, as CSDL.
pub const SCHEMAS: [(&str, &str); 5] = [
    ("OpenraidStorage", include_str!("schemas/OpenraidStorage_v1.xml")),
    ("OpenraidStorageController", include_str!("schemas/OpenraidStorageController_v1.xml")),
    ("OpenraidVolume", include_str!("schemas/OpenraidVolume_v1.xml")),
    ("OpenraidDrive", include_str!("schemas/OpenraidDrive_v1.xml")),
    ("OpenraidExplanation", include_str!("schemas/OpenraidExplanation_v1.xml")),
];

/// Is this the namespace of one of our own schemas?
pub fn is_own(space: &str) -> bool {
    SCHEMAS.iter().any(|(kind, _)| *kind == space)
}

/// A schema of our own.
pub fn schema(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let file = request.parts[0].as_str();
    let known = SCHEMAS.iter().find(|(kind, _)| file.strip_suffix("_v1.xml") == Some(kind));
    let (_, text) = known.ok_or_else(|| Problem::missing(format!("there is no schema {file:?}; see $metadata")))?;
    Ok(HttpReply::text("application/xml", *text).with("odata-version", "4.0"))
}

/// `Oem.Openraid` of the storage: the journal, if there is one.
///
/// # Errors
/// The server is ending.
pub fn of_storage(state: &ApiState) -> Result<Value, Problem> {
    let mut oem = json!({"@odata.type": "#OpenraidStorage.v1_0_0.Openraid"});
    if let Some(journal) = state.controller.journal()? {
        let device =
            |device: &openraid_status::JournalDeviceModel| json!({"Device": device.device, "Works": device.works});
        oem["Journal"] = json!({
            "State": journal.state,
            "Trouble": journal.trouble,
            "RingBytes": journal.ring_bytes,
            "UsedBytes": journal.used_bytes,
            "Entries": journal.entries,
            "Devices": journal.devices.iter().map(device).collect::<Vec<_>>(),
        });
    }
    Ok(oem)
}

/// `Oem.Openraid` of a volume.
pub fn of_volume(array: &ArrayModel, path: &str) -> Value {
    let host = &array.host;
    json!({
        "@odata.type": "#OpenraidVolume.v1_0_0.Openraid",
        "Survives": array.survives,
        "Settings": array.settings,
        "Explanation": link(&format!("{path}/Oem/Openraid/Explanation")),
        "Host": {
            "ReadRequests": host.reads,
            "WriteRequests": host.writes,
            "FlushRequests": host.flushes,
            "OtherRequests": host.others,
            "ReadBytes": host.read_bytes,
            "WrittenBytes": host.written_bytes,
        },
    })
}

/// `Oem.Openraid` of a drive that belongs to a volume.
pub fn of_drive(member: &MemberModel) -> Value {
    json!({
        "@odata.type": "#OpenraidDrive.v1_0_0.Openraid",
        "ReadCommands": member.reads,
        "WriteCommands": member.writes,
        "FlushCommands": member.flushes,
        "ReadBytes": member.read_bytes,
        "WrittenBytes": member.written_bytes,
        "MediaErrors": member.media_errors,
    })
}

/// Properties of `Oem.Openraid` that a volume is to get.
#[derive(Default)]
pub struct OemChange {
    /// Settings by their names.
    pub settings: Vec<(String, String)>,
    /// The risk of the settings is accepted.
    pub accepts_risk: bool,
}

/// What a body asks of `Oem.Openraid`.
///
/// # Errors
/// It has something else.
pub fn asked(request: &HttpRequest, value: &Value) -> Result<OemChange, Problem> {
    let fields = value.get("Openraid").and_then(Value::as_object);
    let fields =
        fields.ok_or_else(|| property("property-value", "Oem", "this service knows Oem.Openraid, an object"))?;
    let mut change = OemChange::default();
    for (key, value) in fields {
        let name = format!("Oem.Openraid.{key}");
        match key.as_str() {
            "@odata.type" => {}
            "Settings" => change.settings = settings(request, value)?,
            "AcceptRisk" => {
                let risk = value.as_bool();
                change.accepts_risk =
                    risk.ok_or_else(|| refused("property-type", &name, value, "use true or false"))?;
            }
            "Survives" | "Explanation" | "Host" => {
                return Err(property("property-read-only", &name, "it is not for clients to set"))
            }
            _ => return Err(property("property-unknown", &name, "use Settings, AcceptRisk")),
        }
    }
    Ok(change)
}

/// Settings, by the names that a document has for them.
fn settings(request: &HttpRequest, value: &Value) -> Result<Vec<(String, String)>, Problem> {
    let name = "Oem.Openraid.Settings";
    let known = request.state.controller.known_settings();
    let mut found = Vec::new();
    for (key, value) in members(name, value)? {
        let name = format!("{name}.{key}");
        let setting =
            known.iter().find(|setting| setting.name == *key || setting.name.replace(['.', '-'], "_") == *key);
        let Some(setting) = setting else {
            return Err(property("property-unknown", &name, "see /api/v1/settings/known"));
        };
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
            other => return Err(refused("property-type", &name, other, &format!("use {}", setting.values))),
        };
        found.push((setting.name.clone(), text));
    }
    // A profile goes first: the other settings differ from it.
    found.sort_by_key(|(key, _)| key != "profile");
    Ok(found)
}

/// The limit of an array now, as `openraid explain --json` has it, in words of Redfish.
pub fn of_limit(limit: &Value) -> Value {
    let part = |value: &Value| {
        json!({
            "Part": value["part"],
            "Name": value["name"],
            "BusyPercent": value["busy_percent"],
            "Commands": value["commands"],
            "ServiceNanoseconds": value["service_ns"],
            "QueuedNanoseconds": value["queued_ns"],
        })
    };
    let parts = limit["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    json!({
        "Part": limit["part"],
        "Text": limit["text"],
        "Suggestion": limit["knob"],
        "WindowMilliseconds": limit["window_ms"],
        "Requests": limit["requests"],
        "Bytes": limit["bytes"],
        "MeanNanoseconds": limit["mean_ns"],
        "Parts": parts.iter().map(part).collect::<Vec<_>>(),
    })
}

/// The decisions of an array, and its limit, as `openraid explain` has them.
pub fn explanation(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    let explanation = request.state.controller.explain(&array.name)?;
    let path = format!("{}/Oem/Openraid/Explanation", volumes::volume_path(&array.name));
    let list = |key: &str| explanation[key].as_array().cloned().unwrap_or_default();
    let reason = |reason: &Value| json!({"Reason": reason["reason"], "Text": reason["text"], "Count": reason["count"]});
    // `-` before the first request.
    let ratio = |key: &str| explanation[key].as_str().and_then(|text| text.parse::<f64>().ok());
    let document = resource(&path, "OpenraidExplanation", "Explanation", &format!("Decisions of {}", array.name));
    Ok(found(&with(
        document,
        json!({
            "MemberReadsPerHostRequest": ratio("member_reads_per_host_request"),
            "MemberWritesPerHostRequest": ratio("member_writes_per_host_request"),
            "Reasons": list("reasons").iter().map(reason).collect::<Vec<_>>(),
            "Limit": of_limit(&explanation["limit"]),
        }),
    )))
}

/// The members that hold a byte.
pub fn locate(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let action = "OpenraidVolume.Locate";
    let array = named(request)?;
    let body = object(request)?;
    if let Some(other) = body.keys().find(|key| *key != "OffsetBytes") {
        return Err(property("property-unknown", other, "use OffsetBytes"));
    }
    let Some(value) = body.get("OffsetBytes") else {
        let missing =
            Problem::new(400, "parameter-missing", format!("{action}: OffsetBytes is missing: a byte of the volume"));
        return Err(Problem { arguments: vec![action.into(), "OffsetBytes".into()], ..missing });
    };
    let why = format!("{} has {} bytes", array.name, array.size_bytes);
    let offset = number("OffsetBytes", value, ..array.size_bytes, &why)?;
    let place = request.state.controller.place(&array.name, offset)?;
    let member = |location: &crate::stripe_map::LocationModel| {
        json!({
            "Slot": location.slot,
            "Member": location.member,
            "Role": location.role,
            "OffsetBytes": location.member_offset_bytes,
        })
    };
    Ok(described(&json!({
        "@odata.type": "#OpenraidVolume.v1_0_0.Place",
        "OffsetBytes": place.offset_bytes,
        "Span": place.span,
        "Stripe": place.stripe,
        "Members": place.members.iter().map(member).collect::<Vec<_>>(),
    })))
}

/// Predicted figures of a volume that is not made. The parameters are the properties of a new volume, and `Load` and `DriveProfile`
/// below `Oem.Openraid`. While they are computed, the answer is 202: the client repeats the request.
pub fn predict(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let mut body = object(request)?;
    let (load, drive) = (taken(&mut body, "Load")?, taken(&mut body, "DriveProfile")?);
    let creation = changes::predicted(request, &body)?;
    let prediction = request.state.controller.predict(&PredictionInput { creation, load, drive })?;
    let speed = |speed: &Option<PredictedSpeed>| {
        speed.as_ref().map(|speed| json!({"RequestsPerSecond": speed.iops, "MeanMilliseconds": speed.mean_ms}))
    };
    let level = |level: &crate::lab::PredictedLevel| {
        json!({
            "Level": level.level,
            "Healthy": speed(&level.healthy),
            "Degraded": speed(&level.degraded),
            "Rebuilding": speed(&level.rebuilding),
            "RebuildHours": level.rebuild_hours,
            "RebuildUnderLoadHours": level.rebuild_loaded_hours,
            "Limit": level.limit,
            "Impossible": level.impossible,
        })
    };
    let reply = described(&json!({
        "@odata.type": "#OpenraidStorage.v1_0_0.Prediction",
        "IsPending": prediction.waits,
        "DriveProfile": prediction.drive,
        "Why": prediction.why,
        "Command": prediction.command,
        "Error": prediction.error,
        "Levels": prediction.levels.iter().map(level).collect::<Vec<_>>(),
    }));
    Ok(if prediction.waits { HttpReply { status: 202, ..reply }.with("retry-after", "1") } else { reply })
}

/// A text below `Oem.Openraid`, taken out of the body.
fn taken(body: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Problem> {
    let fields = body.get_mut("Oem").and_then(|oem| oem.get_mut("Openraid")).and_then(Value::as_object_mut);
    let value = fields.and_then(|fields| fields.remove(key));
    value.map(|value| super::text(&format!("Oem.Openraid.{key}"), &value)).transpose()
}
