//! Rates of the controller: what the settings `rebuild.rate` and `scrub.rate` of all arrays are in percent, and the rate of patrols.
//!
//! Redfish has percent of a controller's resources, the engine bytes of each member a second. One percent is 4 MiB a second, and 100
//! is without limit (`docs/decisions/redfish.md`).

use openraid_status::{ArrayModel, ScheduleWord};
use serde_json::{json, Value};

use super::{changes, check_version, members, no_operation, number, object, property, storage};
use crate::controller::ScheduleInput;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::shared_state::ApiState;

/// One percent, in bytes of each member a second. The defaults of both settings are then 50 and 25 percent.
const PERCENT_BYTES: u64 = 4 << 20;
/// Without limit.
const FULL: u64 = 100;
/// Redfish's name, the setting, and the setting's name in a document.
const RATES: [(&str, &str, &str); 2] = [
    ("RebuildRatePercent", "rebuild.rate", "rebuild_rate"),
    ("ConsistencyCheckRatePercent", "scrub.rate", "scrub_rate"),
];
const PATROL: &str = "PatrolRateBytesPerSecond";

/// The rate of an array in percent: 1 to 99, or 100 without limit.
fn percent(array: &ArrayModel, key: &str) -> Option<u64> {
    let bytes = array.settings.get(key)?.as_u64()?;
    Some(if bytes == 0 { FULL } else { (bytes / PERCENT_BYTES).clamp(1, FULL - 1) })
}

/// The value that all of them have; none if they differ, or there are none.
fn common(mut values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// Arrays that have background work. A failed one has none, and takes no settings.
fn working(arrays: &[ArrayModel]) -> impl Iterator<Item = &ArrayModel> {
    arrays.iter().filter(|array| array.is_usable())
}

/// `ControllerRates`. A rate in which the arrays differ is null.
pub fn of(arrays: &[ArrayModel]) -> Value {
    let rate = |(name, _, key): &(&str, &str, &str)| {
        ((*name).to_owned(), json!(common(working(arrays).map(|array| percent(array, key)))))
    };
    Value::Object(RATES.iter().map(rate).collect())
}

/// The rate of patrol reads, which schedules have; null if they differ, or there are none.
pub fn patrol(state: &ApiState) -> Value {
    let schedules = state.controller.schedules();
    let rates = schedules.iter().filter(|schedule| schedule.task == ScheduleWord::Patrol).map(|schedule| schedule.rate);
    json!({"@odata.type": "#OpenraidStorageController.v1_0_0.Openraid", PATROL: common(rates)})
}

/// Rates that a body asks for.
#[derive(Default)]
struct RateChange {
    settings: Vec<(String, String)>,
    patrol: Option<u64>,
}

fn rates(value: &Value, asked: &mut RateChange) -> Result<(), Problem> {
    for (key, value) in members("ControllerRates", value)? {
        let name = format!("ControllerRates.{key}");
        let Some((_, setting, _)) = RATES.iter().find(|(known, ..)| known == key) else {
            let why = "use RebuildRatePercent, ConsistencyCheckRatePercent";
            return Err(property("property-unknown", &name, why));
        };
        let why = "use 1 to 100, where 100 is without limit; `openraid pause` holds background work of an array";
        let percent = number(&name, value, 1..=FULL, why)?;
        let bytes = if percent == FULL { 0 } else { percent * PERCENT_BYTES };
        asked.settings.push(((*setting).into(), bytes.to_string()));
    }
    Ok(())
}

fn oem(value: &Value, asked: &mut RateChange) -> Result<(), Problem> {
    let missing = || property("property-value", "Oem", "this service knows Oem.Openraid, an object");
    for (key, value) in members("Oem.Openraid", value.get("Openraid").ok_or_else(missing)?)? {
        let name = format!("Oem.Openraid.{key}");
        match key.as_str() {
            "@odata.type" => {}
            PATROL => asked.patrol = Some(number(&name, value, 1.., "use bytes of each drive a second")?),
            _ => return Err(property("property-unknown", &name, &format!("use {PATROL}"))),
        }
    }
    Ok(())
}

/// Change rates: those of all arrays, and those of the kept schedules of patrols.
pub fn change(request: &HttpRequest) -> Result<HttpReply, Problem> {
    request.state.forget_snapshot();
    let document = storage::controller_document(&request.state)?;
    check_version(request, &document)?;
    let mut asked = RateChange::default();
    for (key, value) in object(request)? {
        match key.as_str() {
            "ControllerRates" => rates(&value, &mut asked)?,
            "Oem" => oem(&value, &mut asked)?,
            other if document.get(other).is_some() => {
                return Err(property("property-read-only", other, "it follows from the program and its arrays"))
            }
            other => return Err(property("property-unknown", other, "a controller has no such property here")),
        }
    }
    if asked.settings.is_empty() && asked.patrol.is_none() {
        return Err(no_operation(&format!("ControllerRates, Oem.Openraid.{PATROL}")));
    }
    let arrays = request.state.arrays()?;
    if !asked.settings.is_empty() && working(&arrays).next().is_none() {
        let text = "ControllerRates: the rates are settings of arrays, and this server has no array that works; make one first";
        return Err(Problem::new(409, "refused", text));
    }
    if let Some(rate) = asked.patrol {
        set_patrol(request, rate)?;
    }
    if !asked.settings.is_empty() {
        for array in working(&arrays) {
            changes::set(request, array, asked.settings.clone(), false)?;
        }
    }
    Ok(storage::controller_reply(&storage::controller_document(&request.state)?))
}

fn set_patrol(request: &HttpRequest, rate: u64) -> Result<(), Problem> {
    let controller = &request.state.controller;
    let all =
        controller.schedules().into_iter().filter(|schedule| schedule.task == ScheduleWord::Patrol).collect::<Vec<_>>();
    if all.is_empty() {
        let text = format!("Oem.Openraid.{PATROL}: no schedule has a patrol; add one, see /api/v1/schedules");
        return Err(Problem::new(409, "refused", text));
    }
    if let Some(fixed) = all.iter().find(|schedule| schedule.line > 0) {
        let text = format!(
            "Oem.Openraid.{PATROL}: schedule {} is in line {} of the configuration file; change its rate there",
            fixed.name, fixed.line
        );
        return Err(Problem::new(409, "refused", text));
    }
    for schedule in all {
        let input = ScheduleInput {
            every: format!("{}h", schedule.every_seconds / 3600),
            name: schedule.name,
            task: schedule.task.word().into(),
            arrays: schedule.arrays,
            window: schedule.window,
            rate: Some(rate.to_string()),
            ssd: schedule.ssd,
        };
        controller.keep_schedule(&input)?;
        controller.audit(None, format!("{} by HTTP: schedule {}: rate {rate}", request.user(), input.name));
    }
    Ok(())
}
