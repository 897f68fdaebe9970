//! Compares two reviews: the cells that both have, and their differences.
//!
//! Two cells are the same if subject, pattern, axes and state are equal. System, seed and effort may differ, because
//! the comparison is about them. Drives, their state, bus, cache and chunk may differ if each has one value in all
//! cells of a method. Repetitions of a cell are one cell; its figure is their median.

use crate::cell::{CellResult, CellSpec, Effort, Pattern, Subject};
use crate::report::assemble::CellTrial;
use crate::review::{CellOutcome, MethodOutcome, ReviewResults};
use crate::run::Measurement;
use crate::target::BedName;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A cell that both have.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct ComparedCell {
    /// Number of the method, such as `M01`.
    pub method: String,
    /// The cell with the figure of the first review.
    pub cell: CellSpec,
    /// Unit of the two figures: `IOPS` (requests each second), `MB/s` or `ms`.
    pub unit: &'static str,
    /// Its figure in the first review: the median of its repetitions.
    pub a: f64,
    /// Its figure in the second review.
    pub b: f64,
    /// Change from the first to the second, percent.
    pub change_percent: f64,
}

/// Two reviews side by side.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Comparison {
    /// Cells that are in both reviews.
    pub pairs: Vec<ComparedCell>,
    /// Number of cells that are only in the first review.
    pub only_a: usize,
    /// Number of cells that are only in the second review.
    pub only_b: usize,
}

/// A cell without the values in which two compared cells may differ: system, repetition, effort, seed.
#[must_use]
pub fn key(cell: &CellSpec) -> CellSpec {
    let mut key = CellSpec { system: String::new(), effort: Effort::NORMAL, seed: 0, ..cell.clone() };
    key.axes.rep = None;
    key
}

/// The names of two reviews in a comparison: their systems, and other differences between them. If there is no
/// difference, the given names (their folders).
#[must_use]
pub fn sides(a: (&str, &ReviewResults), b: (&str, &ReviewResults)) -> (String, String) {
    let (first, second) = (traits(a.1), traits(b.1));
    let name = |traits: &[(String, String)], other: &[(String, String)], given: &str| {
        let differs = |trait_of: &&(String, String)| !other.contains(trait_of);
        let words: Vec<&str> = traits.iter().filter(differs).map(|(_, words)| words.as_str()).collect();
        if words.is_empty() {
            given.to_owned()
        } else {
            words.join(", ")
        }
    };
    let (one, two) = (name(&first, &second, a.0), name(&second, &first, b.0));
    if one == two {
        (format!("{one} ({})", a.0), format!("{two} ({})", b.0))
    } else {
        (one, two)
    }
}

/// The values in which a review may differ from others with the same cells: kind of value, and its text.
fn traits(review: &ReviewResults) -> Vec<(String, String)> {
    let target = if review.simulated { review.target.clone() } else { format!("measured {}", review.target) };
    let mut found = vec![("target".to_owned(), target)];
    // The lines of a real target describe only that target, and have no meaning next to those of a simulated target.
    for line in review.bed.iter().filter(|_| review.simulated) {
        let Some(name) = &line.name else { continue };
        let words = match name {
            BedName::Cache | BedName::Drives => line.value.clone(),
            BedName::Chunk | BedName::Bus | BedName::SsdState => format!("{name} {}", line.value),
            BedName::ArrayDrives(_) | BedName::Model | BedName::Serial => continue,
            BedName::GeneratorCost | BedName::Other(_) => continue,
        };
        found.push((name.to_string(), words));
    }
    if review.simulated {
        found.push(("seed".into(), format!("seed {}", review.seed)));
    }
    found
}

/// The cells of both reviews, ready for comparison. A measured target has one array with the name `single`. If the
/// simulated review has only one array, the measured one gets the same name.
#[must_use]
pub fn trials(a: &ReviewResults, b: &ReviewResults) -> (Vec<CellTrial>, Vec<CellTrial>) {
    let named = |review: &ReviewResults, other: &ReviewResults| {
        let subject = the_one(review, other);
        let cells = review.methods.iter().flat_map(move |method| cells(method, subject));
        cells.map(|(spec, outcome)| CellTrial { spec, outcome: outcome.clone() }).collect()
    };
    (named(a, b), named(b, a))
}

/// The cells of a method in the form for comparison, with their results.
fn cells(method: &MethodOutcome, subject: Option<Subject>) -> Vec<(CellSpec, &Measurement)> {
    let all = || method.cells.iter().map(|known| &known.cell.axes);
    let Some(first) = all().next() else { return Vec::new() };
    // If a value is equal in all cells, it belongs to the machine, and the method does not vary it.
    let (drive, bus) = (all().all(|axes| axes.drive == first.drive), all().all(|axes| axes.bus == first.bus));
    let (chunk, cache) = (all().all(|axes| axes.chunk == first.chunk), all().all(|axes| axes.cache == first.cache));
    let size = all().all(|axes| axes.cache_mib == first.cache_mib);
    let journal = all().all(|axes| axes.journal == first.journal);
    let own_cache = all().all(|axes| axes.drive_cache == first.drive_cache);
    let own_reads = all().all(|axes| axes.drive_read_ahead == first.drive_read_ahead);
    let fresh = all().all(|axes| axes.fresh == first.fresh);
    let compared = |known: &CellOutcome| {
        let mut cell = known.cell.clone();
        cell.subject = subject.unwrap_or(cell.subject);
        let axes = &mut cell.axes;
        axes.drive = axes.drive.take().filter(|_| !drive);
        axes.fresh = axes.fresh.filter(|_| !fresh);
        axes.drive_cache = axes.drive_cache.filter(|_| !own_cache);
        axes.drive_read_ahead = axes.drive_read_ahead.filter(|_| !own_reads);
        axes.bus = axes.bus.take().filter(|_| !bus);
        axes.journal = axes.journal.take().filter(|_| !journal);
        axes.chunk = axes.chunk.filter(|_| !chunk);
        axes.cache = axes.cache.filter(|_| !cache);
        axes.cache_mib = axes.cache_mib.filter(|_| !size);
        cell
    };
    method.cells.iter().map(|known| (compared(known), &known.outcome)).collect()
}

