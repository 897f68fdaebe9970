//! Time, in whole nanoseconds. There is no clock here: the driver of the core gives the time.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};

/// A point in time: nanoseconds since the driver's own zero. Monotone within one run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Instant(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Nanos(pub u64);

impl Instant {
    /// The driver's zero.
    pub const ZERO: Self = Self(0);
    /// Later than every real point in time.
    pub const NEVER: Self = Self(u64::MAX);

    /// Time since `earlier`; nothing if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// `n` microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// `n` milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }
    /// The plain number of nanoseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Whole seconds, the rest dropped.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    fn add(self, by: Nanos) -> Self {
        Self(self.0.saturating_add(by.0))
    }
}
impl Sub for Instant {
    type Output = Nanos;
    fn sub(self, earlier: Self) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}
impl Add for Nanos {
    type Output = Self;
    fn add(self, by: Self) -> Self {
        Self(self.0 + by.0)
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, by: Self) {
        self.0 += by.0;
    }
}
impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, by: u64) -> Self {
        Self(self.0 * by)
    }
}
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{}.{:03} s", n / 1_000_000_000, n % 1_000_000_000 / 1_000_000),
            n if n >= 1_000_000 => write!(f, "{}.{:03} ms", n / 1_000_000, n % 1_000_000 / 1_000),
            n if n >= 1_000 => write!(f, "{}.{:03} us", n / 1_000, n % 1_000),
            n => write!(f, "{n} ns"),
        }
    }
}
