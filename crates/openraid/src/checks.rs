//! How checks and repairs ended, kept over the end of the server: md's superblock has no field for it.
//!
//! The file stands beside the registry and is replaced as a whole. It is a convenience: a file that is missing, damaged or
//! of another version means that nothing is known of earlier checks. When a check begins, an aborted one is written down
//! for it: that is what is known should the server not live to see its end.

use openraid_core::scrub::{AbortReason, MismatchRange, ScrubMode, ScrubOutcome, ScrubStatus};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::registry::Registry;

const SCHEMA: &str = "openraid/checks/1";
/// Arrays, or legs, whose last check is kept; the oldest is forgotten for one more.
const CHECKS_MAX: usize = 1024;
/// Such a file is never larger; a larger one is none.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What a check may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckWord {
    /// Nothing.
    Check,
    /// What can be attributed.
    Repair,
    /// Parity, and copies but the first.
    RepairTrustData,
}

impl CheckWord {
    /// In a word.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Repair | Self::RepairTrustData => "repair",
        }
    }
    /// What the engine is told.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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
    /// In words.
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum OutcomeModel {
    /// Everything that was compared agrees.
    Clean,
    /// Sectors of 512 bytes in which members did not agree.
    Mismatches {
        /// All of them.
        mismatches: u64,
        /// Those that are put right.
        repaired: u64,
        /// Those that are left.
        left: u64,
    },
    /// It ended before everything was compared.
    Aborted {
        /// Why.
        reason: AbortWord,
        /// How far it came; unknown where the server did not live to see it.
        percent: Option<u8>,
        /// Mismatches until then.
        mismatches: u64,
        /// Those that are put right.
        repaired: u64,
    },
    /// Nothing could be compared.
    NotComparable {
        /// Why, in words.
        reason: String,
    },
}

/// A range of mismatches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MismatchModel {
    /// Its first sector, in the data area of each member; of a mirror, in the array.
    pub from_sector: u64,
    /// How many.
    pub sectors: u64,
    /// The member that disagrees with the others, where it can be named.
    pub slot: Option<u16>,
    /// Is it put right?
    pub repaired: bool,
}

impl From<&MismatchRange> for MismatchModel {
    fn from(range: &MismatchRange) -> Self {
        let MismatchRange { from, len, slot, repaired } = *range;
        Self { from_sector: from.get(), sectors: len.get(), slot: slot.map(|slot| slot.0), repaired }
    }
}

/// The last check or repair of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckModel {
    /// What it was allowed to change.
    pub kind: CheckWord,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: OutcomeModel,
    /// When: seconds since 1970. Of one whose end the server did not see, when it began.
    pub at_seconds: u64,
    /// md's event count then.
    pub events: u64,
    /// What was to be compared, of each member; of a mirror, of the array.
    pub total_bytes: u64,
    /// What was not compared although the check came by: not enough members could be read there.
    pub uncompared_bytes: u64,
    /// Where the mismatches are.
    pub ranges: Vec<MismatchModel>,
    /// So many more ranges there are.
    pub more_ranges: u64,
}

impl CheckModel {
    /// What the engine says of the end of a check, seen at this time.
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

    /// What is known of a check that has begun, should nobody see its end.
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

    /// All mismatches that it found, where it came to its end.
    pub const fn found(&self) -> Option<u64> {
        match self.outcome {
            OutcomeModel::Clean => Some(0),
            OutcomeModel::Mismatches { mismatches, .. } => Some(mismatches),
            OutcomeModel::Aborted { .. } | OutcomeModel::NotComparable { .. } => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Kept {
    uuid: String,
    check: CheckModel,
}

/// The last check of each array, or leg of a nested one, by its identity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Checks {
    schema: String,
    arrays: Vec<Kept>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { schema: SCHEMA.into(), arrays: Vec::new() }
    }
}

impl Checks {
    /// Those that are kept beside a registry.
    pub fn read(registry: &Registry) -> Self {
        let text = registry.read_beside("checks", FILE_BYTES_MAX);
        let known: Option<Self> = text.and_then(|text| serde_json::from_str(&text).ok());
        known.filter(|known| known.schema == SCHEMA).unwrap_or_default()
    }

    /// The last one of this array. One that says more events than the array has seen is of another copy of it.
    pub fn of(&self, uuid: &str, events: u64) -> Option<&CheckModel> {
        self.arrays.iter().find(|kept| kept.uuid == uuid).map(|kept| &kept.check).filter(|check| check.events <= events)
    }

    /// Keep the last ones of these arrays, beside those of other servers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(registry: &Registry, fresh: &[(String, CheckModel)]) -> Result<(), Failure> {
        registry.change_beside("checks", || {
            let mut all = Self::read(registry);
            for (uuid, check) in fresh {
                all.put(uuid, check.clone());
            }
            serde_json::to_string_pretty(&all).unwrap_or_else(|error| panic!("bug: no JSON: {error}"))
        })
    }

    /// The last check of this array.
    pub fn put(&mut self, uuid: &str, check: CheckModel) {
        self.arrays.retain(|kept| kept.uuid != uuid);
        let more = (self.arrays.len() + 1).saturating_sub(CHECKS_MAX);
        self.arrays.drain(..more);
        self.arrays.push(Kept { uuid: uuid.into(), check });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(at_seconds: u64) -> CheckModel {
        CheckModel::begun(CheckWord::Check, at_seconds, 5, 1 << 20)
    }

    #[test]
    fn what_is_kept_is_found_and_a_damaged_file_means_that_nothing_is_known() {
        let folder = std::env::temp_dir().join(format!("openraid-checks-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let registry = Registry::at(Some(&folder.join("registry.json")));
        assert_eq!(Checks::read(&registry), Checks::default());
        Checks::keep(&registry, &[("a".into(), check(1)), ("b".into(), check(2))]).unwrap();
        let clean = CheckModel { outcome: OutcomeModel::Clean, ..check(3) };
        Checks::keep(&registry, &[("a".into(), clean.clone())]).unwrap();
        let known = Checks::read(&registry);
        assert_eq!((known.of("a", 5), known.of("b", 9)), (Some(&clean), Some(&check(2))));
        assert_eq!(known.of("a", 4), None, "a copy that was made before");
        let path = folder.join("registry.json.checks");
        let whole = std::fs::read(&path).unwrap();
        for len in 0..whole.len() - 1 {
            std::fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(Checks::read(&registry), Checks::default(), "{len} bytes of it");
        }
        for text in ["{\"schema\":\"openraid/checks/9\",\"arrays\":[]}", "[]", "\u{0}\u{0}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Checks::read(&registry), Checks::default(), "{text}");
        }
        Checks::keep(&registry, &[("a".into(), clean.clone())]).unwrap();
        assert_eq!(Checks::read(&registry).of("a", 5), Some(&clean));
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn as_many_are_kept_as_have_room() {
        let mut all = Checks::default();
        (0..CHECKS_MAX as u64 + 2).for_each(|nth| all.put(&nth.to_string(), check(nth)));
        assert_eq!((all.arrays.len(), all.arrays[0].uuid.as_str()), (CHECKS_MAX, "2"));
    }
}
