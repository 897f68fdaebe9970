//! The write caches inside the members' drives: switched for an array, and restored when it is not served any more.
//!
//! Acknowledged writes are safe with either state: members are flushed before an acknowledgement that depends on it.
//! Off is slower, and protects against drives that ignore flushes.
//!
//! The members of an array are identified by their names, and only names below `/dev` are switched.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use openraid_runtime::service::ServiceStatus;
use openraid_sys::{DriveCache, DriveCacheError};

use super::array_model::ServedArray;
use super::Server;
use crate::failure::Failure;
use crate::model::ArrayModel;

/// The setting for the caches of an array's drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DriveCacheOption {
    /// As they were found.
    #[default]
    AsFound,
    /// Keep writes in their caches.
    On,
    /// Acknowledge writes when they are on the medium.
    Off,
}

/// The first word of each is the printed one; `as-found` is the word of older versions.
const WORDS: [(&str, DriveCacheOption); 4] = [
    ("on", DriveCacheOption::On),
    ("off", DriveCacheOption::Off),
    ("unchanged", DriveCacheOption::AsFound),
    ("as-found", DriveCacheOption::AsFound),
];

impl DriveCacheOption {
    /// The printed word.
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(_, option)| *option == self).map_or("", |(word, _)| word)
    }
}

impl FromStr for DriveCacheOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = WORDS.iter().find(|(word, _)| *word == text).map(|(_, option)| *option);
        found.ok_or_else(|| format!("drive.cache={text}: use one of on, off, unchanged"))
    }
}

/// The settings for drives' caches, and their earlier states.
#[derive(Debug, Default)]
pub struct DriveCaches {
    /// By the array's name.
    options: BTreeMap<String, DriveCacheOption>,
    /// The state of each member's cache before the change.
    found: BTreeMap<String, bool>,
}

/// The drives of an array whose caches will be switched.
pub type DrivesWithCaches = Vec<(String, DriveCache)>;

/// The cache of a member, if it is a drive of this machine.
fn cache_of(member: &str) -> Option<DriveCache> {
    let path = Path::new(member);
    path.starts_with("/dev").then(|| DriveCache::of(path)).flatten()
}

/// The cache of a member that can be switched, or why it cannot.
fn switchable(member: &str) -> Result<DriveCache, String> {
    if member.contains("://") {
        return Err(format!("{member}: the server that exports it controls its cache; switch the cache there"));
    }
    let cache = cache_of(member).ok_or(DriveCacheError::NotADrive);
    let cache = cache.and_then(|cache| if cache.has_switch() { Ok(cache) } else { Err(DriveCacheError::NoSwitch) });
    cache.map_err(|error| format!("{member}: {error}"))
}

/// The members of an array by name.
fn members(status: &ServiceStatus, served: &ServedArray) -> Vec<String> {
    let sets = served.sets();
    let views = status.arrays.iter().filter(|view| sets.contains(&view.status.array));
    let drives = views.flat_map(|view| view.status.members.iter().filter_map(|member| member.drive));
    let name = |drive| status.drives.iter().find(|view| view.drive == drive).map(|view| view.member.clone());
    drives.filter_map(name).collect()
}

impl Server {
    /// The drives of a setting. Nothing is changed.
    ///
    /// # Errors
    /// The caches of some members cannot be switched: which, and why.
    pub(super) fn plan_drive_caches(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        option: DriveCacheOption,
    ) -> Result<DrivesWithCaches, Failure> {
        let mut names = members(status, served);
        if option == DriveCacheOption::AsFound {
            let state = self.state();
            names.retain(|name| state.drive_caches.found.contains_key(name));
        }
        let (mut drives, mut refused) = (Vec::new(), Vec::new());
        for name in names {
            match switchable(&name) {
                Ok(cache) => drives.push((name, cache)),
                Err(why) => refused.push(why),
            }
        }
        if refused.is_empty() {
            return Ok(drives);
        }
        let word = option.word();
        Err(Failure::refused(format!(
            "drive.cache={word} is not possible, nothing was changed:\n  {}",
            refused.join("\n  ")
        )))
    }

    /// Carry out the plan, for later members too.
    ///
    /// # Errors
    /// A drive refuses; those before it are switched.
    pub(super) fn switch_drive_caches(
        &self,
        array: &str,
        option: DriveCacheOption,
        drives: &DrivesWithCaches,
    ) -> Result<(), Failure> {
        let mut state = self.state();
        state.drive_caches.options.insert(array.into(), option);
        for (name, cache) in drives {
            state.drive_caches.switch(name, cache, option).map_err(Failure::failed)?;
        }
        Ok(())
    }

