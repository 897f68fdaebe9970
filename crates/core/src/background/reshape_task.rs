//! How far the change of a set's shape has come, and what it does next. `pump_reshape.rs` has the picture and acts.

use alloc::boxed::Box;
use openraid_format::{ReshapeDirection, ShapeFields};
use openraid_units::{Bytes, Instant, Sectors, SetLba};

use crate::array::new_array::NewMember;
use crate::array::reshape_plan::ReshapePlan;
use crate::frames::Frames;
use crate::geometry::reshape::ShapeChange;
use crate::geometry::shape::Side;
use crate::limits::{Limits, FRAME_BYTES, RESHAPE_PAUSE, RESHAPE_RECORD_INTERVAL, RESHAPE_UNIT};
use crate::set_status::{ReshapeStage, ReshapeStatus, TaskKind, TaskStatus};

/// Maximum number of units between `moved` and `next`.
const UNITS_MAX: u64 = 63;

/// A change of shape that is under way.
#[derive(Debug)]
pub(crate) struct ReshapeTask {
    from: ShapeFields,
    to: ShapeFields,
    direction: ReshapeDirection,
    since: Instant,
    done_at_start: Sectors,
    /// Recorded positions are multiples of this, and of the other one if possible.
    step: Sectors,
    turn: Sectors,
    /// Length of a unit, which is whole steps, and its maximum.
    pub(in crate::background) unit: Sectors,
    unit_max: Sectors,
    /// Maximum number of units in work.
    depth: u32,
    pub(in crate::background) total: Sectors,
    /// The share of a member in that.
    of_member: Sectors,
    /// Sectors of the set before and after.
    capacities: [Sectors; 2],
    pub(in crate::background) recorded: Sectors,
    pub(in crate::background) moved: Sectors,
    pub(in crate::background) closed: Sectors,
    /// The stretch is closed up to here when the epoch before has ended.
    pub(in crate::background) closing: Sectors,
    /// Nothing is written at or beyond this distance.
    pub(in crate::background) free: Sectors,
    /// Bit sets of units from `moved` on: the units that have moved, and the units that are begun.
    pub(in crate::background) done: u64,
    pub(in crate::background) begun: u64,
    pub(in crate::background) in_flight: u32,
    pub(in crate::background) stage: MoveStage,
    /// A write waits for the boundary.
    pub(in crate::background) is_awaited: bool,
    /// It turns around as soon as it can.
    is_cancelled: bool,
    /// It is paused, or another task goes first.
    pub(in crate::background) gives_way: bool,
    /// No unit begins soon: its rate is low, or a unit has failed. Until then nothing is closed.
    pub(in crate::background) rests: bool,
    pub(in crate::background) next_unit_at: Instant,
    pub(in crate::background) recorded_at: Instant,
    pub(in crate::background) next_record: Instant,
    /// The drive that a linear set gets.
    new: Option<Box<NewMember>>,
}

/// The work on the superblocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::background) enum MoveStage {
    /// The set has the old shape, and its writes go through from now on: dirty data and the journal's session end first.
    Draining(Box<ReshapePlan>),
    /// Requests wait, and all operations before them end. Then the set changes its level, or its size.
    Closing(Box<ReshapePlan>),
    /// The same; then the change turns around.
    ClosingToTurn,
    /// The other direction, with the mark that md does not know, is durable with this generation.
    Turning(u64),
    /// The other direction is durable with this generation.
    Turned(u64),
    /// Two sides, with nothing moved and the mark that md does not know: durable with this generation.
    Announcing(u64),
    /// The same without the mark.
    Beginning(u64),
    /// Data moves; nothing is being recorded.
    Moving,
    /// The members are being flushed; then this position is recorded.
    Flushing(Sectors),
    /// This position is durable with this generation.
    Recording(Sectors, u64),
    /// All has moved and is recorded; the epoch before is waited for.
    OldSideEnds,
    /// The new shape, with the mark that md does not know, is durable with this generation.
    Guarding(u64),
    /// The new shape is durable with this generation.
    Ending(u64),
}

impl ReshapeTask {
    /// The change of a set from its recorded position on.
    pub(crate) fn new(
        change: &ShapeChange,
        boundary: SetLba,
        (from, to): (ShapeFields, ShapeFields),
        limits: &Limits,
        now: Instant,
    ) -> Self {
        let step = change.step();
        let frames = Self::frames_of_units(limits);
        let most = RESHAPE_UNIT.min(Bytes(frames / 2).sectors_floor());
        let unit = step * (most.get() / step.get()).max(1);
        let room = frames / unit.bytes().get().next_power_of_two();
        let at = change.distance(boundary);
        Self {
            step,
            turn: change.unit(),
            unit,
            unit_max: unit,
            depth: u32::try_from(room.clamp(1, UNITS_MAX)).expect("at most the number of bits"),
            total: change.total(),
            of_member: change.member_share(change.total()),
            capacities: [change.capacity_old(), change.capacity_new()],
            from,
            to,
            direction: change.direction(),
            since: now,
            done_at_start: at,
            recorded: at,
            moved: at,
            closed: at,
            closing: at,
            free: at,
            done: 0,
            begun: 0,
            in_flight: 0,
            stage: MoveStage::Moving,
            is_awaited: false,
            is_cancelled: false,
            gives_way: false,
            rests: false,
            next_unit_at: now,
            recorded_at: now,
            next_record: now + RESHAPE_RECORD_INTERVAL,
            new: None,
        }
    }

