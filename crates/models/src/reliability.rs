//! The failure rate of a drive, and its rate of unreadable sectors: the manufacturer's figures, or estimates.
//!
//! No timing model reads these values. They give the probability of data loss while redundancy is missing.

use crate::reader::ProfileSection;
use crate::sourced::Sourced;
use crate::unit::Dimension;

/// Greatest share of drives that fail in a year, in parts in a million.
const AFR_MAX: u64 = 999_999;
/// Greatest number of read errors in 10^18 bits: a drive with one in 10^9 is broken.
const ERRORS_MAX: u64 = 1_000_000_000;
/// Number of bits in which read errors are counted.
const EXABIT: f64 = 1e18;

/// Reliability of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReliabilityProfile {
    /// Drives that fail in a year of continuous work, in parts in a million. If a data sheet has a mean time between
    /// failures, the share is `1 - exp(-8760 h / MTBF)`. The high end of its range is from large numbers of such drives
    /// in service.
    pub afr: Sourced<u64>,
    /// Unreadable sectors in 10^18 read bits: "one in 10^15" in a data sheet is 1000.
    pub read_errors: Sourced<u64>,
}

impl ReliabilityProfile {
    pub(crate) fn read(section: &ProfileSection<'_>) -> Self {
        let profile = Self {
            afr: section.quantity("afr", Dimension::Share, 1, AFR_MAX),
            read_errors: section.quantity("read_errors_per_exabit", Dimension::Count, 1, ERRORS_MAX),
        };
        section.finish();
        profile
    }

    /// Share of drives that fail in a year.
    #[must_use]
    pub fn afr(&self) -> f64 {
        self.afr.value as f64 / 1e6
    }

    /// Unreadable sectors for each read bit.
    #[must_use]
    pub fn errors_per_bit(&self) -> f64 {
        self.read_errors.value as f64 / EXABIT
    }
}
