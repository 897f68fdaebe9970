//! A command that a server runs as a job of its laboratory: it ends with the server, and reports its progress more
//! often.

use std::io::Read;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::failure::Exit;

/// The environment variable of such a job.
pub const MARK: &str = "OPENRAID_JOB";

/// Is this process such a job?
pub fn is_one() -> bool {
    std::env::var_os(MARK).is_some()
}

/// How far such a job is: a line of its standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobProgress {
    /// Number of things that are done.
    pub done: u64,
    /// Number of all things; 0 if this is not known yet.
    pub total: u64,
}

impl JobProgress {
    #[must_use]
    pub fn line(self) -> String {
        serde_json::to_string(&self).expect("two numbers")
    }

    /// The progress in a line; other lines are messages.
    #[must_use]
    pub fn of(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// In such a job: end when the server closes standard input, also by its own end.
pub fn attend() {
    if !is_one() {
        return;
    }
    // Without the thread the job would only outlive the server.
    let _ = thread::Builder::new().name("job".into()).spawn(|| {
        let mut bytes = [0; 64];
        while std::io::stdin().read(&mut bytes).is_ok_and(|count| count > 0) {}
        std::process::exit(i32::from(Exit::Error.code()));
    });
}