    /// The same, with the drive that a linear set gets.
    pub(crate) fn with_new(self, new: NewMember) -> Self {
        Self { new: Some(Box::new(new)), ..self }
    }

    /// The drive that a linear set gets.
    pub(in crate::background) fn take_new(&mut self) -> Option<NewMember> {
        self.new.take().map(|new| *new)
    }

    /// The same, with nothing moved until its position is durable with this generation.
    pub(crate) fn after_record(self, generation: u64) -> Self {
        Self { stage: MoveStage::Recording(self.recorded, generation), ..self }
    }

    /// A change that begins.
    pub(crate) fn beginning(plan: ReshapePlan, limits: &Limits, now: Instant) -> Self {
        let fields = (plan.from, plan.new);
        let steady = Self::new(&plan.change, plan.change.boundary(Sectors::ZERO), fields, limits, now);
        Self { stage: MoveStage::Draining(Box::new(plan)), ..steady }
    }

    /// Is all that has moved recorded, and no stretch closed? Then another task may begin.
    pub(crate) fn is_quiet(&self) -> bool {
        self.stage == MoveStage::Moving
            && self.moved == self.recorded
            && self.closing == self.moved
            && self.in_flight == 0
    }

    /// Are the members being flushed for a record?
    pub(crate) const fn is_flushing(&self) -> bool {
        matches!(self.stage, MoveStage::Flushing(_))
    }

    /// Does dirty data of the old shape go to the members first?
    pub(crate) const fn is_draining(&self) -> bool {
        matches!(self.stage, MoveStage::Draining(_))
    }

    /// Do the superblocks say, without a mark, that the change is under way?
    pub(crate) const fn is_begun(&self) -> bool {
        !matches!(
            self.stage,
            MoveStage::Draining(_) | MoveStage::Closing(_) | MoveStage::Announcing(_) | MoveStage::Beginning(_)
        )
    }

    /// Are there frames for a unit of this change?
    pub(crate) fn has_frames_for(change: &ShapeChange, limits: &Limits) -> bool {
        let members = change.on(Side::Old).members().max(change.on(Side::New).members());
        let row = u64::from(members) * FRAME_BYTES;
        change.step().bytes().get().max(row).next_power_of_two() <= Self::frames_of_units(limits)
    }

    /// The frames that units take at most: half of a zone. The other half is for the rows that their parts read and write:
    /// see `rows_max_of`.
    fn frames_of_units(limits: &Limits) -> u64 {
        Frames::zone_bytes(limits.work.get()) / 2
    }

    /// The change of a set, for readers.
    pub(crate) fn status(&self) -> ReshapeStatus {
        let stage = match self.stage {
            MoveStage::Draining(_) | MoveStage::Closing(_) => ReshapeStage::Draining,
            MoveStage::Announcing(_)
            | MoveStage::Beginning(_)
            | MoveStage::ClosingToTurn
            | MoveStage::Turning(_)
            | MoveStage::Turned(_) => ReshapeStage::Beginning,
            MoveStage::Moving | MoveStage::Flushing(_) | MoveStage::Recording(..) => ReshapeStage::Moving,
            MoveStage::OldSideEnds | MoveStage::Guarding(_) | MoveStage::Ending(_) => ReshapeStage::Ending,
        };
        let Self { from, to, capacities, direction, moved, recorded, total, .. } = *self;
        let position = match direction {
            ReshapeDirection::Forward => SetLba(recorded.get()),
            ReshapeDirection::Backward => SetLba((total - recorded).get()),
        };
        ReshapeStatus { from, to, capacities, direction, stage, moved, recorded, total, position }
    }

    /// The same as a task.
    pub(crate) fn task_status(&self, is_paused: bool) -> TaskStatus {
        // Both are below 2^54, and a member has less than the set.
        let share = |part: Sectors| {
            let of_member = u128::from(part.get()) * u128::from(self.of_member.get()) / u128::from(self.total.get());
            Sectors(u64::try_from(of_member).expect("at most the member's share of the whole"))
        };
        TaskStatus {
            kind: TaskKind::Reshape,
            done: share(self.moved),
            total: share(self.total),
            paused: is_paused,
            since: self.since,
            done_at_start: share(self.done_at_start),
            mismatches: 0,
            scrub: None,
        }
    }

