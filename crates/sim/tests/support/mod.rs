//! Common parts of the model tests: the number of seeds, two threads for them, a message about the failed case, and
//! machines with a journal.

#![allow(dead_code)] // each test binary uses a part

pub mod journalled;
pub mod two_arrays;

use std::fmt::Display;
use std::ops::Range;
use std::sync::Mutex;

use openraid_sim::fault::{report, RunTally, Scenario, Verdict};

/// Whether this is the long run.
pub fn soak() -> bool {
    std::env::var_os("OPENRAID_SOAK").is_some()
}

/// The seeds: `slice` of them, or `whole` in the long run. `OPENRAID_SEED` gives the first one.
pub fn seeds(slice: u64, whole: u64) -> Range<u64> {
    let first = std::env::var("OPENRAID_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    first..first + if soak() { whole } else { slice }
}

/// Prints the case if the test panics.
pub struct Case(String);

impl Case {
    /// A case of this seed.
    pub fn new(seed: u64, what: impl Display) -> Self {
        Self(format!("OPENRAID_SEED={seed}: {what}"))
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the case that failed: {}", self.0);
        }
    }
}

/// Process many things, two at a time: the number of processors of the machine that tests changes.
pub fn two_at_a_time<T: Send>(things: impl Iterator<Item = T> + Send, each: impl Fn(T) + Sync) {
    let things = Mutex::new(things);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                // A separate statement, so that the next thread does not wait until this work is done.
                let next = things.lock().expect("the iterator does not panic").next();
                let Some(thing) = next else { break };
                each(thing);
            });
        }
    });
}

/// Run the scenario of each seed; none of them may lose data. Returns the tally.
pub fn unharmed(seeds: Range<u64>, scenario: impl Fn(u64) -> Scenario + Sync) -> RunTally {
    let tally = Mutex::new(RunTally::default());
    let stories = Mutex::new(Vec::new());
    two_at_a_time(seeds, |seed| {
        let scenario = scenario(seed);
        let report = report(&scenario, None);
        if let Verdict::Lost(text) = &report.verdict {
            stories.lock().unwrap().push(format!("{scenario}\n{}\n{text}", report.story.join("\n")));
        }
        tally.lock().unwrap().count(&scenario, &report);
    });
    let stories = stories.into_inner().unwrap();
    assert!(stories.is_empty(), "{} runs lost something; the first:\n{}", stories.len(), stories[0]);
    tally.into_inner().unwrap()
}
