//! Two reviews side by side: cells that both have, and how far they lie apart.
//!
//! Cells are the same when subject, pattern, axes and state are: system, seed and effort may differ, for that is what is
//! compared.

use crate::cell::{ArrayState, Axes, CellResult, CellSpec, Pattern, Subject};
use crate::review::ReviewResults;
use serde::Serialize;
use std::collections::BTreeSet;

/// What makes cells of two reviews the same.
type Key<'a> = (&'a Subject, &'a Pattern, &'a Axes, &'a ArrayState);

/// A cell that both have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pair {
    /// Method.
    pub method: String,
    /// Cell.
    pub cell: CellSpec,
    /// `IOPS`, `MB/s` or `ms`.
    pub unit: &'static str,
    /// Its figure in the first review.
    pub a: f64,
    /// Its figure in the second.
    pub b: f64,
    /// Change from the first to the second, percent.
    pub change_percent: f64,
}

/// Two reviews side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Cells that both have.
    pub pairs: Vec<Pair>,
    /// Cells that only the first has.
    pub only_a: usize,
    /// Cells that only the second has.
    pub only_b: usize,
}

impl Comparison {
    /// Compare.
    #[must_use]
    pub fn of(a: &ReviewResults, b: &ReviewResults) -> Self {
        let mut pairs = Vec::new();
        let mut only_a = 0;
        // A measured target is called single whatever it is.
        let any_array = a.simulated != b.simulated && arrays(a) == 1 && arrays(b) == 1;
        for method in &a.methods {
            let other = b.methods.iter().find(|known| known.id == method.id);
            for known in &method.cells {
                let Some(first) = known.outcome.result() else { continue };
                let second = other.into_iter().flat_map(|method| &method.cells);
                let same = |cell: &CellSpec| {
                    let subject = if any_array { &known.cell.subject } else { &cell.subject };
                    (subject, &cell.pattern, &cell.axes, &cell.state) == key(&known.cell)
                };
                let second = second.filter(|candidate| same(&candidate.cell));
                let second = second.filter_map(|candidate| candidate.outcome.result()).next();
                match second {
                    Some(second) => pairs.push(pair(&method.id, first, second)),
                    None => only_a += 1,
                }
            }
        }
        let only_b = b.results().count().saturating_sub(pairs.len());
        Self { pairs, only_a, only_b }
    }

    /// The geometric mean of second by first, a figure above 1 being better in the second, of the cells of a unit.
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

/// How many arrays a review is about.
fn arrays(review: &ReviewResults) -> usize {
    let cells = review.methods.iter().flat_map(|method| &method.cells);
    cells.map(|known| known.cell.subject).collect::<BTreeSet<Subject>>().len()
}

fn key(cell: &CellSpec) -> Key<'_> {
    (&cell.subject, &cell.pattern, &cell.axes, &cell.state)
}

/// The figure that a result is judged by.
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

fn pair(method: &str, first: &CellResult, second: &CellResult) -> Pair {
    let ((unit, a), (_, b)) = (figure(first), figure(second));
    let change_percent = if a == 0.0 { 0.0 } else { (b / a - 1.0) * 100.0 };
    Pair { method: method.into(), cell: first.spec.clone(), unit, a, b, change_percent }
}
