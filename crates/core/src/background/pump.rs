//! Driving the sets: their tasks in units with a rate limit, checkpoints, the clean mark, and clearing bitmap bits.
//!
//! ```text
//!  pump_set: intent -> session -> metadata -> partial parity log -> bitmap -> start_task -> pump_task -> repairs
//!  rate:     task.next_unit_at moves by unit / rate for each unit that begins (`rebuild.rate`, `scrub.rate`)
//!  depth:    at most `background.depth` units in flight, within a window of `Limits::background_window_max`
//! ```

use openraid_units::{Instant, Nanos, Sectors, SetId, SetLba, StripeIndex};

use crate::admin::{Health, TaskKind, WriteCache};
use crate::array::changes::Change;
use crate::array::set::{Life, Set};
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::call::Call;
use crate::events::Wake;
use crate::geometry::Geometry;
use crate::io::state::command::Owner;
use crate::io::state::footprint::{narrow, Columns, Stretch, StripeRows};
use crate::io::state::lock::Locks;
use crate::io::state::op::{BackgroundData, BackgroundKind, Op, TaskUnit, UnitRange};
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::limits::Limits;
use crate::planted::Flaw;
use crate::planted::Planted;
use crate::scrub::AbortReason;
use crate::slots::SlotSet;

impl Locks {
    /// Is an operation in work in the range of a unit? If it is a write, it may have been planned before the unit was
    /// done, without the parity that is being filled. It marks the bitmap only just before it writes, so the unit waits
    /// for it.
    fn is_in_work(&self, op: &Op) -> bool {
        self.conflicting(op.lock_range()).next().is_some()
    }
}

impl Cache {
    /// Count the sets that collect writes, because they share the cache.
    pub(crate) fn count_collectors(&mut self, sets: &Sets) {
        if !self.is_on() {
            return;
        }
        self.set_collectors(|id| {
            let set = sets.find(id);
            set.is_some_and(|set| !set.has_failed() && set.policy().write_cache != WriteCache::Through)
        });
    }
}

impl Sets {
    /// Advance the active mark: see [`ActiveMark`](crate::array::active_mark::ActiveMark).
    pub(crate) fn pump_intent(&mut self, id: SetId, call: &mut Call) -> bool {
        let (now, delay) = (call.now(), call.limits().clean_delay);
        let held = self.get(id).journal_holds();
        let set = self.get_mut(id);
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
            set.unmark_with(generation);
        } else if set.mark.is_quiet(now, delay, set.life() == Life::Stopping) && !held && set.journal.may_be_clean() {
            set.mark.begin_flush();
            if !call.planted().has(Flaw::CleanUnflushed) {
                let issued = self.flush_members(id, Owner::CleanFlush, call);
                self.get_mut(id).mark.add_flushes(issued);
            }
        } else {
            return false;
        }
        self.changed(id, Change::Marks);
        true
    }

    fn pump_bitmap_age(&mut self, id: SetId, call: &mut Call) {
        let (now, delay) = (call.now(), call.limits().bitmap_clear_delay);
        let set = self.get_mut(id);
        let optimal = set.health() == Health::Optimal && set.tasks.task.is_none() && !set.has_failed_flush();
        let Some(bitmap) = &mut set.bitmap else { return };
        if now < bitmap.next_look() || bitmap.flushes() > 0 || !optimal {
            return;
        }
        bitmap.look_again_at(now + delay);
        if !bitmap.age() {
            return;
        }
        let issued = self.flush_members(id, Owner::BitmapFlush, call);
        let set = self.get_mut(id);
        set.bitmap.as_mut().expect("just seen").begin_flushes(issued);
        if issued == 0 {
            set.clear_marked();
            self.look();
        }
    }

    /// The next unit of a set's task, if it may begin now.
    fn next_unit(&mut self, ops: &mut Ops, now: Instant, id: SetId) -> Option<u64> {
        if !ops.may_make_background_op() {
            ops.wait_in_background();
            return None;
        }
        let set = self.get(id);
        let task = set.tasks.task.as_ref()?;
        let may = set.may_begin_unit() && now >= task.next_unit_at;
        may.then_some(task.next)
    }

    /// Store the checkpoint of a task from time to time and at its end, after a flush of the members.
    fn checkpoint_task(&mut self, id: SetId, call: &mut Call) -> bool {
        let (now, interval, planted) = (call.now(), call.limits().checkpoint_interval, call.planted());
        let set = self.get_mut(id);
        if set.tasks.has_flushes() {
            return false;
        }
        let durable = set.durable_generation();
        let Some(task) = &mut set.tasks.task else { return false };
        if task.complete > 0 && durable >= task.complete {
            self.task_finished(id);
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
        let issued = self.flush_members(id, Owner::CheckpointFlush, call);
        self.get_mut(id).tasks.begin_flushes(issued);
        if issued == 0 || planted.has(Flaw::CheckpointUnflushed) {
            self.store_checkpoint(planted, id);
        }
        true
    }

    /// The members were flushed after the task had reached `flushed`, so that position is recorded.
    pub(crate) fn store_checkpoint(&mut self, planted: Planted, id: SetId) {
        self.look();
        let set = self.get_mut(id);
        let Some(task) = &set.tasks.task else { return };
        let fills = matches!(task.kind, TaskKind::Rebuild | TaskKind::Replace);
        if task.is_resync() && set.is_durability_lost() || fills && set.is_kept_by_journal() {
            // The data that the task wrote may be lost, so nothing is recorded. After the next start the task does it
            // again.
            return set.cancel_task(AbortReason::MemberFailed);
        }
        if task.finishing {
            return match task.kind {
                TaskKind::Replace if !planted.has(Flaw::RebuiltBeforeRole) => set.replacement_complete(),
                _ => self.task_finished(id),
            };
        }
        let to = Sectors((task.flushed * task.unit).min(task.total));
        match task.kind {
            TaskKind::Rebuild | TaskKind::Replace => {
                let (slot, is_replacement) = (task.slot.expect("it fills a slot"), task.kind == TaskKind::Replace);
                set.fill_to(slot, is_replacement, to);
            }
            TaskKind::Resync => set.resynced_to(to),
            TaskKind::Check | TaskKind::Repair => return,
        }
        set.metadata.as_mut().expect("tasks are of sets with metadata").request();
    }
}

