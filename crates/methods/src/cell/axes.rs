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

/// The axes. All are optional.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Axes {
    /// Percentage of reads among the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rd: Option<u8>,
    /// Number of outstanding requests of each worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qd: Option<u32>,
    /// Number of outstanding requests of all workers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oio: Option<u32>,
    /// Number of threads of the load generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u16>,
    /// Number of users that run an application trace at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<u16>,
    /// Size of each request, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<u32>,
    /// Number of sequential clients, each in a zone of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub th: Option<u16>,
    /// Direction of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<Direction>,
    /// Step of the file-copy test that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<FileStep>,
    /// Set of files of the file-copy test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<FileSet>,
    /// File system whose placement of files and metadata is imitated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<FileSystem>,
    /// Application whose requests are imitated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<TraceApp>,
    /// Write-back or write-through: the caches of the controller and, if its profile couples them, of the drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheMode>,
    /// Size of the controller's cache, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_mib: Option<u32>,
    /// Another controller with the same drives: the name of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctl: Option<String>,
    /// Another host bus: the name of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Other drives: the name of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// Devices of a journal that acknowledges writes: a profile's name, or `2xNAME` for two that hold the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
    /// Size of a chunk, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u32>,
    /// The part of the array to which the requests are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneChoice>,
    /// Cycle of the order test: the load that came before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cyc: Option<Cycle>,
    /// The way in which the array was created again after the random load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Recreated>,
    /// Length of the load before the measurement, seconds. It is of the same kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_s: Option<u32>,
    /// Length of the measurement, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secs: Option<u32>,
    /// Is one member a slow drive, with half the rate of the others?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<bool>,
    /// Are the drives' own write caches on? If it is absent, their profiles decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_cache: Option<bool>,
    /// Do the drives themselves read ahead? If it is absent, their profiles decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_read_ahead: Option<bool>,
    /// Speed of the host's processor, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_speed_percent: Option<u32>,
    /// Are the SSDs as from the factory? Otherwise they were written full before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<bool>,
    /// Number of the repetition, from 0. Each repetition has other positions of requests and other phases of the
    /// drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rep: Option<u32>,
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
        Self {
            rd: self.rd.or(other.rd),
            qd: self.qd.or(other.qd),
            oio: self.oio.or(other.oio),
            workers: self.workers.or(other.workers),
            users: self.users.or(other.users),
            bs: self.bs.or(other.bs),
            th: self.th.or(other.th),
            op: self.op.or(other.op),
            step: self.step.or(other.step),
            set: self.set.or(other.set),
            fs: self.fs.or(other.fs),
            app: self.app.or(other.app),
            cache: self.cache.or(other.cache),
            cache_mib: self.cache_mib.or(other.cache_mib),
            ctl: self.ctl.or(other.ctl),
            bus: self.bus.or(other.bus),
            drive: self.drive.or(other.drive),
            journal: self.journal.or(other.journal),
            chunk: self.chunk.or(other.chunk),
            zone: self.zone.or(other.zone),
            cyc: self.cyc.or(other.cyc),
            after: self.after.or(other.after),
            warm_s: self.warm_s.or(other.warm_s),
            secs: self.secs.or(other.secs),
            slow: self.slow.or(other.slow),
            drive_cache: self.drive_cache.or(other.drive_cache),
            drive_read_ahead: self.drive_read_ahead.or(other.drive_read_ahead),
            host_speed_percent: self.host_speed_percent.or(other.host_speed_percent),
            fresh: self.fresh.or(other.fresh),
            rep: self.rep.or(other.rep),
        }
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
