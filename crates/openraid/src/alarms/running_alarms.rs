//! The alarms of a running server, and the thread that stores them, so that a hanging disk delays no command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io, mem};

use openraid_config::DesiredSink;

use super::alarm_file::AlarmStore;
use super::alarm_states::{Alarm, AlarmSubject, Book};
use super::sinks::sink_thread::SinkThread;
use crate::output;
use openraid_status::alarm::{AlarmModel, Condition};

/// Pause before a failed write is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// State that the server, the writing thread and the threads of sinks share.
#[derive(Debug, Default)]
pub struct AlarmShared {
    /// The alarms.
    pub state: Mutex<AlarmState>,
    /// Signals a change of the alarms.
    pub changed: Condvar,
    /// Does writing the file fail?
    fails: AtomicBool,
}

/// The alarms of a server.
#[derive(Debug, Default)]
pub struct AlarmState {
    /// All alarms, with those of other servers as they were at the start.
    pub book: Book,
    /// Subjects of this server.
    pub subjects: Vec<AlarmSubject>,
    /// Is there a change that is not in the file yet?
    is_new: bool,
    ends: bool,
    /// Why the last message to a sink failed, by the sink's name.
    failures: BTreeMap<String, String>,
    /// News about sinks: their names, and why they fail, if they do.
    news: Vec<(String, Option<String>)>,
}

impl AlarmShared {
    /// The result of a message to a sink.
    pub fn note_sent(&self, sink: &str, alarms: &[Alarm], sent: &Result<(), String>) {
        let mut state = lock(&self.state);
        let before = match sent {
            Ok(()) => {
                state.is_new |= state.book.note_sent(sink, alarms);
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
    /// The server in the words of its own alarms.
    server: String,
    shared: Arc<AlarmShared>,
    thread: Option<JoinHandle<()>>,
    sinks: Mutex<Vec<SinkThread>>,
    /// Nothing of the stored alarms could be read.
    was_damaged: bool,
}

impl Keeper {
    /// Read the stored alarms. `is_known` says whether an array, by its UUID or name, is still recorded.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(
        store: AlarmStore,
        server: &AlarmServer,
        now: u64,
        is_known: impl Fn(&str) -> bool,
    ) -> io::Result<Self> {
        let server = server.to_string();
        let mut book = Book::default();
        let was_damaged = store.is_damaged();
        let retired = store.change(|mut kept: Book| {
            kept.retire(now, &is_known, &server, |name| name != server && AlarmServer::of_store(name).is_gone());
            book = kept.clone();
            kept
        });
        if let Err(error) = retired {
            output::warn(&format!("alarms cannot be kept yet: {error}"));
            book = store.read().unwrap_or_default();
        }
        book.started = now;
        let state = AlarmState { book, subjects: vec![AlarmSubject::Server(server.clone())], ..AlarmState::default() };
        let shared = Arc::new(AlarmShared { state: Mutex::new(state), ..AlarmShared::default() });
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("alarms".into()).spawn(move || write(&store, &shared))?
        };
        Ok(Self { server, shared, thread: Some(thread), sinks: Mutex::default(), was_damaged })
    }

    /// Alarms that are not stored: those of a demonstration.
    pub fn in_memory() -> Self {
        let server = AlarmServer::Process(std::process::id()).to_string();
        let subjects = vec![AlarmSubject::Server(server.clone())];
        let shared = AlarmShared {
            state: Mutex::new(AlarmState { subjects, ..AlarmState::default() }),
            ..AlarmShared::default()
        };
        Self { server, shared: Arc::new(shared), thread: None, sinks: Mutex::default(), was_damaged: false }
    }

    /// Were the stored alarms damaged, so that they are lost?
    pub const fn was_damaged(&self) -> bool {
        self.was_damaged
    }

    fn state(&self) -> MutexGuard<'_, AlarmState> {
        lock(&self.shared.state)
    }

    /// A subject has these states now, and no others. Returns its open alarms.
    pub fn observe(&self, subject: &AlarmSubject, conditions: &[Condition]) -> Vec<AlarmModel> {
        let mut state = self.state();
        if !state.subjects.contains(subject) {
            state.subjects.push(subject.clone());
        }
        if state.book.observe(subject, openraid_sys::clock::wall_seconds(), conditions) {
            state.is_new = true;
            self.shared.changed.notify_all();
        }
        state.book.of(subject)
    }

    /// An event shows a state, which may be over before the next look at the subject. `None` is the server itself.
    pub fn glimpse(&self, subject: Option<&AlarmSubject>, condition: &Condition) {
        let server = AlarmSubject::Server(self.server.clone());
        let mut state = self.state();
        if state.book.glimpse(subject.unwrap_or(&server), openraid_sys::clock::wall_seconds(), condition) {
            state.is_new = true;
            self.shared.changed.notify_all();
        }
    }

