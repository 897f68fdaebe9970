//! A list of steps, done by one worker after the other: file copies, applications.

use super::{Source, Step};

/// Steps that come from an iterator; all workers draw from the same one.
pub struct Script<I> {
    steps: I,
}

impl<I: Iterator<Item = Step>> Script<I> {
    /// A script.
    pub const fn new(steps: I) -> Self {
        Self { steps }
    }
}

impl<I: Iterator<Item = Step>> Source for Script<I> {
    fn next(&mut self, _worker: u16) -> Step {
        self.steps.next().unwrap_or(Step::End)
    }
}
