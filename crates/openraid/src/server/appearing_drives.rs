//! Drives that appear: members that vanished, spares of the configuration file, members of arrays that were not there.
//!
//! A thread checks the paths every [`LOOK_EVERY`], also those of drives that are served, and at once if a
//! [message](super::pulled_drives) says that a device appeared. That works for files, for devices without udev, and for names
//! below `/dev/disk/by-id`. A drive is opened when its path appears, and again after [`RETRY_AFTER`] if it was not used. Only
//! drives in the registry or the configuration are opened. If a device appeared while a known member is not at its path, the
//! other block devices are read, too: it may have another name now.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use openraid_config::SpareFor;
use openraid_core::admin::{AdminCommand, MemberState, MemberStatus};
use openraid_format::{Superblock, Uuid};
use openraid_runtime::member::{self, MemberSpec, ModelSpec, Place};
use openraid_runtime::service::DriveView;
use openraid_sys::Use;
use openraid_units::ArrayId;

use super::array_model::ServedArray;
use super::departed_members::{has, lacks};
use super::joining_members::{set_status, JoinOutcome};
use super::member_orders::Consent;
use super::{Server, ServerAccess};
use crate::events::{plain, News};
use crate::history::departures::{note_return, Departure};
use crate::kept_settings::Readd;
use crate::members::{block_devices, open_some, options, spec};
use crate::model::{ArrayModel, HealthWord};
use openraid_status::EventName;

/// Interval of the search for drives.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Pause before a drive that was not used is tried again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Interval of attempts to reach an address, with or without a server there.
const ASK_AFTER: Duration = Duration::from_secs(30);

/// Time without another drive after which an array that is offline starts degraded, if it can. A start of the server has no such
/// time: the drives that are there then have been there since the boot.
const REST_TIME: Duration = Duration::from_secs(10);

/// Names of drives that stay over a reboot.
const BY_ID: &str = "/dev/disk/by-id";

/// A drive that is searched.
#[derive(Debug)]
struct Plug {
    is_there: bool,
    /// The last attempt since the drive appeared.
    tried: Option<Instant>,
    /// Why the drive was not used.
    refused: Option<String>,
}

/// All drives that are searched, by name.
#[derive(Debug, Default)]
pub(super) struct Plugs {
    looked: Option<Instant>,
    /// The last search for drives that are gone.
    pub(super) swept: Option<Instant>,
    /// Has a device appeared since the last search?
    has_new: bool,
    /// The time of a search of all devices, although none appeared.
    search_at: Option<Instant>,
    all: BTreeMap<String, Plug>,
    /// The members of offline arrays that are there, by the array's name, and since when it is these.
    waiting: BTreeMap<String, (Vec<String>, Instant)>,
}

impl Plugs {
    /// Was the drive present at the last check?
    pub(super) fn is_there(&self, member: &str) -> bool {
        self.all.get(member).is_some_and(|plug| plug.is_there)
    }

    /// Why the last attempt to use a drive failed.
    pub(super) fn refused(&self, member: &str) -> Option<String> {
        self.all.get(member).and_then(|plug| plug.refused.clone())
    }

    /// A device appeared: the next search comes at once, and tries all drives.
    pub(super) fn try_all_again(&mut self) {
        (self.looked, self.has_new) = (None, true);
        self.all.values_mut().for_each(|plug| plug.tried = None);
    }

