//! The one `Storage`: a controller, drives, volumes.

use std::fs;
use std::path::Path;

use openraid_status::uri::encoded;
use openraid_status::{ArrayModel, HealthWord, MemberModel, PolicyWord, StateWord, TaskWord};
use serde_json::{json, Value};

use super::{chassis, collection, conditions, dashed, found, link, oem, rates, resource, with};
use crate::api::state_version;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::shared_state::ApiState;

/// The server as a `Storage`.
pub const STORAGE: &str = "/redfish/v1/Systems/1/Storage/openraid";
pub const VOLUMES: &str = "/redfish/v1/Systems/1/Storage/openraid/Volumes";
const DRIVES: &str = "/redfish/v1/Systems/1/Storage/openraid/Drives";
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

pub fn systems(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let path = "/redfish/v1/Systems";
    Ok(found(&collection(path, "ComputerSystemCollection", "Systems", &[format!("{path}/1")])))
}

pub(super) const fn health(word: HealthWord) -> &'static str {
    match word {
        HealthWord::Optimal => "OK",
        HealthWord::Degraded => "Warning",
        HealthWord::Failed | HealthWord::Offline => "Critical",
    }
}

/// The health of the worst array.
pub(super) fn worst(arrays: &[ArrayModel]) -> &'static str {
    health(arrays.iter().map(|array| array.health).max().unwrap_or(HealthWord::Optimal))
}

pub fn system(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let arrays = request.state.arrays()?;
    let document = resource("/redfish/v1/Systems/1", "ComputerSystem", "1", "The machine of this server");
    let machine = &request.state.machine;
    let document = with(document, chassis::identity(machine));
    let document = with(document, chassis::known(&[("HostName", &machine.host)]));
    Ok(found(&with(
        document,
        json!({
            "SystemType": "OS",
            "PowerState": "On",
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": worst(&arrays)},
            "Storage": link("/redfish/v1/Systems/1/Storage"),
            "Links": {
                "Chassis": [link(chassis::ONE)],
                "Chassis@odata.count": 1,
                "ManagedBy": [link("/redfish/v1/Managers/1")],
                "ManagedBy@odata.count": 1,
            },
        }),
    )))
}

/// All storages: this server.
pub fn storages(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let path = "/redfish/v1/Systems/1/Storage";
    Ok(found(&collection(path, "StorageCollection", "Storage", &[STORAGE.into()])))
}

/// The part of a path that names a drive: the name of a link that the system made from model and serial number, or of a device; else
/// the file's name with digits of the whole path, because folders may have equal names.
pub fn drive_id(spec: &str) -> String {
    let name = spec.rsplit('/').find(|part| !part.is_empty()).unwrap_or("drive");
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect();
    let folder = spec.strip_suffix(name).unwrap_or_default();
    if plain == name && !name.starts_with('.') && matches!(folder, "/dev/disk/by-id/" | "/dev/") {
        return plain;
    }
    format!("{}-{}", plain.trim_start_matches('.'), &state_version::hashed(spec)[1..9])
}

pub fn volume_path(array: &str) -> String {
    format!("{VOLUMES}/{}", encoded(array, b""))
}

pub fn drive_path(spec: &str) -> String {
    format!("{DRIVES}/{}", drive_id(spec))
}

/// A drive: a member, or one that is free.
pub struct Drive {
    /// Its path or address.
    pub spec: String,
    /// Its array and what that says of it, if it belongs to one.
    pub owner: Option<(String, MemberModel)>,
}

impl Drive {
    /// The part of a path that names it.
    pub fn id(&self) -> String {
        drive_id(&self.spec)
    }

    pub fn path(&self) -> String {
        drive_path(&self.spec)
    }
}

/// Members of an array that are there.
fn members(array: &ArrayModel) -> Vec<Drive> {
    let name = |member: &MemberModel| {
        member.member.clone().unwrap_or_else(|| format!("{}-{}", array.name, member.drive.unwrap_or_default()))
    };
    array
        .attached()
        .map(|member| Drive { spec: name(member), owner: Some((array.name.clone(), member.clone())) })
        .collect()
}

/// All drives: the members, then drives without an array that the configuration names.
///
/// # Errors
/// The server is ending.
pub fn drives(state: &ApiState) -> Result<Vec<Drive>, Problem> {
    let mut all: Vec<Drive> = state.arrays()?.iter().flat_map(members).collect();
    for spec in &state.drives {
        if !all.iter().any(|drive| drive.spec == *spec) {
            all.push(Drive { spec: spec.clone(), owner: None });
        }
    }
    Ok(all)
}

/// Links to these paths.
pub(super) fn links(paths: &[String]) -> Value {
    paths.iter().map(|path| link(path)).collect()
}

pub fn storage(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let arrays = request.state.arrays()?;
    let paths: Vec<String> = drives(&request.state)?.iter().map(Drive::path).collect();
    let document = resource(STORAGE, "Storage", "openraid", "openraid");
    Ok(found(&with(
        document,
        json!({
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": worst(&arrays)},
            "Controllers": link(&format!("{STORAGE}/Controllers")),
            "Drives": links(&paths),
            "Drives@odata.count": paths.len(),
            "Volumes": link(VOLUMES),
            "Oem": {"Openraid": oem::of_storage(&request.state)?},
            "Actions": {"Oem": {"#OpenraidStorage.Predict": {"target": oem::PREDICT}}},
        }),
    )))
}

