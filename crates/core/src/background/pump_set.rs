//! Driving the sets: their tasks in units with a rate limit, checkpoints, and the clean mark.
//!
//! ```text
//!  pump_set: intent -> session -> metadata -> partial parity log -> bitmap -> start_task -> pump_task -> repairs
//!  rate:     task.next_unit_at moves by unit / rate for each unit that begins (`rebuild.rate`, `scrub.rate`)
//!  depth:    at most `background.depth` units in flight, within a window of `Limits::background_window_max`
//!  minimum:  see `pace`
//! ```

use openraid_units::{Instant, Nanos, Sectors, SetId, SetLba, StripeIndex};

use crate::array::awaited_changes::AwaitedChange;
use crate::array::set::{Life, Set};
use crate::array::sets::Sets;
use crate::background::bitmap_clear::{bitmap_deadline, pump_bitmap_age};
use crate::background::check_task::notice_ranges;
use crate::background::pace::{choose_pace, keep_minimum};
use crate::background::pump_reshape::{on_unit_moved, pump_reshape, reshape_deadline, store_position};
use crate::background::reshape_task::ReshapeTask;
use crate::background::rewrite_sectors::pump_rewrites;
use crate::background::task_end::{notice_finished, replacement_complete, task_finished};
use crate::background::task_start::start_task;
use crate::call::Call;
use crate::check_results::AbortReason;
use crate::events::Wake;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::io::state::command::Owner;
use crate::io::state::footprint::{narrow, Columns, Stretch, StripeRows};
use crate::io::state::lock::Locks;
use crate::io::state::op::{BackgroundData, BackgroundKind, Op, OpKind, TaskUnit, UnitRange};
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::journal::record_position::position_due;
use crate::journal::session::journal_holds;
use crate::limits::Limits;
use crate::planted::Flaw;
use crate::planted::Planted;
use crate::ppl::recovery::pump_ppl_start;
use crate::set_status::TaskKind;
use crate::slot_set::SlotSet;

/// Is an operation in work in the range of a unit? If it is a write, it may have been planned before the unit was
/// done, without the parity that is being filled. It marks the bitmap only just before it writes, so the unit waits
/// for it.
fn is_in_work(locks: &Locks, set: &Set, op: &Op) -> bool {
    locks.conflicting(op.lock_range(set)).next().is_some()
}

/// Advance the active mark: see [`ActiveMark`](crate::array::active_mark::ActiveMark).
pub(crate) fn pump_intent(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let (now, delay) = (call.now(), call.limits().clean_delay);
    let held = journal_holds(sets.get(id));
    let set = sets.get_mut(id);
    let durable = set.durable_generation();
    if set.mark.advance(durable) {
        // Operations that wait for the mark are called.
    } else if !set.mark.is_active() || set.has_failed_flush() {
        // After a failed flush the members may differ in the data that was lost, so the next assembly examines
        // them.
        return false;
    } else if set.mark.is_flushed() && held {
        // A write came in between that the journal has acknowledged.
        set.mark.keep();
    } else if set.mark.is_flushed() {
        let generation = set.metadata.as_mut().expect("sets that are marked have metadata").request();
        set.mark.unmark_with(generation);
        set.journal.unmark_with(generation);
    } else if set.mark.is_quiet(now, delay, set.life() == Life::Stopping) && !held && set.journal.may_be_clean() {
        set.mark.begin_flush();
        if !call.planted().has(Flaw::CleanUnflushed) {
            let issued = sets.flush_members(id, Owner::CleanFlush, call);
            sets.get_mut(id).mark.add_flushes(issued);
        }
    } else {
        return false;
    }
    sets.changed(id, AwaitedChange::Marks);
    true
}

/// The next unit of a set's task, if it may begin now.
fn next_unit(sets: &mut Sets, ops: &mut Ops, now: Instant, id: SetId) -> Option<u64> {
    if !ops.may_make_background_op() {
        ops.wait_in_background();
        return None;
    }
    let set = sets.get(id);
    let task = set.tasks.task.as_ref()?;
    let may = may_begin_unit(set) && now >= task.next_unit_at;
    may.then_some(task.next)
}

