//! The volumes of the `Storage`: the arrays as documents.

use openraid_status::uri::encoded;
use openraid_status::{ArrayModel, HealthWord, PolicyWord, StateWord, TaskWord};
use serde_json::{json, Value};

use super::drives::{members, Drive};
use super::storage::{health, links};
use super::{collection, conditions, dashed, found, oem, resource, with};
use crate::api::state_version;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

pub const VOLUMES: &str = "/redfish/v1/Systems/1/Storage/openraid/Volumes";

/// RAID types, and the levels that `openraid create` has for them.
pub const LEVELS: [(&str, &str); 10] = [
    ("None", "single"),
    ("RAID0", "0"),
    ("RAID1", "1"),
    ("RAID1E", "1e"),
    ("RAID4", "4"),
    ("RAID5", "5"),
    ("RAID6", "6"),
    ("RAID10", "10"),
    ("RAID50", "50"),
    ("RAID60", "60"),
];

/// Words for a write cache, and the values of the setting `write.cache`.
pub const WRITE_CACHES: [(&str, &str); 3] =
    [("WriteThrough", "through"), ("ProtectedWriteBack", "journal"), ("UnprotectedWriteBack", "volatile")];

/// Words for read-ahead, and the values of the setting `read-ahead`.
pub const READ_AHEADS: [(&str, &str); 3] =
    [("Off", "none"), ("ReadAhead", "always"), ("AdaptiveReadAhead", "adaptive")];

pub fn volume_path(array: &str) -> String {
    format!("{VOLUMES}/{}", encoded(array, b""))
}

pub fn volumes(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let arrays = request.state.arrays()?;
    let paths: Vec<String> = arrays.iter().map(|array| volume_path(&array.name)).collect();
    let more = json!({"@Redfish.OperationApplyTimeSupport": {
        "@odata.type": "#Settings.v1_3_3.OperationApplyTimeSupport",
        "SupportedValues": ["Immediate"],
    }});
    Ok(found(&with(collection(VOLUMES, "VolumeCollection", "Volumes", &paths), more)))
}

/// A setting that is a word; empty if the array has none of this name.
fn setting<'a>(array: &'a ArrayModel, key: &str) -> &'a str {
    array.settings.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn word(table: &[(&'static str, &str)], value: &str, otherwise: &'static str) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or(otherwise, |(word, _)| word)
}

/// A volume, with the version of the array's state.
pub fn volume_reply(array: &ArrayModel) -> HttpReply {
    super::versioned(volume_document(array), &state_version::of(array))
}

pub fn volume(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(volume_reply(&crate::api::arrays::named(request)?))
}

fn operations(array: &ArrayModel) -> Value {
    let operation = |task: &openraid_status::TaskModel| {
        let is_new_level = array.shape.as_ref().is_some_and(|change| change.from.level != change.to.level);
        let name = match task.kind {
            TaskWord::Check | TaskWord::Repair => "CheckConsistency",
            TaskWord::Reshape if is_new_level => "ChangeRAIDType",
            TaskWord::Reshape => "Resize",
            TaskWord::Rebuild | TaskWord::Replace | TaskWord::Resync => "Rebuild",
        };
        json!({"Operation": name, "OperationName": task.kind.text(), "PercentageComplete": task.percent()})
    };
    array.tasks().map(|(_, task)| operation(task)).collect()
}

fn volume_document(array: &ArrayModel) -> Value {
    let path = volume_path(&array.name);
    let document = resource(&path, "Volume", &array.name, &array.name);
    let state = match array.health {
        HealthWord::Optimal => "Enabled",
        HealthWord::Degraded => "Degraded",
        HealthWord::Failed => "Disabled",
        HealthWord::Offline => "UnavailableOffline",
    };
    let is_spare = |drive: &&Drive| drive.owner.as_ref().is_some_and(|(_, member)| member.state == StateWord::Spare);
    let all = members(array);
    let (spares, active): (Vec<&Drive>, Vec<&Drive>) = all.iter().partition(is_spare);
    let paths = |drives: &[&Drive]| links(&drives.iter().map(|drive| drive.path()).collect::<Vec<_>>());
    let policy = word(&WRITE_CACHES, setting(array, "write_cache"), "WriteThrough");
    let mut more = json!({
        "Status": conditions::with_status(array, state, health(array.health)),
        "RAIDType": raid_type(&array.level.to_string()),
        "CapacityBytes": array.size_bytes,
        "BlockSizeBytes": array.block_bytes,
        "ReadCachePolicy": word(&READ_AHEADS, setting(array, "read_ahead"), "AdaptiveReadAhead"),
        "WriteCachePolicy": policy,
        "WriteHoleProtectionPolicy": match array.consistency_policy {
            Some(PolicyWord::ControllerJournal) => "Journaling",
            Some(PolicyWord::Ppl) => "DistributedLog",
            Some(PolicyWord::Resync | PolicyWord::Bitmap) | None => "Off",
        },
        "Operations": operations(array),
        "Links": {
            "Drives": paths(&active),
            "Drives@odata.count": active.len(),
            "DedicatedSpareDrives": paths(&spares),
            "DedicatedSpareDrives@odata.count": spares.len(),
        },
        "Actions": {
            "#Volume.ChangeRAIDLayout": {"target": format!("{path}/Actions/Volume.ChangeRAIDLayout")},
            "#Volume.CheckConsistency": {"target": format!("{path}/Actions/Volume.CheckConsistency")},
            "Oem": {
                "#OpenraidVolume.LimitCapacity": {"target": format!("{path}/Actions/Oem/OpenraidVolume.LimitCapacity")},
                "#OpenraidVolume.Locate": {"target": format!("{path}/Actions/Oem/OpenraidVolume.Locate")},
            },
        },
        "Oem": {"Openraid": oem::of_volume(array, &path)},
    });
    if policy != "WriteThrough" {
        let is_degraded = array.journal.as_ref().is_some_and(|journal| !journal.protected);
        let is_protected = policy == "ProtectedWriteBack";
        more["WriteCacheState"] = match (is_protected, is_degraded) {
            (true, true) => "Degraded",
            (true, false) => "Protected",
            (false, _) => "Unprotected",
        }
        .into();
    }
    if !array.spans.is_empty() {
        more["MediaSpanCount"] = array.spans.len().into();
    }
    if let Some(chunk) = array.chunk_bytes {
        more["StripSizeBytes"] = chunk.into();
    }
    if let Some(uuid) = &array.uuid {
        more["Identifiers"] = json!([{"DurableName": dashed(uuid), "DurableNameFormat": "UUID"}]);
    }
    with(document, more)
}

/// Has the document of a volume this property?
pub fn has_property(array: &ArrayModel, name: &str) -> bool {
    volume_document(array).get(name).is_some()
}

fn raid_type(level: &str) -> &'static str {
    LEVELS.iter().map(|(level, _)| *level).find(|known| known.eq_ignore_ascii_case(level)).unwrap_or("None")
}

#[cfg(test)]
mod tests {
    use super::{volume_path, VOLUMES};

    #[test]
    fn the_name_of_a_volume_is_encoded_in_its_path() {
        for (name, path) in [("data", "data"), ("my data 100%", "my%20data%20100%25"), ("\u{e9}", "%C3%A9")] {
            assert_eq!(volume_path(name), format!("{VOLUMES}/{path}"));
        }
    }
}
