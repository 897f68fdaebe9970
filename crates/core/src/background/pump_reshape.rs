//! The change of a set's shape: its data moves from its old places to its new ones, and the superblocks record how far it
//! has come.
//!
//! ```text
//!     on the new side    in work: old places are whole    on the old side
//!  |-------------------|xxxxxxxxxx.x..x..---------|--------------------------|      distance
//!  0               recorded     moved   next   closed                      total
//!                      |<-- writes wait, reads go to the old side -->|
//! ```
//!
//! Distances count from the end at which the change begins. Units are moves: see `move_op.rs`.
//!
//! - A stretch is *closed* when no write can reach it: writes that come wait, and the epoch of those before has ended.
//! - Nothing is written at or beyond `free`: a restart at the recorded position finds all that it needs (S2). The room that
//!   a record frees is used after the epoch that was running then has ended, because a read may still use the old places
//!   (S9).
//! - A position is recorded after a flush of all members (S3). Hosts use the new side up to there, so no write that was
//!   acknowledged is ever moved again (S4).
//! - At the end all members get the new shape with a mark that md does not know, and then without it (S5). Then hosts get
//!   the new capacity (S6).

use openraid_units::{Instant, Nanos, Sectors, SetId};

use super::reshape_task::{MoveStage, ReshapeTask};
use crate::actions::NoticeKind;
use crate::array::reshape_plan::PlanKind;
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::background::pace::keep_minimum;
use crate::background::task_start::is_task_due;
use crate::call::Call;
use crate::geometry::reshape::ShapeChange;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::io::state::command::Owner;
use crate::io::state::op::Op;
use crate::io::state::ops::Ops;
use crate::limits::{RESHAPE_PATIENCE, RESHAPE_RECORD_INTERVAL, RESHAPE_WINDOW};
use crate::planted::{Flaw, Planted};

/// Advance the change of a set's shape; true if something has changed. `is_looked_up`: a piece of a host's request has
/// looked up places in the epoch before, and will make operations for them.
pub(crate) fn pump_reshape(sets: &mut Sets, id: SetId, ops: &mut Ops, is_looked_up: bool, call: &mut Call) -> bool {
    if sets.get(id).tasks.reshape().is_none() {
        return false;
    }
    let set = sets.get(id);
    let lacks_frames = set.shape().change().is_some_and(|change| !ReshapeTask::has_frames_for(change, call.limits()));
    // Nothing is recorded any more if a member that is needed may have dropped data.
    let is_barred = lacks_frames || set.is_durability_lost();
    let gives_way = is_barred || set.tasks.is_paused() || is_task_due(sets, call.channels(), id);
    let reshape = reshape_of(sets.get_mut(id));
    reshape.gives_way = gives_way;
    reshape.rests = reshape.next_unit_at > call.now() + RESHAPE_PATIENCE;
    let mut moved = begin_change(sets, id) | end_epoch(sets, id, is_looked_up, call);
    moved |= open_rest(sets, id);
    moved |= end_record(sets, id, call);
    if sets.get(id).tasks.reshape().is_none() {
        // The set has its new shape.
        return true;
    }
    moved |= begin_turn(sets, id);
    moved |= close_more(sets, id, call.planted());
    moved |= begin_units(sets, id, ops, call);
    moved |= begin_record(sets, id, call);
    if moved {
        // One step makes the next one possible.
        sets.look();
    }
    moved
}

/// The change of a set that has one.
fn reshape_of(set: &mut Set) -> &mut ReshapeTask {
    set.tasks.reshape_mut().expect("just seen")
}

