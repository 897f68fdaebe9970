//! The time of a change of shape. The engine's own change runs on the models for a short time at some positions, once without
//! load and once under the load, as [`super::rebuild`] does it.
//!
//! If the array becomes larger, the part beyond its old end is written and not read, so the two parts have rates of their own:
//! each has three positions, and Simpson's rule gives its time.

use super::rebuild::{hours, idle_mbps, PLACES};
use crate::cell::{machine_spec, run_cell_with, CellError, CellSpec};
use crate::target::{SimTarget, Target};
use openraid_models::Library;
use openraid_sim::machine::MachineSpec;
use serde::Serialize;
use std::sync::atomic::AtomicU64;

/// The time of a change of shape.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct ReshapeTime {
    /// Bytes of the array that are written at new places: its data, and the zeroes beyond its old end.
    pub bytes: u64,
    /// Duration of the change without other load, hours.
    pub idle_hours: Option<f64>,
    /// Duration of the change under the load, hours.
    pub loaded_hours: Option<f64>,
    /// Rates at some positions.
    pub places: Vec<ReshapePlace>,
}

/// A change of shape at one position.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct ReshapePlace {
    /// The position, in percent of all that is written.
    pub percent: u8,
    /// MB (10^6 bytes) of the array each second without other load.
    pub idle_mbps: f64,
    /// The same under the load.
    pub loaded_mbps: f64,
    /// 99th percentile of the load's latency, ms.
    pub loaded_p99_ms: f64,
}

impl ReshapeTime {
    /// Runs the change of a cell whose state is a change of shape.
    ///
    /// # Errors
    /// As [`run_cell_with`]; the change is not possible.
    pub fn run(library: &Library, cell: &CellSpec) -> Result<Self, CellError> {
        let [data, all] = sizes(library, &spec_at(library, cell, 0)?)?;
        let share = if data == all { 100 } else { (data * 100).div_ceil(all).min(99) };
        let (mut places, mut idle_hours, mut loaded_hours) = (Vec::new(), Some(0.0), Some(0.0));
        for (from, to, bytes) in [(0, share, data), (share, 100, all - data)] {
            if bytes == 0 {
                continue;
            }
            let place = |at: u8| u8::try_from(from + (to - from) * u64::from(at) / 100).expect("a percentage");
            let mut of_part = Vec::new();
            for percent in [place(PLACES[0]), place(PLACES[1])] {
                of_part.push(at(library, cell, percent)?.ok_or_else(too_small)?);
            }
            // On a small drive the change would end during the run near the end.
            let mut ends = [PLACES[2], 90, 75].into_iter().map(|end| at(library, cell, place(end)));
            of_part.push(ends.find_map(Result::transpose).ok_or_else(too_small)??);
            let time =
                |rate: fn(&ReshapePlace) -> f64| hours(bytes as f64, &of_part.iter().map(rate).collect::<Vec<_>>());
            let sum = |before: Option<f64>, more: Option<f64>| Some(before? + more?);
            idle_hours = sum(idle_hours, time(|place| place.idle_mbps));
            loaded_hours = sum(loaded_hours, time(|place| place.loaded_mbps));
            places.extend(of_part);
        }
        Ok(Self { bytes: all, idle_hours, loaded_hours, places })
    }
}

/// The machine of a cell with its change of shape at a position.
fn spec_at(library: &Library, cell: &CellSpec, percent: u8) -> Result<MachineSpec, CellError> {
    let mut spec = machine_spec(library, cell)?;
    let change = spec.array.change.as_mut();
    change.ok_or_else(|| CellError::Failed("the array does not change its shape".into()))?.moved_percent = percent;
    Ok(spec)
}

fn too_small() -> CellError {
    CellError::Impossible("the change of shape ends during the measurement: the drives are too small".into())
}

/// The change at a position; `None` if it ends during the measurement.
fn at(library: &Library, cell: &CellSpec, percent: u8) -> Result<Option<ReshapePlace>, CellError> {
    let spec = spec_at(library, cell, percent)?;
    let moved = |counters: &crate::target::TargetCounters| counters.moved.map(|[done, _]| done);
    let Some(idle_mbps) = idle_mbps(library, &spec, moved, &AtomicU64::new(0))? else { return Ok(None) };
    let result = run_cell_with(library, cell, &spec)?;
    let loaded_p99_ms = result.histogram().percentile(99.0) as f64 / 1e6;
    Ok(result.reshape_mbps.map(|loaded_mbps| ReshapePlace { percent, idle_mbps, loaded_mbps, loaded_p99_ms }))
}

