//! Beginning, counting and ending a check or repair.

use openraid_units::{ArrayId, Instant, Sectors, SetId};

use super::Task;
use crate::actions::NoticeKind;
use crate::admin::{AdminError, AdminOutcome};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::call::Call;
use crate::geometry::Geometry;
use crate::io::state::op::Op;
use crate::scrub::{AbortReason, End, Gap, MismatchRange, NotComparable, ScrubEnd, ScrubMode, ScrubOutcome};

impl Sets {
    /// What this check or repair may change, while it runs.
    pub(crate) fn scrub_mode(&self, op: &Op) -> Option<ScrubMode> {
        let set = self.get(op.set());
        set.tasks
            .task
            .as_ref()
            .is_some_and(|task| op.background().unit_of(task.id).is_some() && task.is_scrub())
            .then_some(set.tasks.scrub_mode())
    }
    /// These rows could not be compared.
    pub(crate) fn note_uncompared(&mut self, op: &Op) {
        if self.scrub_mode(op).is_some() {
            self.get_mut(op.set()).tasks.scrub.note_uncompared(Sectors(u64::from(op.rows())));
        }
    }
    /// Mismatching sectors were corrected.
    pub(crate) fn note_repaired(&mut self, op: &Op) {
        if self.scrub_mode(op).is_some() {
            self.get_mut(op.set()).tasks.scrub.note_repaired(u64::from(op.background().corrected()));
        }
    }
    /// A sector does not match.
    pub(crate) fn note_mismatch(&mut self, op: &Op, sector: MismatchRange, call: &mut Call) {
        if self.scrub_mode(op).is_none() {
            return;
        }
        if let Some(range) = self.get_mut(op.set()).tasks.scrub.note(sector) {
            self.notice_range(op.set(), range, call);
        }
    }
    /// Report the ranges that end below this position.
    pub(crate) fn notice_ranges(&mut self, id: SetId, below: Sectors, call: &mut Call) {
        while let Some(range) = self.get_mut(id).tasks.scrub.take_ended(below) {
            self.notice_range(id, range, call);
        }
    }
    fn notice_range(&self, id: SetId, range: MismatchRange, call: &mut Call) {
        let kind = if range.is_repaired() { NoticeKind::RowCorrected(range) } else { NoticeKind::RowMismatch(range) };
        call.notice(self, (id, range.slot), None, kind);
    }
}

impl Sets {
    pub(crate) fn stop_scrub(&mut self, arrays: &Arrays, array: ArrayId) -> Result<AdminOutcome, AdminError> {
        let id = arrays.set_of(self, array)?;
        let set = self.get_mut(id);
        if !set.tasks.task.as_ref().is_some_and(Task::is_scrub) {
            return Err(AdminError::NoScrub);
        }
        set.cancel_task(AbortReason::Administrator);
        Ok(AdminOutcome::Done)
    }

    /// A check or repair ended.
    pub(super) fn notice_scrub_ended(&mut self, id: SetId, task: &Task, call: &mut Call) {
        self.notice_ranges(id, Sectors::MAX, call);
        let outcome = self.get_mut(id).end_scrub(task, call.now());
        let mode = self.get(id).tasks.scrub_mode();
        call.notice(self, (id, None), None, NoticeKind::CheckEnded(ScrubEnd { mode, outcome }));
    }
}

impl Sets {
    /// Begin a check or a repair of a set.
    ///
    /// # Errors
    /// The reason why there is nothing to compare, or the task that the set has already.
    pub(crate) fn begin_scrub(
        &mut self,
        id: SetId,
        mode: ScrubMode,
        call: &mut Call,
    ) -> Result<AdminOutcome, AdminError> {
        let set = self.get_mut(id);
        if let Some(task) = &set.tasks.task {
            return Err(AdminError::TaskRuns(task.kind));
        }
        if let Some(why) = set.not_comparable() {
            // The result of an earlier check must not stand for this one.
            set.tasks.next_id();
            let gap = set.gap();
            set.tasks.begin_scrub(mode, gap);
            set.record_scrub(ScrubOutcome::NotComparable(why), (Sectors::ZERO, Sectors::ZERO), call.now());
            return Err(AdminError::NotComparable(why));
        }
        self.put_task(id, (mode.kind(), None), (Sectors::ZERO, false), call);
        let set = self.get_mut(id);
        let gap = set.gap();
        set.tasks.begin_scrub(mode, gap);
        call.notice(self, (id, None), None, NoticeKind::CheckStarted(mode));
        Ok(AdminOutcome::Done)
    }
}

impl Set {
    /// The reason why nothing of it can be compared, if any.
    fn not_comparable(&self) -> Option<NotComparable> {
        if !self.is_redundant() {
            return Some(NotComparable::NoRedundancy);
        }
        (!self.geometry().is_redundant_without(self.missing())).then_some(NotComparable::Degraded)
    }

    /// The gaps that a range of mismatches may have.
    fn gap(&self) -> Gap {
        match self.geometry() {
            Geometry::Mirror(mirror) => {
                mirror.chunk().map_or(Gap::NONE, |chunk| Gap::of_chunks(chunk, mirror.members()))
            }
            _ => Gap::NONE,
        }
    }

    /// Record how a check or repair ended.
    pub(crate) fn end_scrub(&mut self, task: &Task, now: Instant) -> ScrubOutcome {
        let total = Sectors(task.total);
        let done = task.done_sectors();
        let outcome = self.tasks.scrub.outcome(task.aborted, done, total);
        self.record_scrub(outcome, (total, done), now);
        outcome
    }

    fn record_scrub(&mut self, outcome: ScrubOutcome, (total, done): (Sectors, Sectors), at: Instant) {
        let events = self.metadata.as_ref().map_or(0, |metadata| metadata.common().events);
        self.tasks.scrub.end(End { outcome, at, events, total, done });
    }
}
