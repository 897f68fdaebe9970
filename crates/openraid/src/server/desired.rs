//! The desired state of arrays: kept settings and the configuration file, applied before clients connect.

use std::path::PathBuf;
use std::sync::Arc;

use openraid_config::{Access as ArrayAccess, ArrayId as DesiredId, DesiredArray, DesiredState};
use openraid_core::admin::{AdminCommand, WriteCache};
use openraid_runtime::service::{AllowedHosts, ExportRequest, Nqn, ServiceStatus};

use super::array_model::{unprotected, ServedArray};
use super::change_settings::{never_protected, without_effect};
use super::joining_members::set_status;
use super::{DriveCacheOption, Server, ServerAccess};
use crate::failure::Failure;
use crate::kept_settings::{plan, Able, KeptSettings, SettingsPlan};
use crate::output;

/// The desired state of an array.
pub(super) struct ArrayPlan {
    /// What applies.
    pub(super) plan: SettingsPlan,
    /// What cannot apply, and why.
    pub(super) notes: Vec<String>,
    /// It asks for the journal, which this array can never use.
    without_journal: bool,
}

/// The configuration of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InForce {
    /// Its file.
    pub path: PathBuf,
    /// Its content.
    pub desired: DesiredState,
}

impl InForce {
    /// The file's entry for an array. An entry by UUID has priority over one by name.
    pub fn desired_for(&self, served: &ServedArray) -> Option<&DesiredArray> {
        let uuid = served.started.as_ref().map(|started| started.superblock.set_uuid);
        let by = |is: &dyn Fn(&DesiredId) -> bool| self.desired.arrays.iter().find(|desired| is(&desired.id));
        by(&|id| uuid.is_some_and(|uuid| *id == DesiredId::Uuid(uuid)))
            .or_else(|| by(&|id| matches!(id, DesiredId::Name(name) if *name == served.name)))
    }
}

impl Server {
    /// The configuration of this server, if it has one.
    pub(super) fn in_force(&self) -> Option<Arc<InForce>> {
        self.state().in_force.clone()
    }

    pub(super) fn desired_of(&self, served: &ServedArray) -> Option<DesiredArray> {
        self.in_force().and_then(|in_force| in_force.desired_for(served).cloned())
    }

    /// Record an array whose members the file names, so that its settings can be kept.
    ///
    /// # Errors
    /// The registry cannot be written.
    pub fn remember_of_file(&self, name: &str) -> Result<(), Failure> {
        let served = self.find(name)?;
        let has_members = self.desired_of(&served).is_some_and(|desired| !desired.members.is_empty());
        if has_members && self.registry.known(served.uuid().as_deref(), name)?.is_none() {
            return self.remember(name);
        }
        Ok(())
    }

    /// Settings that the file has as well: the file's values apply again after a restart.
    pub(super) fn overruled_by_file(&self, served: &ServedArray, settings: &[(String, String)]) -> Vec<String> {
        let Some(in_force) = self.in_force() else { return Vec::new() };
        let Some(desired) = in_force.desired_for(served) else { return Vec::new() };
        let path = in_force.path.display();
        let named = |key: &str| match key {
            crate::kept_settings::ACCESS => desired.access.as_ref().map(|access| access.value.word().to_owned()),
            _ => desired.setting(key).map(|setting| setting.value.clone()),
        };
        let note = |(key, value): &(String, String)| {
            let answer = named(key).filter(|answer| answer != value)?;
            Some(format!("{path} says {key}={answer}, which holds again after a restart or `openraid reload`"))
        };
        settings.iter().filter_map(note).collect()
    }

