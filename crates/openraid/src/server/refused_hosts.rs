//! Acknowledged writes that a crash would lose: a durable mark for each array that may have some, and hosts that are refused when a
//! start finds a mark ([decision](../../../../docs/decisions/service.md#refused-hosts)).
//!
//! ```text
//!  no mark --before hosts may write--> mark --all is written, clean stop--> no mark
//!            ^                        |  ^
//!            |  cache clean for some s|  |the answer to a write waits
//!            |                        v  |
//!            |                       lower mark --start after its crash--> as below
//!            |
//!  mark --start after a crash--> hosts are refused --`--after-loss`--> as at the first arrow
//! ```
//!
//! It must never be lowered before the writes that it stands for are on the media, and costs requests nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use openraid_config::AfterPowerCut;
use openraid_core::admin::{Policy, WriteCache};
use openraid_format::{MdLevel, Superblock};
use openraid_runtime::service::ServiceStatus;
use openraid_status::shell_quoting::command_with;
use openraid_status::EventName;
use openraid_sys::DriveCache;
use openraid_units::ArrayId;
use serde::{Deserialize, Serialize};

use super::array_model::{health_of, ServedArray};
use super::joining_members::set_status;
use super::{ListenAddress, Server, ServerAccess};
use crate::alarms::Condition;
use crate::control::ServerAnswer;
use crate::events::Severity;
use crate::events::{plain, News};
use crate::failure::Failure;
use crate::members::{is_memory, spec};
use crate::model::{ArrayModel, HealthWord};
use crate::quantity::utc;
use crate::registry::Registry;

/// Marks are short.
const BYTES_MAX: u64 = 4096;
/// The mark of a volatile cache stands for less when nothing in the cache was dirty for this time.
const CLEAN_FOR: Duration = Duration::from_secs(5);

/// The crash that would lose acknowledged writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostWith {
    /// That of the machine: writes are in the caches of its drives.
    Machine,
    /// That of the server: writes are in its memory.
    Server,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Mark {
    lost_with: LostWith,
    /// The start of the machine in which it was made.
    boot: String,
    at_seconds: u64,
}

/// Acknowledged writes may be lost.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Loss {
    with: LostWith,
    why: String,
}

impl Mark {
    /// The loss, for a start of the server in this start of the machine. `is_clean`: the members say that they were flushed after the
    /// last write.
    fn loss(&self, boot: &str, is_clean: bool) -> Option<Loss> {
        let since = utc(self.at_seconds);
        let why = match self.lost_with {
            LostWith::Server => format!("the server died after {since} with write.cache=volatile"),
            LostWith::Machine if self.boot != boot && !is_clean => format!(
                "the machine went down after {since} without a clean stop of the server, and drives may have lost what was in \
                 their caches"
            ),
            LostWith::Machine => return None,
        };
        Some(Loss { with: self.lost_with, why })
    }
}

/// A mark that cannot follow what hosts write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MarkTrouble {
    /// It cannot be made, for this reason: answers to writes wait.
    Waits(String),
    /// It cannot be taken off, for this reason.
    Stays(String),
}

impl MarkTrouble {
    fn condition(&self, name: &str, uuid: Option<String>) -> Condition {
        let through = command_with("set", [name], "write.cache=through");
        let (level, text) = match self {
            Self::Waits(why) => (
                Severity::Critical,
                format!("writes wait, because the mark that a crash would lose them is not there: {why}; `{through}` needs none"),
            ),
            Self::Stays(why) => (
                Severity::Warning,
                format!("the mark of writes that a crash would lose stays after they are written, and refuses hosts then: {why}"),
            ),
        };
        Condition {
            array: Some(name.to_owned()),
            uuid,
            member: Some("mark".into()),
            level,
            ..Condition::of_server(EventName::StateUnwritable, format!("{name}: {text}"))
        }
    }
}