impl Sets {
    /// Let a set do its other due work; true if something has changed.
    pub(crate) fn pump_set(&mut self, id: SetId, ops: &mut Ops, call: &mut Call) -> bool {
        if self.get(id).metadata.is_none() {
            return false;
        }
        let mut moved = self.pump_metadata(id, call);
        if self.get(id).ppl.is_some() {
            // Failures may have become durable.
            self.logs_are_due();
            moved |= self.pump_ppl_start(id, ops, call);
        }
        if !self.get(id).is_running() || self.get(id).journal.is_redoing() {
            return moved;
        }
        self.notice_finished(id, call);
        self.pump_bitmap_age(id, call);
        self.pump_room(id, call.now());
        moved |= self.start_task(id, call);
        moved |= self.pump_task(id, ops, call);
        moved | self.pump_repairs(ops, id)
    }

    /// Make operations for the task of a set, as its rate and depth allow.
    fn pump_task(&mut self, id: SetId, ops: &mut Ops, call: &mut Call) -> bool {
        let mut moved = false;
        let mut skips = 0;
        while let Some(unit) = self.next_unit(ops, call.now(), id) {
            moved = true;
            let set = self.get(id);
            let task = set.tasks.task.as_ref().expect("just seen");
            let (from, to) = (unit * task.unit, ((unit + 1) * task.unit).min(task.total));
            let passes = task.only_marked && !is_marked(set, task.kind, from, to);
            let op = if passes && ops.locks().is_empty() {
                None
            } else {
                unit_op(set, id, unit).filter(|op| !passes || ops.locks().is_in_work(op))
            };
            let now = call.now();
            let set = self.get_mut(id);
            let rate = match set.tasks.task.as_ref().expect("just seen").kind {
                TaskKind::Check | TaskKind::Repair => set.policy().scrub_rate,
                TaskKind::Rebuild | TaskKind::Replace | TaskKind::Resync => set.policy().rebuild_rate,
            };
            let task = set.tasks.task.as_mut().expect("just seen");
            task.next += 1;
            let Some(op) = op else {
                task.unit_done(unit);
                skips += 1;
                if skips == call.limits().background_skips_max {
                    self.look();
                    break;
                }
                continue;
            };
            task.in_flight += 1;
            if !rate.is_zero() {
                let pause = Nanos(
                    u64::try_from(u128::from(to - from) * 1_000_000_000 / u128::from(rate.get()))
                        .unwrap_or(u64::MAX / 4),
                );
                task.next_unit_at = task.next_unit_at.max(now) + pause;
            }
            set.begin_op();
            let key = ops.put(op);
            ops.wake(key.index);
        }
        self.checkpoint_task(id, call) | moved
    }

