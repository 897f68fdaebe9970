//! The warm-up of a load: from the first request to a state in which the load could continue without change.
//!
//! ```text
//!   holds back?   a simulated cache keeps the first writes: it is filled
//!   full          writes until the cache takes them only as fast as the drives do
//!   warm          until the amount of dirty data and the rate are steady
//!   drained       if a full cache only emptied: until nothing is dirty, then warm again
//! ```
//!
//! It must never call a cache steady that only fills or only empties.

use super::error::CellError;
use super::measure::{closed_loop, options};
use super::note::CellNote;
use super::plan::CellPlan;
use super::spec::CellSpec;
use super::steady::{Steadiness, DIRTY_CHANGE_SHARE};
use crate::load::{self, ClosedLoop, LoadSource, Mixed, Stop};
use crate::metrics::Recorder;
use crate::target::Target;
use openraid_units::{Bytes, Instant, Nanos};

/// Number of requests in a window over which steadiness is judged.
pub(super) const WINDOW_REQUESTS: u64 = 1_000;
/// Minimum length of such a window if the load writes. A cache takes a thousand requests within one turn of a drive,
/// and the number of blocks that destage writes in this time is random.
const WINDOW_LEAST: Nanos = Nanos::from_millis(100);
/// Number of equal windows in the warm-up of a real target. The last three changes are judged, and the first window may
/// have cold caches.
const CLOCK_WINDOWS: u64 = 5;
/// If a cache grew in each of this many first windows, the warm-up fills it with additional writes.
const FILLING_WINDOWS: u32 = 4;
/// Outstanding requests of these additional writes.
const PRESS_OUTSTANDING: u32 = 64;
/// Maximum time for draining a cache.
const DRAIN_MAX: Nanos = Nanos::from_secs(3_600);
/// Maximum number of requests of a warm-up.
const WARM_REQUESTS_MAX: u64 = 600_000;

/// Warms up a load. The returned loop is running.
pub(super) fn warm_up<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &CellPlan,
    source: &mut dyn LoadSource,
    notes: &mut Vec<CellNote>,
) -> Result<ClosedLoop, CellError> {
    let mut closed = closed_loop(cell, plan);
    let warmth = if plan.spec.writes() && holds_back(target, cell, &mut closed, source)? {
        Warmth::Filling
    } else {
        warm(target, cell, &mut closed, source, plan.outstanding(), notes)?
    };
    if warmth != Warmth::Filling {
        return Ok(closed);
    }
    closed.drain(target, None)?;
    press(target, cell, plan, notes)?;
    closed = closed_loop(cell, plan);
    if warm(target, cell, &mut closed, source, plan.outstanding(), notes)? == Warmth::Emptying {
        closed = start_over(target, cell, plan, source, closed, notes)?;
    }
    Ok(closed)
}

/// Warms up a load once more, from empty caches. The cache is emptying data that only the additional writes had put
/// there, and the load itself would never have. The returned loop is running.
pub(super) fn start_over<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &CellPlan,
    source: &mut dyn LoadSource,
    mut before: ClosedLoop,
    notes: &mut Vec<CellNote>,
) -> Result<ClosedLoop, CellError> {
    before.drain(target, None)?;
    notes.clear();
    drain_cache(target, notes)?;
    let mut closed = closed_loop(cell, plan);
    warm(target, cell, &mut closed, source, plan.outstanding(), notes)?;
    Ok(closed)
}

/// Lets a simulated target write out its dirty data without any other load.
fn drain_cache<T: Target + ?Sized>(target: &mut T, notes: &mut Vec<CellNote>) -> Result<(), CellError> {
    let begun = target.now();
    while dirty_bytes(target) > 0 && target.now().since(begun) < DRAIN_MAX {
        let until = target.now() + WINDOW_LEAST;
        while target.now() < until {
            target.wait(until, &mut Vec::new())?;
        }
    }
    let took = target.now().since(begun);
    let left = Bytes(dirty_bytes(target)).readable();
    notes.push(CellNote::Other(format!("cache drained to {left} in {took}")));
    Ok(())
}

