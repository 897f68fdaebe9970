//! The warm-up of a load: from the first request to the state in which it continues for ever.
//!
//! ```text
//!   holds back?   a simulated cache took the first writes: it is filled
//!   full          writes until it takes them no faster than the drives do
//!   warm          until the amount of dirty data and the rate are steady
//!   drained       if a full cache did nothing but empty: until nothing is dirty, then warm again
//! ```
//!
//! It must never call a cache steady that only fills or only empties.

use super::error::CellError;
use super::measure::{closed_loop, options};
use super::plan::Plan;
use super::result::NOT_STEADY;
use super::spec::CellSpec;
use super::steady::{Steadiness, DIRTY_CHANGE_SHARE};
use crate::load::{self, ClosedLoop, Mixed, Source, Stop};
use crate::metrics::Recorder;
use crate::target::Target;
use openraid_units::{Bytes, Instant, Nanos};

/// Requests of a window in which the load's steadiness is looked at.
pub(super) const WINDOW_REQUESTS: u64 = 1_000;
/// Such a window lasts as long at least where the load writes: a cache takes a thousand requests in the time in which a
/// drive turns once, and what goes out meanwhile is chance.
const WINDOW_LEAST: Nanos = Nanos::from_millis(100);
/// Windows of equal length into which the warm-up of a real target is cut: the last three changes are looked at, and the
/// first window may be cold.
const CLOCK_WINDOWS: u64 = 5;
/// A cache that grew in each of this many first windows is filled by other means.
const FILLING_WINDOWS: u32 = 4;
/// Requests outstanding meanwhile.
const PRESS_OUTSTANDING: u32 = 64;
/// The longest time of draining a cache.
const SETTLE_MAX: Nanos = Nanos::from_secs(3_600);
/// Requests that a warm-up takes at most.
const WARM_REQUESTS_MAX: u64 = 600_000;

/// Warm a load up. The loop that it gives back is under way.
pub(super) fn warm_up<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &Plan,
    source: &mut dyn Source,
    notes: &mut Vec<String>,
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

/// Warm a load up once more, from empty caches: what empties is what was pressed in, and the load would never have put it there.
/// The loop that it gives back is under way.
pub(super) fn start_over<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &Plan,
    source: &mut dyn Source,
    mut before: ClosedLoop,
    notes: &mut Vec<String>,
) -> Result<ClosedLoop, CellError> {
    before.drain(target, None)?;
    notes.clear();
    settle(target, notes)?;
    let mut closed = closed_loop(cell, plan);
    warm(target, cell, &mut closed, source, plan.outstanding(), notes)?;
    Ok(closed)
}

/// Let a simulated target write out what it holds: nothing else happens meanwhile.
fn settle<T: Target + ?Sized>(target: &mut T, notes: &mut Vec<String>) -> Result<(), CellError> {
    let begun = target.now();
    while dirty_bytes(target) > 0 && target.now().since(begun) < SETTLE_MAX {
        let until = target.now() + WINDOW_LEAST;
        while target.now() < until {
            target.wait(until, &mut Vec::new())?;
        }
    }
    let took = target.now().since(begun);
    notes.push(format!("cache drained to {} in {took}", Bytes(dirty_bytes(target))));
    Ok(())
}

/// The result of a warm-up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmth {
    /// As steady as it gets.
    Done,
    /// A simulated cache has done nothing but fill from the first window on, and would for long.
    Filling,
    /// A simulated cache has done nothing but empty until the time was up.
    Emptying,
}

/// Does a simulated cache hold back the first writes? Then it is filled before the measurement. Some loads are steady
/// both with a full cache and with a nearly empty one, and chance alone would choose between them.
fn holds_back<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    closed: &mut ClosedLoop,
    source: &mut dyn Source,
) -> Result<bool, CellError> {
    if !target.facts().simulated || cell.axes.warm_s.is_some() {
        return Ok(false);
    }
    let end = target.now() + Nanos::from_secs(u64::from(cell.effort.warm_seconds_max));
    let requests = WINDOW_REQUESTS.min(cell.effort.requests / 2);
    closed.run(target, source, Stop { requests, at: end }, None)?;
    Ok(dirty_bytes(target) > 0)
}

/// Fill the cache as fast as possible: writes of the same kind, many at a time, until it takes them no faster than the
/// drives. The warm-up writes out any dirty data that the cell's own load does not keep there.
fn press<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    plan: &Plan,
    notes: &mut Vec<String>,
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
    notes.push(format!("cache filled by {total} writes"));
    Ok(())
}

/// Dirty bytes in the controller's cache.
fn dirty_bytes<T: Target + ?Sized>(target: &T) -> u64 {
    target.counters().and_then(|counters| counters.dirty).map_or(0, Bytes::get)
}

/// Dirty bytes in the controller's cache and in the members' own.
fn unwritten_bytes<T: Target + ?Sized>(target: &T) -> u64 {
    let Some(counters) = target.counters() else { return 0 };
    [counters.dirty, counters.held].into_iter().flatten().map(Bytes::get).sum()
}

/// Run until the load is steady: its rate stands still, and the amount of dirty data either does or goes up and down.
pub(super) fn warm<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    closed: &mut ClosedLoop,
    source: &mut dyn Source,
    outstanding: u32,
    notes: &mut Vec<String>,
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
    let words = if steadiness.reached() { "steady" } else { NOT_STEADY };
    let dirty = Bytes(steadiness.all);
    notes.push(format!("warm-up: {words} after {total} requests and {took}, {dirty} dirty"));
    Ok(if !steadiness.reached() && steadiness.only_down() { Warmth::Emptying } else { Warmth::Done })
}

/// Warm up a real target for a fixed time, however soon it looks steady. A thousand requests of an SSD are over before
/// its cache, or the cache of the machine at the other end of a socket, is in its steady state. A note says whether the
/// rate is steady at the end.
fn warm_by_the_clock<T: Target + ?Sized>(
    target: &mut T,
    seconds: u32,
    closed: &mut ClosedLoop,
    source: &mut dyn Source,
    notes: &mut Vec<String>,
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
        // The dirty data of a real target are unknown.
        steadiness.window((0, 0), 0, per_second(ended, target.now().since(from)));
    }
    let words = if steadiness.reached() && total > 0 { "steady" } else { NOT_STEADY };
    notes.push(format!("warm-up: {words} after {total} requests and {}", target.now().since(begun)));
    Ok(())
}

fn per_second(requests: u64, time: Nanos) -> u64 {
    let rate = u128::from(requests) * 1_000_000_000 / u128::from(time.get().max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
