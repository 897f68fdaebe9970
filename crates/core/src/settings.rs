//! The settings of a set by the names under which people read and change them, and what differs between two states.
//!
//! Names and words are written here and nowhere else: the server's answers, its news and the fault simulation's stories
//! all have them from here. It decides nothing, and never takes memory.

use core::fmt;

use openraid_units::{Nanos, Sectors};

use crate::adaptive::{Load, Tuning};
use crate::admin::{MirrorRead, PartialWritePolicy, Policy, ReadAhead, WriteCache};

/// Settings of a [`Policy`].
pub const SETTINGS: usize = 14;
/// Settings of a [`Tuning`].
pub const TUNINGS: usize = 3;

/// What a setting is set to; shown as people write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A word.
    Word(&'static str),
    /// A number.
    Number(u32),
    /// A size.
    Size(Sectors),
    /// A size each second; zero is no bound.
    Rate(Sectors),
    /// A time, in whole milliseconds.
    Time(Nanos),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Number(number) => write!(f, "{number}"),
            Self::Size(size) => write!(f, "{}", size.bytes().readable()),
            Self::Rate(rate) if rate.is_zero() => f.write_str("none"),
            Self::Rate(rate) => write!(f, "{}/s", rate.bytes().readable()),
            Self::Time(time) => write!(f, "{} ms", time.get() / 1_000_000),
        }
    }
}

/// A setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it is set to.
    pub value: Value,
}

/// A setting that was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its name.
    pub name: &'static str,
    /// What it was.
    pub from: Value,
    /// What it is.
    pub to: Value,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.name, self.from, self.to)
    }
}

const fn on(on: bool) -> Value {
    Value::Word(if on { "on" } else { "off" })
}

fn differing<const N: usize>(from: [Setting; N], to: [Setting; N]) -> impl Iterator<Item = Change> {
    let pairs = from.into_iter().zip(to);
    let change = |(from, to): (Setting, Setting)| Change { name: from.name, from: from.value, to: to.value };
    pairs.map(change).filter(|change| change.from != change.to)
}

impl Policy {
    /// All of them, in the order in which they are shown.
    #[must_use]
    pub const fn settings(&self) -> [Setting; SETTINGS] {
        let setting = Setting { name: "", value: Value::Number(0) };
        let mut all = [setting; SETTINGS];
        all[0] = Setting { name: "rebuild.rate", value: Value::Rate(self.rebuild_rate) };
        all[1] = Setting { name: "scrub.rate", value: Value::Rate(self.scrub_rate) };
        all[2] = Setting { name: "write.partial", value: Value::Word(self.partial_write.name()) };
        all[3] = Setting { name: "write.cache", value: Value::Word(self.write_cache.name()) };
        all[4] = Setting { name: "read.cache", value: on(self.read_cache) };
        all[5] = Setting { name: "background.depth", value: Value::Number(self.background_depth) };
        all[6] = Setting { name: "read-ahead", value: Value::Word(self.read_ahead.name()) };
        all[7] = Setting { name: "read-ahead-max", value: Value::Size(self.read_ahead_max) };
        all[8] = Setting { name: "mirror-read", value: Value::Word(self.mirror_read.name()) };
        all[9] = Setting { name: "split-above", value: Value::Size(self.split_above) };
        all[10] = Setting { name: "split-section", value: Value::Size(self.split_section) };
        all[11] = Setting { name: "split-streams", value: on(self.split_streams) };
        all[12] = Setting { name: "sorting", value: on(self.sorting) };
        all[13] = Setting { name: "adaptive", value: on(self.adaptive) };
        all
    }

    /// What differs in another one.
    pub fn changes_to(&self, to: &Self) -> impl Iterator<Item = Change> {
        differing(self.settings(), to.settings())
    }
}

impl Tuning {
    /// All of them, in the order in which they are shown.
    #[must_use]
    pub const fn settings(&self) -> [Setting; TUNINGS] {
        [
            Setting { name: "read-ahead", value: Value::Word(self.read_ahead.name()) },
            Setting { name: "mirror-read", value: Value::Word(self.mirror_read.name()) },
            Setting { name: "destage-delay", value: Value::Time(self.destage_delay) },
        ]
    }

    /// What differs in another one.
    pub fn changes_to(&self, to: &Self) -> impl Iterator<Item = Change> {
        differing(self.settings(), to.settings())
    }
}

impl PartialWritePolicy {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fewest => "fewest",
            Self::ReadModifyWrite => "rmw",
        }
    }
}

impl WriteCache {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Through => "through",
            Self::Volatile => "volatile",
            Self::Journal => "journal",
        }
    }
}

impl ReadAhead {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Always => "always",
            Self::Adaptive => "adaptive",
        }
    }
}

impl MirrorRead {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::RoundRobin => "round-robin",
            Self::LeastPending => "least-pending",
            Self::NearestHead => "nearest-head",
            Self::TwinStor => "twinstor",
        }
    }
}

/// What hosts did, in words.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable = |bytes: u64| openraid_units::Bytes(bytes).readable();
        write!(
            f,
            "{} requests, {} % reads; of the reads {} % in order, {} each; of the writes {} % in order, {} each; {}.{} \
             inside at once",
            self.requests,
            self.read_percent,
            self.ordered_read_percent,
            readable(self.read_bytes),
            self.ordered_write_percent,
            readable(self.write_bytes),
            self.depth_tenths / 10,
            self.depth_tenths % 10
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn a_change_is_told_by_the_settings_that_differ() {
        let from = Policy::default();
        assert_eq!(from.changes_to(&from).count(), 0);
        let to = Policy { write_cache: WriteCache::Journal, adaptive: true, rebuild_rate: Sectors::mib(50), ..from };
        let told: Vec<_> = from.changes_to(&to).map(|change| change.to_string()).collect();
        assert_eq!(
            told,
            ["rebuild.rate 200 MiB/s -> 50 MiB/s", "write.cache through -> journal", "adaptive off -> on"]
        );
    }

    #[test]
    fn every_setting_has_a_name_of_its_own() {
        let names: Vec<&str> = Policy::default().settings().iter().map(|setting| setting.name).collect();
        for (place, name) in names.iter().enumerate() {
            assert!(!name.is_empty() && !names[..place].contains(name), "{name:?}");
        }
    }
}
