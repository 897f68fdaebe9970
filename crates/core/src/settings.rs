//! The settings of a set by the names under which users read and change them, and the differences between two states.
//!
//! The table of settings is the only place in which a new setting is written: the struct, its default, names, ranges,
//! help and documentation follow from it. It decides nothing, and never takes memory.

use core::fmt;

use openraid_units::{Nanos, Sectors};

use crate::limits::WINDOW_ROWS_MAX;
use alloc::vec::Vec;
use openraid_units::Instant;

/// Settings of a [`Tuning`].
pub const TUNINGS: usize = 3;

/// The values that a setting of a [`Policy`] may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingKind {
    /// One of these words.
    Words(&'static [&'static str]),
    /// On or off, by one of these words.
    Switch(&'static [&'static str]),
    /// A number from the first to the second.
    Number(u32, u32),
    /// A size from the first to the second.
    Size(Sectors, Sectors),
    /// A size each second; zero means no limit.
    Rate,
}

/// What a setting needs to have an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// It always has an effect.
    Nothing,
    /// A cache of the server.
    Cache,
    /// Copies of the data: an array of level 1 or 10.
    Copies,
}

/// One row of the table of settings.
pub struct SettingSpec {
    /// Name of the setting.
    pub name: &'static str,
    /// Its possible values.
    pub kind: SettingKind,
    /// What it needs to have an effect.
    pub needs: Needs,
    /// Its meaning, in one line without a full stop at the end.
    pub help: &'static str,
    get: fn(&Policy) -> Value,
    set: fn(&mut Policy, Value) -> bool,
}

impl SettingSpec {
    /// The value of the setting in a policy.
    #[must_use]
    pub fn get(&self, policy: &Policy) -> Value {
        (self.get)(policy)
    }

    /// Set it; false if the value is not of its kind, or outside of its range. Then nothing has changed.
    #[must_use]
    pub fn set(&self, policy: &mut Policy, value: Value) -> bool {
        let fits = match (self.kind, value) {
            (SettingKind::Words(words) | SettingKind::Switch(words), Value::Word(word)) => words.contains(&word),
            (SettingKind::Number(least, most), Value::Number(number)) => (least..=most).contains(&number),
            (SettingKind::Size(least, most), Value::Size(size)) => (least..=most).contains(&size),
            (SettingKind::Rate, Value::Rate(_)) => true,
            _ => false,
        };
        fits && (self.set)(policy, value)
    }
}

/// The value of a setting, shown as users write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// One of the words of a setting.
    Word(&'static str),
    /// A plain number.
    Number(u32),
    /// A size.
    Size(Sectors),
    /// A size each second; zero means no limit.
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
    /// Name of the setting.
    pub name: &'static str,
    /// Value of the setting.
    pub value: Value,
}

/// A setting that was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Name of the setting.
    pub name: &'static str,
    /// The old value.
    pub from: Value,
    /// The new value.
    pub to: Value,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.name, self.from, self.to)
    }
}

/// How the engine chooses the method for a write of part of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PartialWritePolicy {
    /// The method with the fewest member I/Os.
    #[default]
    Fewest,
    /// Always read-modify-write if it is possible: exactly two reads and two writes for one chunk on RAID 5, also with
    /// three members.
    ReadModifyWrite,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCache {
    /// When it is on the members.
    Through,
    /// When it is in the controller's journal, which keeps it over a power cut or the end of the server. While that is
    /// impossible, writes go through.
    Journal,
    /// When it is in the controller's cache, which loses it in a power cut or at the end of the server: FLUSH and FUA
    /// make it durable, as with a drive's own cache.
    Volatile,
}

/// The data that is read before a host requests it. This needs a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadAhead {
    /// No data.
    None,
    /// The data after every read.
    Always,
    /// The data after sequential reads.
    #[default]
    Adaptive,
}