/// The alarm of a mark that cannot follow the writes of an array.
pub(super) fn condition(model: &ArrayModel, served: &ServedArray) -> Option<Condition> {
    served.mark_trouble.as_ref().map(|trouble| trouble.condition(&model.name, model.uuid.clone()))
}

/// What a start finds.
#[derive(Clone, PartialEq, Eq, Debug)]
enum StoredMark {
    Nothing,
    Mark(Mark),
    /// There is a mark, and what it says cannot be read.
    Damaged,
}

impl StoredMark {
    fn read(registry: &Registry, key: &str) -> Self {
        let name = file(key);
        if !registry.folder_beside(&name).exists() {
            return Self::Nothing;
        }
        let text = registry.read_beside(&name, BYTES_MAX);
        text.and_then(|text| serde_json::from_str(&text).ok()).map_or(Self::Damaged, Self::Mark)
    }

    fn loss(&self, boot: &str, is_clean: bool) -> Option<Loss> {
        match self {
            Self::Nothing => None,
            Self::Mark(mark) => mark.loss(boot, is_clean),
            Self::Damaged => {
                Some(Loss { with: LostWith::Server, why: "the mark of an earlier server cannot be read".into() })
            }
        }
    }
}

/// `key`: of the array ([`ServedArray::key`]).
fn file(key: &str) -> String {
    format!("unwritten-{key}")
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("."));
            let text = format!("{} cannot be removed: {error}; make {} writable", path.display(), folder.display());
            Err(Failure::failed(text))
        }
        _ => Ok(()),
    }
}

/// The present start of the machine.
fn boot() -> String {
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.map(|text| text.trim().to_owned()).unwrap_or_default()
}

impl Server {
    /// Look for a mark before the array is used: if acknowledged writes may be lost, its hosts are refused, or are served with an
    /// alarm.
    pub(super) fn look_for_loss(&self, name: &str, after_loss: bool) {
        let Ok(served) = self.find(name) else { return };
        let found = StoredMark::read(&self.registry, &served.key());
        let Some(Loss { with, why }) = found.loss(&boot(), was_flushed(&served)) else {
            match found {
                // The writes before this start of the machine are on the media: the mark is not theirs any longer.
                StoredMark::Mark(mark) if mark.boot != boot() => self.forget_mark(&served),
                StoredMark::Mark(mark) => self.change_served(name, |served| served.mark = Some(mark.lost_with)),
                StoredMark::Nothing | StoredMark::Damaged => {}
            }
            return;
        };
        let (event, text) = if after_loss {
            self.forget_mark(&served);
            (EventName::Changed, format!("hosts are served again (--after-loss): {why}"))
        } else if with == LostWith::Machine && self.after_power_cut == Some(AfterPowerCut::Admit) {
            self.forget_mark(&served);
            let text = format!(
                "{why}: acknowledged writes may be lost, and hosts are served all the same (after-power-cut=admit); restart hosts \
                 that did not go down, or check their file systems"
            );
            self.change_served(name, |served| served.admitted = Some(text.clone()));
            (EventName::HostsAdmitted, text)
        } else {
            let again = command_with("serve", [name], "--after-loss");
            let text = format!("{why}: acknowledged writes may be lost; check its content, then `{again}`");
            self.change_served(name, |served| served.refused = Some(text.clone()));
            (EventName::HostsRefused, text)
        };
        let news = News { array: Some(name.to_owned()), ..plain(event, format!("{name}: {text}")) };
        self.add_news(vec![news]);
    }

    /// Before hosts can write by these rules: mark what a crash would lose. A mark that stands for more stays.
    ///
    /// # Errors
    /// The mark cannot be written.
    pub(super) fn mark_before(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        policy: Policy,
    ) -> Result<(), Failure> {
        let wanted = self.lost_with(status, served, policy);
        if served.refused.is_some() || wanted <= served.mark {
            return Ok(());
        }
        self.set_mark(served, wanted)
    }

