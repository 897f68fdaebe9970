//! The results of the runs of one level.

use super::data_loss_risk::{over_years, risk, Frailty, Risk};
use super::electricity::Energy;
use super::journal::JournalEffect;
use super::knowledge::Knowledge;
use super::model_error::LoadClass;
use super::pairs::gain;
use super::rebuild::{Rebuild, RebuildRuns};
use super::run::{beyond_the_limit, what, ExtraResult, ExtraRun};
use super::uncertain_values::Uncertain;
use super::uncertainty::Runs;
use super::varied_runs::Range;
use super::{merit, speed, survives, Bottleneck, CacheSize, Gain, LevelPlan, LossRisk, Missing, PlanRequest, Speed};
use crate::cell::{machine_spec, CellError, CellResult, Flag, Level, Pattern};
use openraid_models::{Confidence, Library};
use openraid_sim::machine::MachineSpec;

/// From this mean size in bytes on, requests are large, and their speed is in MB each second.
const LARGE_REQUEST: f64 = 65_536.0;

/// The runs of a level, grouped by purpose.
#[derive(Default)]
struct Sorted {
    degraded: Option<Speed>,
    rebuilding: Option<Speed>,
    rebuild: RebuildRuns,
    /// Requests per second in the other mode of the cache, by seed.
    other: Vec<Option<f64>>,
    /// Results without the journal, by seed.
    bare: Vec<Option<CellResult>>,
    /// Results with other sizes of the cache, by seed.
    sizes: Vec<(u32, Vec<Option<CellResult>>)>,
    /// The first flag of each run other than the healthy one, with the name of the run.
    flags: Vec<(String, Flag)>,
    /// The names of the runs other than the healthy one whose load had not become steady.
    unsteady: Vec<String>,
}

impl Sorted {
    /// The results of runs. Those of the healthy array go to `runs`, and runs without a result are missing.
    fn of(
        ran: Vec<(ExtraRun, Option<Result<ExtraResult, CellError>>)>,
        runs: &mut Runs,
        missing: &mut Vec<Missing>,
    ) -> Self {
        let mut sorted = Self::default();
        for (beside, result) in ran {
            match &result {
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    missing.push(Missing { what: what(beside, runs), reason: error.to_string(), failed: true });
                }
                None => missing.push(beyond_the_limit(&what(beside, runs))),
            }
            sorted.put(beside, result.and_then(Result::ok), runs);
        }
        sorted
    }

    fn put(&mut self, beside: ExtraRun, found: Option<ExtraResult>, runs: &mut Runs) {
        let cell = match &found {
            Some(ExtraResult::Cell(cell)) => Some(&**cell),
            _ => None,
        };
        let iops = cell.map(merit);
        // A run with a varied value would repeat what the base run has, so it is left out.
        if let Some(cell) = cell.filter(|_| !matches!(beside, ExtraRun::Vary(_))) {
            let name = what(beside, runs);
            if let Some(flag) = cell.flags.first().filter(|_| self.flags.iter().all(|(known, _)| *known != name)) {
                self.flags.push((name.clone(), flag.clone()));
            }
            if cell.is_unsteady() && !self.unsteady.contains(&name) {
                self.unsteady.push(name);
            }
        }
        match beside {
            ExtraRun::Vary(variation) => variation.note(runs, iops),
            ExtraRun::Degraded => self.degraded = cell.map(speed),
            ExtraRun::Loaded(place, by) => {
                self.rebuild.loaded(place, by, cell.and_then(|cell| cell.rebuild_mbps));
                if place == 0 {
                    self.rebuilding = cell.map(speed);
                }
            }
            ExtraRun::Idle(place, varied) => {
                if let Some(ExtraResult::Rate(rate)) = found {
                    self.rebuild.idle(place, varied, rate);
                }
            }
            ExtraRun::OtherMode(_) => self.other.push(iops),
            ExtraRun::WithoutJournal(_) => self.bare.push(cell.cloned()),
            ExtraRun::Cache(mib, _) => {
                if self.sizes.last().is_none_or(|(known, _)| *known != mib) {
                    self.sizes.push((mib, Vec::new()));
                }
                self.sizes.last_mut().expect("just put there").1.push(cell.cloned());
            }
        }
    }
}

