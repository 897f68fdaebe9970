//! Division by a small number that stays the same, by multiplying: a processor divides ten times as long, and an
//! operation on a row asks several times which stripe of its period it is on.
//!
//! With `f = (2^64 - 1) / d`, rounded down, `(n + 1) * f / 2^64` rounded down is `n / d` wherever `(n + 1) * d <= 2^64`:
//! `(n + 1) / d` lies above `n / d` rounded down by `1 / d` at least, and `(n + 1) * f / 2^64` lies below it by
//! `(n + 1) / 2^64` at most, and by something.

/// A number to divide by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divisor {
    number: u64,
    factor: u64,
}

/// The largest [`Divisor`].
const NUMBER_MAX: u64 = 255;
/// What is divided is smaller than this.
const DIVIDEND_END: u64 = 1 << 56;
const _: () = assert!(DIVIDEND_END <= u64::MAX / NUMBER_MAX);

impl Divisor {
    /// Of 1 to [`NUMBER_MAX`].
    pub(crate) fn new(number: u64) -> Self {
        assert!((1..=NUMBER_MAX).contains(&number), "{number} is not a number of members");
        Self { number, factor: u64::MAX / number }
    }

    /// Quotient and remainder of a number below [`DIVIDEND_END`].
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the high half
    pub(crate) fn divide(self, dividend: u64) -> (u64, u64) {
        assert!(dividend < DIVIDEND_END, "{dividend} is no number of a chunk");
        let quotient = ((u128::from(dividend + 1) * u128::from(self.factor)) >> 64) as u64;
        (quotient, dividend - quotient * self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplying_divides_to_the_last_number() {
        for number in 1..=NUMBER_MAX {
            let divisor = Divisor::new(number);
            let around = (0..56).map(|bits| 1 << bits).chain([DIVIDEND_END - 1, DIVIDEND_END - NUMBER_MAX]);
            for near in around.flat_map(|at: u64| [at, at - at % number, at + at % 1009]) {
                for dividend in near.saturating_sub(2)..=near + 2 {
                    let dividend = dividend.min(DIVIDEND_END - 1);
                    assert_eq!(divisor.divide(dividend), (dividend / number, dividend % number), "by {number}");
                }
            }
        }
    }
}
