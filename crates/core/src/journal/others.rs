//! What the journal needs besides itself: for its own work, and to log the write of an operation.

use super::Journal;
use crate::actions::Actions;
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::controller::Controller;
use crate::io::drive_io::DriveIo;
use crate::io::ops::Ops;
use crate::limits::Limits;
use crate::planted::Planted;
use crate::trace::Trace;

/// The other components, for the work of the journal.
pub(crate) struct Others<'a> {
    pub(super) sets: &'a mut Sets,
    pub(super) ops: &'a mut Ops,
    pub(super) cache: &'a mut Cache,
    pub(super) trace: &'a mut Trace,
    pub(super) limits: &'a Limits,
    pub(super) planted: Planted,
    /// Does a piece of a request wait for the cache or for the journal?
    pub(super) is_piece_waiting: bool,
    pub(super) io: DriveIo<'a>,
}

/// What the journal needs to log a write.
pub(crate) struct Logging<'a> {
    pub(super) ops: &'a mut Ops,
    pub(super) sets: &'a mut Sets,
    pub(super) cache: &'a Cache,
    pub(super) trace: &'a mut Trace,
    pub(super) planted: Planted,
    pub(super) io: DriveIo<'a>,
}

impl<'a> Logging<'a> {
    #[inline(always)]
    pub(crate) fn new(
        ops: &'a mut Ops,
        sets: &'a mut Sets,
        cache: &'a Cache,
        trace: &'a mut Trace,
        planted: Planted,
        io: DriveIo<'a>,
    ) -> Self {
        Self { ops, sets, cache, trace, planted, io }
    }
}

impl Controller {
    /// The journal, and the other components.
    #[inline(always)]
    pub(crate) fn journal_and_others<'a>(&'a mut self, actions: &'a mut Actions) -> (&'a mut Journal, Others<'a>) {
        let is_piece_waiting = !self.requests.is_none_waiting();
        let Self { journal, sets, ops, cache, trace, limits, planted, channels, now, .. } = self;
        let io = DriveIo::new(channels, *now, actions);
        (journal, Others { sets, ops, cache, trace, limits, planted: *planted, is_piece_waiting, io })
    }
}
