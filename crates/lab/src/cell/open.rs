//! Requests that come at their own times: traces, and loads with a rate. Whether or not those before have ended; latency
//! counts from the time at which a request should have come.

use super::error::CellError;
use super::measure::{read_only, Measured};
use super::plan::Plan;
use super::result::CellResult;
use super::spec::CellSpec;
use crate::load::{self, Pace, Paced, OUTSTANDING_MAX};
use crate::metrics::Recorder;
use crate::reader::Trace;
use crate::target::{Target, PAYLOAD_BYTES_MAX};
use openraid_units::Nanos;

/// A trace, played again at its own times. The cell says only which machine.
///
/// # Errors
/// See [`CellError`]; a trace that reaches beyond the target is not applicable.
pub fn replay<T: Target + ?Sized>(target: &mut T, cell: &CellSpec, trace: &Trace) -> Result<CellResult, CellError> {
    if trace.writes() && !target.facts().writable {
        return Err(read_only(target));
    }
    let does_not_fit = |error| CellError::NotApplicable(format!("the trace does not fit: {error}"));
    trace.check(target.facts().capacity).map_err(does_not_fit)?;
    let room = replay_outstanding(trace);
    let measured = Measured::begin(target);
    let mut recorder = Recorder::new(0);
    let end = trace.length() + Nanos(1);
    let late = load::run_open(target, &mut trace.arrivals(), Nanos::ZERO, end, room as usize, &mut recorder)?;
    let mut notes = vec![format!("{} requests of a trace of {}", trace.records().len(), trace.length())];
    notes.extend(too_slow(late, room));
    measured.end(target, cell, recorder, notes)
}

/// Requests of a trace that a target gets at the same time at most: as many as there is memory for on a real one.
#[must_use]
pub fn replay_outstanding(trace: &Trace) -> u32 {
    let frame = u64::from(trace.bytes_max().max(1)).next_multiple_of(4096);
    let most = (PAYLOAD_BYTES_MAX / frame).clamp(1, OUTSTANDING_MAX as u64);
    u32::try_from(most).expect("at most 4096")
}

fn too_slow(late: u64, room: u32) -> Option<String> {
    let words = format!("{room} were outstanding at times and others had to wait; the target is too slow for it");
    (late > 0).then_some(words)
}

/// A load with a rate: for the time that the cell says, else until as many requests as its effort counts have come.
pub(super) fn paced<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &Plan,
    rate: u32,
    mut notes: Vec<String>,
) -> Result<CellResult, CellError> {
    let enough = u32::try_from(cell.effort.requests / u64::from(rate)).unwrap_or(u32::MAX).max(1);
    let seconds = cell.axes.secs.unwrap_or_else(|| enough.min(cell.effort.seconds_max));
    let warm = cell.axes.warm_s.unwrap_or_else(|| (seconds / 10).max(1));
    let gap = Pace::Even(Nanos(1_000_000_000 / u64::from(rate)));
    let mut source = plan.source(cell.load_seed());
    let room = plan.outstanding();
    let mut run = |target: &mut T, seconds: u32, recorder: &mut Recorder| {
        let mut arrivals = Paced::new(&mut source, gap, cell.load_seed());
        let end = Nanos::from_secs(u64::from(seconds));
        load::run_open(target, &mut arrivals, Nanos::ZERO, end, room as usize, recorder)
    };
    run(target, warm, &mut Recorder::new(0))?;
    notes.push(format!("open loop: {rate} requests come each second; {warm} s before are not counted"));
    let measured = Measured::begin(target);
    let mut recorder = Recorder::new(0);
    let late = run(target, seconds, &mut recorder)?;
    notes.extend(too_slow(late, room));
    let result = measured.end(target, cell, recorder, notes)?;
    if result.requests == 0 {
        let reason = format!("no request came within {seconds} s at {rate} each second; give it more time");
        return Err(CellError::Failed(reason));
    }
    Ok(result)
}
