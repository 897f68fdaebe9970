//! The time of a rebuild. The engine's own rebuild runs on the models for a short time at three positions of the new
//! drive, once without load and once under the load.
//!
//! The rate of a disk is lower on its inner tracks, so the position matters. Simpson's rule computes the time of the
//! whole drive from the three rates. The engine has the settings of a new array: `rebuild.rate` limits the rebuild to
//! 200 MiB/s, and eight rows are in work at once. Under a load the engine's scheduling decides the share of the
//! rebuild, at least `rebuild.minimum`, if the drives can.
//!
//! The range of a time has independent parts: another rule for the same three rates, other seeds of the load at the
//! middle position, the uncertain values of the profiles there, the model's own error, and unknown parts of the
//! machine. A rebuild is a stream, and under a load it gets what the load leaves.

use super::knowledge::Knowledge;
use super::model_error::{widened, LoadClass};
use super::uncertain_values::Uncertain;
use super::uncertainty::Runs;
use super::PlanRequest;
use crate::cell::{machine_spec, run_counted, ArrayState, CellError, CellResult, CellSpec, Level};
use crate::target::{SimTarget, Target, TargetCounters};
use openraid_models::{Edge, Library};
use openraid_sim::machine::{MachineError, MachineSpec};
use openraid_units::{Bytes, Nanos};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions on the new drive, in percent of its size.
pub(super) const PLACES: [u8; 3] = [0, 50, 98];
/// The position in the middle, at which values and seeds are varied.
pub(super) const MIDDLE: usize = 1;
/// The start of a rebuild without load is not measured: drives first recognise the streams, and queues fill.
const IDLE_WARM: Nanos = Nanos::from_millis(1_000);
/// The time that is measured after this start.
const IDLE_WINDOW: Nanos = Nanos::from_millis(4_000);

/// The time of a rebuild.
#[derive(Clone, PartialEq, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct Rebuild {
    /// Duration of the rebuild of a whole drive without other load, hours.
    pub idle_hours: Option<f64>,
    /// Duration of the rebuild of a whole drive under the load of the plan, hours.
    pub loaded_hours: Option<f64>,
    /// The least and the most hours without other load: by the spread over the drive, by uncertain values if they were varied, by
    /// the model's own error, and by unknown parts of the machine.
    pub idle_hours_range: Option<[f64; 2]>,
    /// The same under the load, with chance.
    pub loaded_hours_range: Option<[f64; 2]>,
    /// MB (10^6 bytes) of the new drive each second without other load: at its beginning, in its middle, near its end.
    pub idle_mbps: Vec<f64>,
    /// The same three rates under the load of the plan.
    pub loaded_mbps: Vec<f64>,
}

/// The rates of a rebuild, from its runs.
#[derive(Default)]
pub(super) struct RebuildRuns {
    idle: [Option<f64>; PLACES.len()],
    loaded: [Option<f64>; PLACES.len()],
    /// Under the load at the middle position, with other seeds.
    seeds: Vec<Option<f64>>,
    /// Without load at the middle position, with a value at an end of its range.
    varied: Vec<(usize, Edge, f64)>,
}

impl RebuildRuns {
    /// Adds a rate under the load. `by` was added to the plan's seed.
    pub fn loaded(&mut self, place: usize, by: u64, rate: Option<f64>) {
        if by == 0 {
            self.loaded[place] = rate;
        } else {
            self.seeds.push(rate);
        }
    }

    /// Adds a rate without load, with an uncertain value at an end of its range or without.
    pub fn idle(&mut self, place: usize, varied: Option<(usize, Edge)>, rate: f64) {
        match varied {
            Some((value, end)) => self.varied.push((value, end, rate)),
            None => self.idle[place] = Some(rate),
        }
    }

    /// The times of a drive of `bytes` bytes, next to a load of this class.
    pub fn time(self, bytes: f64, values: &[Uncertain], class: LoadClass, knowledge: Knowledge) -> Rebuild {
        let mut of_values = Runs::new(self.idle[MIDDLE].unwrap_or_default(), values);
        for (value, end, rate) in self.varied {
            of_values.values[value].1[usize::from(end == Edge::High)] = Some(rate);
        }
        let of_values = match of_values.base {
            base if base > 0.0 => of_values.doubt().sides(),
            _ => (0.0, 0.0),
        };
        let of_seeds = match self.loaded[MIDDLE].unwrap_or_default() {
            base if base > 0.0 => Runs { base, seeds: self.seeds, values: Vec::new() }.doubt().sides(),
            _ => (0.0, 0.0),
        };
        let of_model = |class: LoadClass| (class.percent(), class.percent());
        let unknown = knowledge.unknown_percent(LoadClass::Streams);
        let idle = [of_model(LoadClass::Streams), unknown].into_iter().fold(of_values, widened);
        let loaded = [of_seeds, of_model(class)].into_iter().fold(idle, widened);
        let all = |rates: [Option<f64>; PLACES.len()]| rates.into_iter().flatten().collect::<Vec<f64>>();
        let (idle_mbps, loaded_mbps) = (all(self.idle), all(self.loaded));
        Rebuild {
            idle_hours: hours(bytes, &idle_mbps),
            loaded_hours: hours(bytes, &loaded_mbps),
            idle_hours_range: hours_range(bytes, &idle_mbps, idle),
            loaded_hours_range: hours_range(bytes, &loaded_mbps, loaded),
            idle_mbps,
            loaded_mbps,
        }
    }
}

