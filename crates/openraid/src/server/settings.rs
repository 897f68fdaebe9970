//! Settings of an array: read, checked, changed, told.
//!
//! What puts data at risk is confirmed here, whoever asks. A setting that is wrong changes nothing, those before it
//! included. What has no effect on this array is set all the same, and said.

use openraid_core::admin::{AdminCommand, PartialWritePolicy, Policy, Unprotected, WriteCache};
use openraid_format::{MdLevel, MinorVersion, Superblock};
use openraid_runtime::service::ServiceStatus;

use super::drive_cache::Wish;
use super::members::set_status;
use super::view::{unprotected, Served};
use super::Server;
use crate::control::Answer;
use crate::exit::Failure;
use crate::output;
use crate::quantity::rate;
use crate::registry::Entry;

impl Server {
    pub(super) fn set(&self, name: &str, settings: &[(String, String)], yes: bool) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let before = set_status(&status, served.sets()[0])?.policy;
        let has_journal = self.has_journal() && never_protected(&status, &served).is_none();
        let (mut policy, mut wish) = (before, None);
        for (key, value) in settings {
            if key == "drive.cache" {
                wish = Some(value.parse::<Wish>().map_err(Failure::usage)?);
            } else {
                apply(&mut policy, key, value, has_journal).map_err(Failure::usage)?;
            }
        }
        if let (WriteCache::Journal, Some(why)) = (policy.write_cache, never_protected(&status, &served)) {
            let why = unprotected(why);
            return Err(Failure::refused(format!("{name}: the journal cannot protect it: {why}")));
        }
        if policy.write_cache == WriteCache::Volatile && before.write_cache != WriteCache::Volatile {
            // What cannot be is not asked for a confirmation.
            if status.cache.is_none() {
                return Err(Failure::refused(format!("{name}: the server has no cache; start it with --cache SIZE")));
            }
            if !yes {
                return Err(unconfirmed(settings, self.has_journal(), never_protected(&status, &served)));
            }
        }
        let drives = wish.map(|wish| self.plan_drive_caches(&status, &served, wish)).transpose()?;
        if settings.iter().any(|(key, _)| key != "drive.cache") {
            self.each_set(name, |array| AdminCommand::SetPolicy { array, policy })?;
        }
        if settings.iter().any(|(key, value)| super::reading::is_reset(key, value)) {
            self.each_set(name, |array| AdminCommand::ResetAdaptive { array })?;
        }
        if let (Some(wish), Some(drives)) = (wish, drives) {
            self.switch_drive_caches(name, wish, &drives)?;
        }
        let asked = settings.iter().any(|(key, _)| key == "write.cache");
        if asked || is_journalled(&before) != is_journalled(&policy) {
            self.remember_journalled(name, is_journalled(&policy))?;
        }
        let mut text = policy_text(&policy);
        text.push_str(&format!("\ndrive.cache={}", self.drive_cache_wish(name).word()));
        if let Some(journal) = self.array(name)?.journal {
            text.push_str(&format!("\njournal: {}", output::array::protection_text(&journal)));
        }
        if policy.write_cache == WriteCache::Volatile {
            text.push_str(&format!("\nwarning: write cache {}", output::array::VOLATILE));
        }
        for note in without_effect(settings, &status, &served) {
            text.push_str(&format!("\nnote: {note}"));
        }
        self.done(text, name)
    }

    /// The next start of the array begins with the journal, or without it.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub fn remember_journalled(&self, name: &str, journalled: bool) -> Result<(), Failure> {
        self.remember_wish(self.registry.find(name)?, Some(journalled));
        Ok(())
    }

    /// The same for an array by its entry. The registry is a convenience: what cannot be noted there is said.
    pub(super) fn remember_wish(&self, entry: Option<Entry>, wish: Option<bool>) {
        let (Some(entry), Some(journalled)) = (entry, wish) else { return };
        if entry.journalled != journalled {
            if let Err(failure) = self.registry.remember(Entry { journalled, ..entry }) {
                output::warn(&failure.text);
            }
        }
    }
}

fn is_journalled(policy: &Policy) -> bool {
    policy.write_cache == WriteCache::Journal
}

/// Why the journal, or one that the server had, can never protect an array, if that is so.
pub(super) fn never_protected(status: &ServiceStatus, served: &Served) -> Option<Unprotected> {
    let sets = served.sets();
    status.arrays.iter().filter(|view| sets.contains(&view.status.array)).find_map(|view| {
        let superblock = view.status.superblock.as_ref();
        match view.protection {
            Err(why @ (Unprotected::Shape | Unprotected::MetadataAtEnd | Unprotected::PartialParityLog)) => Some(why),
            _ => match superblock {
                None => Some(Unprotected::Shape),
                Some(own) if own.ppl().is_some() => Some(Unprotected::PartialParityLog),
                Some(own) if own.minor == MinorVersion::V1_0 && has_copies(own) => Some(Unprotected::MetadataAtEnd),
                Some(_) => None,
            },
        }
    })
}

