//! The thread of a sink: it waits for alarms, sends them, and retries with growing pauses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use openraid_config::{DesiredSink, SinkKind, WebhookForm};

use super::{host, send, Batch};
use crate::alarms::alarm_states::{Alarm, AlarmSubject};
use crate::alarms::running_alarms::{lock, AlarmShared};

/// Alarms within this time of the first one share its message.
const COLLECT: Duration = Duration::from_millis(700);
/// The first pause after a failure. It doubles up to the maximum.
const RETRY_FIRST: Duration = Duration::from_secs(2);
/// The maximum pause.
const RETRY_LONGEST: Duration = Duration::from_secs(300);
/// The interval at which an Alertmanager gets all states that hold; also its maximum pause.
const REFRESH: Duration = Duration::from_secs(60);
/// Interval at which a sleeping thread checks whether it should end.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A running sink.
#[derive(Debug)]
pub struct SinkThread {
    /// The sink's configuration.
    pub sink: DesiredSink,
    ends: Arc<AtomicBool>,
}

impl SinkThread {
    /// Start the thread of a sink. No code waits for its end, because a sink may hang.
    ///
    /// # Errors
    /// The system makes no thread.
    pub fn start(sink: DesiredSink, shared: &Arc<AlarmShared>) -> std::io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let (shared, of_thread, is_over) = (Arc::clone(shared), sink.clone(), Arc::clone(&ends));
        std::thread::Builder::new().name("sink".into()).spawn(move || run(&of_thread, &shared, &is_over))?;
        Ok(Self { sink, ends })
    }

    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Does the receiver forget alarms of which it hears nothing?
fn forgets(sink: &DesiredSink) -> bool {
    matches!(sink.kind, SinkKind::Webhook { form: WebhookForm::Alertmanager, .. })
}

fn run(sink: &DesiredSink, shared: &AlarmShared, ends: &AtomicBool) {
    let host = host();
    let longest = if forgets(sink) { REFRESH } else { RETRY_LONGEST };
    let mut pause = RETRY_FIRST;
    let mut refresh = forgets(sink).then(Instant::now);
    while wait_for_alarms(sink, shared, ends, refresh) {
        std::thread::sleep(COLLECT);
        let now = openraid_sys::clock::wall_seconds();
        let due = due(sink, shared, refresh.is_some());
        if due.is_empty() {
            continue;
        }
        let known = due.iter().map(|alarm| alarm.level_at(&sink.name)).collect();
        let batch = Batch { host: host.clone(), now, alarms: due.iter().map(Alarm::model).collect(), known };
        let sent = send(sink, &batch);
        if ends.load(Ordering::Relaxed) {
            return;
        }
        shared.note_sent(&sink.name, &due, &sent);
        if sent.is_ok() {
            pause = RETRY_FIRST;
            refresh = refresh.map(|_| Instant::now() + REFRESH);
            continue;
        }
        let until = Instant::now() + pause;
        while Instant::now() < until && !ends.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        pause = (pause * 2).min(longest);
    }
}

/// The alarms of the next message; with all that hold, if the sink needs them.
fn due(sink: &DesiredSink, shared: &AlarmShared, all: bool) -> Vec<Alarm> {
    let now = openraid_sys::clock::wall_seconds();
    let state = lock(&shared.state);
    let is_own = |subject: &AlarmSubject| state.subjects.contains(subject);
    let mut due = state.book.pending(&sink.name, sink.level, now, is_own);
    if all {
        let standing = state.book.standing(&sink.name, now, is_own);
        due.extend(standing.into_iter().filter(|alarm| !due.contains(alarm)).collect::<Vec<_>>());
        due.sort_by_key(|alarm| alarm.since);
    }
    due
}

/// Returns false if the sink should end.
fn wait_for_alarms(sink: &DesiredSink, shared: &AlarmShared, ends: &AtomicBool, refresh: Option<Instant>) -> bool {
    loop {
        if ends.load(Ordering::Relaxed) {
            return false;
        }
        if !due(sink, shared, refresh.is_some_and(|at| at <= Instant::now())).is_empty() {
            return true;
        }
        let state = lock(&shared.state);
        drop(shared.changed.wait_timeout(state, LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner));
    }
}
