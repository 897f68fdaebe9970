//! The axes of a cell other than array and pattern, and their names, which the language of claims has too.
//!
//! If an axis is absent, the value of the pattern applies. If the pattern has none, the value of the system applies.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }
        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The words of all values.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
            /// The word in documents.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
            /// The one that is written so.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let words = utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::Type::String);
                words.enum_values(Some([$($word),+])).into()
            }
        }
        impl utoipa::ToSchema for $name {}
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// Which way the data goes.
    Direction {
        /// From the target.
        Read = "read",
        /// To the target.
        Write = "write",
    }
}
words! {
    /// A step of the file-copy test.
    FileStep {
        /// Make all files.
        Create = "create",
        /// Read all files.
        Read = "read",
        /// Copy them within the partition.
        CopySame = "copy_same",
        /// Copy them to the second partition.
        CopyOther = "copy_other",
    }
}
words! {
    /// A set of files.
    FileSet {
        /// An installation: large and small files.
        Install = "install",
        /// Few very large files.
        Iso = "iso",
        /// Files of some megabytes.
        Mp3 = "mp3",
        /// Many small files.
        Programs = "programs",
        /// Many small files.
        Windows = "windows",
    }
}
words! {
    /// How files are laid out.
    FileSystem {
        /// After NTFS.
        Ntfs = "ntfs",
        /// After FAT32.
        Fat32 = "fat32",
    }
}
words! {
    /// An application whose requests are imitated.
    TraceApp {
        /// The sum of office and workstation programs.
        Winmark99 = "winmark99",
        /// Large images.
        Photoshop40 = "photoshop40",
        /// Large audio files.
        Soundforge40 = "soundforge40",
        /// A compiler.
        Visualcpp50 = "visualcpp50",
    }
}
words! {
    /// What happens to writes.
    CacheMode {
        /// They are acknowledged from memory.
        WriteBack = "wb",
        /// They are acknowledged from the drives.
        WriteThrough = "wt",
    }
}
words! {
    /// Which part of the array is used.
    ZoneChoice {
        /// The whole array.
        Full = "full",
        /// Its first 32 GB.
        First32g = "32g",
    }
}
words! {
    /// Where on the transfer graph.
    Place {
        /// Its first places.
        Begin = "begin",
        /// Its last places.
        End = "end",
    }
}
words! {
    /// The action between the random load and the measurement.
    Recreated {
        /// The array was deleted and created again; the controller kept running.
        Recreate = "recreate",
        /// The array was created again after a power cycle.
        PowerCycle = "power_cycle",
    }
}
words! {
    /// A cycle of the order test.
    Cycle {
        /// Random loads before sequential ones.
        First = "1",
        /// Files and sequential loads first.
        Second = "2",
    }
}

words! {
    /// The name of an axis, in the order in which calls of the language of claims are written.
    Axis {
        /// The controller's profile, which each cell names.
        System = "system",
        /// Percentage of reads.
        Rd = "rd",
        /// Outstanding requests of each worker.
        Qd = "qd",
        /// Outstanding requests of all workers.
        Oio = "oio",
        /// Threads of the generator.
        Workers = "workers",
        /// Simultaneous users of an application trace.
        Users = "users",
        /// Block size in bytes.
        Bs = "bs",
        /// Sequential clients on disjoint zones.
        Th = "th",
        /// In claims: a pattern other than the claim's own.
        Pat = "pat",
        /// Direction; in claims also the step of FC-Test.
        Op = "op",
        /// Step of the file-copy test.
        Step = "step",
        /// File-set.
        Set = "set",
        /// File system model.
        Fs = "fs",
        /// Application trace.
        App = "app",
        /// Write-back or write-through.
        Cache = "cache",
        /// Size of the controller's cache, MiB.
        CacheMib = "cache_mib",
        /// Another controller with the same drives.
        Ctl = "ctl",
        /// Another host bus.
        Bus = "bus",
        /// Other drives.
        Drive = "drive",
        /// Devices of a journal.
        Journal = "journal",
        /// Size of a chunk, bytes.
        Chunk = "chunk",
        /// Test zone.
        Zone = "zone",
        /// In claims: place on the transfer graph.
        Pos = "pos",
        /// Cycle of the two-cycle order test.
        Cyc = "cyc",
        /// The step after the random cycle.
        After = "after",
        /// Load of the same kind before the measurement, in seconds.
        WarmS = "warm_s",
        /// Length of the measurement, in seconds.
        Secs = "secs",
        /// One slow member in the array.
        Slow = "slow",
        /// In claims: number of one member.
        Member = "member",
        /// Speed of the host's CPU.
        HostSpeed = "host_speed",
        /// Repetition.
        Rep = "rep",
        /// In claims: members, for `survive_fraction`.
        N = "n",
        /// In claims: failures, for `survive_fraction`.
        K = "k",
        /// In claims: percentile, for `pctl_us`.
        P = "p",
    }
}

