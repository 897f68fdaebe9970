//! The runs of a plan. First every level is measured as requested. Then each possible level is measured in its other
//! states and during a rebuild, and with the runs that determine the uncertainty. All runs of a stage are in one list,
//! so that threads and progress do not wait for a whole level.
//!
//! ```text
//!   healthy    every level, the requested seed
//!   beside     other seeds, other places of the load if its place is not known, degraded, rebuilding at three positions
//!              if thorough: the values of the profiles, the other mode of the cache, and for the best level other sizes
//!              if there is a journal: the same without it
//!   contest    one more seed for levels that are not yet distinguished from the best one, until they are, or until the
//!              difference is too small to matter
//! ```

use super::knowledge::{knows_place, Knowledge};
use super::rebuild::{MIDDLE, PLACES};
use super::uncertain_values::{uncertain, Uncertain};
use super::uncertainty::Runs;
use super::varied_runs::{run_either, Ran, Variation, ENDS, OTHER_SEEDS};
use super::{merit, pairs, survives, LevelPlan, Missing, PlanRequest, Planned};
use crate::cell::{machine_spec, ArrayState, CacheMode, CellError, CellResult, CellSpec, Level};
use crate::run::run_all;
use openraid_models::{Edge, Library};
use openraid_units::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Factor between the present cache size and the larger and smaller sizes that are tried for the best level.
pub(super) const OTHER_CACHE: u32 = 4;
/// Maximum number of seeds of a level.
const SEEDS_MAX: usize = 8;
/// Two levels count as equal if the range of their difference is within this percentage.
const SAME_PERCENT: f64 = 2.0;

/// Limit for a plan that does not vary the values of the profiles: see [`PlanRequest::events_max`]. The plan of the
/// README takes an eighth of this limit (23.5 million events, 4.5 s of one processor).
const EVENTS_MAX_QUICK: u64 = 200_000_000;
/// Limit for a plan that varies the values of the profiles.
const EVENTS_MAX_THOROUGH: u64 = 20_000_000_000;
/// Maximum number of runs between two checks of the limit.
const BATCH_RUNS: usize = 32;
/// The reason of figures that are missing because the limit was reached.
pub const EVENT_LIMIT: &str = "event limit";

/// See [`PlanRequest::events_max`].
#[must_use]
pub const fn events_max(thorough: bool) -> u64 {
    if thorough {
        EVENTS_MAX_THOROUGH
    } else {
        EVENTS_MAX_QUICK
    }
}

/// Counts the simulated events of a plan's runs.
struct EventLimit {
    spent: AtomicU64,
    /// The largest run so far.
    largest: AtomicU64,
    max: u64,
}

impl EventLimit {
    const fn new(max: u64) -> Self {
        Self { spent: AtomicU64::new(0), largest: AtomicU64::new(0), max }
    }

    fn is_reached(&self) -> bool {
        self.spent.load(Ordering::Relaxed) >= self.max
    }

    /// Does a run, and counts its events.
    fn count<R>(&self, run: impl FnOnce(&AtomicU64) -> R) -> R {
        let events = AtomicU64::new(0);
        let result = run(&events);
        let events = events.into_inner();
        self.spent.fetch_add(events, Ordering::Relaxed);
        self.largest.fetch_max(events, Ordering::Relaxed);
        result
    }

    /// Number of runs before the next check. If each is as large as the largest run before, they stay within the limit.
    /// The number depends only on the runs that have ended, not on the number of threads.
    fn batch(&self) -> usize {
        let left = self.max.saturating_sub(self.spent.load(Ordering::Relaxed));
        let runs = left / self.largest.load(Ordering::Relaxed).max(1);
        usize::try_from(runs).unwrap_or(usize::MAX).clamp(1, BATCH_RUNS)
    }
}

/// A missing figure: the plan reached its limit and begins no more runs.
pub(super) fn beyond_the_limit(what: &str) -> Missing {
    Missing { what: what.into(), reason: EVENT_LIMIT.into(), failed: false }
}

