//! The checks and repairs of each array, kept next to the registry: one line of history for each, the newest last.
//!
//! If the file is damaged, the history is unknown; nothing else depends on it. The same holds for the file of the last
//! checks.

use openraid_runtime::service::{ArrayView, ServiceStatus};
use openraid_status::care::{MemberCheckModel, PastCheckModel, SetHistoryModel};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::history::last_checks::CheckModel;
use crate::model::ArrayModel;
use crate::registry::Registry;

const SCHEMA: &str = "openraid/check-history/1";
/// Maximum number of stored checks of one array or span.
const CHECKS_MAX: usize = 24;
/// Maximum number of arrays; the one with the oldest check is dropped first.
const ARRAYS_MAX: usize = 1024;
/// Maximum size of the file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A check of this array that has just begun or ended.
pub fn past(check: &CheckModel, view: &ArrayView, status: &ServiceStatus) -> PastCheckModel {
    let members = view.status.members.iter().filter_map(|member| {
        let slot = member.slot?.0;
        let drive = member.drive.and_then(|number| status.drives.iter().find(|drive| drive.drive == number));
        let ranges = check.ranges.iter().filter(|range| range.slot == Some(slot));
        Some(MemberCheckModel {
            slot,
            member: drive.map(|drive| drive.member.clone()),
            serial: drive.and_then(|drive| drive.names.serial.clone()),
            mismatches: ranges.map(|range| range.sectors).sum(),
            media_errors: member.media_errors,
        })
    });
    PastCheckModel { members: members.collect(), check: CheckModel { ranges: Vec::new(), ..check.clone() } }
}

/// The history of an array: of itself, or of its spans.
pub fn of_array(array: &ArrayModel, registry: &Registry) -> Vec<SetHistoryModel> {
    let known = CheckHistory::read(registry);
    let of_set = |set: &ArrayModel| {
        let uuid = set.uuid.clone()?;
        Some(SetHistoryModel { name: set.name.clone(), checks: known.of(&uuid).to_vec(), uuid })
    };
    array.sets().into_iter().filter_map(of_set).collect()
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OfArray {
    uuid: String,
    checks: Vec<PastCheckModel>,
}

/// The whole history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckHistory {
    schema: String,
    arrays: Vec<OfArray>,
}

impl Default for CheckHistory {
    fn default() -> Self {
        Self { schema: SCHEMA.into(), arrays: Vec::new() }
    }
}

/// An entry for the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckEntry {
    /// The array, or span.
    pub uuid: String,
    /// The check.
    pub past: PastCheckModel,
    /// Is it the end of the check whose begin is the newest entry?
    pub ends_newest: bool,
}

impl CheckHistory {
    /// The history next to a registry.
    pub fn read(registry: &Registry) -> Self {
        let text = registry.read_beside("check-history", FILE_BYTES_MAX);
        let known: Option<Self> = text.and_then(|text| serde_json::from_str(&text).ok());
        known.filter(|known| known.schema == SCHEMA).unwrap_or_default()
    }

    /// The checks of an array or span, the newest last.
    pub fn of(&self, uuid: &str) -> &[PastCheckModel] {
        self.arrays.iter().find(|array| array.uuid == uuid).map_or(&[], |array| &array.checks)
    }

    /// Store these entries.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(registry: &Registry, entries: Vec<CheckEntry>) -> Result<(), Failure> {
        registry.change_beside("check-history", || {
            let mut all = Self::read(registry);
            entries.into_iter().for_each(|entry| all.put(entry));
            serde_json::to_string(&all).unwrap_or_else(|error| panic!("bug: no JSON: {error}"))
        })
    }

    fn put(&mut self, entry: CheckEntry) {
        let place = self.arrays.iter().position(|array| array.uuid == entry.uuid);
        let mut record = place.map_or_else(
            || OfArray { uuid: entry.uuid.clone(), checks: Vec::new() },
            |place| self.arrays.remove(place),
        );
        if entry.ends_newest {
            record.checks.pop();
        }
        record.checks.push(entry.past);
        let more = record.checks.len().saturating_sub(CHECKS_MAX);
        record.checks.drain(..more);
        self.arrays.push(record);
        let more = self.arrays.len().saturating_sub(ARRAYS_MAX);
        self.arrays.drain(..more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::last_checks::{CheckWord, OutcomeModel};

    #[test]
    fn an_end_takes_the_place_of_its_beginning_and_old_checks_go_first() {
        let check = |at| CheckModel::begun(CheckWord::Check, at, 5, 1 << 20);
        let entry = |check: CheckModel, ends_newest| CheckEntry {
            uuid: "1".into(),
            past: PastCheckModel { check, members: Vec::new() },
            ends_newest,
        };
        let mut all = CheckHistory::default();
        all.put(entry(check(1), false));
        all.put(entry(check(2), false));
        all.put(entry(CheckModel { outcome: OutcomeModel::Clean, ..check(3) }, true));
        let times: Vec<u64> = all.of("1").iter().map(|taken| taken.check.at_seconds).collect();
        assert_eq!(times, [1, 3], "the server did not live to see the end of the first one");
        (4..60).for_each(|at| all.put(entry(check(at), false)));
        assert_eq!((all.of("1").len(), all.of("1")[0].check.at_seconds), (CHECKS_MAX, 36));
        assert_eq!(all.of("2"), []);
    }
}
