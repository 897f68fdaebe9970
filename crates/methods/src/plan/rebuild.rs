//! The time of a rebuild. The engine's own rebuild runs on the models for a short time at three positions of the new
//! drive, once without load and once under the load.
//!
//! The rate of a disk is lower on its inner tracks, so the position matters. Simpson's rule computes the time of the
//! whole drive from the three rates. The engine has the settings of a new array: `rebuild.rate` limits the rebuild to
//! 200 MiB/s, and eight rows are in work at once. Under a load the engine's scheduling decides the share of the
//! rebuild; there is no minimum rate.

use super::PlanRequest;
use crate::cell::{machine_spec, run_counted, ArrayState, CellError, CellResult, Level};
use crate::target::{SimTarget, Target, TargetCounters};
use openraid_models::Library;
use openraid_sim::machine::{MachineError, MachineSpec};
use openraid_units::{Bytes, Nanos};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions on the new drive, in percent of its size.
pub(super) const PLACES: [u8; 3] = [0, 50, 98];
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
    /// MB (10^6 bytes) of the new drive each second without other load: at its beginning, in its middle, near its end.
    pub idle_mbps: Vec<f64>,
    /// The same three rates under the load of the plan.
    pub loaded_mbps: Vec<f64>,
}

impl Rebuild {
    /// Computes the times from the rates at all positions, for a drive of `bytes` bytes.
    pub(super) fn of(bytes: f64, idle_mbps: Vec<f64>, loaded_mbps: Vec<f64>) -> Self {
        let hours = |rates: &[f64]| hours(bytes, rates);
        Self { idle_hours: hours(&idle_mbps), loaded_hours: hours(&loaded_mbps), idle_mbps, loaded_mbps }
    }
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

    /// The load during a rebuild at a position.
    pub(super) fn loaded(
        &self,
        library: &Library,
        level: Level,
        percent: u8,
        events: &AtomicU64,
    ) -> Result<CellResult, CellError> {
        let spec = self.rebuilding(library, level, percent)?;
        run_counted(library, &self.cell(level, ArrayState::Rebuilding), &spec, self.trace.as_deref(), events)
    }

    /// The rate of a rebuild without load at a position, in MB/s.
    pub(super) fn idle(
        &self,
        library: &Library,
        level: Level,
        percent: u8,
        events: &AtomicU64,
    ) -> Result<f64, CellError> {
        let rate = idle_mbps(library, &self.rebuilding(library, level, percent)?, |counters| counters.rebuilt, events)?;
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
        };
        let library = Library::builtin();
        let limit = 200.0 * 1.048_576;
        for (level, least) in [(Level::Raid10, 0.98), (Level::Raid5, 0.4), (Level::Raid6, 0.4)] {
            let rates: Vec<f64> =
                PLACES.iter().map(|place| request.idle(&library, level, *place, &AtomicU64::new(0)).unwrap()).collect();
            // The rate of the outermost zone, 270 MB/s, is above the limit of 200 MiB/s. The rate of the innermost
            // zone, 125 MB/s, is below it.
            assert!(rates[0] <= limit * 1.02 && rates[0] > limit * least, "{level:?}: {rates:?}");
            assert!(rates[2] < 130.0 && rates[2] > 50.0 && rates[1] > rates[2], "{level:?}: {rates:?}");
            let day = Rebuild::of(18e12, rates, Vec::new());
            assert!(day.idle_hours.unwrap() > 23.8 && day.loaded_hours.is_none(), "{day:?}");
            let loaded = request.loaded(&library, level, 50, &AtomicU64::new(0)).unwrap();
            let rate = loaded.rebuild_mbps.expect("it is under way");
            assert!(rate > 0.0 && rate < day.idle_mbps[1], "{level:?}: {rate} under the load");
        }
    }
}
