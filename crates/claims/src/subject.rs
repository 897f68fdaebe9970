//! The names of subjects in claims: an array by level and width, several single drives, or one drive.
//!
//! This module must never decide whether an array is possible. That depends on the rules of the controller. The program
//! that makes the measurements applies those rules.

pub use openraid_methods::cell::Subject;
pub use openraid_models::ArrayLevel as Level;
use std::fmt;

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
pub fn level(text: &str) -> Result<Level, SubjectNameError> {
    let bare = text.split_once('x').map_or(text, |(level, _)| level);
    let number = bare.strip_prefix("raid").unwrap_or(bare);
    let found = LEVELS.into_iter().find(|level| level.word().strip_prefix("raid") == Some(number));
    found.ok_or_else(|| SubjectNameError::Unknown(clip(text)))
}

/// The subject of a name in a claim. The controller of the claim decides later whether an array is possible.
///
/// # Errors
/// Claims do not have such a name.
pub fn subject(text: &str) -> Result<Subject, SubjectNameError> {
    if let Some(drive) = Subject::drive(text) {
        return Ok(drive);
    }
    let unknown = || SubjectNameError::Unknown(clip(text));
    let (kind, width) = text.rsplit_once('x').ok_or_else(unknown)?;
    let digits = !width.is_empty() && width.bytes().all(|byte| byte.is_ascii_digit()) && !width.starts_with('0');
    let level = LEVELS.into_iter().chain([Level::Jbod]).find(|level| level.word() == kind);
    let Some(level) = level.filter(|_| digits) else { return Err(unknown()) };
    match width.parse() {
        Ok(members) if members <= MEMBERS_MAX => Ok(Subject::Array { level, members }),
        _ => Err(SubjectNameError::TooWide(clip(text))),
    }
}

/// A name without a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubjectNameError {
    /// An unknown name.
    Unknown(String),
    /// Too many members.
    TooWide(String),
}

impl fmt::Display for SubjectNameError {
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

impl std::error::Error for SubjectNameError {}

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
        let mut subjects = Subject::DRIVES.map(|(_, drive)| drive).to_vec();
        for level in LEVELS.into_iter().chain([Level::Jbod]) {
            for members in [1, 2, 9, 24, MEMBERS_MAX] {
                subjects.push(Subject::Array { level, members });
            }
        }
        for subject in subjects {
            let name = subject.to_string();
            assert_eq!(super::subject(&name), Ok(subject));
            // The laboratory has the same names, and the same reason against an impossible array.
            assert_eq!(subject.check().map(|()| subject), name.parse(), "{subject}");
        }
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        let wide = ["raid5x385", "raid5x70000", "raid0x99999999999999999999"];
        let unknown =
            ["", "x", "raid5", "raid5x", "raid5x04", "raid5x-1", "raid7x3", "RAID5x3", "raid5x3 ", "jbod", "x4"];
        for text in wide {
            assert!(matches!(subject(text), Err(SubjectNameError::TooWide(_))), "{text}");
        }
        for text in unknown {
            assert!(matches!(subject(text), Err(SubjectNameError::Unknown(_))), "{text}");
        }
        let long = subject(&"y".repeat(1000)).expect_err("no name").to_string();
        assert!(long.len() < 300 && long.contains("..."));
    }

    #[test]
    fn a_level_is_read_with_and_without_a_width() {
        assert_eq!(level("raid6"), Ok(Level::Raid6));
        assert_eq!(level("raid1exN"), Ok(Level::Raid1e));
        assert!(level("raid").is_err() && level("raid4").is_err() && level("single").is_err());
    }
}