impl PlanRequest {
    pub(super) fn level(
        &self,
        library: &Library,
        level: Level,
        healthy: &CellResult,
        ran: Vec<(ExtraRun, Option<Result<ExtraResult, CellError>>)>,
        values: &[Uncertain],
        knowledge: Knowledge,
    ) -> LevelPlan {
        let class = LoadClass::of(&healthy.spec);
        let mut missing = self.plainly_missing(library, level, healthy);
        let mut runs = Runs::new(merit(healthy), values);
        let sorted = Sorted::of(ran, &mut runs, &mut missing);
        let spec = machine_spec(library, &healthy.spec).ok();
        let back = spec.as_ref().is_some_and(MachineSpec::writes_back);
        let base: Vec<Option<f64>> = std::iter::once(Some(runs.base)).chain(runs.seeds.iter().copied()).collect();
        let pairs = cache_modes(&base, &sorted.other, back);
        let rebuild = spec
            .as_ref()
            .filter(|_| survives(level, self.drives).0 > 0)
            .map(|spec| sorted.rebuild.time(smallest(spec), values, class, knowledge));
        let loss = rebuild
            .as_ref()
            .zip(spec.as_ref())
            .and_then(|(rebuild, spec)| loss((level, self.drives), spec, rebuild, f64::from(self.replacement_hours)));
        if rebuild.is_some() && loss.is_none() {
            let reason = "the drive's profile does not say how often it fails, or the rebuild stands still";
            missing.push(Missing { what: "loss".into(), reason: reason.into(), failed: false });
        }
        let range = Range::of(&runs, missing, class, knowledge);
        LevelPlan {
            array: healthy.spec.subject,
            capacity: healthy.capacity,
            survives: survives(level, self.drives),
            healthy: speed(healthy),
            degraded: sorted.degraded,
            rebuilding: sorted.rebuilding,
            rebuild,
            loss,
            energy: spec.as_ref().and_then(|spec| Energy::of(spec, healthy)),
            weakest: spec.as_ref().and_then(|spec| weakest(spec, healthy)),
            bottleneck: bottleneck(healthy),
            cache_mib: self.cache_mib(library, level).unwrap_or(0),
            cache_sizes: sorted.sizes.iter().filter_map(|(mib, ran)| cache_size(*mib, ran, healthy, &base)).collect(),
            journal: JournalEffect::of(healthy, &sorted.bare, &base),
            write_back_ratio: pairs.first().map(|(back, through)| back / through),
            write_back: gain(pairs.iter().copied()),
            uncertain_percent: range.uncertain_percent,
            low_percent: range.low_percent,
            high_percent: range.high_percent,
            model_percent: range.model_percent,
            unknown_percent: range.unknown_percent,
            knowledge,
            chance_percent: range.chance_percent,
            uncertain: range.uncertain,
            steady: !healthy.is_unsteady(),
            unsteady_beside: sorted.unsteady,
            flags: healthy.flags.clone(),
            flags_beside: sorted.flags,
            missing: range.missing,
            by_latency: matches!(healthy.spec.pattern, Pattern::Trace(_)),
            by_throughput: healthy.iops > 0.0 && healthy.mbps * 1e6 >= healthy.iops * LARGE_REQUEST,
            runs,
        }
    }

    /// Figures that this array can never have, whatever is run.
    fn plainly_missing(&self, library: &Library, level: Level, healthy: &CellResult) -> Vec<Missing> {
        let lost = (survives(level, self.drives).0 == 0).then_some("data lost");
        let cache = self.no_cache_to_compare(library, healthy.writes.requests > 0);
        let all = [("degraded", lost), ("rebuilding", lost), ("write_back_ratio", cache)];
        let missing = |(what, reason): (&str, Option<&str>)| {
            reason.map(|reason| Missing { what: what.into(), reason: reason.into(), failed: false })
        };
        all.into_iter().filter_map(missing).collect()
    }
}

/// Figures with write-back and with write-through, by seed. `back` says that the base is the one with write-back.
fn cache_modes(base: &[Option<f64>], other: &[Option<f64>], back: bool) -> Vec<(f64, f64)> {
    let pairs = base.iter().zip(other).filter_map(|(base, other)| (*base).zip(*other));
    pairs.map(|(base, other)| if back { (base, other) } else { (other, base) }).collect()
}

/// The part that limits a run.
fn bottleneck(healthy: &CellResult) -> Option<Bottleneck> {
    healthy.bottleneck().map(|part| Bottleneck {
        part: part.name,
        of_members: healthy.member_part(part.name),
        busy: part.busy,
    })
}

