//! Beginning, counting and ending a check or repair.

use openraid_units::{ArrayId, Sectors, SetId};

use super::Task;
use crate::actions::NoticeKind;
use crate::admin_answer::{AdminError, AdminOutcome};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::background::task_start::put_task;
use crate::call::Call;
use crate::check_results::{AbortReason, Gap, MismatchRange, NotComparable, ScrubEnd, ScrubMode, ScrubOutcome};
use crate::geometry::Geometry;
use crate::io::state::op::Op;
use crate::set_status::TaskKind;

/// What this check or repair may change, while it runs.
pub(crate) fn scrub_mode(sets: &Sets, op: &Op) -> Option<ScrubMode> {
    let set = sets.get(op.set());
    set.tasks
        .task
        .as_ref()
        .is_some_and(|task| op.background().unit_of(task.id).is_some() && task.is_scrub())
        .then_some(set.tasks.scrub_mode())
}

/// These rows could not be compared.
pub(crate) fn note_uncompared(sets: &mut Sets, op: &Op) {
    if scrub_mode(sets, op).is_some() {
        sets.get_mut(op.set()).tasks.scrub.note_uncompared(Sectors(u64::from(op.rows())));
    }
}

/// Mismatching sectors were corrected.
pub(crate) fn note_repaired(sets: &mut Sets, op: &Op) {
    if scrub_mode(sets, op).is_some() {
        sets.get_mut(op.set()).tasks.scrub.note_repaired(u64::from(op.background().corrected()));
    }
}

/// A sector does not match.
pub(crate) fn note_mismatch(sets: &mut Sets, op: &Op, sector: MismatchRange, call: &mut Call) {
    if scrub_mode(sets, op).is_none() {
        return;
    }
    if let Some(range) = sets.get_mut(op.set()).tasks.scrub.note(sector) {
        notice_range(sets, op.set(), range, call);
    }
}

/// Report the ranges that end below this position.
pub(crate) fn notice_ranges(sets: &mut Sets, id: SetId, below: Sectors, call: &mut Call) {
    while let Some(range) = sets.get_mut(id).tasks.scrub.take_ended(below) {
        notice_range(sets, id, range, call);
    }
}

fn notice_range(sets: &Sets, id: SetId, range: MismatchRange, call: &mut Call) {
    let kind = if range.is_repaired() { NoticeKind::RowCorrected(range) } else { NoticeKind::RowMismatch(range) };
    call.notice(sets, (id, range.slot), None, kind);
}

pub(crate) fn stop_scrub(sets: &mut Sets, arrays: &Arrays, array: ArrayId) -> Result<AdminOutcome, AdminError> {
    let id = arrays.set_of(sets, array)?;
    let set = sets.get_mut(id);
    if !set.tasks.task.as_ref().is_some_and(Task::is_scrub) {
        return Err(AdminError::NoScrub);
    }
    set.cancel_task(AbortReason::Administrator);
    Ok(AdminOutcome::Done)
}

/// A check or repair ended.
pub(super) fn notice_scrub_ended(sets: &mut Sets, id: SetId, task: &Task, call: &mut Call) {
    notice_ranges(sets, id, Sectors::MAX, call);
    let set = sets.get_mut(id);
    let events = set.events();
    let outcome = set.tasks.end_scrub(task, (events, call.now()));
    let mode = sets.get(id).tasks.scrub_mode();
    call.notice(sets, (id, None), None, NoticeKind::CheckEnded(ScrubEnd { mode, outcome }));
}

/// Begin a check or a repair of a set.
///
/// # Errors
/// The reason why there is nothing to compare, or the task that the set has already.
pub(crate) fn begin_scrub(
    sets: &mut Sets,
    id: SetId,
    mode: ScrubMode,
    call: &mut Call,
) -> Result<AdminOutcome, AdminError> {
    let set = sets.get_mut(id);
    if let Some(task) = &set.tasks.task {
        return Err(AdminError::TaskRuns(task.kind));
    }
    if set.tasks.reshape().is_some() {
        return Err(AdminError::TaskRuns(TaskKind::Reshape));
    }
    if let Some(why) = not_comparable(set) {
        // The result of an earlier check must not stand for this one.
        set.tasks.next_id();
        let gap = gap_of(set);
        set.tasks.begin_scrub(mode, gap);
        let events = set.events();
        set.tasks.record_scrub(ScrubOutcome::NotComparable(why), (Sectors::ZERO, Sectors::ZERO), (events, call.now()));
        return Err(AdminError::NotComparable(why));
    }
    put_task(sets, id, (mode.kind(), None), (Sectors::ZERO, false), call);
    let set = sets.get_mut(id);
    let gap = gap_of(set);
    set.tasks.begin_scrub(mode, gap);
    call.notice(sets, (id, None), None, NoticeKind::CheckStarted(mode));
    Ok(AdminOutcome::Done)
}

/// The reason why nothing of it can be compared, if any.
fn not_comparable(set: &Set) -> Option<NotComparable> {
    if !set.is_redundant() {
        return Some(NotComparable::NoRedundancy);
    }
    (!set.shape().is_redundant_without(set.missing())).then_some(NotComparable::Degraded)
}

/// The gaps that a range of mismatches may have.
fn gap_of(set: &Set) -> Gap {
    match set.shape().on(set.shape().work_side()) {
        Geometry::Mirror(mirror) => mirror.chunk().map_or(Gap::NONE, |chunk| Gap::of_chunks(chunk, mirror.members())),
        _ => Gap::NONE,
    }
}