/// The rule for the copy of a mirror that is read. Members that do not rotate have no heads: rules about heads choose
/// them by pending commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MirrorRule {
    /// The first available copy.
    Primary,
    /// Each copy in turn.
    RoundRobin,
    /// A sequential stream stays on its copy; otherwise the copy whose drive has the fewest commands.
    #[default]
    LeastPending,
    /// The copy whose head is nearest.
    NearestHead,
    /// The copy whose head is nearest, among the copies whose drives have the fewest commands. A sequential stream
    /// stays on one copy; a long one is read in sections from all copies in turn: see [`Policy::split_above`]. Far and
    /// offset copies are read without regard to streams.
    TwinStor,
}

const fn on(on: bool) -> Value {
    Value::Word(if on { "on" } else { OFF })
}

fn differing<const N: usize>(from: [Setting; N], to: [Setting; N]) -> impl Iterator<Item = Change> {
    let pairs = from.into_iter().zip(to);
    let change = |(from, to): (Setting, Setting)| Change { name: from.name, from: from.value, to: to.value };
    pairs.map(change).filter(|change| change.from != change.to)
}

/// Words for the values of an enum, in the order in which they are listed.
macro_rules! words {
    ($($name:ident { $($variant:ident = $word:literal,)* })*) => {$(
        impl $name {
            /// All words.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];
            /// The word for users.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
            fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    )*};
}

words! {
    PartialWritePolicy { Fewest = "fewest", ReadModifyWrite = "rmw", }
    WriteCache { Through = "through", Journal = "journal", Volatile = "volatile", }
    ReadAhead { None = "none", Always = "always", Adaptive = "adaptive", }
    MirrorRule {
        Primary = "primary",
        RoundRobin = "round-robin",
        LeastPending = "least-pending",
        NearestHead = "nearest-head",
        TwinStor = "twinstor",
    }
}

macro_rules! kind {
    (Words($type:ty)) => { SettingKind::Words(<$type>::WORDS) };
    (Switch($($word:literal),+)) => { SettingKind::Switch(&[$($word),+]) };
    (Number($least:expr, $most:expr)) => { SettingKind::Number($least, $most) };
    (Size($least:expr, $most:expr)) => { SettingKind::Size($least, $most) };
    (Rate()) => { SettingKind::Rate };
}

macro_rules! value_of {
    (Words, $field:expr) => {
        Value::Word($field.name())
    };
    (Switch, $field:expr) => {
        on($field)
    };
    ($variant:ident, $field:expr) => {
        Value::$variant($field)
    };
}

macro_rules! put {
    (Words($type:ty), $field:expr, $value:expr) => {
        if let Value::Word(word) = $value {
            <$type>::named(word).map(|found| $field = found).is_some()
        } else {
            false
        }
    };
    (Switch($($word:literal),+), $field:expr, $value:expr) => {
        if let Value::Word(word) = $value {
            $field = word != OFF;
            true
        } else {
            false
        }
    };
    ($kind:ident($($range:expr),*), $field:expr, $value:expr) => {
        if let Value::$kind(found) = $value {
            $field = found;
            true
        } else {
            false
        }
    };
}

/// Makes [`Policy`], its default and its table of settings.
macro_rules! settings {
    ($(
        $(#[$doc:meta])*
        $field:ident: $type:ty = $default:expr, $name:literal, $kind:ident($($range:tt)*), $needs:ident, $help:literal;
    )*) => {
        /// Settings of a set that can be changed while it runs.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Policy {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for Policy {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Policy {
            /// The table of settings, in the order in which they are shown.
            pub const TABLE: &'static [SettingSpec] = &[$(
                SettingSpec {
                    name: $name,
                    kind: kind!($kind($($range)*)),
                    needs: Needs::$needs,
                    help: $help,
                    get: |policy| value_of!($kind, policy.$field),
                    set: |policy, value| put!($kind($($range)*), policy.$field, value),
                },
            )*];
        }
    };
}

