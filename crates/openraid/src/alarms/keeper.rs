//! The alarms of a running server, and the thread that writes them down: a disk that hangs holds no command up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use super::book::{Alarm, Book, Subject};
use super::store::Store;
use crate::output;
use openraid_status::alarm::{AlarmModel, Condition};

/// After this time a write that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What the server and the thread share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The file cannot be written.
    fails: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    book: Book,
    /// Subjects that this server looks after.
    own: Vec<Subject>,
    /// Not in the file yet.
    is_new: bool,
    ends: bool,
}

/// The alarms of a server.
#[derive(Debug)]
pub struct Keeper {
    /// Its name, under which its own alarms are kept.
    server: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Read the kept alarms. `is_known` says whether an array, by its UUID or name, is still remembered.
    ///
    /// # Errors
    /// The system makes no thread.
    pub fn start(store: Store, server: String, now: u64, is_known: impl Fn(&str) -> bool) -> io::Result<Self> {
        let mut book = Book::default();
        let retired = store.change(|mut kept: Book| {
            kept.retire(now, &is_known, &server, |name| name != server && is_gone(name));
            book = kept.clone();
            kept
        });
        if let Err(error) = retired {
            output::warn(&format!("alarms cannot be kept yet: {error}"));
            book = store.read().unwrap_or_default();
        }
        let state = State { book, own: vec![Subject::Server(server.clone())], ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), ..Shared::default() });
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("alarms".into()).spawn(move || write(&store, &shared))?
        };
        Ok(Self { server, shared, thread: Some(thread) })
    }

    /// Alarms that are not kept: those of a demonstration.
    pub fn in_memory() -> Self {
        let server = format!("process {}", std::process::id());
        let own = vec![Subject::Server(server.clone())];
        let shared = Shared { state: Mutex::new(State { own, ..State::default() }), ..Shared::default() };
        Self { server, shared: Arc::new(shared), thread: None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    /// These states of a subject hold now, and no others; the alarms of it that hold.
    pub fn observe(&self, subject: &Subject, conditions: &[Condition]) -> Vec<AlarmModel> {
        let mut state = self.state();
        if !state.own.contains(subject) {
            state.own.push(subject.clone());
        }
        if state.book.observe(subject, openraid_sys::clock::wall_seconds(), conditions) {
            state.is_new = true;
            self.shared.changed.notify_all();
        }
        state.book.of(subject)
    }

    /// The same for the server itself.
    pub fn observe_server(&self, conditions: &[Condition]) -> Vec<AlarmModel> {
        self.observe(&Subject::Server(self.server.clone()), conditions)
    }

    /// Take note of alarms that hold: the one of this name, those of this array, or all; their names.
    pub fn acknowledge(&self, which: &str) -> Vec<String> {
        let mut state = self.state();
        let state = &mut *state;
        let own = &state.own;
        let fits = |alarm: &Alarm| own.contains(&alarm.subject()) && is_meant(alarm, which);
        let known = state.book.acknowledge(openraid_sys::clock::wall_seconds(), fits);
        if !known.is_empty() {
            state.is_new = true;
            self.shared.changed.notify_all();
        }
        known
    }

    /// All alarms that this server looks after, ended ones included.
    pub fn all(&self) -> Vec<AlarmModel> {
        let state = self.state();
        let own = state.book.alarms.iter().filter(|alarm| state.own.contains(&alarm.subject()));
        own.map(Alarm::model).collect()
    }

    /// Can the file not be written?
    pub fn fails(&self) -> bool {
        self.shared.fails.load(Ordering::Relaxed)
    }
}

/// Is an alarm meant: by its name, by its array, or by `all`?
pub fn is_meant(alarm: &Alarm, which: &str) -> bool {
    which == "all" || alarm.what.id() == which || alarm.what.array.as_deref() == Some(which)
}

/// A server without a name of its own is known by its process.
fn is_gone(server: &str) -> bool {
    let process = server.strip_prefix("process ").and_then(|number| number.parse::<u32>().ok());
    process.is_some_and(|number| {
        number == std::process::id() || !std::path::Path::new(&format!("/proc/{number}")).exists()
    })
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.state().ends = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(store: &Store, shared: &Shared) {
    loop {
        let (book, own, ends) = {
            let mut state = lock(&shared.state);
            while !state.is_new && !state.ends {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let is_new = mem::take(&mut state.is_new);
            if !is_new {
                return;
            }
            (state.book.clone(), state.own.clone(), state.ends)
        };
        let written = store.change(|kept: Book| {
            let mut book = book.clone();
            book.merge_others(kept, |subject| own.contains(subject));
            book
        });
        let failed = written.is_err();
        if let (Err(error), false) = (&written, shared.fails.load(Ordering::Relaxed)) {
            output::warn(&format!("alarms cannot be written down: {error}; it is tried again"));
        }
        shared.fails.store(failed, Ordering::Relaxed);
        if failed && ends {
            return;
        }
        if failed {
            let mut state = lock(&shared.state);
            state.is_new = true;
            if !state.ends {
                drop(shared.changed.wait_timeout(state, RETRY_AFTER));
            }
        }
    }
}
