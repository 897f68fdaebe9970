//! What a volume's status says of the alarms that hold: `Status.Conditions`.

use openraid_status::alarm::AlarmModel;
use openraid_status::ArrayModel;
use serde_json::{json, Value};

use super::drives::drive_path;
use super::registries::severity;
use super::{link, time};

/// A status, with a condition for each alarm of the array that is open.
pub fn with_status(array: &ArrayModel, state: &str, health: &str) -> Value {
    let mut status = json!({"State": state, "Health": health});
    let open: Vec<Value> =
        array.alarms.iter().filter(|alarm| alarm.until_seconds.is_none()).map(|alarm| one(array, alarm)).collect();
    if !open.is_empty() {
        status["Conditions"] = open.into();
    }
    status
}

/// The message is that of our own registry, as in the event log: its only argument is the text.
fn one(array: &ArrayModel, alarm: &AlarmModel) -> Value {
    let what = &alarm.what;
    let mut condition = json!({
        "MessageId": format!("Openraid.1.0.{}", what.event),
        "Message": what.text,
        "MessageArgs": [what.text],
        "Severity": severity(what.level),
        "Timestamp": time::text(alarm.since_seconds),
    });
    if let Some(next) = &what.next_step {
        condition["Resolution"] = next.as_str().into();
    }
    let mut members = array.sets().into_iter().flat_map(|set| &set.members);
    if let Some(spec) = what.member.as_ref().filter(|spec| members.any(|member| member.member.as_ref() == Some(spec))) {
        condition["OriginOfCondition"] = link(&drive_path(spec));
    }
    condition
}
