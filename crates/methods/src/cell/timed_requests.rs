//! Requests at fixed times: traces, and loads with a rate. They do not wait for earlier requests. The latency of a
//! request counts from its scheduled time.

use super::error::CellError;
use super::measure::{read_only, Measured};
use super::note::CellNote;
use super::plan::CellPlan;
use super::result::CellResult;
use super::spec::CellSpec;
use crate::load::{self, ArrivalPace, OpenRun, PacedSource, OUTSTANDING_MAX, WAITING_MAX};
use crate::metrics::Recorder;
use crate::reader::RequestTrace;
use crate::target::{Target, PAYLOAD_BYTES_MAX};
use openraid_units::Nanos;

/// Replays a trace with its own times. The cell only gives the machine.
///
/// # Errors
/// See [`CellError`]. A trace with addresses after the end of the target is not applicable.
pub fn replay<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    trace: &RequestTrace,
) -> Result<CellResult, CellError> {
    if trace.writes() && !target.facts().writable {
        return Err(read_only(target));
    }
    let does_not_fit = |error| CellError::NotApplicable(format!("the trace does not fit: {error}"));
    trace.check(target.facts().capacity).map_err(does_not_fit)?;
    let room = replay_outstanding(trace);
    let measured = Measured::begin(target);
    let mut recorder = Recorder::new(0);
    let end = trace.length() + Nanos(1);
    let run = load::run_open(target, &mut trace.arrivals(), Nanos::ZERO, end, room as usize, &mut recorder)?;
    let all = trace.records().len();
    let mut notes = vec![CellNote::Other(format!("{all} requests of a trace of {}", trace.length()))];
    notes.extend(too_slow(run.late, room));
    let result = measured.end(target, cell, recorder, notes)?;
    Ok(cut_off(result, run, all as u64))
}

/// Maximum number of requests of a trace that a target gets at the same time. On a real target the memory limits it.
#[must_use]
pub fn replay_outstanding(trace: &RequestTrace) -> u32 {
    let frame = u64::from(trace.bytes_max().max(1)).next_multiple_of(4096);
    let most = (PAYLOAD_BYTES_MAX / frame).clamp(1, OUTSTANDING_MAX as u64);
    u32::try_from(most).expect("at most 4096")
}

fn too_slow(late: u64, room: u32) -> Option<CellNote> {
    let words = format!("{room} were outstanding at times and others had to wait; the target is too slow for it");
    (late > 0).then_some(CellNote::Other(words))
}

/// The result of an open loop that ended or was given up; `all` is the number of scheduled requests.
fn cut_off(mut result: CellResult, run: OpenRun, all: u64) -> CellResult {
    if let Some(after) = run.cut_off {
        result.never_asked = all.saturating_sub(run.came).max(1);
        result.notes.push(CellNote::Other(format!(
            "CUT OFF after {after}: {WAITING_MAX} requests were waiting by then, and the target was asked for no more; {} \
             of {all} were never issued",
            result.never_asked
        )));
    }
    result
}

/// The number of requests that are scheduled within this time: one after each gap. After each burst there is a pause.
fn coming(within: Nanos, gap: Nanos, think: Option<(u32, u64)>) -> u64 {
    let most = within.get().saturating_sub(1);
    let Some((burst, pause)) = think else { return most / gap.get() };
    let burst = u64::from(burst);
    let round = burst.saturating_mul(gap.get()).saturating_add(pause);
    most / round * burst + (most % round / gap.get()).min(burst)
}

/// Runs a load with a rate for the time that the cell gives. If the cell gives none, the load ends after the number of
/// requests that the effort has.
pub(super) fn paced<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &CellPlan,
    rate: u32,
    mut notes: Vec<CellNote>,
) -> Result<CellResult, CellError> {
    let enough = u32::try_from(cell.effort.requests / u64::from(rate)).unwrap_or(u32::MAX).max(1);
    let seconds = cell.axes.secs.unwrap_or_else(|| enough.min(cell.effort.seconds_max));
    let warm = cell.axes.warm_s.unwrap_or_else(|| (seconds / 10).max(1));
    let gap = Nanos(1_000_000_000 / u64::from(rate));
    let mut source = plan.source(cell.load_seed());
    let room = plan.outstanding();
    let mut run = |target: &mut T, seconds: u32, recorder: &mut Recorder| {
        let mut arrivals = PacedSource::new(&mut source, ArrivalPace::Even(gap), cell.load_seed());
        let end = Nanos::from_secs(u64::from(seconds));
        load::run_open(target, &mut arrivals, Nanos::ZERO, end, room as usize, recorder)
    };
    run(target, warm, &mut Recorder::new(0))?;
    let begin = format!("open loop: {rate} requests come each second; {warm} s before are not counted");
    notes.push(CellNote::Other(begin));
    let measured = Measured::begin(target);
    let mut recorder = Recorder::new(0);
    let ran = run(target, seconds, &mut recorder)?;
    notes.extend(too_slow(ran.late, room));
    let result = measured.end(target, cell, recorder, notes)?;
    let all = coming(Nanos::from_secs(u64::from(seconds)), gap, plan.spec.manner().think);
    let result = cut_off(result, ran, all);
    if result.requests == 0 {
        let reason = format!("no request came within {seconds} s at {rate} each second; give it more time");
        return Err(CellError::Failed(reason));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{one_size, Arrivals, Mixed, Zone};

    #[test]
    fn requests_that_are_to_come_are_counted_as_they_come() {
        let zone = Zone { start: 0, len: 1 << 20 };
        for think in [None, Some((1, 5)), Some((3, 40)), Some((7, 1))] {
            let source = || {
                let source = Mixed::new(&one_size("s", 512, 100, 100), 1, zone, 1, 1);
                match think {
                    Some((burst, pause)) => source.thinking(burst, Nanos(pause)),
                    None => source,
                }
            };
            for gap in [1, 3, 10] {
                for within in 0..200 {
                    let mut source = source();
                    let mut arrivals = PacedSource::new(&mut source, ArrivalPace::Even(Nanos(gap)), 1);
                    let come = std::iter::from_fn(|| arrivals.next()).take_while(|(at, _)| at.get() < within);
                    let counted = coming(Nanos(within), Nanos(gap), think);
                    assert_eq!(counted, come.count() as u64, "{within} by {gap}, {think:?}");
                }
            }
        }
    }
}