/// Bytes of data that move, and of all that is written: the zeroes beyond the old end, too.
fn sizes(library: &Library, spec: &MachineSpec) -> Result<[u64; 2], CellError> {
    let target = SimTarget::new("reshape", spec, library).map_err(|error| CellError::Impossible(error.to_string()))?;
    let moved = target.counters().and_then(|counters| counters.moved);
    let [_, all] = moved.ok_or_else(|| CellError::Failed("the change of shape did not begin".into()))?;
    Ok([target.facts().capacity.get().min(all.get()), all.get()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{run_cell, ArrayState, Axes, Effort, Pattern};

    #[test]
    fn a_change_of_shape_takes_as_long_as_its_drives_need_and_longer_under_load() {
        let library = Library::builtin();
        let axes = Axes { qd: Some(4), drive: Some("exos_x18_18tb".into()), ..Axes::default() };
        let cell = CellSpec {
            state: ArrayState::Changing("raid5x5".parse().expect("an array")),
            effort: Effort { requests: 1_000, ..Effort::QUICK },
            ..CellSpec::new("openraid", "raid5x4".parse().expect("an array"), Pattern::FileServer).with(axes)
        };
        let time = ReshapeTime::run(&library, &cell).expect("it can change");
        // The data of three drives of 18 TB, and a quarter of the new size beyond the old end.
        assert!((time.bytes as f64 / 72e12 - 1.0).abs() < 0.01, "{time:?}");
        let (idle, loaded) = (time.idle_hours.expect("it ends"), time.loaded_hours.expect("it ends"));
        // Each drive writes all of its 18 TB, at no more than `rebuild.rate` of 200 MiB/s.
        assert!(idle > 18e12 / 209.7e6 / 3600.0 && loaded > idle, "{time:?}");
        // Zeroes are written faster than data move.
        let rates: Vec<f64> = time.places.iter().map(|place| place.idle_mbps).collect();
        assert!(rates.len() == 6 && rates[0] > rates[2] && rates[3] > rates[2], "{rates:?}");
        for (to, why) in [
            ("raid5x3", "fewer members"),
            ("single", "RAID 4, 5, 6 and 10"),
            ("raid50x6", "RAID 4, 5, 6 and 10"),
            ("raid0x5", "RAID 4, 5, 6 and 10"),
            ("raid5x4", "this shape already"),
        ] {
            let other = CellSpec { state: ArrayState::Changing(to.parse().expect("an array")), ..cell.clone() };
            let refused = ReshapeTime::run(&library, &other).expect_err(to);
            assert!(matches!(&refused, CellError::Impossible(text) if text.contains(why)), "{to}: {refused:?}");
        }
    }

    #[test]
    fn hosts_of_flash_wait_at_most_twice_as_long_during_a_change_of_shape_or_a_rebuild() {
        let library = Library::builtin();
        let changing = ArrayState::Changing("raid5x5".parse().expect("an array"));
        let pairs = [(ArrayState::Healthy, changing), (ArrayState::Degraded(1), ArrayState::Rebuilding)];
        for (pattern, depth) in [(Pattern::FileServer, 1), (Pattern::FileServer, 8), (Pattern::Database, 4)] {
            for (without, with) in &pairs {
                let slow = |state: &ArrayState| {
                    let axes = Axes { qd: Some(depth), drive: Some("s3500_480".into()), ..Axes::default() };
                    let base = CellSpec::new("openraid", "raid5x4".parse().expect("an array"), pattern.clone());
                    let cell = CellSpec { state: *state, effort: Effort::QUICK, ..base.with(axes) };
                    run_cell(&library, &cell).expect("it runs").histogram().percentile(99.0) as f64
                };
                let ratio = slow(with) / slow(without);
                assert!(ratio <= 2.0, "{pattern:?} at depth {depth}, {with:?}: {ratio:.2}");
            }
        }
    }
}
