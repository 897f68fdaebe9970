//! Overlapping tracks (drive-managed SMR): the cost of a write beyond its own time.
//!
//! A band of tracks can only be written as a whole, in order. A write that begins a band, or continues where the last
//! such write ended, goes to its band. Every other one goes into a cache on the medium. When the cache is full, by
//! bytes or by pieces, the write waits until bands have been rewritten: read, and written with what the cache holds for
//! them. Bands are taken in the order of their places, round and round. With nothing to do for some time the drive
//! rewrites bands, too.
//!
//! With B bands and E pieces in a full cache, writes at random places find 2 E / B pieces in each band that is
//! rewritten (a sweep takes two cachefuls of writes), so after the cliff each waits for B / (2 E) of the time of a
//! band. Mechanism and figures: Aghayev and Desnoyers, Skylight, FAST 2015.
//!
//! Simplified: a piece in the cache is written and read in the time that its own place takes.

use std::collections::BTreeMap;

/// What of a disk's writes is in the cache on the medium.
#[derive(Clone, Debug)]
pub(super) struct Shingles {
    /// Sectors of a band.
    band: u64,
    /// Sectors, and pieces, that the cache holds.
    room: (u64, u64),
    /// That it holds now.
    used: (u64, u64),
    /// The same for each band that has any.
    bands: BTreeMap<u64, (u64, u64)>,
    /// Where a write continues that is in order.
    next: u64,
    /// The band after the one that was rewritten last.
    sweep: u64,
    /// Without commands for this long it rewrites bands.
    pub idle: u64,
}

impl Shingles {
    /// An empty cache of this many sectors and pieces.
    pub fn new(band: u64, room: (u64, u64), idle: u64) -> Self {
        Self { band, room, used: (0, 0), bands: BTreeMap::new(), next: 0, sweep: 0, idle }
    }

    /// Sectors of a band.
    pub const fn band_sectors(&self) -> u64 {
        self.band
    }

    /// Take a write; the bands that are rewritten before it.
    pub fn write(&mut self, lba: u64, len: u64) -> Vec<u64> {
        if lba == self.next || lba.is_multiple_of(self.band) {
            // What the cache holds for a band that is written as a whole counts no more.
            let (first, end) = (lba.div_ceil(self.band), (lba + len) / self.band);
            (first..end).for_each(|band| self.forget(band));
            self.next = lba + len;
            return Vec::new();
        }
        let mut rewritten = Vec::new();
        while self.used.0 + len > self.room.0 || self.used.1 + 1 > self.room.1 {
            let Some(band) = self.take() else { break };
            rewritten.push(band);
        }
        let own = self.bands.entry(lba / self.band).or_default();
        *own = (own.0 + len, own.1 + 1);
        self.used = (self.used.0 + len, self.used.1 + 1);
        rewritten
    }

    /// The next band that has something in the cache; it is rewritten now.
    pub fn take(&mut self) -> Option<u64> {
        let behind = self.bands.range(self.sweep..).next().or_else(|| self.bands.iter().next());
        let band = *behind?.0;
        self.forget(band);
        self.sweep = band + 1;
        Some(band)
    }

    fn forget(&mut self, band: u64) {
        if let Some((sectors, pieces)) = self.bands.remove(&band) {
            self.used = (self.used.0 - sectors, self.used.1 - pieces);
        }
    }

    /// Does it hold nothing?
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn each_rewritten_band_has_twice_the_mean_of_pieces() {
        // 2 E / B pieces for each band: E = 3000 pieces, B = 1000 bands.
        let mut shingles = Shingles::new(1000, (u64::MAX / 2, 3000), 0);
        let mut random = Random::new(7);
        let mut writes = |count: u64, shingles: &mut Shingles| -> u64 {
            let place = |random: &mut Random| 1 + random.below(1000) * 1000 + 8 * random.below(100);
            (0..count).map(|_| shingles.write(place(&mut random), 8).len() as u64).sum()
        };
        assert_eq!(writes(3000, &mut shingles), 0, "no band is rewritten before the cache is full");
        writes(30_000, &mut shingles);
        let rewritten = writes(60_000, &mut shingles);
        let pieces = 60_000.0 / rewritten as f64;
        assert!((pieces / 6.0 - 1.0).abs() < 0.05, "{pieces} pieces a band");
    }

    #[test]
    fn writes_in_order_need_no_cache() {
        let mut shingles = Shingles::new(1000, (100, 10), 0);
        for start in (0..100_000).step_by(64) {
            assert!(shingles.write(start, 64).is_empty());
        }
        assert!(shingles.is_empty());
        // A piece of a band that is then written as a whole needs no rewriting.
        assert!(shingles.write(5_500, 8).is_empty() && !shingles.is_empty());
        shingles.write(5_000, 1000);
        assert!(shingles.is_empty());
    }
}
