//! The present users of the frame pool's bytes. With this record the simulation checks the engine's promises.
//!
//! Every action in flight claims the bytes that it reads and writes. Bytes that one action writes may have no other
//! user, and the zero region is never written. A violation is a bug of the engine, and causes a panic.

use std::ops::Range;

use openraid_core::limits::ZERO_REGION_BYTES;
use openraid_units::PoolOffset;

/// Identifies an action in flight.
pub type Ticket = u64;

#[derive(Clone, Copy, Debug)]
struct Claim {
    by: Ticket,
    start: u64,
    end: u64,
    writes: bool,
}

/// The claims of all actions in flight.
#[derive(Debug)]
pub struct BytesInFlight {
    claims: Vec<Claim>,
    pool_bytes: u64,
}

impl BytesInFlight {
    /// A pool of this size without claims.
    #[must_use]
    pub fn new(pool_bytes: u64) -> Self {
        Self { claims: Vec::new(), pool_bytes }
    }

    /// The action reads these bytes.
    pub fn read(&mut self, by: Ticket, at: PoolOffset, len: u64) {
        self.add(Claim { by, start: at.get(), end: at.get() + len, writes: false });
    }
    /// The action writes these bytes.
    pub fn write(&mut self, by: Ticket, at: PoolOffset, len: u64) {
        assert!(at.get() >= ZERO_REGION_BYTES, "action {by} writes to the zero region");
        self.add(Claim { by, start: at.get(), end: at.get() + len, writes: true });
    }

    fn add(&mut self, new: Claim) {
        assert!(new.end <= self.pool_bytes, "{new:?} points beyond the frame pool");
        for old in &self.claims {
            let apart = old.end <= new.start || new.end <= old.start;
            // Within one action, a source may also be the destination.
            let allowed = apart || old.by == new.by || !(old.writes || new.writes);
            assert!(allowed, "two actions use the same frames, and one of them writes: {old:?} and {new:?}");
        }
        self.claims.push(new);
    }

    /// The action has ended: remove its claims.
    pub fn drop_all(&mut self, by: Ticket) {
        self.claims.retain(|claim| claim.by != by);
    }

    /// The ranges that the action reads.
    pub fn read_by(&self, by: Ticket) -> impl Iterator<Item = Range<u64>> + '_ {
        self.claims.iter().filter(move |claim| claim.by == by && !claim.writes).map(|claim| claim.start..claim.end)
    }

    /// Whether there are no claims.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// Remove all claims after a power cut.
    pub fn clear(&mut self) {
        self.claims.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ticket = 1;
    const B: Ticket = 2;
    const AT: PoolOffset = PoolOffset(ZERO_REGION_BYTES);

    #[test]
    fn many_may_read_the_same_bytes() {
        let mut claims = BytesInFlight::new(1 << 20);
        claims.read(A, AT, 512);
        claims.read(B, AT, 4096);
        claims.drop_all(A);
        claims.drop_all(B);
        assert!(claims.is_empty());
    }

    #[test]
    #[should_panic(expected = "one of them writes")]
    fn written_bytes_have_no_other_user() {
        let mut claims = BytesInFlight::new(1 << 20);
        claims.read(A, AT, 4096);
        claims.write(B, PoolOffset(ZERO_REGION_BYTES + 4095), 1);
    }

    #[test]
    #[should_panic(expected = "zero region")]
    fn the_source_of_zeroes_is_never_written() {
        BytesInFlight::new(1 << 20).write(A, PoolOffset(ZERO_REGION_BYTES - 1), 1);
    }
}