// One entry: the field with its default, the name, the possible values, what it needs, and a line of help. `openraid
// set`, the configuration file, `show`, `--json` and docs/settings.md follow.
settings! {
    /// Maximum rate of rebuild, replace, resync and change of shape, in sectors of each member a second; zero means no limit.
    rebuild_rate: Sectors = Sectors::mib(200), "rebuild.rate", Rate(), Nothing,
        "maximum rate of rebuild, replace, resync and change of shape, for each member and second";
    /// Rate that these tasks have while hosts keep the drives busy, in sectors of each member a second; zero means none.
    rebuild_minimum: Sectors = Sectors::mib(20), "rebuild.minimum", Rate(), Nothing,
        "minimum rate of rebuild, replace, resync and change of shape while hosts are busy, for each member and second";
    /// Maximum rate of check and repair, in sectors of each member a second; zero means no limit.
    scrub_rate: Sectors = Sectors::mib(100), "scrub.rate", Rate(), Nothing,
        "maximum rate of check and repair, for each member and second";
    /// How part of a stripe is written.
    partial_write: PartialWritePolicy = PartialWritePolicy::Fewest, "write.partial", Words(PartialWritePolicy), Nothing,
        "how part of a stripe is written: with the fewest member I/Os, or always by read-modify-write (rmw)";
    /// When writes are acknowledged.
    write_cache: WriteCache = WriteCache::Through, "write.cache", Words(WriteCache), Nothing,
        "when writes are acknowledged: through (on the members), journal (in the journal; needs serve --journal), or \
         volatile (in the server's cache, which loses unflushed data when the power fails; needs serve --cache, and \
         --yes)";
    /// Does the cache keep data that was read?
    read_cache: bool = true, "read.cache", Switch("on", "off"), Cache,
        "whether the server's cache keeps data that was read";
    /// Number of operations of a background task at once.
    background_depth: u32 = 8, "background.depth", Number(1, WINDOW_ROWS_MAX), Nothing,
        "number of operations of a background task at once";
    /// The read-ahead. For a nested array the setting of its first span counts.
    read_ahead: ReadAhead = ReadAhead::Adaptive, "read-ahead", Words(ReadAhead), Cache,
        "data to read before hosts request it: none, the data after every read (always), or after sequential reads (adaptive)";
    /// Maximum window of one stream.
    read_ahead_max: Sectors = Sectors::mib(4), "read-ahead-max", Size(LINE_MIN, WINDOW_MAX), Cache,
        "the maximum window of one stream; read-ahead=none switches read-ahead off";
    /// The rule for the copy of a mirror that is read.
    mirror_read: MirrorRule = MirrorRule::LeastPending, "mirror-read", Words(MirrorRule), Copies,
        "which copy of a mirror is read; twinstor: the nearest head, and long streams in sections from all copies";
    /// [`MirrorRule::TwinStor`]: sequential streams, and single requests, that are longer than this are read from all copies.
    split_above: Sectors = Sectors::mib(1), "split-above", Size(Sectors::ZERO, Sectors::MAX), Copies,
        "twinstor: streams and requests longer than this are read in sections";
    /// [`MirrorRule::TwinStor`]: length that is read from one copy before the next one. At least 4 KiB.
    split_section: Sectors = Sectors::mib(1), "split-section", Size(LINE_MIN, WINDOW_MAX), Copies,
        "twinstor: the length of a section";
    /// [`MirrorRule::TwinStor`]: does a sequential stream count from its beginning? Otherwise only the data that hosts
    /// have requested at once counts, and also for [`MirrorRule::LeastPending`].
    split_streams: bool = true, "split-streams", Switch("on", "off"), Copies,
        "on: split-above counts the length of a sequential stream; off: only its data that waits for an answer";
    /// Are commands that wait for a rotating drive chosen by position? Otherwise they are issued in order of arrival.
    sorting: bool = true, "sorting", Switch("on", "off"), Nothing,
        "whether commands that wait for a rotating drive are sorted by position";
    /// Does the load choose read-ahead, the mirror policy and the destage delay? They begin with the settings. For a
    /// nested array the setting of its first span counts.
    adaptive: bool = false, "adaptive", Switch("on", "off", "reset"), Nothing,
        "whether read-ahead, mirror-read and the destage delay follow the load; reset: on, and forget the learned \
         values";
}

