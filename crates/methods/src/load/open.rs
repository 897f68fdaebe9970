//! The open loop: requests at fixed times, which do not wait for earlier requests.
//!
//! The latency of a request counts from its scheduled time, so that a target that stalls cannot hide the requests that
//! it delayed.

use super::{LoadRequest, LoadSource, LoadStep};
use crate::metrics::Recorder;
use crate::target::{HostIo, IoDone, IoKind, ReplyStatus, Target, TargetError};
use openraid_sim::Random;
use openraid_units::{Instant, Nanos};
use std::collections::VecDeque;

/// Maximum number of outstanding requests at the target. Further requests wait in the generator. Their latency includes
/// that wait.
pub const OUTSTANDING_MAX: usize = 4096;
/// Maximum number of requests that wait in the generator (40 bytes each). If more would wait, the target gets no more
/// requests.
pub const WAITING_MAX: usize = 1 << 20;

/// The distribution of arrival times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArrivalPace {
    /// One request after each interval.
    Even(Nanos),
    /// Independent requests with this mean interval.
    Poisson(Nanos),
}

/// A source of requests and their times.
pub trait Arrivals {
    /// The next request with its time since the start; times never decrease. None at the end.
    fn next(&mut self) -> Option<(Nanos, LoadRequest)>;
}

/// A source whose times come from a pace.
pub struct PacedSource<'a, S: ?Sized> {
    source: &'a mut S,
    pace: ArrivalPace,
    random: Random,
    at: u64,
}

impl<'a, S: LoadSource + ?Sized> PacedSource<'a, S> {
    /// The requests of a source's first worker.
    pub fn new(source: &'a mut S, pace: ArrivalPace, seed: u64) -> Self {
        Self { source, pace, random: Random::derived(seed, 0x0a11), at: 0 }
    }
}

impl<S: LoadSource + ?Sized> Arrivals for PacedSource<'_, S> {
    fn next(&mut self) -> Option<(Nanos, LoadRequest)> {
        let gap = match self.pace {
            ArrivalPace::Even(gap) => gap.get(),
            ArrivalPace::Poisson(mean) => exponential(&mut self.random, mean.get()),
        };
        self.at += gap;
        loop {
            match self.source.next(0) {
                LoadStep::Ask(request) => return Some((Nanos(self.at), request)),
                LoadStep::Think(time) => self.at += time.get(),
                LoadStep::End => return None,
            }
        }
    }
}

/// A random time with an exponential distribution.
fn exponential(random: &mut Random, mean: u64) -> u64 {
    // 53 bits, never zero.
    let uniform = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let time = -uniform.ln() * mean as f64;
    // Below 37 means.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = time as u64;
    whole
}

#[derive(Clone, Copy)]
struct DueRequest {
    due: Instant,
    kind: IoKind,
    len: u32,
}

/// The result of an open loop, except the counted requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenRun {
    /// Number of requests that arrived; the target got all of them.
    pub came: u64,
    /// Number of requests that had to wait because too many were outstanding.
    pub late: u64,
    /// The time since the start at which [`WAITING_MAX`] requests waited and no more were accepted. Later requests were
    /// never sent.
    pub cut_off: Option<Nanos>,
}

/// Sends arriving requests until `end` (a time from now) or until the arrivals end, and then waits for the outstanding
/// ones. Requests with a time before `count_from` are sent but not counted. The target has at most `room` requests at a
/// time, and at most [`OUTSTANDING_MAX`].
///
/// # Errors
/// The target cannot continue.
pub fn run_open<T: Target + ?Sized, A: Arrivals + ?Sized>(
    target: &mut T,
    arrivals: &mut A,
    count_from: Nanos,
    end: Nanos,
    room: usize,
    recorder: &mut Recorder,
) -> Result<OpenRun, TargetError> {
    let room = room.clamp(1, OUTSTANDING_MAX);
    let start = target.now();
    let from = start + count_from;
    let mut asked: Vec<Option<DueRequest>> = vec![None; room];
    let mut free: Vec<usize> = (0..room).rev().collect();
    let mut waiting: VecDeque<(Instant, LoadRequest)> = VecDeque::new();
    let mut run = OpenRun::default();
    let mut done: Vec<IoDone> = Vec::new();
    let mut coming = arrivals.next().filter(|(time, _)| *time < end);
    loop {
        let now = target.now();
        while let Some((time, request)) = coming.filter(|(time, _)| start + *time <= now) {
            waiting.push_back((start + time, request));
            run.came += 1;
            coming = arrivals.next().filter(|(time, _)| *time < end);
            if waiting.len() >= WAITING_MAX && coming.take().is_some() {
                run.cut_off = Some(now.since(start));
            }
        }
        while let (Some(&(due, request)), Some(&slot)) = (waiting.front(), free.last()) {
            waiting.pop_front();
            free.pop();
            asked[slot] = Some(DueRequest { due, kind: request.kind, len: request.len });
            let (kind, offset, len) = (request.kind, request.offset, request.len);
            target.submit(HostIo { id: slot as u64, kind, offset, len, worker: 0 });
        }
        run.late += u64::from(!waiting.is_empty());
        if free.len() == room && waiting.is_empty() && coming.is_none() {
            return Ok(run);
        }
        let until = coming.map_or(Instant::NEVER, |(time, _)| start + time);
        done.clear();
        target.wait(until, &mut done)?;
        for io in &done {
            let slot = usize::try_from(io.id).expect("names are slots");
            let ended = asked[slot].take().expect("bug: the target ended a request twice");
            free.push(slot);
            if ended.due >= from {
                count(recorder, ended, io);
            }
        }
    }
}

fn count(recorder: &mut Recorder, asked: DueRequest, io: &IoDone) {
    if io.status != ReplyStatus::Ok {
        recorder.errors += 1;
        return;
    }
    let latency = io.at.since(asked.due).get();
    match asked.kind {
        IoKind::Read => recorder.reads.add(asked.len, latency),
        IoKind::Write => recorder.writes.add(asked.len, latency),
        IoKind::Flush => recorder.flushes += 1,
    }
}
