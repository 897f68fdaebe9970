//! The reasons for which a machine cannot be made.

use std::fmt;

use openraid_models::ArrayLevel;

use crate::number_words;

/// The reason for which a machine cannot be made. The text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MachineError {
    /// The controller does not offer the level.
    LevelNotOffered {
        level: ArrayLevel,
        /// The controller that refuses it.
        controller: String,
        /// The levels that the controller offers.
        offered: Vec<ArrayLevel>,
    },
    /// Too few members for the level.
    TooFewMembers {
        level: ArrayLevel,
        /// Requested members.
        have: u16,
        /// Least number of members.
        need: u16,
        /// The reason of the rule: the level or the controller.
        reason: String,
    },
    /// More members than ports, or than the level allows.
    TooManyMembers {
        /// Requested members.
        have: u16,
        /// Greatest number of members.
        most: u16,
        /// The reason of the rule: the level or the controller.
        reason: String,
    },
    /// The number of members does not fit the level.
    Members {
        level: ArrayLevel,
        /// Requested members.
        have: u16,
        /// The condition.
        must: &'static str,
    },
    /// More missing members than the level survives, or a rebuild without a missing member.
    Missing {
        level: ArrayLevel,
        /// Missing members.
        missing: u16,
        /// The reason of the rule.
        reason: String,
    },
    /// The list of drives does not fit the members.
    Drives {
        /// Drives in the list.
        have: usize,
        members: u16,
    },
    /// A write-back cache was requested, but the controller has none.
    NoCache(String),
    /// A part of the machine has an impossible size.
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

/// The number of drives in words.
fn drives(count: u16) -> String {
    number_words::count(count.into(), "drive", "drives")
}
