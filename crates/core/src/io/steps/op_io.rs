//! An operation at work: what it may use during one call.
//!
//! ```text
//!  above    requests, cache                  read only; what they are to know goes up as reports and ends (`ended.rs`)
//!  own      operations with their ranges and queues, frames
//!  below    sets, journal, drives, trace     called; sets leave signals for the layers above
//! ```
//!
//! [`OpIo`] has no other part of the controller, so no operation can change a request or a line of the cache. The controller
//! makes one for each call of this folder, and hands on afterwards what the call has left.

use openraid_units::SetId;

use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::call::Call;
use crate::frames::Pool;
use crate::io::state::ended::EndedOps;
use crate::io::state::job::Job;
use crate::io::state::ops::Ops;
use crate::journal::Journal;
use crate::reason::{FailReason, Reason};
use crate::request_steps::StepEvent;
use crate::requests::Requests;
use openraid_units::PoolOffset;

/// See the module header.
pub(crate) struct OpIo<'a> {
    pub(super) ops: &'a mut Ops,
    pub(super) pool: &'a mut Pool,
    pub(super) ended: &'a mut EndedOps,
    pub(super) sets: &'a mut Sets,
    pub(super) journal: &'a mut Journal,
    /// The layers above operations: asked for what hosts want, and for the journal entries of dirty lines.
    pub(super) requests: &'a Requests,
    pub(super) cache: &'a Cache,
    pub(super) call: Call<'a>,
}

impl<'a> OpIo<'a> {
    /// Lend the operations with their frames and ends, the layers below, and those above to read.
    #[inline(always)]
    pub(crate) fn new(
        (ops, pool, ended): (&'a mut Ops, &'a mut Pool, &'a mut EndedOps),
        (sets, journal): (&'a mut Sets, &'a mut Journal),
        (requests, cache): (&'a Requests, &'a Cache),
        call: Call<'a>,
    ) -> Self {
        Self { ops, pool, ended, sets, journal, requests, cache, call }
    }
}

impl OpIo<'_> {
    /// Count and record a reason for the set of an operation.
    pub(super) fn note(&mut self, index: u32, reason: Reason, unit: u64, figure: u32) {
        self.call.trace().note_op(self.sets, self.ops, index, reason, unit, figure);
    }

    /// Record a step of an operation, if steps are kept.
    #[inline(always)]
    pub(super) fn trace_op(&mut self, index: u32, event: impl FnOnce() -> StepEvent) {
        self.call.trace().op(self.ops, index, event);
    }

    /// See [`Sets::fail_member`].
    pub(super) fn fail_member(&mut self, member: (SetId, u32), reason: FailReason) -> bool {
        self.sets.fail_member(member, reason, &mut self.call)
    }

    /// See [`Ops::push_job`].
    #[inline(always)]
    pub(super) fn push_job(&mut self, index: u32, job: Job) {
        self.ops.push_job(index, job, &mut self.call);
    }

    /// See [`Ops::push_copy`].
    pub(super) fn push_copy(&mut self, index: u32, at: PoolOffset, old: PoolOffset, len: u32) {
        self.ops.push_copy(index, (at, old), len, &mut self.call);
    }
}

#[cfg(test)]
mod tests;
