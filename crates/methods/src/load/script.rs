//! A list of steps in sequence: file copies, applications. Each step goes to the next free worker.

use super::{Source, Step};

/// Steps from an iterator that all workers share.
pub struct Script<I> {
    steps: I,
}

impl<I: Iterator<Item = Step>> Script<I> {
    /// Makes a script.
    pub const fn new(steps: I) -> Self {
        Self { steps }
    }
}

impl<I: Iterator<Item = Step>> Source for Script<I> {
    fn next(&mut self, _worker: u16) -> Step {
        self.steps.next().unwrap_or(Step::End)
    }
}
