//! The thread that writes events: a slow, full or missing disk does not delay the server.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::log_records::Draft;
use super::segments::{EventEntry, EventLog};
use crate::output;
use openraid_status::EventName;

/// Maximum number of events in the queue to the thread.
const QUEUE_MAX: usize = 1024;
/// Maximum number of events that are kept while they cannot be written: the newest.
const KEPT_MAX: usize = 1024;
/// Pause before the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A handle to the log.
#[derive(Debug)]
pub struct EventWriter {
    sender: Option<SyncSender<Draft>>,
    /// Number of events that found the queue full.
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl EventWriter {
    /// Start a thread that writes to this log.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(log: EventLog) -> io::Result<Self> {
        let (sender, drafts) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let thread = thread::Builder::new().name("events".into()).spawn(move || write(&log, &drafts, &counted))?;
        Ok(Self { sender: Some(sender), lost, thread: Some(thread) })
    }

    /// Write an event soon. If the queue is full, it is left out and counted.
    pub fn note(&self, draft: Draft) {
        if self.sender.as_ref().is_some_and(|sender| sender.try_send(draft).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(log: &EventLog, drafts: &Receiver<Draft>, not_queued: &AtomicU64) {
    let mut kept = VecDeque::new();
    let mut lost = 0_u64;
    let mut fails = false;
    loop {
        let next = if kept.is_empty() {
            drafts.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            drafts.recv_timeout(RETRY_AFTER)
        };
        let ends = matches!(next, Err(RecvTimeoutError::Disconnected));
        kept.extend(next.into_iter().chain(drafts.try_iter()).map(EventEntry::Event));
        lost += not_queued.swap(0, Ordering::Relaxed);
        while kept.len() > KEPT_MAX {
            kept.pop_front();
            lost += 1;
        }
        if lost > 0 {
            kept.push_front(EventEntry::Event(events_lost(lost)));
        }
        match log.append(kept.make_contiguous()) {
            Ok(()) => {
                kept.clear();
                (lost, fails) = (0, false);
            }
            Err(error) => {
                if lost > 0 {
                    kept.pop_front();
                }
                if !fails {
                    output::warn(&format!("the event log cannot be written: {error}; it is tried again"));
                }
                fails = true;
            }
        }
        if ends {
            return;
        }
    }
}

fn events_lost(count: u64) -> Draft {
    Draft {
        at_seconds: openraid_sys::clock::wall_seconds(),
        event: EventName::EventsLost.word().into(),
        text: format!(
            "{} lost while the log could not be written",
            crate::quantity::counted(count, "event was", "events were")
        ),
        ..Draft::default()
    }
}