    /// After this time a search looks at all devices once more: a member that is connected under another name was not used.
    pub(super) fn search_again(&mut self, after: Duration) {
        let at = Instant::now() + after;
        self.search_at = Some(self.search_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Should this search look at all devices?
    fn take_new(&mut self) -> bool {
        let is_time = self.search_at.is_some_and(|at| at <= Instant::now());
        if is_time {
            self.search_at = None;
        }
        std::mem::take(&mut self.has_new) || is_time
    }

    /// Note the presence of a drive. Should it be tried?
    fn see(&mut self, member: &str, is_there: bool, retry: Duration) -> bool {
        let plug = self.all.entry(member.to_owned()).or_insert(Plug { is_there, tried: None, refused: None });
        plug.is_there = is_there;
        if !is_there {
            (plug.tried, plug.refused) = (None, None);
        }
        is_there && plug.tried.is_none_or(|at| at.elapsed() >= retry)
    }

    /// How long have these members of an offline array been there, and no others?
    fn unchanged(&mut self, array: &str, there: &[String]) -> Duration {
        let waiting = self.waiting.entry(array.to_owned()).or_insert_with(|| (there.to_vec(), Instant::now()));
        if waiting.0 != there {
            *waiting = (there.to_vec(), Instant::now());
        }
        waiting.1.elapsed()
    }

    fn note(&mut self, member: &str, refused: Option<String>) {
        if let Some(plug) = self.all.get_mut(member) {
            (plug.tried, plug.refused) = (Some(Instant::now()), refused);
        }
    }
}

/// Does the path of a member exist? An address counts as present until it is tried.
fn is_there(spec: &MemberSpec) -> bool {
    matches!(spec.place, Place::Remote(_)) || is_at_path(spec)
}

/// Is a file or device at the path of a member? An address has no path.
pub(super) fn is_at_path(spec: &MemberSpec) -> bool {
    match &spec.place {
        Place::Path(path) | Place::Model(ModelSpec { file: Some(path), .. }) => {
            fs::metadata(path).is_ok() && !is_without_medium(path)
        }
        Place::Remote(_) | Place::Ram(_) | Place::Model(_) => false,
    }
}

/// Does a block device have no capacity? Its node may stay after the drive was pulled.
fn is_without_medium(path: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.starts_with("/dev")
        && fs::read_to_string(format!("/sys/class/block/{name}/size")).is_ok_and(|size| size.trim() == "0")
}

/// Is this the device of an attached drive?
fn is_same_device(view: &DriveView, spec: &MemberSpec) -> bool {
    let Place::Path(path) = &spec.place else { return false };
    view.names.identity.is_some_and(|identity| identity.displaced_from(path).is_none())
}

/// Has udev made the names of this device? If udev runs, its message comes after them, and causes another search. The kernel's own
/// name must not get into the registry: it leads to another drive after the next boot.
fn has_its_names(spec: &MemberSpec) -> bool {
    let Place::Path(path) = &spec.place else { return true };
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Ok(number) = fs::read_to_string(format!("/sys/class/block/{name}/dev")) else { return true };
    let is_there = |path: &str| fs::metadata(path).is_ok();
    !is_there("/run/udev/control") || is_there(&format!("/run/udev/data/b{}", number.trim()))
}

/// The name of a device below `/dev/disk/by-id`, which it keeps wherever it is connected; its own if it has none.
fn lasting_name(member: &MemberSpec) -> MemberSpec {
    let Place::Path(path) = &member.place else { return member.clone() };
    let mut links: Vec<PathBuf> = fs::read_dir(BY_ID).into_iter().flatten().flatten().map(|link| link.path()).collect();
    links.sort();
    let leads_there = |link: &PathBuf| fs::canonicalize(link).is_ok_and(|to| to == *path);
    let found = links.iter().find(|link| leads_there(link)).and_then(|link| spec(link.to_str()?).ok());
    found.unwrap_or_else(|| member.clone())
}

impl Server {
    /// Search for missing drives in another thread, if it is due.
    pub fn begin_looking_for_drives(self: &Arc<Self>) {
        let is_time = self.state().plugs.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if !is_time || self.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        self.state().plugs.looked = Some(Instant::now());
        let server = Arc::clone(self);
        let look = move || {
            server.sweep_for_lost();
            server.look_at_paths();
            if server.access == ServerAccess::ReadWrite {
                let news = server.look_for_drives();
                server.add_news(news);
            }
            server.looking.store(false, Ordering::Relaxed);
        };
        if thread::Builder::new().name("hot-plug".into()).spawn(look).is_err() {
            self.looking.store(false, Ordering::Relaxed);
        }
    }

    fn look_for_drives(&self) -> Vec<News> {
        let mut news = Vec::new();
        let Ok(arrays) = self.arrays() else { return news };
        let others = self.state().plugs.take_new();
        for array in &arrays {
            let Ok(served) = self.find(&array.name) else { continue };
            if array.health == HealthWord::Failed {
                // Nothing can be added, but members that were out of reach may be back.
                self.report_returned(&served);
                news.extend(self.start_failed_again(array, &served, others));
                continue;
            }
            news.extend(self.look_for_members(array, &served));
            if others {
                news.extend(self.look_for_renamed(&served));
            }
            self.look_for_spares(array, &served);
        }
        news.extend(self.look_for_arrays());
        news
    }

    /// Tell the engine which members of a failed array are connected again. It tells the rest: see `NoticeKind::Returned`.
    fn report_returned(&self, served: &ServedArray) {
        let Ok(status) = self.status() else { return };
        for set in served.sets() {
            let Ok(status_of_set) = set_status(&status, set) else { continue };
            let has_left =
                |member: &&MemberStatus| matches!(member.state, MemberState::Failing(_) | MemberState::Faulty(_));
            for drive in status_of_set.members.iter().filter(has_left).filter_map(|member| member.drive) {
                if status.drives.iter().any(|view| view.drive == drive && view.is_back) {
                    // It is refused while commands are under way, or if the member may lack writes. The next look asks again.
                    let _ = self.handle.admin(AdminCommand::Return { array: set, drive });
                }
            }
        }
    }

    /// The drive's specification, if it is present and due for a try.
    pub(super) fn is_due(&self, member: &str) -> Option<MemberSpec> {
        let spec = spec(member).ok()?;
        let retry = if matches!(spec.place, Place::Remote(_)) { ASK_AFTER } else { RETRY_AFTER };
        let is_there = is_there(&spec);
        self.state().plugs.see(member, is_there, retry).then_some(spec)
    }

    fn look_for_members(&self, array: &ArrayModel, served: &ServedArray) -> Vec<News> {
        let list = array.uuid.as_ref().and_then(|uuid| self.state().departed.get(uuid).cloned()).unwrap_or_default();
        let now = openraid_sys::clock::wall_seconds();
        let mut news = Vec::new();
        for entry in list.iter().filter(|entry| lacks(array) || entry.may_return(now)) {
            let Some(spec) = self.is_due(&entry.member) else { continue };
            if served.readd == Readd::Never || !entry.may_return(now) {
                continue;
            }
            let came = self.take_back(served, entry, &spec);
            // A drive that was not tried because of a running command is tried at the next check.
            if came != Ok(false) {
                self.state().plugs.note(&entry.member, came.as_ref().err().cloned());
            }
            if came == Ok(true) {
                news.push(self.returned(served, entry, &entry.member));
            }
        }
        news
    }

    /// A member is in again, under this name.
    fn returned(&self, served: &ServedArray, entry: &Departure, name: &str) -> News {
        self.note(&served.name);
        self.state().troubles.array_started(served, std::slice::from_ref(&entry.member));
        let now = openraid_sys::clock::wall_seconds();
        self.change_departed(served, |list| note_return(list, &entry.member, name, now));
        let known_as = if name == entry.member { String::new() } else { format!(" (it was {})", entry.member) };
        let text = format!(
            "{}: {name}{known_as} has returned and is a member again; the data that it missed is written to it",
            served.name
        );
        News { array: Some(served.name.clone()), member: Some(name.into()), ..plain(EventName::MemberReturned, text) }
    }

    /// Members that vanished and are not at their paths: a device that came has another name if it is connected elsewhere.
    fn look_for_renamed(&self, served: &ServedArray) -> Vec<News> {
        let list = served.uuid().and_then(|uuid| self.state().departed.get(&uuid).cloned()).unwrap_or_default();
        let now = openraid_sys::clock::wall_seconds();
        let is_wanted = |entry: &&Departure| entry.device.is_some() && entry.may_return(now);
        let wanted: Vec<&Departure> = list.iter().filter(is_wanted).collect();
        let mut news = Vec::new();
        if wanted.is_empty() || served.readd == Readd::Never {
            return news;
        }
        for (entry, spec) in self.renamed(&wanted) {
            match self.take_back(served, entry, &spec) {
                Ok(true) => news.push(self.returned(served, entry, &spec.text)),
                Ok(false) => self.state().plugs.search_again(Duration::ZERO),
                Err(_) => self.state().plugs.search_again(RETRY_AFTER),
            }
        }
        news
    }

    /// Former members that are connected under other names, with these.
    pub(super) fn renamed<'d>(&self, wanted: &[&'d Departure]) -> Vec<(&'d Departure, MemberSpec)> {
        if wanted.is_empty() {
            return Vec::new();
        }
        // An error means that the service is ending.
        let drives = self.status().map(|status| status.drives).unwrap_or_default();
        let mut specs = block_devices();
        specs.retain(|spec| has_its_names(spec) && !drives.iter().any(|view| is_same_device(view, spec)));
        // The devices are open only while they are read.
        let probed: Vec<_> = open_some(&specs, options(Use::Examine)).0.into_iter().map(|(_, probed)| probed).collect();
        let found = probed.into_iter().filter_map(|probed| {
            let device = probed.look.superblock.as_ref()?.device_uuid.to_string();
            let entry = wanted.iter().find(|entry| entry.device.as_ref() == Some(&device))?;
            Some((*entry, lasting_name(&probed.spec)))
        });
        found.collect()
    }

