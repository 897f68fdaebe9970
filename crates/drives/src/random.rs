//! The only source of chance in models and simulations: xoshiro256** seeded by splitmix64.
//!
//! Every user of chance has a generator of its own, derived from the run's seed and the user's name. So one more draw
//! in one place does not change the others. Generator and seeding as published by Blackman and Vigna ("Scrambled linear
//! pseudorandom number generators", 2018).

/// One step of splitmix64: a good mix of 64 bits into 64 bits.
#[must_use]
#[inline]
pub const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of a run.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut at = seed;
        for word in &mut state {
            *word = mix(at);
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        Self { state }
    }

    /// The generator of one user within a run.
    #[must_use]
    pub fn derived(seed: u64, user: u64) -> Self {
        Self::new(mix(seed) ^ mix(!user))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let result = self.state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.state[1] << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= shifted;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which must not be zero. The bias (below 2^-32 for bounds below 2^32) does not matter
    /// here.
    #[allow(clippy::cast_possible_truncation)] // the high half of a 128-bit product
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// An index into a list of `len` entries.
    #[allow(clippy::cast_possible_truncation)] // below a usize
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of the entries.
    pub fn pick<'a, T>(&mut self, entries: &'a [T]) -> &'a T {
        &entries[self.index(entries.len())]
    }

    /// True with a probability of `part` in `whole`.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// Put the entries into a random order.
    pub fn shuffle<T>(&mut self, entries: &mut [T]) {
        for last in (1..entries.len()).rev() {
            let other = self.index(last + 1);
            entries.swap(last, other);
        }
    }

    /// Fill with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let (words, rest) = out.as_chunks_mut::<8>();
        for word in words {
            *word = self.bits().to_le_bytes();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&self.bits().to_le_bytes()[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_fixed_for_ever() {
        // Known answers of the published C code, seeded with splitmix64 from 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        let mut random = Random::new(0);
        assert_eq!(random.bits(), 0x99ec_5f36_cb75_f2b4);
        assert_eq!(random.bits(), 0xbf6e_1f78_4956_452a);
        assert_eq!(random.bits(), 0x1a5f_849d_4933_e6e0);
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 6];
        for _ in 0..6000 {
            seen[usize::try_from(random.between(10, 15) - 10).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn users_of_one_seed_see_different_sequences() {
        let draw = |seed, user| Random::derived(seed, user).bits();
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(0, 1));
        assert_eq!(draw(5, 9), draw(5, 9));
    }

    #[test]
    fn shuffling_keeps_every_entry() {
        let mut entries: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut entries);
        assert_ne!(entries, (0..100).collect::<Vec<_>>());
        entries.sort_unstable();
        assert_eq!(entries, (0..100).collect::<Vec<_>>());
    }
}
