//! The subject of a measurement: an array with its number of drives, or a single drive.

pub use openraid_models::ArrayLevel as Level;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum number of drives of one array. The engine's limits for a set, for raw drives and for two spans determine it.
#[must_use]
pub const fn members_max(level: Level) -> u16 {
    let of_set = openraid_core::limits::MEMBERS_MAX;
    match level {
        Level::Single => 1,
        Level::Jbod | Level::Raid50 | Level::Raid60 => 2 * of_set,
        Level::Linear | Level::Raid0 | Level::Raid1 | Level::Raid1e | Level::Raid10 => of_set,
        Level::Raid4 | Level::Raid5 | Level::Raid6 => of_set,
    }
}

/// The subject of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// One drive of the system on the system's controller.
    Single,
    /// An array of the system's drives.
    Array {
        /// Level of the array.
        level: Level,
        /// Number of drives.
        members: u16,
    },
    /// The drive that `slow=1` uses as one member: half the media rate, half the requests per second.
    SlowSingle,
    /// The fastest modelled drive with 15,000 turns per minute.
    Best15k,
    /// An SSD of the SATA 3 Gb/s generation.
    Ssd2009,
    /// A consumer SATA 6 Gb/s SSD.
    DesktopSsd,
    /// One DC S3500.
    S3500,
    /// One DC S3700.
    S3700,
}

/// The error of a word that names no subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubjectError {
    /// The word is unknown.
    Unknown(String),
    /// The level is unknown, or the count is not a number.
    Array(String),
    /// The level cannot have this number of drives.
    Members {
        /// The word as written.
        word: String,
        level: Level,
    },
}

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(
                f,
                "{word:?} names nothing that can be measured; write single, raidLxN (L is 0, 1, 1e, 10, 4, 5, 6, 50 or \
                 60, N the number of drives), jbodxN, linearxN, slow_single, best15k, ssd2009, desktop_ssd, s3500 or s3700"
            ),
            Self::Array(word) => {
                if word.starts_with("raid00x") {
                    return write!(f, "RAID 00 is a RAID 0 over all of its drives; write raid0x and their number");
                }
                write!(f, "{word:?} is not an array; write the level, an x and the number of drives, as in raid5x4")
            }
            Self::Members { word, level } => {
                let (least, most) = (level.members_min(), members_max(*level));
                write!(f, "{word:?} has an impossible number of drives; this level takes {least} to {most}")
            }
        }
    }
}

impl std::error::Error for SubjectError {}

impl Subject {
    /// All single drives, by their names.
    pub const DRIVES: [(&'static str, Self); 7] = [
        ("single", Self::Single),
        ("slow_single", Self::SlowSingle),
        ("best15k", Self::Best15k),
        ("ssd2009", Self::Ssd2009),
        ("desktop_ssd", Self::DesktopSsd),
        ("s3500", Self::S3500),
        ("s3700", Self::S3700),
    ];

    /// The drive with this name.
    #[must_use]
    pub fn drive(name: &str) -> Option<Self> {
        Self::DRIVES.into_iter().find(|(known, _)| *known == name).map(|(_, drive)| drive)
    }

    /// An array of this level.
    ///
    /// # Errors
    /// The level cannot have this number of drives.
    pub fn array(level: Level, members: u16) -> Result<Self, SubjectError> {
        let array = Self::Array { level, members };
        array.check().map(|()| array)
    }

    /// Is the number of drives possible?
    ///
    /// # Errors
    /// The level cannot have this number of drives.
    pub fn check(self) -> Result<(), SubjectError> {
        match self {
            Self::Array { level, members } if members < level.members_min() || members > members_max(level) => {
                Err(SubjectError::Members { word: self.to_string(), level })
            }
            _ => Ok(()),
        }
    }

    /// Number of drives.
    #[must_use]
    pub const fn members(self) -> u16 {
        match self {
            Self::Array { members, .. } => members,
            _ => 1,
        }
    }

    /// The level, if the subject is an array.
    #[must_use]
    pub const fn level(self) -> Option<Level> {
        match self {
            Self::Array { level, .. } => Some(level),
            _ => None,
        }
    }

    /// The name for readers: `RAID 5, 4 drives`.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::Array { level, members } => format!("{}, {members} drives", level.title()),
            Self::Single => "single drive".into(),
            Self::SlowSingle => "slow drive".into(),
            Self::Best15k => "best 15k drive".into(),
            Self::Ssd2009 => "SSD of 2009".into(),
            Self::DesktopSsd => "desktop SSD".into(),
            Self::S3500 => "DC S3500".into(),
            Self::S3700 => "DC S3700".into(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array { level, members } => write!(f, "{}x{members}", level.word()),
            drive => {
                let (name, _) = Self::DRIVES.iter().find(|(_, known)| known == drive).expect("every drive has a name");
                f.write_str(name)
            }
        }
    }
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(word: &str) -> Result<Self, SubjectError> {
        if let Some(drive) = Self::drive(word) {
            return Ok(drive);
        }
        let is_array = word.starts_with("raid") || word.starts_with("jbod") || word.starts_with("linear");
        let Some((level, members)) = word.rsplit_once('x').filter(|_| is_array) else {
            return Err(if is_array { SubjectError::Array(word.into()) } else { SubjectError::Unknown(word.into()) });
        };
        let level = Level::from_word(level);
        let members = members.parse::<u16>().ok();
        let (Some(level), Some(members)) = (level, members) else { return Err(SubjectError::Array(word.into())) };
        Self::array(level, members)
    }
}

impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl utoipa::PartialSchema for Subject {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        String::schema()
    }
}

impl utoipa::ToSchema for Subject {}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_is_read_as_it_is_written() {
        for word in [
            "single",
            "slow_single",
            "best15k",
            "ssd2009",
            "desktop_ssd",
            "s3500",
            "s3700",
            "jbodx6",
            "linearx2",
            "raid0x2",
            "raid1x2",
            "raid1ex3",
            "raid10x4",
            "raid4x3",
            "raid5x3",
            "raid6x8",
            "raid50x8",
            "raid60x16",
        ] {
            let subject: Subject = word.parse().unwrap();
            assert_eq!(subject.to_string(), word);
        }
        let raid = Subject::Array { level: Level::Raid5, members: 4 };
        assert_eq!("raid5x4".parse(), Ok(raid));
        assert_eq!((raid.members(), raid.title().as_str()), (4, "RAID 5, 4 drives"));
    }

    #[test]
    fn impossible_subjects_are_refused_with_a_remedy() {
        for (word, words) in [
            ("raid7x4", "is not an array"),
            ("raid5", "is not an array"),
            ("raid5x", "is not an array"),
            ("raid6x3", "takes 4 to 128"),
            ("raid6x129", "takes 4 to 128"),
            ("raid60x257", "takes 8 to 256"),
            ("raid0x1", "takes 2"),
            ("raid0x999", "to 128"),
            ("", "names nothing"),
            ("floppy", "names nothing"),
            ("floppy", "linearxN"),
        ] {
            let error = word.parse::<Subject>().unwrap_err().to_string();
            assert!(error.contains(words), "{word}: {error}");
        }
    }
}
