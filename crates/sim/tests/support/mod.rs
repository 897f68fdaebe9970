//! What the model tests share: how many seeds, a word about the case that failed, and a machine's journal.

#![allow(dead_code)] // each test binary uses a part

use openraid_core::admin::JournalState;
use openraid_core::limits::Limits;
use openraid_sim::World;
use openraid_units::{Bytes, DriveId, Nanos};
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

/// Small limits with room for a cache of that size and for the buffers of a journal.
pub fn limits_with_journal(cache: Bytes) -> Limits {
    let (small, journal) = (Limits::small(), Bytes::kib(256));
    Limits { pool: small.pool + cache + journal, cache, journal, ..small }
}

/// Attach these devices as the journal and wait until it takes writes.
pub fn attach_journal(world: &mut World, devices: &[DriveId]) {
    world.attach_journal(devices).unwrap_or_else(|fault| panic!("{fault}"));
    world.run_for(Nanos::from_millis(50));
    assert_eq!(world.journal().map(|own| own.state), Some(JournalState::Live));
}
