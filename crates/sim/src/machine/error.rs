//! Why a machine cannot be made.

use std::fmt;

use openraid_models::ArrayLevel;

use crate::words;

/// Why a machine cannot be made. The text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MachineError {
    /// The controller does not know the level.
    LevelNotOffered {
        /// Which.
        level: ArrayLevel,
        /// The controller that refuses it.
        controller: String,
        /// The levels that it has.
        offered: Vec<ArrayLevel>,
    },
    /// Too few members for the level.
    TooFewMembers {
        /// Which level.
        level: ArrayLevel,
        /// Members asked for.
        have: u16,
        /// Members needed.
        need: u16,
        /// Whose rule it is.
        reason: String,
    },
    /// More members than ports, or than a level takes.
    TooManyMembers {
        /// Members asked for.
        have: u16,
        /// The most that fit.
        most: u16,
        /// Whose rule it is.
        reason: String,
    },
    /// The number of members does not fit the level.
    Members {
        /// Which level.
        level: ArrayLevel,
        /// Members asked for.
        have: u16,
        /// The condition.
        must: &'static str,
    },
    /// More members missing than the level survives, or a rebuild with no member missing.
    Missing {
        /// Which level.
        level: ArrayLevel,
        /// Members missing.
        missing: u16,
        /// Why that cannot be.
        reason: String,
    },
    /// The list of drives does not fit the members.
    Drives {
        /// Drives given.
        have: usize,
        /// Members.
        members: u16,
    },
    /// A write-back cache was requested, but there is none.
    NoCache(String),
    /// A part of the machine has a size that cannot be.
    Part(String),
    /// The engine refuses the array.
    Engine(String),
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LevelNotOffered { level, controller, offered } => {
                let names: Vec<_> = offered.iter().map(ToString::to_string).collect();
                write!(f, "{controller} has no {level}; it has {}", names.join(", "))
            }
            Self::TooFewMembers { level, have, need, reason } => {
                let (have, need) = (drives(*have), drives(*need));
                write!(f, "{level} on {have} is refused: {reason}; give it at least {need}")
            }
            Self::TooManyMembers { have, most, reason } => {
                write!(f, "{} are more than {most}: {reason}; use fewer drives or another controller", drives(*have))
            }
            Self::Members { level, have, must } => write!(f, "{level} cannot be made of {}: {must}", drives(*have)),
            Self::Missing { level, missing, reason } => {
                write!(f, "{level} with {} missing cannot run: {reason}", drives(*missing))
            }
            Self::Drives { have, members } => {
                write!(f, "{have} drive models for {members} members; give one for each member, or one for all")
            }
            Self::NoCache(controller) => {
                write!(f, "{controller} has no cache, so it cannot write back; choose write-through or give it a cache")
            }
            Self::Part(why) | Self::Engine(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for MachineError {}

/// This many drives, in words.
fn drives(count: u16) -> String {
    words::count(count.into(), "drive", "drives")
}
