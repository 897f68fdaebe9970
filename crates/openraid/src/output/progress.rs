//! Progress on a terminal: a bar with rate and time left. If standard error is not a terminal, counted work and long
//! copies get a line after a second and then every ten seconds; other copies get none.

use std::io::Write as _;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use openraid_units::Bytes;

use crate::lab_job::JobProgress;
use crate::quantity::{eta_seconds, human, human_rate, human_seconds};

/// Time until the first line if there is no bar: shorter work has no line.
const FIRST_LINE: Duration = Duration::from_secs(1);
/// Time between two lines.
const NEXT_LINE: Duration = Duration::from_secs(10);
/// Both times, if a server reads the lines.
const JOB_LINE: Duration = Duration::from_millis(500);

const BYTES: &str = "{prefix} [{bar:30}] {percent:>3} % {bytes} of {total_bytes}  {msg}";
const THINGS: &str = "{prefix} [{bar:30}] {pos} of {len}  {msg}";

/// A bar for bytes, or for counted work.
#[derive(Debug)]
pub struct WorkProgress {
    bar: ProgressBar,
    /// Writes lines if there is no bar, until its end of the channel is dropped.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

impl WorkProgress {
    /// A bar for this many bytes, with a word in front.
    pub fn new(what: &str, total_bytes: u64) -> Self {
        Self::with(what, total_bytes, BYTES)
    }

    /// The same with lines if there is no bar.
    pub fn of_bytes_in_lines(what: &str, total_bytes: u64) -> Self {
        Self::with(what, total_bytes, BYTES).in_lines(|bytes| human(Bytes(bytes)))
    }

    /// A bar that counts up to `total`, with a word in front.
    pub fn counting(what: &str, total: u64) -> Self {
        Self::with(what, total, THINGS).in_lines(|count| count.to_string())
    }

    /// Print lines if there is no bar, also without progress.
    fn in_lines(mut self, amount: fn(u64) -> String) -> Self {
        if !self.bar.is_hidden() {
            return self;
        }
        let (end, ended) = channel();
        let bar = self.bar.clone();
        let tell = move || {
            let is_job = crate::lab_job::is_one();
            let (mut wait, next) = if is_job { (JOB_LINE, JOB_LINE) } else { (FIRST_LINE, NEXT_LINE) };
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let progress = JobProgress { done: bar.position(), total: bar.length().unwrap_or(0) };
                let text = if is_job { progress.line() } else { line(&bar, amount) };
                let _ = writeln!(std::io::stderr(), "{text}");
                wait = next;
            }
        };
        // Without a thread there are no lines; nothing depends on them.
        let thread = Builder::new().name("progress".into()).spawn(tell).ok();
        self.lines = thread.map(|thread| (end, thread));
        self
    }

    fn with(what: &str, total: u64, template: &str) -> Self {
        let target = if super::is_error_terminal() {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|error| panic!("bug: no template: {error}"));
        let bar = ProgressBar::with_draw_target(Some(total), target);
        // Set before the word, which draws the bar.
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        Self { bar, lines: None }
    }

    /// The number of things to do is now known to be `total`.
    pub fn expect(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// `done` things are done. The remaining time is estimated from the average pace so far.
    pub fn counted(&self, done: u64) {
        self.counted_of_which_idle(done, 0);
    }

    /// The same, if `idle` of the things took no time and say nothing about the pace.
    pub fn counted_of_which_idle(&self, done: u64, idle: u64) {
        let total = self.bar.length().unwrap_or(0);
        let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left = left_millis(millis, total, done, idle);
        let words = left.map_or_else(String::new, |left| format!("{} left", human_seconds(left.div_ceil(1000))));
        self.bar.set_message(words);
        self.bar.set_position(done);
    }

    /// As [`WorkProgress::counted`], with other words before the time left.
    pub fn counted_saying(&self, done: u64, words: &str) {
        self.counted(done);
        let left = self.bar.message();
        let comma = if left.is_empty() { "" } else { ", " };
        self.bar.set_message(format!("{words}{comma}{left}"));
    }

    /// Do something that writes to standard error; the bar makes room for it.
    pub fn above(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// `done` bytes are done. The rate is the average since the start.
    pub fn at(&self, done: u64) {
        let total = self.bar.length().unwrap_or(0);
        let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = u64::try_from(u128::from(done) * 1000 / u128::from(millis)).unwrap_or(u64::MAX);
        self.show(done, rate, eta_seconds(done, total, rate));
    }

    /// `done` bytes are done, at this rate.
    pub fn show(&self, done: u64, rate: u64, eta: Option<u64>) {
        let left = eta.map_or_else(String::new, |seconds| format!(", {} left", human_seconds(seconds)));
        let rate = if rate > 0 { human_rate(rate) } else { String::new() };
        self.bar.set_message(format!("{rate}{left}"));
        self.bar.set_position(done);
    }

    /// Say something above the bar.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    /// The end: the bar goes away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for WorkProgress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.lines.take() {
            drop(end);
            // It writes nothing more, so that the answer comes after its last line.
            let _ = thread.join();
        }
        self.end();
    }
}

/// How far a hidden bar is.
fn line(bar: &ProgressBar, amount: fn(u64) -> String) -> String {
    let (total, words) = (bar.length().unwrap_or(0), bar.message());
    let words = if words.is_empty() { format!("{} so far", human_seconds(bar.elapsed().as_secs())) } else { words };
    let of = if total > 0 { format!("{} of {}, ", amount(bar.position()), amount(total)) } else { String::new() };
    format!("{}: {of}{}", bar.prefix(), words.trim_start_matches(", "))
}

/// Milliseconds until all things are done, at the pace of the things that took time so far; `None` if no thing took
/// time.
fn left_millis(elapsed: u64, total: u64, done: u64, idle: u64) -> Option<u64> {
    elapsed.checked_mul(total.saturating_sub(done))?.checked_div(done.saturating_sub(idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_progress_before_the_first_run_has_ended() {
        let progress = WorkProgress::counting("cells", 12);
        let count = |count: u64| count.to_string();
        assert_eq!(line(&progress.bar, count), "cells: 0 of 12, 0 s so far");
        progress.counted(3);
        progress.say("20 s left");
        assert_eq!(line(&progress.bar, count), "cells: 3 of 12, 20 s left");
        let unknown = WorkProgress::counting("runs", 0);
        assert_eq!(line(&unknown.bar, count), "runs: 0 s so far");
    }

    #[test]
    fn kept_cells_do_not_count_for_the_time_left() {
        assert_eq!(left_millis(10_000, 30, 10, 0), Some(20_000));
        // Taken up again: eight were there, two have taken five seconds each.
        assert_eq!(left_millis(10_000, 30, 10, 8), Some(100_000));
        assert_eq!(left_millis(10_000, 10, 10, 8), Some(0));
        for (done, idle) in [(0, 0), (8, 8), (8, 9)] {
            assert_eq!(left_millis(10_000, 30, done, idle), None, "{done} {idle}");
        }
        assert_eq!(left_millis(u64::MAX, 30, 10, 0), None);
    }
}