    /// The array has other rules now: if a crash would lose less, its writes are flushed, and the mark says so.
    ///
    /// # Errors
    /// The flush failed, or the mark cannot be written. It stands for too much then.
    pub(super) fn mark_after(&self, name: &str) -> Result<(), Failure> {
        let (served, status) = (self.find(name)?, self.status()?);
        let policy = set_status(&status, served.sets()[0])?.policy;
        let wanted = self.lost_with(&status, &served, policy);
        if served.refused.is_some() || wanted >= served.mark {
            return Ok(());
        }
        self.handle.flush(served.array)?;
        self.set_mark(&served, wanted)
    }

    /// Serve hosts again. What they lost is known.
    pub(super) fn after_loss(&self, name: &str) -> Result<ServerAnswer, Failure> {
        let (served, status) = (self.find(name)?, self.status()?);
        if served.refused.is_none() {
            return Err(Failure::refused(format!("{name} refuses no hosts; nothing was changed")));
        }
        let policy = set_status(&status, served.sets()[0])?.policy;
        self.set_mark(&served, self.lost_with(&status, &served, policy))?;
        self.change_served(name, |served| served.refused = None);
        self.handle.admit(served.array)?;
        self.done(format!("{name}: hosts are served again"), name)
    }

    /// Marks follow what hosts write: with a volatile cache in which nothing was dirty for a while, a mark stands for less, and
    /// answers to writes wait until it stands for all again.
    pub fn follow_marks(&self) {
        let Ok(status) = self.status() else { return };
        let _one_at_a_time = self.marking();
        let arrays = self.state().arrays.clone();
        let waits = |served: &ServedArray| matches!(served.mark_trouble, Some(MarkTrouble::Waits(_)));
        for view in &status.arrays {
            let served = arrays.iter().find(|served| served.array == view.status.array);
            if !view.awaits_mark && !served.is_some_and(waits) {
                continue;
            }
            let marked = served.map_or(Ok(()), |served| self.mark_all(&status, served));
            // The clients wait until the mark can be written, and the server tries at each tick.
            let passed = marked.and_then(|()| Ok(self.handle.pass_writes(view.status.array)?));
            match (served, passed) {
                (Some(served), Err(failure)) => self.note_mark_trouble(served, MarkTrouble::Waits(failure.text())),
                (Some(served), Ok(())) if waits(served) => {
                    self.change_served(&served.name, |served| served.mark_trouble = None);
                }
                _ => {}
            }
        }
        let is_clean = status.cache.is_some_and(|cache| cache.dirty.is_zero());
        for served in arrays.iter().filter(|served| served.mark == Some(LostWith::Server) && served.refused.is_none()) {
            let since = served.clean_since.filter(|_| is_clean).or_else(|| is_clean.then(Instant::now));
            self.change_served(&served.name, |served| served.clean_since = since);
            if since.is_some_and(|since| since.elapsed() >= CLEAN_FOR) {
                let lowered = self.lower_mark(&status, served);
                lowered.unwrap_or_else(|failure| self.note_mark_trouble(served, MarkTrouble::Stays(failure.text())));
            }
        }
    }

    /// An alarm until a later try succeeds. It is told once.
    fn note_mark_trouble(&self, served: &ServedArray, trouble: MarkTrouble) {
        let kind = served.mark_trouble.as_ref().map(std::mem::discriminant);
        if kind != Some(std::mem::discriminant(&trouble)) {
            let Condition { level, text, .. } = trouble.condition(&served.name, served.uuid());
            crate::output::warn(&text);
            let (array, level) = (Some(served.name.clone()), Some(level));
            self.add_news(vec![News { array, level, ..plain(EventName::StateUnwritable, text) }]);
        }
        self.change_served(&served.name, |served| served.mark_trouble = Some(trouble));
    }

