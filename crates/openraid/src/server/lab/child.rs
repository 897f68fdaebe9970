//! A job is the laboratory's program as a child process, with the lowest priority and limits on output and time. A question
//! that needs no simulation has the server's priority: on a busy machine a user waits for it. When the server ends, for any
//! reason, the child's standard input closes and it ends as well.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::lab_job::{JobProgress, MARK};
use crate::lab_program::{find, ABSENT, PROGRAM};

/// Maximum time of an answer that needs no simulation.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum size of standard output; more is an error.
const OUTPUT_BYTES_MAX: u64 = 32 << 20;
/// Maximum size of the kept end of standard error.
const WORDS_BYTES_MAX: usize = 4096;
/// Maximum length of a line of standard error; the rest is cut off.
const LINE_BYTES_MAX: u64 = 4096;
/// Interval of the checks for the child's end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The data that a child's thread and the server share.
#[derive(Debug, Default)]
pub struct ChildWatch {
    is_cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    words: Mutex<String>,
}

impl ChildWatch {
    /// Cancel the job.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Number of runs that are done, and of all runs, if they are known.
    pub fn progress(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed).min(total), total))
    }

    fn words(&self) -> String {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A line of standard error: progress, or a message.
    fn line(&self, line: &str) {
        if let Some(JobProgress { done, total }) = JobProgress::of(line) {
            self.done.store(done, Ordering::Relaxed);
            self.total.store(total, Ordering::Relaxed);
            return;
        }
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(line.strip_prefix("openraid-lab: ").unwrap_or(line));
        let surplus = words.len().saturating_sub(WORDS_BYTES_MAX);
        let cut = (surplus..=words.len()).find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        words.drain(..cut);
    }
}

/// The answer of the laboratory's program to a question that needs no simulation.
///
/// # Errors
/// The laboratory is not installed; the program refuses the question.
pub fn ask<T: DeserializeOwned>(arguments: &[String]) -> Result<T, Failure> {
    if find().is_none() {
        return Err(Failure::refused(ABSENT));
    }
    let answer = run(arguments, &ChildWatch::default(), ANSWER_TIME_MAX);
    let answer = answer.map_err(Failure::failed)?;
    serde_json::from_slice(&answer)
        .map_err(|error| Failure::failed(format!("{PROGRAM} gave an unknown answer: {error}")))
}

/// Run a job in a thread of its own: it lowers its priority, which the child inherits.
///
/// # Errors
/// Why it has no result, in words.
pub fn run_job(arguments: &[String], watch: &ChildWatch, time_max: Duration) -> Result<Vec<u8>, String> {
    openraid_sys::give_way();
    run(arguments, watch, time_max)
}

/// Run the laboratory's program with these arguments.
fn run(arguments: &[String], watch: &ChildWatch, time_max: Duration) -> Result<Vec<u8>, String> {
    let program = find().ok_or(ABSENT)?;
    let mut command = Command::new(program);
    command.arg0(PROGRAM).args(arguments).env(MARK, "1").env_remove("NOTIFY_SOCKET");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("the job cannot be started: {error}"))?;
    // Open while the child should run.
    let _input = child.stdin.take();
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (status, output) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut bytes = Vec::new();
            if let Some(output) = output {
                let _ = output.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            }
            bytes
        });
        scope.spawn(|| {
            let Some(errors) = errors else { return };
            let mut reader = BufReader::new(errors);
            loop {
                let mut line = Vec::new();
                match reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => watch.line(String::from_utf8_lossy(&line).trim_end()),
                }
            }
        });
        (wait(&mut child, watch, time_max), reader.join().unwrap_or_default())
    });
    match status? {
        0 => Ok(output),
        _ if watch.is_cancelled() => Err("it was cancelled".into()),
        code => {
            let words = watch.words();
            Err(if words.is_empty() { format!("it ended with exit code {code}") } else { words })
        }
    }
}

/// Its exit code; -1 if a signal ended it.
fn wait(child: &mut Child, watch: &ChildWatch, time_max: Duration) -> Result<i32, String> {
    let until = Instant::now() + time_max;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.code().unwrap_or(-1)),
            Ok(None) if !watch.is_cancelled() && Instant::now() < until => thread::sleep(LOOK_INTERVAL),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                return match other {
                    Err(error) => Err(format!("the job cannot be waited for: {error}")),
                    _ if watch.is_cancelled() => Err("it was cancelled".into()),
                    _ => Err(format!("it did not end within {} s and was ended", time_max.as_secs())),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_lines_and_only_the_last_lines_are_kept() {
        let progress = JobProgress { done: 5, total: 20 };
        assert_eq!(JobProgress::of(&progress.line()), Some(progress));
        for other in ["", "5", "cells: 5 of 20", "openraid-lab: out of luck", "{\"done\":1}", "{\"error\":\"no\"}"] {
            assert_eq!(JobProgress::of(other), None, "{other}");
        }
        let watch = ChildWatch::default();
        watch.line(&progress.line());
        watch.line("openraid-lab: no such drive");
        assert_eq!((watch.progress(), watch.words().as_str()), (Some((5, 20)), "no such drive"));
        for _ in 0..5000 {
            watch.line("\u{e9}x");
        }
        let words = watch.words();
        assert!(words.len() <= WORDS_BYTES_MAX && words.ends_with("x"), "{}", words.len());
    }
}
