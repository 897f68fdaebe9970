//! Settings of reading, profiles, and what the adaptive policy tells, in the words that people write.

use openraid_core::adaptive::{AdaptiveStatus, Switch, Tuning};
use openraid_core::admin::{MirrorRead, Policy, Profile, ReadAhead};
use openraid_units::{Instant, Sectors};

use crate::model::{AdaptiveModel, SwitchModel, TuningModel};
use crate::quantity::{human, size};

/// A window that is longer than this is longer than any cache's share.
const WINDOW_MAX: Sectors = Sectors::mib(1024);
/// A window is at least a line of the cache: nothing is read ahead in a shorter one.
const WINDOW_MIN: Sectors = Sectors::kib(4);
/// Sections are at least a line of the cache.
const SECTION_MIN: Sectors = Sectors::kib(4);

/// Change one setting; `None` where it is none of these. `has_journal`: there is one that can protect the array.
///
/// # Errors
/// What may be written instead.
pub fn apply(policy: &mut Policy, key: &str, value: &str, has_journal: bool) -> Option<Result<(), String>> {
    let result = match key {
        "read-ahead" => named(key, value, &READ_AHEAD).map(|found| policy.read_ahead = found),
        "mirror-read" => named(key, value, &MIRROR_READ).map(|found| policy.mirror_read = found),
        "split-streams" => named(key, value, &ON_OFF).map(|found| policy.split_streams = found),
        "sorting" => named(key, value, &ON_OFF).map(|found| policy.sorting = found),
        // A reset is an order, not a setting: it leaves the policy on.
        "adaptive" => named(key, value, &ADAPTIVE).map(|found| policy.adaptive = found),
        "read-ahead-max" => sectors(key, value, WINDOW_MIN, WINDOW_MAX)
            .map(|found| policy.read_ahead_max = found)
            .map_err(|why| format!("{why}; read-ahead=none switches it off")),
        "split-above" => sectors(key, value, Sectors::ZERO, Sectors::MAX).map(|found| policy.split_above = found),
        "split-section" => sectors(key, value, SECTION_MIN, WINDOW_MAX).map(|found| policy.split_section = found),
        "profile" => named(key, value, &PROFILES).map(|found| *policy = Policy::of(found, has_journal)),
        _ => return None,
    };
    Some(result)
}

/// Does this setting order the adaptive policy to forget?
pub fn is_reset(key: &str, value: &str) -> bool {
    (key, value) == ("adaptive", "reset")
}

const READ_AHEAD: [(&str, ReadAhead); 3] = [
    (ReadAhead::None.name(), ReadAhead::None),
    (ReadAhead::Always.name(), ReadAhead::Always),
    (ReadAhead::Adaptive.name(), ReadAhead::Adaptive),
];
const MIRROR_READ: [(&str, MirrorRead); 5] = [
    (MirrorRead::Primary.name(), MirrorRead::Primary),
    (MirrorRead::RoundRobin.name(), MirrorRead::RoundRobin),
    (MirrorRead::LeastPending.name(), MirrorRead::LeastPending),
    (MirrorRead::NearestHead.name(), MirrorRead::NearestHead),
    (MirrorRead::TwinStor.name(), MirrorRead::TwinStor),
];
/// The profiles by name.
pub const PROFILES: [(&str, Profile); 3] =
    [("protection", Profile::Protection), ("balanced", Profile::Balanced), ("performance", Profile::Performance)];
const ON_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];
const ADAPTIVE: [(&str, bool); 3] = [("on", true), ("off", false), ("reset", true)];

fn named<T: Copy>(key: &str, value: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == value).map(|(_, found)| *found);
    found.ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("{key}={value}: use one of {}", names.join(", "))
    })
}

fn sectors(key: &str, value: &str, least: Sectors, most: Sectors) -> Result<Sectors, String> {
    let bytes = size(value).map_err(|error| format!("{key}={value}: {error}"))?;
    let found = bytes.sectors_floor();
    if found < least {
        return Err(format!("{key}={value}: use at least {}", human(least.bytes())));
    }
    if found > most {
        return Err(format!("{key}={value}: use at most {}", human(most.bytes())));
    }
    Ok(found)
}

