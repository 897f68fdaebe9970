//! The reasons why a cell has no result.

use super::axes::AxisError;
use crate::target::TargetError;
use std::fmt;

/// The reason why a cell has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellError {
    /// An axis has an invalid value.
    Axis(AxisError),
    /// The cell does not apply to this target, with the reason.
    NotApplicable(String),
    /// No profile has this name.
    Unknown(String),
    /// The array cannot be created, with the rule that forbids it.
    Impossible(String),
    /// The target cannot be used.
    Target(TargetError),
    /// The load did not end in a way that can be counted.
    Failed(String),
}

impl fmt::Display for CellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axis(error) => write!(f, "{error}"),
            Self::NotApplicable(reason) => write!(f, "not applicable: {reason}"),
            Self::Unknown(reason) | Self::Impossible(reason) | Self::Failed(reason) => f.write_str(reason),
            Self::Target(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for CellError {}

impl From<AxisError> for CellError {
    fn from(error: AxisError) -> Self {
        Self::Axis(error)
    }
}

impl From<TargetError> for CellError {
    fn from(error: TargetError) -> Self {
        Self::Target(error)
    }
}
