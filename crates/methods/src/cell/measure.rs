//! Measures one cell on an existing target.
//!
//! ```text
//!   before    loads of the order test, if the cell has that axis
//!   full      if a cache writes back: writes until the cache takes them only as fast as the drives do
//!   warm-up   until the amount of dirty data and the rate are steady; a real target: for a fixed time
//!   measured  between two moments; the measurement does not wait for the requests outstanding at either
//! ```

use super::axes::{Cycle, Direction, FileSet, FileStep, FileSystem, Recreated, TraceApp};
use super::ceiling::{cached, flag, Ceiling, Flag};
use super::error::CellError;
use super::limiting_part::PartName;
use super::note::CellNote;
use super::pattern::Pattern;
use super::plan::CellPlan;
use super::result::{CellResult, Component, LatencySummary, MemberShare, Sample, WorkerShare};
use super::spec::CellSpec;
use super::steady::DIRTY_CHANGE_SHARE;
use super::warm::{start_over, warm, warm_up, Warmth, WINDOW_REQUESTS};
use crate::imitation::{
    bytes_of, sizes_within, AppUsers, FileCopy, Graph, Partition, PARTITION_BYTES, PLACES, PLACE_BYTES,
};
use crate::load::{self, ClosedLoop, LoadSource, LoadStep, LoopOptions, Mixed, Script, Stop};
use crate::metrics::{Recorder, Slices};
use crate::target::{HostIo, IoKind, Target, TargetCounters, MEMBER_PARTS};
use openraid_units::{Bytes, Instant, Nanos};

/// The minimum time of a measurement on a simulated target. A few thousand requests of an SSD end before any rare event
/// happens. The minimum does not apply if it takes more than [`LASTING_FACTOR`] times the requests of the measurement.
const LASTING_LEAST: Nanos = Nanos::from_millis(2_000);
/// See [`LASTING_LEAST`].
const LASTING_FACTOR: u64 = 16;
/// The measurement of a load with late writes lasts for several times the age at which destage begins, but ends after
/// this many times its requests.
const AGES_FACTOR: u64 = 4;
/// Maximum bytes of a sequential measurement on a simulated target, so that the measurement stays in the zone where it
/// began. On a real target only the time limits the measurement.
const SEQUENTIAL_BYTES_MAX: u64 = 2 << 30;
/// Minimum number of requests of a sequential measurement.
const SEQUENTIAL_REQUESTS_MIN: u64 = 2_000;
/// Number of requests of an application that are measured, for every effort. With fewer requests a cache has no visible
/// effect.
const APPLICATION_REQUESTS: u64 = 20_000;
/// The scale of a session whose sets have their original size, in thousandths.
const WHOLE_SESSION: u64 = 1000;
/// The smallest partition that can hold the files.
const PARTITION_LEAST: u64 = 16 << 20;
/// The note about files on a real target.
const REAL_HOST: &str =
    "the requests of a file system are imitated; no time of a host is added, because a real host sends them";
/// Maximum number of repetitions of a measurement during which caches absorbed or released too much data. Each
/// repetition is twice as long.
const SETTLING_ROUNDS: u32 = 4;
/// Maximum time in seconds for the flush after the measurement of a real target.
const FLUSH_SECONDS_MAX: u64 = 60;
/// Seconds of load for the other half of the order test.
const ORDER_SECONDS: u64 = 120;
/// Pause of a simulated target after that load: the next test is prepared, and dirty data are written out.
const ORDER_PAUSE: Nanos = Nanos::from_secs(120);
/// Outstanding requests of that load.
const ORDER_DEPTH: u32 = 16;
/// Maximum number of requests of that load.
const ORDER_REQUESTS_MAX: u64 = 60_000;

