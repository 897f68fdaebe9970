//! Operations in the steps of requests: their names, and which of them are shown.

use crate::io::state::op::{Op, OpKind, WorksFor};
use crate::io::state::ops::Ops;
use crate::request_steps::{OpName, Work};
use crate::slab::Slab;
use crate::trace::TracedOps;
use openraid_units::SetId;

/// The name of an operation, by its place in the table.
pub(crate) fn op_name(ops: &Slab<Op>, index: u32) -> OpName {
    OpName(u64::from(ops.generation(index)) << 32 | u64::from(index))
}

/// Does an operation serve a host, directly or with data that a write left in the cache?
pub(crate) fn is_traced(ops: &Slab<Op>, index: u32) -> bool {
    let op = &ops[index];
    let top = op.parent().map_or(op, |parent| &ops[parent]);
    let serves =
        top.is_destage() || matches!(top.works_for(), WorksFor::Piece(_) | WorksFor::Request(_) | WorksFor::Gather(_));
    serves && work_of(top).is_some()
}

pub(crate) fn work_of(op: &Op) -> Option<Work> {
    match op.kind() {
        OpKind::Read => Some(Work::Read),
        OpKind::RowRead => Some(Work::RowRead),
        OpKind::Write => Some(Work::Write),
        OpKind::RowWrite => Some(Work::RowWrite),
        OpKind::Discard => Some(Work::Discard),
        OpKind::Flush => Some(Work::Flush),
        OpKind::Destage => Some(Work::Destage),
        OpKind::RowDestage => Some(Work::RowDestage),
        OpKind::Rebuild | OpKind::Resync | OpKind::Scrub | OpKind::Redo | OpKind::Reparity | OpKind::Move => None,
    }
}

impl TracedOps for Ops {
    #[inline(always)]
    fn traced(&self, index: u32) -> Option<OpName> {
        is_traced(self, index).then(|| op_name(self, index))
    }

    #[inline(always)]
    fn set_of(&self, index: u32) -> SetId {
        self[index].set()
    }
}
