//! The thread of a sink: it waits for alarms, sends them, and retries with growing pauses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use openraid_config::DesiredSink;

use super::{host, send, Batch};
use crate::alarms::book::Alarm;
use crate::alarms::keeper::{lock, Shared};

/// Alarms within this time of the first one share its message.
const COLLECT: Duration = Duration::from_millis(700);
/// The first pause after a failure. It doubles up to the maximum.
const RETRY_FIRST: Duration = Duration::from_secs(2);
/// The maximum pause.
const RETRY_LONGEST: Duration = Duration::from_secs(300);
/// Interval at which a sleeping thread checks whether it should end.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A running sink.
#[derive(Debug)]
pub struct Running {
    /// The sink's configuration.
    pub sink: DesiredSink,
    ends: Arc<AtomicBool>,
}

impl Running {
    /// Start the thread of a sink. No code waits for its end, because a sink may hang.
    ///
    /// # Errors
    /// The system makes no thread.
    pub fn start(sink: DesiredSink, shared: &Arc<Shared>) -> std::io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let (shared, own, is_over) = (Arc::clone(shared), sink.clone(), Arc::clone(&ends));
        std::thread::Builder::new().name("sink".into()).spawn(move || run(&own, &shared, &is_over))?;
        Ok(Self { sink, ends })
    }

    /// End the sink.
    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn run(sink: &DesiredSink, shared: &Shared, ends: &AtomicBool) {
    let host = host();
    let mut pause = RETRY_FIRST;
    while wait_for_alarms(sink, shared, ends) {
        std::thread::sleep(COLLECT);
        let pending = pending(sink, shared);
        if pending.is_empty() {
            continue;
        }
        let batch = Batch { host: host.clone(), alarms: pending.iter().map(Alarm::model).collect() };
        let sent = send(sink, &batch);
        if ends.load(Ordering::Relaxed) {
            return;
        }
        shared.note_sent(&sink.name, &pending, &sent);
        if sent.is_ok() {
            pause = RETRY_FIRST;
            continue;
        }
        let until = Instant::now() + pause;
        while Instant::now() < until && !ends.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}

fn pending(sink: &DesiredSink, shared: &Shared) -> Vec<Alarm> {
    let state = lock(&shared.state);
    state.book.pending(&sink.name, sink.level, |subject| state.own.contains(subject))
}

/// Returns false if the sink should end.
fn wait_for_alarms(sink: &DesiredSink, shared: &Shared, ends: &AtomicBool) -> bool {
    loop {
        if ends.load(Ordering::Relaxed) {
            return false;
        }
        if !pending(sink, shared).is_empty() {
            return true;
        }
        let state = lock(&shared.state);
        drop(shared.changed.wait_timeout(state, LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner));
    }
}