/// Measures a cell on a target. A simulated target gives the same result again only if it is fresh.
///
/// # Errors
/// See [`CellError`].
pub fn measure<T: Target + ?Sized>(target: &mut T, cell: &CellSpec) -> Result<CellResult, CellError> {
    cell.check()?;
    let mut notes = Vec::new();
    order(target, cell, &mut notes)?;
    let mut result = match cell.pattern {
        Pattern::FcTest => files(target, cell, notes),
        Pattern::TransferGraph => graph(target, cell, notes),
        Pattern::Application => application(target, cell, notes),
        Pattern::Trace(_) => Err(CellError::Failed("a trace is replayed from its requests, not from its name".into())),
        _ => pattern(target, cell, notes),
    }?;
    result.steady = !result.is_unsteady();
    Ok(result)
}

/// The closed loop of a cell's load, before its first request.
pub(super) fn closed_loop(cell: &CellSpec, plan: &CellPlan) -> ClosedLoop {
    ClosedLoop::uneven(options(cell, plan.workers, plan.depth), plan.deeper)
}

pub(super) fn options(cell: &CellSpec, workers: u16, depth: u32) -> LoopOptions {
    LoopOptions { workers, depth, jitter: Nanos::ZERO, seed: cell.load_seed() }
}

/// Runs the load that another part of the suite had run before, if the cell belongs to a cycle of the order test. In
/// the first cycle random loads come before sequential ones, in the second cycle after them.
fn order<T: Target + ?Sized>(target: &mut T, cell: &CellSpec, notes: &mut Vec<CellNote>) -> Result<(), CellError> {
    let sequential = matches!(
        cell.pattern,
        Pattern::Sequential
            | Pattern::MultiThreaded
            | Pattern::SsdSequential
            | Pattern::FcTest
            | Pattern::TransferGraph
    );
    let before = match (cell.axes.after, cell.axes.cyc) {
        // A power cycle removes the effect of earlier loads.
        (Some(Recreated::PowerCycle), _) | (None, None) => return Ok(()),
        (Some(Recreated::Recreate), _) | (None, Some(Cycle::First)) => Pattern::FileServer,
        (None, Some(Cycle::Second)) => Pattern::Sequential,
    };
    if sequential == (before == Pattern::Sequential) {
        return Ok(());
    }
    let load = left_behind(cell, before.clone());
    let (capacity, block) = (target.facts().capacity.get(), target.facts().block.get());
    let plan = CellPlan::of(&load, capacity, block)?;
    if plan.spec.writes() && !target.facts().writable {
        return Err(read_only(target));
    }
    // On a real target this load lasts no longer than the measurement.
    let simulated = target.facts().simulated;
    let seconds = if simulated { ORDER_SECONDS } else { ORDER_SECONDS.min(u64::from(cell.effort.seconds_max)) };
    let mut source = source(target, &load, &plan);
    let mut closed = closed_loop(&load, &plan);
    let stop = Stop { requests: ORDER_REQUESTS_MAX, at: target.now() + Nanos::from_secs(seconds) };
    let ended = closed.run(target, &mut source, stop, None)?;
    closed.drain(target, None)?;
    if simulated {
        let until = target.now() + ORDER_PAUSE;
        while target.now() < until {
            target.wait(until, &mut Vec::new())?;
        }
    }
    if cell.axes.after == Some(Recreated::Recreate) {
        target.make_again();
    }
    notes.push(CellNote::Other(format!("before: {ended} requests of {} at depth 16", before.name())));
    Ok(())
}

/// The load of another part of the suite, on the machine of a cell.
fn left_behind(cell: &CellSpec, pattern: Pattern) -> CellSpec {
    let axes = super::axes::Axes { qd: Some(ORDER_DEPTH), ..super::axes::Axes::default() };
    CellSpec { pattern, ..cell.clone() }.with(axes)
}

/// The requests of a cell. The caches of a real target hold data that other cells have read, so each cell begins its
/// streams at addresses of its own. A load that the user specified is an exception, because it gives its own start.
fn source<T: Target + ?Sized>(target: &T, cell: &CellSpec, plan: &CellPlan) -> Mixed {
    let source = plan.source(cell.load_seed());
    let where_told = target.facts().simulated || matches!(cell.pattern, Pattern::Custom(_));
    if where_told {
        source
    } else {
        source.scattered(cell.load_seed())
    }
}

