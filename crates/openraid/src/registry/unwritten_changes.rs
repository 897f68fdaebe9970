//! Changes of the registry that could not be written. They count for this process, and go into the file with the next write that
//! succeeds, on top of what other processes have written in the meantime.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::{Content, JournalUse, RegisteredArray};

/// Pause before a failed write is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

thread_local! {
    /// Changes of this thread that could not be written: a command answers for its own changes only.
    pub(super) static FAILURES: Cell<u64> = const { Cell::new(0) };
}

/// What the file lacks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RegistryBacklog {
    /// Arrays as they should be recorded, by identity and, for raw drives, name. `None`: forgotten.
    arrays: BTreeMap<String, Option<RegisteredArray>>,
    journals: Vec<JournalUse>,
    /// Why the last write failed, with the remedy.
    pub why: Option<String>,
    /// When the last write was tried.
    tried: Option<Instant>,
}

fn key(entry: &RegisteredArray) -> &str {
    entry.uuid.as_deref().unwrap_or(&entry.name)
}

impl RegistryBacklog {
    /// The difference between the file and the content that should be in it.
    pub(super) fn note(&mut self, file: &Content, content: &Content, why: String) {
        let gone = file.arrays.iter().filter(|array| content.arrays.iter().all(|other| key(other) != key(array)));
        let fresh = content.arrays.iter().filter(|array| !file.arrays.contains(array));
        self.arrays = gone.map(|array| (key(array).to_owned(), None)).collect();
        self.arrays.extend(fresh.map(|array| (key(array).to_owned(), Some(array.clone()))));
        self.journals = content.journals.iter().filter(|journal| !file.journals.contains(journal)).cloned().collect();
        self.fail(why);
    }

    /// The file cannot be changed. Without its content it is not known what it lacks.
    pub(super) fn fail(&mut self, why: String) {
        self.why = Some(why);
        FAILURES.set(FAILURES.get() + 1);
        self.tried = Some(Instant::now());
    }

    /// The file has everything.
    pub(super) fn settle(&mut self) {
        *self = Self::default();
    }

    /// Is it time to try again?
    pub(super) fn is_due(&self) -> bool {
        self.why.is_some() && self.tried.is_none_or(|at| at.elapsed() >= RETRY_AFTER)
    }

    /// The content of the file with what it lacks.
    pub(super) fn over(&self, mut content: Content) -> Content {
        content.arrays.retain(|array| !self.arrays.contains_key(key(array)));
        content.arrays.extend(self.arrays.values().flatten().cloned());
        content.journals.retain(|journal| self.journals.iter().all(|other| other.uuid != journal.uuid));
        content.journals.extend(self.journals.iter().cloned());
        content
    }

    /// The arrays of which the file lacks something, and why; nothing if it lacks nothing.
    pub(super) fn text(&self) -> Option<String> {
        let name = |(key, entry): (&String, &Option<RegisteredArray>)| {
            entry.as_ref().map_or_else(|| key.clone(), |entry| entry.name.clone())
        };
        let names: Vec<String> = self.arrays.iter().map(name).collect();
        let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
        self.why.as_ref().map(|why| format!("changes{of} are not kept: {why}"))
    }
}

/// What helps if a file in this folder cannot be written.
pub(super) fn remedy(error: &io::Error, folder: &str) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("make room on the file system of {folder}")
        }
        io::ErrorKind::ReadOnlyFilesystem => format!("make the file system of {folder} writable"),
        _ => "name another one with --registry".into(),
    }
}

/// The same for a file next to the registry. A server that runs cannot take another folder.
pub(super) fn remedy_beside(error: &io::Error, folder: &str) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem => {
            remedy(error, folder)
        }
        io::ErrorKind::WouldBlock => "wait for that process".into(),
        _ => format!("see that files in {folder} can be written"),
    }
}
