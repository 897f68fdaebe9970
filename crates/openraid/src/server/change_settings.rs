//! Settings of an array: read, checked, changed, shown.
//!
//! A change that puts data at risk needs a confirmation here, from every client. A wrong setting changes nothing, not
//! even the settings before it. A setting without effect on this array is stored all the same, and the answer says so.

use openraid_config::Access;
use openraid_core::admin::{AdminCommand, Policy, Unprotected, WriteCache};
use openraid_core::settings::Needs;
use openraid_format::{MdLevel, MinorVersion, Superblock};
use openraid_runtime::service::ServiceStatus;

use super::array_model::{unprotected, ServedArray};
use super::drive_cache::DriveCacheOption;
use super::joining_members::set_status;
use super::Server;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::kept_settings::{KeptSettings, Readd, ACCESS, DRIVE_CACHE, PROFILE, READD};
use crate::output;
use crate::program_settings;

/// A change of settings by a command.
struct Change {
    policy: Policy,
    drive_cache: Option<DriveCacheOption>,
    access: Option<Access>,
    readd: Option<Readd>,
}

impl Server {
    pub(super) fn set(&self, name: &str, settings: &[(String, String)], yes: bool) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let before = set_status(&status, served.sets()[0])?.policy;
        let change = self.change_of(&status, &served, before, settings)?;
        let policy = change.policy;
        if policy.write_cache == WriteCache::Volatile && before.write_cache != WriteCache::Volatile {
            // An impossible change is refused before any question for a confirmation.
            if status.cache.is_none() {
                return Err(Failure::refused(format!("{name}: the server has no cache; start it with --cache SIZE")));
            }
            if !yes {
                return Err(unconfirmed(settings, self.has_journal(), never_protected(&status, &served)));
            }
        }
        if !settings.is_empty() {
            self.registry.refuse_if_locked()?;
        }
        self.mark_before(&status, &served, policy)?;
        self.carry_out_change(&status, &served, &change, settings)?;
        let marked = self.mark_after(name);
        let asked = settings.iter().any(|(key, _)| key == "write.cache");
        let journalled = asked || is_journalled(&before) != is_journalled(&policy);
        let kept = self.keep(&served, settings, journalled.then(|| is_journalled(&policy)));
        let mut text = program_settings::text(&policy);
        text.push_str(&format!("\ndrive.cache={}", self.drive_cache_option(name).word()));
        let served = self.find(name)?;
        text.push_str(&format!("\naccess={}\n{READD}={}", served.access.word(), served.readd.word()));
        if let Some(journal) = self.array(name)?.journal {
            text.push_str(&format!("\njournal: {}", output::array::protection_text(&journal)));
        }
        if policy.write_cache == WriteCache::Volatile {
            text.push_str(&format!("\nwarning: write cache {}", output::array::VOLATILE));
        }
        let marked = marked.err().map(|failure| failure.text());
        for note in without_effect(settings, &status, &served).into_iter().chain(kept).chain(marked) {
            text.push_str(&format!("\nnote: {note}"));
        }
        self.done(text, name)
    }

    /// The effect of settings. Nothing is changed.
    fn change_of(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        policy: Policy,
        settings: &[(String, String)],
    ) -> Result<Change, Failure> {
        let has_journal = self.can_journal(status, served);
        let mut change = Change { policy, drive_cache: None, access: None, readd: None };
        for (key, value) in settings {
            match key.as_str() {
                DRIVE_CACHE => change.drive_cache = Some(value.parse().map_err(Failure::usage)?),
                ACCESS => change.access = Some(value.parse().map_err(Failure::usage)?),
                READD => change.readd = Some(value.parse().map_err(Failure::usage)?),
                _ => program_settings::apply(&mut change.policy, key, value, has_journal).map_err(Failure::usage)?,
            }
        }
        if let (WriteCache::Journal, Some(why)) = (change.policy.write_cache, never_protected(status, served)) {
            let (name, why) = (&served.name, unprotected(why));
            return Err(Failure::refused(format!("{name}: the journal cannot protect it: {why}")));
        }
        Ok(change)
    }

    fn carry_out_change(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        change: &Change,
        settings: &[(String, String)],
    ) -> Result<(), Failure> {
        let (name, policy) = (&served.name, change.policy);
        let drives = change.drive_cache.map(|option| self.plan_drive_caches(status, served, option)).transpose()?;
        if settings.iter().any(|(key, _)| ![DRIVE_CACHE, ACCESS, READD].contains(&key.as_str())) {
            self.each_set(name, |array| AdminCommand::SetPolicy { array, policy })?;
        }
        if settings.iter().any(|(key, value)| program_settings::is_reset(key, value)) {
            self.each_set(name, |array| AdminCommand::ResetAdaptive { array })?;
        }
        if let Some((_, profile)) = settings.iter().rev().find(|(key, _)| key == PROFILE) {
            self.change_served(name, |served| served.profile = Some(profile.clone()));
        }
        if let (Some(option), Some(drives)) = (change.drive_cache, drives) {
            self.switch_drive_caches(name, option, &drives)?;
        }
        if let Some(readd) = change.readd {
            self.change_served(name, |served| served.readd = readd);
        }
        change.access.map_or(Ok(()), |access| self.set_access(name, access))
    }

    /// Can the journal of this server, if it has one, protect an array?
    pub(super) fn can_journal(&self, status: &ServiceStatus, served: &ServedArray) -> bool {
        self.has_journal() && never_protected(status, served).is_none()
    }

    /// Store the settings for the next start. Returns the failures, one a line.
    pub(super) fn keep(
        &self,
        served: &ServedArray,
        settings: &[(String, String)],
        journalled: Option<bool>,
    ) -> Vec<String> {
        if settings.is_empty() {
            return Vec::new();
        }
        let change = |kept: &mut KeptSettings| {
            kept.note(settings);
            kept.journalled = journalled.unwrap_or(kept.journalled);
        };
        let mut notes = Vec::new();
        match self.registry.keep(served.uuid().as_deref(), &served.name, change) {
            Ok(true) => notes.extend(self.overruled_by_file(served, settings)),
            Ok(false) => notes.push("the array is not remembered, so this lasts until the server ends".into()),
            // The answer says so for every command.
            Err(_) => {}
        }
        notes
    }

    /// The next start of the array begins with the journal, or without it.
    ///
    /// # Errors
    /// The registry cannot be read or written.
    pub fn remember_journalled(&self, name: &str, journalled: bool) -> Result<(), Failure> {
        let served = self.find(name)?;
        let uuid = served.uuid();
        self.registry.keep(uuid.as_deref(), name, |kept| kept.journalled = journalled).map(drop)
    }
}

