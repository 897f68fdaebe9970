//! The patrol reads of each array, kept next to the registry, the newest last.
//!
//! If the file is damaged, the history is unknown; nothing else depends on it.

use openraid_status::care::PatrolModel;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::registry::Registry;

const SCHEMA: &str = "openraid/patrol-history/1";
/// Patrols of one array that are kept.
const PATROLS_MAX: usize = 24;
/// Arrays that are kept; the one that was read longest ago goes first.
const ARRAYS_MAX: usize = 1024;
/// A larger file is invalid.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FILE: &str = "patrol-history";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct OfArray {
    uuid: String,
    patrols: Vec<PatrolModel>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct History {
    schema: String,
    arrays: Vec<OfArray>,
}

fn read(registry: &Registry) -> History {
    let text = registry.read_beside(FILE, FILE_BYTES_MAX);
    let known: Option<History> = text.and_then(|text| serde_json::from_str(&text).ok());
    known.filter(|known| known.schema == SCHEMA).unwrap_or_default()
}

/// The patrols of an array, the newest last.
pub fn of(uuid: &str, registry: &Registry) -> Vec<PatrolModel> {
    read(registry).arrays.into_iter().find(|array| array.uuid == uuid).map(|array| array.patrols).unwrap_or_default()
}

/// Keep a patrol. One that began at the same time is the same, as it is now.
///
/// # Errors
/// The file cannot be written.
pub fn keep(uuid: &str, patrol: &PatrolModel, registry: &Registry) -> Result<(), Failure> {
    registry.change_beside(FILE, || {
        let mut all = read(registry);
        all.schema = SCHEMA.into();
        let mut patrols = match all.arrays.iter().position(|array| array.uuid == uuid) {
            Some(at) => all.arrays.remove(at).patrols,
            None => Vec::new(),
        };
        patrols.retain(|kept| kept.at_seconds != patrol.at_seconds);
        patrols.push(patrol.clone());
        let more = patrols.len().saturating_sub(PATROLS_MAX);
        patrols.drain(..more);
        all.arrays.push(OfArray { uuid: uuid.to_owned(), patrols });
        let more = all.arrays.len().saturating_sub(ARRAYS_MAX);
        all.arrays.drain(..more);
        serde_json::to_string(&all).unwrap_or_else(|error| panic!("bug: no JSON: {error}"))
    })
}
