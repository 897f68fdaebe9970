//! A command that a server runs as a job of its laboratory: it ends with the server, and reports its progress more
//! often.

use std::io::Read;
use std::thread;

use crate::exit::Exit;

/// The environment variable of such a job.
pub const MARK: &str = "OPENRAID_JOB";

/// Is this process such a job?
pub fn is_one() -> bool {
    std::env::var_os(MARK).is_some()
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
