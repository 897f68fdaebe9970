//! What the model tests share: how many seeds, two threads for them, a word about the case that failed, and machines
//! with a journal.

#![allow(dead_code)] // each test binary uses a part

pub mod journalled;
pub mod two_arrays;

use std::fmt::Display;
use std::ops::Range;
use std::sync::Mutex;

use openraid_sim::fault::{report, Scenario, Tally, Verdict};

/// Is this the long run?
pub fn soak() -> bool {
    std::env::var_os("OPENRAID_SOAK").is_some()
}

/// `slice` seeds, or `whole` in the long run. `OPENRAID_SEED` names the first one.
pub fn seeds(slice: u64, whole: u64) -> Range<u64> {
    let first = std::env::var("OPENRAID_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    first..first + if soak() { whole } else { slice }
}

/// Says which case it was when the test panics.
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

/// Do this with each of many things, two at a time: as many as the machine that a change is tested on has processors.
pub fn two_at_a_time<T: Send>(things: impl Iterator<Item = T> + Send, each: impl Fn(T) + Sync) {
    let things = Mutex::new(things);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                // A statement of its own: the next one must not wait until this one is done.
                let next = things.lock().expect("the iterator does not panic").next();
                let Some(thing) = next else { break };
                each(thing);
            });
        }
    });
}

/// Run the scenario of each seed: none of them may lose anything. Returns what they met.
pub fn unharmed(seeds: Range<u64>, scenario: impl Fn(u64) -> Scenario + Sync) -> Tally {
    let tally = Mutex::new(Tally::default());
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