    /// The same as [`Keeper::observe`] for the server itself.
    pub fn observe_server(&self, conditions: &[Condition]) -> Vec<AlarmModel> {
        self.observe(&AlarmSubject::Server(self.server.clone()), conditions)
    }

    /// Acknowledge open alarms: the one with this name, those of this array, or all. Returns their names.
    pub fn acknowledge(&self, which: &str) -> Vec<String> {
        let mut state = self.state();
        let state = &mut *state;
        let subjects = &state.subjects;
        let fits = |alarm: &Alarm| subjects.contains(&alarm.subject()) && is_meant(alarm, which);
        let known = state.book.acknowledge(openraid_sys::clock::wall_seconds(), fits);
        if !known.is_empty() {
            state.is_new = true;
            self.shared.changed.notify_all();
        }
        known
    }

    /// All alarms of this server, ended ones included.
    pub fn all(&self) -> Vec<AlarmModel> {
        let state = self.state();
        let looked_after = state.book.alarms.iter().filter(|alarm| state.subjects.contains(&alarm.subject()));
        looked_after.map(Alarm::model).collect()
    }

    /// Use these sinks from now on. Returns the failures.
    pub fn set_sinks(&self, sinks: &[DesiredSink]) -> Vec<String> {
        let mut running = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let names: BTreeSet<String> = sinks.iter().map(|sink| sink.name.clone()).collect();
            let mut state = self.state();
            state.book.set_sinks(&names);
            state.failures.retain(|name, _| names.contains(name));
            state.is_new = true;
        }
        // The line does not matter for a comparison.
        let is_same = |a: &DesiredSink, b: &DesiredSink| (&a.name, a.level, &a.kind) == (&b.name, b.level, &b.kind);
        running.retain(|thread| {
            let stays = sinks.iter().any(|sink| is_same(sink, &thread.sink));
            if !stays {
                thread.end();
            }
            stays
        });
        let mut notes = Vec::new();
        for sink in sinks {
            if !running.iter().any(|thread| is_same(sink, &thread.sink)) {
                match SinkThread::start(sink.clone(), &self.shared) {
                    Ok(sink) => running.push(sink),
                    Err(error) => notes.push(format!("sink {}: no thread: {error}", sink.name)),
                }
            }
        }
        self.shared.changed.notify_all();
        notes
    }

    /// Sinks whose last message failed, and why.
    pub fn failing_sinks(&self) -> Vec<(String, String)> {
        self.state().failures.clone().into_iter().collect()
    }

    /// News about sinks since the last call: why one fails, or `None` if it works again.
    pub fn sink_news(&self) -> Vec<(String, Option<String>)> {
        mem::take(&mut self.state().news)
    }

    /// Can the file not be written?
    pub fn fails(&self) -> bool {
        self.shared.fails.load(Ordering::Relaxed)
    }
}

/// Does the word mean this alarm: its name, its array, or `all`?
pub fn is_meant(alarm: &Alarm, which: &str) -> bool {
    which == "all" || alarm.what.id() == which || alarm.what.array.as_deref() == Some(which)
}

/// The server that alarms are stored for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AlarmServer {
    /// By the path of its control socket.
    Socket(String),
    /// By its process, if its control socket has no path of its own.
    Process(u32),
}

impl AlarmServer {
    /// How a process is stored.
    const PROCESS: &'static str = "process ";

    /// The server with these words in the store.
    fn of_store(words: &str) -> Self {
        let process = words.strip_prefix(Self::PROCESS).and_then(|number| number.parse().ok());
        process.map_or_else(|| Self::Socket(words.to_owned()), Self::Process)
    }

    /// Has the process ended? Its alarms, or those of an earlier process with the number of this one, pass to this
    /// server.
    fn is_gone(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Process(number) => {
                *number == std::process::id() || !std::path::Path::new(&format!("/proc/{number}")).exists()
            }
        }
    }
}

impl fmt::Display for AlarmServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => f.write_str(path),
            Self::Process(number) => write!(f, "{}{number}", Self::PROCESS),
        }
    }
}

/// The state, also if a thread panicked while it held the lock.
pub fn lock(state: &Mutex<AlarmState>) -> MutexGuard<'_, AlarmState> {
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

fn write(store: &AlarmStore, shared: &AlarmShared) {
    loop {
        let (book, subjects, ends) = {
            let mut state = lock(&shared.state);
            while !state.is_new && !state.ends {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let is_new = mem::take(&mut state.is_new);
            if !is_new {
                return;
            }
            (state.book.clone(), state.subjects.clone(), state.ends)
        };
        let written = store.change(|kept: Book| {
            let mut book = book.clone();
            book.merge_others(kept, |subject| subjects.contains(subject));
            book
        });
        let failed = written.is_err();
        if let (Err(error), false) = (&written, shared.fails.load(Ordering::Relaxed)) {
            output::warn(&format!("alarms cannot be stored: {error}; it is tried again"));
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