/// If everything that the old shape must keep is on the members, the set gets two sides.
fn begin_change(sets: &mut Sets, id: SetId) -> bool {
    let set = sets.get_mut(id);
    let drained = set.dirty.all() == 0 && !set.journal.is_in_use() && !set.dirty.has_failed();
    let Some(MoveStage::Draining(plan)) = set.tasks.reshape().map(|reshape| &reshape.stage) else { return false };
    if !drained {
        return false;
    }
    let plan = plan.clone();
    // What waits would be repaired where the new side is then. A later read finds it again.
    set.tasks.forget_rewrites();
    if plan.kind != PlanKind::Move {
        set.shut();
        set.ops_mut().turn();
        reshape_of(set).stage = MoveStage::Closing(plan);
        return true;
    }
    let generation = set.begin_change(&plan);
    reshape_of(set).stage = MoveStage::Announcing(generation);
    if plan.cuts_to().is_some() {
        sets.signal(Signal::EndCut(id));
    }
    true
}

/// If the epoch before has ended, what waited for that goes on.
fn end_epoch(sets: &mut Sets, id: SetId, is_looked_up: bool, call: &Call) -> bool {
    let set = sets.get_mut(id);
    let is_over = !is_looked_up && set.ops().is_old_empty() || call.planted().has(Flaw::LateRead);
    let is_held = changes_members(set) && set.is_being_recorded() && !call.planted().has(Flaw::TurnBesideRecord);
    if set.ops().awaited().is_none() || !is_over || is_held {
        return false;
    }
    set.ops_mut().end_wait();
    let is_idle = set.ops().all() == 0;
    let reshape = reshape_of(set);
    match &reshape.stage {
        MoveStage::OldSideEnds => end_old_side(set, call.planted()),
        MoveStage::Closing(_) if is_idle => exchange(sets, id),
        MoveStage::ClosingToTurn if is_idle => turn_around(sets, id, call),
        // The cache reads ahead.
        MoveStage::Closing(_) | MoveStage::ClosingToTurn => set.ops_mut().turn(),
        _ => reshape.closed = reshape.closing,
    }
    true
}

/// Does the next step change what superblocks say of each member alone?
fn changes_members(set: &mut Set) -> bool {
    matches!(reshape_of(set).stage, MoveStage::Closing(_) | MoveStage::ClosingToTurn | MoveStage::OldSideEnds)
}

/// If no unit is to begin soon, or a write waits, the rest of the closed stretch is open to writes again.
fn open_rest(sets: &mut Sets, id: SetId) -> bool {
    let set = sets.get_mut(id);
    let is_barred = set.is_durability_lost();
    let reshape = reshape_of(set);
    let waits = reshape.gives_way || reshape.must_let_writes_in() || reshape.rests;
    if is_barred && reshape.in_flight == 0 && reshape.stage == MoveStage::Moving {
        // What has moved and is not recorded stays on the old side.
        reshape.moved = reshape.recorded;
    }
    if !waits || reshape.in_flight > 0 || reshape.closing == reshape.moved {
        return false;
    }
    // Units that have moved before one that failed are moved again, because hosts may write there now.
    (reshape.closed, reshape.closing) = (reshape.moved, reshape.moved);
    (reshape.done, reshape.begun) = (0, 0);
    let to = reshape.moved;
    set.close_to(to);
    sets.signal(Signal::Changed);
    true
}

/// Close the next stretch, if the units in work come near its end and there is room.
fn close_more(sets: &mut Sets, id: SetId, planted: Planted) -> bool {
    let set = sets.get(id);
    let reshape = set.tasks.reshape().expect("just seen");
    if set.ops().awaited().is_some()
        || !matches!(reshape.stage, MoveStage::Moving | MoveStage::Flushing(_) | MoveStage::Recording(..))
    {
        return false;
    }
    let is_far = reshape.closed >= reshape.moved + RESHAPE_WINDOW.max(reshape.unit * 2);
    if is_far || reshape.gives_way || reshape.must_let_writes_in() || reshape.rests {
        return false;
    }
    let change = set.shape().change().expect("it has one");
    // A record before this turn of the epoch: what it has freed may be written when the epoch has ended.
    let from = if planted.has(Flaw::RoomFromMoved) { reshape.moved } else { reshape.recorded };
    let free = change.distance(change.free_until(change.boundary(from))) + too_much_room(change, from, planted);
    let unit = reshape.next_unit_len(free);
    let target = (reshape.moved + RESHAPE_WINDOW.max(unit * 4)).min(free).min(reshape.total);
    // Whole units.
    let target = if target == reshape.total { target } else { target - (target - reshape.moved) % unit };
    if target <= reshape.closed {
        return false;
    }
    let set = sets.get_mut(id);
    let reshape = reshape_of(set);
    (reshape.closing, reshape.free, reshape.unit) = (target, free, unit);
    set.close_to(target);
    set.ops_mut().turn();
    true
}