/// A run in addition to the healthy one.
#[derive(Clone, Copy)]
pub(super) enum ExtraRun {
    Vary(Variation),
    Degraded,
    /// The load during a rebuild, at one of the positions. The number is added to the plan's seed.
    Loaded(usize, u64),
    /// A rebuild without load, at one of the positions; with an uncertain value at an end of its range, or without.
    Idle(usize, Option<(usize, Edge)>),
    /// Write-through if the level writes back, and write-back if it writes through. The number is added to the plan's
    /// seed.
    OtherMode(u64),
    /// The level without its journal. The number is added to the plan's seed.
    WithoutJournal(u64),
    /// A cache of this size in MiB. The second number is added to the plan's seed.
    Cache(u32, u64),
}

/// The result of such a run.
#[derive(Clone)]
pub(super) enum ExtraResult {
    Cell(Box<CellResult>),
    /// Rate of a rebuild in MB/s.
    Rate(f64),
}

/// The progress: the number of finished runs, and the number of all runs.
struct Counter<'a, F> {
    ended: &'a F,
    before: usize,
}

impl<F: Fn(usize, usize) + Sync> Counter<'_, F> {
    /// Does the next runs. Later stages add more runs; the progress counts these, too.
    fn run<I: Sync, R: Send>(
        &mut self,
        items: &[I],
        after: usize,
        threads: usize,
        work: impl Fn(&I) -> R + Sync,
    ) -> Vec<R> {
        let (before, all) = (self.before, self.before + items.len() + after);
        let ended = |done: usize| {
            (self.ended)(before + done, all);
            true
        };
        let ran = run_all(items, threads, work, ended);
        self.before += items.len();
        ran.into_iter().flatten().collect()
    }

    /// Does the next runs in batches, until the limit is reached. A run that is left out has no result.
    fn run_within<I: Sync, R: Send>(
        &mut self,
        items: &[I],
        threads: usize,
        limit: &EventLimit,
        work: impl Fn(&I) -> R + Sync,
    ) -> Vec<Option<R>> {
        let (mut ran, mut left) = (Vec::new(), items);
        while !left.is_empty() && !limit.is_reached() {
            let (batch, rest) = left.split_at(limit.batch().min(left.len()));
            ran.extend(self.run(batch, rest.len(), threads, &work).into_iter().map(Some));
            left = rest;
        }
        ran.extend(left.iter().map(|_| None));
        ran
    }
}

impl PlanRequest {
    /// The number of simulated events after which a plan begins no more runs.
    #[must_use]
    pub const fn events_max(&self) -> u64 {
        events_max(self.thorough)
    }

    /// Measures all levels in all their states with `threads` threads. `ended` is called at the start and after each
    /// run. It gets the number of finished runs and the number of all runs. The second number changes: it depends on
    /// which levels are possible, and on which levels need more seeds.
    ///
    /// # Errors
    /// No level can be planned, because a profile does not exist or an axis is wrong.
    pub fn run(
        &self,
        library: &Library,
        threads: usize,
        ended: impl Fn(usize, usize) + Sync,
    ) -> Result<Vec<Planned>, CellError> {
        self.run_within(library, threads, self.events_max(), ended)
    }

