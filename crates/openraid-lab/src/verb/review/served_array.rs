//! An array of this process as a target that reports the decisions of its engine, so that a report can give reasons.

use openraid_methods::target::{HostIo, IoDone, NbdTarget, Target, TargetCounters, TargetError, TargetFacts};
use openraid_runtime::service::ServiceHandle;
use openraid_units::Instant;

/// See the module's description.
pub(super) struct Counted {
    target: NbdTarget,
    handle: ServiceHandle,
}

impl Counted {
    /// The service serves only this array.
    pub(super) const fn new(target: NbdTarget, handle: ServiceHandle) -> Self {
        Self { target, handle }
    }
}

impl Target for Counted {
    fn facts(&self) -> &TargetFacts {
        self.target.facts()
    }

    fn now(&self) -> Instant {
        self.target.now()
    }

    fn submit(&mut self, io: HostIo) {
        self.target.submit(io);
    }

    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        self.target.wait(until, done)
    }

    fn counters(&self) -> Option<TargetCounters> {
        let mut counters = self.target.counters()?;
        // If a service no longer answers, its requests fail and the cell ends.
        let status = self.handle.status().ok()?;
        for (reason, count) in status.arrays.iter().flat_map(|view| &view.status.reasons) {
            match counters.reasons.iter_mut().find(|(name, _)| *name == reason.name()) {
                Some((_, sum)) => *sum += count,
                None => counters.reasons.push((reason.name(), *count)),
            }
        }
        Some(counters)
    }
}
