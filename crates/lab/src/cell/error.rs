//! Why a cell has no result.

use super::axes::AxisError;
use crate::target::TargetError;
use std::fmt;

/// Why a cell has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellError {
    /// An axis has a value that it cannot have.
    Axis(AxisError),
    /// The cell makes no sense on this target: the reason.
    NotApplicable(String),
    /// No such profile.
    Unknown(String),
    /// The array cannot be made: the rule that forbids it.
    Impossible(String),
    /// The target cannot be used.
    Target(TargetError),
    /// The load did not come to an end that can be counted.
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