    /// Runs a plan with another limit than [`PlanRequest::events_max`]. Every level has its healthy run. A figure that
    /// is left out is missing with the reason [`EVENT_LIMIT`]. Which figures are left out depends on the request alone,
    /// not on the number of threads.
    ///
    /// # Errors
    /// As [`PlanRequest::run`].
    pub fn run_within(
        &self,
        library: &Library,
        threads: usize,
        events_max: u64,
        ended: impl Fn(usize, usize) + Sync,
    ) -> Result<Vec<Planned>, CellError> {
        let limit = EventLimit::new(events_max);
        let Some(first) = self.levels.first() else { return Ok(Vec::new()) };
        let values =
            if self.thorough { uncertain(library, &self.cell(*first, ArrayState::Healthy))? } else { Vec::new() };
        let caches = if self.thorough { self.other_caches(library, *first)? } else { Vec::new() };
        let besides = |level: Level, healthy: Option<&CellResult>| self.besides(library, level, &values, healthy);
        let more: usize = self.levels.iter().map(|level| besides(*level, None).len()).sum();
        let more = more + caches.len() * (0..=OTHER_SEEDS).count();
        ended(0, self.levels.len() + more);
        let mut counter = Counter { ended: &ended, before: 0 };
        let healthy =
            |level: &Level| limit.count(|events| self.one(library, &self.cell(*level, ArrayState::Healthy), events));
        let healthy: Vec<Ran> = counter.run(&self.levels, more, threads, healthy);
        let mut runs: Vec<(usize, ExtraRun)> = Vec::new();
        let best = self.best(&healthy);
        for (number, (level, result)) in self.levels.iter().zip(&healthy).enumerate() {
            let Ok(result) = result else { continue };
            let besides = besides(*level, Some(result));
            runs.extend(besides.into_iter().map(|beside| (number, beside)));
            let caches = caches.iter().filter(|_| best == Some(number));
            let seeded = |mib: &u32| (0..=OTHER_SEEDS).map(|by| ExtraRun::Cache(*mib, by)).collect::<Vec<_>>();
            runs.extend(caches.flat_map(seeded).map(|beside| (number, beside)));
        }
        let one = |(number, beside): &(usize, ExtraRun)| {
            limit.count(|events| self.beside(library, self.levels[*number], *beside, &values, events))
        };
        let ran = counter.run_within(&runs, threads, &limit, one);
        let mut ran = runs.iter().zip(ran).peekable();
        let mut planned = Vec::new();
        for (number, (level, healthy)) in self.levels.iter().zip(healthy).enumerate() {
            let mut variants = Vec::new();
            while let Some(((_, beside), result)) = ran.next_if(|((of, _), _)| *of == number) {
                variants.push((*beside, result));
            }
            planned.push(match healthy {
                Ok(healthy) => {
                    let knowledge = Knowledge::of(library, &healthy.spec, self.stand_ins)?;
                    Planned::Possible(Box::new(self.level(library, *level, &healthy, variants, &values, knowledge)))
                }
                Err(CellError::Impossible(reason) | CellError::NotApplicable(reason)) => {
                    Planned::Impossible { array: self.cell(*level, ArrayState::Healthy).subject, reason }
                }
                Err(error) => return Err(error),
            });
        }
        self.contest(library, threads, &limit, &mut counter, &mut planned);
        Ok(planned)
    }

    /// Runs one more seed for the levels that survive a failure and are not yet distinguished from the fastest of them.
    /// This ends if they are distinguished, or if the difference is too small to matter.
    fn contest<F: Fn(usize, usize) + Sync>(
        &self,
        library: &Library,
        threads: usize,
        limit: &EventLimit,
        counter: &mut Counter<'_, F>,
        planned: &mut [Planned],
    ) {
        loop {
            let close = self.close(planned);
            let [first, ..] = close.as_slice() else { return };
            if limit.is_reached() {
                for number in close {
                    if let Planned::Possible(plan) = &mut planned[number] {
                        plan.missing.push(beyond_the_limit("more seeds"));
                    }
                }
                return;
            }
            let Planned::Possible(first) = &planned[*first] else { return };
            let by = first.runs.seeds.len() as u64 + 1;
            let cell = |number: &usize| CellSpec {
                seed: self.seed.wrapping_add(by),
                ..self.cell(self.levels[*number], ArrayState::Healthy)
            };
            let one = |number: &usize| limit.count(|events| self.one(library, &cell(number), events));
            let ran = counter.run(&close, 0, threads, one);
            for (number, ran) in close.iter().zip(ran) {
                if let Planned::Possible(plan) = &mut planned[*number] {
                    plan.runs.seeds.push(ran.ok().as_ref().map(merit));
                }
            }
        }
    }

