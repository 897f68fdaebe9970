//! Exit codes of commands. This table is the only one: `--help`, the man pages and the answers of the HTTP API are made
//! from it.

use std::process::ExitCode;

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    Fine = 0,
    /// The array that was shown, tried or copied is degraded.
    Degraded = 1,
    /// The array has failed, or does not start.
    Failed = 2,
    /// A check or repair has found mismatches, or left some.
    Mismatches = 3,
    /// The state cannot be found out.
    CannotTell = 4,
    /// A check, repair or other task has ended before it was done.
    Aborted = 5,
    /// A check could compare nothing.
    NotComparable = 6,
    /// Parts of what was copied could not be read.
    Incomplete = 7,
    /// The command line makes no sense.
    Usage = 64,
    /// The order is understood and not carried out.
    Refused = 65,
    /// The operation failed.
    Error = 74,
}

impl Exit {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Fine,
        Self::Degraded,
        Self::Failed,
        Self::Mismatches,
        Self::CannotTell,
        Self::Aborted,
        Self::NotComparable,
        Self::Incomplete,
        Self::Usage,
        Self::Refused,
        Self::Error,
    ];

    /// As a number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The exit with this number. An unknown number comes from a newer server that failed.
    pub fn from_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Error)
    }

    /// Its meaning, as in the help and in docs/commands.md.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Fine => "fine; no mismatches",
            Self::Degraded => "the array is degraded",
            Self::Failed => "the array has failed or does not start; `examine`: a member has no valid superblock",
            Self::Mismatches => "mismatches were found, or are left",
            Self::CannotTell => "the state is unknown: no server answers, or a member cannot be read",
            Self::Aborted => "a check, repair or other task was aborted before it was done",
            Self::NotComparable => "nothing could be compared",
            Self::Incomplete => "parts could not be read, and zeroes were copied in their place",
            Self::Usage => "wrong usage: the command line makes no sense",
            Self::Refused => {
                "refused: the command would do harm, does not fit the state, or names something that does not exist; nothing was changed"
            }
            Self::Error => "the operation failed: an I/O error, no space, no permission of the system",
        }
    }

    /// All of them as lines.
    pub fn table() -> String {
        Self::ALL.map(|exit| format!("  {:>2}  {}", exit.code(), exit.meaning())).join("\n")
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
