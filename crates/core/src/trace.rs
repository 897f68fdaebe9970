//! Output of the engine for readers: the reason of each decision, the steps of requests.
//!
//! The engine writes the trace and never reads it, so it changes no decision. It has the time of the present call of
//! [`Controller::advance`](crate::Controller::advance).

use alloc::vec::Vec;
use openraid_units::{ArrayId, Instant, SetId};

use crate::reason::{Reason, TraceEntry};
use crate::request_steps::{OpName, Step, StepEvent, StepSubject, Steps};

/// The sets, as far as the trace and notices need them.
pub(crate) trait TracedSets {
    /// Count a reason for a set.
    fn count_reason(&mut self, set: SetId, reason: Reason);
    /// The array of a set.
    fn array_of(&self, set: SetId) -> ArrayId;
}

/// The operations, as far as the trace needs them.
pub(crate) trait TracedOps {
    /// The name of an operation, if its steps are shown.
    fn traced(&self, index: u32) -> Option<OpName>;
    /// The set of an operation.
    fn set_of(&self, index: u32) -> SetId;
}

/// The requests, as far as the trace needs them.
pub(crate) trait TracedRequests {
    /// The number of a request; `None` for read-ahead.
    fn traced(&self, request: u32) -> Option<u64>;
    /// The request of a piece.
    fn request_of(&self, piece: u32) -> u32;
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct Trace {
    now: Instant,
    /// The last decisions, in a ring.
    ring: Vec<TraceEntry>,
    next: usize,
    steps: Steps,
}

impl Trace {
    /// A trace with room for `entries` decisions.
    pub(crate) fn new(entries: u32) -> Self {
        Self { now: Instant::ZERO, ring: Vec::with_capacity(entries as usize), next: 0, steps: Steps::default() }
    }

    /// Set the time of the next entries.
    #[inline(always)]
    pub(crate) fn set_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// Note the reason for a decision about a set, with its unit and a figure.
    pub(crate) fn note(&mut self, sets: &mut impl TracedSets, set: SetId, reason: Reason, unit: u64, figure: u32) {
        sets.count_reason(set, reason);
        let entry = TraceEntry { at: self.now, set, reason, unit, figure };
        if self.ring.len() < self.ring.capacity() {
            self.ring.push(entry);
        } else if !self.ring.is_empty() {
            self.ring[self.next] = entry;
            // No division: this is done for most requests.
            self.next = if self.next + 1 == self.ring.len() { 0 } else { self.next + 1 };
        }
    }

    /// Note the reason for something that an operation does or waits for.
    pub(crate) fn note_op(
        &mut self,
        sets: &mut impl TracedSets,
        ops: &impl TracedOps,
        index: u32,
        reason: Reason,
        unit: u64,
        figure: u32,
    ) {
        self.note(sets, ops.set_of(index), reason, unit, figure);
        self.op(ops, index, || StepEvent::Reason { reason, figure });
    }

    /// The last decisions, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &TraceEntry> {
        self.ring[self.next..].iter().chain(&self.ring[..self.next])
    }

    /// The steps that are kept.
    pub(crate) const fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Keep the last `count` steps from now on.
    pub(crate) fn keep_steps(&mut self, count: usize) {
        self.steps = Steps::keeping(count);
    }

    #[cold]
    pub(crate) fn step(&mut self, subject: StepSubject, event: StepEvent) {
        self.steps.push(Step { at: self.now, subject, event });
    }

    /// A step of a host request, named by its place in the table. Read-ahead has none.
    #[inline(always)]
    pub(crate) fn request(&mut self, requests: &impl TracedRequests, request: u32, event: impl FnOnce() -> StepEvent) {
        if self.steps.is_on() {
            if let Some(number) = requests.traced(request) {
                self.step(StepSubject::Request(number), event());
            }
        }
    }

    /// A step of the request of a piece.
    #[inline(always)]
    pub(crate) fn piece(&mut self, requests: &impl TracedRequests, piece: u32, event: impl FnOnce() -> StepEvent) {
        if self.steps.is_on() {
            self.request(requests, requests.request_of(piece), event);
        }
    }

    /// A step of an operation. Operations that serve no host have none.
    #[inline(always)]
    pub(crate) fn op(&mut self, ops: &impl TracedOps, index: u32, event: impl FnOnce() -> StepEvent) {
        if self.steps.is_on() {
            if let Some(name) = ops.traced(index) {
                self.step(StepSubject::Op(name), event());
            }
        }
    }

    /// A step of an entry of the journal.
    #[inline(always)]
    pub(crate) fn entry(&mut self, sequence: u64, event: impl FnOnce() -> StepEvent) {
        if self.steps.is_on() {
            self.step(StepSubject::Entry(sequence), event());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::array::sets::Sets;

    use crate::geometry::shape::Shape;
    use crate::geometry::{Level, SetSpec};
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, Sectors};

    #[test]
    fn the_last_entries_are_kept_oldest_first() {
        let mut trace = Trace::new(3);
        let mut sets = Sets::new();
        let spec = SetSpec {
            level: Level::Raid0,
            members: 2,
            chunk: Sectors::kib(64),
            layout: 2,
            member_size: Sectors::kib(1024),
            member_sizes: &[Sectors::kib(1024); 2],
        };
        let shape = Shape::of(&spec);
        let set = crate::array::set::Set::new(ArrayId(0), shape, (BlockSize::B512, 8), &Limits::small());
        sets.put(SetId(0), set);
        for unit in 0..5 {
            trace.set_time(Instant(unit * 10));
            trace.note(&mut sets, SetId(0), Reason::Direct, unit, 0);
        }
        let kept = trace.entries().map(|entry| (entry.at.0, entry.unit));
        assert!(kept.eq([(20, 2), (30, 3), (40, 4)]));
    }
}
