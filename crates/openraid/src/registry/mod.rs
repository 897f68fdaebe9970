//! The registry: a file with the members of each array, so that `serve NAME` finds them.
//!
//! An array is described by its members, not by this file: if the registry is lost or stale, the user must name the
//! members once more, and the kept settings are lost. The file is JSON, replaced as a whole (written to a second file,
//! flushed, renamed), under its own lock, so that two commands at the same time both take effect. The content before the last
//! change stays next to it (`.old`) and is used if the file is damaged.

mod damaged;
mod names;
mod unwritten_changes;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use openraid_format::Uuid;
use openraid_runtime::service::journal::LastUse;
use openraid_sys::lock_file;
use serde::{Deserialize, Serialize};

pub use self::names::{distinct_name, raw_drive_name, raw_drive_number};
use self::unwritten_changes::{RegistryBacklog, FAILURES};
use crate::failure::{ArrayLabel, Failure};
use crate::kept_settings::KeptSettings;
use crate::model::LevelWord;
use crate::output;
use crate::quantity::utc;

const SCHEMA: &str = "openraid/registry/2";
/// The form before settings were kept: it is read, and written as the one above with the next change.
const SCHEMA_BEFORE: &str = "openraid/registry/1";
/// Journals that it remembers; the one that was used first is forgotten for one more.
const JOURNALS_MAX: usize = 64;
/// A registry is never larger; a larger file is invalid.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A recorded array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RegisteredArray {
    /// Name of the array.
    pub name: String,
    /// Its identity; for a nested array that of the stripe; none for raw drives.
    pub uuid: Option<String>,
    /// Name of the level, such as `raid5`.
    #[schema(value_type = String)]
    pub level: LevelWord,
    /// Its members, spares and those of all spans included: absolute paths and addresses.
    pub members: Vec<String>,
    /// Its settings. They stay when the array is renamed or its members change.
    #[serde(flatten)]
    pub kept: KeptSettings,
}

impl RegisteredArray {
    /// The array that failures are about.
    pub fn label(&self) -> ArrayLabel {
        ArrayLabel::new(&self.name, self.uuid.as_ref().and_then(|uuid| uuid.parse().ok()))
    }

    /// Is the other one a span of this array? The registry has the identity of the stripe only, so the members decide.
    pub fn has_span(&self, other: &ArrayLabel) -> bool {
        // A file that names an array does not say its level.
        let may_have = self.level.is_nested() || self.level == LevelWord::Unknown;
        may_have && !self.label().is(other) && other.members.iter().any(|member| self.members.contains(member))
    }

    /// Is this the array with this identity? Raw drives have none but their name.
    fn is(&self, uuid: Option<&str>, name: &str) -> bool {
        self.uuid.as_deref() == uuid && (uuid.is_some() || self.name == name)
    }
}

/// When a journal was used last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct JournalUse {
    uuid: String,
    epoch: u64,
    devices: u8,
    /// The last entry that is known to be durable.
    #[serde(default)]
    entry: u64,
}

/// The whole content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Content {
    schema: String,
    /// The identity of this controller, to which journals belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    controller: Option<String>,
    /// When which of its journals was used last: which device of two was left then is known by that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journals: Vec<JournalUse>,
    arrays: Vec<RegisteredArray>,
}

impl Default for Content {
    fn default() -> Self {
        Self { schema: SCHEMA.into(), controller: None, journals: Vec::new(), arrays: Vec::new() }
    }
}

/// Why a file is not used as the registry.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Fault {
    /// It cannot be read, or is no registry.
    Damaged(String),
    /// A newer or unknown version wrote it. An older copy would hide its content.
    OtherVersion(String),
}

/// The file.
#[derive(Clone, Debug)]
pub struct Registry {
    path: PathBuf,
    /// Was the user told that it is damaged?
    told: Arc<AtomicBool>,
    /// What could not be written.
    owed: Arc<Mutex<RegistryBacklog>>,
}

impl Registry {
    /// The registry of this user, or the one that was named.
    pub fn at(asked: Option<&Path>) -> Self {
        Self { path: asked.map_or_else(default_path, Path::to_path_buf), told: Arc::default(), owed: Arc::default() }
    }

