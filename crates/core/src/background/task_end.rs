//! Ends of tasks: what the set has then, and what an administrator is told.

use openraid_units::SetId;

use crate::actions::{Fill, NoticeKind};
use crate::array::awaited_changes::AwaitedChange;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::background::check_task::notice_scrub_ended;
use crate::call::Call;
use crate::ppl::write_log::arm_logs;
use crate::set_status::TaskKind;

/// A task is complete and the members were flushed.
pub(crate) fn task_finished(sets: &mut Sets, id: SetId) {
    let set = sets.get_mut(id);
    let Some(mut task) = set.tasks.task.take() else { return };
    match task.kind {
        TaskKind::Rebuild => {
            task.complete = set.slot_filled(task.slot.expect("it fills a slot"));
            set.tasks.fill_ended(task);
            return sets.changed(id, AwaitedChange::Session);
        }
        TaskKind::Replace => set.slot_replaced(task.slot.expect("it fills a slot")),
        TaskKind::Resync => {
            set.resynced();
            arm_logs(set);
            set.metadata.as_mut().expect("redundant sets have metadata").request();
        }
        TaskKind::Check | TaskKind::Repair | TaskKind::Reshape => {}
    }
    set.tasks.finish(task);
    sets.changed(id, AwaitedChange::Session);
}

/// Report tasks that have ended.
pub(crate) fn notice_finished(sets: &mut Sets, id: SetId, call: &mut Call) {
    let set = sets.get_mut(id);
    let durable = set.durable_generation();
    if let Some(task) = set.tasks.take_recorded_fill(durable) {
        let kind = NoticeKind::RebuildFinished(Fill::Rebuild);
        call.notice(sets, (id, task.slot), None, kind);
        call.notice(sets, (id, task.slot), None, NoticeKind::SpareActive);
    }
    let Some(task) = sets.get_mut(id).tasks.take_finished() else { return };
    let kind = match (task.kind, task.finishing) {
        (TaskKind::Check | TaskKind::Repair, _) => return notice_scrub_ended(sets, id, &task, call),
        // The end of a rebuild is reported above, when it is recorded.
        (TaskKind::Rebuild, _) => NoticeKind::RebuildAborted(Fill::Rebuild),
        (TaskKind::Replace, true) => NoticeKind::RebuildFinished(Fill::Replacement),
        (TaskKind::Replace, false) => NoticeKind::RebuildAborted(Fill::Replacement),
        (TaskKind::Resync, true) => NoticeKind::ResyncFinished,
        (TaskKind::Resync, false) => NoticeKind::ResyncAborted,
        (TaskKind::Reshape, _) => return,
    };
    call.notice(sets, (id, task.slot), None, kind);
}

/// The replacement is complete. Its superblock must say this before the old member is recorded as faulty. If the
/// power fails between the two, one of them is a full member.
pub(super) fn replacement_complete(set: &mut Set) {
    let task = set.tasks.task.as_ref().expect("it was filled by a task");
    let slot = task.slot.expect("it fills a slot");
    if task.complete > 0 || !set.complete_replacement(slot) {
        return;
    }
    let generation = set.metadata.as_mut().expect("redundant sets have metadata").request();
    set.tasks.task.as_mut().expect("just seen").complete = generation;
}