/// The result of a warm-up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmth {
    /// The load is as steady as it will become.
    Done,
    /// A simulated cache has only filled since the first window, and would do so for a long time.
    Filling,
    /// A simulated cache has only emptied until the time limit.
    Emptying,
}

/// Does a simulated cache keep the first writes? Then the warm-up fills it before the measurement. Some loads are
/// steady both with a full cache and with a nearly empty one, and chance alone would choose between these states.
fn holds_back<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    closed: &mut ClosedLoop,
    source: &mut dyn LoadSource,
) -> Result<bool, CellError> {
    if !target.facts().simulated || cell.axes.warm_s.is_some() {
        return Ok(false);
    }
    let end = target.now() + Nanos::from_secs(u64::from(cell.effort.warm_seconds_max));
    let requests = WINDOW_REQUESTS.min(cell.effort.requests / 2);
    closed.run(target, source, Stop { requests, at: end }, None)?;
    Ok(dirty_bytes(target) > 0)
}

/// Fills the cache as fast as possible: writes of the same kind at a high queue depth, until the cache takes them only
/// as fast as the drives do. The warm-up then writes out the dirty data that the cell's own load does not keep there.
fn press<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &CellPlan,
    notes: &mut Vec<CellNote>,
) -> Result<(), CellError> {
    let writes = plan.spec.lines().iter().map(|line| load::AccessLine { read: 0, ..*line }).collect();
    let spec = load::AccessSpec::new("press", writes).map_err(|error| CellError::Failed(error.to_string()))?;
    let depth = PRESS_OUTSTANDING.div_ceil(u32::from(plan.workers));
    let mut source = Mixed::new(&spec, plan.workers, plan.zone, plan.parts, cell.load_seed() ^ 1);
    let mut closed = ClosedLoop::new(options(cell, plan.workers, depth));
    let mut seen = Recorder::new(0);
    let mut before = (unwritten_bytes(target), 0);
    let mut total = 0;
    while total < WARM_REQUESTS_MAX {
        let least = target.now() + WINDOW_LEAST;
        let some = Stop { requests: 4 * WINDOW_REQUESTS, at: Instant::NEVER };
        total += closed.run(target, &mut source, some, Some(&mut seen))?;
        let rest = Stop { requests: WARM_REQUESTS_MAX, at: least };
        total += closed.run(target, &mut source, rest, Some(&mut seen))?;
        let now = (unwritten_bytes(target), seen.writes.bytes);
        if now.0.saturating_sub(before.0) <= (now.1 - before.1) / DIRTY_CHANGE_SHARE {
            break;
        }
        before = now;
    }
    closed.drain(target, None)?;
    notes.push(CellNote::Other(format!("cache filled by {total} writes")));
    Ok(())
}

/// Dirty bytes in the controller's cache.
fn dirty_bytes<T: Target + ?Sized>(target: &T) -> u64 {
    target.counters().and_then(|counters| counters.dirty).map_or(0, Bytes::get)
}

/// Dirty bytes in the controller's cache and in the members' own caches.
fn unwritten_bytes<T: Target + ?Sized>(target: &T) -> u64 {
    let Some(counters) = target.counters() else { return 0 };
    [counters.dirty, counters.held].into_iter().flatten().map(Bytes::get).sum()
}

/// The unwritten data of a steady load: in the controller's cache, and in the members' own caches.
fn unwritten_text(dirty: u64, all: u64) -> String {
    let held = all.saturating_sub(dirty);
    let parts = [(dirty, "dirty in the controller's cache"), (held, "held in the members' own caches")];
    let parts = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
    parts.map(|(bytes, place)| format!(", {} {place}", Bytes(bytes).readable())).collect()
}

