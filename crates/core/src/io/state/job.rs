//! Computations that operations request.

use openraid_units::{PoolOffset, Tag, TagKind};

use crate::actions::{JobColumn, JobKind, ParityJob};
use crate::call::Call;
use crate::io::state::ops::Ops;
use crate::request_steps::StepEvent;

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

impl Ops {
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
        call.trace().op(self, index, || StepEvent::Computing { kind, columns: columns_len, len });
    }

    /// Request a copy of `len` bytes from `old` to `at`.
    pub(crate) fn push_copy(&mut self, index: u32, (at, old): (PoolOffset, PoolOffset), len: u32, call: &mut Call) {
        let columns = call.actions().columns.len();
        call.actions().columns.push(JobColumn { index: 0, at, old });
        self.push_job(index, Job::new(JobKind::Copy, len, columns), call);
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::SetId;

    use super::*;
    use crate::actions::Actions;
    use crate::call::Base;
    use crate::io::state::footprint::Footprint;
    use crate::io::state::op::{Op, OpKind};
    use crate::limits::Limits;

    /// A table with an operation in its second use of place 0, and room for actions.
    fn table() -> (Ops, Base, Actions) {
        let (base, mut ops) = (Base::new(Limits::small()), Ops::new(2));
        let op = || Op::new(OpKind::RowWrite, SetId(0), Footprint::Set);
        let first = ops.put(op());
        ops.free(first.index);
        ops.put(op());
        let actions = Actions::new(&base.limits);
        (ops, base, actions)
    }

    fn column(at: u64) -> JobColumn {
        JobColumn { index: 1, at: PoolOffset(at), old: PoolOffset(at + 512) }
    }

    #[test]
    fn a_job_has_the_columns_after_its_place_and_the_operation_waits_for_one_end_more() {
        let (mut ops, mut base, mut actions) = table();
        actions.columns.extend([column(0), column(4096), column(8192)]);
        let job = Job::new(JobKind::Generate, 1024, 1).with_parity(Some(PoolOffset(7)), Some(PoolOffset(9)));
        ops.push_job(0, job, &mut Call::new(&mut base, &mut actions));
        let tag = Tag::new(TagKind::Job, 0, 1);
        let (p, q) = (Some(PoolOffset(7)), Some(PoolOffset(9)));
        let (kind, len) = (JobKind::Generate, 1024);
        assert_eq!(actions.jobs, [ParityJob { tag, kind, len, columns_start: 1, columns_len: 2, p, q }]);
        assert_eq!(actions.columns_of(&actions.jobs[0]), [column(4096), column(8192)]);
        assert_eq!(ops[0].pending, 1);
    }

    #[test]
    fn a_copy_has_one_column_of_its_own_and_copies_do_not_share_columns() {
        let (mut ops, mut base, mut actions) = table();
        actions.columns.push(column(0));
        for (at, old) in [(4096, 8192), (512, 1024)] {
            ops.push_copy(0, (PoolOffset(at), PoolOffset(old)), 512, &mut Call::new(&mut base, &mut actions));
        }
        let copies = [(4096, 8192), (512, 1024)].map(|(at, old)| (PoolOffset(at), PoolOffset(old)));
        assert_eq!((actions.jobs.len(), ops[0].pending), (2, 2));
        for (job, (at, old)) in actions.jobs.iter().zip(copies) {
            assert_eq!((job.kind, job.len, job.p, job.q), (JobKind::Copy, 512, None, None));
            assert_eq!(actions.columns_of(job), [JobColumn { index: 0, at, old }]);
        }
    }
}