fn pattern<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    mut notes: Vec<CellNote>,
) -> Result<CellResult, CellError> {
    let (capacity, block) = (target.facts().capacity.get(), target.facts().block.get());
    let plan = CellPlan::of(cell, capacity, block)?;
    if plan.spec.writes() && !target.facts().writable {
        return Err(read_only(target));
    }
    if let Some(rate) = plan.spec.manner().rate {
        return super::timed_requests::paced(target, cell, &plan, rate, notes);
    }
    let simulated = target.facts().simulated;
    notes.extend(super::plan::scaled(cell, capacity));
    let mut source = source(target, cell, &plan);
    let mut closed = warm_up(target, cell, &plan, &mut source, &mut notes)?;
    let mut requests = cell.effort.requests;
    if simulated && plan.spec.random_percent() == 0.0 {
        let fits = SEQUENTIAL_BYTES_MAX / u64::from(plan.spec.bytes_max());
        requests = requests.min(fits.max(SEQUENTIAL_REQUESTS_MIN));
    }
    if cell.axes.secs.is_some() {
        requests = u64::MAX;
    }
    let seconds = cell.axes.secs.unwrap_or(cell.effort.seconds_max);
    let late = target.destage().filter(|_| plan.spec.writes() && cell.axes.secs.is_none());
    let least = if simulated { LASTING_LEAST } else { Nanos::ZERO };
    let lasting = Lasting {
        requests,
        seconds,
        workers: plan.workers,
        least,
        ages: late.map_or(least, |late| late.ages()),
        sliced: cell.pattern == Pattern::Latency,
    };
    let (mut measured, mut recorder) = lasting.run(target, &mut closed, &mut source)?;
    if simulated && cell.axes.warm_s.is_none() && cell.axes.secs.is_none() {
        let mut longer = lasting;
        for _ in 0..SETTLING_ROUNDS {
            let share = measured.absorbed(target, &recorder);
            if share.abs() <= 1.0 / DIRTY_CHANGE_SHARE as f64 {
                break;
            }
            // Caches absorbed or released data, so this measurement did not have the rate of the drives. It counts as
            // part of the warm-up.
            longer.requests = longer.requests.saturating_mul(2);
            (measured, recorder) = longer.run(target, &mut closed, &mut source)?;
        }
    }
    let given = -measured.absorbed(target, &recorder) > 1.0 / DIRTY_CHANGE_SHARE as f64;
    if given && target.destage().is_some() && cell.axes.warm_s.is_none() && cell.axes.secs.is_none() {
        closed = start_over(target, cell, &plan, &mut source, closed, &mut notes)?;
        (measured, recorder) = lasting.run(target, &mut closed, &mut source)?;
    }
    let taken = measured.absorbed(target, &recorder);
    if simulated && -taken > 1.0 / DIRTY_CHANGE_SHARE as f64 {
        let percent = -taken * 100.0;
        let more = format!("the drives wrote {percent:.0} % more than the load, which was in caches before");
        notes.push(CellNote::CachesUnsteady(more));
    }
    let mut result = measured.end(target, cell, recorder, notes)?;
    result.flags.extend(cached(taken, |percent| Flag::StillInCaches { percent }));
    if !simulated {
        closed.drain(target, None)?;
        result.flags.extend(flush_flag(target, &result)?);
    }
    counted(result, seconds)
}

/// Returns the result if it has requests.
fn counted(mut result: CellResult, seconds: u32) -> Result<CellResult, CellError> {
    if result.requests == 0 {
        let reason = format!("no request has ended within {seconds} s; give it more time");
        return Err(CellError::Failed(reason));
    }
    result.notes.dedup();
    Ok(result)
}

/// The length of a measurement.
#[derive(Clone, Copy)]
struct Lasting {
    requests: u64,
    seconds: u32,
    workers: u16,
    /// The minimum time, even if the requests end earlier.
    least: Nanos,
    /// The time after which written data reach the drives; the measurement lasts at least as long.
    ages: Nanos,
    /// Are latencies also recorded by time slice?
    sliced: bool,
}

