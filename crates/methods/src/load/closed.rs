//! The closed loop: each worker keeps a fixed number of requests outstanding.
//!
//! ```text
//!   slot: asks -> outstanding -> done -> asks ...      (workers x depth slots, each with the name of its index)
//!                     ^            \-> waits (the host's jitter: in the heap until its time)
//!
//!   worker: asks -> is to think -> thinks -> asks ...
//!                 (no slot asks; outstanding requests end first)
//! ```
//!
//! A worker thinks as a whole, as fio's jobs and Iometer's workers do: its pause begins when all its outstanding
//! requests have ended, and none of its slots asks before it is over.

use super::{LoadSource, LoadStep};
use crate::metrics::Recorder;
use crate::target::{HostIo, IoDone, IoKind, ReplyStatus, Target, TargetError};
use openraid_sim::Random;
use openraid_units::{Instant, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The condition at which the loop returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// Number of ended requests after which the load stops.
    pub requests: u64,
    /// The time at which the load stops.
    pub at: Instant,
}

impl Stop {
    /// No condition: the loop ends only when the source ends.
    pub const NEVER: Self = Self { requests: u64::MAX, at: Instant::NEVER };
}

/// The options of a closed loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopOptions {
    /// Number of workers.
    pub workers: u16,
    /// Outstanding requests of each worker.
    pub depth: u32,
    /// Before each request the host takes a random time up to this value.
    pub jitter: Nanos,
    /// Seed of the jitter.
    pub seed: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    worker: u16,
    kind: IoKind,
    len: u32,
    since: Instant,
    outstanding: bool,
}

/// The state of a worker's pause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// The worker sends requests.
    None,
    /// The worker will pause for this time when it has no outstanding request.
    Due(Nanos),
    /// The worker pauses; the first of its waiting slots is in the heap.
    Running,
}

struct Worker {
    outstanding: u32,
    pause: Pause,
    /// Slots that send a request after the pause, in the order in which they became free.
    parked: Vec<u32>,
}

/// A closed loop. It can run in several parts; requests stay outstanding between them.
pub struct ClosedLoop {
    slots: Vec<Slot>,
    workers: Vec<Worker>,
    /// Slots that send a request at a later time, sorted by time and then by order.
    later: BinaryHeap<Reverse<(Instant, u32)>>,
    jitter: Nanos,
    random: Random,
    outstanding: usize,
    done: Vec<IoDone>,
    started: bool,
}

impl ClosedLoop {
    /// A loop before its first request.
    #[must_use]
    pub fn new(options: LoopOptions) -> Self {
        Self::uneven(options, 0)
    }

    /// As [`Self::new`], but the first `deeper` workers have one more outstanding request than the others.
    #[must_use]
    pub fn uneven(options: LoopOptions, deeper: u16) -> Self {
        let slot = |worker| Slot { worker, kind: IoKind::Read, len: 0, since: Instant::ZERO, outstanding: false };
        // The slots are sorted by depth, so that all workers begin at the same time.
        let slots = (0..options.depth).flat_map(|_| (0..options.workers).map(slot)).chain((0..deeper).map(slot));
        let worker = || Worker { outstanding: 0, pause: Pause::None, parked: Vec::new() };
        Self {
            slots: slots.collect(),
            workers: std::iter::repeat_with(worker).take(usize::from(options.workers)).collect(),
            later: BinaryHeap::new(),
            jitter: options.jitter,
            random: Random::derived(options.seed, u64::MAX),
            outstanding: 0,
            done: Vec::new(),
            started: false,
        }
    }

    /// Runs until `stop` and returns the number of requests that ended. If there is a `recorder`, it counts them.
    /// Returns early if the source has ended and no request is outstanding.
    ///
    /// # Errors
    /// The target cannot continue.
    pub fn run<T: Target + ?Sized, S: LoadSource + ?Sized>(
        &mut self,
        target: &mut T,
        source: &mut S,
        stop: Stop,
        mut recorder: Option<&mut Recorder>,
    ) -> Result<u64, TargetError> {
        if !self.started {
            self.started = true;
            for slot in 0..self.slots.len() {
                self.ask(target, source, slot);
            }
        }
        let mut ended = 0;
        while ended < stop.requests {
            let now = target.now();
            if now >= stop.at {
                break;
            }
            let due = self.later.peek().map_or(Instant::NEVER, |Reverse((time, _))| *time);
            if due <= now {
                let Reverse((_, slot)) = self.later.pop().expect("just looked at");
                self.wake(target, source, slot);
                continue;
            }
            if self.outstanding == 0 && self.later.is_empty() {
                break;
            }
            let mut done = std::mem::take(&mut self.done);
            done.clear();
            target.wait(due.min(stop.at), &mut done)?;
            for io in &done {
                ended += 1;
                let slot = self.end(io, recorder.as_deref_mut());
                self.again(target, source, slot);
            }
            self.done = done;
        }
        Ok(ended)
    }

