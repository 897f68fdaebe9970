//! The drives of the `Storage`: the members of all arrays, and the drives that are free for new ones.

use std::fs;
use std::path::Path;

use openraid_status::{ArrayModel, MemberModel, StateWord};
use serde_json::{json, Value};

use super::storage::STORAGE;
use super::volumes::volume_path;
use super::{chassis, found, link, oem, resource, with};
use crate::api::state_version;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::shared_state::ApiState;

const DRIVES: &str = "/redfish/v1/Systems/1/Storage/openraid/Drives";

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
pub(super) fn members(array: &ArrayModel) -> Vec<Drive> {
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

#[cfg(test)]
mod tests {
    use super::drive_id;

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
