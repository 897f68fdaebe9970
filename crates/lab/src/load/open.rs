//! The open loop: requests at fixed times, which do not wait for earlier requests.
//!
//! Latency counts from the time at which a request should have come, so that a target that stalls cannot hide the
//! requests that it delayed.

use super::{Request, Source, Step};
use crate::metrics::Recorder;
use crate::target::{HostIo, IoDone, IoKind, ReplyStatus, Target, TargetError};
use openraid_sim::Random;
use openraid_units::{Instant, Nanos};
use std::collections::VecDeque;

/// Requests that are outstanding at the target at most; more wait in the generator, and their latency counts on.
pub const OUTSTANDING_MAX: usize = 4096;
/// The most requests that wait in the generator (40 bytes each): a target that falls back further gets no more.
pub const WAITING_MAX: usize = 1 << 20;

/// How requests come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// One after each such time.
    Even(Nanos),
    /// Independent of each other, with this mean time between them.
    Poisson(Nanos),
}

/// A source of requests and their times.
pub trait Arrivals {
    /// The next request, at its time from the start; times never go back. Nothing at the end.
    fn next(&mut self) -> Option<(Nanos, Request)>;
}

/// A source with times from a pace.
pub struct Paced<'a, S: ?Sized> {
    source: &'a mut S,
    pace: Pace,
    random: Random,
    at: u64,
}

impl<'a, S: Source + ?Sized> Paced<'a, S> {
    /// Requests of a source's first worker.
    pub fn new(source: &'a mut S, pace: Pace, seed: u64) -> Self {
        Self { source, pace, random: Random::derived(seed, 0x0a11), at: 0 }
    }
}

impl<S: Source + ?Sized> Arrivals for Paced<'_, S> {
    fn next(&mut self) -> Option<(Nanos, Request)> {
        let gap = match self.pace {
            Pace::Even(gap) => gap.get(),
            Pace::Poisson(mean) => exponential(&mut self.random, mean.get()),
        };
        self.at += gap;
        loop {
            match self.source.next(0) {
                Step::Ask(request) => return Some((Nanos(self.at), request)),
                Step::Think(time) => self.at += time.get(),
                Step::End => return None,
            }
        }
    }
}

/// A time of an exponential distribution.
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
struct Asked {
    due: Instant,
    kind: IoKind,
    len: u32,
}

/// The result of an open loop, apart from the counted requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenRun {
    /// Requests that came; the target got all of them.
    pub came: u64,
    /// Number of requests that had to wait because too many were outstanding.
    pub late: u64,
    /// When [`WAITING_MAX`] requests waited and no more were accepted, from the start. Later requests were never
    /// issued.
    pub cut_off: Option<Nanos>,
}

/// Run arrivals until `end` (time from now on) or their end; then wait for the outstanding requests. Requests due
/// before `count_from` are issued but not counted. The target gets at most `room` at the same time ([`OUTSTANDING_MAX`]
/// at most).
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
    let mut asked: Vec<Option<Asked>> = vec![None; room];
    let mut free: Vec<usize> = (0..room).rev().collect();
    let mut waiting: VecDeque<(Instant, Request)> = VecDeque::new();
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
            asked[slot] = Some(Asked { due, kind: request.kind, len: request.len });
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

fn count(recorder: &mut Recorder, asked: Asked, io: &IoDone) {
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
