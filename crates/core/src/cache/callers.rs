//! What the cache works for: pieces of requests, with their sets, and the trace of what it does for them.

use crate::array::sets::Sets;
use crate::requests::Requests;
use crate::trace::Trace;

/// See the module header.
pub(crate) struct Callers<'a> {
    pub(super) requests: &'a mut Requests,
    pub(super) sets: &'a mut Sets,
    pub(super) trace: &'a mut Trace,
}

impl<'a> Callers<'a> {
    /// Lend these components.
    #[inline(always)]
    pub(crate) fn new(requests: &'a mut Requests, sets: &'a mut Sets, trace: &'a mut Trace) -> Self {
        Self { requests, sets, trace }
    }
}