/// Runs until the load is steady: its rate does not change, and the amount of dirty data does not change or alternates.
pub(super) fn warm<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    closed: &mut ClosedLoop,
    source: &mut dyn LoadSource,
    outstanding: u32,
    notes: &mut Vec<CellNote>,
) -> Result<Warmth, CellError> {
    let begun = target.now();
    if let Some(seconds) = cell.axes.warm_s {
        let stop = Stop { requests: u64::MAX, at: begun + Nanos::from_secs(u64::from(seconds)) };
        closed.run(target, source, stop, None)?;
        return Ok(Warmth::Done);
    }
    if !target.facts().simulated {
        warm_by_the_clock(target, cell.effort.warm_seconds_max, closed, source, notes)?;
        return Ok(Warmth::Done);
    }
    let end = begun + Nanos::from_secs(u64::from(cell.effort.warm_seconds_max));
    let window = WINDOW_REQUESTS.min(cell.effort.requests / 2).max(4 * u64::from(outstanding));
    let empty = dirty_bytes(target) == 0;
    let mut steadiness = Steadiness::new(dirty_bytes(target), unwritten_bytes(target));
    let mut seen = Recorder::new(0);
    let mut total = 0;
    while !steadiness.reached() && total < WARM_REQUESTS_MAX && target.now() < end {
        let from = target.now();
        let before = seen.writes.bytes;
        let mut ended = closed.run(target, source, Stop { requests: window, at: end }, Some(&mut seen))?;
        if seen.writes.requests > 0 {
            let rest = Stop { requests: WARM_REQUESTS_MAX, at: (from + WINDOW_LEAST).min(end) };
            ended += closed.run(target, source, rest, Some(&mut seen))?;
        }
        total += ended;
        if ended == 0 {
            break;
        }
        let rate = per_second(ended, target.now().since(from));
        let amounts = (dirty_bytes(target), unwritten_bytes(target));
        steadiness.window(amounts, seen.writes.bytes - before, rate);
        if empty && steadiness.only_up(FILLING_WINDOWS) {
            return Ok(Warmth::Filling);
        }
    }
    let took = target.now().since(begun);
    let unwritten = unwritten_text(steadiness.dirty, steadiness.all);
    notes.push(warmed_up(steadiness.reached(), format!("after {total} requests and {took}{unwritten}")));
    Ok(if !steadiness.reached() && steadiness.only_down() { Warmth::Emptying } else { Warmth::Done })
}

/// Warms up a real target for a fixed time, even if it looks steady earlier. A thousand requests of an SSD end before
/// its cache is in its steady state; the same holds for the cache of a remote server. A note says whether the rate is
/// steady at the end.
fn warm_by_the_clock<T: Target + ?Sized>(
    target: &mut T,
    seconds: u32,
    closed: &mut ClosedLoop,
    source: &mut dyn LoadSource,
    notes: &mut Vec<CellNote>,
) -> Result<(), CellError> {
    let begun = target.now();
    let window = Nanos::from_secs(u64::from(seconds)).get() / CLOCK_WINDOWS;
    let mut steadiness = Steadiness::new(0, 0);
    let mut total = 0;
    for number in 1..=CLOCK_WINDOWS {
        let from = target.now();
        let stop = Stop { requests: u64::MAX, at: begun + Nanos(window * number) };
        let ended = closed.run(target, source, stop, None)?;
        total += ended;
        // The amount of dirty data of a real target is unknown.
        steadiness.window((0, 0), 0, per_second(ended, target.now().since(from)));
    }
    let took = target.now().since(begun);
    notes.push(warmed_up(steadiness.reached() && total > 0, format!("after {total} requests and {took}")));
    Ok(())
}

/// The note of a warm-up and its length.
fn warmed_up(steady: bool, length: String) -> CellNote {
    if steady {
        CellNote::Other(format!("warm-up: steady {length}"))
    } else {
        CellNote::WarmUpUnsteady(length)
    }
}

fn per_second(requests: u64, time: Nanos) -> u64 {
    let rate = u128::from(requests) * 1_000_000_000 / u128::from(time.get().max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