/// The least and the most hours, if the rates may be lower and higher by these percentages. Between the positions the
/// rates are not known: the trapezoidal rule gives another time, and the difference is an error, too.
fn hours_range(bytes: f64, rates: &[f64], error: (f64, f64)) -> Option<[f64; 2]> {
    let time = hours(bytes, rates)?;
    let [begin, middle, end] = rates else { return None };
    let other = bytes / 1e6 * (1.0 / begin + 2.0 / middle + 1.0 / end) / 4.0 / 3600.0;
    let spread = (time / other).max(other / time);
    let (low, high) = widened(error, ((1.0 - 1.0 / spread) * 100.0, (spread - 1.0) * 100.0));
    Some([time / (1.0 + high / 100.0), time / (1.0 - low / 100.0)])
}

/// Simpson's rule over the time of each byte. There is no result if the rebuild does not move at one position, or if a
/// position has no run.
pub(super) fn hours(bytes: f64, rates: &[f64]) -> Option<f64> {
    let [begin, middle, end] = rates else { return None };
    let slowness = (1.0 / begin + 4.0 / middle + 1.0 / end) / 6.0;
    Some(bytes / 1e6 * slowness / 3600.0).filter(|hours| hours.is_finite())
}

impl PlanRequest {
    /// The machine of a level with its rebuild at a position.
    fn rebuilding(&self, library: &Library, level: Level, percent: u8) -> Result<MachineSpec, CellError> {
        let mut spec = machine_spec(library, &self.cell(level, ArrayState::Rebuilding))?;
        spec.array.rebuilt_percent = percent;
        Ok(spec)
    }

    /// The load during a rebuild at a position, with a number that is added to the plan's seed.
    pub(super) fn loaded(
        &self,
        library: &Library,
        level: Level,
        (percent, by): (u8, u64),
        events: &AtomicU64,
    ) -> Result<CellResult, CellError> {
        let spec = self.rebuilding(library, level, percent)?;
        let cell = self.cell(level, ArrayState::Rebuilding);
        let cell = CellSpec { seed: cell.seed.wrapping_add(by), ..cell };
        run_counted(library, &cell, &spec, self.trace.as_deref(), events)
    }

    /// The rate of a rebuild without load at a position, in MB/s, with a value at an end of its range or without.
    pub(super) fn idle(
        &self,
        library: &Library,
        level: Level,
        (percent, varied): (u8, Option<(&Uncertain, Edge)>),
        events: &AtomicU64,
    ) -> Result<f64, CellError> {
        let mut spec = self.rebuilding(library, level, percent)?;
        if let Some((value, end)) = varied {
            value.put(library, &mut spec, end)?;
        }
        let rate = idle_mbps(library, &spec, |counters| counters.rebuilt, events)?;
        rate.ok_or_else(|| CellError::Failed("the rebuild ended at once".into()))
    }
}