    /// Record an attempt with a drive, and why it was not used.
    pub(super) fn note_try(&self, member: &str, refused: Option<String>) {
        self.state().plugs.note(member, refused);
    }

    /// Add a former member again; false if it is not due yet.
    fn take_back(&self, served: &ServedArray, entry: &Departure, spec: &MemberSpec) -> Result<bool, String> {
        // No lock is held here: a drive may take seconds to answer.
        let looked = member::open_and_probe(spec, options(Use::Examine)).map_err(|error| error.to_string())?.1;
        let Some(superblock) = looked.look.superblock else {
            return Err(match looked.look.superblock_error {
                // A drive that is smaller than before, for example.
                Some((_, error)) => format!("the drive in its place is not as it was: {error}"),
                None => "another drive is in its place: it has no superblock of the array".into(),
            });
        };
        let device = superblock.device_uuid.to_string();
        if entry.device.as_ref().is_some_and(|known| *known != device) {
            return Err("another drive is in its place: its superblock has another identity".into());
        }
        // A command has priority: the next check tries again.
        let Ok(_one_at_a_time) = self.changing.try_lock() else { return Ok(false) };
        let set =
            self.set_with(served, &superblock).ok_or("another drive is in its place: it belongs to another array")?;
        if !self.let_go(served, set, &entry.member, superblock.device_uuid)? {
            return Ok(false);
        }
        match self.join(served, set, &spec.text, Consent { overwrite: false, split: false }) {
            Ok(JoinOutcome::Joined(_)) => Ok(true),
            Ok(JoinOutcome::Confirm { text }) => Err(text),
            Err(failure) => Err(failure.text()),
        }
    }

