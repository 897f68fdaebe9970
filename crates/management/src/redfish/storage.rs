//! The system, its one `Storage`, and the controller of that: this program.

use openraid_status::{ArrayModel, HealthWord};
use serde_json::{json, Value};

use super::drives::{drives, Drive};
use super::volumes::{LEVELS, VOLUMES};
use super::{chassis, collection, found, link, oem, rates, resource, with};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::shared_state::ApiState;

/// The server as a `Storage`.
pub const STORAGE: &str = "/redfish/v1/Systems/1/Storage/openraid";

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