impl Lasting {
    fn run<T: Target + ?Sized>(
        self,
        target: &mut T,
        closed: &mut ClosedLoop,
        source: &mut dyn LoadSource,
    ) -> Result<(Measured, Recorder), CellError> {
        let measured = Measured::begin(target);
        let mut recorder = Recorder::new(self.workers);
        recorder.slices = self.sliced.then(|| Slices::new(target.now()));
        let stop = Stop { requests: self.requests, at: target.now() + Nanos::from_secs(u64::from(self.seconds)) };
        let (least, ages) = (target.now() + self.least, target.now() + self.ages);
        closed.run(target, source, stop, Some(&mut recorder))?;
        for (least, factor) in [(ages, AGES_FACTOR), (least, LASTING_FACTOR)] {
            for _ in 1..factor {
                if target.now() >= least {
                    break;
                }
                closed.run(target, source, Stop { at: least.min(stop.at), ..stop }, Some(&mut recorder))?;
            }
        }
        Ok((measured, recorder))
    }
}

/// The flush that makes the writes of a real target durable, as a flag with the time that it took.
fn flush_flag<T: Target + ?Sized>(target: &mut T, result: &CellResult) -> Result<Option<Flag>, CellError> {
    if result.writes.requests == 0 || !target.facts().writable {
        return Ok(None);
    }
    let begun = target.now();
    let (mut done, end) = (Vec::new(), begun + Nanos::from_secs(FLUSH_SECONDS_MAX));
    // All requests of the load have ended, so id 0 is free.
    target.submit(HostIo { id: 0, kind: IoKind::Flush, offset: 0, len: 0, worker: 0 });
    while done.is_empty() && target.now() < end {
        target.wait(end, &mut done)?;
    }
    let took = target.now().since(begun).get() as f64;
    Ok(cached(took / result.elapsed_ns.max(1) as f64, |percent| Flag::FlushOwed { percent }))
}

pub(super) fn read_only<T: Target + ?Sized>(target: &T) -> CellError {
    let reason = format!(
        "{} was opened for reading; writing needs --destroy-data and the target's name typed",
        target.facts().name
    );
    CellError::NotApplicable(reason)
}

/// The file-copy test on two partitions of 32 GB, or smaller ones on a smaller target. A real target has a real host
/// whose own time counts, so no host is imitated there.
fn files<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    mut notes: Vec<CellNote>,
) -> Result<CellResult, CellError> {
    let step = cell.axes.step.unwrap_or(match cell.axes.op {
        Some(Direction::Read) => FileStep::Read,
        _ => FileStep::Create,
    });
    let (set, fs) = (cell.axes.set.unwrap_or(FileSet::Install), cell.axes.fs.unwrap_or(FileSystem::Ntfs));
    if step != FileStep::Read && !target.facts().writable {
        return Err(read_only(target));
    }
    let capacity = target.facts().capacity.get();
    let partition = PARTITION_BYTES.min(capacity / 2 / 4096 * 4096);
    let simulated = target.facts().simulated;
    let whole = bytes_of(set);
    let sizes = sizes_within(set, if simulated { whole } else { partition / 4 });
    let bytes: u64 = sizes.iter().sum();
    if bytes < whole {
        let count = sizes.len();
        notes.push(CellNote::Scaled(format!(
            "{count} files of {} in all; the whole set needs a target of {}",
            Bytes(bytes).readable(),
            Bytes(8 * whole).readable()
        )));
    }
    if partition < 4 * bytes || partition < PARTITION_LEAST {
        let least = Bytes((8 * bytes).max(2 * PARTITION_LEAST));
        let reason = format!(
            "files of {} in all and their copies need two partitions, a target of {} at least",
            Bytes(bytes).readable(),
            least.readable()
        );
        return Err(CellError::NotApplicable(reason));
    }
    let from = Partition::new(fs, 0, partition);
    let mut to = Partition::new(fs, if step == FileStep::CopyOther { partition } else { 0 }, partition);
    if step == FileStep::CopySame {
        to.skip(bytes + bytes / 8);
    }
    if step != FileStep::Read && target.facts().simulated {
        files_before(target, cell, partition, &mut notes)?;
    }
    if !simulated {
        notes.push(CellNote::Other(REAL_HOST.into()));
    }
    let measured = Measured::begin(target);
    let mut recorder = Recorder::new(1);
    let mut closed = ClosedLoop::new(options(cell, 1, 1));
    let steps = FileCopy::new(step, sizes, from, to).filter(|step| simulated || matches!(step, LoadStep::Ask(_)));
    let mut script = Script::new(steps);
    closed.run(target, &mut script, Stop::NEVER, Some(&mut recorder))?;
    let mut result = measured.end(target, cell, recorder, notes)?;
    // The rate of the files' data without metadata. A copy counts its bytes once.
    result.mbps = bytes as f64 * 1e3 / result.elapsed_ns.max(1) as f64;
    result.notes.push(CellNote::Other(format!("{bytes} bytes of files")));
    Ok(result)
}

