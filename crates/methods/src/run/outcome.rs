//! The stored outcome of a cell: a result, or the reason why there is none.

use crate::cell::{CellError, CellResult};
use serde::{Deserialize, Serialize};

/// The reason why a cell has no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Absence {
    /// Does the cell not apply, or is its array impossible? Otherwise the run failed.
    pub not_applicable: bool,
    /// The reason as text.
    pub reason: String,
}

/// The outcome of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measurement {
    /// The cell has this result.
    Measured(Box<CellResult>),
    /// The cell has no result, for this reason.
    Absent(Absence),
}

impl Measurement {
    /// The result, if there is one.
    #[must_use]
    pub fn result(&self) -> Option<&CellResult> {
        match self {
            Self::Measured(result) => Some(result),
            Self::Absent(_) => None,
        }
    }

    /// The absence, if there is no result.
    #[must_use]
    pub fn absence(&self) -> Option<&Absence> {
        match self {
            Self::Measured(_) => None,
            Self::Absent(absence) => Some(absence),
        }
    }
}

impl From<Result<CellResult, CellError>> for Measurement {
    fn from(result: Result<CellResult, CellError>) -> Self {
        match result {
            Ok(result) => Self::Measured(Box::new(result)),
            Err(CellError::NotApplicable(reason) | CellError::Impossible(reason)) => {
                Self::Absent(Absence { not_applicable: true, reason })
            }
            Err(error) => Self::Absent(Absence { not_applicable: false, reason: error.to_string() }),
        }
    }
}
