//! The one chassis: the machine that holds the drives, by what its firmware says; and the lights of drives.

use openraid_status::Command;
use serde_json::{json, Value};

use super::drives::{drive_document, drive_named, drives, Drive};
use super::storage::{links, worst, STORAGE};
use super::{collection, found, link, object, property, refused, resource, with};
use crate::api::manage::answered;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::machine_facts::MachineIdentity;

/// All chassis.
pub const ALL: &str = "/redfish/v1/Chassis";
/// The chassis.
pub const ONE: &str = "/redfish/v1/Chassis/1";
const DRIVES: &str = "/redfish/v1/Chassis/1/Drives";
/// The light of a drive, by which a hand finds it.
const LIGHT: &str = "LocationIndicatorActive";

/// Properties whose values are known.
pub fn known(all: &[(&str, &Option<String>)]) -> Value {
    let known = all.iter().filter_map(|(name, value)| Some(((*name).to_owned(), json!(value.as_ref()?))));
    Value::Object(known.collect())
}

/// What the firmware says of the machine.
pub fn identity(machine: &MachineIdentity) -> Value {
    known(&[
        ("Manufacturer", &machine.vendor),
        ("Model", &machine.model),
        ("SerialNumber", &machine.serial),
        ("UUID", &machine.uuid),
    ])
}

/// All chassis: one.
pub fn all(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&collection(ALL, "ChassisCollection", "Chassis", &[ONE.into()])))
}

/// The paths of all drives.
fn paths(request: &HttpRequest) -> Result<Vec<String>, Problem> {
    Ok(drives(&request.state)?.iter().map(Drive::path).collect())
}

/// The chassis.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let machine = &request.state.machine;
    let arrays = request.state.arrays()?;
    let paths = paths(request)?;
    let document = with(resource(ONE, "Chassis", "1", "The machine of this server"), identity(machine));
    Ok(found(&with(
        document,
        json!({
            "ChassisType": machine.kind,
            "PowerState": "On",
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": worst(&arrays)},
            "Drives": link(DRIVES),
            "Links": {
                "ComputerSystems": [link("/redfish/v1/Systems/1")],
                "ComputerSystems@odata.count": 1,
                "ManagedBy": [link("/redfish/v1/Managers/1")],
                "ManagedBy@odata.count": 1,
                "Drives": links(&paths),
                "Drives@odata.count": paths.len(),
                "Storage": [link(STORAGE)],
                "Storage@odata.count": 1,
            },
        }),
    )))
}

pub fn all_drives(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&collection(DRIVES, "DriveCollection", "Drives", &paths(request)?)))
}

/// Change a drive: its light.
pub fn change_drive(request: &HttpRequest) -> Result<HttpReply, Problem> {
    request.state.forget_snapshot();
    let id = request.parts[0].as_str();
    let drive = drive_named(&request.state, id)?;
    let document = drive_document(&drive);
    let mut light = None;
    for (key, value) in object(request)? {
        match key.as_str() {
            LIGHT if document.get(LIGHT).is_some() => {
                let no_switch = || refused("property-type", LIGHT, &value, "use true or false");
                light = Some(value.as_bool().ok_or_else(no_switch)?);
            }
            LIGHT => {
                let why = "no program switches the light of this drive; `led` of the table [care] of the configuration file names one";
                return Err(property("property-unknown", LIGHT, why));
            }
            other if document.get(other).is_some() => {
                return Err(property("property-read-only", other, "it follows from the drive and its array"))
            }
            other => return Err(property("property-unknown", other, "a drive has no such property here")),
        }
    }
    let (Some(on), Some((array, _))) = (light, &drive.owner) else { return Err(super::no_operation(LIGHT)) };
    let command = Command::Locate { array: array.clone(), member: drive.spec.clone(), off: !on };
    let what = format!("locate {}{}", drive.spec, if on { "" } else { " --off" });
    answered(request, array, &what, request.state.controller.change(command))?;
    Ok(found(&drive_document(&drive_named(&request.state, id)?)))
}