    /// Waits for the outstanding requests and sends no more.
    ///
    /// # Errors
    /// The target cannot continue.
    pub fn drain<T: Target + ?Sized>(
        &mut self,
        target: &mut T,
        mut recorder: Option<&mut Recorder>,
    ) -> Result<(), TargetError> {
        self.later.clear();
        while self.outstanding > 0 {
            let mut done = std::mem::take(&mut self.done);
            done.clear();
            target.wait(Instant::NEVER, &mut done)?;
            for io in &done {
                self.end(io, recorder.as_deref_mut());
            }
            self.done = done;
        }
        Ok(())
    }

    fn end(&mut self, io: &IoDone, recorder: Option<&mut Recorder>) -> usize {
        let index = usize::try_from(io.id).expect("names are slots");
        let slot = &mut self.slots[index];
        assert!(slot.outstanding, "bug: the target ended request {} twice", io.id);
        slot.outstanding = false;
        self.outstanding -= 1;
        self.workers[usize::from(slot.worker)].outstanding -= 1;
        if let Some(recorder) = recorder {
            count(recorder, slot, io);
        }
        index
    }

    fn again<T: Target + ?Sized, S: LoadSource + ?Sized>(&mut self, target: &mut T, source: &mut S, slot: usize) {
        self.begin_pause(target.now(), usize::from(self.slots[slot].worker));
        if self.jitter == Nanos::ZERO {
            return self.ask(target, source, slot);
        }
        let wait = Nanos(self.random.below(self.jitter.get() + 1));
        self.later.push(Reverse((target.now() + wait, u32::try_from(slot).expect("few slots"))));
    }

    /// Begins the pause of a worker when it has no outstanding request.
    fn begin_pause(&mut self, now: Instant, worker: usize) {
        let worker = &mut self.workers[worker];
        if let (Pause::Due(time), 0) = (worker.pause, worker.outstanding) {
            worker.pause = Pause::Running;
            self.later.push(Reverse((now + time, worker.parked[0])));
        }
    }

    /// Handles a slot in the heap whose time has come. The time is that of its own request, or the end of its worker's
    /// pause.
    fn wake<T: Target + ?Sized, S: LoadSource + ?Sized>(&mut self, target: &mut T, source: &mut S, slot: u32) {
        let worker = &mut self.workers[usize::from(self.slots[slot as usize].worker)];
        if worker.pause != Pause::Running || worker.parked.first() != Some(&slot) {
            return self.ask(target, source, slot as usize);
        }
        worker.pause = Pause::None;
        for slot in std::mem::take(&mut worker.parked) {
            self.ask(target, source, slot as usize);
        }
    }

    fn ask<T: Target + ?Sized, S: LoadSource + ?Sized>(&mut self, target: &mut T, source: &mut S, index: usize) {
        let now = target.now();
        let worker = self.slots[index].worker;
        let of_worker = &mut self.workers[usize::from(worker)];
        if of_worker.pause != Pause::None {
            of_worker.parked.push(u32::try_from(index).expect("few slots"));
            return;
        }
        match source.next(worker) {
            LoadStep::Ask(request) => {
                let slot = &mut self.slots[index];
                *slot = Slot { worker, kind: request.kind, len: request.len, since: now, outstanding: true };
                self.outstanding += 1;
                of_worker.outstanding += 1;
                let (kind, offset, len) = (request.kind, request.offset, request.len);
                target.submit(HostIo { id: index as u64, kind, offset, len, worker });
            }
            LoadStep::Think(time) => {
                of_worker.pause = Pause::Due(time);
                of_worker.parked.push(u32::try_from(index).expect("few slots"));
                self.begin_pause(now, usize::from(worker));
            }
            LoadStep::End => {}
        }
    }
}

fn count(recorder: &mut Recorder, slot: &Slot, io: &IoDone) {
    if io.status != ReplyStatus::Ok {
        recorder.errors += 1;
        return;
    }
    let latency = io.at.since(slot.since).get();
    if let Some(slices) = &mut recorder.slices {
        slices.add(io.at, latency);
    }
    match slot.kind {
        IoKind::Read => recorder.reads.add(slot.len, latency),
        IoKind::Write => recorder.writes.add(slot.len, latency),
        IoKind::Flush => recorder.flushes += 1,
    }
    if let Some((requests, bytes)) = recorder.workers.get_mut(usize::from(slot.worker)) {
        *requests += 1;
        *bytes += u64::from(slot.len);
    }
}
