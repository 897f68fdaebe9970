//! A POST request: the program's own JSON, or alerts as Alertmanager's API (v2) takes them.

use openraid_config::WebhookForm;
use openraid_status::date::rfc3339;
use serde_json::{json, Value};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::Agent;

use super::{Batch, SEND_TIME_MAX};
use crate::alarms::AlarmModel;
use crate::events::Severity;

/// An alert that holds ends by itself after this time, four times the interval at which it is sent again, as Prometheus has it.
const STANDS_SECONDS: u64 = 240;

pub(super) fn send(url: &str, form: WebhookForm, batch: &Batch) -> Result<(), String> {
    let body = match form {
        WebhookForm::Json => document(batch),
        WebhookForm::Alertmanager => Value::Array(batch.with_known().flat_map(|known| alerts(known, batch)).collect()),
    };
    post(url, &body)
}

/// Send a document to another server.
///
/// # Errors
/// Why the server did not accept it.
pub fn post(url: &str, body: &Value) -> Result<(), String> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(SEND_TIME_MAX))
        .max_redirects(0)
        .user_agent(concat!("openraid/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build()
        .into();
    let sent = agent.post(url).header("Content-Type", "application/json").send(body.to_string());
    match sent {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("{url} answered {}", answer.status())),
        Err(ureq::Error::Timeout(_)) => Err(format!("{url}: no answer within {} s", SEND_TIME_MAX.as_secs())),
        Err(error) => Err(format!("{url}: {error}")),
    }
}

fn document(batch: &Batch) -> Value {
    json!({ "schema": "openraid/alarm-message/2", "host": batch.host, "summary": batch.summary(), "alarms": batch.alarms })
}

/// The alert of an alarm, and the end of the one that the receiver has at another level: the level is a label.
fn alerts((alarm, known): (&AlarmModel, Option<Severity>), batch: &Batch) -> Vec<Value> {
    let stands = batch.now + STANDS_SECONDS;
    // An alert that has ended when it arrives is told to no receiver.
    let ends = alarm.until_seconds.filter(|_| known.is_some()).unwrap_or(stands);
    let former = known.filter(|level| *level != alarm.what.level);
    let former = former.map(|level| alert(alarm, level, batch.now, &batch.host));
    former.into_iter().chain([alert(alarm, alarm.what.level, ends, &batch.host)]).collect()
}

/// The labels identify an alert: they stay the same while the state lasts, also if its array is renamed.
fn alert(alarm: &AlarmModel, level: Severity, ends: u64, host: &str) -> Value {
    let what = &alarm.what;
    let mut labels = json!({ "alertname": what.event, "severity": level.word(), "instance": host });
    let span = what.span.map(|span| span.to_string());
    let raw = what.array.as_ref().filter(|_| what.uuid.is_none());
    for (key, value) in
        [("array_uuid", what.uuid.as_ref()), ("array", raw), ("span", span.as_ref()), ("member", what.member.as_ref())]
    {
        if let Some(value) = value {
            labels[key] = value.clone().into();
        }
    }
    let mut annotations = json!({ "summary": what.text, "alarm": alarm.id });
    for (key, value) in [("array", &what.array), ("next_step", &what.next_step)] {
        if let Some(value) = value {
            annotations[key] = value.clone().into();
        }
    }
    // A clock that was set back: Alertmanager refuses an end before the beginning.
    let starts = alarm.since_seconds.min(ends);
    json!({ "labels": labels, "annotations": annotations, "startsAt": rfc3339(starts), "endsAt": rfc3339(ends) })
}
