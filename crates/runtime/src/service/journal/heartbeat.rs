//! Waiting for a thread's work with devices that may never answer. The work may take any time while they answer; the
//! caller stops waiting if it hears nothing for a while, and the thread ends by itself later.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use openraid_units::Nanos;

/// How a thread shows that a device has answered.
#[derive(Clone, Default, Debug)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// A device has answered.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Observes an abandoned thread.
#[derive(Clone, Debug)]
pub struct Watch(Weak<AtomicU64>);

impl Watch {
    /// Is the thread still at work? If not, it has released everything.
    pub fn goes_on(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Is it at work, without any answer of a device?
    pub fn is_silent(&self) -> bool {
        self.0.upgrade().is_some_and(|beats| beats.load(Ordering::Relaxed) == 0)
    }
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// No heartbeat for too long.
    Silent,
    /// The system has no room for another thread.
    NoThread(String),
    /// The thread has panicked. That does not concern the device. (A release build ends with any panic.)
    Panicked,
}

/// A thread's answer that will come.
#[derive(Debug)]
pub struct PendingAnswer<T> {
    answer: mpsc::Receiver<T>,
    heartbeat: Heartbeat,
}

/// Start work on a thread with this name.
///
/// # Errors
/// There is no room for it.
pub fn ask<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(Heartbeat) -> T + Send + 'static,
) -> Result<PendingAnswer<T>, Unanswered> {
    let (sender, answer) = mpsc::channel();
    let heartbeat = Heartbeat::default();
    let beat = heartbeat.clone();
    let spawned = thread::Builder::new().name(name.into()).spawn(move || {
        let _watched = beat.clone();
        // The caller may have stopped waiting.
        let _ = sender.send(work(beat));
    });
    spawned.map_err(|error| Unanswered::NoThread(error.to_string()))?;
    Ok(PendingAnswer { answer, heartbeat })
}

impl<T> PendingAnswer<T> {
    /// An observer of the thread.
    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.heartbeat.0))
    }

    /// Wait for the answer while the thread's heartbeat beats.
    ///
    /// # Errors
    /// The heartbeat stopped for this long, or the thread ended without an answer.
    pub fn wait(self, silence_max: Nanos) -> Result<T, Unanswered> {
        let limit = Duration::from_nanos(silence_max.get());
        wait_with(&self.heartbeat, || self.answer.recv_timeout(limit))
    }
}

/// Wait again after every heartbeat.
fn wait_with<T>(heartbeat: &Heartbeat, mut wait: impl FnMut() -> Result<T, RecvTimeoutError>) -> Result<T, Unanswered> {
    loop {
        let heard = heartbeat.beats();
        match wait() {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) if heartbeat.beats() != heard => {}
            Err(RecvTimeoutError::Timeout) => return Err(Unanswered::Silent),
            Err(RecvTimeoutError::Disconnected) => return Err(Unanswered::Panicked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that answers once in each of this many waits, and then has all of it.
    fn read(answers: u32, is_whole: bool) -> Result<&'static str, Unanswered> {
        let (heartbeat, mut waits) = (Heartbeat::default(), 0);
        wait_with(&heartbeat, || {
            waits += 1;
            match waits {
                _ if waits <= answers => heartbeat.beat(),
                _ if is_whole => return Ok("read"),
                _ => assert_eq!(waits, answers + 1, "nothing was heard, and it is waited on"),
            }
            Err(RecvTimeoutError::Timeout)
        })
    }

    #[test]
    fn a_slow_device_is_waited_for_and_a_silent_one_is_not() {
        assert_eq!(read(0, true), Ok("read"));
        assert_eq!(read(100_000, true), Ok("read"));
        assert_eq!(read(0, false), Err(Unanswered::Silent));
        assert_eq!(read(3, false), Err(Unanswered::Silent));
    }

    #[test]
    fn a_thread_that_ended_without_an_answer_is_not_waited_for_and_no_device_counts_as_silent() {
        let asked =
            ask::<()>("panics", |_| std::panic::resume_unwind(Box::new("on purpose"))).expect("room for a thread");
        assert_eq!(asked.wait(Nanos::from_secs(3600)), Err(Unanswered::Panicked));
        let asked = ask("answers", |heartbeat| heartbeat.beat()).expect("room for a thread");
        assert_eq!(asked.wait(Nanos::from_secs(3600)), Ok(()));
    }

    /// An object that a thread owns. When it is dropped, it reports whether the thread continues.
    struct OwnedObject(Watch, mpsc::Sender<bool>);

    impl Drop for OwnedObject {
        fn drop(&mut self) {
            self.1.send(self.0.goes_on()).expect("it is heard");
        }
    }

    #[test]
    fn an_abandoned_thread_runs_until_it_has_returned_everything() {
        let (answers, hangs) = mpsc::channel();
        let (let_go, was_let_go) = mpsc::channel();
        let asked = ask("hangs", move |_| OwnedObject(hangs.recv().expect("it answers"), let_go));
        let asked = asked.expect("room for a thread");
        let watch = asked.watch();
        assert!(asked.wait(Nanos::ZERO).is_err());
        assert!(watch.goes_on());
        answers.send(watch.clone()).expect("it waits for that");
        assert_eq!(was_let_go.recv(), Ok(true));
        while watch.goes_on() {
            thread::yield_now();
        }
    }
}
