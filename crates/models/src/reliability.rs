//! The failure rate of a drive, and its rate of unreadable sectors: the manufacturer's figures, or estimates.
//!
//! No timing model reads these: they give the probability of data loss while redundancy is missing.

use crate::reader::Section;
use crate::sourced::Sourced;
use crate::unit::Dimension;

/// Most drives that can fail in a year, in parts in a million.
const AFR_MAX: u64 = 999_999;
/// Most read errors in 10^18 bits: one in 10^9 is a drive that is broken.
const ERRORS_MAX: u64 = 1_000_000_000;
/// Bits that read errors are counted in.
const EXABIT: f64 = 1e18;

/// Reliability of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReliabilityProfile {
    /// Drives that fail in a year of continuous work, in parts in a million. A sheet that has a mean time between
    /// failures has it by `1 - exp(-8760 h / MTBF)`. The high end of its range is what fleets of such drives have seen.
    pub afr: Sourced<u64>,
    /// Sectors that cannot be read in 10^18 bits that are read: a sheet's "one in 10^15" is 1000.
    pub read_errors: Sourced<u64>,
}

impl ReliabilityProfile {
    pub(crate) fn read(section: &Section<'_>) -> Self {
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

    /// Unreadable sectors for each bit that is read.
    #[must_use]
    pub fn errors_per_bit(&self) -> f64 {
        self.read_errors.value as f64 / EXABIT
    }
}
