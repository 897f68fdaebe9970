//! Division by a constant number, by multiplication, which is ten times as fast as a processor's division. An operation
//! on a row asks several times for its stripe's place in the period, and a modelled disk divides some twenty times for
//! a command.
//!
//! With `inverse = floor((2^64 - 1) / by)` the upper half of `n * inverse` is the quotient, or one less, for every `n`:
//! `2^64 - by * inverse` is at most `by`, so at most `n / 2^64` is lost, which is below 1. The remainder shows which of
//! the two it is.

/// A number to divide by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divisor {
    by: u64,
    inverse: u64,
}

impl Divisor {
    /// Division by this.
    ///
    /// # Panics
    /// Division by zero.
    #[must_use]
    pub const fn new(by: u64) -> Self {
        assert!(by > 0, "nothing is divided by zero");
        Self { by, inverse: u64::MAX / by }
    }

    /// The number.
    #[must_use]
    pub const fn by(self) -> u64 {
        self.by
    }

    /// Quotient and remainder.
    #[must_use]
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the upper half of a product
    pub const fn divide(self, n: u64) -> (u64, u64) {
        let quotient = ((n as u128 * self.inverse as u128) >> 64) as u64;
        let rest = n.wrapping_sub(quotient.wrapping_mul(self.by));
        if rest >= self.by {
            (quotient.wrapping_add(1), rest.wrapping_sub(self.by))
        } else {
            (quotient, rest)
        }
    }

    /// The quotient alone.
    #[must_use]
    #[inline(always)]
    pub const fn quotient(self, n: u64) -> u64 {
        self.divide(n).0
    }

    /// The remainder alone.
    #[must_use]
    #[inline(always)]
    pub const fn remainder(self, n: u64) -> u64 {
        self.divide(n).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n: u64, by: u64) {
        assert_eq!(Divisor::new(by).divide(n), (n / by, n % by), "{n} / {by}");
    }

    #[test]
    fn small_numbers_divide_exactly() {
        for by in 1..=255 {
            let around = (0..64).map(|bits| 1 << bits).chain([u64::MAX, u64::MAX - by]);
            for near in around.flat_map(|at: u64| [at, at - at % by, at.saturating_add(at % 1009)]) {
                (near.saturating_sub(2)..=near.saturating_add(2)).for_each(|n| check(n, by));
            }
        }
    }

    #[test]
    fn numbers_of_every_length_divide_exactly() {
        let mut state = 9_u64;
        // A random number with at most `bits` bits.
        let mut draw = |bits: u32| {
            // Numerical Recipes' constants; the upper bits are the better ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.rotate_left(32).checked_shr(64 - bits).unwrap_or(0)
        };
        for (bits, other) in (0..=64).flat_map(|bits| (0..=64).map(move |other| (bits, other))) {
            for _ in 0..20 {
                let (n, by) = (draw(bits), draw(other).max(1));
                check(n, by);
                // Around multiples, where an error of one shows.
                let near = n / by * by;
                [near.saturating_sub(1), near, near.saturating_add(1)].into_iter().for_each(|n| check(n, by));
            }
        }
        for by in [1, 2, 3, u64::MAX, u64::MAX - 1, 1 << 63] {
            [0, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX].into_iter().for_each(|n| check(n, by));
        }
    }
}
