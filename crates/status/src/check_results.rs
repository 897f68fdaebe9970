//! Results of checks and repairs.

use openraid_core::check_results::{AbortReason, MismatchRange, ScrubMode, ScrubOutcome, ScrubStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The blocks that a check may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckWord {
    /// No block: mismatches are counted.
    Check,
    /// Blocks whose error can be attributed to a member.
    Repair,
    /// Parity, and copies but the first.
    RepairTrustData,
}

impl CheckWord {
    /// The text for users.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Repair | Self::RepairTrustData => "repair",
        }
    }
    /// The engine's mode.
    pub const fn mode(self) -> ScrubMode {
        match self {
            Self::Check => ScrubMode::Check,
            Self::Repair => ScrubMode::Repair,
            Self::RepairTrustData => ScrubMode::TrustData,
        }
    }
}

impl From<ScrubMode> for CheckWord {
    fn from(mode: ScrubMode) -> Self {
        match mode {
            ScrubMode::Check => Self::Check,
            ScrubMode::Repair => Self::Repair,
            ScrubMode::TrustData => Self::RepairTrustData,
        }
    }
}

/// Why a check ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AbortWord {
    /// A member failed.
    MemberFailed,
    /// By administrator.
    Administrator,
    /// For a rebuild.
    RebuildBegan,
    /// The array was stopped, or its server ended.
    Stopped,
}

impl AbortWord {
    /// The text for users.
    pub const fn text(self) -> &'static str {
        match self {
            Self::MemberFailed => AbortReason::MemberFailed.text(),
            Self::Administrator => AbortReason::Administrator.text(),
            Self::RebuildBegan => AbortReason::RebuildBegan.text(),
            Self::Stopped => "the array was stopped, or its server ended",
        }
    }
}

impl From<AbortReason> for AbortWord {
    fn from(why: AbortReason) -> Self {
        match why {
            AbortReason::MemberFailed => Self::MemberFailed,
            AbortReason::Administrator => Self::Administrator,
            AbortReason::RebuildBegan => Self::RebuildBegan,
        }
    }
}

/// How a check ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum OutcomeModel {
    /// Everything that was compared agrees.
    Clean,
    /// Sectors of 512 bytes in which members did not agree.
    Mismatches {
        /// Number of sectors of 512 bytes that did not match.
        mismatches: u64,
        /// Number of these sectors that were corrected.
        repaired: u64,
        /// Number of these sectors that still do not match.
        left: u64,
    },
    /// It ended before everything was compared.
    Aborted {
        /// The cause of the end.
        reason: AbortWord,
        /// Its progress; unknown if the server ended before the check.
        percent: Option<u8>,
        /// Number of sectors of 512 bytes that did not match.
        mismatches: u64,
        /// Number of these sectors that were corrected.
        repaired: u64,
    },
    /// Nothing could be compared.
    NotComparable {
        /// Why, in words.
        reason: String,
    },
}

/// A range of mismatches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MismatchModel {
    /// Its first sector, in the data area of each member; of a mirror, in the array.
    pub from_sector: u64,
    /// Number of sectors from its first to its last one, gaps included.
    pub sectors: u64,
    /// Number of mismatches in it. The range may have gaps (chunks of a mirror on other members), which are not
    /// counted. 0 in a result of an earlier version, which had no gaps.
    #[serde(default)]
    pub mismatches: u64,
    /// The member that disagrees with the others, if it can be named.
    pub slot: Option<u16>,
    /// Were its sectors corrected?
    pub repaired: bool,
}

impl From<&MismatchRange> for MismatchModel {
    fn from(range: &MismatchRange) -> Self {
        let MismatchRange { from, len, count, slot, .. } = *range;
        let repaired = range.is_repaired();
        Self { from_sector: from.get(), sectors: len.get(), mismatches: count, slot: slot.map(|slot| slot.0), repaired }
    }
}

/// The last check or repair of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckModel {
    /// What it was allowed to change: nothing (`check`), blocks whose error can be attributed to one member (`repair`),
    /// or parity and copies (`repair-trust-data`).
    pub kind: CheckWord,
    /// The way in which it ended, with its figures.
    #[serde(flatten)]
    pub outcome: OutcomeModel,
    /// Its end in seconds since 1970, or its beginning if the server did not see the end.
    pub at_seconds: u64,
    /// md's event count when it ended.
    pub events: u64,
    /// Bytes to compare on each member; for a mirror, bytes of the array.
    pub total_bytes: u64,
    /// Bytes that the check could not compare, because too few members could be read there.
    pub uncompared_bytes: u64,
    /// The ranges with mismatches, up to a limit.
    pub ranges: Vec<MismatchModel>,
    /// Number of further ranges that are not listed.
    pub more_ranges: u64,
}

/// Number of mismatched sectors of one member from which on the member as a whole is suspected, and not some blocks of it.
const ODD_SECTORS_MIN: u64 = 16;
/// The least percentage of all mismatches that are listed.
const ODD_PERCENT_MIN: u64 = 90;