/// Store the checkpoint of a task from time to time and at its end, after a flush of the members.
fn checkpoint_task(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let (now, interval, planted) = (call.now(), call.limits().checkpoint_interval, call.planted());
    let set = sets.get_mut(id);
    if set.tasks.has_flushes() {
        return false;
    }
    let durable = set.durable_generation();
    let Some(task) = &mut set.tasks.task else { return false };
    if task.complete > 0 && durable >= task.complete {
        task_finished(sets, id);
        return true;
    }
    let early = planted.has(Flaw::TaskEndsEarly) && task.next >= task.end;
    let finished = early || task.position >= task.end && task.in_flight == 0;
    if task.finishing || !(finished || (now >= task.next_checkpoint && task.position > task.flushed)) {
        return false;
    }
    task.finishing = finished;
    task.flushed = if planted.has(Flaw::CheckpointAtNext) { task.next } else { task.position };
    task.next_checkpoint = now + interval;
    let issued = sets.flush_members(id, Owner::CheckpointFlush, call);
    sets.get_mut(id).tasks.begin_flushes(issued, now);
    if issued == 0 || planted.has(Flaw::CheckpointUnflushed) {
        store_checkpoint(sets, planted, id);
    }
    true
}

/// The members were flushed after the task had reached `flushed`, so that position is recorded.
pub(crate) fn store_checkpoint(sets: &mut Sets, planted: Planted, id: SetId) {
    sets.look();
    let set = sets.get_mut(id);
    if set.tasks.reshape().is_some_and(ReshapeTask::is_flushing) {
        return store_position(set);
    }
    let Some(task) = &set.tasks.task else { return };
    let fills = matches!(task.kind, TaskKind::Rebuild | TaskKind::Replace);
    if task.is_resync() && set.is_durability_lost() || fills && set.is_kept_by_journal() {
        // The data that the task wrote may be lost, so nothing is recorded. After the next start the task does it
        // again.
        return set.cancel_task(AbortReason::MemberFailed);
    }
    if task.finishing {
        return match task.kind {
            TaskKind::Replace if !planted.has(Flaw::RebuiltBeforeRole) => replacement_complete(set),
            _ => task_finished(sets, id),
        };
    }
    if set.shape().is_changing() {
        // A position on two sides is not what superblocks record.
        return;
    }
    let to = Sectors((task.flushed * task.unit).min(task.total));
    match task.kind {
        TaskKind::Rebuild | TaskKind::Replace => {
            let (slot, is_replacement) = (task.slot.expect("it fills a slot"), task.kind == TaskKind::Replace);
            set.fill_to(slot, is_replacement, to);
        }
        TaskKind::Resync => set.resynced_to(to),
        TaskKind::Check | TaskKind::Repair | TaskKind::Reshape => return,
    }
    set.metadata.as_mut().expect("tasks are of sets with metadata").request();
}

/// Let a set do its other due work; true if something has changed. `is_looked_up`: see [`pump_reshape`].
pub(crate) fn pump_set(sets: &mut Sets, id: SetId, ops: &mut Ops, is_looked_up: bool, call: &mut Call) -> bool {
    if sets.get(id).metadata.is_none() {
        return false;
    }
    choose_pace(sets.get_mut(id), call);
    let mut moved = sets.pump_metadata(id, call);
    if sets.get(id).ppl.is_some() {
        // Failures may have become durable.
        sets.logs_are_due();
        moved |= pump_ppl_start(sets, id, ops, call);
    }
    if !sets.get(id).is_running() || sets.get(id).journal.is_redoing() {
        return moved;
    }
    moved |= pump_reshape(sets, id, ops, is_looked_up, call);
    notice_finished(sets, id, call);
    pump_bitmap_age(sets, id, call);
    sets.pump_room(id, call.now());
    moved |= start_task(sets, id, call);
    moved |= pump_task(sets, id, ops, call);
    moved | pump_rewrites(sets, ops, id)
}