/// Bytes that an array uses on each drive of a machine: the size of the smallest drive.
fn smallest(spec: &MachineSpec) -> f64 {
    spec.drives.iter().map(|drive| drive.capacity.value.get() as f64 * 512.0).fold(f64::INFINITY, f64::min)
}

/// The probability of data loss from the failure of a drive to the end of its rebuild under the load. If the rebuild
/// under the load has no time, the time of the rebuild without load is used.
fn loss(
    (level, members): (Level, u16),
    spec: &MachineSpec,
    rebuild: &Rebuild,
    replacement_hours: f64,
) -> Option<LossRisk> {
    // If the drives differ, the drive with the highest failure rate is used for all.
    let all: Option<Vec<_>> = spec.drives.iter().map(|drive| drive.reliability.as_ref()).collect();
    let known = all?.into_iter().max_by_key(|known| known.afr.value)?;
    let window_hours = replacement_hours + rebuild.loaded_hours.or(rebuild.idle_hours)?;
    let longest = match rebuild.loaded_hours {
        Some(_) => rebuild.loaded_hours_range,
        None => rebuild.idle_hours_range,
    };
    let window_high = longest.map_or(window_hours, |[_, longest]| replacement_hours + longest);
    let (afr, afr_high) = (known.afr(), known.afr.high as f64 / 1e6);
    let bytes = smallest(spec);
    let frailty = Frailty { afr, errors_per_bit: known.errors_per_bit(), bytes };
    let risk_of = |afr: f64, hours: f64| risk(level, members, Frailty { afr, ..frailty }, hours);
    let (risk, high) = (risk_of(afr, window_hours)?, risk_of(afr_high, window_high)?);
    let five_years = |of: fn(&Risk) -> f64| [&risk, &high].map(|risk| over_years(of(risk), 5.0));
    let [whole, whole_high] = five_years(|risk| risk.year);
    Some(LossRisk {
        window_hours,
        risk,
        year_high: high.year,
        five_years: whole,
        five_years_high: whole_high,
        array_five_years: five_years(|risk| risk.array_year),
        sector_five_years: five_years(|risk| risk.sector_year),
        afr: [afr, afr_high],
        errors_per_bit: frailty.errors_per_bit,
        source: known.afr.source.clone(),
        estimated: !matches!(known.afr.confidence, Confidence::Sheet | Confidence::Measured),
    })
}

/// The profile of the member that was busiest under the load, and its load. There is none if all members are alike.
#[must_use]
pub fn weakest(spec: &MachineSpec, healthy: &CellResult) -> Option<(String, f64)> {
    let first = &spec.drives.first()?.head.name;
    spec.drives.iter().find(|drive| drive.head.name != *first)?;
    let busiest = healthy.members.iter().zip(&spec.drives).max_by(|one, two| one.0.busy.total_cmp(&two.0.busy))?;
    Some((busiest.1.head.name.clone(), busiest.0.busy))
}

/// The result of one cache size, from its runs by seed and from the runs with the present cache.
fn cache_size(
    cache_mib: u32,
    ran: &[Option<CellResult>],
    healthy: &CellResult,
    base: &[Option<f64>],
) -> Option<CacheSize> {
    let first = ran.first()?.as_ref()?;
    let pairs = ran.iter().zip(base).filter_map(|(ran, base)| Some((merit(ran.as_ref()?), (*base)?)));
    Some(CacheSize {
        cache_mib,
        speed: speed(first),
        change_percent: (merit(first) / merit(healthy) - 1.0) * 100.0,
        gain: gain(pairs),
        steady: !healthy.is_unsteady() && ran.iter().flatten().all(|ran| !ran.is_unsteady()),
    })
}

impl Gain {
    /// Is the gain above `percent` even at the low end of its range?
    #[must_use]
    pub fn is_above(&self, percent: f64) -> bool {
        self.low_percent.is_some_and(|low| low > percent)
    }

