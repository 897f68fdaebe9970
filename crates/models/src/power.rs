//! The electric power of a drive: figures of its data sheet. No timing model reads them.

use crate::reader::ProfileSection;
use crate::sourced::Sourced;
use crate::unit::Dimension;

/// Greatest power of a drive, in milliwatts.
const MILLIWATTS_MAX: u64 = 100_000;

/// Power of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PowerProfile {
    /// Milliwatts of a drive that is ready and has no command; a disk spins.
    pub idle: Sourced<u64>,
    /// Milliwatts of a drive that works without a pause.
    pub busy: Sourced<u64>,
}

impl PowerProfile {
    pub(crate) fn read(section: &ProfileSection<'_>) -> Self {
        let profile = Self {
            idle: section.quantity("idle", Dimension::Power, 1, MILLIWATTS_MAX),
            busy: section.quantity("busy", Dimension::Power, 1, MILLIWATTS_MAX),
        };
        if profile.idle.value > profile.busy.value {
            section.complain(
                "busy",
                "a drive takes no less when it works than when it waits",
                "correct one of the two",
            );
        }
        section.finish();
        profile
    }

    /// Watts of a drive that works for the share `busy` of the time, from 0 to 1.
    #[must_use]
    pub fn watts(&self, busy: f64) -> f64 {
        let (idle, most) = (self.idle.value as f64 / 1e3, self.busy.value as f64 / 1e3);
        idle + (most - idle) * busy.clamp(0.0, 1.0)
    }
}
