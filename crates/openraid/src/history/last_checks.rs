//! The results of checks and repairs, kept after the end of the server: md's superblock has no field for them.
//!
//! The file is next to the registry and is replaced as a whole. If it is missing, damaged or of another version,
//! earlier checks are unknown; nothing else depends on it. When a check begins, the file records it as aborted; that
//! stays if the server ends before the check does.

pub use openraid_status::check_results::{AbortWord, CheckModel, CheckWord, MismatchModel, OutcomeModel};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::registry::Registry;

const SCHEMA: &str = "openraid/checks/1";
/// Maximum number of arrays or spans with a stored check; the oldest is dropped for a new one.
const CHECKS_MAX: usize = 1024;
/// Maximum size of the file.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct RecordedCheck {
    uuid: String,
    check: CheckModel,
    /// The last complete check before it, if this one was not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    complete: Option<CheckModel>,
}

/// The last check of each array, or span of a nested one, by its identity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Checks {
    schema: String,
    arrays: Vec<RecordedCheck>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { schema: SCHEMA.into(), arrays: Vec::new() }
    }
}

impl Checks {
    /// The results next to a registry.
    pub fn read(registry: &Registry) -> Self {
        let text = registry.read_beside("checks", FILE_BYTES_MAX);
        let known: Option<Self> = text.and_then(|text| serde_json::from_str(&text).ok());
        known.filter(|known| known.schema == SCHEMA).unwrap_or_default()
    }

    /// The last check of this array. A check with more events than the array has seen belongs to another copy of it.
    pub fn of(&self, uuid: &str, events: u64) -> Option<&CheckModel> {
        self.kept(uuid).map(|kept| &kept.check).filter(|check| check.events <= events)
    }

    /// The last complete check of this array, if a later one was not complete. As above, of this copy of it.
    pub fn complete_of(&self, uuid: &str, events: u64) -> Option<&CheckModel> {
        self.kept(uuid)?.complete.as_ref().filter(|check| check.events <= events)
    }

    fn kept(&self, uuid: &str) -> Option<&RecordedCheck> {
        self.arrays.iter().find(|kept| kept.uuid == uuid)
    }

    /// Store the last results of these arrays, and keep those of other servers.
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

    /// Set the last check of this array. An incomplete check does not replace the result of an earlier complete one.
    pub fn put(&mut self, uuid: &str, check: CheckModel) {
        let before = self.kept(uuid).cloned().filter(|_| !check.is_complete());
        let complete = before.and_then(|kept| kept.complete.or(Some(kept.check).filter(CheckModel::is_complete)));
        self.arrays.retain(|kept| kept.uuid != uuid);
        let more = (self.arrays.len() + 1).saturating_sub(CHECKS_MAX);
        self.arrays.drain(..more);
        self.arrays.push(RecordedCheck { uuid: uuid.into(), check, complete });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(at_seconds: u64) -> CheckModel {
        CheckModel::begun(CheckWord::Check, at_seconds, 5, 1 << 20)
    }

    #[test]
    fn a_kept_outcome_is_found_and_a_damaged_file_counts_as_empty() {
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
    fn a_check_that_does_not_compare_everything_leaves_the_last_that_did() {
        let mut all = Checks::default();
        let ended = |at_seconds, outcome| CheckModel { outcome, ..check(at_seconds) };
        let refused = || OutcomeModel::NotComparable { reason: "degraded".into() };
        let found = OutcomeModel::Mismatches { mismatches: 8, repaired: 0, left: 8 };
        all.put("a", ended(1, refused()));
        assert_eq!(all.complete_of("a", 9), None);
        all.put("a", ended(2, found));
        assert_eq!(all.complete_of("a", 9), None, "it is the last one itself");
        for at_seconds in [3, 5] {
            all.put("a", ended(at_seconds, refused()));
            all.put("a", check(at_seconds + 1));
            let complete = all.complete_of("a", 9).expect("it is kept");
            assert_eq!((complete.at_seconds, complete.left()), (2, 8));
            assert_eq!(all.complete_of("a", 4), None, "a copy that was made before");
        }
        all.put("a", ended(7, OutcomeModel::Clean));
        assert_eq!((all.of("a", 9).map(|check| check.at_seconds), all.complete_of("a", 9)), (Some(7), None));
    }

    #[test]
    fn as_many_are_kept_as_have_room() {
        let mut all = Checks::default();
        (0..CHECKS_MAX as u64 + 2).for_each(|nth| all.put(&nth.to_string(), check(nth)));
        assert_eq!((all.arrays.len(), all.arrays[0].uuid.as_str()), (CHECKS_MAX, "2"));
    }
}
