//! Progress on a terminal: a bar with rate and time left. If standard error is no terminal, counted things get a line
//! now and then, and bytes get none.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::quantity::{eta_seconds, human_rate, human_seconds};

/// Time between two lines if there is no bar.
const LINE_MILLIS: u64 = 30_000;
/// The same, if a server reads them.
const JOB_LINE_MILLIS: u64 = 500;

const BYTES: &str = "{prefix} [{bar:30}] {percent:>3} % {bytes} of {total_bytes}  {msg}";
const THINGS: &str = "{prefix} [{bar:30}] {pos} of {len}  {msg}";

/// A bar over bytes, or things.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// When the last line was written, from the begin.
    told_millis: AtomicU64,
    line_millis: u64,
}

impl Progress {
    /// A bar for this many bytes, with a word in front.
    pub fn new(what: &str, total_bytes: u64) -> Self {
        Self::with(what, total_bytes, BYTES)
    }

    /// A bar for so many things, with a word in front.
    pub fn counting(what: &str, total: u64) -> Self {
        Self::with(what, total, THINGS)
    }

    fn with(what: &str, total: u64, template: &str) -> Self {
        let target = if super::is_error_terminal() {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|error| panic!("bug: no template: {error}"));
        let bar = ProgressBar::with_draw_target(Some(total), target);
        // Before the word, which draws it.
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        let line_millis = if crate::job::is_one() { JOB_LINE_MILLIS } else { LINE_MILLIS };
        Self { bar, told_millis: AtomicU64::new(0), line_millis }
    }

    /// There are other than so many things to do, as has turned out.
    pub fn expect(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// So many things are done; the time left is told at the average pace so far.
    pub fn counted(&self, done: u64) {
        self.counted_of_which_idle(done, 0);
    }

    /// The same, where so many of them took no time and say nothing about the pace.
    pub fn counted_of_which_idle(&self, done: u64, idle: u64) {
        let total = self.bar.length().unwrap_or(0);
        let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left = left_millis(millis, total, done, idle);
        let words = left.map_or_else(String::new, |left| format!("{} left", human_seconds(left.div_ceil(1000))));
        if self.bar.is_hidden() && millis >= self.told_millis.load(Ordering::Relaxed) + self.line_millis {
            self.told_millis.store(millis, Ordering::Relaxed);
            let comma = if words.is_empty() { "" } else { ", " };
            eprintln!("{}: {done} of {total}{comma}{words}", self.bar.prefix());
        }
        self.bar.set_message(words);
        self.bar.set_position(done);
    }

    /// As [`Progress::counted`], with other words before the time left.
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

    /// So many bytes are done; the rate is the average since the start.
    pub fn at(&self, done: u64) {
        let total = self.bar.length().unwrap_or(0);
        let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = u64::try_from(u128::from(done) * 1000 / u128::from(millis)).unwrap_or(u64::MAX);
        self.show(done, rate, eta_seconds(done, total, rate));
    }

    /// So many bytes are done, at this rate.
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
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
    fn what_took_no_time_says_nothing_about_the_time_left() {
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