/// What a planted bug adds to the room.
fn too_much_room(change: &ShapeChange, from: Sectors, planted: Planted) -> Sectors {
    let (Geometry::Parity(old), Geometry::Parity(new)) = (change.on(Side::Old), change.on(Side::New)) else {
        return Sectors::ZERO;
    };
    let rows = if planted.has(Flaw::OffsetIgnored) {
        change.least_shift()
    } else if planted.has(Flaw::OldStripeRoundedUp) && !(from % old.full_stripe()).is_zero() {
        old.chunk()
    } else {
        Sectors::ZERO
    };
    rows * u64::from(new.data_columns())
}

/// Begin units, as rate and depth allow.
fn begin_units(sets: &mut Sets, id: SetId, ops: &mut Ops, call: &mut Call) -> bool {
    let mut moved = false;
    loop {
        let set = sets.get_mut(id);
        let pace = set.tasks.pace();
        let rate = pace.rate(set.policy().rebuild_rate, set.policy().rebuild_minimum);
        let depth = pace.units(set.policy().background_depth);
        let reshape = set.tasks.reshape().expect("just seen");
        if !reshape.may_begin_unit(depth) || call.now() < reshape.next_unit_at {
            return moved;
        }
        if !ops.may_make_background_op() {
            ops.wait_in_background();
            return moved;
        }
        let (number, at) = reshape.next_unit().expect("just seen");
        let len = reshape.len_at(at);
        debug_assert!(at + len <= reshape.free.min(reshape.closed), "S2");
        let change = set.shape().change().expect("it has one");
        let op = Op::moving(id, change.extent(at, len), len, at);
        let of_member = change.member_share(len);
        let reshape = reshape_of(set);
        reshape.begun |= 1 << number;
        reshape.in_flight += 1;
        if !rate.is_zero() {
            let nanos = u128::from(of_member.get()) * 1_000_000_000 / u128::from(rate.get());
            let pause = Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4));
            reshape.next_unit_at = reshape.next_unit_at.max(call.now()) + pause;
        }
        let key = ops.begin(set, op);
        ops.wake(key.index);
        keep_minimum(set, of_member, call);
        moved = true;
    }
}

/// Flush the members for the next record, if one is due.
fn begin_record(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let set = sets.get_mut(id);
    // A lost block is in the logs of its new places before the position passes it (S7).
    if set.tasks.has_flushes() || set.is_durability_lost() || !set.is_failure_durable() {
        return false;
    }
    let reshape = reshape_of(set);
    let Some(to) = reshape.due_record(call.now()) else { return false };
    reshape.stage = MoveStage::Flushing(to);
    let planted = call.planted();
    let issued =
        if planted.has(Flaw::PositionUnflushed) { 0 } else { sets.flush_members(id, Owner::CheckpointFlush, call) };
    if planted.has(Flaw::AnswerAheadOfPosition) {
        sets.get_mut(id).set_boundary(to);
    }
    sets.get_mut(id).tasks.begin_flushes(issued, call.now());
    if issued == 0 {
        store_position(sets.get_mut(id));
    }
    true
}

/// The members were flushed: the position goes into the superblocks.
pub(crate) fn store_position(set: &mut Set) {
    let lost = set.is_durability_lost();
    let reshape = reshape_of(set);
    let MoveStage::Flushing(to) = reshape.stage else { return };
    if lost {
        // What was moved may be lost on the member: nothing is recorded any more.
        reshape.stage = MoveStage::Moving;
        return;
    }
    let generation = set.record_position(to);
    reshape_of(set).stage = MoveStage::Recording(to, generation);
}