    /// All arrays that are recorded.
    ///
    /// # Errors
    /// The file is there and cannot be read, or is no registry.
    pub fn entries(&self) -> Result<Vec<RegisteredArray>, Failure> {
        self.read().map(|content| content.arrays)
    }

    /// The entries for a command that can do without them: if they cannot be read, the user is told once, and the
    /// result is empty.
    pub fn entries_if_readable(&self) -> Vec<RegisteredArray> {
        self.entries().unwrap_or_else(|failure| {
            self.tell(&failure.text());
            Vec::new()
        })
    }

    fn tell(&self, text: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            output::warn(text);
        }
    }

    /// The array of this name.
    ///
    /// # Errors
    /// As [`Registry::entries`].
    pub fn find(&self, name: &str) -> Result<Option<RegisteredArray>, Failure> {
        Ok(self.entries()?.into_iter().find(|entry| entry.name == name))
    }

    /// The array with this identity, whatever its name is now.
    ///
    /// # Errors
    /// As [`Registry::entries`].
    pub fn known(&self, uuid: Option<&str>, name: &str) -> Result<Option<RegisteredArray>, Failure> {
        Ok(self.entries()?.into_iter().find(|entry| entry.is(uuid, name)))
    }

    /// The name for an array that is about to be remembered: its own, or its own with the begin of its identity if a different
    /// array, on other members, is remembered by that name.
    pub fn free_name(&self, array: &RegisteredArray) -> String {
        let has_it = |other: &RegisteredArray| {
            let is_another = other.uuid.is_some() && other.uuid != array.uuid;
            other.name == array.name && is_another && !other.members.iter().any(|member| array.members.contains(member))
        };
        match array.uuid.as_deref().filter(|_| self.entries_if_readable().iter().any(has_it)) {
            Some(uuid) => distinct_name(&array.name, uuid),
            None => array.name.clone(),
        }
    }

    /// Remember an array; one of the same name or identity is replaced. Kept settings of the same array stay, if the
    /// entry brings nothing of its own.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn remember(&self, mut entry: RegisteredArray) -> Result<(), Failure> {
        self.change(|arrays| {
            let before = arrays.iter().find(|other| other.is(entry.uuid.as_deref(), &entry.name));
            if let Some(before) = before.filter(|_| entry.kept == KeptSettings::default()) {
                entry.kept = before.kept.clone();
            }
            arrays.retain(|other| other.name != entry.name && (other.uuid.is_none() || other.uuid != entry.uuid));
            arrays.push(entry);
        })
    }

    /// Change the kept settings of an array; false if it is not recorded.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn keep(
        &self,
        uuid: Option<&str>,
        name: &str,
        change: impl FnOnce(&mut KeptSettings),
    ) -> Result<bool, Failure> {
        let mut found = false;
        self.change(|arrays| {
            if let Some(entry) = arrays.iter_mut().find(|entry| entry.is(uuid, name)) {
                found = true;
                change(&mut entry.kept);
            }
        })?;
        Ok(found)
    }

    /// Forget an array; true if it was recorded.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget(&self, name: &str) -> Result<bool, Failure> {
        let mut found = false;
        self.change(|arrays| {
            found = arrays.iter().any(|entry| entry.name == name);
            arrays.retain(|entry| entry.name != name);
        })?;
        Ok(found)
    }

    /// These members belong to no array any more; an array without members is forgotten.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget_members(&self, members: &[String]) -> Result<(), Failure> {
        let resolved = |member: &String| Path::new(member).canonicalize().ok();
        let places: Vec<PathBuf> = members.iter().filter_map(resolved).collect();
        // A drive has several names in /dev/disk.
        let is_one =
            |member: &String| members.contains(member) || resolved(member).is_some_and(|place| places.contains(&place));
        if !self.entries()?.iter().any(|entry| entry.members.iter().any(is_one)) {
            return Ok(());
        }
        self.change(|arrays| {
            arrays.retain_mut(|entry| {
                let before = entry.members.len();
                entry.members.retain(|member| !is_one(member));
                before == entry.members.len() || !entry.members.is_empty()
            });
        })
    }

    /// The identity of the controller that this registry belongs to. It is made at the first call.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn controller(&self) -> Result<Uuid, Failure> {
        let of = |content: &Content| content.controller.as_ref().and_then(|text| text.parse::<Uuid>().ok());
        if let Some(known) = of(&self.read()?) {
            return Ok(known);
        }
        let mut uuid = openraid_runtime::service::random_uuid();
        self.change_all(|content| match of(content) {
            Some(known) => uuid = known,
            None => content.controller = Some(uuid.to_string()),
        })?;
        Ok(uuid)
    }

    /// When which journal was used last.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_uses(&self) -> Result<Vec<LastUse>, Failure> {
        let known = |used: &JournalUse| {
            Some(LastUse {
                journal: used.uuid.parse().ok()?,
                epoch: used.epoch,
                devices: used.devices,
                entry: used.entry,
            })
        };
        Ok(self.read()?.journals.iter().filter_map(known).collect())
    }

    /// A journal is in use. A limited number of earlier journals is recorded.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn remember_use(&self, used: LastUse) -> Result<(), Failure> {
        let uuid = used.journal.to_string();
        self.change_all(|content| {
            let before =
                content.journals.iter().find(|journal| journal.uuid == uuid).map_or(0, |journal| journal.devices);
            content.journals.retain(|journal| journal.uuid != uuid);
            let more = (content.journals.len() + 1).saturating_sub(JOURNALS_MAX);
            content.journals.drain(..more);
            let devices = used.devices.max(before);
            content.journals.push(JournalUse { uuid, epoch: used.epoch, devices, entry: used.entry });
        })
    }

    /// A journal that is in use has come to this entry.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn note_entry(&self, journal: Uuid, entry: u64) -> Result<(), Failure> {
        let uuid = journal.to_string();
        self.change_all(|content| {
            for journal in content.journals.iter_mut().filter(|journal| journal.uuid == uuid) {
                journal.entry = journal.entry.max(entry);
            }
        })
    }

    fn read(&self) -> Result<Content, Failure> {
        self.read_any().map(|(content, _)| self.owed().over(content))
    }

    fn newer(&self, why: &str) -> Failure {
        Failure::refused(format!(
            "the registry {} {why}: a newer version of openraid wrote it; install that version again. Nothing was changed, and the \
             arrays are as they were",
            self.path.display()
        ))
    }

    /// The content, and whether it is that of the older copy because the file is damaged.
    fn read_any(&self) -> Result<(Content, bool), Failure> {
        let refuse = |why: &str| {
            Failure::failed(format!(
                "the registry {} {why}; move it away (arrays are then found by naming their members), or name \
                 another one with --registry",
                self.path.display()
            ))
        };
        let old = self.beside("old");
        let why = match read_file(&self.path) {
            Ok(Some(content)) => return Ok((content, false)),
            // Every registry that was written has content: this one was cut off, if it had content before.
            Ok(None) if !self.path.exists() || !old.exists() => return Ok((Content::default(), false)),
            Ok(None) => "is empty".into(),
            Err(Fault::OtherVersion(why)) => return Err(self.newer(&why)),
            Err(Fault::Damaged(why)) => why,
        };
        match read_file(&old) {
            Ok(Some(content)) => {
                let at = fs::metadata(&old).ok().and_then(|metadata| metadata.modified().ok());
                let at = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map_or(0, |at| at.as_secs());
                self.tell(&format!(
                    "the registry {} {why}; its older copy {} of {} is used, which lacks the last change; with the next \
                     change the damaged file is kept as {}",
                    self.path.display(),
                    old.display(),
                    utc(at),
                    self.beside("damaged").display()
                ));
                Ok((content, true))
            }
            Ok(None) => Err(refuse(&format!("{why} (there is no older copy)"))),
            Err(Fault::Damaged(other) | Fault::OtherVersion(other)) => {
                Err(refuse(&format!("{why} (the older copy {} {other})", old.display())))
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<RegisteredArray>)) -> Result<(), Failure> {
        self.change_all(|content| change(&mut content.arrays))
    }

    /// A change that cannot be written counts for this process, and is written with the next one.
    fn change_all(&self, change: impl FnOnce(&mut Content)) -> Result<(), Failure> {
        let lock = self.lock();
        // Another process writes: nothing was changed, and nothing is owed.
        if let Some(error) = lock.as_ref().err().filter(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return Err(self.not_written(error));
        }
        let (file, is_old) = self.read_any().inspect_err(|failure| self.owed().fail(failure.text()))?;
        let mut owed = self.owed();
        let mut content = owed.over(file.clone());
        change(&mut content);
        if content == file {
            owed.settle();
            return Ok(());
        }
        content.arrays.sort_by(|a, b| a.name.cmp(&b.name));
        let written =
            lock.and_then(|_lock| self.write_content(&content, is_old)).map_err(|error| self.not_written(&error));
        match &written {
            Ok(()) => owed.settle(),
            Err(failure) => owed.note(&file, &content, failure.text()),
        }
        written
    }

    fn write_content(&self, content: &Content, is_old: bool) -> io::Result<()> {
        let text = serde_json::to_string_pretty(content).unwrap_or_else(|error| panic!("bug: no JSON: {error}"));
        if is_old {
            // The file stays at its place until it is replaced: without it nothing would be known.
            let damaged = self.beside("damaged");
            let _ = fs::remove_file(&damaged);
            fs::hard_link(&self.path, &damaged).or_else(|_| fs::copy(&self.path, &damaged).map(drop))?;
        } else {
            self.keep_old()?;
        }
        self.replace(&self.path, text.as_bytes())
    }

    fn owed(&self) -> MutexGuard<'_, RegistryBacklog> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of changes of this thread that could not be written, and why the last one could not, while the file
    /// lacks it.
    pub fn unwritten(&self) -> (u64, Option<String>) {
        (FAILURES.get(), self.owed().text())
    }

    /// Write what the file lacks, if there is anything, and the last try is some time ago.
    pub fn write_again(&self) {
        if self.owed().is_due() {
            let before = FAILURES.get();
            // The alarm says why, while it lasts.
            let _ = self.change_all(|_| {});
            // No command changed anything.
            FAILURES.set(before);
        }
    }

    fn not_written(&self, error: &io::Error) -> Failure {
        let path = self.path.display();
        match error.kind() {
            io::ErrorKind::WouldBlock => Failure::failed(format!("the registry {path} cannot be changed: {error}")),
            _ => Failure::failed(format!(
                "the registry {path} cannot be written: {error}; {}",
                unwritten_changes::remedy(error, &self.folder())
            )),
        }
    }

    fn folder(&self) -> String {
        self.path.parent().unwrap_or(Path::new(".")).display().to_string()
    }

    /// Refuse if another process keeps the lock, before a command changes anything that it could not record.
    ///
    /// # Errors
    /// The lock is held; the text names the holder.
    pub fn refuse_if_locked(&self) -> Result<(), Failure> {
        match self.lock() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Failure::failed(format!("{}; nothing was changed", self.not_written(&error))))
            }
            // What else is wrong shows when it is written.
            _ => Ok(()),
        }
    }

    /// Keep the present content as the older copy. A registry that is not there yet has none.
    fn keep_old(&self) -> io::Result<()> {
        let fresh = self.beside("new");
        match fs::copy(&self.path, &fresh) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.path.exists() => return Ok(()),
            copied => Self::leave_nothing(&fresh, copied.and_then(|_| File::open(&fresh)?.sync_all()))?,
        }
        fs::rename(&fresh, self.beside("old"))
    }

    /// A file that could not be written as a whole takes no room.
    fn leave_nothing(fresh: &Path, written: io::Result<()>) -> io::Result<()> {
        if written.is_err() {
            let _ = fs::remove_file(fresh);
        }
        written
    }

    /// A folder next to the registry; it may not be there yet.
    pub fn folder_beside(&self, suffix: &str) -> PathBuf {
        self.beside(suffix)
    }

    /// The text of a file next to the registry, if there is one and it is not too long.
    pub fn read_beside(&self, suffix: &str, bytes_max: u64) -> Option<String> {
        let path = self.beside(suffix);
        let metadata = fs::metadata(&path).ok()?;
        let text = (metadata.is_file() && metadata.len() <= bytes_max).then(|| fs::read_to_string(&path));
        text?.ok()
    }

    /// Replace a file next to the registry. The text is made under the lock.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn change_beside(&self, suffix: &str, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let path = self.beside(suffix);
        let write = || {
            let _lock = self.lock()?;
            self.replace(&path, text().as_bytes())
        };
        write().map_err(|error| {
            let remedy = unwritten_changes::remedy_beside(&error, &self.folder());
            Failure::failed(format!("{} cannot be written: {error}; {remedy}", path.display()))
        })
    }

    /// The lock of the registry and of the files next to it.
    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.beside("lock"))?;
        lock_file(&lock, &self.beside("lock"), false)?;
        Ok(lock)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let fresh = self.beside("new");
        let write = || {
            let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
            file.write_all(bytes)?;
            file.write_all(b"\n")?;
            file.sync_all()
        };
        Self::leave_nothing(&fresh, write())?;
        fs::rename(&fresh, path)?;
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(suffix);
        name.into()
    }
}

