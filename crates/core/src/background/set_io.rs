//! What the background work of a set needs of the present call.

use openraid_units::{DriveId, Instant, SetId, Slot};

use crate::actions::NoticeKind;
use crate::array::sets::Sets;
use crate::io::drive_io::DriveIo;
use crate::limits::Limits;
use crate::planted::Planted;
use crate::trace::Trace;

/// The limits and the planted bug, the trace for notices, and the way to the drives with the time.
pub(crate) struct SetIo<'a> {
    pub(super) limits: &'a Limits,
    pub(super) planted: Planted,
    pub(super) trace: &'a Trace,
    pub(super) io: DriveIo<'a>,
}

impl<'a> SetIo<'a> {
    pub(crate) fn new(limits: &'a Limits, planted: Planted, trace: &'a Trace, io: DriveIo<'a>) -> Self {
        Self { limits, planted, trace, io }
    }

    /// The time of the present call.
    pub(super) fn now(&self) -> Instant {
        self.io.now()
    }

    /// Send the administrator a notice about a set.
    pub(super) fn notice(
        &mut self,
        sets: &Sets,
        (id, slot): (SetId, Option<Slot>),
        drive: Option<DriveId>,
        kind: NoticeKind,
    ) {
        self.trace.notice(sets, id, slot, drive, kind, self.io.actions());
    }
}