    /// What a power cut would mean, if it was not decided: a refusal must be no surprise.
    pub fn power_cut_note(&self) -> Option<String> {
        if self.after_power_cut.is_some() {
            return None;
        }
        let state = self.state();
        let marked = state.arrays.iter().filter(|served| served.mark == Some(LostWith::Machine));
        let names: Vec<&str> = marked.map(|served| served.name.as_str()).collect();
        let again = command_with("serve", names.first(), "--after-loss");
        (!names.is_empty()).then(|| {
            format!(
                "{}: if this machine goes down during writes, hosts are refused until `{again}`, because drives may lose what they \
                 cache; name your choice, server.after-power-cut = \"refuse\", or \"admit\" if all hosts go down with it",
                names.join(", ")
            )
        })
    }

    fn mark_all(&self, status: &ServiceStatus, served: &ServedArray) -> Result<(), Failure> {
        let policy = set_status(status, served.sets()[0])?.policy;
        self.change_served(&served.name, |served| served.clean_since = None);
        self.mark_before(status, served, policy)
    }

    fn lower_mark(&self, status: &ServiceStatus, served: &ServedArray) -> Result<(), Failure> {
        if self.handle.hold_writes(served.array)? {
            let policy = set_status(status, served.sets()[0])?.policy;
            let without_cache = Policy { write_cache: WriteCache::Through, ..policy };
            self.set_mark(served, self.lost_with(status, served, without_cache))?;
        }
        Ok(())
    }

    pub(super) fn marking(&self) -> MutexGuard<'_, ()> {
        self.marking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All writes of an array are on its members, and flushed there. `status` is of before its stop.
    pub(super) fn end_mark(&self, status: &ServiceStatus, name: &str) {
        let Ok(served) = self.find(name) else { return };
        if health_of(status, &served) != Some(HealthWord::Failed) {
            self.remove_mark(&served);
        }
    }

    /// The stop of this array lost writes, or did not end: its mark stays.
    pub fn keep_mark(&self, array: ArrayId) {
        let mut state = self.state();
        let is_it = |served: &&mut ServedArray| served.array == array || served.spans().contains(&array);
        if let Some(served) = state.arrays.iter_mut().find(is_it) {
            served.mark = None;
        }
    }

    /// The server has stopped all arrays cleanly.
    pub fn end_marks(&self) {
        let arrays = self.state().arrays.clone();
        arrays.iter().for_each(|served| self.remove_mark(served));
    }

    fn remove_mark(&self, served: &ServedArray) {
        if served.refused.is_none() && served.mark.is_some() {
            self.forget_mark(served);
        }
    }

    fn forget_mark(&self, served: &ServedArray) {
        if let Err(failure) = self.set_mark(served, None) {
            crate::output::warn(&failure.text());
        }
    }

    fn set_mark(&self, served: &ServedArray, lost_with: Option<LostWith>) -> Result<(), Failure> {
        let file = file(&served.key());
        match lost_with {
            None => remove(&self.registry.folder_beside(&file))?,
            Some(lost_with) => {
                let mark = Mark { lost_with, boot: boot(), at_seconds: openraid_sys::clock::wall_seconds() };
                let text = serde_json::to_string(&mark).unwrap_or_else(|error| panic!("bug: no JSON: {error}"));
                self.registry.change_beside(&file, || text)?;
            }
        }
        self.change_served(&served.name, |served| {
            (served.mark, served.clean_since, served.mark_trouble) = (lost_with, None, None);
        });
        Ok(())
    }

    /// The crash that would lose what hosts write by these rules.
    fn lost_with(&self, status: &ServiceStatus, served: &ServedArray, policy: Policy) -> Option<LostWith> {
        let members = members(status, served);
        let ends_with_server = !members.is_empty() && members.iter().all(|member| is_of_server(member));
        if self.access != ServerAccess::ReadWrite || ends_with_server {
            return None;
        }
        match policy.write_cache {
            WriteCache::Volatile if status.cache.is_some() => Some(LostWith::Server),
            WriteCache::Journal if is_protected(status, served) => None,
            _ if self.listens.iter().any(is_remote) && members.iter().any(|member| may_cache(member)) => {
                Some(LostWith::Machine)
            }
            _ => None,
        }
    }
}

