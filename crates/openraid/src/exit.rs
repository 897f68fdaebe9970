//! How a command ends: the exit codes, and failures in words.
//!
//! ```text
//!   0  fine
//!   1  the array that was shown, tried or copied is degraded
//!   2  it failed, or the array has failed
//!   4  cannot tell: no server answers, a member cannot be read
//!  64  wrong usage
//! ```

use std::fmt;
use std::process::ExitCode;

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Fine.
    Fine = 0,
    /// The array that was shown, tried or copied is degraded.
    Degraded = 1,
    /// It failed, or the array has failed.
    Failed = 2,
    /// The state cannot be found out.
    CannotTell = 4,
    /// The command line makes no sense.
    Usage = 64,
}

impl Exit {
    /// As a number.
    pub const fn code(self) -> u8 {
        self as u8
    }
    /// The end a number stands for; what is not known is a failure.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Fine,
            1 => Self::Degraded,
            4 => Self::CannotTell,
            64 => Self::Usage,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what it was asked. The text names the thing and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// In words.
    pub text: String,
}

impl Failure {
    /// It did not work.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, text: text.to_string() }
    }
    /// The state cannot be found out.
    pub fn cannot_tell(text: impl fmt::Display) -> Self {
        Self { exit: Exit::CannotTell, text: text.to_string() }
    }
    /// The command line makes no sense.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, text: text.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl std::error::Error for Failure {}

/// What every verb returns.
pub type Outcome = Result<Exit, Failure>;