/// Is every byte of it there several times?
fn has_copies(superblock: &Superblock) -> bool {
    matches!(superblock.level, MdLevel::Raid1 | MdLevel::Raid10) && superblock.raid_disks > 1
}

/// A volatile cache wants a confirmation.
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
        "{cause}writes are then acknowledged before they are on the members, and what was not flushed is lost when the \
         power goes or the server ends; add --yes if clients flush what they need{other}"
    ))
}

/// Settings that this array, or this server, has no use for.
fn without_effect(settings: &[(String, String)], status: &ServiceStatus, served: &Served) -> Vec<String> {
    let copies = |view: &openraid_runtime::service::ArrayView| view.status.superblock.as_ref().is_some_and(has_copies);
    let sets = served.sets();
    let has_copies = status.arrays.iter().any(|view| sets.contains(&view.status.array) && copies(view));
    let mut notes = Vec::new();
    for (key, value) in settings {
        let off = matches!(value.as_str(), "none" | "off");
        match key.as_str() {
            "read-ahead" | "read-ahead-max" | "read.cache" if status.cache.is_none() && !off => {
                notes.push(format!("{key}={value} has no effect: the server has no cache; start it with --cache SIZE"));
            }
            "mirror-read" | "split-above" | "split-section" | "split-streams" if !has_copies => {
                notes.push(format!("{key}={value} has no effect: {} has no copies to choose from", served.name));
            }
            _ => {}
        }
    }
    notes
}

/// Change one setting.
fn apply(policy: &mut Policy, key: &str, value: &str, has_journal: bool) -> Result<(), String> {
    match key {
        "rebuild.rate" => policy.rebuild_rate = rate(value)?,
        "scrub.rate" => policy.scrub_rate = rate(value)?,
        "write.partial" => {
            policy.partial_write = match value {
                "fewest" => PartialWritePolicy::Fewest,
                "rmw" => PartialWritePolicy::ReadModifyWrite,
                _ => return Err(format!("write.partial={value}: use fewest or rmw")),
            };
        }
        "background.depth" => {
            let depth = value.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth));
            policy.background_depth =
                depth.ok_or_else(|| format!("background.depth={value}: use a number from 1 to {DEPTH_MAX}"))?;
        }
        "write.cache" => {
            policy.write_cache = match value {
                "through" => WriteCache::Through,
                "volatile" => WriteCache::Volatile,
                "journal" => WriteCache::Journal,
                _ => return Err(format!("write.cache={value}: use through, journal or volatile")),
            };
        }
        "read.cache" => {
            policy.read_cache = match value {
                "on" => true,
                "off" => false,
                _ => return Err(format!("read.cache={value}: use on or off")),
            };
        }
        _ => {
            return super::reading::apply(policy, key, value, has_journal).unwrap_or_else(|| {
                Err(format!(
                "unknown setting {key:?}; known settings: rebuild.rate, scrub.rate, write.partial, write.cache, read.cache, \
                     drive.cache, background.depth, {}",
                super::reading::KEYS
            ))
            })
        }
    }
    Ok(())
}

/// Rows in work at once in the background, at most.
const DEPTH_MAX: u32 = openraid_core::limits::WINDOW_ROWS_MAX;

/// The settings, one a line, as they are written.
fn policy_text(policy: &Policy) -> String {
    let lines: Vec<String> =
        policy.settings().iter().map(|setting| format!("{}={}", setting.name, setting.value)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Sectors;

    #[test]
    fn settings_are_taken_by_name_and_nonsense_is_refused() {
        let mut policy = Policy::default();
        apply(&mut policy, "rebuild.rate", "50M", false).unwrap();
        apply(&mut policy, "scrub.rate", "none", false).unwrap();
        apply(&mut policy, "write.partial", "rmw", false).unwrap();
        apply(&mut policy, "background.depth", "3", false).unwrap();
        assert_eq!((policy.rebuild_rate, policy.scrub_rate), (Sectors::mib(50), Sectors::ZERO));
        assert_eq!((policy.partial_write, policy.background_depth), (PartialWritePolicy::ReadModifyWrite, 3));
        let before = policy;
        for (key, value) in [
            ("rebuild.rate", "fast"),
            ("rebuild.rate", "-1M"),
            ("write.partial", "most"),
            ("background.depth", "0"),
            ("background.depth", "1000"),
            ("cache", "on"),
        ] {
            assert!(apply(&mut policy, key, value, false).is_err(), "{key}={value}");
        }
        assert_eq!(policy, before);
        assert!(policy_text(&policy).contains("rebuild.rate=50 MiB/s\nscrub.rate=none\n"));
    }
}
