//! A target whose results can be computed by hand: several servers, each with a fixed or exponential service time, and
//! one queue. It is used to test the generator alone.

use super::{HostIo, IoDone, MemberWork, ReplyStatus, Target, TargetCounters, TargetError, TargetFacts};
use crate::cell::PartName;
use openraid_sim::Random;
use openraid_units::{Bytes, Instant, Nanos};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Servers with one common queue, in virtual time.
pub struct QueueServers {
    facts: TargetFacts,
    now: Instant,
    idle: usize,
    service: Nanos,
    exponential: Option<Random>,
    queue: VecDeque<HostIo>,
    /// Sorted by time, then order; with the id of the request.
    busy: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    sequence: u64,
    counters: MemberWork,
}

impl QueueServers {
    /// Servers that take the same time for every request.
    #[must_use]
    pub fn constant(servers: usize, service: Nanos, capacity: Bytes) -> Self {
        let facts = TargetFacts {
            name: format!("fake:{servers}"),
            capacity,
            block: Bytes(512),
            simulated: true,
            writable: true,
            page_cache: false,
            link_mbps: None,
            bed: vec![format!("{servers} servers of {service}").into()],
        };
        Self {
            facts,
            now: Instant::ZERO,
            idle: servers,
            service,
            exponential: None,
            queue: VecDeque::new(),
            busy: BinaryHeap::new(),
            sequence: 0,
            counters: MemberWork::default(),
        }
    }

    /// Servers with exponential service times of this mean.
    #[must_use]
    pub fn exponential(mut self, seed: u64) -> Self {
        self.exponential = Some(Random::new(seed));
        self
    }

    fn start(&mut self) {
        while self.idle > 0 {
            let Some(io) = self.queue.pop_front() else { return };
            self.idle -= 1;
            let time = match &mut self.exponential {
                None => self.service,
                Some(random) => {
                    let uniform = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                    // Below 37 means.
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let time = (-uniform.ln() * self.service.get() as f64) as u64;
                    Nanos(time)
                }
            };
            self.sequence += 1;
            self.counters.busy[0] += time;
            self.busy.push(Reverse((self.now + time, self.sequence, io.id)));
        }
    }
}

impl Target for QueueServers {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, io: HostIo) {
        assert!(io.offset + u64::from(io.len) <= self.facts.capacity.get(), "bug: a request beyond the target");
        self.counters.reads += u64::from(io.kind == super::IoKind::Read);
        self.counters.writes += u64::from(io.kind == super::IoKind::Write);
        self.counters.sectors += u64::from(io.len / 512);
        self.queue.push_back(io);
        self.start();
    }

    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        match self.busy.peek() {
            Some(&Reverse((at, _, id))) if at <= until => {
                self.busy.pop();
                self.now = at;
                self.idle += 1;
                done.push(IoDone { id, at, status: ReplyStatus::Ok });
                self.start();
            }
            _ if until == Instant::NEVER => {
                let (name, reason) = (self.facts.name.clone(), "nothing is outstanding".into());
                return Err(TargetError::Gone { name, reason });
            }
            _ => self.now = self.now.max(until),
        }
        Ok(())
    }

    fn counters(&self) -> Option<TargetCounters> {
        let components = vec![(PartName::Members, self.counters.busy[0])];
        Some(TargetCounters { members: vec![self.counters], components, ..TargetCounters::default() })
    }
}
