//! Carries out a review: simulated machines run on many threads, a real target runs one cell after the other.

use super::join::{left, PartOf};
use super::{CellOutcome, MethodOutcome, ReviewResults};
use crate::cell::{
    footprint, measure, replay, replay_outstanding, run_cell, run_trace, CellError, CellResult, CellSpec, Effort,
    Pattern, RealDrives,
};
use crate::method::{Method, Suite, TargetKind};
use crate::reader::RequestTrace;
use crate::run::{run_all, CellStore, Measurement, RunShard};
use crate::target::{Target, TargetError, TargetFacts};
use openraid_models::Library;
use openraid_sim::random::mix;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// The progress of a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// Number of cells that have ended.
    pub cells: usize,
    /// Number of cells that took no time, because their result was stored or they do not apply.
    pub idle: usize,
}

/// A review that is to be carried out.
#[derive(Debug)]
pub struct Performance<'a> {
    /// System, subjects, effort, seed.
    pub suite: Suite,
    /// Methods, in the order of the report.
    pub methods: Vec<&'static Method>,
    /// The requests of cells that replay a trace.
    pub trace: Option<&'a RequestTrace>,
    /// The store of results.
    pub store: Option<&'a CellStore>,
    /// Version of program and profiles.
    pub stamp: &'a str,
    /// Is the target an array that the review creates, and creates again in the state that a cell needs?
    pub remade: bool,
    /// Opens each drive, if the target is drives side by side.
    pub beside: Option<RealDrives<'a>>,
    /// The part of the cells that is measured; for simulated machines only.
    pub shard: Option<RunShard>,
}