/// The value of an axis as programs without its type write it.
#[derive(Clone, PartialEq, Debug)]
pub enum AxisValue {
    Number(f64),
    Word(String),
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => write!(f, "'{word}'"),
        }
    }
}

/// The type of an axis.
trait AxisType: Sized {
    /// The value, if the axis can have it.
    fn of(value: &AxisValue) -> Option<Self>;
}

impl AxisType for u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a whole number within the bounds
    fn of(value: &AxisValue) -> Option<Self> {
        match value {
            AxisValue::Number(number) if number.fract() == 0.0 && (0.0..=f64::from(Self::MAX)).contains(number) => {
                Some(*number as Self)
            }
            AxisValue::Number(_) | AxisValue::Word(_) => None,
        }
    }
}

impl AxisType for u16 {
    fn of(value: &AxisValue) -> Option<Self> {
        Self::try_from(u32::of(value)?).ok()
    }
}

impl AxisType for u8 {
    fn of(value: &AxisValue) -> Option<Self> {
        Self::try_from(u32::of(value)?).ok()
    }
}

impl AxisType for bool {
    fn of(value: &AxisValue) -> Option<Self> {
        u32::of(value).filter(|number| *number <= 1).map(|number| number == 1)
    }
}

impl AxisType for String {
    fn of(value: &AxisValue) -> Option<Self> {
        match value {
            AxisValue::Word(word) => Some(word.clone()),
            AxisValue::Number(_) => None,
        }
    }
}

macro_rules! axes_of_words {
    ($($name:ident),+) => {
        $(impl AxisType for $name {
            fn of(value: &AxisValue) -> Option<Self> {
                match value {
                    AxisValue::Word(word) => Self::from_word(word),
                    AxisValue::Number(number) => Self::from_word(&number.to_string()),
                }
            }
        })+
    };
}

axes_of_words!(Direction, FileStep, FileSet, FileSystem, TraceApp, CacheMode, ZoneChoice, Recreated, Cycle);

/// Makes [`Axes`] from its fields: the document, the type and the axis of each.
macro_rules! axes {
    ($($(#[$doc:meta])* $field:ident: $type:ty $(= $axis:ident)?),+ $(,)?) => {
        /// The axes. All are optional.
        #[derive(
            Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, utoipa::ToSchema,
        )]
        #[serde(default, deny_unknown_fields)]
        pub struct Axes {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>),+
        }

        impl Axes {
            /// Has the axis a value?
            #[must_use]
            pub const fn has(&self, axis: Axis) -> bool {
                match axis {
                    $($(Axis::$axis => self.$field.is_some(),)?)+
                    _ => false,
                }
            }

            /// Sets the value of an axis.
            ///
            /// # Errors
            /// Cells have no such axis, or the axis has no such value.
            pub fn set(&mut self, axis: Axis, value: &AxisValue) -> Result<(), AxisError> {
                let unknown = || AxisError { axis, reason: format!("it has no value {value}") };
                match axis {
                    $($(Axis::$axis => self.$field = Some(AxisType::of(value).ok_or_else(unknown)?),)?)+
                    _ => return Err(unknown()),
                }
                Ok(())
            }

            /// Each axis of these, or of `other` if it is absent here.
            fn each_or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field)),+ }
            }
        }
    };
}