    /// It is to turn around; false if it is too late.
    pub(crate) fn cancel(&mut self) -> bool {
        let moves = matches!(self.stage, MoveStage::Moving | MoveStage::Flushing(_) | MoveStage::Recording(..));
        let is_early = moves && self.moved < self.total;
        self.is_cancelled |= is_early;
        is_early
    }

    /// Is the recorded position one at which a cancelled change turns around?
    pub(in crate::background) fn is_at_turn(&self) -> bool {
        self.is_cancelled && (self.recorded % self.turn).is_zero() && self.recorded < self.total
    }

    /// Forget what has moved and is not recorded.
    pub(in crate::background) fn forget_unrecorded(&mut self) {
        (self.moved, self.closed, self.closing) = (self.recorded, self.recorded, self.recorded);
        (self.done, self.begun) = (0, 0);
    }

    /// The change back from this boundary on, which this generation of superblocks records.
    pub(in crate::background) fn turned(
        &self,
        change: &ShapeChange,
        boundary: SetLba,
        generation: u64,
        (limits, now): (&Limits, Instant),
    ) -> Self {
        let stage = MoveStage::Turning(generation);
        Self { stage, ..Self::new(change, boundary, (self.to, self.from), limits, now) }
    }

    /// It goes on, because there is no way back.
    pub(in crate::background) fn go_on(&mut self) {
        (self.stage, self.is_cancelled) = (MoveStage::Moving, false);
    }

    /// A write waits until the boundary has passed it.
    pub(crate) fn want_boundary(&mut self) {
        self.is_awaited = true;
    }

    /// The first unit that is not begun, by its number from `moved` on, and its distance.
    pub(in crate::background) fn next_unit(&self) -> Option<(u32, Sectors)> {
        let number = self.begun.trailing_ones();
        let at = self.moved + self.unit * u64::from(number);
        (u64::from(number) < UNITS_MAX && at < self.closed).then_some((number, at))
    }

    /// Length of the unit at this distance.
    pub(in crate::background) fn len_at(&self, at: Sectors) -> Sectors {
        self.unit.min(self.total - at)
    }

    /// May a unit begin, apart from rate and tables?
    pub(in crate::background) fn may_begin_unit(&self, depth: u32) -> bool {
        matches!(self.stage, MoveStage::Moving | MoveStage::Flushing(_) | MoveStage::Recording(..))
            && self.in_flight < depth.min(self.depth)
            && !self.is_at_turn()
            && !self.gives_way
            && !self.must_let_writes_in()
            && self.next_unit().is_some()
    }

    /// Length of units up to the end of the room. It changes only if none is in work or done, because units are numbered
    /// from `moved` on, and if nothing is closed, because the closed stretch has whole units.
    pub(in crate::background) fn next_unit_len(&self, free: Sectors) -> Sectors {
        if self.begun != 0 || self.closed != self.moved {
            return self.unit;
        }
        let quarter = (free - self.moved) / 4;
        (quarter - quarter % self.step).max(self.step).min(self.unit_max)
    }

    /// Does a write wait, and has enough moved to let the write in by a record?
    pub(in crate::background) fn must_let_writes_in(&self) -> bool {
        self.is_awaited && self.moved > self.recorded
    }

    /// The unit at this distance is over. If it failed, it begins again after a pause.
    pub(in crate::background) fn unit_ended(&mut self, at: Sectors, has_moved: bool, now: Instant) {
        self.in_flight -= 1;
        let bit = 1 << ((at - self.moved).get() / self.unit.get());
        if !has_moved {
            self.begun &= !bit;
            self.next_unit_at = self.next_unit_at.max(now + RESHAPE_PAUSE);
            return;
        }
        self.done |= bit;
        let run = self.done.trailing_ones();
        self.moved = (self.moved + self.unit * u64::from(run)).min(self.total);
        self.done = self.done.checked_shr(run).unwrap_or(0);
        self.begun = self.begun.checked_shr(run).unwrap_or(0);
    }

    /// The time of the next record, if nothing asks for one before. A cancelled change turns around at a record, so its records are
    /// not rare.
    pub(in crate::background) fn record_due(&self) -> Instant {
        let soon = self.recorded_at + RESHAPE_RECORD_INTERVAL;
        if self.is_cancelled {
            soon.min(self.next_record)
        } else {
            self.next_record
        }
    }

    /// The position that is to be recorded now, if one is.
    pub(in crate::background) fn due_record(&self, now: Instant) -> Option<Sectors> {
        let has_moved = self.moved > self.recorded && self.stage == MoveStage::Moving && !self.is_at_turn();
        let is_stuck = self.in_flight == 0 && self.next_unit().is_none() && self.closing == self.closed;
        // A position that both directions can express, if there is one: a change can turn around there (S8).
        let whole = self.moved - self.moved % self.turn;
        let is_due = self.is_awaited || self.gives_way || is_stuck || now >= self.record_due();
        let to = if whole > self.recorded { whole } else { self.moved };
        (has_moved && is_due).then_some(to)
    }
}