/// Controllers: this program.
pub fn controllers(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let path = format!("{STORAGE}/Controllers");
    Ok(found(&collection(&path, "StorageControllerCollection", "Controllers", &[format!("{path}/1")])))
}

pub fn controller(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(controller_reply(&controller_document(&request.state)?))
}

/// The controller, with its version.
pub fn controller_reply(document: &Value) -> HttpReply {
    super::of_version(document.clone(), super::version(document))
}

/// The controller as a document.
///
/// # Errors
/// The server is ending.
pub fn controller_document(state: &ApiState) -> Result<Value, Problem> {
    let arrays = state.arrays()?;
    let cache = arrays.iter().find_map(|array| array.cache.as_ref()).map_or(0, |cache| cache.size_bytes);
    let document = resource(&format!("{STORAGE}/Controllers/1"), "StorageController", "1", "openraid");
    Ok(with(
        document,
        json!({
            "Manufacturer": "openraid",
            "Model": "openraid",
            "FirmwareVersion": env!("CARGO_PKG_VERSION"),
            "Status": {"State": "Enabled", "Health": "OK"},
            "CacheSummary": {"TotalCacheSizeMiB": cache >> 20},
            "SupportedRAIDTypes": LEVELS.map(|(level, _)| level),
            "ControllerRates": rates::of(&arrays),
            "Oem": {"Openraid": rates::patrol(state)},
        }),
    ))
}

/// The drive that a path names.
///
/// # Errors
/// There is none.
pub fn drive_named(state: &ApiState, id: &str) -> Result<Drive, Problem> {
    let found = drives(state)?.into_iter().find(|drive| drive.id() == id);
    found.ok_or_else(|| Problem::missing(format!("there is no drive {id:?}; see Drives of {STORAGE}")))
}

/// The size of a file or block device.
fn size(path: &Path) -> Option<u64> {
    let path = fs::canonicalize(path).ok()?;
    if let Ok(device) = path.strip_prefix("/dev") {
        let sectors = fs::read_to_string(Path::new("/sys/class/block").join(device).join("size")).ok()?;
        return Some(sectors.trim().parse::<u64>().ok()? * 512);
    }
    fs::metadata(path).ok().map(|data| data.len())
}

pub fn drive(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&drive_document(&drive_named(&request.state, &request.parts[0])?)))
}

/// A drive as a document.
pub fn drive_document(drive: &Drive) -> Value {
    let document = resource(&drive.path(), "Drive", &drive.id(), &drive.spec);
    let Some((array, member)) = &drive.owner else {
        let size = size(Path::new(&drive.spec));
        let state = if size.is_some() { "Enabled" } else { "Absent" };
        let health = if size.is_some() { "OK" } else { "Critical" };
        let mut more = json!({
            "Status": {"State": state, "Health": health},
            "HotspareType": "None",
            "Links": {"Chassis": link(chassis::ONE)},
        });
        if let Some(size) = size {
            more["CapacityBytes"] = size.into();
        }
        return with(document, more);
    };
    let (health, state, indicator) = match member.state {
        StateWord::InSync | StateWord::Spare | StateWord::Rebuilding if member.displaced.is_some() => {
            ("Critical", "Enabled", "PredictiveFailureAnalysis")
        }
        StateWord::InSync => ("OK", "Enabled", "OK"),
        StateWord::Spare => ("OK", "StandbySpare", "Hotspare"),
        StateWord::Rebuilding => ("Warning", "Updating", "Rebuild"),
        StateWord::Replaced => ("Warning", "Disabled", "OK"),
        StateWord::Missing | StateWord::Failing | StateWord::Faulty => ("Critical", "Disabled", "Fail"),
    };
    let mut more = json!({
        "Status": {"State": state, "Health": health},
        "StatusIndicator": indicator,
        "CapacityBytes": member.size_bytes,
        "HotspareType": if member.state == StateWord::Spare { "Dedicated" } else { "None" },
        "Links": {"Volumes": [link(&volume_path(array))], "Chassis": link(chassis::ONE)},
    });
    more["Oem"] = json!({"Openraid": oem::of_drive(member)});
    if let Some(located) = member.located {
        more["LocationIndicatorActive"] = located.into();
    }
    let known = chassis::known(&[("SerialNumber", &member.serial), ("Model", &member.model)]);
    with(with(document, known), more)
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
    use super::{drive_id, volume_path, VOLUMES};

    #[test]
    fn the_name_of_a_volume_is_encoded_in_its_path() {
        for (name, path) in [("data", "data"), ("my data 100%", "my%20data%20100%25"), ("\u{e9}", "%C3%A9")] {
            assert_eq!(volume_path(name), format!("{VOLUMES}/{path}"));
        }
    }

    #[test]
    fn drives_of_equal_names_in_two_folders_have_two_ids() {
        assert_eq!(drive_id("/dev/disk/by-id/ata-WDC_1"), "ata-WDC_1");
        assert_eq!(drive_id("/dev/sdb"), "sdb");
        let (a, b) = (drive_id("/srv/a/d0"), drive_id("/srv/b/d0"));
        assert!(a.starts_with("d0-") && b.starts_with("d0-") && a != b && a.len() == 11, "{a} {b}");
        for odd in ["/dev/..", "nbd://host:10809/ex port?x=1", "/", "", "/srv/a b", "/dev/disk/by-id/x y"] {
            let id = drive_id(odd);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            assert!(!id.is_empty() && !id.starts_with('.') && id.chars().all(is_plain), "{odd}: {id}");
        }
    }
}