/// What the adaptive policy tells; nothing while it is off.
pub fn adaptive(status: &AdaptiveStatus, now: Instant) -> Option<AdaptiveModel> {
    status.on.then(|| AdaptiveModel {
        now: tuning(status.tuning),
        windows: status.windows,
        switches: status.switches,
        last: status.last.iter().map(|own| switch(own, now)).collect(),
    })
}

fn tuning(tuning: Tuning) -> TuningModel {
    TuningModel {
        read_ahead: tuning.read_ahead.name().into(),
        mirror_read: tuning.mirror_read.name().into(),
        destage_millis: tuning.destage_delay.get() / 1_000_000,
    }
}

fn switch(switch: &Switch, now: Instant) -> SwitchModel {
    SwitchModel {
        ago_seconds: now.since(switch.at).get() / 1_000_000_000,
        from: tuning(switch.from),
        to: tuning(switch.to),
        why: switch.load.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_core::admin::WriteCache;

    #[test]
    fn settings_of_reading_are_taken_by_name_and_nonsense_is_refused() {
        let mut policy = Policy::default();
        for (key, value) in [
            ("read-ahead", "always"),
            ("read-ahead-max", "1M"),
            ("mirror-read", "twinstor"),
            ("split-above", "128K"),
            ("split-section", "64K"),
            ("split-streams", "off"),
            ("sorting", "off"),
            ("adaptive", "on"),
        ] {
            apply(&mut policy, key, value, false).unwrap().unwrap();
        }
        let expected = Policy {
            read_ahead: ReadAhead::Always,
            read_ahead_max: Sectors::mib(1),
            mirror_read: MirrorRead::TwinStor,
            split_above: Sectors::kib(128),
            split_section: Sectors::kib(64),
            split_streams: false,
            sorting: false,
            adaptive: true,
            ..Policy::default()
        };
        assert_eq!(policy, expected);
        for (key, value) in [
            ("read-ahead", "sometimes"),
            ("read-ahead-max", "2T"),
            ("read-ahead-max", "-1"),
            ("read-ahead-max", "0"),
            ("mirror-read", ""),
            ("split-section", "0"),
            ("split-section", "512"),
            ("sorting", "yes"),
            ("adaptive", "learn"),
            ("profile", "fast"),
        ] {
            assert!(apply(&mut policy, key, value, false).unwrap().is_err(), "{key}={value}");
        }
        assert_eq!(policy, expected);
        assert!(apply(&mut policy, "cache", "on", false).is_none());
    }

    fn profile(name: &str, has_journal: bool) -> Policy {
        let mut policy = Policy { sorting: false, split_streams: false, ..Policy::default() };
        apply(&mut policy, "profile", name, has_journal).unwrap().unwrap();
        policy
    }

    #[test]
    fn every_profile_is_all_settings_at_once_and_uses_the_journal_where_there_is_one() {
        let first = Policy::default();
        for has_journal in [false, true] {
            let safe = if has_journal { WriteCache::Journal } else { WriteCache::Through };
            assert_eq!(profile("balanced", has_journal), Policy { write_cache: safe, ..first });
            let protection = Policy {
                rebuild_rate: Sectors::ZERO,
                scrub_rate: Sectors::mib(200),
                background_depth: 16,
                write_cache: safe,
                ..first
            };
            assert_eq!(profile("protection", has_journal), protection);
            let performance = Policy {
                rebuild_rate: Sectors::mib(50),
                scrub_rate: Sectors::mib(20),
                background_depth: 4,
                write_cache: if has_journal { WriteCache::Journal } else { WriteCache::Volatile },
                mirror_read: MirrorRead::NearestHead,
                adaptive: true,
                ..first
            };
            assert_eq!(profile("performance", has_journal), performance);
        }
        assert_eq!(profile("balanced", false), first, "as an array is at first");
    }

    #[test]
    fn a_reset_leaves_the_policy_on() {
        let mut policy = Policy::default();
        apply(&mut policy, "adaptive", "reset", false).unwrap().unwrap();
        assert!(policy.adaptive && is_reset("adaptive", "reset") && !is_reset("adaptive", "on"));
    }
}
