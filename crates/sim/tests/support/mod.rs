//! What the model tests share: how many seeds, and a word about the case that failed.

#![allow(dead_code)] // each test binary uses a part

use std::fmt::Display;
use std::ops::Range;

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
