//! A target that does nothing: every request ends at once, so a load costs only the generator's own time.

use super::{HostIo, IoDone, ReplyStatus, Target, TargetCounters, TargetError, TargetFacts};
use crate::cell::PartName;
use openraid_sys::clock;
use openraid_units::{Bytes, Instant};
use std::time::Duration;

/// A target that does nothing; see the module's description.
pub struct NullTarget {
    facts: TargetFacts,
    waiting: Vec<u64>,
}

impl NullTarget {
    /// A null target of this size.
    #[must_use]
    pub fn new(capacity: Bytes) -> Self {
        let facts = TargetFacts {
            name: "null:".into(),
            capacity,
            block: Bytes(512),
            simulated: false,
            writable: true,
            page_cache: false,
            link_mbps: None,
            bed: vec!["null target: requests end at once, nothing is kept".into()],
        };
        Self { facts, waiting: Vec::new() }
    }
}

impl Target for NullTarget {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn submit(&mut self, io: HostIo) {
        self.waiting.push(io.id);
    }

    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        let now = clock::now();
        if self.waiting.is_empty() && until > now {
            if until == Instant::NEVER {
                let reason = "nothing is outstanding".into();
                return Err(TargetError::Gone { name: self.facts.name.clone(), reason });
            }
            std::thread::sleep(Duration::from_nanos(until.since(now).get()));
        }
        done.extend(self.waiting.drain(..).map(|id| IoDone { id, at: now, status: ReplyStatus::Ok }));
        Ok(())
    }

    fn counters(&self) -> Option<TargetCounters> {
        let time = clock::thread_cpu();
        Some(TargetCounters {
            host: Some(time),
            components: vec![(PartName::Generator, time)],
            ..TargetCounters::default()
        })
    }
}
