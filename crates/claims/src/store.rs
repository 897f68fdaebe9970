//! Measured values by all their inputs: in memory, and in a file between runs.
//!
//! ```text
//!  {"openraid-claims": 1, "made_by": "FINGERPRINT"}
//!  ["KEY", VALUE]
//!  ["KEY", VALUE]
//! ```
//!
//! The file has a line for each value. The line is written as soon as the value is known, so an interrupted run loses
//! only the measurements under way. An incomplete last line is ignored. The fingerprint names the program and the
//! models that made the values. A file with another fingerprint is replaced. The store must never return a value of
//! another fingerprint, and never measure one key twice.

use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The format of the file.
const FORMAT: u64 = 2;

enum Slot {
    Known(Value),
    /// The key is being measured.
    Busy,
}

struct Inner {
    slots: HashMap<String, Slot>,
    file: Option<File>,
    /// The reason for which the file is no longer written.
    lost: Option<String>,
}

/// The store, which threads can share.
pub struct ClaimStore {
    inner: Mutex<Inner>,
    done: Condvar,
}

impl Default for ClaimStore {
    fn default() -> Self {
        Self::in_memory()
    }
}

impl ClaimStore {
    /// A store for this run only.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with(HashMap::new(), None)
    }

    fn with(slots: HashMap<String, Slot>, file: Option<File>) -> Self {
        Self { inner: Mutex::new(Inner { slots, file, lost: None }), done: Condvar::new() }
    }

    /// A store in a file. The file is created if it does not exist, and replaced if it has another fingerprint.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path, fingerprint: &str) -> Result<Self, ClaimStoreError> {
        let complain = |error: io::Error| ClaimStoreError { path: path.to_owned(), error: error.to_string() };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(complain)?;
        }
        let kept = match File::open(path) {
            Ok(file) => load(BufReader::new(file), fingerprint),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(complain(error)),
        };
        let slots = kept.unwrap_or_default();
        // The file is written again in any case: without an incomplete line at the end, and completely or not at all.
        let fresh = path.with_extension("new");
        let mut file = File::create(&fresh).map_err(complain)?;
        let mut text = serde_json::json!({ "openraid-claims": FORMAT, "made_by": fingerprint }).to_string() + "\n";
        for (key, slot) in &slots {
            if let Slot::Known(value) = slot {
                text.push_str(&line(key, value));
            }
        }
        file.write_all(text.as_bytes()).map_err(complain)?;
        fs::rename(&fresh, path).map_err(complain)?;
        Ok(Self::with(slots, Some(file)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked leaves only complete values, because each value is stored in one step.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a key; `measure` is called once, even if several threads need the value.
    pub fn get_or<F: FnOnce() -> Value>(&self, key: &str, measure: F) -> Value {
        let mut inner = self.lock();
        loop {
            match inner.slots.get(key) {
                Some(Slot::Known(value)) => return value.clone(),
                Some(Slot::Busy) => inner = self.done.wait(inner).unwrap_or_else(PoisonError::into_inner),
                None => break,
            }
        }
        inner.slots.insert(key.to_owned(), Slot::Busy);
        drop(inner);
        let mut claimed = Claimed { store: self, key, value: None };
        let value = measure();
        claimed.value = Some(value.clone());
        drop(claimed);
        value
    }

    /// Number of known values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().slots.values().filter(|slot| matches!(slot, Slot::Known(_))).count()
    }

    /// Whether no value is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The reason for which values are no longer stored, if there is one.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        self.lock().lost.clone()
    }
}

/// A key that is being measured. The key is released if the measurement panics.
struct Claimed<'a> {
    store: &'a ClaimStore,
    key: &'a str,
    value: Option<Value>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let mut inner = self.store.lock();
        match self.value.take() {
            Some(value) => {
                let text = line(self.key, &value);
                let failed = inner.file.as_mut().and_then(|file| file.write_all(text.as_bytes()).err());
                if let Some(error) = failed {
                    inner.file = None;
                    inner.lost = Some(error.to_string());
                }
                inner.slots.insert(self.key.to_owned(), Slot::Known(value));
            }
            None => {
                inner.slots.remove(self.key);
            }
        }
        drop(inner);
        self.store.done.notify_all();
    }
}

fn line(key: &str, value: &Value) -> String {
    serde_json::json!([key, value]).to_string() + "\n"
}

/// The content of a file; `None` if the file has another format or fingerprint.
fn load(mut reader: impl BufRead, fingerprint: &str) -> Option<HashMap<String, Slot>> {
    let mut head = String::new();
    reader.read_line(&mut head).ok()?;
    let head: Value = serde_json::from_str(&head).ok()?;
    let fits =
        head.get("openraid-claims")?.as_u64() == Some(FORMAT) && head.get("made_by")?.as_str() == Some(fingerprint);
    if !fits {
        return None;
    }
    let mut slots = HashMap::new();
    for text in reader.lines().map_while(Result::ok) {
        if let Ok((key, value)) = serde_json::from_str::<(String, Value)>(&text) {
            slots.insert(key, Slot::Known(value));
        }
    }
    Some(slots)
}

/// The file of a store cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimStoreError {
    /// The file.
    pub path: PathBuf,
    pub error: String,
}

impl fmt::Display for ClaimStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; name another folder, or go without a cache", self.path.display(), self.error)
    }
}

impl std::error::Error for ClaimStoreError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("openraid-claims-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_value_is_measured_once_however_many_ask() {
        let store = ClaimStore::in_memory();
        let asked = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for key in 0..50 {
                        let value = store.get_or(&key.to_string(), || {
                            asked.fetch_add(1, Ordering::Relaxed);
                            Value::from(key * 2)
                        });
                        assert_eq!(value, Value::from(key * 2));
                    }
                });
            }
        });
        assert_eq!((asked.into_inner(), store.len()), (50, 50));
    }

    #[test]
    fn values_outlive_the_run_but_not_the_fingerprint() {
        let folder = folder("store");
        let path = folder.join("values");
        let first = ClaimStore::open(&path, "a").expect("a store");
        first.get_or("x", || Value::from(1.5));
        first.get_or("y", || Value::from("no"));
        drop(first);
        // An incomplete line is ignored, and later lines are complete again.
        let mut file = fs::OpenOptions::new().append(true).open(&path).expect("the file");
        file.write_all(b"[\"z\", 1").expect("written");
        let second = ClaimStore::open(&path, "a").expect("a store");
        assert_eq!(second.get_or("x", || Value::Null), Value::from(1.5));
        assert_eq!(second.get_or("z", || Value::from(7)), Value::from(7));
        drop(second);
        let third = ClaimStore::open(&path, "a").expect("a store");
        assert_eq!((third.len(), third.get_or("z", || Value::Null)), (3, Value::from(7)));
        drop(third);
        assert!(ClaimStore::open(&path, "b").expect("a store").is_empty());
        fs::write(&path, b"\xff\x00 garbage").expect("written");
        assert!(ClaimStore::open(&path, "b").expect("a store").is_empty());
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_store_that_cannot_be_written_reports_it() {
        let folder = folder("refused");
        fs::create_dir_all(&folder).expect("a folder");
        let error = ClaimStore::open(&folder, "a").err().expect("a folder is not a file");
        assert!(error.to_string().contains("name another folder"), "{error}");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn measuring_that_panics_leaves_the_key_to_the_next() {
        let store = ClaimStore::in_memory();
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.get_or("x", || panic!("broken"))));
        assert!(tried.is_err());
        assert_eq!(store.get_or("x", || Value::from(1)), Value::from(1));
    }
}