    /// The set of an array that this superblock belongs to.
    fn set_with(&self, served: &ServedArray, superblock: &Superblock) -> Option<ArrayId> {
        let status = self.status().ok()?;
        served.sets().into_iter().find(|set| {
            let known = set_status(&status, *set).ok().and_then(|status_of_set| status_of_set.superblock.as_ref());
            known.is_some_and(|known| known.set_uuid == superblock.set_uuid)
        })
    }

    /// The server still holds a member that failed: release it, so that it can be opened again. False while its failure
    /// is not recorded, or if the drive is a working member under another name, and so is not missing any more.
    fn let_go(&self, served: &ServedArray, set: ArrayId, member: &str, device: Uuid) -> Result<bool, String> {
        let status = self.status().map_err(|failure| failure.text())?;
        let lines = &set_status(&status, set).map_err(|failure| failure.text())?.members;
        let Some(line) = lines.iter().find(|line| line.device == Some(device)) else { return Ok(true) };
        match (line.drive, line.state) {
            (Some(drive), MemberState::Faulty(_)) => {
                let removed = self.handle.admin(AdminCommand::Remove { array: set, drive });
                removed.map_err(|error| format!("{}: {member} cannot be taken out: {error}", served.name))?;
                self.release(drive).map_err(|failure| failure.text())?;
                Ok(true)
            }
            (_, MemberState::InSync | MemberState::Spare | MemberState::Rebuilding { .. }) => {
                self.forget_departed(served, member);
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Spares that the file names for this array, and that were absent at the start.
    fn look_for_spares(&self, array: &ArrayModel, served: &ServedArray) {
        let spares = self.in_force().map(|file| file.desired.spares.clone()).unwrap_or_default();
        for spare in spares.iter().filter(|spare| !has(array, &spare.member)) {
            let SpareFor::Array { name, span } = &spare.whom else { continue };
            if *name != served.name || self.is_taken_out(&spare.member) || self.is_due(&spare.member).is_none() {
                continue;
            }
            let Ok(_one_at_a_time) = self.changing.try_lock() else { return };
            let span = span.and_then(|span| usize::try_from(span).ok());
            let taken = self.take_own_spare(served, span, &spare.member);
            self.state().plugs.note(&spare.member, taken.err().map(|failure| failure.text()));
        }
    }

    /// Arrays that should be served and could not be started: start them when all members are present, or when no other one has
    /// come for [`REST_TIME`]. The rules are those of a start of the server.
    fn look_for_arrays(&self) -> Vec<News> {
        let mut news = Vec::new();
        for (name, uuid) in self.disappeared() {
            let Ok(Some(entry)) = self.registry.known(uuid.as_deref(), &name) else { continue };
            let is_due = entry.members.iter().filter(|member| self.is_due(member).is_some()).count() > 0;
            let is_there = |member: &&String| spec(member).is_ok_and(|spec| is_there(&spec));
            let there: Vec<String> = entry.members.iter().filter(is_there).cloned().collect();
            let unchanged = self.state().plugs.unchanged(&name, &there);
            let is_whole = there.len() == entry.members.len();
            if !is_due || there.is_empty() || !is_whole && unchanged < REST_TIME {
                continue;
            }
            let Ok(_one_at_a_time) = self.changing.try_lock() else { return news };
            let started = self.start_array(&there, false, false);
            let refused = started.as_ref().err().map(|failure| failure.text());
            there.iter().for_each(|member| self.state().plugs.note(member, refused.clone()));
            match started {
                Ok((_, taken)) => {
                    self.state().plugs.waiting.remove(&name);
                    self.note_absent(&taken);
                    // The registry has the members of the start from now on.
                    let absent = entry.members.iter().filter(|member| !there.contains(member));
                    absent.for_each(|member| self.note_not_there(&name, member));
                    let who = if is_whole { "all" } else { "enough of" };
                    let text = format!("{name}: {who} its members have returned, and it is served");
                    news.push(News { array: Some(name), ..plain(EventName::NewArray, text) });
                }
                Err(failure) => self.state().troubles.not_started(entry.label(), failure),
            }
        }
        news
    }
}
