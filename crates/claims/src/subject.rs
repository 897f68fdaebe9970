//! The subject of a metric: an array by level and width, several single drives, or one drive.
//!
//! This module must never decide whether an array is possible. That depends on the rules of the controller. The program
//! that makes the measurements applies those rules.

use openraid_methods::cell;
pub use openraid_models::ArrayLevel as Level;
use std::fmt;
use std::str::FromStr;

/// Limit of the members in a name: the widest arrays of the engine have fewer.
pub const MEMBERS_MAX: u16 = 384;

/// The name for any number of independent drives.
pub const JBOD: &str = "jbod";

/// Levels in claims.
pub const LEVELS: [Level; 8] = [
    Level::Raid0,
    Level::Raid1,
    Level::Raid1e,
    Level::Raid10,
    Level::Raid5,
    Level::Raid6,
    Level::Raid50,
    Level::Raid60,
];

/// The level of this text: `raid5`, `5`, or `raid5xN` if the width does not matter.
///
/// # Errors
/// Claims do not have such a level.
pub fn level(text: &str) -> Result<Level, SubjectError> {
    let bare = text.split_once('x').map_or(text, |(level, _)| level);
    let number = bare.strip_prefix("raid").unwrap_or(bare);
    let found = LEVELS.into_iter().find(|level| level.word().strip_prefix("raid") == Some(number));
    found.ok_or_else(|| SubjectError::Unknown(clip(text)))
}

/// A drive with a name of its own in claims, independent of the system's drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NamedDrive {
    /// The fastest 15,000 rpm drive of the models.
    Best15k,
    /// An SSD of the SATA 3 Gb/s generation.
    Ssd2009,
    /// A consumer SATA 6 Gb/s SSD.
    DesktopSsd,
    /// Intel DC S3500.
    S3500,
    /// Intel DC S3700.
    S3700,
}

impl NamedDrive {
    /// All values.
    pub const ALL: [Self; 5] = [Self::Best15k, Self::Ssd2009, Self::DesktopSsd, Self::S3500, Self::S3700];

    /// The name in a claim.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Best15k => "best15k",
            Self::Ssd2009 => "ssd2009",
            Self::DesktopSsd => "desktop_ssd",
            Self::S3500 => "s3500",
            Self::S3700 => "s3700",
        }
    }
}

/// The measured subject.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    /// One drive of the system, as an array of its own.
    Single,
    /// An array on a number of the system's drives.
    Array {
        /// Its level.
        level: Level,
        /// Its members.
        members: u16,
    },
    /// Independent drives, all loaded at the same time.
    Jbod(u16),
    /// The slow drive that replaces a member for `slow=1`: half the rate, half the requests.
    SlowSingle,
    /// A drive by its own name.
    Drive(NamedDrive),
}

impl Subject {
    /// Number of members.
    #[must_use]
    pub const fn members(self) -> u16 {
        match self {
            Self::Array { members, .. } | Self::Jbod(members) => members,
            Self::Single | Self::SlowSingle | Self::Drive(_) => 1,
        }
    }