    /// An operation of background work ended.
    pub(crate) fn on_background_done(&mut self, op: &Op, call: &mut Call) {
        self.look();
        if op.is_repair() {
            self.get_mut(op.set()).tasks.end_repair();
            return;
        }
        let set = self.get_mut(op.set());
        let running = set.is_running();
        let Some(task) = set.tasks.task.as_mut() else { return };
        let Some(unit) = op.background().unit_of(task.id) else { return };
        task.in_flight -= 1;
        // A stop interrupts units, and the saved checkpoint must not cover them.
        if running {
            task.unit_done(unit);
        }
        let below = task.done_sectors();
        self.notice_ranges(op.set(), below, call);
        self.checkpoint_task(op.set(), call);
    }
}

impl Set {
    /// The time at which a set must be examined.
    pub(crate) fn deadline(&self, ops: &Ops, limits: &Limits) -> Option<(Instant, Wake)> {
        self.metadata.as_ref()?;
        if !self.is_running() || self.journal.is_redoing() {
            return None;
        }
        let held = || self.journal_holds() || !self.journal.may_be_clean();
        let quiet_since = self.mark.quiet_since().filter(|_| !held() && !self.has_failed_flush());
        let clean = quiet_since.map(|since| (since + limits.clean_delay, Wake::CleanMark));
        let quiet = || self.tasks.task.is_none() && !self.has_failed_flush() && self.health() == Health::Optimal;
        let bitmap = self
            .bitmap
            .as_ref()
            .filter(|b| quiet() && b.has_clearable_bits() && b.flushes() == 0)
            .map(|b| (b.next_look(), Wake::Bitmap));
        let task = self
            .tasks
            .current()
            .filter(|_| ops.may_make_background_op() && self.may_begin_unit())
            .map(|t| (t.next_unit_at, Wake::Background));
        let checkpoint = self
            .tasks
            .current()
            .filter(|t| !t.finishing && !self.tasks.has_flushes() && t.position > t.flushed)
            .map(|t| (t.next_checkpoint, Wake::Background));
        let position = self.position_due(limits.position_interval).map(|at| (at, Wake::Journal));
        let room = self.room_look().map(|at| (at, Wake::Background));
        [clean, bitmap, task, checkpoint, position, room].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Does the task have a unit to begin, apart from rate and tables?
    fn may_begin_unit(&self) -> bool {
        let Some(task) = &self.tasks.task else { return false };
        let recorded = self.metadata.as_ref().is_some_and(|m| m.durable() >= task.generation);
        let window = self.tasks.window_max;
        let free = task.in_flight < self.policy().background_depth.min(window)
            && task.next - task.position < u64::from(window);
        !self.tasks.is_paused() && recorded && free && task.next < task.end
    }
}

fn is_marked(set: &Set, kind: TaskKind, from: u64, to: u64) -> bool {
    let Some(bitmap) = &set.bitmap else { return true };
    if set.bitmap_is_of_set() && kind == TaskKind::Rebuild {
        // Units are in sectors of the member, bits in sectors of the set.
        let Geometry::Mirror(mirror) = set.geometry() else { return true };
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
    };
    let of_task = Some(TaskUnit { task: task.id, unit });
    let remade = task.slot.map_or(SlotSet::EMPTY, SlotSet::one);
    let data = BackgroundData::new(remade, of_task, task.kind == TaskKind::Replace);
    let from = unit * task.unit;
    let len = task.unit.min(task.total - from);
    let range = match set.geometry() {
        Geometry::Parity(parity) => {
            let (stripe, lo) = (StripeIndex(from / parity.chunk().get()), narrow(Sectors(from % parity.chunk().get())));
            let part = Part::first(lo, lo + narrow(Sectors(len)), set.rows_max());
            UnitRange::Rows(StripeRows { stripe, part, columns: Columns::All })
        }
        Geometry::Mirror(mirror) => {
            let (at, len) = match (kind, task.slot) {
                (BackgroundKind::Rebuild, Some(slot)) => {
                    let (at, run) = mirror.inverse(slot, openraid_units::MemberLba(from))?;
                    (at, len.min(run.get()))
                }
                _ => (SetLba(from), len),
            };
            UnitRange::Stretch(Stretch { at, part: Part::first(0, narrow(Sectors(len)), set.rows_max()) })
        }
        _ => return None,
    };
    Some(Op::in_background(kind, id, range, data))
}