/// If a record is durable, hosts use the new side up to it.
fn end_record(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let set = sets.get_mut(id);
    let (durable, is_turning, now) = (set.durable_generation(), set.ops().awaited().is_some(), call.now());
    let reshape = reshape_of(set);
    match reshape.stage {
        MoveStage::Announcing(_) if call.planted().has(Flaw::MovedBeforeShape) => {
            reshape.stage = MoveStage::Moving;
            true
        }
        MoveStage::Announcing(generation) if durable >= generation => {
            let generation = set.end_guard();
            reshape_of(set).stage = MoveStage::Beginning(generation);
            true
        }
        MoveStage::Beginning(generation) if durable >= generation => {
            reshape.stage = MoveStage::Moving;
            call.notice(sets, (id, None), None, NoticeKind::ReshapeBegun);
            true
        }
        MoveStage::Recording(to, generation) if durable >= generation => {
            (reshape.recorded, reshape.stage, reshape.is_awaited) = (to, MoveStage::Moving, false);
            let next = now + set.tasks.checkpoint_interval(RESHAPE_RECORD_INTERVAL);
            let reshape = reshape_of(set);
            (reshape.recorded_at, reshape.next_record) = (now, next);
            set.set_boundary(to);
            sets.signal(Signal::Changed);
            true
        }
        MoveStage::Moving if reshape.recorded == reshape.total && !is_turning && !reshape.gives_way => {
            reshape_of(set).stage = MoveStage::OldSideEnds;
            set.ops_mut().turn();
            true
        }
        MoveStage::Turning(generation) if durable >= generation => {
            let generation = set.end_guard();
            reshape_of(set).stage = MoveStage::Turned(generation);
            true
        }
        MoveStage::Turned(generation) if durable >= generation => {
            reshape.stage = MoveStage::Moving;
            call.notice(sets, (id, None), None, NoticeKind::ReshapeCancelled);
            true
        }
        MoveStage::Guarding(generation) if durable >= generation => {
            set.reopen();
            set.fit_bitmap();
            let generation = set.end_guard();
            reshape_of(set).stage = MoveStage::Ending(generation);
            sets.signal(Signal::Changed);
            true
        }
        MoveStage::Ending(generation) if durable >= generation && !is_turning => {
            set.tasks.end_reshape();
            set.offer_capacity();
            sets.signal(Signal::ShapeChanged(id));
            sets.signal(Signal::Changed);
            call.notice(sets, (id, None), None, NoticeKind::ReshapeFinished);
            true
        }
        _ => false,
    }
}

/// The set stops, and no operation of it is in work: record what has moved, or end what was begun at the end. True if
/// nothing is left to be recorded.
pub(crate) fn quiesce_reshape(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let set = sets.get_mut(id);
    if set.tasks.reshape().is_none() {
        return true;
    }
    set.ops_mut().end_wait();
    let is_being_recorded = set.is_being_recorded();
    let reshape = reshape_of(set);
    if reshape.stage == MoveStage::OldSideEnds {
        reshape.stage = MoveStage::Moving;
    }
    match reshape.stage {
        MoveStage::Draining(_) => {
            set.tasks.end_reshape();
            return true;
        }
        MoveStage::Closing(_) | MoveStage::ClosingToTurn if is_being_recorded => return false,
        MoveStage::Closing(_) => {
            exchange(sets, id);
            return false;
        }
        MoveStage::ClosingToTurn => {
            turn_around(sets, id, call);
            return false;
        }
        _ => {}
    }
    let reshape = reshape_of(set);
    let is_moving = reshape.stage == MoveStage::Moving;
    if is_moving && reshape.moved > reshape.recorded {
        reshape.is_awaited = true;
        let has_begun = begin_record(sets, id, call);
        sets.look();
        return !has_begun;
    }
    if is_moving {
        set.tasks.end_reshape();
        return true;
    }
    if end_record(sets, id, call) {
        sets.look();
    }
    false
}