/// Make operations for the task of a set, as its rate and depth allow.
fn pump_task(sets: &mut Sets, id: SetId, ops: &mut Ops, call: &mut Call) -> bool {
    let mut moved = false;
    let mut skips = 0;
    while let Some(unit) = next_unit(sets, ops, call.now(), id) {
        moved = true;
        let set = sets.get(id);
        let task = set.tasks.task.as_ref().expect("just seen");
        let (from, to) = (unit * task.unit, ((unit + 1) * task.unit).min(task.total));
        let (side, place) = task.course.place(from);
        let is_forgotten = side == Side::New && call.planted().has(Flaw::BitForOneSide);
        let passes = task.only_marked && (is_forgotten || !is_marked(set, task.kind, place, place + (to - from)));
        let op = if passes && ops.locks().is_empty() {
            None
        } else {
            unit_op(set, id, unit).filter(|op| !passes || is_in_work(ops.locks(), set, op))
        };
        let now = call.now();
        let set = sets.get_mut(id);
        let rate = match set.tasks.task.as_ref().expect("just seen").kind {
            TaskKind::Check | TaskKind::Repair => set.policy().scrub_rate,
            TaskKind::Rebuild | TaskKind::Replace | TaskKind::Resync | TaskKind::Reshape => set.policy().rebuild_rate,
        };
        let rate = set.tasks.pace().rate(rate, set.policy().rebuild_minimum);
        let task = set.tasks.task.as_mut().expect("just seen");
        task.next += 1;
        let Some(op) = op else {
            task.unit_done(unit);
            skips += 1;
            if skips == call.limits().background_skips_max {
                sets.look();
                break;
            }
            continue;
        };
        task.in_flight += 1;
        if !rate.is_zero() {
            let pause = Nanos(
                u64::try_from(u128::from(to - from) * 1_000_000_000 / u128::from(rate.get())).unwrap_or(u64::MAX / 4),
            );
            task.next_unit_at = task.next_unit_at.max(now) + pause;
        }
        let key = ops.begin(set, op);
        ops.wake(key.index);
        keep_minimum(set, Sectors(to - from), call);
    }
    checkpoint_task(sets, id, call) | moved
}

/// An operation of background work ended.
pub(crate) fn on_background_done(sets: &mut Sets, op: &Op, call: &mut Call) {
    sets.look();
    if op.kind() == OpKind::Move {
        return on_unit_moved(sets, op, call);
    }
    if op.is_sector_rewrite() {
        sets.get_mut(op.set()).tasks.end_rewrite();
        return;
    }
    let set = sets.get_mut(op.set());
    let running = set.is_running();
    let Some(task) = set.tasks.task.as_mut() else { return };
    let Some(unit) = op.background().unit_of(task.id) else { return };
    task.in_flight -= 1;
    // A stop interrupts units, and the saved checkpoint must not cover them.
    if running {
        task.unit_done(unit);
    }
    let below = task.done_sectors();
    notice_ranges(sets, op.set(), below, call);
    checkpoint_task(sets, op.set(), call);
}

/// The time at which a set must be examined.
pub(crate) fn deadline_of(set: &Set, ops: &Ops, limits: &Limits) -> Option<(Instant, Wake)> {
    set.metadata.as_ref()?;
    if !set.is_running() || set.journal.is_redoing() {
        return None;
    }
    let held = || journal_holds(set) || !set.journal.may_be_clean();
    let quiet_since = set.mark.quiet_since().filter(|_| !held() && !set.has_failed_flush());
    let clean = quiet_since.map(|since| (since + limits.clean_delay, Wake::CleanMark));
    let bitmap = bitmap_deadline(set).map(|at| (at, Wake::Bitmap));
    let task = set
        .tasks
        .current()
        .filter(|_| ops.may_make_background_op() && may_begin_unit(set))
        .map(|t| (t.next_unit_at, Wake::Background));
    let checkpoint = set
        .tasks
        .current()
        .filter(|t| !t.finishing && !set.tasks.has_flushes() && t.position > t.flushed)
        .map(|t| (t.next_checkpoint, Wake::Background));
    let position = position_due(set, limits.position_interval).map(|at| (at, Wake::Journal));
    let room = set.room_look().map(|at| (at, Wake::Background));
    let reshape = reshape_deadline(set, ops).map(|at| (at, Wake::Background));
    let pace = set.tasks.done_of_member().and_then(|_| set.tasks.pacing.due()).map(|at| (at, Wake::Background));
    [clean, bitmap, task, checkpoint, position, room, reshape, pace].into_iter().flatten().min_by_key(|(at, _)| *at)
}

