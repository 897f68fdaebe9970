//! The kept settings of an array, and the settings of its next start: from these, the configuration file and the
//! server.
//!
//! ```text
//!  profile --> settings that `set` changed --> settings of the file --> journal, cache: what this server can --> Plan
//! ```
//!
//! A setting in the file has priority. If this server cannot apply a setting, a note says so, and the setting stays
//! kept.

use std::collections::BTreeMap;

use openraid_config::{Access, DesiredArray};
use openraid_core::admin::{Policy, WriteCache};
use openraid_format::{MdLevel, ShapeFields};
use openraid_runtime::service::PathState;
use openraid_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::history::departures::Departure;
use crate::program_settings::{apply, is_reset};
use crate::server::DriveCacheOption;
use crate::words::host_path::{self, PATH};

/// The setting for the access of hosts.
pub const ACCESS: &str = "access";
/// The setting of the caches inside the members' drives.
pub const DRIVE_CACHE: &str = "drive.cache";
/// Are vanished members added again automatically?
pub const READD: &str = "members.readd";
/// The setting that is a whole set of settings.
pub const PROFILE: &str = "profile";

/// The kept settings of an array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Kept)]
pub struct KeptSettings {
    /// Does its policy ask for the controller's journal?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub journalled: bool,
    /// Name of the profile that was set last; null if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Settings that were changed since then, as they were written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Spares of the configuration file that a command removed: only a command adds them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_out: Vec<String>,
    /// The shape that a change of level in several steps leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<WantedShape>,
    /// Members that left the array, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub departed: Vec<Departure>,
}

/// The shape that an array is to have at the end of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WantedShape {
    /// md's number of the level.
    pub level: i32,
    /// md's number of the layout.
    pub layout: u32,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Number of members.
    pub members: u16,
}

impl WantedShape {
    /// The numbers of a shape.
    pub fn of(fields: &ShapeFields) -> Self {
        let (level, chunk_bytes) = (fields.level.number(), fields.chunk.bytes().get());
        Self { level, layout: fields.layout, chunk_bytes, members: fields.raid_disks }
    }

    /// The shape; none if no superblock has such a level.
    pub fn fields(&self) -> Option<ShapeFields> {
        let (level, chunk) = (MdLevel::from_number(self.level)?, Bytes(self.chunk_bytes).sectors_floor());
        Some(ShapeFields { level, layout: self.layout, chunk, raid_disks: self.members })
    }
}

/// Is a member that vanished added again automatically?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Readd {
    /// Yes, when it returns.
    #[default]
    Auto,
    /// Only by a command.
    Never,
}

impl Readd {
    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

impl std::str::FromStr for Readd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::Auto, Self::Never].into_iter().find(|choice| choice.word() == text);
        found.ok_or_else(|| format!("{READD}={text}: use auto or never"))
    }
}

impl KeptSettings {
    /// Store the settings. A profile replaces every setting for which it has a value.
    pub fn note(&mut self, settings: &[(String, String)]) {
        for (key, value) in settings {
            if key == PROFILE {
                self.profile = Some(value.clone());
                self.settings.retain(|key, _| [ACCESS, DRIVE_CACHE, READD, PATH].contains(&key.as_str()));
                continue;
            }
            // A reset is a command; the stored value is that the policy is on.
            let value = if is_reset(key, value) { "on" } else { value };
            self.settings.insert(key.clone(), value.into());
        }
    }
}

/// A server's abilities for an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Able {
    /// It has a cache.
    pub cache: bool,
    /// It has a journal that can protect the array.
    pub journal: bool,
}

/// The start of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsPlan {
    pub policy: Policy,
    /// The profile at its start.
    pub profile: Option<String>,
    /// The setting for the caches inside its drives.
    pub drive_cache: Option<DriveCacheOption>,
    /// The access of hosts.
    pub access: Access,
    /// Are vanished members added again automatically?
    pub readd: Readd,
    /// How NVMe hosts reach it.
    pub path: PathState,
    /// Kept settings that do not apply here, and risks; one a line, without the array's name.
    pub notes: Vec<String>,
}

/// The start of an array. `journalled` is the command line's choice for the journal, if it has one.
pub fn plan(kept: &KeptSettings, file: Option<&DesiredArray>, able: Able, journalled: Option<bool>) -> SettingsPlan {
    let of_file = file.map_or(&[][..], |desired| &desired.settings[..]);
    let in_file = |key: &str| of_file.iter().find(|value| value.key == key).map(|value| value.value.as_str());
    let profile = in_file(PROFILE).or(kept.profile.as_deref()).map(ToOwned::to_owned);
    let mut plan = SettingsPlan {
        policy: Policy::default(),
        profile: profile.clone(),
        drive_cache: None,
        access: Access::default(),
        readd: Readd::default(),
        path: PathState::Optimized,
        notes: Vec::new(),
    };
    if let Some(profile) = &profile {
        plan.set(PROFILE, profile, able);
    }
    for (key, value) in kept.settings.iter().filter(|(key, _)| in_file(key).is_none()) {
        plan.set(key, value, able);
    }
    for setting in of_file.iter().filter(|setting| setting.key != PROFILE) {
        plan.set(&setting.key, &setting.value, able);
    }
    plan.access = file.and_then(|desired| desired.access.as_ref()).map_or(plan.access, |access| access.value);
    let asked = journalled.or(in_file("write.cache").map(|value| value == WriteCache::Journal.name()));
    match asked.unwrap_or(kept.journalled || plan.policy.write_cache == WriteCache::Journal) {
        true => plan.policy.write_cache = WriteCache::Journal,
        false if plan.policy.write_cache == WriteCache::Journal => plan.policy.write_cache = WriteCache::Through,
        false => {}
    }
    if plan.policy.write_cache == WriteCache::Volatile && !able.cache {
        plan.policy.write_cache = WriteCache::Through;
        let note = "write.cache=volatile is kept and does not apply: the server has no cache, so writes go through to the members; \
                    start it with --cache SIZE";
        plan.notes.push(note.into());
    }
    plan
}

