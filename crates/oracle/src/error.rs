//! Errors around a guest.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why an oracle has no answer. That md refused something is an answer and no error.
#[derive(Debug)]
pub enum OracleError {
    /// A program is not installed: its name and the Debian package that holds it.
    Missing {
        /// The command that was looked for.
        program: &'static str,
        /// The Debian package that brings it.
        package: &'static str,
    },
    /// The guest was killed because it had not ended in time.
    Timeout {
        /// How long it was given.
        after: Duration,
        /// The end of the job's output.
        log: String,
    },
    /// The guest ended without running the job to its end.
    NoResult {
        /// The console output of the guest's kernel.
        console: String,
    },
    /// The job ended with an error.
    JobFailed {
        /// Its exit code.
        code: i32,
        /// The end of its output.
        log: String,
    },
    /// A file of the harness could not be used.
    File { path: PathBuf, error: std::io::Error },
    /// The job did not report a result that the caller needs.
    NoValue {
        /// The requested key.
        key: String,
        /// The end of the job's output.
        log: String,
    },
    /// Member images do not have the form that the caller described; the sentence says where.
    Layout(String),
}

impl OracleError {
    /// Is only a package missing? Tests then say so and pass, unless they must not.
    #[must_use]
    pub fn is_missing_package(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

impl fmt::Display for OracleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { program, package } => {
                write!(f, "{program} is not installed; get it with: sudo apt-get install {package}")
            }
            Self::Timeout { after, log } => {
                write!(f, "the guest did not end within {} s and was killed; its job said: {log}", after.as_secs())
            }
            Self::NoResult { console } => write!(f, "the guest ended before its job did; its console: {console}"),
            Self::JobFailed { code, log } => write!(f, "the guest's job ended with {code}: {log}"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NoValue { key, log } => write!(f, "the guest's job did not report '{key}'; it said: {log}"),
            Self::Layout(what) => write!(f, "unexpected content of member images: {what}"),
        }
    }
}

impl std::error::Error for OracleError {}
