//! The parts of the controller that one call lends out together.

use crate::actions::Actions;
use crate::call::Call;
use crate::controller::Controller;
use crate::io::state::op::Op;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::start_op;

impl Controller {
    /// What operations may use during the present call.
    #[inline(always)]
    pub(crate) fn op_io<'a>(&'a mut self, actions: &'a mut Actions) -> OpIo<'a> {
        OpIo::new(
            (&mut self.ops, &mut self.pool, &mut self.ended),
            (&mut self.sets, &mut self.journal),
            (&self.requests, &self.cache),
            Call::new(&mut self.base, actions),
        )
    }

    /// Put an operation into the table, and let it begin. Inlined, so that it is constructed in place: it is large, and
    /// a copy would be read before the processor has finished writing it.
    #[inline(always)]
    pub(crate) fn start_op(&mut self, op: Op) {
        start_op(&mut self.ops, &mut self.sets, &mut self.base.trace, (&self.requests, &self.cache), op);
    }
}