    /// Is the gain below `percent` even at the high end of its range?
    #[must_use]
    pub fn is_below(&self, percent: f64) -> bool {
        self.high_percent.is_some_and(|high| high < percent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::uncertain_values::ProfilePart;
    use super::super::varied_runs::Variation;
    use super::super::StandIns;
    use super::*;
    use crate::cell::{run_cell, ArrayState, Axes, Effort};
    use openraid_models::Edge;

    #[test]
    fn a_failed_run_is_reported_with_its_reason() {
        let request = PlanRequest {
            system: "3ware-9650se".into(),
            drive: None,
            drives: 4,
            levels: vec![Level::Raid5],
            pattern: Pattern::Database,
            axes: Axes::default(),
            effort: Effort { requests: 500, ..Effort::QUICK },
            seed: 1,
            thorough: true,
            trace: None,
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        };
        let library = Library::builtin();
        let healthy = run_cell(&library, &request.cell(Level::Raid5, ArrayState::Healthy)).unwrap();
        let field = "seek.average_ms".into();
        let value = Uncertain { part: ProfilePart::Drive, whose: "wd740gd".into(), field, against: Vec::new() };
        let failed = || Err(CellError::Failed("no request has ended".into()));
        let cell = |result: CellResult| Ok(ExtraResult::Cell(Box::new(result)));
        let ran = vec![
            (ExtraRun::Vary(Variation::Seed(2)), cell(CellResult { iops: healthy.iops * 1.02, ..healthy.clone() })),
            (ExtraRun::Degraded, failed()),
            (
                ExtraRun::Loaded(0, 0),
                cell(CellResult { flags: vec![Flag::PageCache], steady: false, ..healthy.clone() }),
            ),
            (ExtraRun::Vary(Variation::Value(0, Edge::High)), failed()),
        ];
        let plan = request.level(
            &library,
            Level::Raid5,
            &healthy,
            ran.into_iter().map(|(beside, ran)| (beside, Some(ran))).collect(),
            &[value],
            Knowledge::ALL,
        );
        assert!(plan.degraded.is_none() && plan.rebuilding.is_some());
        assert_eq!(plan.flags_beside, [("rebuilding".to_owned(), Flag::PageCache)]);
        assert_eq!((plan.steady, plan.unsteady_beside), (true, vec!["rebuilding".to_owned()]));
        let missing: Vec<_> = plan.missing.iter().map(|it| (it.what.as_str(), it.reason.as_str(), it.failed)).collect();
        let reason = "no request has ended";
        assert_eq!(missing[..2], [("degraded", reason, true), ("wd740gd: seek.average_ms", reason, true)]);
        assert!((plan.chance_percent - 2.0).abs() < 1e-9 && (plan.uncertain_percent - 2.0).abs() < 1e-9);
    }

    #[test]
    fn probabilities_are_for_the_rebuild_time_under_load() {
        let library = Library::builtin();
        let drive = library.drive("exos_x18_18tb").unwrap().clone();
        let array = openraid_sim::machine::ArraySpec::new(Level::Raid5, 8);
        let spec = MachineSpec::new(library.controller("openraid").unwrap().clone(), drive, array);
        let rebuild = Rebuild { idle_hours: Some(27.0), loaded_hours: Some(60.0), ..Rebuild::default() };
        let later = loss((Level::Raid5, 8), &spec, &rebuild, 24.0).unwrap();
        let loss = loss((Level::Raid5, 8), &spec, &rebuild, 0.0).unwrap();
        let hour = -(1.0f64 - 0.0035).ln() / 8760.0;
        let expected = 1.0 - (-7.0 * 60.0 * hour).exp();
        assert!((loss.risk.array / expected - 1.0).abs() < 1e-9, "{loss:?}");
        assert!(loss.estimated && loss.year_high > loss.risk.year && (loss.window_hours - 60.0).abs() < 1e-9);
        // Without a spare the array waits for its new drive: 84 hours in place of 60.
        let expected = 1.0 - (-7.0 * 84.0 * hour).exp();
        assert!((later.risk.array / expected - 1.0).abs() < 1e-9 && later.window_hours == 84.0, "{later:?}");
        // Eight drives fail at their rate; after each failure the array is lost, or some of its sectors.
        let five_years = |of: f64| 1.0 - (-5.0 * 8.0 * 8760.0 * hour * of).exp();
        let expected = [loss.risk.array, loss.risk.sector].map(five_years);
        let found = [loss.array_five_years[0], loss.sector_five_years[0]];
        assert!(found.iter().zip(expected).all(|(found, wanted)| (found / wanted - 1.0).abs() < 1e-9), "{loss:?}");
        let neither = (1.0 - found[0]) * (1.0 - found[1]);
        assert!((1.0 - loss.five_years - neither).abs() < 1e-12, "both together are what the whole is");
    }
}
