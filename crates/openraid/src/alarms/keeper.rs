//! The alarms of a running server, and the thread that stores them, so that a hanging disk delays no command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use openraid_config::DesiredSink;

use super::book::{Alarm, Book, Subject};
use super::sinks::thread::Running;
use super::store::Store;
use crate::output;
use openraid_status::alarm::{AlarmModel, Condition};

/// After this time a write that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// State that the server, the writing thread and the threads of sinks share.
#[derive(Debug, Default)]
pub struct Shared {
    /// The alarms.
    pub state: Mutex<State>,
    /// Something in them has changed.
    pub changed: Condvar,
    /// The file cannot be written.
    fails: AtomicBool,
}

/// The alarms of a server.
#[derive(Debug, Default)]
pub struct State {
    /// All of them, and those of other servers as they were at the start.
    pub book: Book,
    /// Subjects that this server looks after.
    pub own: Vec<Subject>,
    /// Not in the file yet.
    is_new: bool,
    ends: bool,
    /// Why a sink did not take its last message, by its name.
    failures: BTreeMap<String, String>,
    /// What became of sinks: their names, and why they fail, if they do.
    news: Vec<(String, Option<String>)>,
}

impl Shared {
    /// The result of a message to a sink.
    pub fn note_sent(&self, sink: &str, alarms: &[Alarm], sent: &Result<(), String>) {
        let mut state = lock(&self.state);
        let before = match sent {
            Ok(()) => {
                state.book.note_told(sink, alarms);
                state.is_new = true;
                state.failures.remove(sink)
            }
            Err(why) => state.failures.insert(sink.to_owned(), why.clone()),
        };
        if before.is_some() == sent.is_ok() {
            state.news.push((sink.to_owned(), sent.clone().err()));
        }
        self.changed.notify_all();
    }
}

/// The alarms of a server.
#[derive(Debug)]
pub struct Keeper {
    /// Its name, under which its own alarms are kept.
    server: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    sinks: Mutex<Vec<Running>>,
}

impl Keeper {
    /// Read the kept alarms. `is_known` says whether an array, by its UUID or name, is still recorded.
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
        Ok(Self { server, shared, thread: Some(thread), sinks: Mutex::default() })
    }

    /// Alarms that are not kept: those of a demonstration.
    pub fn in_memory() -> Self {
        let server = format!("process {}", std::process::id());
        let own = vec![Subject::Server(server.clone())];
        let shared = Shared { state: Mutex::new(State { own, ..State::default() }), ..Shared::default() };
        Self { server, shared: Arc::new(shared), thread: None, sinks: Mutex::default() }
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

    /// Alarms go to these sinks from now on; what does not work is reported.
    pub fn set_sinks(&self, wishes: &[DesiredSink]) -> Vec<String> {
        let mut running = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let names: BTreeSet<String> = wishes.iter().map(|wish| wish.name.clone()).collect();
            let mut state = self.state();
            state.book.set_sinks(&names);
            state.failures.retain(|name, _| names.contains(name));
            state.is_new = true;
        }
        // The line is only where it stands.
        let is_same = |a: &DesiredSink, b: &DesiredSink| (&a.name, a.level, &a.kind) == (&b.name, b.level, &b.kind);
        running.retain(|own| {
            let stays = wishes.iter().any(|wish| is_same(wish, &own.wish));
            if !stays {
                own.end();
            }
            stays
        });
        let mut notes = Vec::new();
        for wish in wishes {
            if !running.iter().any(|own| is_same(wish, &own.wish)) {
                match Running::start(wish.clone(), &self.shared) {
                    Ok(sink) => running.push(sink),
                    Err(error) => notes.push(format!("sink {}: no thread: {error}", wish.name)),
                }
            }
        }
        self.shared.changed.notify_all();
        notes
    }

    /// Sinks that did not take their last message, and why.
    pub fn failing_sinks(&self) -> Vec<(String, String)> {
        self.state().failures.clone().into_iter().collect()
    }

    /// What became of sinks since the last call: why one fails, or none if it works again.
    pub fn sink_news(&self) -> Vec<(String, Option<String>)> {
        mem::take(&mut self.state().news)
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

/// The state, whatever became of a thread that held it.
pub fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
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