/// Fills the write cache as earlier sets of files would, because sets follow each other without a pause. It writes the
/// files in pieces at the end of the first partition.
fn files_before<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    partition: u64,
    notes: &mut Vec<CellNote>,
) -> Result<(), CellError> {
    let spec = load::one_size("files", crate::imitation::PIECE_BYTES, 0, 0);
    let zone = load::Zone { start: partition / 4 * 3, len: partition / 4 };
    let mut source = Mixed::new(&spec, 1, zone, 1, cell.load_seed());
    let mut closed = ClosedLoop::new(options(cell, 1, 1));
    if warm(target, cell, &mut closed, &mut source, 1, notes)? == Warmth::Filling {
        closed.drain(target, None)?;
        closed = ClosedLoop::new(options(cell, 1, 1));
        warm(target, cell, &mut closed, &mut source, 1, notes)?;
    }
    closed.drain(target, None)?;
    Ok(())
}

/// The positions of the transfer graph, each measured separately.
fn graph<T: Target + ?Sized>(target: &mut T, cell: &CellSpec, notes: Vec<CellNote>) -> Result<CellResult, CellError> {
    let capacity = target.facts().capacity.get();
    if capacity < 4 * PLACE_BYTES {
        return Err(CellError::NotApplicable(format!(
            "the target holds {}, and the graph needs {} at least",
            Bytes(capacity).readable(),
            Bytes(4 * PLACE_BYTES).readable()
        )));
    }
    // A quick measurement uses about one position in ten; the first and the last are always measured.
    let step = if cell.effort.requests < 10_000 { 11 } else { 3 };
    let members = target.counters().map_or(1, |counters| counters.members.len());
    let stretch = Graph::stretch(capacity, members as u64);
    let measured = Measured::begin(target);
    let mut all = Recorder::new(1);
    let mut curve = Vec::new();
    for number in (0..PLACES).step_by(step) {
        let mut place = Graph::place(number, capacity, stretch);
        let at = place.start();
        let mut closed = ClosedLoop::new(options(cell, 1, cell.axes.qd.unwrap_or(4)));
        let pieces = stretch / u64::from(crate::imitation::GRAPH_REQUEST_BYTES);
        closed.run(target, &mut place, Stop { requests: pieces / 4, at: Instant::NEVER }, None)?;
        let from = target.now();
        let mut recorder = Recorder::new(1);
        closed.run(target, &mut place, Stop::NEVER, Some(&mut recorder))?;
        let elapsed = target.now().since(from).get().max(1);
        curve.push(Sample { at: at as f64, value: recorder.bytes() as f64 * 1e3 / elapsed as f64 });
        all.reads.requests += recorder.reads.requests;
        all.reads.bytes += recorder.reads.bytes;
        all.reads.latency.merge(&recorder.reads.latency);
        all.errors += recorder.errors;
    }
    let mut result = measured.end(target, cell, all, notes)?;
    result.mbps = curve.iter().map(|sample| sample.value).sum::<f64>() / curve.len() as f64;
    result.curve = curve;
    Ok(result)
}