impl SettingsPlan {
    fn set(&mut self, key: &str, value: &str, able: Able) {
        let result = match key {
            ACCESS => value.parse().map(|access| self.access = access),
            DRIVE_CACHE => value.parse().map(|option| self.drive_cache = Some(option)),
            READD => value.parse().map(|readd| self.readd = readd),
            PATH => host_path::read(value).and_then(host_path::state).map(|path| self.path = path),
            _ => apply(&mut self.policy, key, value, able.journal),
        };
        if let Err(why) = result {
            self.notes.push(format!("{key}={value} is kept and does not apply: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_config::{ArrayId, DesiredSetting, FileValue};
    use openraid_core::admin::{MirrorRule, Profile};
    use openraid_units::Sectors;

    const ALL: Able = Able { cache: true, journal: true };
    const NONE: Able = Able { cache: false, journal: false };

    fn pairs(text: &str) -> Vec<(String, String)> {
        let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.split_whitespace().filter_map(pair).collect()
    }

    fn kept(text: &str) -> KeptSettings {
        let mut kept = KeptSettings::default();
        kept.note(&pairs(text));
        kept
    }

    fn desired(settings: &str) -> DesiredArray {
        DesiredArray {
            id: ArrayId::Name("a".into()),
            line: 1,
            members: Vec::new(),
            exports: Vec::new(),
            hosts: None,
            access: None,
            settings: pairs(settings).into_iter().map(|(key, value)| DesiredSetting { key, value, line: 1 }).collect(),
        }
    }

    #[test]
    fn settings_come_back_and_a_profile_replaces_those_before_it() {
        let plan_of = |text: &str| plan(&kept(text), None, ALL, None);
        let set = plan_of("rebuild.rate=50M mirror-read=primary drive.cache=off access=read-only");
        assert_eq!((set.policy.rebuild_rate, set.policy.mirror_read), (Sectors::mib(50), MirrorRule::Primary));
        assert_eq!((set.drive_cache, set.access, set.profile), (Some(DriveCacheOption::Off), Access::ReadOnly, None));
        assert_eq!(set.notes, [""; 0]);
        let set = plan_of("rebuild.rate=50M drive.cache=off profile=performance scrub.rate=1M");
        let wanted = Policy { scrub_rate: Sectors::mib(1), ..Policy::of(Profile::Performance, true) };
        assert_eq!((set.policy, set.drive_cache), (wanted, Some(DriveCacheOption::Off)));
        assert_eq!(set.profile.as_deref(), Some("performance"));
        assert!(plan_of("adaptive=reset").policy.adaptive);
        assert_eq!(kept("adaptive=reset").settings["adaptive"], "on");
        assert_eq!(plan(&KeptSettings::default(), None, NONE, None).policy, Policy::default());
    }

    #[test]
    fn the_file_wins_for_what_it_names() {
        let kept = kept("profile=performance rebuild.rate=50M scrub.rate=1M write.cache=through");
        let set = plan(&kept, Some(&desired("profile=balanced rebuild.rate=7M")), ALL, None);
        assert_eq!((set.policy.rebuild_rate, set.policy.scrub_rate), (Sectors::mib(7), Sectors::mib(1)));
        assert_eq!((set.policy.adaptive, set.profile.as_deref()), (false, Some("balanced")));
        let file = DesiredArray {
            access: Some(FileValue { value: Access::Blocked, line: 1 }),
            ..desired("write.cache=journal")
        };
        let set = plan(&kept, Some(&file), ALL, None);
        assert_eq!((set.policy.write_cache, set.access), (WriteCache::Journal, Access::Blocked));
    }

    #[test]
    fn a_server_reports_settings_that_it_cannot_use() {
        let volatile = kept("write.cache=volatile");
        let set = plan(&volatile, None, NONE, None);
        assert_eq!(set.policy.write_cache, WriteCache::Through);
        assert!(set.notes.concat().contains("--cache"), "{:?}", set.notes);
        let set = plan(&volatile, None, Able { cache: true, ..NONE }, None);
        assert_eq!((set.policy.write_cache, set.notes.len()), (WriteCache::Volatile, 0));
        let set = plan(&kept("read-ahead=sometimes"), None, ALL, None);
        assert!(set.notes.concat().starts_with("read-ahead=sometimes is kept and does not apply"), "{:?}", set.notes);
    }

    #[test]
    fn the_journal_is_used_as_was_asked_last() {
        let journalled = KeptSettings { journalled: true, ..KeptSettings::default() };
        let cache =
            |kept: &KeptSettings, file: &str, line| plan(kept, Some(&desired(file)), ALL, line).policy.write_cache;
        assert_eq!(cache(&journalled, "", None), WriteCache::Journal);
        assert_eq!(cache(&journalled, "write.cache=through", None), WriteCache::Through);
        assert_eq!(cache(&journalled, "write.cache=journal", Some(false)), WriteCache::Through);
        assert_eq!(cache(&KeptSettings::default(), "", Some(true)), WriteCache::Journal);
        assert_eq!(cache(&kept("profile=protection"), "", None), WriteCache::Journal);
        assert_eq!(cache(&kept("profile=protection write.cache=through"), "", None), WriteCache::Through);
    }
}
