//! Division by a number that stays the same, as a multiplication: a disk divides some twenty times for a command.
//!
//! With `inverse = floor((2^64 - 1) / by)` the product's upper half is the quotient or one less, for any number below
//! 2^63: what is lost is below `n * (1 + 1/by) / 2^64 < 1`. The remainder tells which.

/// See the module header.
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

    /// Quotient and remainder of a number below 2^63.
    #[must_use]
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the upper half of a product
    pub const fn divide(self, n: u64) -> (u64, u64) {
        debug_assert!(n < 1 << 63);
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
    use crate::Random;

    #[test]
    fn a_multiplication_divides_exactly() {
        let mut random = Random::new(9);
        let check = |n: u64, by: u64| {
            assert_eq!(Divisor::new(by).divide(n), (n / by, n % by), "{n} / {by}");
        };
        for bits in 0..63 {
            for other in 0..64 {
                for _ in 0..20 {
                    let (n, by) = (random.below(1 << bits), random.below((1_u64 << other).max(1)) + 1);
                    check(n, by);
                    // Around multiples, where one too few shows.
                    let near = (n / by * by).min((1 << 63) - 2);
                    [near.saturating_sub(1), near, near + 1].into_iter().for_each(|n| check(n, by));
                }
            }
        }
        for by in [1, 2, 3, u64::MAX, u64::MAX - 1, 1 << 63] {
            check((1 << 63) - 1, by);
            check(0, by);
        }
    }
}
