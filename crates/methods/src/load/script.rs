//! A list of steps in sequence: file copies, applications. Each step goes to the next free worker.

use super::{LoadSource, LoadStep};

/// Steps from an iterator that all workers share.
pub struct Script<I> {
    steps: I,
}

impl<I: Iterator<Item = LoadStep>> Script<I> {
    /// Makes a script.
    pub const fn new(steps: I) -> Self {
        Self { steps }
    }
}

impl<I: Iterator<Item = LoadStep>> LoadSource for Script<I> {
    fn next(&mut self, _worker: u16) -> LoadStep {
        self.steps.next().unwrap_or(LoadStep::End)
    }
}