impl Performance<'_> {
    /// The cells of all methods that apply to a target, each once, because some methods share cells. A part has its own
    /// cells.
    #[must_use]
    pub fn cells(&self, facts: &TargetFacts) -> Vec<CellSpec> {
        let mut seen = BTreeSet::new();
        let fit = self.methods.iter().filter(|method| self.refusal(method, facts).is_none());
        let cells = fit.flat_map(|method| method.cells(&self.suite));
        let all = cells.filter(|cell| seen.insert(cell.clone())).enumerate();
        let taken = all.filter(|(number, _)| self.shard.is_none_or(|shard| shard.takes(*number)));
        taken.map(|(_, cell)| cell).collect()
    }

    fn refusal(&self, method: &Method, facts: &TargetFacts) -> Option<String> {
        let kind = match (self.beside.is_some(), self.remade) {
            (true, _) => TargetKind::Drives,
            (false, true) => TargetKind::Made,
            (false, false) => TargetKind::Given,
        };
        method.refusal_of(facts, kind)
    }

    /// Measures simulated machines. `ended` gets the progress after each cell.
    ///
    /// # Errors
    /// The first error of a cell that could not be stored.
    pub fn simulated(
        &self,
        library: &Library,
        facts: &TargetFacts,
        threads: usize,
        ended: impl Fn(Ended) + Sync,
    ) -> Result<ReviewResults, String> {
        let cells = self.cells(facts);
        let trouble: Mutex<Option<String>> = Mutex::new(None);
        let idle = AtomicUsize::new(0);
        let work = |cell: &CellSpec| {
            if let Some(kept) = self.store.and_then(|store| store.get(cell)) {
                idle.fetch_add(1, Ordering::Relaxed);
                return kept;
            }
            let outcome = Measurement::from(match (&cell.pattern, self.trace) {
                (Pattern::Trace(_), Some(trace)) => run_trace(library, cell, trace),
                _ => run_cell(library, cell),
            });
            if let Some(Err(error)) = self.store.map(|store| store.put(cell, &outcome)) {
                trouble.lock().expect("no thread panics with the lock").get_or_insert(error.to_string());
            }
            idle.fetch_add(usize::from(took_no_time(&outcome)), Ordering::Relaxed);
            outcome
        };
        let go_on = |cells| {
            ended(Ended { cells, idle: idle.load(Ordering::Relaxed) });
            trouble.lock().expect("no thread panics with the lock").is_none()
        };
        let outcomes = run_all(&cells, threads, work, go_on);
        if let Some(reason) = trouble.into_inner().expect("no thread panics with the lock") {
            return Err(reason);
        }
        let found: BTreeMap<CellSpec, Measurement> =
            cells.into_iter().zip(outcomes).filter_map(|(cell, outcome)| Some((cell, outcome?))).collect();
        Ok(self.results(facts, |cell| found.get(cell).cloned().unwrap_or_else(left)))
    }

    /// Measures a real target. `open` opens the target for a cell, with its largest request and its number of
    /// outstanding requests. After each cell `sound` checks that the target has not changed. If the target has changed,
    /// the result of the cell is dropped. `ended` gets the progress after each cell.
    ///
    /// # Errors
    /// The target cannot be opened, no longer exists, or has changed.
    pub fn real(
        &self,
        facts: &TargetFacts,
        mut open: impl FnMut(&CellSpec, u32, u32) -> Result<Box<dyn Target>, TargetError>,
        sound: impl Fn() -> Result<(), TargetError>,
        mut ended: impl FnMut(Ended),
    ) -> Result<ReviewResults, TargetError> {
        let mut found = BTreeMap::new();
        let mut idle = 0;
        for cell in self.cells(facts) {
            let kept = self.store.and_then(|store| store.get(&cell));
            let known = kept.is_some();
            let outcome = match kept {
                Some(kept) => kept,
                None => self.real_cell(facts, &cell, &mut open, &sound)?,
            };
            idle += usize::from(known || took_no_time(&outcome));
            found.insert(cell, outcome);
            ended(Ended { cells: found.len(), idle });
        }
        Ok(self.results(facts, |cell| found[cell].clone()))
    }

    fn real_cell(
        &self,
        facts: &TargetFacts,
        cell: &CellSpec,
        open: &mut impl FnMut(&CellSpec, u32, u32) -> Result<Box<dyn Target>, TargetError>,
        sound: &impl Fn() -> Result<(), TargetError>,
    ) -> Result<Measurement, TargetError> {
        let capacity = facts.capacity.get();
        let result = match (&self.beside, &cell.pattern, self.trace) {
            (Some(beside), ..) => beside.measure(cell, capacity),
            (None, Pattern::Trace(_), Some(trace)) => fits(trace.bytes_max(), capacity).and_then(|()| {
                let mut target = open(cell, trace.bytes_max(), replay_outstanding(trace))?;
                replay(&mut *target, cell, trace)
            }),
            _ => footprint(cell, capacity).and_then(|(bytes, outstanding)| {
                fits(bytes, capacity)?;
                let mut target = open(cell, bytes, outstanding)?;
                // A simulated machine is new for each cell. The cache of a real target holds data that the previous
                // cell has read, so each cell uses addresses of its own.
                let elsewhere = CellSpec { seed: mix(cell.seed ^ cell.digest()), ..cell.clone() };
                let result = measure(&mut *target, &elsewhere)?;
                Ok(CellResult { spec: cell.clone(), ..result })
            }),
        };
        if let Err(CellError::Target(error)) = result {
            return Err(error);
        }
        sound()?;
        let outcome = Measurement::from(result);
        if let Some(Err(error)) = self.store.map(|store| store.put(cell, &outcome)) {
            let name = facts.name.clone();
            return Err(TargetError::Gone { name, reason: format!("the result cannot be kept: {error}") });
        }
        Ok(outcome)
    }

    fn results(&self, facts: &TargetFacts, outcome: impl Fn(&CellSpec) -> Measurement) -> ReviewResults {
        let mut results = ReviewResults::new(&self.suite, facts, self.stamp);
        results.part = self.shard.map(|shard| PartOf { shard, machine: self.suite.machine.clone() });
        for method in &self.methods {
            results.methods.push(match self.refusal(method, facts) {
                Some(reason) => MethodOutcome::refused(method, reason),
                None => {
                    let cells = method.cells(&self.suite).into_iter();
                    let cells = cells.map(|cell| CellOutcome { outcome: outcome(&cell), cell });
                    MethodOutcome::new(method, cells.collect())
                }
            });
        }
        results
    }

    /// The effort on a real target: `seconds` of measurement for each cell, after a warm-up of a tenth of that time (at
    /// least one second).
    #[must_use]
    pub fn real_effort(seconds: u32) -> Effort {
        Effort { requests: u64::MAX, seconds_max: seconds, warm_seconds_max: (seconds / 10).max(1) }
    }
}

/// Can the target hold one request? If it is too small for one cell, that cell reports it and the others are measured.
fn fits(bytes: u32, capacity: u64) -> Result<(), CellError> {
    if u64::from(bytes) <= capacity {
        return Ok(());
    }
    let reason =
        format!("the target holds {capacity} bytes, less than one request of {bytes} bytes; use a larger target");
    Err(CellError::NotApplicable(reason))
}

/// The reason why a cell does not apply is known before any measurement.
fn took_no_time(outcome: &Measurement) -> bool {
    outcome.absence().is_some_and(|absence| absence.not_applicable)
}