/// The content of a file; none if it is empty or not there.
fn read_file(path: &Path) -> Result<Option<Content>, Fault> {
    let unreadable = |error: io::Error| Fault::Damaged(format!("cannot be read: {error}"));
    let size = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Err(Fault::Damaged("is not a regular file".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if size > FILE_BYTES_MAX {
        return Err(Fault::Damaged(format!("has {size} bytes, which no registry has")));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    if text.is_empty() {
        return Ok(None);
    }
    let damaged = |error: serde_json::Error| Fault::Damaged(format!("is damaged: {error}"));
    let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
    // The version comes first: the form of another one may be any.
    match value["schema"].as_str() {
        Some(SCHEMA | SCHEMA_BEFORE) | None => {}
        Some(other) => return Err(Fault::OtherVersion(format!("is of another version ({other})"))),
    }
    let content: Content = serde_json::from_value(value).map_err(damaged)?;
    Ok(Some(Content { schema: SCHEMA.into(), ..content }))
}

/// `$XDG_STATE_HOME/openraid/registry.json`; for root `/var/lib/openraid/registry.json`.
fn default_path() -> PathBuf {
    let folder = match (std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")) {
        (Some(state), _) if !state.is_empty() => PathBuf::from(state),
        _ if is_root() => PathBuf::from("/var/lib"),
        (_, Some(home)) if !home.is_empty() => PathBuf::from(home).join(".local/state"),
        _ => std::env::temp_dir(),
    };
    folder.join("openraid").join("registry.json")
}

/// Is this root? The owner of this process's own folder in /proc says so.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use openraid_units::ArrayLevel;

    use super::*;

    fn entry(name: &str, uuid: &str, members: &[&str]) -> RegisteredArray {
        let members = members.iter().map(ToString::to_string).collect();
        RegisteredArray {
            name: name.into(),
            uuid: Some(uuid.into()),
            level: ArrayLevel::Raid5.into(),
            members,
            kept: KeptSettings::default(),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("openraid-registry-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_remembered_array_is_found_until_it_is_forgotten() {
        let folder = folder("remember");
        let registry = Registry::at(Some(&folder.join("deep/registry.json")));
        assert_eq!(registry.entries(), Ok(Vec::new()));
        registry.remember(entry("a", "1", &["/x", "/y"])).unwrap();
        registry.remember(entry("b", "2", &["/z"])).unwrap();
        registry.remember(entry("renamed", "1", &["/x", "/y"])).unwrap();
        assert_eq!(registry.find("a"), Ok(None));
        assert_eq!(registry.find("renamed").unwrap().unwrap().members, ["/x", "/y"]);
        registry.forget_members(&["/z".into(), "/x".into()]).unwrap();
        assert_eq!(registry.entries(), Ok(vec![entry("renamed", "1", &["/y"])]));
        assert_eq!(registry.forget("renamed"), Ok(true));
        assert_eq!(registry.forget("renamed"), Ok(false));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn settings_stay_with_the_array_and_not_with_its_name() {
        let folder = folder("kept");
        let registry = Registry::at(Some(&folder.join("registry.json")));
        registry.remember(entry("a", "1", &["/x", "/y"])).unwrap();
        let set = [("rebuild.rate".to_owned(), "50M".to_owned())];
        assert_eq!(registry.keep(Some("1"), "a", |kept| kept.note(&set)), Ok(true));
        assert_eq!(registry.keep(Some("9"), "a", |kept| kept.note(&set)), Ok(false));
        registry.remember(entry("renamed", "1", &["/x", "/z"])).unwrap();
        let found = registry.known(Some("1"), "whatever").unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.kept.settings["rebuild.rate"].as_str()), ("renamed", "50M"));
        registry.remember(entry("renamed", "2", &["/x", "/y"])).unwrap();
        assert_eq!(registry.find("renamed").unwrap().unwrap().kept, KeptSettings::default(), "it is another array");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_registry_of_the_version_before_is_read_and_written_in_this_one() {
        let folder = folder("before");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("registry.json");
        let text = r#"{"schema":"openraid/registry/1","controller":"00112233:44556677:8899aabb:ccddeeff",
            "arrays":[{"name":"a","uuid":"1","level":"raid5","members":["/x"],"journalled":true}]}"#;
        fs::write(&path, text).unwrap();
        let registry = Registry::at(Some(&path));
        let kept = registry.find("a").unwrap().unwrap().kept;
        assert_eq!(kept, KeptSettings { journalled: true, ..KeptSettings::default() });
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "reading changes nothing");
        registry.keep(Some("1"), "a", |kept| kept.journalled = false).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("openraid/registry/2"));
        assert_eq!(registry.controller().unwrap().to_string(), "00112233:44556677:8899aabb:ccddeeff");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_change_that_cannot_be_written_counts_here_and_is_written_later_over_the_changes_of_others() {
        let folder = folder("owed");
        let path = folder.join("registry.json");
        let (registry, other) = (Registry::at(Some(&path)), Registry::at(Some(&path)));
        registry.remember(entry("a", "1", &["/x"])).unwrap();
        registry.remember(entry("b", "2", &["/y"])).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        // A folder at the place of the second file: nothing can be written, for any process.
        fs::create_dir(folder.join("registry.json.new")).unwrap();
        let set = [("rebuild.rate".to_owned(), "50M".to_owned())];
        let failure = registry.keep(Some("1"), "a", |kept| kept.note(&set)).unwrap_err();
        assert!(failure.text().contains("cannot be written"), "{}", failure.text());
        assert!(registry.forget("b").is_err());
        let rate =
            |registry: &Registry| registry.find("a").unwrap().unwrap().kept.settings.get("rebuild.rate").cloned();
        assert_eq!((rate(&registry), registry.find("b")), (Some("50M".into()), Ok(None)));
        let (failures, why) = registry.unwritten();
        assert_eq!((failures, why.unwrap().starts_with("changes of a, 2 are not kept: the registry")), (2, true));
        assert_eq!(fs::read_to_string(&path).unwrap(), whole, "the file is whole");
        fs::remove_dir(folder.join("registry.json.new")).unwrap();
        other.remember(entry("c", "3", &["/z"])).unwrap();
        registry.remember(entry("a", "1", &["/x"])).unwrap();
        assert_eq!(registry.unwritten(), (2, None));
        let names: Vec<String> = other.entries().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!((names, rate(&other)), (vec!["a".to_owned(), "c".to_owned()], Some("50M".into())));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_controller_keeps_its_identity() {
        let folder = folder("controller");
        let registry = Registry::at(Some(&folder.join("registry.json")));
        let controller = registry.controller().unwrap();
        registry.remember(entry("a", "1", &["/x"])).unwrap();
        assert_eq!(registry.controller(), Ok(controller));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn the_registry_keeps_the_last_use_and_the_devices_of_each_journal() {
        let folder = folder("journals");
        let registry = Registry::at(Some(&folder.join("registry.json")));
        let used =
            |journal, epoch, devices| LastUse { journal: Uuid([journal; 16]), epoch, devices, entry: epoch * 10 };
        for usage in [used(1, 5, 2), used(2, 7, 1), used(1, 6, 1)] {
            registry.remember_use(usage).unwrap();
        }
        assert_eq!(registry.last_uses(), Ok(vec![used(2, 7, 1), used(1, 6, 2)]));
        for entry in [75, 74] {
            registry.note_entry(Uuid([2; 16]), entry).unwrap();
            registry.note_entry(Uuid([9; 16]), entry).unwrap();
        }
        let noted = LastUse { entry: 75, ..used(2, 7, 1) };
        assert_eq!(registry.last_uses(), Ok(vec![noted, used(1, 6, 2)]), "never back, and none that was not used");
        (3..70).for_each(|journal| registry.remember_use(used(journal, 1, 1)).unwrap());
        let known = registry.last_uses().unwrap();
        assert_eq!((known.len(), known[0].journal, known[63].journal), (JOURNALS_MAX, Uuid([6; 16]), Uuid([69; 16])));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_file_that_is_no_registry_is_refused_and_left_alone() {
        let folder = folder("damaged");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("registry.json");
        let registry = Registry::at(Some(&path));
        for text in ["{", "[]", "{\"schema\":\"openraid/registry/9\",\"arrays\":[]}", "\u{0}"] {
            fs::write(&path, text).unwrap();
            assert!(registry.entries().is_err(), "{text}");
            assert!(registry.remember(entry("a", "1", &["/x"])).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(registry.entries_if_readable().is_empty());
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn the_content_before_the_last_change_is_used_while_the_file_is_damaged() {
        let folder = folder("old");
        let path = folder.join("registry.json");
        let registry = Registry::at(Some(&path));
        let controller = registry.controller().unwrap();
        registry.remember(entry("a", "1", &["/x"])).unwrap();
        registry.remember(entry("b", "2", &["/y"])).unwrap();
        let names = |registry: &Registry| -> Vec<String> {
            registry.entries().unwrap().into_iter().map(|entry| entry.name).collect()
        };
        let whole = fs::read_to_string(&path).unwrap();
        let cut = &whole[..whole.len() / 2];
        for damaged in ["", cut, "{}", "\u{0}\u{0}", &whole.replace('{', "[")] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(
                (names(&registry), registry.controller()),
                (vec!["a".to_owned()], Ok(controller)),
                "{damaged:?}"
            );
        }
        // A newer version has what no older copy has.
        fs::write(&path, whole.replace("registry/2", "registry/3")).unwrap();
        assert!(registry.entries().unwrap_err().text().contains("another version"));
        fs::write(&path, cut).unwrap();
        registry.remember(entry("c", "3", &["/z"])).unwrap();
        assert_eq!(names(&registry), ["a", "c"]);
        assert_eq!(fs::read_to_string(folder.join("registry.json.damaged")).unwrap(), cut, "it is kept");
        fs::write(&path, "{").unwrap();
        assert_eq!(names(&registry), ["a"], "the good copy was not replaced by the damaged file");
        fs::write(folder.join("registry.json.old"), "[").unwrap();
        let text = registry.entries().unwrap_err().text();
        assert!(text.contains("registry.json is damaged") && text.contains("registry.json.old is damaged"), "{text}");
        fs::remove_file(&path).unwrap();
        assert_eq!(names(&registry), [""; 0], "a file that was moved away stays away");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_lock_that_another_process_keeps_is_an_error_that_names_it() {
        let folder = folder("locked");
        let registry = Registry::at(Some(&folder.join("registry.json")));
        registry.remember(entry("a", "1", &["/x"])).unwrap();
        let path = folder.join("registry.json.lock");
        let held = File::open(&path).unwrap();
        held.lock().unwrap();
        let text = registry.refuse_if_locked().unwrap_err().text();
        let holder = format!("has been locked by process {} (", std::process::id());
        assert!(
            text.contains(&holder) && text.contains(" for 5 s; ") && text.ends_with("nothing was changed"),
            "{text}"
        );
        assert!(registry.remember(entry("b", "2", &["/y"])).unwrap_err().text().contains(&holder));
        assert_eq!(registry.entries().unwrap().len(), 1, "reading needs no lock");
        held.unlock().unwrap();
        registry.refuse_if_locked().unwrap();
        registry.remember(entry("b", "2", &["/y"])).unwrap();
        let _ = fs::remove_dir_all(&folder);
    }
}