    /// The fastest level that survives a failure, and all levels that may be as fast, if another seed may distinguish
    /// them.
    fn close(&self, planned: &[Planned]) -> Vec<usize> {
        let safe = planned.iter().enumerate().filter_map(|(number, planned)| match planned {
            Planned::Possible(plan) if plan.survives.0 > 0 => Some((number, &**plan)),
            _ => None,
        });
        let safe: Vec<_> = safe.collect();
        let Some((best, fastest)) = safe.iter().max_by(|one, two| one.1.runs.base.total_cmp(&two.1.runs.base)) else {
            return Vec::new();
        };
        let is_open = |other: &&(usize, &LevelPlan)| {
            let (number, plan) = other;
            let lead = pairs::lead(&fastest.runs, &plan.runs).map(|lead| lead.gain);
            let bounds = lead.and_then(|lead| lead.low_percent.zip(lead.high_percent));
            let open = bounds.is_some_and(|(low, high)| low <= 0.0 && high - low > SAME_PERCENT);
            number != best && open && plan.runs.seeds.len() == fastest.runs.seeds.len()
        };
        let mut open: Vec<usize> = safe.iter().filter(is_open).map(|(number, _)| *number).collect();
        if open.is_empty() || fastest.runs.seeds.len() + 1 >= SEEDS_MAX {
            return Vec::new();
        }
        open.push(*best);
        open
    }

    /// The index of the fastest level that survives a failure. If no level survives one, the fastest of all.
    fn best(&self, healthy: &[Ran]) -> Option<usize> {
        let known = self.levels.iter().zip(healthy).enumerate();
        let known = known.filter_map(|(number, (level, ran))| {
            Some((survives(*level, self.drives).0 > 0, merit(ran.as_ref().ok()?), number))
        });
        known.max_by(|one, two| one.0.cmp(&two.0).then(one.1.total_cmp(&two.1))).map(|(_, _, number)| number)
    }

    /// The size of the machine's cache as requested, in MiB; 0 if there is no cache.
    pub(super) fn cache_mib(&self, library: &Library, level: Level) -> Result<u32, CellError> {
        let spec = machine_spec(library, &self.cell(level, ArrayState::Healthy))?;
        Ok(u32::try_from(spec.cache_size().get() / Bytes::mib(1).get()).unwrap_or(u32::MAX))
    }

    /// Other sizes of the cache that the plan tries, in MiB. There are none if there is no cache.
    fn other_caches(&self, library: &Library, level: Level) -> Result<Vec<u32>, CellError> {
        let mib = self.cache_mib(library, level)?;
        let sizes = [mib / OTHER_CACHE, mib.saturating_mul(OTHER_CACHE)];
        let fits = |mib: &u32| {
            let mut cell = self.cell(level, ArrayState::Healthy);
            cell.axes.cache_mib = Some(*mib);
            *mib > 0 && cell.axes.check().is_ok()
        };
        Ok(sizes.into_iter().filter(fits).collect())
    }

    /// The additional runs of a level, whose healthy run is known or still to come.
    fn besides(
        &self,
        library: &Library,
        level: Level,
        values: &[Uncertain],
        healthy: Option<&CellResult>,
    ) -> Vec<ExtraRun> {
        let writes = healthy.is_none_or(|healthy| healthy.writes.requests > 0);
        let place = healthy.filter(|healthy| !knows_place(&healthy.spec)).map(|healthy| healthy.capacity);
        let mut runs: Vec<ExtraRun> = Variation::all(self.seed, values.len(), place).map(ExtraRun::Vary).collect();
        if survives(level, self.drives).0 > 0 {
            runs.push(ExtraRun::Degraded);
            runs.extend((0..PLACES.len()).flat_map(|at| [ExtraRun::Loaded(at, 0), ExtraRun::Idle(at, None)]));
            runs.extend((1..=OTHER_SEEDS).map(|by| ExtraRun::Loaded(MIDDLE, by)));
            let ends = (0..values.len()).flat_map(|value| ENDS.map(|end| (value, end)));
            runs.extend(ends.map(|end| ExtraRun::Idle(MIDDLE, Some(end))));
        }
        if self.axes.journal.is_some() {
            runs.extend((0..=OTHER_SEEDS).map(ExtraRun::WithoutJournal));
        }
        if self.thorough && self.no_cache_to_compare(library, writes).is_none() {
            runs.extend((0..=OTHER_SEEDS).map(ExtraRun::OtherMode));
        }
        runs
    }