/// A member that does not fit to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OddMember {
    pub slot: u16,
    /// Number of mismatched sectors in which it is the one that disagrees.
    pub mismatches: u64,
    /// Number of all mismatched sectors that are listed.
    pub of: u64,
}

impl CheckModel {
    /// The member that disagrees with all others in nearly all mismatches. An older image of a member is such a one, if its
    /// superblock was not old enough to be noticed.
    #[must_use]
    pub fn odd_member(&self) -> Option<OddMember> {
        let count = |range: &MismatchModel| if range.mismatches > 0 { range.mismatches } else { range.sectors };
        let of: u64 = self.ranges.iter().map(count).sum();
        let of_slot = |slot| self.ranges.iter().filter(|range| range.slot == Some(slot)).map(count).sum::<u64>();
        let slots = self.ranges.iter().filter_map(|range| range.slot);
        let (mismatches, slot) = slots.map(|slot| (of_slot(slot), slot)).max()?;
        let is_odd = mismatches >= ODD_SECTORS_MIN && mismatches * 100 >= of * ODD_PERCENT_MIN;
        is_odd.then_some(OddMember { slot, mismatches, of })
    }

    /// The end of a check as the engine reports it, seen at this time.
    pub fn of(status: &ScrubStatus, at_seconds: u64) -> Self {
        let outcome = match status.outcome {
            ScrubOutcome::Clean => OutcomeModel::Clean,
            ScrubOutcome::Mismatches { count, repaired } => {
                OutcomeModel::Mismatches { mismatches: count, repaired, left: count - repaired }
            }
            ScrubOutcome::Aborted { why, percent, count, repaired } => {
                OutcomeModel::Aborted { reason: why.into(), percent: Some(percent), mismatches: count, repaired }
            }
            ScrubOutcome::NotComparable(why) => OutcomeModel::NotComparable { reason: why.text().into() },
        };
        Self {
            kind: status.mode.into(),
            outcome,
            at_seconds,
            events: status.events,
            total_bytes: status.total.bytes().get(),
            uncompared_bytes: status.uncompared.bytes().get(),
            ranges: status.ranges.iter().map(MismatchModel::from).collect(),
            more_ranges: status.more_ranges,
        }
    }

    /// The record of a check that has begun, in case its end is not seen.
    pub const fn begun(kind: CheckWord, at_seconds: u64, events: u64, total_bytes: u64) -> Self {
        let reason = AbortWord::Stopped;
        Self {
            kind,
            outcome: OutcomeModel::Aborted { reason, percent: None, mismatches: 0, repaired: 0 },
            at_seconds,
            events,
            total_bytes,
            uncompared_bytes: 0,
            ranges: Vec::new(),
            more_ranges: 0,
        }
    }

    /// Mismatches that are still there, as far as is known.
    pub const fn left(&self) -> u64 {
        match self.outcome {
            OutcomeModel::Mismatches { left, .. } => left,
            OutcomeModel::Aborted { mismatches, repaired, .. } => mismatches.saturating_sub(repaired),
            OutcomeModel::Clean | OutcomeModel::NotComparable { .. } => 0,
        }
    }

    /// Did it come to its end, and compare?
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.found().is_some()
    }

    /// All mismatches that it found, if it came to its end.
    pub const fn found(&self) -> Option<u64> {
        match self.outcome {
            OutcomeModel::Clean => Some(0),
            OutcomeModel::Mismatches { mismatches, .. } => Some(mismatches),
            OutcomeModel::Aborted { .. } | OutcomeModel::NotComparable { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranges: &[(Option<u16>, u64)]) -> CheckModel {
        let range = |(nth, (slot, sectors)): (u64, &(Option<u16>, u64))| MismatchModel {
            from_sector: nth * 1000,
            sectors: *sectors,
            mismatches: *sectors,
            slot: *slot,
            repaired: false,
        };
        let mut check = CheckModel::begun(CheckWord::Check, 0, 0, 0);
        check.ranges = (0..).zip(ranges).map(range).collect();
        check
    }

    #[test]
    fn a_member_with_nearly_all_mismatches_is_named_and_some_blocks_of_one_are_not() {
        let odd =
            |ranges: &[(Option<u16>, u64)]| check(ranges).odd_member().map(|odd| (odd.slot, odd.mismatches, odd.of));
        assert_eq!(odd(&[(Some(2), 40), (Some(2), 50), (None, 10)]), Some((2, 90, 100)));
        assert_eq!(odd(&[(Some(2), 40), (Some(2), 50), (None, 11)]), None, "too many others");
        assert_eq!(odd(&[(Some(2), 50), (Some(1), 50)]), None, "two members");
        assert_eq!((odd(&[(Some(0), 15)]), odd(&[(Some(0), 16)])), (None, Some((0, 16, 16))));
        assert_eq!((odd(&[]), odd(&[(None, 100)])), (None, None));
    }
}