/// Does the task have a unit to begin, apart from rate and tables?
fn may_begin_unit(set: &Set) -> bool {
    let Some(task) = &set.tasks.task else { return false };
    let recorded = set.metadata.as_ref().is_some_and(|m| m.durable() >= task.generation);
    let window = set.tasks.window_max;
    let depth = set.tasks.pace().units(set.policy().background_depth);
    let free = task.in_flight < depth.min(window) && task.next - task.position < u64::from(window);
    !set.tasks.is_paused() && recorded && free && task.next < task.end
}

fn is_marked(set: &Set, kind: TaskKind, from: u64, to: u64) -> bool {
    let Some(bitmap) = &set.bitmap else { return true };
    if set.bitmap_is_of_set() && kind == TaskKind::Rebuild {
        // Units are in sectors of the member, bits in sectors of the set.
        let mirror = set.shape().mirror(set.shape().work_side());
        let Some(slot) = set.tasks.task.as_ref().and_then(|t| t.slot) else { return true };
        return mirror
            .inverse(slot, openraid_units::MemberLba(from))
            .is_none_or(|(at, _)| bitmap.is_marked(at.get(), at.get() + (to - from)));
    }
    bitmap.is_marked(from, to)
}

/// The operation for one unit of a set's task; `None` if there is nothing to do.
fn unit_op(set: &Set, id: SetId, unit: u64) -> Option<Op> {
    let task = set.tasks.task.as_ref()?;
    let kind = match task.kind {
        TaskKind::Rebuild | TaskKind::Replace => BackgroundKind::Rebuild,
        TaskKind::Resync => BackgroundKind::Resync,
        TaskKind::Check | TaskKind::Repair => BackgroundKind::Scrub,
        TaskKind::Reshape => return None,
    };
    let of_task = Some(TaskUnit { task: task.id, unit });
    let remade = task.slot.map_or(SlotSet::EMPTY, SlotSet::one);
    let data = BackgroundData::new(remade, of_task, task.kind == TaskKind::Replace);
    let rows = set.tasks.pace().rows(set.rows_max());
    let position = unit * task.unit;
    let len = task.unit.min(task.total - position);
    let (side, from) = task.course.place(position);
    let range = match set.shape().on(side) {
        Geometry::Parity(parity) if task.slot.is_some_and(|slot| slot.0 >= parity.members()) => return None,
        Geometry::Parity(parity) => {
            let (stripe, lo) = (StripeIndex(from / parity.chunk().get()), narrow(Sectors(from % parity.chunk().get())));
            let part = Part::first(lo, lo + narrow(Sectors(len)), rows);
            UnitRange::Rows(StripeRows::new(side, stripe, part, Columns::All))
        }
        Geometry::Mirror(mirror) => {
            let (at, len) = match (kind, task.slot) {
                (BackgroundKind::Rebuild, Some(slot)) => {
                    let (at, run) = mirror.inverse(slot, openraid_units::MemberLba(from))?;
                    (at, len.min(run.get()))
                }
                _ => (SetLba(from), len),
            };
            UnitRange::Stretch(Stretch::new(side, at, Part::first(0, narrow(Sectors(len)), rows)))
        }
        _ => return None,
    };
    Some(Op::in_background(kind, id, range, data))
}
