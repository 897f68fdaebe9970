//! A POST request: the program's own JSON, or alerts as Alertmanager's API (v2) takes them.

use openraid_config::WebhookForm;
use serde_json::{json, Value};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::Agent;

use super::{Batch, SEND_TIME_MAX};
use crate::alarms::AlarmModel;
use crate::quantity::utc;

/// Alertmanager ends an alert after five minutes without news, unless the alert has an end. A state is sent once; while
/// it lasts, the message has an end this far in the future.
const FAR_AWAY_SECONDS: u64 = 366 * 86_400;

pub(super) fn send(url: &str, form: WebhookForm, batch: &Batch) -> Result<(), String> {
    let body = match form {
        WebhookForm::Json => own(batch),
        WebhookForm::Alertmanager => Value::Array(batch.alarms.iter().map(|alarm| alert(alarm, &batch.host)).collect()),
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

fn own(batch: &Batch) -> Value {
    json!({ "schema": "openraid/alarm-message/2", "host": batch.host, "summary": batch.summary(), "alarms": batch.alarms })
}

fn alert(alarm: &AlarmModel, host: &str) -> Value {
    let mut labels = json!({
        "alertname": alarm.what.event,
        "severity": alarm.what.level.word(),
        "instance": host,
        "alarm": alarm.id,
    });
    for (key, value) in [("array", &alarm.what.array), ("member", &alarm.what.member)] {
        if let Some(value) = value {
            labels[key] = value.clone().into();
        }
    }
    let mut annotations = json!({ "summary": alarm.what.text });
    if let Some(next) = &alarm.what.next_step {
        annotations["next_step"] = next.clone().into();
    }
    let time = |seconds| utc(seconds).replacen(' ', "T", 1).replace(" UTC", "Z");
    let ends = alarm.until_seconds.unwrap_or(alarm.since_seconds + FAR_AWAY_SECONDS);
    json!({ "labels": labels, "annotations": annotations, "startsAt": time(alarm.since_seconds), "endsAt": time(ends) })
}