/// The subject for all cells of a measured review, if the other review is simulated and has one array.
fn the_one(review: &ReviewResults, other: &ReviewResults) -> Option<Subject> {
    let arrays = |review: &ReviewResults| {
        let cells = review.methods.iter().flat_map(|method| &method.cells);
        cells.map(|known| known.cell.subject).collect::<BTreeSet<Subject>>()
    };
    let (mine, theirs) = (arrays(review), arrays(other));
    let both = mine.len() == 1 && theirs.len() == 1;
    (!review.simulated && other.simulated && both).then(|| theirs.first().copied()).flatten()
}

/// The results of a cell's repetitions, by method and key, in the order of first appearance.
fn repetitions(review: &ReviewResults, subject: Option<Subject>) -> Vec<((&str, CellSpec), Vec<&CellResult>)> {
    let mut found: Vec<((&str, CellSpec), Vec<&CellResult>)> = Vec::new();
    let mut places = BTreeMap::new();
    for method in &review.methods {
        for (cell, outcome) in cells(method, subject) {
            let Some(result) = outcome.result() else { continue };
            let name = (method.id.as_str(), key(&cell));
            let place = *places.entry(name.clone()).or_insert(found.len());
            if place == found.len() {
                found.push((name, Vec::new()));
            }
            found[place].1.push(result);
        }
    }
    found
}

impl Comparison {
    /// Compares two reviews.
    #[must_use]
    pub fn of(a: &ReviewResults, b: &ReviewResults) -> Self {
        let (first, second) = (repetitions(a, the_one(a, b)), repetitions(b, the_one(b, a)));
        let (all_a, all_b) = (first.len(), second.len());
        let mut second: BTreeMap<_, _> = second.into_iter().collect();
        let pairs: Vec<ComparedCell> = first
            .into_iter()
            .filter_map(|(name, results)| Some(pair(name.0, &results, &second.remove(&name)?)))
            .collect();
        Self { only_a: all_a - pairs.len(), only_b: all_b - pairs.len(), pairs }
    }

    /// The geometric mean of the ratios of the second to the first, over the cells of a unit. A value above 1 means
    /// that the second is better.
    #[must_use]
    pub fn mean_ratio(&self) -> Option<f64> {
        let ratios = self.pairs.iter().filter(|pair| pair.a > 0.0 && pair.b > 0.0);
        let logs: Vec<f64> = ratios
            .map(|pair| {
                let log = (pair.b / pair.a).ln();
                if pair.unit == "ms" {
                    -log
                } else {
                    log
                }
            })
            .collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }
}

/// The figure by which a result is judged.
fn figure(result: &CellResult) -> (&'static str, f64) {
    match result.spec.pattern {
        Pattern::ResponseTime | Pattern::Latency => ("ms", result.mean_ms()),
        Pattern::Sequential
        | Pattern::MultiThreaded
        | Pattern::SsdSequential
        | Pattern::FcTest
        | Pattern::TransferGraph
        | Pattern::Application => ("MB/s", result.mbps),
        _ => ("IOPS", result.iops),
    }
}

/// The median result. If the number of results is even, it is the lower one of the two in the middle, so that it is a
/// real run.
fn median<'a>(results: &[&'a CellResult]) -> &'a CellResult {
    let mut sorted = results.to_vec();
    sorted.sort_by(|one, two| figure(one).1.total_cmp(&figure(two).1));
    sorted[(sorted.len() - 1) / 2]
}

fn pair(method: &str, first: &[&CellResult], second: &[&CellResult]) -> ComparedCell {
    let first = median(first);
    let ((unit, a), (_, b)) = (figure(first), figure(median(second)));
    let change_percent = if a == 0.0 { 0.0 } else { (b / a - 1.0) * 100.0 };
    ComparedCell { method: method.into(), cell: first.spec.clone(), unit, a, b, change_percent }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(target: &str, simulated: bool, bed: &[&str]) -> ReviewResults {
        ReviewResults {
            schema: String::new(),
            stamp: String::new(),
            target: target.into(),
            bed: bed.iter().map(|line| (*line).into()).collect(),
            simulated,
            seed: 1,
            rules: Vec::new(),
            rank: None,
            part: None,
            methods: Vec::new(),
        }
    }

    #[test]
    fn each_side_is_called_by_what_differs() {
        let back = review("sim:openraid", true, &["bus: pcie3_x8", "cache: write-back cache 256 MiB, drive caches on"]);
        let through =
            review("sim:openraid", true, &["bus: pcie3_x8", "cache: write-through, no cache, drive caches on"]);
        let real = review("/dev/sdx", false, &["/dev/sdx: hard disk", "model: X"]);
        let names = |one: &ReviewResults, two: &ReviewResults| sides(("one", one), ("two", two));
        assert_eq!(
            names(&back, &through),
            ("write-back cache 256 MiB, drive caches on".into(), "write-through, no cache, drive caches on".into())
        );
        assert_eq!(names(&back, &back), ("one".into(), "two".into()));
        let (one, two) = names(&back, &real);
        assert!(one.starts_with("sim:openraid, ") && two == "measured /dev/sdx", "{one} / {two}");
    }
}
