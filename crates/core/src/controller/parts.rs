//! The parts of the controller that one call lends out together.

use crate::actions::Actions;
use crate::cache::callers::Callers;
use crate::cache::Cache;
use crate::call::Call;
use crate::controller::Controller;
use crate::io::state::op::Op;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::start;
use crate::journal::others::Others;
use crate::journal::Journal;

impl Controller {
    /// The journal, and the other components.
    #[inline(always)]
    pub(crate) fn journal_and_others<'a>(&'a mut self, actions: &'a mut Actions) -> (&'a mut Journal, Others<'a>) {
        let is_piece_waiting = !self.requests.is_none_waiting();
        let Self { journal, sets, ops, cache, base, .. } = self;
        let call = Call::new(base, actions);
        (journal, Others::new(sets, ops, cache, is_piece_waiting, call))
    }

    /// The cache, and what it works for.
    #[inline(always)]
    pub(super) fn cache_and_callers(&mut self) -> (&mut Cache, Callers<'_>) {
        let Self { cache, requests, sets, base, .. } = self;
        (cache, Callers::new(requests, sets, &mut base.trace))
    }

    /// What operations may use during the present call.
    #[inline(always)]
    pub(crate) fn op_io<'a>(&'a mut self, actions: &'a mut Actions) -> OpIo<'a> {
        OpIo::new(
            (&mut self.ops, &mut self.pool, &mut self.ended),
            (&mut self.sets, &mut self.journal),
            (&self.requests, &self.cache, &self.arrays),
            Call::new(&mut self.base, actions),
        )
    }

    /// Put an operation into the table, and let it begin. Inlined, so that it is constructed in place: it is large, and
    /// a copy would be read before the processor has finished writing it.
    #[inline(always)]
    pub(crate) fn start_op(&mut self, op: Op) {
        start(&mut self.ops, &mut self.sets, &mut self.base.trace, (&self.requests, &self.cache), op);
    }
}