axes! {
    /// Percentage of reads among the requests.
    rd: u8 = Rd,
    /// Number of outstanding requests of each worker.
    qd: u32 = Qd,
    /// Number of outstanding requests of all workers together.
    oio: u32 = Oio,
    /// Number of threads of the load generator.
    workers: u16 = Workers,
    /// Number of users that run an application trace at the same time.
    users: u16 = Users,
    /// Size of each request, bytes.
    bs: u32 = Bs,
    /// Number of sequential clients, each in a zone of its own.
    th: u16 = Th,
    /// Direction of the requests.
    op: Direction = Op,
    /// Step of the file-copy test that is measured.
    step: FileStep = Step,
    /// Set of files of the file-copy test.
    set: FileSet = Set,
    /// File system whose placement of files and metadata is imitated.
    fs: FileSystem = Fs,
    /// Application whose requests are imitated.
    app: TraceApp = App,
    /// Write-back or write-through: the caches of the controller and, if its profile couples them, of the drives.
    cache: CacheMode = Cache,
    /// Size of the controller's cache, MiB.
    cache_mib: u32 = CacheMib,
    /// Another controller with the same drives: the name of a profile.
    ctl: String = Ctl,
    /// Another host bus: the name of a profile.
    bus: String = Bus,
    /// Other drives: the name of a profile.
    drive: String = Drive,
    /// Devices of a journal that acknowledges writes: a profile's name, or `2xNAME` for two that hold the same.
    journal: String = Journal,
    /// Size of a chunk, bytes.
    chunk: u32 = Chunk,
    /// The part of the array to which the requests are limited.
    zone: ZoneChoice = Zone,
    /// Cycle of the order test: the load that came before this one.
    cyc: Cycle = Cyc,
    /// The way in which the array was created again after the random load.
    after: Recreated = After,
    /// Length of the load before the measurement, seconds. It is of the same kind.
    warm_s: u32 = WarmS,
    /// Length of the measurement, seconds.
    secs: u32 = Secs,
    /// Is one member a slow drive, with half the rate of the others?
    slow: bool = Slow,
    /// Are the drives' own write caches on? If it is absent, their profiles decide.
    drive_cache: bool,
    /// Do the drives themselves read ahead? If it is absent, their profiles decide.
    drive_read_ahead: bool,
    /// Speed of the host's processor, percent.
    host_speed_percent: u32 = HostSpeed,
    /// Are the SSDs as from the factory? Otherwise they were written full before.
    fresh: bool,
    /// Number of the repetition, from 0. Each repetition has other positions of requests and other phases of the
    /// drives.
    rep: u32 = Rep,
}

/// Ranges of the axes: minimum and maximum.
mod range {
    pub const QD: (u32, u32) = (1, 4096);
    pub const OIO: (u32, u32) = (1, 65_536);
    pub const WORKERS: (u16, u16) = (1, 256);
    pub const TH: (u16, u16) = (1, 64);
    pub const BS: (u32, u32) = (512, 16 << 20);
    pub const SECS: (u32, u32) = (1, 86_400);
    pub const CACHE_MIB: (u32, u32) = (0, 1 << 20);
    pub const HOST_SPEED: (u32, u32) = (1, 10_000);
}

/// An axis has an invalid value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisError {
    pub axis: Axis,
    /// The fault and its remedy.
    pub reason: String,
}

impl fmt::Display for AxisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.axis, self.reason)
    }
}

impl std::error::Error for AxisError {}

fn within<T: PartialOrd + fmt::Display + Copy>(
    axis: Axis,
    value: Option<T>,
    (least, most): (T, T),
) -> Result<(), AxisError> {
    match value {
        Some(value) if value < least || value > most => {
            Err(AxisError { axis, reason: format!("{value} is not possible; give {least} to {most}") })
        }
        _ => Ok(()),
    }
}

impl Axes {
    /// Are all values within their ranges?
    ///
    /// # Errors
    /// The first axis whose value is outside its range, with that range.
    pub fn check(&self) -> Result<(), AxisError> {
        within(Axis::Rd, self.rd, (0, 100))?;
        within(Axis::Qd, self.qd, range::QD)?;
        within(Axis::Oio, self.oio, range::OIO)?;
        within(Axis::Workers, self.workers, range::WORKERS)?;
        within(Axis::Users, self.users, range::WORKERS)?;
        within(Axis::Th, self.th, range::TH)?;
        within(Axis::Bs, self.bs, range::BS)?;
        within(Axis::Secs, self.secs, range::SECS)?;
        within(Axis::WarmS, self.warm_s, (0, range::SECS.1))?;
        within(Axis::CacheMib, self.cache_mib, range::CACHE_MIB)?;
        within(Axis::HostSpeed, self.host_speed_percent, range::HOST_SPEED)?;
        if self.bs.is_some_and(|bs| !bs.is_multiple_of(512)) {
            return Err(AxisError { axis: Axis::Bs, reason: "give a whole number of 512-byte sectors".into() });
        }
        Ok(())
    }

