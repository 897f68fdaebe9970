//! Metric reports: the figures of `/metrics` that Redfish has a form for, and the times of the last seconds. Each value is a property
//! of another document, which the report names.

use serde_json::{json, Value};

use super::drives::{self, Drive};
use super::{collection, found, link, oem, resource, time, with};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

pub const SERVICE: &str = "/redfish/v1/TelemetryService";
/// Its definitions of reports.
pub const DEFINITIONS: &str = "/redfish/v1/TelemetryService/MetricReportDefinitions";
pub const REPORTS: &str = "/redfish/v1/TelemetryService/MetricReports";

/// Reports: counters of volumes and of drives since the start, and the speed of volumes in the last seconds.
const KNOWN: [(&str, &str, &str, &[&str]); 3] = [
    (
        "Volumes",
        "Requests and bytes of clients",
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{Id}#/Oem/Openraid/Host",
        &["ReadRequests", "WriteRequests", "FlushRequests", "OtherRequests", "ReadBytes", "WrittenBytes"],
    ),
    (
        "Drives",
        "Commands and bytes of drives",
        "/redfish/v1/Systems/1/Storage/openraid/Drives/{Id}#/Oem/Openraid",
        &["ReadCommands", "WriteCommands", "FlushCommands", "ReadBytes", "WrittenBytes", "MediaErrors"],
    ),
    (
        "Speed",
        "Requests, bytes and mean time of the last seconds",
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{Id}/Oem/Openraid/Explanation#/Limit",
        &["WindowMilliseconds", "Requests", "Bytes", "MeanNanoseconds"],
    ),
];

/// The telemetry service.
pub fn service(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&with(
        resource(SERVICE, "TelemetryService", "TelemetryService", "Metrics"),
        json!({
            "ServiceEnabled": true,
            "Status": {"State": "Enabled", "Health": "OK"},
            "MaxReports": KNOWN.len(),
            "MetricReportDefinitions": link(DEFINITIONS),
            "MetricReports": link(REPORTS),
        }),
    )))
}

fn paths(folder: &str) -> Vec<String> {
    KNOWN.iter().map(|(id, ..)| format!("{folder}/{id}")).collect()
}

pub fn definitions(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let all = collection(DEFINITIONS, "MetricReportDefinitionCollection", "Definitions", &paths(DEFINITIONS));
    Ok(found(&all))
}

pub fn reports(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&collection(REPORTS, "MetricReportCollection", "Reports", &paths(REPORTS))))
}

type ReportKind = (&'static str, &'static str, &'static str, &'static [&'static str]);

fn known(request: &HttpRequest) -> Result<ReportKind, Problem> {
    let id = request.parts[0].as_str();
    let found = KNOWN.iter().find(|(known, ..)| *known == id).copied();
    found.ok_or_else(|| Problem::missing(format!("there is no report {id:?}; see {REPORTS}")))
}

/// A definition. A report is made when it is read.
pub fn definition(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let (id, name, place, figures) = known(request)?;
    let metric = |figure: &&str| json!({"MetricId": figure, "MetricProperties": [format!("{place}/{figure}")]});
    Ok(found(&with(
        resource(&format!("{DEFINITIONS}/{id}"), "MetricReportDefinition", id, name),
        json!({
            "MetricReportDefinitionType": "OnRequest",
            "MetricReportDefinitionEnabled": true,
            "ReportActions": ["LogToMetricReportsCollection"],
            "ReportUpdates": "Overwrite",
            "Status": {"State": "Enabled", "Health": "OK"},
            "Wildcards": [{"Name": "Id", "Values": ["*"]}],
            "Metrics": figures.iter().map(metric).collect::<Vec<_>>(),
            "MetricReport": link(&format!("{REPORTS}/{id}")),
        }),
    )))
}

/// The values of a report: what names its place, and the object that has its figures.
fn values(request: &HttpRequest, id: &str) -> Result<Vec<(String, Value)>, Problem> {
    let arrays = request.state.arrays()?;
    Ok(match id {
        "Volumes" => {
            let host =
                |array: &openraid_status::ArrayModel| (array.name.clone(), oem::of_volume(array, "")["Host"].clone());
            arrays.iter().map(host).collect()
        }
        "Drives" => {
            let drives = drives::drives(&request.state)?;
            let figures = |drive: &Drive| {
                let (_, member) = drive.owner.as_ref()?;
                Some((drive.id(), oem::of_drive(member)))
            };
            drives.iter().filter_map(figures).collect()
        }
        _ => {
            let mut all = Vec::new();
            for array in arrays.iter() {
                let limit = request.state.controller.limit(&array.name)?;
                all.push((array.name.clone(), oem::of_limit(&json!(limit))));
            }
            all
        }
    })
}

/// A report of now.
pub fn report(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let (id, name, place, figures) = known(request)?;
    let now = time::text(time::now());
    let mut all = Vec::new();
    for (id_of_part, object) in values(request, id)? {
        let place = place.replace("{Id}", &id_of_part);
        all.extend(figures.iter().map(|figure| {
            json!({
                "MetricId": figure,
                "MetricProperty": format!("{place}/{figure}"),
                "MetricValue": object[figure].to_string(),
                "Timestamp": now,
            })
        }));
    }
    Ok(found(&with(
        resource(&format!("{REPORTS}/{id}"), "MetricReport", id, name),
        json!({
            "Timestamp": now,
            "MetricReportDefinition": link(&format!("{DEFINITIONS}/{id}")),
            "MetricValues": all,
        }),
    )))
}
