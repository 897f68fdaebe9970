//! What the cache works for: pieces of requests, with their sets, and the trace of what it does for them.

use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::controller::Controller;
use crate::requests::Requests;
use crate::trace::Trace;

/// See the module header.
pub(crate) struct Callers<'a> {
    pub(super) requests: &'a mut Requests,
    pub(super) sets: &'a mut Sets,
    pub(super) trace: &'a mut Trace,
}

impl Controller {
    /// The cache, and what it works for.
    #[inline(always)]
    pub(super) fn cache_and_callers(&mut self) -> (&mut Cache, Callers<'_>) {
        let Self { cache, requests, sets, base, .. } = self;
        (cache, Callers { requests, sets, trace: &mut base.trace })
    }
}