fn members<'a>(status: &'a ServiceStatus, served: &ServedArray) -> Vec<&'a str> {
    let sets = served.sets();
    let views = status.arrays.iter().filter(|view| sets.contains(&view.status.array));
    let drives = views.flat_map(|view| view.status.members.iter().filter_map(|member| member.drive));
    drives.filter_map(|drive| status.drives.iter().find(|view| view.drive == drive)).map(|view| &*view.member).collect()
}

/// Do the members say that they were flushed after the last write? Arrays without redundancy have no such mark.
fn was_flushed(served: &ServedArray) -> bool {
    let has_mark = |superblock: &Superblock| {
        let copies = superblock.raid_disks > 1 && matches!(superblock.level, MdLevel::Raid1 | MdLevel::Raid10);
        copies || matches!(superblock.level, MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6)
    };
    let is_clean = |superblock: &Superblock| has_mark(superblock) && superblock.resync_position().is_none();
    served.started.as_ref().is_some_and(|started| match started.spans.as_slice() {
        [] => is_clean(&started.superblock),
        spans => spans.iter().all(|span| is_clean(&span.superblock)),
    })
}

fn is_protected(status: &ServiceStatus, served: &ServedArray) -> bool {
    let sets = served.sets();
    status.arrays.iter().filter(|view| sets.contains(&view.status.array)).all(|view| view.protection.is_ok())
}

/// Can hosts of other machines connect here? Those of this machine go down with it.
fn is_remote(address: &ListenAddress) -> bool {
    match address {
        ListenAddress::Tcp(address) | ListenAddress::Tls(address) | ListenAddress::Nvme(address) => {
            !address.ip().is_loopback()
        }
        ListenAddress::Unix(_) | ListenAddress::Vhost(_) => false,
    }
}

/// Is a member memory of the server, of which a crash leaves nothing to serve?
fn is_of_server(member: &str) -> bool {
    spec(member).is_ok_and(|spec| is_memory(&spec))
}

/// Can a member that outlives the server lose writes that it has answered when this machine goes down? The drive of a file is not
/// known; a remote member has a machine of its own.
fn may_cache(member: &str) -> bool {
    if member.contains("://") || is_of_server(member) {
        return false;
    }
    let path = Path::new(member);
    let cache = path.starts_with("/dev").then(|| DriveCache::of(path)).flatten();
    cache.and_then(|cache| cache.is_on()).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_means_a_loss_only_after_the_crash_that_it_names() {
        let mark = |lost_with| StoredMark::Mark(Mark { lost_with, boot: "one".into(), at_seconds: 0 });
        let lost = |found: StoredMark, boot: &str| found.loss(boot, false).is_some();
        assert!(lost(mark(LostWith::Server), "one") && lost(mark(LostWith::Server), "two"));
        assert!(!lost(mark(LostWith::Machine), "one") && lost(mark(LostWith::Machine), "two"));
        assert!(!lost(StoredMark::Nothing, "two") && lost(StoredMark::Damaged, "one"));
        let (server, machine) = (mark(LostWith::Server), mark(LostWith::Machine));
        assert!(machine.loss("two", true).is_none(), "the members were flushed after the last write");
        assert!(server.loss("one", true).is_some(), "the members do not know of the server's memory");
        assert!(LostWith::Server > LostWith::Machine && Some(LostWith::Machine) > None);
    }

    #[test]
    fn hosts_of_this_machine_and_remote_members_do_not_matter_when_it_goes_down() {
        let tcp = |text: &str| ListenAddress::Tcp(text.parse().expect("an address"));
        assert!(is_remote(&tcp("0.0.0.0:10809")) && is_remote(&tcp("[fd00::1]:1")));
        assert!(!is_remote(&tcp("127.0.0.1:10809")) && !is_remote(&ListenAddress::Unix("/run/x".into())));
        assert!(may_cache("/srv/d0") && !may_cache("nbd://far/data") && !may_cache("ram:8M"));
    }
}