/// An application with its users.
fn application<T: Target + ?Sized>(
    target: &mut T,
    cell: &CellSpec,
    mut notes: Vec<CellNote>,
) -> Result<CellResult, CellError> {
    let app = cell.axes.app.unwrap_or(TraceApp::Winmark99);
    let (fs, users) = (cell.axes.fs.unwrap_or(FileSystem::Ntfs), cell.axes.users.unwrap_or(1));
    let facts = target.facts();
    if !facts.writable {
        return Err(read_only(target));
    }
    let room = AppUsers::room(app, users);
    let scale = AppUsers::scale_for(app, users, facts.capacity.get());
    // On a simulated target the sets must have the size of the reviews, or there is no result.
    let Some(scale) = scale.filter(|scale| !facts.simulated || *scale == WHOLE_SESSION) else {
        let who = if users == 1 { "the program needs".into() } else { format!("{users} users of the program need") };
        let least = if facts.simulated { room } else { AppUsers::room_least(app, users) };
        let reason =
            format!("{who} a target of {}, this one has {}", Bytes(least).readable(), facts.capacity.readable());
        return Err(CellError::NotApplicable(reason));
    };
    if !facts.simulated {
        notes.push(CellNote::Other(format!("imitated: {REAL_HOST}")));
    }
    if scale < WHOLE_SESSION {
        let percent = scale as f64 / 10.0;
        notes.push(CellNote::Scaled(format!(
            "working sets have {percent:.1} % of their size; the whole needs {}",
            Bytes(room).readable()
        )));
    }
    // The requests of an application do not depend on the array or its cache, so the work is the same for all.
    let seed = openraid_sim::random::mix(cell.seed ^ super::spec::digest(app.word()));
    let mut session = AppUsers::new(app, fs, users, seed, scale).with_kept(target.kept_descriptions());
    let mut closed = ClosedLoop::new(options(cell, users, 1));
    let wanted = session.start_bytes();
    let (mut start, mut begun) = (Recorder::new(users), 0);
    while start.bytes() < wanted {
        let stop = Stop { requests: WINDOW_REQUESTS, at: Instant::NEVER };
        begun += closed.run(target, &mut session, stop, Some(&mut start))?;
    }
    notes.push(CellNote::Other(format!("imitated: {begun} requests for the start are not counted")));
    let measured = Measured::begin(target);
    let mut recorder = Recorder::new(users);
    let stop = Stop { requests: APPLICATION_REQUESTS, at: Instant::NEVER };
    closed.run(target, &mut session, stop, Some(&mut recorder))?;
    let mut result = measured.end(target, cell, recorder, notes)?;
    result.score = Some(result.mbps * 1e3);
    Ok(result)
}

/// The counters at the start of a measurement.
pub(super) struct Measured {
    at: Instant,
    before: Option<TargetCounters>,
}

impl Measured {
    pub(super) fn begin<T: Target + ?Sized>(target: &T) -> Self {
        Self { at: target.now(), before: target.counters() }
    }

    /// The share of bytes that caches absorbed since the start; it is negative if they released data. For the
    /// controller's cache it is a share of the hosts' writes, for the members' own caches a share of the writes to
    /// members.
    fn absorbed<T: Target + ?Sized>(&self, target: &T, recorder: &Recorder) -> f64 {
        let (Some(before), Some(after)) = (&self.before, target.counters()) else { return 0.0 };
        if recorder.writes.bytes == 0 {
            return 0.0;
        }
        let more = |now: Option<Bytes>, then: Option<Bytes>| {
            now.map_or(0.0, |now| now.get() as f64) - then.map_or(0.0, |then| then.get() as f64)
        };
        let given = |counters: &TargetCounters| {
            counters.members.iter().map(|member| member.written).sum::<u64>() as f64 * 512.0
        };
        let (dirty, held) = (more(after.dirty, before.dirty), more(after.held, before.held));
        dirty / recorder.writes.bytes as f64 + held / (given(&after) - given(before)).max(recorder.writes.bytes as f64)
    }

