//! A value with its source and its range.

use openraid_units::{Bytes, Nanos};
use std::fmt;

/// The origin of a value, from the most to the least certain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// Measured on the device itself.
    Measured,
    /// The maker's data sheet or manual, or a standard.
    Sheet,
    /// A published review or a magazine.
    Review,
    /// Chosen so that a published measurement of the device comes out; has a range.
    Calibrated,
    /// Computed from other values, fitted to a data sheet, or estimated; has a range.
    Derived,
    /// Remembered, without a source at hand; has a range.
    Memory,
}

impl Confidence {
    /// All origins, with their words in profiles.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("measured", Self::Measured),
        ("sheet", Self::Sheet),
        ("review", Self::Review),
        ("calibrated", Self::Calibrated),
        ("derived", Self::Derived),
        ("memory", Self::Memory),
    ];

    /// Whether a value of this origin must have a range.
    #[must_use]
    pub const fn needs_range(self) -> bool {
        matches!(self, Self::Calibrated | Self::Derived | Self::Memory)
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, confidence)| confidence == self).map_or("", |(word, _)| *word);
        f.write_str(word)
    }
}

/// A value of a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sourced<T> {
    /// The value to be used.
    pub value: T,
    /// The least possible true value.
    pub low: T,
    /// The greatest possible true value.
    pub high: T,
    /// The origin of the value.
    pub confidence: Confidence,
    /// The source, in words.
    pub source: String,
}

impl<T: Copy> Sourced<T> {
    /// An exact value by decision, for tests and for profiles made by programs.
    pub fn exact(value: T) -> Self {
        Self { value, low: value, high: value, confidence: Confidence::Measured, source: String::from("given") }
    }

    /// The same value and range in another type.
    pub fn map<U>(self, to: impl Fn(T) -> U) -> Sourced<U> {
        Sourced {
            value: to(self.value),
            low: to(self.low),
            high: to(self.high),
            confidence: self.confidence,
            source: self.source,
        }
    }
}

/// A data rate in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(pub u64);

impl Rate {
    /// `n` million bytes per second.
    #[must_use]
    pub const fn mbs(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// Time that this amount of data takes, rounded to the nearest nanosecond.
    ///
    /// # Panics
    /// A rate of zero, which no profile has.
    #[must_use]
    pub fn time(self, data: Bytes) -> Nanos {
        let exact = (u128::from(data.0) * 1_000_000_000 + u128::from(self.0) / 2) / u128::from(self.0);
        Nanos(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} MB/s", self.0 / 1_000_000, self.0 / 100_000 % 10)
    }
}
