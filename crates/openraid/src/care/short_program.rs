//! Run a short program: its output and its time are limited, and a hanging program delays nothing.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Output of a program; more is cut off.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
/// How often it is looked whether the program has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The output of a program, and how it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRun {
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its exit status in words.
    pub status: String,
}

/// Run a program.
///
/// # Errors
/// It cannot be started, or did not end in this time. Then it is killed, without waiting for that: a drive may keep it
/// in the kernel.
pub fn run(program: &Path, arguments: &[&str], time_max: Duration) -> Result<ProgramRun, String> {
    let shown = program.display();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{shown} cannot be started: {error}"))?;
    let output = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    let reader = thread::Builder::new().name("program".into()).spawn(move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            // Output up to an error is judged like any other output.
            let _ = output.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    let until = Instant::now() + time_max;
    let read = reader.map_err(|error| format!("{shown}: no thread: {error}")).and_then(|_| {
        let late = |_| format!("{shown} did not end within {} s and was killed", time_max.as_secs());
        receiver.recv_timeout(time_max).map_err(late)
    });
    let status = read.as_ref().ok().and_then(|_| wait(&mut child, until));
    if let (Ok(output), Some(status)) = (&read, status) {
        return Ok(ProgramRun { output: output.clone(), status });
    }
    let _ = child.kill();
    // Its end is collected by a thread: it may take as long as the drive does.
    let _ = thread::Builder::new().name("program".into()).spawn(move || child.wait());
    Err(read.err().unwrap_or_else(|| format!("{shown} did not end within {} s and was killed", time_max.as_secs())))
}

fn wait(child: &mut Child, until: Instant) -> Option<String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.to_string()),
            Ok(None) if Instant::now() < until => thread::sleep(LOOK_INTERVAL),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_back_and_what_hangs_or_is_missing_is_named() {
        let ran = run(Path::new("/bin/sh"), &["-c", "echo yes; exit 3"], Duration::from_secs(60)).expect("it runs");
        assert_eq!((ran.output.as_slice(), ran.status.as_str()), (&b"yes\n"[..], "exit status: 3"));
        let why = run(Path::new("/bin/sh"), &["-c", "sleep 600"], Duration::from_millis(50)).unwrap_err();
        assert!(why.contains("did not end within"), "{why}");
        // It closes its output, and hangs then.
        let why = run(Path::new("/bin/sh"), &["-c", "exec >&-; sleep 600"], Duration::from_millis(50)).unwrap_err();
        assert!(why.contains("did not end within"), "{why}");
        let why = run(Path::new("/nowhere/smartctl"), &[], Duration::from_secs(1)).unwrap_err();
        assert!(why.starts_with("/nowhere/smartctl cannot be started: "), "{why}");
    }
}