    /// The desired state of an array, and whether the file or kept settings ask for it.
    pub(super) fn plan_of(&self, status: &ServiceStatus, served: &ServedArray, journalled: Option<bool>) -> ArrayPlan {
        // If the registry cannot be read, the server has reported it at its start.
        let known = self.registry.known(served.uuid().as_deref(), &served.name).ok().flatten();
        let mut kept = known.map(|entry| entry.kept).unwrap_or_default();
        let sets = status.arrays.iter().filter(|view| served.sets().contains(&view.status.array));
        let is_marked =
            sets.filter_map(|view| view.status.superblock.as_ref()).any(|superblock| superblock.journal.is_some());
        kept.journalled |= is_marked && self.has_journal();
        let able = Able { cache: status.cache.is_some(), journal: self.can_journal(status, served) };
        let desired = self.desired_of(served);
        let mut plan = plan(&kept, desired.as_ref(), able, journalled);
        let mut notes = std::mem::take(&mut plan.notes);
        let unable = never_protected(status, served).filter(|_| plan.policy.write_cache == WriteCache::Journal);
        if let Some(why) = unable {
            plan.policy.write_cache = WriteCache::Through;
            notes.push(format!("write journal not possible: {}", unprotected(why)));
        }
        if plan.policy.write_cache == WriteCache::Volatile {
            notes.push(format!("write cache {}", output::array::VOLATILE));
        }
        notes.extend(without_effect(&asked(&kept, desired.as_ref()), status, served));
        ArrayPlan { plan, notes, without_journal: unable.is_some() }
    }

    /// An array begins to run: apply its desired state before clients connect. Returns notes, one a line.
    pub(super) fn begin_array(&self, name: &str, journalled: Option<bool>) -> Vec<Failure> {
        let (Ok(served), Ok(status)) = (self.find(name), self.status()) else { return Vec::new() };
        self.load_departed(&served);
        self.load_shape_goal(&served);
        let ArrayPlan { plan, mut notes, without_journal } = self.plan_of(&status, &served, journalled);
        let uses_journal = plan.policy.write_cache == WriteCache::Journal;
        if let Some(wanted) = journalled.filter(|wanted| *wanted == uses_journal) {
            notes.extend(self.keep_journalled(&served, wanted));
        }
        let may_use = !uses_journal && !without_journal && served.started.is_some();
        let unused = may_use.then(|| self.without_journal(&status, &served)).flatten();
        let exports = self.wanted_exports(&served, self.desired_of(&served).as_ref());
        self.change_served(name, |served| {
            served.exports = exports;
            served.access = plan.access;
            served.readd = plan.readd;
            served.path = plan.path;
            served.profile.clone_from(&plan.profile);
        });
        notes.extend(self.carry_out_plan(&status, &served, &plan));
        let notes = notes.into_iter().map(Failure::refused).chain(unused);
        notes.map(|note| note.of_settings(served.label())).collect()
    }

    /// The names under which clients find an array: those of the file, kept ones, or its own.
    pub(super) fn wanted_exports(&self, served: &ServedArray, desired: Option<&DesiredArray>) -> Vec<String> {
        let of_file = desired.map(|desired| desired.exports.clone()).filter(|exports| !exports.is_empty());
        of_file.or_else(|| self.api_exports(served)).unwrap_or_else(|| vec![served.name.clone()])
    }

    fn keep_journalled(&self, served: &ServedArray, wanted: bool) -> Option<String> {
        let word = if wanted { WriteCache::Journal } else { WriteCache::Through }.name();
        let change = |kept: &mut KeptSettings| {
            kept.note(&[("write.cache".into(), word.into())]);
            kept.journalled = wanted;
        };
        self.registry.keep(served.uuid().as_deref(), &served.name, change).err().map(|failure| failure.text())
    }

    /// Set the policy of every set and the caches of the drives. Returns the failures.
    pub(super) fn carry_out_plan(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        plan: &SettingsPlan,
    ) -> Vec<String> {
        let (mut notes, mut policy) = (Vec::new(), plan.policy);
        if let Err(failure) = self.mark_before(status, served, policy) {
            if policy.write_cache == WriteCache::Volatile {
                policy.write_cache = WriteCache::Through;
            }
            notes.push(format!(
                "hosts are not told if a crash loses writes, so write.cache is not volatile: {}",
                failure.text()
            ));
        }
        for array in served.sets() {
            if set_status(status, array).is_ok_and(|status| status.policy == policy) {
                continue;
            }
            if let Err(error) = self.handle.admin(AdminCommand::SetPolicy { array, policy }) {
                notes.push(format!("its settings are not in force: {error}"));
            }
        }
        notes.extend(self.mark_after(&served.name).err().map(|failure| failure.text()));
        let is_new = |option: &DriveCacheOption| {
            self.access != ServerAccess::Untouched && *option != self.drive_cache_option(&served.name)
        };
        if let Some(option) = plan.drive_cache.filter(is_new) {
            let planned = self.plan_drive_caches(status, served, option);
            let done = planned.and_then(|drives| self.switch_drive_caches(&served.name, option, &drives));
            notes.extend(done.err().map(|failure| failure.text()));
        }
        notes
    }

