//! The runs of a plan: first every level as it was asked for, then beside each that can be the states, the cache and
//! what tells how sure it is, and beside the best of them other sizes of the cache. All runs are in one list, so that threads and progress do not wait for a whole level.

use super::range::{Ran, Range, Variation};
use super::sure::Runs;
use super::values::{uncertain, Uncertain};
use super::{speed, survives, Bottleneck, CacheSize, LevelPlan, Missing, PlanRequest, Planned, Speed};
use crate::cell::{machine_spec, run_cell, ArrayState, CacheMode, CellError, CellResult, CellSpec, Level};
use crate::run::run_all;
use openraid_models::Library;
use openraid_units::Bytes;

/// How much larger, and how much smaller, the cache is that the best level is looked at with.
const OTHER_CACHE: u32 = 4;

/// A run beside the healthy one.
#[derive(Clone, Copy)]
enum Beside {
    Vary(Variation),
    State(ArrayState),
    WriteThrough,
    /// A cache of so many MiB.
    Cache(u32),
}

impl PlanRequest {
    /// All levels, measured in all their states by so many threads. `ended` is told after each run how many are done,
    /// and of how many: fewer once it is known which levels can be.
    ///
    /// # Errors
    /// A profile that is not there, an axis that is wrong: no level can be planned.
    pub fn run(
        &self,
        library: &Library,
        threads: usize,
        ended: impl Fn(usize, usize) + Sync,
    ) -> Result<Vec<Planned>, CellError> {
        let Some(first) = self.levels.first() else { return Ok(Vec::new()) };
        let values = uncertain(library, &self.cell(*first, ArrayState::Healthy))?;
        let caches = self.other_caches(library, *first)?;
        let at_most: usize =
            self.levels.iter().map(|level| 1 + self.besides(library, *level, &values, true).len()).sum();
        let at_most = at_most + caches.len();
        let told = |before: usize, all: usize| {
            let ended = &ended;
            move |done: usize| {
                ended(before + done, all);
                true
            }
        };
        let healthy = |level: &Level| run_cell(library, &self.cell(*level, ArrayState::Healthy));
        let healthy: Vec<Ran> =
            run_all(&self.levels, threads, healthy, told(0, at_most)).into_iter().flatten().collect();
        let mut runs: Vec<(usize, Beside)> = Vec::new();
        let best = self.best(&healthy);
        for (number, (level, result)) in self.levels.iter().zip(&healthy).enumerate() {
            let Ok(result) = result else { continue };
            let besides = self.besides(library, *level, &values, result.writes.requests > 0);
            runs.extend(besides.into_iter().map(|beside| (number, beside)));
            let caches = caches.iter().filter(|_| best == Some(number));
            runs.extend(caches.map(|mib| (number, Beside::Cache(*mib))));
        }
        let one = |(number, beside): &(usize, Beside)| self.beside(library, self.levels[*number], *beside, &values);
        let before = healthy.len();
        let ran = run_all(&runs, threads, one, told(before, before + runs.len()));
        let mut ran = runs.iter().zip(ran.into_iter().flatten()).peekable();
        let mut planned = Vec::new();
        for (number, (level, healthy)) in self.levels.iter().zip(healthy).enumerate() {
            let mut own = Vec::new();
            while let Some(((_, beside), result)) = ran.next_if(|((of, _), _)| *of == number) {
                own.push((*beside, result));
            }
            planned.push(match healthy {
                Ok(healthy) => Planned::Possible(Box::new(self.level(library, *level, &healthy, own, &values))),
                Err(CellError::Impossible(reason) | CellError::NotApplicable(reason)) => {
                    Planned::Impossible { array: self.cell(*level, ArrayState::Healthy).subject, reason }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(planned)
    }

    /// The fastest of the levels that survive a failure, or where none does of all: by its place.
    fn best(&self, healthy: &[Ran]) -> Option<usize> {
        let known = self.levels.iter().zip(healthy).enumerate();
        let known = known.filter_map(|(number, (level, ran))| {
            Some((survives(*level, self.drives).0 > 0, ran.as_ref().ok()?.iops, number))
        });
        known.max_by(|one, two| one.0.cmp(&two.0).then(one.1.total_cmp(&two.1))).map(|(_, _, number)| number)
    }

    /// The cache of the machine as it was asked for, MiB; 0 where it has none.
    fn cache_mib(&self, library: &Library, level: Level) -> Result<u32, CellError> {
        let spec = machine_spec(library, &self.cell(level, ArrayState::Healthy))?;
        let cache = spec.cache_bytes.unwrap_or(spec.controller.cache.value);
        Ok(u32::try_from(cache.get() / Bytes::mib(1).get()).unwrap_or(u32::MAX))
    }

    /// Other sizes of the cache that are worth a look, MiB: none where there is no cache.
    fn other_caches(&self, library: &Library, level: Level) -> Result<Vec<u32>, CellError> {
        let own = self.cache_mib(library, level)?;
        let sizes = [own / OTHER_CACHE, own.saturating_mul(OTHER_CACHE)];
        let fits = |mib: &u32| {
            let mut cell = self.cell(level, ArrayState::Healthy);
            cell.axes.cache_mib = Some(*mib);
            *mib > 0 && cell.axes.check().is_ok()
        };
        Ok(sizes.into_iter().filter(fits).collect())
    }

    /// The runs beside the healthy one of a level.
    fn besides(&self, library: &Library, level: Level, values: &[Uncertain], writes: bool) -> Vec<Beside> {
        let mut runs: Vec<Beside> = Variation::all(self.seed, values.len()).map(Beside::Vary).collect();
        if survives(level, self.drives).0 > 0 {
            runs.extend([Beside::State(ArrayState::Degraded(1)), Beside::State(ArrayState::Rebuilding)]);
        }
        if self.no_cache_to_compare(library, writes).is_none() {
            runs.push(Beside::WriteThrough);
        }
        runs
    }

    /// Why write-back and write-through are not compared.
    fn no_cache_to_compare(&self, library: &Library, writes: bool) -> Option<&'static str> {
        let can = library.controller(&self.system).is_ok_and(|controller| controller.write_back);
        match (can, writes, self.axes.cache) {
            (false, ..) => Some("no write cache"),
            (_, false, _) => Some("no writes"),
            (.., Some(CacheMode::WriteThrough)) => Some("switched off"),
            _ => None,
        }
    }

    fn beside(&self, library: &Library, level: Level, beside: Beside, values: &[Uncertain]) -> Ran {
        let mut cell = self.cell(level, ArrayState::Healthy);
        match beside {
            Beside::Vary(variation) => return variation.run(library, &cell, values),
            Beside::State(state) => cell.state = state,
            Beside::WriteThrough => cell.axes.cache = Some(CacheMode::WriteThrough),
            Beside::Cache(mib) => {
                // A larger one takes longer to fill.
                let longer = if mib > self.cache_mib(library, level)? { OTHER_CACHE } else { 1 };
                cell = cell_with_cache(cell, mib, longer);
            }
        }
        run_cell(library, &cell)
    }

    fn level(
        &self,
        library: &Library,
        level: Level,
        healthy: &CellResult,
        ran: Vec<(Beside, Ran)>,
        values: &[Uncertain],
    ) -> LevelPlan {
        let survives = survives(level, self.drives);
        let mut missing: Vec<Missing> = Vec::new();
        let mut plain = |what: &str, reason: &str| {
            missing.push(Missing { what: what.into(), reason: reason.into(), failed: false });
        };
        if survives.0 == 0 {
            plain("degraded", "data lost");
            plain("rebuilding", "data lost");
        }
        if let Some(reason) = self.no_cache_to_compare(library, healthy.writes.requests > 0) {
            plain("write_back_ratio", reason);
        }
        let mut runs = Runs::new(healthy.iops, values);
        let mut cache_sizes: Vec<CacheSize> = Vec::new();
        let (mut degraded, mut rebuilding, mut through): (Option<Speed>, Option<Speed>, Option<f64>) =
            Default::default();
        for (beside, result) in ran {
            if let Err(error) = &result {
                missing.push(Missing { what: what(beside, &runs), reason: error.to_string(), failed: true });
            }
            let result = result.ok();
            let iops = result.as_ref().map(|result| result.iops);
            match beside {
                Beside::Vary(variation) => variation.note(&mut runs, iops),
                Beside::State(ArrayState::Rebuilding) => rebuilding = result.as_ref().map(speed),
                Beside::State(_) => degraded = result.as_ref().map(speed),
                Beside::WriteThrough => through = iops,
                Beside::Cache(mib) => {
                    cache_sizes.extend(result.as_ref().map(|result| cache_size(mib, result, healthy)));
                }
            }
        }
        let Range { uncertain_percent, chance_percent, uncertain, missing } = Range::of(&runs, missing);
        LevelPlan {
            array: healthy.spec.subject,
            capacity: healthy.capacity,
            survives,
            healthy: speed(healthy),
            degraded,
            rebuilding,
            bottleneck: healthy.bottleneck().map(|part| Bottleneck {
                part: part.name.clone(),
                of_members: healthy.member_part().filter(|_| part.name == "members").map(Into::into),
                busy: part.busy,
            }),
            cache_mib: self.cache_mib(library, level).unwrap_or(0),
            cache_sizes,
            write_back_ratio: through.map(|through| healthy.iops / through),
            uncertain_percent,
            chance_percent,
            uncertain,
            missing,
            runs,
        }
    }
}

/// The figure that a run is for.
fn what(beside: Beside, runs: &Runs) -> String {
    match beside {
        Beside::Vary(variation) => variation.what(runs),
        Beside::State(ArrayState::Rebuilding) => "rebuilding".into(),
        Beside::State(_) => "degraded".into(),
        Beside::WriteThrough => "write_back_ratio".into(),
        Beside::Cache(mib) => format!("cache of {mib} MiB"),
    }
}

/// A cell with another cache, which may take so many times as long to become steady.
fn cell_with_cache(mut cell: CellSpec, mib: u32, longer: u32) -> CellSpec {
    cell.axes.cache_mib = Some(mib);
    cell.effort.warm_seconds_max = cell.effort.warm_seconds_max.saturating_mul(longer);
    cell
}

fn cache_size(cache_mib: u32, result: &CellResult, healthy: &CellResult) -> CacheSize {
    CacheSize {
        cache_mib,
        speed: speed(result),
        change_percent: (result.iops / healthy.iops - 1.0) * 100.0,
        steady: !result.is_unsteady() && !healthy.is_unsteady(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::Part;
    use super::*;
    use crate::cell::{Axes, Effort, Pattern};
    use openraid_models::Edge;

    #[test]
    fn a_run_that_failed_is_told_with_its_reason() {
        let request = PlanRequest {
            system: "3ware-9650se".into(),
            drive: None,
            drives: 4,
            levels: vec![Level::Raid5],
            pattern: Pattern::Database,
            axes: Axes::default(),
            effort: Effort { requests: 500, ..Effort::QUICK },
            seed: 1,
        };
        let library = Library::builtin();
        let healthy = run_cell(&library, &request.cell(Level::Raid5, ArrayState::Healthy)).unwrap();
        let value = Uncertain { part: Part::Drive, whose: "wd740gd".into(), field: "seek.average_ms".into() };
        let failed = || Err(CellError::Failed("no request has ended".into()));
        let ran = vec![
            (Beside::Vary(Variation::Seed(2)), Ok(CellResult { iops: healthy.iops * 1.02, ..healthy.clone() })),
            (Beside::State(ArrayState::Degraded(1)), failed()),
            (Beside::State(ArrayState::Rebuilding), Ok(healthy.clone())),
            (Beside::Vary(Variation::Value(0, Edge::High)), failed()),
        ];
        let plan = request.level(&library, Level::Raid5, &healthy, ran, &[value]);
        assert!(plan.degraded.is_none() && plan.rebuilding.is_some());
        let told: Vec<_> = plan.missing.iter().map(|it| (it.what.as_str(), it.reason.as_str(), it.failed)).collect();
        let reason = "no request has ended";
        assert_eq!(told, [("degraded", reason, true), ("wd740gd: seek.average_ms", reason, true)]);
        assert!((plan.chance_percent - 2.0).abs() < 1e-9 && (plan.uncertain_percent - 2.0).abs() < 1e-9);
    }
}
