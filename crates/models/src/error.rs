//! Errors of a profile: the fault, its place, and its remedy.

use std::fmt;

/// Limit of the errors that are kept of one file: the first ones have the cause.
pub(crate) const ERRORS_MAX: usize = 100;

/// An error at one place of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelError {
    /// The file, by the name that the reader was given.
    pub file: String,
    /// Line, from 1; 0 if the error is about the whole file or folder.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The field, with the tables around it: `seek.read_average_ms`.
    pub field: String,
    /// The fault.
    pub reason: String,
    pub remedy: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: ", self.file)?,
            line => write!(f, "{}:{line}:{}: ", self.file, self.column)?,
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

/// All errors of one file; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelErrors(pub Vec<ModelError>);

impl fmt::Display for ModelErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ModelErrors {}