    pub(super) fn end<T: Target + ?Sized>(
        self,
        target: &T,
        cell: &CellSpec,
        recorder: Recorder,
        notes: Vec<CellNote>,
    ) -> Result<CellResult, CellError> {
        let elapsed = target.now().since(self.at).get();
        let per_second = |amount: f64| if elapsed == 0 { 0.0 } else { amount * 1e9 / elapsed as f64 };
        let worker = |(requests, bytes): &(u64, u64)| WorkerShare {
            iops: per_second(*requests as f64),
            mbps: per_second(*bytes as f64) / 1e6,
        };
        let mut result = CellResult {
            spec: cell.clone(),
            elapsed_ns: elapsed,
            requests: recorder.requests(),
            iops: per_second((recorder.reads.requests + recorder.writes.requests) as f64),
            flushes: recorder.flushes,
            mbps: per_second(recorder.bytes() as f64) / 1e6,
            workers: recorder.workers.iter().map(worker).collect(),
            reads: recorder.reads,
            writes: recorder.writes,
            latency: LatencySummary::default(),
            errors: recorder.errors,
            members: Vec::new(),
            components: Vec::new(),
            host_cpu: None,
            reasons: Vec::new(),
            curve: Vec::new(),
            slices: recorder.slices.map_or_else(Vec::new, |slices| slices.all()),
            score: None,
            capacity: target.facts().capacity.get(),
            notes,
            rebuild_mbps: None,
            reshape_mbps: None,
            flags: Vec::new(),
            steady: true,
            never_asked: 0,
        };
        result.latency = LatencySummary::of(&result.histogram());
        if let (Some(before), Some(after)) = (&self.before, target.counters()) {
            shares(&mut result, before, &after, elapsed);
            let filled = before.rebuilt.zip(after.rebuilt).map(|(then, now)| now.get().saturating_sub(then.get()));
            result.rebuild_mbps = filled.map(|bytes| per_second(bytes as f64) / 1e6);
            let moved = before.moved.zip(after.moved).map(|([then, _], [now, _])| now.get().saturating_sub(then.get()));
            result.reshape_mbps = moved.map(|bytes| per_second(bytes as f64) / 1e6);
            if !matches!(cell.pattern, Pattern::Application | Pattern::Trace(_)) {
                let hits = after.read_hits.map_or(0, Bytes::get).saturating_sub(before.read_hits.map_or(0, Bytes::get));
                let share = hits as f64 / result.reads.bytes.max(1) as f64;
                result.flags.extend(cached(share, |percent| Flag::ReadFromCache { percent }));
            }
        }
        let facts = target.facts();
        result.flags.extend(facts.page_cache.then_some(Flag::PageCache));
        if let Some(mbps) = facts.link_mbps {
            let link = Ceiling { name: "link of the device".into(), read_mbps: mbps, write_mbps: mbps, shared: false };
            flag(&mut result, &[link]);
        }
        if result.errors > 0 {
            let failed = format!("{} requests FAILED and are not counted", result.errors);
            result.notes.push(CellNote::Other(failed));
        }
        Ok(result)
    }
}