    /// The setting of an array.
    pub(super) fn drive_cache_option(&self, array: &str) -> DriveCacheOption {
        self.state().drive_caches.options.get(array).copied().unwrap_or_default()
    }

    /// Apply the array's setting to all its members. Returns the failures.
    pub(super) fn keep_drive_caches(&self, array: &str) -> Vec<String> {
        let option = self.drive_cache_option(array);
        let (Ok(served), Ok(status)) = (self.find(array), self.status()) else { return Vec::new() };
        if option == DriveCacheOption::AsFound {
            return Vec::new();
        }
        let mut state = self.state();
        let switch = |name: String| {
            let cache = switchable(&name)?;
            state.drive_caches.switch(&name, &cache, option)
        };
        members(&status, &served).into_iter().map(switch).filter_map(Result::err).collect()
    }

    /// The array stops: set its drives' caches as they were found. Returns the failures.
    pub(super) fn restore_drive_caches(&self, status: &ServiceStatus, served: &ServedArray) -> Vec<String> {
        let mut state = self.state();
        state.drive_caches.options.remove(&served.name);
        let names = members(status, served);
        state.drive_caches.restore(|name| names.iter().any(|known| known == name))
    }

    /// The server ends: set the caches of all drives as they were found. Returns the failures.
    pub fn restore_all_drive_caches(&self) -> Vec<String> {
        self.state().drive_caches.restore(|_| true)
    }

    /// Add the states that only the drives know.
    pub(super) fn add_drive_caches(&self, model: &mut ArrayModel, option: DriveCacheOption) {
        let fill = |set: &mut ArrayModel| {
            crate::program_settings::add_json(&mut set.settings, crate::kept_settings::DRIVE_CACHE, option.word());
            for member in &mut set.members {
                let on = member.member.as_deref().and_then(cache_of).and_then(|cache| cache.is_on());
                member.drive_cache = on.map(|on| if on { "on" } else { "off" }.into());
            }
        };
        model.spans.iter_mut().for_each(fill);
        fill(model);
    }
}

impl DriveCaches {
    /// An array has another name.
    pub(super) fn rename(&mut self, name: &str, to: &str) {
        if let Some(option) = self.options.remove(name) {
            self.options.insert(to.to_owned(), option);
        }
    }

    /// The setting of an array.
    pub(super) fn option(&self, array: &str) -> DriveCacheOption {
        self.options.get(array).copied().unwrap_or_default()
    }

    fn switch(&mut self, name: &str, cache: &DriveCache, option: DriveCacheOption) -> Result<(), String> {
        let on = match option {
            DriveCacheOption::On => true,
            DriveCacheOption::Off => false,
            DriveCacheOption::AsFound => match self.found.get(name) {
                Some(found) => *found,
                None => return Ok(()),
            },
        };
        if let Some(was) = cache.is_on() {
            self.found.entry(name.into()).or_insert(was);
        }
        cache.set(on).map_err(|error| format!("{name}: {error}"))?;
        if option == DriveCacheOption::AsFound {
            self.found.remove(name);
        }
        Ok(())
    }

    fn restore(&mut self, which: impl Fn(&str) -> bool) -> Vec<String> {
        let names: Vec<String> = self.found.keys().filter(|name| which(name)).cloned().collect();
        let restore = |name: String| {
            let cache = switchable(&name)?;
            self.switch(&name, &cache, DriveCacheOption::AsFound)
        };
        names.into_iter().map(restore).filter_map(Result::err).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_they_are_read() {
        for (word, option) in &WORDS[..3] {
            assert_eq!((word.parse(), option.word()), (Ok(*option), *word));
        }
        assert_eq!("as-found".parse(), Ok(DriveCacheOption::AsFound));
        assert!("maybe".parse::<DriveCacheOption>().unwrap_err().contains("unchanged"));
    }

    #[test]
    fn a_member_whose_cache_is_not_ours_is_refused_with_its_reason() {
        for (member, word) in [
            ("nbd://host/x", "exports it"),
            ("/srv/d0", "not a block device"),
            ("ram:8M", "not a block device"),
            ("/dev/null", "not a block"),
        ] {
            let why = switchable(member).unwrap_err();
            assert!(why.starts_with(member) && why.contains(word), "{why}");
        }
    }
}