    /// These axes. An axis that is absent here gets the value of `other`. Axes that say how the controller acknowledges
    /// writes replace a journal of `other`.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let mut other = other.clone();
        if self.cache.is_some() || self.cache_mib == Some(0) {
            other.journal = None;
        }
        self.each_or(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written_and_serialised_so() {
        for step in FileStep::ALL {
            assert_eq!(FileStep::from_word(step.word()), Some(*step));
            assert_eq!(serde_json::to_string(step).unwrap(), format!("{:?}", step.word()));
        }
        assert_eq!(CacheMode::from_word("wb"), Some(CacheMode::WriteBack));
        assert_eq!(Cycle::from_word("3"), None);
    }

    #[test]
    fn an_axis_takes_the_values_of_its_type() {
        let mut axes = Axes::default();
        let (number, word) = (AxisValue::Number, |word: &str| AxisValue::Word(word.into()));
        for (axis, value) in [
            (Axis::Rd, number(40.0)),
            (Axis::Bs, number(4096.0)),
            (Axis::Cyc, number(2.0)),
            (Axis::Slow, number(1.0)),
            (Axis::Set, word("iso")),
            (Axis::Bus, word("dmi2")),
        ] {
            assert!(!axes.has(axis) && axes.set(axis, &value).is_ok() && axes.has(axis), "{axis} {value}");
        }
        assert_eq!(
            serde_json::to_string(&axes).unwrap(),
            r#"{"rd":40,"bs":4096,"set":"iso","bus":"dmi2","cyc":"2","slow":true}"#
        );
        for (axis, value) in [
            (Axis::Rd, number(0.5)),
            (Axis::Rd, number(256.0)),
            (Axis::Qd, number(-1.0)),
            (Axis::Qd, word("4")),
            (Axis::Slow, number(2.0)),
            (Axis::Cyc, number(3.0)),
            (Axis::App, word("business")),
            (Axis::Pat, word("db")),
        ] {
            assert!(axes.set(axis, &value).is_err(), "{axis} {value}");
        }
    }

    #[test]
    fn absent_axes_are_not_written_and_fall_back_to_others() {
        let deep = Axes { qd: Some(4), ..Axes::default() };
        assert_eq!(serde_json::to_string(&deep).unwrap(), r#"{"qd":4}"#);
        let both = deep.or(&Axes { qd: Some(16), bs: Some(4096), ..Axes::default() });
        assert_eq!((both.qd, both.bs), (Some(4), Some(4096)));
        let journal = Axes { journal: Some("x".into()), ..Axes::default() };
        let with = |axes: Axes| axes.or(&journal).journal;
        assert_eq!(with(Axes { cache_mib: Some(64), ..Axes::default() }).as_deref(), Some("x"));
        assert_eq!(with(Axes { cache_mib: Some(0), ..Axes::default() }), None);
        assert_eq!(with(Axes { cache: Some(CacheMode::WriteThrough), ..Axes::default() }), None);
        assert!(serde_json::from_str::<Axes>(r#"{"depth":4}"#).is_err());
    }

    #[test]
    fn values_outside_their_range_are_refused_with_the_range() {
        let bad = [
            (Axes { rd: Some(101), ..Axes::default() }, "rd: 101 is not possible; give 0 to 100"),
            (Axes { qd: Some(0), ..Axes::default() }, "qd: 0 is not possible; give 1 to 4096"),
            (Axes { bs: Some(1000), ..Axes::default() }, "bs: give a whole number of 512-byte sectors"),
        ];
        for (axes, text) in bad {
            assert_eq!(axes.check().unwrap_err().to_string(), text);
        }
        assert_eq!(Axes::default().check(), Ok(()));
    }
}
