//! Overlapping tracks (drive-managed SMR): the extra cost of writes.
//!
//! A band of tracks can only be written as a whole, in order. The drive writes to a band directly if the write starts at
//! the beginning of the band, or at the end of the last direct write. It puts every other write into a cache on the
//! medium. That cache has a limit in bytes and a limit in pieces. At a limit, a write waits until the drive has
//! rewritten bands. To rewrite a band, the drive reads the band and writes it together with its cached data. It rewrites
//! the bands in the order of their places, and continues with the first after the last. It also rewrites bands after
//! some time without commands.
//!
//! With B bands and E pieces in a full cache, writes at random places leave 2 E / B pieces in each band that is
//! rewritten, because a sweep takes the time of two full caches of writes. So after the cliff each write waits for B /
//! (2 E) of the time of a band. Mechanism and figures: Aghayev and Desnoyers, Skylight, FAST 2015.
//!
//! Simplification: a cached piece is written and read in the time for its final place.

use std::collections::BTreeMap;

/// The data in the cache on the medium.
#[derive(Clone, Debug)]
pub(super) struct Shingles {
    /// Sectors of a band.
    band: u64,
    /// Limits of the cache: sectors and pieces.
    room: (u64, u64),
    /// Sectors and pieces in the cache now.
    used: (u64, u64),
    /// Sectors and pieces of each band that has any.
    bands: BTreeMap<u64, (u64, u64)>,
    /// The sector after the last write that was in order.
    next: u64,
    /// The band after the one that was rewritten last.
    sweep: u64,
    /// Time without commands after which the drive rewrites bands.
    pub idle: u64,
}

impl Shingles {
    /// An empty cache with these limits of sectors and pieces.
    pub fn new(band: u64, room: (u64, u64), idle: u64) -> Self {
        Self { band, room, used: (0, 0), bands: BTreeMap::new(), next: 0, sweep: 0, idle }
    }

    pub const fn band_sectors(&self) -> u64 {
        self.band
    }

    /// Take a write. Returns the bands that must be rewritten before it.
    pub fn write(&mut self, lba: u64, len: u64) -> Vec<u64> {
        if lba == self.next || lba.is_multiple_of(self.band) {
            // Cached data of a band that is written as a whole no longer counts.
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
        let cached = self.bands.entry(lba / self.band).or_default();
        *cached = (cached.0 + len, cached.1 + 1);
        self.used = (self.used.0 + len, self.used.1 + 1);
        rewritten
    }

    /// The next band with cached data; the caller rewrites it now.
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

    /// Sectors in the cache.
    pub const fn sectors(&self) -> u64 {
        self.used.0
    }

    /// Whether the cache is empty.
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
        // A cached piece needs no rewriting after its band was written as a whole.
        assert!(shingles.write(5_500, 8).is_empty() && !shingles.is_empty());
        shingles.write(5_000, 1000);
        assert!(shingles.is_empty());
    }
}
