//! The runs of a plan: first every level as it was asked for, then beside each that can be the states, the cache and
//! what tells how sure it is. All runs are in one list, so that threads and progress do not wait for a whole level.

use super::sure::Runs;
use super::values::{uncertain, Uncertain};
use super::{speed, survives, Bottleneck, LevelPlan, Missing, PlanRequest, Planned, Speed};
use crate::cell::{machine_spec, run_cell, run_cell_with, ArrayState, CacheMode, CellError, CellResult, Level};
use crate::run::run_all;
use openraid_models::{Edge, Library};

/// Seeds besides the one that is asked for: the next ones. Two, for with three figures one that is far out is seen.
const OTHER_SEEDS: u64 = 2;
const ENDS: [Edge; 2] = [Edge::Low, Edge::High];

/// A run beside the healthy one.
#[derive(Clone, Copy)]
enum Beside {
    Seed(u64),
    State(ArrayState),
    WriteThrough,
    /// An uncertain value, by its number, at an end of its range.
    Value(usize, Edge),
}

type Ran = Result<CellResult, CellError>;

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
        let at_most: usize =
            self.levels.iter().map(|level| 1 + self.besides(library, *level, &values, true).len()).sum();
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
        for (number, (level, result)) in self.levels.iter().zip(&healthy).enumerate() {
            let Ok(result) = result else { continue };
            let besides = self.besides(library, *level, &values, result.writes.requests > 0);
            runs.extend(besides.into_iter().map(|beside| (number, beside)));
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

    /// The runs beside the healthy one of a level.
    fn besides(&self, library: &Library, level: Level, values: &[Uncertain], writes: bool) -> Vec<Beside> {
        let mut runs: Vec<Beside> = (1..=OTHER_SEEDS).map(|by| Beside::Seed(self.seed.wrapping_add(by))).collect();
        if survives(level, self.drives).0 > 0 {
            runs.extend([Beside::State(ArrayState::Degraded(1)), Beside::State(ArrayState::Rebuilding)]);
        }
        if self.no_cache_to_compare(library, writes).is_none() {
            runs.push(Beside::WriteThrough);
        }
        runs.extend((0..values.len()).flat_map(|value| ENDS.map(|end| Beside::Value(value, end))));
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
            Beside::Seed(seed) => cell.seed = seed,
            Beside::State(state) => cell.state = state,
            Beside::WriteThrough => cell.axes.cache = Some(CacheMode::WriteThrough),
            Beside::Value(number, end) => {
                let mut spec = machine_spec(library, &cell)?;
                values[number].put(library, &mut spec, end)?;
                return run_cell_with(library, &cell, &spec);
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
        let mut runs = Runs {
            base: healthy.iops,
            seeds: Vec::new(),
            values: values.iter().map(|value| (value.to_string(), [None; 2])).collect(),
        };
        let (mut degraded, mut rebuilding, mut through): (Option<Speed>, Option<Speed>, Option<f64>) =
            Default::default();
        for (beside, result) in ran {
            if let Err(error) = &result {
                missing.push(Missing { what: what(beside, &runs), reason: error.to_string(), failed: true });
            }
            let result = result.ok();
            let iops = result.as_ref().map(|result| result.iops);
            match beside {
                Beside::Seed(_) => runs.seeds.push(iops),
                Beside::State(ArrayState::Rebuilding) => rebuilding = result.as_ref().map(speed),
                Beside::State(_) => degraded = result.as_ref().map(speed),
                Beside::WriteThrough => through = iops,
                Beside::Value(number, end) => runs.values[number].1[usize::from(end == Edge::High)] = iops,
            }
        }
        let doubt = runs.doubt();
        let (uncertain_percent, chance_percent, mut uncertain) = (doubt.total(), doubt.chance, doubt.values);
        uncertain.sort_by(|one, two| two.1.total_cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
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
        Beside::Seed(_) => "chance".into(),
        Beside::State(ArrayState::Rebuilding) => "rebuilding".into(),
        Beside::State(_) => "degraded".into(),
        Beside::WriteThrough => "write_back_ratio".into(),
        Beside::Value(number, _) => runs.values[number].0.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::Part;
    use super::*;
    use crate::cell::{Axes, Effort, Pattern};

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
            (Beside::Seed(2), Ok(CellResult { iops: healthy.iops * 1.02, ..healthy.clone() })),
            (Beside::State(ArrayState::Degraded(1)), failed()),
            (Beside::State(ArrayState::Rebuilding), Ok(healthy.clone())),
            (Beside::Value(0, Edge::High), failed()),
        ];
        let plan = request.level(&library, Level::Raid5, &healthy, ran, &[value]);
        assert!(plan.degraded.is_none() && plan.rebuilding.is_some());
        let told: Vec<_> = plan.missing.iter().map(|it| (it.what.as_str(), it.reason.as_str(), it.failed)).collect();
        let reason = "no request has ended";
        assert_eq!(told, [("degraded", reason, true), ("wd740gd: seek.average_ms", reason, true)]);
        assert!((plan.chance_percent - 2.0).abs() < 1e-9 && (plan.uncertain_percent - 2.0).abs() < 1e-9);
    }
}