    /// Open the exports of an array, unless it is blocked. Returns the exports that cannot be opened.
    ///
    /// # Errors
    /// No export can be opened.
    pub(super) fn open_exports(&self, name: &str) -> Result<Vec<Failure>, Failure> {
        let served = self.find(name)?;
        if served.access == ArrayAccess::Blocked {
            return Ok(Vec::new());
        }
        let mut refused = Vec::new();
        for export in &served.exports {
            refused.extend(self.open_export(&served, export).err());
        }
        if refused.len() < served.exports.len() {
            return Ok(refused);
        }
        Err(refused.into_iter().next().unwrap_or_else(|| Failure::failed(format!("{name} has no export"))))
    }

    pub(super) fn open_export(&self, served: &ServedArray, export: &str) -> Result<(), Failure> {
        let read_only = self.refuses_writes(served.access);
        let request = ExportRequest {
            array: served.array,
            name: export.into(),
            description: String::new(),
            read_only,
            refused: served.refused.clone(),
            identity: served.started.as_ref().map(|started| started.superblock.set_uuid),
            hosts: allowed_hosts(self.desired_of(served).as_ref()),
            path: served.path,
        };
        self.handle.export(&request).map_err(|error| Failure::from(error).of(&served.name))
    }

    fn refuses_writes(&self, access: ArrayAccess) -> bool {
        self.access != ServerAccess::ReadWrite || access != ArrayAccess::ReadWrite
    }

    /// Set the access of clients. They stay connected unless the array is blocked.
    pub(super) fn set_access(&self, name: &str, access: ArrayAccess) -> Result<(), Failure> {
        let served = self.find(name)?;
        let before = served.access;
        if before == access {
            return Ok(());
        }
        self.change_served(name, |served| served.access = access);
        let done = match (before, access) {
            (_, ArrayAccess::Blocked) => self.handle.withdraw(served.array).map_err(Failure::from),
            (ArrayAccess::Blocked, _) => self.open_exports(name).map(drop),
            _ => self.handle.set_read_only(served.array, self.refuses_writes(access)).map_err(Failure::from),
        };
        if done.is_err() {
            self.change_served(name, |served| served.access = before);
        }
        done
    }

    pub(super) fn change_served(&self, name: &str, change: impl FnOnce(&mut ServedArray)) {
        if let Some(served) = self.state().arrays.iter_mut().find(|served| served.name == name) {
            change(served);
        }
    }
}

/// The NVMe hosts that may use an array.
pub(super) fn allowed_hosts(desired: Option<&DesiredArray>) -> AllowedHosts {
    match desired.and_then(|desired| desired.hosts.as_ref()) {
        // The file was checked: each of them is a name.
        Some(hosts) => AllowedHosts::Listed(hosts.iter().filter_map(|host| Nqn::new(host).ok()).collect()),
        None => AllowedHosts::Any,
    }
}

/// Settings from the file or from `set`.
fn asked(kept: &KeptSettings, desired: Option<&DesiredArray>) -> Vec<(String, String)> {
    let of_file = desired.map_or(&[][..], |desired| &desired.settings[..]);
    let kept = kept.settings.iter().filter(|(key, _)| of_file.iter().all(|setting| setting.key != **key));
    let of_file = of_file.iter().map(|setting| (setting.key.clone(), setting.value.clone()));
    kept.map(|(key, value)| (key.clone(), value.clone())).chain(of_file).collect()
}
