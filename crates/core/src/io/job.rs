//! Computations that operations request.

use openraid_units::{PoolOffset, Tag, TagKind};

use crate::actions::{JobColumn, JobKind, ParityJob};
use crate::call::Call;
use crate::io::op::Op;
use crate::io::op_io::OpIo;
use crate::slab::Slab;
use crate::steps::What;

/// A computation over the columns of the arena from a place on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    kind: JobKind,
    /// Bytes of each column.
    len: u32,
    /// The place of the first column in the arena.
    columns: usize,
    p: Option<PoolOffset>,
    q: Option<PoolOffset>,
}

impl Job {
    /// A computation over `len` bytes of the columns from `columns` on.
    #[inline(always)]
    pub(crate) const fn new(kind: JobKind, len: u32, columns: usize) -> Self {
        Self { kind, len, columns, p: None, q: None }
    }

    /// Set the places of the two parities that it reads or writes.
    #[inline(always)]
    pub(crate) const fn with_parity(self, p: Option<PoolOffset>, q: Option<PoolOffset>) -> Self {
        Self { p, q, ..self }
    }
}

impl Slab<Op> {
    /// Request a computation for an operation.
    #[inline]
    pub(crate) fn push_job(&mut self, index: u32, job: Job, call: &mut Call) {
        let Job { kind, len, columns, p, q } = job;
        let actions = call.actions();
        let columns_start = u32::try_from(columns).expect("the arena is small");
        let columns_len = u16::try_from(actions.columns.len() - columns).expect("at most one column a member");
        let tag = Tag::new(TagKind::Job, index, self.generation(index));
        actions.jobs.push(ParityJob { tag, kind, len, columns_start, columns_len, p, q });
        self[index].pending += 1;
        call.trace().op(self, index, || What::Computing { kind, columns: columns_len, len });
    }

    /// Request a copy of `len` bytes from `old` to `at`.
    pub(crate) fn push_copy(&mut self, index: u32, (at, old): (PoolOffset, PoolOffset), len: u32, call: &mut Call) {
        let columns = call.actions().columns.len();
        call.actions().columns.push(JobColumn { index: 0, at, old });
        self.push_job(index, Job::new(JobKind::Copy, len, columns), call);
    }
}

impl OpIo<'_> {
    /// See [`Slab::push_job`].
    #[inline(always)]
    pub(super) fn push_job(&mut self, index: u32, job: Job) {
        self.ops.push_job(index, job, &mut self.call);
    }

    /// See [`Slab::push_copy`].
    pub(super) fn push_copy(&mut self, index: u32, at: PoolOffset, old: PoolOffset, len: u32) {
        self.ops.push_copy(index, (at, old), len, &mut self.call);
    }
}