/// Settings of a [`Policy`].
pub const SETTINGS: usize = Policy::TABLE.len();
const OFF: &str = "off";
/// Minimum length of a window of read-ahead, and of a section: a line of the cache.
const LINE_MIN: Sectors = Sectors::kib(4);
/// Maximum length of a window. A longer one would exceed any cache's share.
const WINDOW_MAX: Sectors = Sectors::mib(1024);

impl Tuning {
    /// The tuning that the settings of the array give.
    pub(crate) fn of(policy: &Policy, destage_delay: Nanos) -> Self {
        Self { read_ahead: policy.read_ahead, mirror_read: policy.mirror_read, destage_delay }
    }

    /// All of them, in the order in which they are shown.
    #[must_use]
    pub const fn settings(&self) -> [Setting; TUNINGS] {
        [
            Setting { name: "read-ahead", value: Value::Word(self.read_ahead.name()) },
            Setting { name: "mirror-read", value: Value::Word(self.mirror_read.name()) },
            Setting { name: "destage-delay", value: Value::Time(self.destage_delay) },
        ]
    }

    /// The differences to another one.
    pub fn changes_to(&self, to: &Self) -> impl Iterator<Item = Change> {
        differing(self.settings(), to.settings())
    }
}

/// The load in words.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable = |bytes: u64| openraid_units::Bytes(bytes).readable();
        write!(
            f,
            "{} requests, {} % reads; reads: {} % sequential, {} each; writes: {} % sequential, {} each; {}.{} \
             requests at once",
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

/// Number of switches that are kept with their figures.
pub const SWITCHES_KEPT: usize = 8;

/// What the policy chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// The read-ahead.
    pub read_ahead: ReadAhead,
    /// The rule for the copy of a mirror that is read.
    pub mirror_read: MirrorRule,
    /// Maximum time that dirty data waits.
    pub destage_delay: Nanos,
}

/// What hosts did in one window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Load {
    /// Reads and writes.
    pub requests: u64,
    /// Percentage of reads.
    pub read_percent: u32,
    /// Percentage of reads that begin where one of the recent requests ended.
    pub ordered_read_percent: u32,
    /// Percentage of writes that begin where one of the recent requests ended.
    pub ordered_write_percent: u32,
    /// Mean number of requests inside the array when one arrives, itself included, in tenths.
    pub depth_tenths: u32,
    /// Mean size of a read in bytes.
    pub read_bytes: u64,
    /// Mean size of a write in bytes.
    pub write_bytes: u64,
}

/// One change, and its figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// Time of the change.
    pub at: Instant,
    /// Tuning before.
    pub from: Tuning,
    /// Tuning since then.
    pub to: Tuning,
    /// The load that led to the change.
    pub load: Load,
}

/// State and history of an array's policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdaptiveStatus {
    /// Is it on? If not, the settings apply as they are.
    pub on: bool,
    /// The tuning now.
    pub tuning: Tuning,
    /// Load in the last window.
    pub load: Option<Load>,
    /// Number of windows so far.
    pub windows: u64,
    /// Number of switches so far.
    pub switches: u64,
    /// The last of them, oldest first; at most [`SWITCHES_KEPT`].
    pub last: Vec<Switch>,
}

/// A set of settings with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// Safety first: the journal or the members acknowledge writes, and redundancy is restored as fast as possible.
    Protection,
    /// The settings of a new array.
    Balanced,
    /// Speed first: the journal acknowledges writes, without one the cache, which loses them in a power cut. Hosts go
    /// before rebuilds, and the engine adapts to the load.
    Performance,
}

