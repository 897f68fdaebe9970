//! Carrying a review out: on simulated machines by many threads, on a real target one cell after the other.

use super::{CellOutcome, MethodOutcome, ReviewResults};
use crate::cell::{
    footprint, measure, replay, replay_outstanding, run_cell, run_trace, CellError, CellResult, CellSpec, Effort,
    Pattern,
};
use crate::method::{Method, Suite};
use crate::reader::Trace;
use crate::run::{run_all, Outcome, Store};
use crate::target::{Target, TargetError, TargetFacts};
use openraid_models::Library;
use openraid_sim::random::mix;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A review that is to be carried out.
#[derive(Debug)]
pub struct Performance<'a> {
    /// System, subjects, effort, seed.
    pub suite: Suite,
    /// Methods, in the order of showing.
    pub methods: Vec<&'static Method>,
    /// The requests of cells that replay a trace.
    pub trace: Option<&'a Trace>,
    /// Where cells are kept.
    pub store: Option<&'a Store>,
    /// Version of program and profiles.
    pub stamp: &'a str,
}

impl Performance<'_> {
    /// All cells without repetition: methods share some.
    #[must_use]
    pub fn cells(&self) -> Vec<CellSpec> {
        let mut seen = BTreeMap::new();
        let mut cells = Vec::new();
        for cell in self.methods.iter().flat_map(|method| method.cells(&self.suite)) {
            if seen.insert(cell.clone(), ()).is_none() {
                cells.push(cell);
            }
        }
        cells
    }

    /// On simulated machines. `ended` is told how many cells have come to an end.
    ///
    /// # Errors
    /// A cell cannot be kept: the first reason.
    pub fn simulated(
        &self,
        library: &Library,
        facts: &TargetFacts,
        threads: usize,
        ended: impl Fn(usize) + Sync,
    ) -> Result<ReviewResults, String> {
        let cells = self.cells();
        let trouble: Mutex<Option<String>> = Mutex::new(None);
        let work = |cell: &CellSpec| {
            if let Some(kept) = self.store.and_then(|store| store.get(cell)) {
                return kept;
            }
            let outcome = Outcome::from(match (&cell.pattern, self.trace) {
                (Pattern::Trace(_), Some(trace)) => run_trace(library, cell, trace),
                _ => run_cell(library, cell),
            });
            if let Some(Err(error)) = self.store.map(|store| store.put(cell, &outcome)) {
                trouble.lock().expect("nobody panics with the lock").get_or_insert(error.to_string());
            }
            outcome
        };
        let go_on = |done| {
            ended(done);
            trouble.lock().expect("nobody panics with the lock").is_none()
        };
        let outcomes = run_all(&cells, threads, work, go_on);
        if let Some(reason) = trouble.into_inner().expect("nobody panics with the lock") {
            return Err(reason);
        }
        let found: BTreeMap<CellSpec, Outcome> =
            cells.into_iter().zip(outcomes).filter_map(|(cell, outcome)| Some((cell, outcome?))).collect();
        Ok(self.results(facts, |cell| found[cell].clone()))
    }

    /// On a real target, which `open` opens for a largest request and most outstanding ones.
    ///
    /// # Errors
    /// The target cannot be opened or is gone.
    pub fn real(
        &self,
        facts: &TargetFacts,
        mut open: impl FnMut(u32, u32) -> Result<Box<dyn Target>, TargetError>,
        mut ended: impl FnMut(usize),
    ) -> Result<ReviewResults, TargetError> {
        let mut found = BTreeMap::new();
        let fit = |method: &&&Method| method.refusal(facts).is_none();
        for method in self.methods.iter().filter(fit) {
            for cell in method.cells(&self.suite) {
                if found.contains_key(&cell) {
                    continue;
                }
                let outcome = match self.store.and_then(|store| store.get(&cell)) {
                    Some(kept) => kept,
                    None => self.real_cell(facts, &cell, &mut open)?,
                };
                found.insert(cell, outcome);
                ended(found.len());
            }
        }
        Ok(self.results(facts, |cell| found[cell].clone()))
    }

    fn real_cell(
        &self,
        facts: &TargetFacts,
        cell: &CellSpec,
        open: &mut impl FnMut(u32, u32) -> Result<Box<dyn Target>, TargetError>,
    ) -> Result<Outcome, TargetError> {
        let result = match (&cell.pattern, self.trace) {
            (Pattern::Trace(_), Some(trace)) => {
                let target = open(trace.bytes_max(), replay_outstanding(trace)).map_err(CellError::from);
                target.and_then(|mut target| replay(&mut *target, cell, trace))
            }
            _ => footprint(cell, facts.capacity.get()).and_then(|(bytes, outstanding)| {
                let mut target = open(bytes, outstanding)?;
                // A simulated machine is new for each cell. A real one keeps in its cache what the cell before read, so
                // each cell asks for places of its own.
                let elsewhere = CellSpec { seed: mix(cell.seed ^ cell.digest()), ..cell.clone() };
                let result = measure(&mut *target, &elsewhere)?;
                Ok(CellResult { spec: cell.clone(), ..result })
            }),
        };
        if let Err(CellError::Target(error)) = result {
            return Err(error);
        }
        let outcome = Outcome::from(result);
        if let Some(Err(error)) = self.store.map(|store| store.put(cell, &outcome)) {
            let name = facts.name.clone();
            return Err(TargetError::Gone { name, reason: format!("the result cannot be kept: {error}") });
        }
        Ok(outcome)
    }

    fn results(&self, facts: &TargetFacts, outcome: impl Fn(&CellSpec) -> Outcome) -> ReviewResults {
        let mut results = ReviewResults::new(&self.suite, facts, self.stamp);
        for method in &self.methods {
            results.methods.push(match method.refusal(facts) {
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

    /// Effort on a real target: so many seconds of each cell, after a tenth of them (at least one) to warm up.
    #[must_use]
    pub fn real_effort(seconds: u32) -> Effort {
        Effort { requests: u64::MAX, seconds_max: seconds, warm_seconds_max: (seconds / 10).max(1) }
    }
}