/// Nothing uses the old side any more: the set has the new shape alone.
fn end_old_side(set: &mut Set, planted: Planted) {
    let generation = set.end_old_side();
    reshape_of(set).stage = MoveStage::Guarding(generation);
    // Operations of the new side end before another change can give that name to another geometry.
    set.ops_mut().turn();
    if planted.has(Flaw::EndUnguarded) {
        let generation = set.end_guard();
        reshape_of(set).stage = MoveStage::Ending(generation);
    }
    if planted.has(Flaw::GrownTooEarly) {
        set.offer_capacity();
    }
}

/// If a cancelled change has come to a position at which it can turn around, requests wait for that. Another task ends first: it
/// goes through both sides, and they would exchange their names under it.
fn begin_turn(sets: &mut Sets, id: SetId) -> bool {
    let set = sets.get_mut(id);
    let is_turning = set.ops().awaited().is_some();
    let is_barred = set.is_durability_lost() || set.tasks.task.is_some();
    let reshape = reshape_of(set);
    if !reshape.is_at_turn() || reshape.stage != MoveStage::Moving || reshape.in_flight > 0 || is_turning || is_barred {
        return false;
    }
    reshape.forget_unrecorded();
    reshape.stage = MoveStage::ClosingToTurn;
    set.shut();
    set.ops_mut().turn();
    true
}

/// Nothing is in work: what has moved moves back from now on.
fn turn_around(sets: &mut Sets, id: SetId, call: &Call) {
    let set = sets.get_mut(id);
    match set.turn_change() {
        Some(generation) => {
            let (change, boundary) = (set.shape().change().expect("just turned").clone(), set.shape().boundary());
            let turned = reshape_of(set).turned(&change, boundary, generation, (call.limits(), call.now()));
            set.tasks.begin_reshape(turned);
        }
        None => {
            set.open_again();
            reshape_of(set).go_on();
        }
    }
    sets.signal(Signal::Changed);
}

/// Nothing is in work: the members get the new level or size.
fn exchange(sets: &mut Sets, id: SetId) {
    let set = sets.get_mut(id);
    let MoveStage::Closing(plan) = &reshape_of(set).stage else { unreachable!("just seen") };
    let plan = plan.clone();
    let generation = match plan.kind {
        PlanKind::Takeover(takeover) => set.take_over(&takeover, &plan),
        PlanKind::Append => {
            let new = reshape_of(set).take_new().expect("the plan is for a drive");
            set.append(new, &plan)
        }
        PlanKind::Resize(size) => set.resize(size, &plan),
        PlanKind::Cut(size) => set.cut(size, &plan),
        PlanKind::Move => unreachable!("it moves data between two sides"),
    };
    reshape_of(set).stage = MoveStage::Guarding(generation);
    if plan.cuts_to().is_some() {
        sets.signal(Signal::EndCut(id));
    }
}

/// A unit is over.
pub(crate) fn on_unit_moved(sets: &mut Sets, op: &Op, call: &mut Call) {
    sets.look();
    let now = call.now();
    let Some(reshape) = sets.get_mut(op.set()).tasks.reshape_mut() else { return };
    reshape.unit_ended(op.of_move().at(), !op.has_failed(), now);
}

/// The time at which the change must be examined.
pub(crate) fn reshape_deadline(set: &Set, ops: &Ops) -> Option<Instant> {
    let reshape = set.tasks.reshape()?;
    let depth = set.tasks.pace().units(set.policy().background_depth);
    let unit = ops.may_make_background_op() && reshape.may_begin_unit(depth);
    let may_flush = !set.tasks.has_flushes() && !set.is_durability_lost() && set.is_failure_durable();
    let records =
        reshape.stage == MoveStage::Moving && reshape.moved > reshape.recorded && !reshape.is_at_turn() && may_flush;
    let unit = (unit || reshape.rests).then_some(reshape.next_unit_at);
    unit.into_iter().chain(records.then_some(reshape.record_due())).min()
}
