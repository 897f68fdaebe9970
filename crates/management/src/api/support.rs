//! A support archive: the whole state of this server in one document.
//!
//! It has no passwords and no sessions. Addresses of sinks are left out, because an address of a webhook is often a secret.

use serde_json::{json, Map, Value};

use crate::controller::Refusal;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::EVENTS_MAX;
use crate::redfish::time;

const LEFT_OUT: &str = "(left out)";

/// The document. A part that cannot be had is a sentence in `missing`.
pub fn archive(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let controller = &request.state.controller;
    let arrays = request.state.arrays()?;
    let (mut parts, mut missing) = (Map::new(), Vec::new());
    let mut take = |name: String, part: Result<Value, Refusal>| match part {
        Ok(part) => {
            parts.insert(name, part);
        }
        Err(refusal) => missing.push(format!("{name}: {}", refusal.text)),
    };
    take("server".into(), controller.server().map(|server| json!(server)));
    take("arrays".into(), Ok(json!(*arrays)));
    take("journal".into(), controller.journal().map(|journal| json!(journal)));
    take("settings".into(), controller.settings());
    take("alarms".into(), controller.alarms().map(|alarm| json!(alarm)));
    let sinks = controller.sinks();
    take("sinks".into(), Ok(json!(sinks)));
    take("schedules".into(), Ok(json!(controller.schedules())));
    take("lab".into(), controller.lab().map(|lab| json!(lab)));
    let newest = controller.events().map(|all| json!(all[all.len().saturating_sub(EVENTS_MAX)..]));
    take("events".into(), newest);
    for array in arrays.iter() {
        take(format!("explain {}", array.name), controller.explain(&array.name));
        let checks = controller.checks(&array.name);
        take(format!("checks {}", array.name), checks.map(|(sets, patrols)| json!({"sets": sets, "patrols": patrols})));
    }
    let mut parts = Value::Object(parts);
    hide(&mut parts, &sinks.iter().map(|sink| sink.target.clone()).collect::<Vec<_>>());
    let at = time::now();
    let document = json!({"schema": "openraid/support/1", "at": time::text(at), "at_seconds": at, "missing": missing, "parts": parts});
    Ok(HttpReply::json(200, &document).with("content-disposition", "attachment; filename=\"openraid-support.json\""))
}

/// Replace these addresses in all texts.
fn hide(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
                *text = text.replace(secret.as_str(), LEFT_OUT);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|part| hide(part, secrets)),
        Value::Object(all) => all.values_mut().for_each(|part| hide(part, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
