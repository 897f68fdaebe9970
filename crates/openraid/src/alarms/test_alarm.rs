//! A test alarm: it is sent to sinks at once, at any level, and is not stored. A receiver of states also gets its end.

use std::thread;

use openraid_config::{DesiredSink, SinkKind, WebhookForm};

use super::sinks::{host, send, Batch};
use crate::failure::Failure;
use openraid_status::alarm::{AlarmModel, Condition};
pub use openraid_status::sinks::TestModel;
use openraid_status::EventName;

/// Does the receiver have an alarm until it gets the end? Alertmanager ends a test by itself, after it has told its own receivers.
fn has_states(sink: &DesiredSink) -> bool {
    matches!(sink.kind, SinkKind::Webhook { form: WebhookForm::Json, .. })
}

/// Send a test alarm to the sink with this name, or to all at the same time.
///
/// # Errors
/// There is no such sink, or none at all.
pub fn test(sinks: &[DesiredSink], name: Option<&str>) -> Result<Vec<TestModel>, Failure> {
    let meant = sinks.iter().filter(|sink| name.is_none_or(|name| sink.name == name));
    let meant: Vec<&DesiredSink> = meant.collect();
    if meant.is_empty() {
        let names: Vec<&str> = sinks.iter().map(|sink| sink.name.as_str()).collect();
        return Err(Failure::refused(match name {
            Some(name) if !names.is_empty() => {
                format!("there is no sink {name}; the configuration file has {}", names.join(", "))
            }
            _ => "the configuration file has no sinks; see docs/config.md for [sinks.NAME]".into(),
        }));
    }
    let what = Condition::of_server(EventName::TestMessage, "this is a test alarm".into());
    let now = openraid_sys::clock::wall_seconds();
    let (id, message_id) = (what.id(), what.message_id());
    let alarm =
        AlarmModel { id, message_id, what, since_seconds: now, until_seconds: None, acknowledged_seconds: None };
    let over = AlarmModel { until_seconds: Some(now), ..alarm.clone() };
    let level = alarm.what.level;
    let begins = Batch { host: host(), now, alarms: vec![alarm], known: vec![None] };
    let ends = Batch { alarms: vec![over], known: vec![Some(level)], ..begins.clone() };
    let sent: Vec<Result<(), String>> = thread::scope(|scope| {
        let (begins, ends) = (&begins, &ends);
        let both = |sink| send(sink, begins).and_then(|()| if has_states(sink) { send(sink, ends) } else { Ok(()) });
        let threads: Vec<_> = meant.iter().map(|sink| scope.spawn(move || both(sink))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("it panicked".into()))).collect()
    });
    let results = meant.iter().zip(sent).map(|(sink, sent)| TestModel {
        sink: sink.name.clone(),
        kind: sink.kind.word(),
        error: sent.err(),
    });
    Ok(results.collect())
}
