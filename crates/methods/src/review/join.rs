//! Joins the parts of a review that ran separately.

use super::{CellOutcome, MethodOutcome, ReviewResults};
use crate::cell::Axes;
use crate::method::find;
use crate::run::{complete, Absence, Measurement, RunShard};
use serde::{Deserialize, Serialize};

/// The reason of a cell that has no result in one part because another part has it.
const LEFT: &str = "left to another part of the review";

/// The part of a review that results belong to, and the machine that all parts simulate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartOf {
    /// The part.
    #[serde(flatten)]
    pub shard: RunShard,
    /// Axes of the machine.
    pub machine: Axes,
}

/// The outcome of a cell that this part leaves to another part.
pub(super) fn left() -> Measurement {
    Measurement::Absent(Absence { not_applicable: true, reason: LEFT.into() })
}

impl CellOutcome {
    /// Was the cell left to another part of the review?
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.outcome.absence().is_some_and(|absence| absence.reason == LEFT)
    }
}

/// Joins all parts of one review, in any order. The result equals that of one run of the whole review.
///
/// # Errors
/// A part is missing or given twice. Or the parts belong to different reviews, or came from different programs or
/// profiles.
pub fn join(mut parts: Vec<ReviewResults>) -> Result<ReviewResults, String> {
    let whole = "is a whole review, no part of one; leave it out";
    let shards = parts.iter().map(|part| part.part.as_ref().map(|of_part| of_part.shard));
    let shards: Vec<RunShard> = shards.collect::<Option<_>>().ok_or_else(|| format!("one of these {whole}"))?;
    complete(&shards)?;
    parts.sort_by_key(|part| part.part.as_ref().map(|of_part| of_part.shard));
    let (first, others) = parts.split_first().ok_or("there is no part; name all of them")?;
    for (number, other) in (2..).zip(others) {
        if other.stamp != first.stamp {
            return Err(format!(
                "parts 1 and {number} were made by different programs or with different profiles ({}; {}); run one of them again",
                first.stamp, other.stamp
            ));
        }
        let names =
            |results: &ReviewResults| -> Vec<String> { results.methods.iter().map(|it| it.id.clone()).collect() };
        let same = other.target == first.target && other.bed == first.bed && other.seed == first.seed;
        if !same || names(other) != names(first) {
            return Err(format!("parts 1 and {number} are of different reviews; name the parts of one"));
        }
    }
    let mut joined = ReviewResults { part: None, methods: Vec::new(), ..first.clone() };
    for (place, method) in first.methods.iter().enumerate() {
        let outcomes: Vec<&MethodOutcome> = parts.iter().map(|part| &part.methods[place]).collect();
        joined.methods.push(one_method(method, &outcomes)?);
    }
    Ok(joined)
}

/// A method with each cell from the part that has its result.
fn one_method(method: &MethodOutcome, parts: &[&MethodOutcome]) -> Result<MethodOutcome, String> {
    let cell = |(number, known): (usize, &CellOutcome)| {
        let same = |part: &&MethodOutcome| part.cells.get(number).filter(|other| other.cell == known.cell).cloned();
        let found: Option<Vec<CellOutcome>> = parts.iter().map(same).collect();
        let found = found
            .ok_or_else(|| format!("{}: the parts have different cells; name the parts of one review", method.id))?;
        let has = found.into_iter().find(|other| !other.is_left());
        has.ok_or_else(|| format!("{}: no part has the cell of {}; run the parts again", method.id, known.cell.subject))
    };
    let cells = method.cells.iter().enumerate().map(cell).collect::<Result<Vec<_>, String>>()?;
    let refusal = method.refusal.clone();
    Ok(match find(&method.name) {
        Some(known) => MethodOutcome { refusal, ..MethodOutcome::new(known, cells) },
        None => MethodOutcome { cells, ..method.clone() },
    })
}