fn shares(result: &mut CellResult, before: &TargetCounters, after: &TargetCounters, elapsed: u64) {
    let share = |busy: u64| if elapsed == 0 { 0.0 } else { (busy as f64 / elapsed as f64).min(1.0) };
    let blank = crate::target::MemberWork::default();
    for (number, member) in after.members.iter().enumerate() {
        let old = before.members.get(number).unwrap_or(&blank);
        let worked = |part: usize| member.busy[part].get() - old.busy[part].get();
        // The first part, if several are equal.
        let part = (0..MEMBER_PARTS.len()).rev().max_by_key(|part| worked(*part)).unwrap_or(0);
        result.members.push(MemberShare {
            busy: share(worked(part)),
            part: MEMBER_PARTS[part],
            reads: member.reads - old.reads,
            writes: member.writes - old.writes,
            sectors: member.sectors - old.sectors,
        });
    }
    for (number, (name, busy)) in after.components.iter().enumerate() {
        let old = before.components.get(number).map_or(0, |(_, busy)| busy.get());
        // Work that is under way at the start or end of the measurement may be counted on one side only.
        let busy = share(busy.get().saturating_sub(old));
        match result.components.iter_mut().find(|known| known.name == *name) {
            Some(known) => known.busy = known.busy.max(busy),
            None => result.components.push(Component { name: *name, busy }),
        }
    }
    // One slow member can be the limit of an array.
    let busiest = result.members.iter().map(|member| member.busy).reduce(f64::max);
    if let Some(busy) = busiest.filter(|_| !after.components.iter().any(|(name, _)| *name == PartName::Members)) {
        result.components.push(Component { name: PartName::Members, busy });
    }
    result
        .components
        .sort_by(|one, two| two.busy.total_cmp(&one.busy).then_with(|| one.name.word().cmp(two.name.word())));
    result.host_cpu = after.host.map(|host| {
        let busy = host.get() - before.host.map_or(0, Nanos::get);
        if elapsed == 0 {
            0.0
        } else {
            busy as f64 / elapsed as f64
        }
    });
    for (reason, count) in &after.reasons {
        let old = before.reasons.iter().find(|(name, _)| name == reason).map_or(0, |(_, count)| *count);
        if *count > old {
            result.reasons.push(((*reason).into(), count - old));
        }
    }
}

/// The largest request and the highest queue depth of a cell. A real target must be opened for both.
///
/// # Errors
/// See [`CellError`].
pub fn footprint(cell: &CellSpec, capacity: u64) -> Result<(u32, u32), CellError> {
    let of_load = own_footprint(cell, capacity)?;
    if cell.axes.cyc.is_none() && cell.axes.after.is_none() {
        return Ok(of_load);
    }
    // The load that runs before may have larger requests.
    [Pattern::FileServer, Pattern::Sequential].into_iter().try_fold(of_load, |(bytes, outstanding), before| {
        let before = own_footprint(&left_behind(cell, before), capacity)?;
        Ok((bytes.max(before.0), outstanding.max(before.1)))
    })
}

fn own_footprint(cell: &CellSpec, capacity: u64) -> Result<(u32, u32), CellError> {
    match cell.pattern {
        Pattern::FcTest | Pattern::TransferGraph | Pattern::Application | Pattern::Trace(_) => {
            let users = u32::from(cell.axes.users.unwrap_or(1));
            let graph = cell.pattern == Pattern::TransferGraph;
            let bytes = if graph { crate::imitation::GRAPH_REQUEST_BYTES } else { crate::imitation::PIECE_BYTES };
            Ok((bytes, users.max(cell.axes.qd.unwrap_or(4))))
        }
        _ => {
            let plan = CellPlan::of(cell, capacity, 512)?;
            Ok((plan.spec.bytes_max(), plan.outstanding()))
        }
    }
}

/// Does a cell write to its target?
#[must_use]
pub fn writes(cell: &CellSpec) -> bool {
    match cell.pattern {
        Pattern::TransferGraph => false,
        Pattern::Application | Pattern::Trace(_) => true,
        Pattern::FcTest => match cell.axes.step {
            Some(step) => step != FileStep::Read,
            None => cell.axes.op != Some(Direction::Read),
        },
        _ => {
            let before = matches!(cell.axes.cyc, Some(Cycle::First)) || cell.axes.after.is_some();
            before || CellPlan::of(cell, u64::MAX >> 1, 512).map_or(true, |plan| plan.spec.writes())
        }
    }
}

/// The access specification of a mix, by its name on the command line.
#[must_use]
pub fn builtin(name: &str) -> Option<load::AccessSpec> {
    match name {
        "file-server" => Some(load::file_server()),
        "web-server" => Some(load::web_server()),
        "workstation" => Some(load::workstation()),
        "streaming" => Some(load::streaming()),
        "database" => Some(load::database(8192, 67)),
        _ => None,
    }
}