/// The rate of a machine's background work without load, in MB/s. `work` reads how much of it is done. `None` if it ends during
/// the measurement.
pub(super) fn idle_mbps(
    library: &Library,
    spec: &MachineSpec,
    work: fn(&TargetCounters) -> Option<Bytes>,
    events: &AtomicU64,
) -> Result<Option<f64>, CellError> {
    let impossible = |error: MachineError| CellError::Impossible(error.to_string());
    let mut target = SimTarget::new("idle", spec, library).map_err(impossible)?;
    let mut wait = |time: Nanos| -> Result<Option<u64>, CellError> {
        let (until, mut done) = (target.now() + time, Vec::new());
        while target.now() < until {
            target.wait(until, &mut done)?;
        }
        Ok(target.counters().and_then(|counters| work(&counters)).map(Bytes::get))
    };
    let (before, after) = (wait(IDLE_WARM)?, wait(IDLE_WINDOW)?);
    events.fetch_add(target.machine_counters().events, Ordering::Relaxed);
    let bytes = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    Ok(bytes.map(|bytes| bytes as f64 * 1e3 / IDLE_WINDOW.get() as f64))
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::cell::{Axes, Effort, Pattern};

    #[test]
    fn simpsons_rule_is_exact_for_a_time_that_grows_with_the_square_of_the_place() {
        // 1/r = 1 + x^2 seconds for each MB: a mean of 4/3.
        let found = hours(3600e6, &[1.0, 1.0 / 1.25, 0.5]).unwrap();
        assert!((found - 4.0 / 3.0).abs() < 1e-12, "{found}");
        assert_eq!((hours(1e12, &[1.0, 1.0]), hours(1e12, &[1.0, 0.0, 1.0])), (None, None));
    }

    #[test]
    fn a_time_has_the_range_of_its_rates_and_of_what_lies_between_the_places() {
        let near = |found: Option<[f64; 2]>, wanted: [f64; 2]| {
            let found = found.unwrap();
            assert!(found.iter().zip(wanted).all(|(one, two)| (one - two).abs() < 1e-9), "{found:?} is not {wanted:?}");
        };
        near(hours_range(3600e6, &[1.0; 3], (0.0, 0.0)), [1.0, 1.0]);
        near(hours_range(3600e6, &[1.0; 3], (50.0, 25.0)), [0.8, 2.0]);
        // 1/r = 1 + x^2 seconds for each MB: 4/3 in truth, and 1.375 by trapezoids.
        let ratio = 1.375 / (4.0 / 3.0);
        near(hours_range(3600e6, &[1.0, 0.8, 0.5], (0.0, 0.0)), [4.0 / 3.0 / ratio, 1.375]);
        assert_eq!(hours_range(1e12, &[1.0, 1.0], (5.0, 5.0)), None);
        // A host that is not known makes the longest time longer, and another seed of the load widens both ends.
        let runs = |other: f64| RebuildRuns {
            idle: [Some(100.0); 3],
            loaded: [Some(20.0); 3],
            seeds: vec![Some(other)],
            ..RebuildRuns::default()
        };
        let class = Knowledge { host: ProfileFit::Class, ..Knowledge::ALL };
        let of = |other, knowledge| runs(other).time(1e12, &[], LoadClass::Reads, knowledge);
        let (known, unknown, chance) = (of(20.0, Knowledge::ALL), of(20.0, class), of(15.0, class));
        let ranges = [&known, &unknown, &chance].map(|time| time.loaded_hours_range.unwrap());
        assert!(ranges[1][1] > ranges[0][1] * 1.5 && (ranges[1][0] - ranges[0][0]).abs() < 1e-9, "{ranges:?}");
        assert!(ranges[2][1] > ranges[1][1], "{ranges:?}");
        let idle = known.idle_hours_range.unwrap();
        assert!((idle[1] / known.idle_hours.unwrap() - 1.0 / 0.95).abs() < 1e-9, "{idle:?}");
    }

    #[test]
    fn an_idle_rebuild_goes_as_fast_as_the_drive_or_its_limit_and_slower_farther_in() {
        let request = PlanRequest {
            system: "openraid".into(),
            drive: Some("exos_x18_18tb".into()),
            drives: 4,
            levels: vec![],
            pattern: Pattern::FileServer,
            axes: Axes { qd: Some(4), ..Axes::default() },
            effort: Effort { requests: 1_000, ..Effort::QUICK },
            seed: 1,
            thorough: false,
            trace: None,
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        };
        let library = Library::builtin();
        let limit = 200.0 * 1.048_576;
        for (level, least) in [(Level::Raid10, 0.98), (Level::Raid5, 0.4), (Level::Raid6, 0.4)] {
            let rates: Vec<f64> = PLACES
                .iter()
                .map(|place| request.idle(&library, level, (*place, None), &AtomicU64::new(0)).unwrap())
                .collect();
            // The rate of the outermost zone, 270 MB/s, is above the limit of 200 MiB/s. The rate of the innermost
            // zone, 125 MB/s, is below it.
            assert!(rates[0] <= limit * 1.02 && rates[0] > limit * least, "{level:?}: {rates:?}");
            assert!(rates[2] < 130.0 && rates[2] > 50.0 && rates[1] > rates[2], "{level:?}: {rates:?}");
            let runs = RebuildRuns { idle: [rates[0], rates[1], rates[2]].map(Some), ..RebuildRuns::default() };
            let day = runs.time(18e12, &[], LoadClass::Writes, Knowledge::ALL);
            assert!(day.idle_hours.unwrap() > 23.8 && day.loaded_hours.is_none(), "{day:?}");
            let [least, most] = day.idle_hours_range.unwrap();
            assert!(least < day.idle_hours.unwrap() && day.idle_hours.unwrap() < most && most < 32.0, "{day:?}");
            let loaded = request.loaded(&library, level, (50, 0), &AtomicU64::new(0)).unwrap();
            let rate = loaded.rebuild_mbps.expect("it is under way");
            assert!(rate > 0.0 && rate < day.idle_mbps[1], "{level:?}: {rate} under the load");
        }
    }
}
