//! Which task of a set is due, and its beginning: a rebuild, a replacement, a resync.
//!
//! ```text
//!  start_task: 1 rebuild, if a slot is vacant and a spare is free (`find_rebuild`); it aborts a resync or check
//!              2 replacement, if one was requested
//!              3 resync, if one is due
//! ```

use openraid_units::{Sectors, SetId, Slot};

use super::task_rows::Course;
use super::{Comparing, Task};
use crate::actions::{Fill, NoticeKind};
use crate::array::consistency::Consistency;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::background::spare_choice::{find_rebuild, find_replacement};
use crate::background::task_end::notice_finished;
use crate::call::Call;
use crate::check_results::AbortReason;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::io::state::drive_queues::Channels;
use crate::ppl::write_log::arm_log;
use crate::set_status::{MemberState, TaskKind};

/// Minimum number of sectors of a unit of a parity set, if the chunk allows it: 64 KiB. A smaller unit costs more
/// commands than the order of its reads saves.
const PARITY_UNIT_SECTORS_MIN: u64 = 128;

/// Begin the due task of a set: a rebuild first, even in place of a running resync or check.
pub(crate) fn start_task(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let set = sets.get(id);
    // A spare takes a slot when its partial parity log is empty.
    let prepares = set.ppl.as_ref().is_some_and(|ppl| ppl.is_preparing());
    // A slot that is not missing waits for a member that can take the place of a missing one.
    let yields = set.tasks.task.as_ref().is_none_or(Task::yields);
    let moves = !goes_through_both_sides(set)
        || set.tasks.reshape().is_some_and(|reshape| !reshape.is_quiet() || set.ops().awaited().is_some());
    if !yields || !set.is_redundant() || prepares || set.is_kept_by_journal() || moves {
        return false;
    }
    if let Some((slot, member)) = find_rebuild(sets, call.channels(), id) {
        sets.get_mut(id).cancel_task(AbortReason::RebuildBegan);
        notice_finished(sets, id, call);
        start_rebuild(sets, id, (slot, member), call);
        return true;
    }
    if set.tasks.task.is_some() {
        return false;
    }
    if let Some(slot) = find_replacement(sets, id) {
        let set = sets.get(id);
        let replacement = set.place(slot).replacement().expect("it was found");
        let MemberState::Rebuilding { to } = set.member(replacement).state() else { return false };
        put_task(sets, id, (TaskKind::Replace, Some(slot)), (to, false), call);
        call.notice(sets, (id, Some(slot)), None, NoticeKind::RebuildStarted(Fill::Replacement));
        return true;
    }
    let set = sets.get(id);
    let Consistency::Below { to, only_marked } = set.consistency() else { return false };
    if !set.can_resync() || set.is_durability_lost() {
        return false;
    }
    put_task(sets, id, (TaskKind::Resync, None), (to, only_marked), call);
    call.notice(sets, (id, None), None, NoticeKind::ResyncStarted);
    true
}

/// Can a task go through the set as it is? Marks of mirrors are sectors of the set, and those of two sides have no order: on
/// a mirror the tasks wait until the change has ended.
fn goes_through_both_sides(set: &Set) -> bool {
    set.shape().has_parity() || !set.shape().is_changing()
}

/// Is there a task that goes before the change of the set's shape? Then the change waits at a record.
pub(super) fn is_task_due(sets: &Sets, channels: &Channels, id: SetId) -> bool {
    let set = sets.get(id);
    if !goes_through_both_sides(set) {
        return false;
    }
    let resync = !set.is_consistent_everywhere() && set.can_resync() && !set.is_durability_lost();
    set.tasks.task.is_some() || resync || find_rebuild(sets, channels, id).is_some()
}

fn start_rebuild(sets: &mut Sets, id: SetId, (slot, member): (Slot, u32), call: &mut Call) {
    let set = sets.get_mut(id);
    let drive = set.member(member).drive();
    let (from, only_marked) = set.begin_fill(slot, member);
    let generation = set.metadata.as_mut().expect("redundant sets have metadata").request();
    put_task(sets, id, (TaskKind::Rebuild, Some(slot)), (from, only_marked), call);
    sets.get_mut(id).tasks.task.as_mut().expect("just put").generation = generation;
    sets.look();
    let kind = NoticeKind::RebuildStarted(Fill::Rebuild);
    call.notice(sets, (id, Some(slot)), Some(drive), kind);
}

/// Begin a task of a set, from this position, and only for what the bitmap marks or for everything.
pub(crate) fn put_task(
    sets: &mut Sets,
    id: SetId,
    (kind, slot): (TaskKind, Option<Slot>),
    (from, only_marked): (Sectors, bool),
    call: &Call,
) {
    let (now, interval) = (call.now(), call.limits().checkpoint_interval);
    let set = sets.get_mut(id);
    let (unit, whole) = task_space(set, kind);
    let (course, total) = Course::through(set.shape(), whole);
    let position = from.get().min(total) / unit;
    if let Some(slot) = slot {
        arm_log(set, slot);
    }
    set.tasks.task = Some(Task {
        id: set.tasks.next_id(),
        kind,
        slot,
        unit,
        total,
        course,
        position,
        next: position,
        end: total.div_ceil(unit),
        done: 0,
        in_flight: 0,
        only_marked,
        generation: 0,
        since: now,
        done_at_start: Sectors((position * unit).min(total)),
        next_unit_at: now,
        next_checkpoint: now + interval,
        flushed: position,
        finishing: false,
        complete: 0,
        aborted: None,
        sync: Comparing::default(),
    });
    sets.look();
}

/// Sectors of a unit and of the whole for a task of this kind.
fn task_space(set: &Set, kind: TaskKind) -> (u64, u64) {
    let most = set.tasks.unit_max;
    match set.shape().on(set.shape().work_side()) {
        Geometry::Parity(parity) => {
            let chunk = parity.chunk().min(set.shape().parity(Side::New).chunk());
            (parity_unit(set, chunk), parity.member_extent().get())
        }
        Geometry::Mirror(mirror) => {
            // Both are powers of two, so that no unit crosses a region.
            let unit = mirror.chunk().map_or(most, |c| c.get().min(most));
            let of_member = matches!(kind, TaskKind::Rebuild | TaskKind::Replace);
            (unit, if of_member { mirror.member_extent().get() } else { mirror.capacity().get() })
        }
        _ => unreachable!("tasks are of redundant sets"),
    }
}

/// Sectors of a unit of a parity set: a chunk, or the part of it that one operation reads at once. If an operation
/// read a chunk in several parts, the drive would seek: several operations are in work, each at its first part,
/// then each at its second. Chunks are powers of two, and so are units.
fn parity_unit(set: &Set, chunk: Sectors) -> u64 {
    let at_once = 1 << u64::from(set.rows_max()).ilog2();
    chunk.get().min(PARITY_UNIT_SECTORS_MIN.min(set.tasks.unit_max).max(at_once))
}