fn is_journalled(policy: &Policy) -> bool {
    policy.write_cache == WriteCache::Journal
}

/// Why a journal, present or former, can never protect an array, if that is so.
pub(super) fn never_protected(status: &ServiceStatus, served: &ServedArray) -> Option<Unprotected> {
    let sets = served.sets();
    status.arrays.iter().filter(|view| sets.contains(&view.status.array)).find_map(|view| {
        let superblock = view.status.superblock.as_ref();
        match view.protection {
            Err(why @ (Unprotected::Shape | Unprotected::MetadataAtEnd | Unprotected::PartialParityLog)) => Some(why),
            _ => match superblock {
                None => Some(Unprotected::Shape),
                Some(superblock) if superblock.ppl().is_some() => Some(Unprotected::PartialParityLog),
                Some(superblock) if superblock.minor == MinorVersion::V1_0 && has_copies(superblock) => {
                    Some(Unprotected::MetadataAtEnd)
                }
                Some(_) => None,
            },
        }
    })
}

/// Does it have several copies of every byte?
fn has_copies(superblock: &Superblock) -> bool {
    matches!(superblock.level, MdLevel::Raid1 | MdLevel::Raid10) && superblock.raid_disks > 1
}

/// A volatile cache needs a confirmation.
fn unconfirmed(settings: &[(String, String)], has_journal: bool, never: Option<Unprotected>) -> Failure {
    let cause = settings.iter().rev().find(|(key, _)| matches!(key.as_str(), "write.cache" | "profile"));
    let cause = cause.map_or_else(String::new, |(key, value)| format!("{key}={value}: "));
    let other = match (has_journal, never) {
        (true, None) => ", or take write.cache=journal, with which nothing is lost".into(),
        (false, None) => ", or start the server with --journal".into(),
        (true, Some(why)) => format!("; the journal of this server cannot protect it: {}", unprotected(why)),
        (false, Some(why)) => format!("; a journal could not protect it: {}", unprotected(why)),
    };
    Failure::refused(format!(
        "{cause}writes are then acknowledged before they are on the members. Writes that were not flushed are lost when the \
         power fails or the server is killed; add --yes if clients flush the data that they need{other}"
    ))
}

/// Settings without effect on this array or this server.
pub(super) fn without_effect(wanted: &[(String, String)], status: &ServiceStatus, served: &ServedArray) -> Vec<String> {
    let copies = |view: &openraid_runtime::service::ArrayView| view.status.superblock.as_ref().is_some_and(has_copies);
    let sets = served.sets();
    let has_copies = status.arrays.iter().any(|view| sets.contains(&view.status.array) && copies(view));
    let mut notes = Vec::new();
    for (key, value) in wanted {
        let off = matches!(value.as_str(), "none" | "off");
        match program_settings::needs(key) {
            Needs::Cache if status.cache.is_none() && !off => {
                notes.push(format!("{key}={value} has no effect: the server has no cache; start it with --cache SIZE"));
            }
            Needs::Copies if !has_copies => {
                notes.push(format!("{key}={value} has no effect: {} has no copies to choose from", served.name));
            }
            Needs::Nothing | Needs::Cache | Needs::Copies => {}
        }
    }
    notes
}