    /// The subject of a cell.
    ///
    /// # Errors
    /// The level cannot have this number of drives.
    pub(crate) fn cell(self) -> Result<cell::Subject, cell::SubjectError> {
        Ok(match self {
            Self::Single => cell::Subject::Single,
            Self::Array { level, members } => cell::Subject::array(level, members)?,
            Self::Jbod(members) => cell::Subject::array(Level::Jbod, members)?,
            Self::SlowSingle => cell::Subject::SlowSingle,
            Self::Drive(NamedDrive::Best15k) => cell::Subject::Best15k,
            Self::Drive(NamedDrive::Ssd2009) => cell::Subject::Ssd2009,
            Self::Drive(NamedDrive::DesktopSsd) => cell::Subject::DesktopSsd,
            Self::Drive(NamedDrive::S3500) => cell::Subject::S3500,
            Self::Drive(NamedDrive::S3700) => cell::Subject::S3700,
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Array { level, members } => write!(f, "{}x{members}", level.word()),
            Self::Jbod(members) => write!(f, "jbodx{members}"),
            Self::SlowSingle => f.write_str("slow_single"),
            Self::Drive(drive) => f.write_str(drive.name()),
        }
    }
}

impl FromStr for Subject {
    type Err = SubjectError;
    fn from_str(text: &str) -> Result<Self, SubjectError> {
        match text {
            "single" => return Ok(Self::Single),
            "slow_single" => return Ok(Self::SlowSingle),
            _ => {}
        }
        if let Some(drive) = NamedDrive::ALL.into_iter().find(|drive| drive.name() == text) {
            return Ok(Self::Drive(drive));
        }
        let unknown = || SubjectError::Unknown(clip(text));
        let (kind, width) = text.rsplit_once('x').ok_or_else(unknown)?;
        let digits = !width.is_empty() && width.bytes().all(|byte| byte.is_ascii_digit()) && !width.starts_with('0');
        if !digits {
            return Err(unknown());
        }
        let members: u16 = width.parse().unwrap_or(u16::MAX);
        let subject = if kind == JBOD {
            Self::Jbod(members)
        } else {
            let level = LEVELS.into_iter().find(|level| level.word() == kind).ok_or_else(unknown)?;
            Self::Array { level, members }
        };
        if members > MEMBERS_MAX {
            return Err(SubjectError::TooWide(clip(text)));
        }
        Ok(subject)
    }
}

/// A name without a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubjectError {
    /// An unknown name.
    Unknown(String),
    /// Too many members.
    TooWide(String),
}

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => write!(
                f,
                "'{text}' is not an array or drive; write single, raidLxN (L: 0, 1, 1e, 10, 5, 6, 50, 60), jbodxN, \
                 slow_single, best15k, ssd2009, desktop_ssd, s3500 or s3700"
            ),
            Self::TooWide(text) => write!(f, "'{text}' has more members than {MEMBERS_MAX}; take fewer"),
        }
    }
}

impl std::error::Error for SubjectError {}

/// The beginning of a text of any length and content, for a message.
pub(crate) fn clip(text: &str) -> String {
    const SHOWN: usize = 60;
    let short: String = text.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > SHOWN {
        format!("{short}...")
    } else {
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_reads_back_from_its_own_name() {
        let mut subjects = vec![Subject::Single, Subject::SlowSingle, Subject::Jbod(6)];
        subjects.extend(NamedDrive::ALL.map(Subject::Drive));
        for level in LEVELS {
            for members in [1, 2, 9, 24, MEMBERS_MAX] {
                subjects.push(Subject::Array { level, members });
            }
        }
        for subject in subjects {
            assert_eq!(subject.to_string().parse(), Ok(subject));
            // The laboratory has the same names, and the same reason against an impossible array.
            assert_eq!(subject.cell(), subject.to_string().parse(), "{subject}");
        }
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        let wide = ["raid5x385", "raid5x70000", "raid0x99999999999999999999"];
        let unknown =
            ["", "x", "raid5", "raid5x", "raid5x04", "raid5x-1", "raid7x3", "RAID5x3", "raid5x3 ", "jbod", "x4"];
        for text in wide {
            assert!(matches!(text.parse::<Subject>(), Err(SubjectError::TooWide(_))), "{text}");
        }
        for text in unknown {
            assert!(matches!(text.parse::<Subject>(), Err(SubjectError::Unknown(_))), "{text}");
        }
        let long = "y".repeat(1000).parse::<Subject>().expect_err("no name").to_string();
        assert!(long.len() < 300 && long.contains("..."));
    }

    #[test]
    fn a_level_is_read_with_and_without_a_width() {
        assert_eq!(level("raid6"), Ok(Level::Raid6));
        assert_eq!(level("raid1exN"), Ok(Level::Raid1e));
        assert!(level("raid").is_err() && level("raid4").is_err() && level("single").is_err());
    }
}
