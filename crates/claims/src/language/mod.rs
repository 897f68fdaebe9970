//! The check language: one boolean expression over metrics, helpers, constants and names of arrays. Its expressions are
//! a part of Python's.
//!
//! ```text
//!   text --> token --> syntax   one expression, within limits of length, depth and loops
//!                        |
//!                      names    every name is known, and every metric has the named axes
//!                        |
//!                      walk     evaluated with limits on steps and calls; functions, helpers, metrics: its calls
//! ```
//!
//! The language must never run a check that it cannot bound. So there are no statements, and no sequence of more than
//! [`value::ITEMS_MAX`] items; to make or compare values takes steps, as an evaluation does.

mod arguments;
mod format;
mod functions;
mod helpers;
mod metrics;
pub mod names;
mod syntax;
mod token;
mod value;
mod walk;

pub use syntax::CHECK_BYTES_MAX;
pub use walk::evaluate;

use crate::metric::NotApplicable;
use std::fmt;

/// A fault of a check itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckError {
    /// Characters of the check that precede the fault; `None` for the check as a whole.
    pub at: Option<usize>,
    /// The fault and its remedy.
    pub text: String,
}

impl CheckError {
    /// The same error, at this place if it has none.
    #[must_use]
    fn or_at(mut self, at: usize) -> Self {
        self.at.get_or_insert(at);
        self
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "character {}: {}", at + 1, self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for CheckError {}

/// An error of the check, without its place.
fn wrong(text: impl Into<String>) -> CheckError {
    CheckError { at: None, text: text.into() }
}

/// The reason for which a check has no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvaluationStop {
    /// The check is wrong.
    Wrong(CheckError),
    /// A metric has no meaning.
    NotApplicable(NotApplicable),
}

impl From<CheckError> for EvaluationStop {
    fn from(error: CheckError) -> Self {
        Self::Wrong(error)
    }
}

/// The value of a part of a check.
type Answer<'e> = Result<value::CheckValue<'e>, EvaluationStop>;