impl Policy {
    /// The row of the table for a name.
    #[must_use]
    pub fn spec(name: &str) -> Option<&'static SettingSpec> {
        Self::TABLE.iter().find(|spec| spec.name == name)
    }

    /// All settings, in the order in which they are shown.
    #[must_use]
    pub fn settings(&self) -> [Setting; SETTINGS] {
        core::array::from_fn(|nth| Setting { name: Self::TABLE[nth].name, value: Self::TABLE[nth].get(self) })
    }

    /// The differences to another one.
    pub fn changes_to(&self, to: &Self) -> impl Iterator<Item = Change> {
        differing(self.settings(), to.settings())
    }

    /// The settings of a profile. All of them use a journal that can protect the array: it is the fastest of the safe
    /// modes, and the only one without a write hole.
    #[must_use]
    pub fn of(profile: Profile, has_journal: bool) -> Self {
        let safe = if has_journal { WriteCache::Journal } else { WriteCache::Through };
        let balanced = Self { write_cache: safe, ..Self::default() };
        match profile {
            Profile::Protection => {
                Self { rebuild_rate: Sectors::ZERO, scrub_rate: Sectors::mib(200), background_depth: 16, ..balanced }
            }
            Profile::Balanced => balanced,
            Profile::Performance => Self {
                rebuild_rate: Sectors::mib(50),
                scrub_rate: Sectors::mib(20),
                background_depth: 4,
                write_cache: if has_journal { safe } else { WriteCache::Volatile },
                mirror_read: MirrorRule::NearestHead,
                adaptive: true,
                ..balanced
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn a_change_lists_the_settings_that_differ() {
        let from = Policy::default();
        assert_eq!(from.changes_to(&from).count(), 0);
        let to = Policy { write_cache: WriteCache::Journal, adaptive: true, rebuild_rate: Sectors::mib(50), ..from };
        let texts: Vec<_> = from.changes_to(&to).map(|change| change.to_string()).collect();
        assert_eq!(
            texts,
            ["rebuild.rate 200 MiB/s -> 50 MiB/s", "write.cache through -> journal", "adaptive off -> on"]
        );
    }

    #[test]
    fn every_setting_takes_back_what_it_shows_and_nothing_of_another_kind_or_outside_of_its_range() {
        for spec in Policy::TABLE {
            let mut policy = Policy { adaptive: true, rebuild_rate: Sectors::ZERO, ..Policy::default() };
            let (before, value) = (policy, spec.get(&policy));
            assert!(spec.set(&mut policy, value), "{}", spec.name);
            let wrong = match spec.kind {
                SettingKind::Words(_) | SettingKind::Switch(_) => [Value::Word("neither"), Value::Number(1)],
                SettingKind::Number(_, most) => [Value::Number(most + 1), Value::Word("on")],
                SettingKind::Size(..) => [Value::Rate(Sectors::mib(1)), Value::Number(8)],
                SettingKind::Rate => [Value::Size(Sectors::mib(1)), Value::Word("none")],
            };
            for value in wrong {
                assert!(!spec.set(&mut policy, value), "{} {value}", spec.name);
            }
            assert_eq!(policy, before, "{}", spec.name);
            if let SettingKind::Words(words) | SettingKind::Switch(words) = spec.kind {
                for word in words {
                    assert!(spec.set(&mut policy, Value::Word(word)), "{} {word}", spec.name);
                    let shown = spec.get(&policy).to_string();
                    assert!(shown == *word || (*word == "reset" && shown == "on"), "{} {word}: {shown}", spec.name);
                }
            }
        }
        assert!(!Policy::spec("split-section").unwrap().set(&mut Policy::default(), Value::Size(Sectors(7))));
    }

    #[test]
    fn every_setting_has_a_name_of_its_own() {
        let names: Vec<&str> = Policy::default().settings().iter().map(|setting| setting.name).collect();
        for (place, name) in names.iter().enumerate() {
            assert!(!name.is_empty() && !names[..place].contains(name), "{name:?}");
        }
    }
}