    /// The reason why write-back and write-through are not compared.
    pub(super) fn no_cache_to_compare(&self, library: &Library, writes: bool) -> Option<&'static str> {
        let can = library.controller(&self.system).is_ok_and(|controller| controller.write_back);
        match (can, writes, self.axes.cache) {
            (false, ..) => Some("no write cache"),
            (_, false, _) => Some("no writes"),
            (.., Some(CacheMode::WriteThrough)) => Some("switched off"),
            _ if self.axes.journal.is_some() => Some("a journal"),
            _ if !self.thorough => Some("not run"),
            _ => None,
        }
    }

    /// The result of a cell, with the trace as its load if the plan has one.
    fn one(&self, library: &Library, cell: &CellSpec, events: &AtomicU64) -> Ran {
        run_either(library, cell, self.trace.as_deref(), events)
    }

    fn beside(
        &self,
        library: &Library,
        level: Level,
        beside: ExtraRun,
        values: &[Uncertain],
        events: &AtomicU64,
    ) -> Result<ExtraResult, CellError> {
        let mut cell = self.cell(level, ArrayState::Healthy);
        let ran = match beside {
            ExtraRun::Vary(variation) => variation.run(library, &cell, values, self.trace.as_deref(), events),
            ExtraRun::Loaded(place, by) => self.loaded(library, level, (PLACES[place], by), events),
            ExtraRun::Idle(place, varied) => {
                let varied = varied.map(|(value, end)| (&values[value], end));
                return self.idle(library, level, (PLACES[place], varied), events).map(ExtraResult::Rate);
            }
            ExtraRun::Degraded => self.one(library, &CellSpec { state: ArrayState::Degraded(1), ..cell }, events),
            ExtraRun::OtherMode(by) => {
                let back = machine_spec(library, &cell)?.writes_back();
                cell.axes.cache = Some(if back { CacheMode::WriteThrough } else { CacheMode::WriteBack });
                cell.seed = cell.seed.wrapping_add(by);
                self.one(library, &cell, events)
            }
            ExtraRun::WithoutJournal(by) => {
                // The array is served without a journal. A requested cache then only serves reads.
                cell.axes.journal = None;
                cell.axes.cache = cell.axes.cache_mib.map(|_| CacheMode::WriteThrough);
                cell.seed = cell.seed.wrapping_add(by);
                self.one(library, &cell, events)
            }
            ExtraRun::Cache(mib, by) => {
                // A larger cache takes longer to fill.
                let longer = if mib > self.cache_mib(library, level)? { OTHER_CACHE } else { 1 };
                cell.seed = cell.seed.wrapping_add(by);
                self.one(library, &cell_with_cache(cell, mib, longer), events)
            }
        };
        ran.map(|ran| ExtraResult::Cell(Box::new(ran)))
    }
}

/// The figure that a run is for.
pub(super) fn what(beside: ExtraRun, runs: &Runs) -> String {
    match beside {
        ExtraRun::Vary(variation) => variation.what(runs),
        ExtraRun::Degraded => "degraded".into(),
        ExtraRun::Loaded(0, _) => "rebuilding".into(),
        ExtraRun::Loaded(..) | ExtraRun::Idle(..) => "rebuild".into(),
        ExtraRun::OtherMode(_) => "write_back_ratio".into(),
        ExtraRun::WithoutJournal(_) => "without journal".into(),
        ExtraRun::Cache(mib, _) => format!("cache of {mib} MiB"),
    }
}

/// A cell with another size of the cache. `longer` multiplies the time that the cell may take to become steady.
fn cell_with_cache(mut cell: CellSpec, mib: u32, longer: u32) -> CellSpec {
    cell.axes.cache_mib = Some(mib);
    cell.effort.warm_seconds_max = cell.effort.warm_seconds_max.saturating_mul(longer);
    cell
}
