//! The administrator changes the shape of an array.

use alloc::string::ToString;
use alloc::vec::Vec;
use openraid_format::Superblock;
use openraid_units::{ArrayId, SetId};

use crate::admin::{AdminError, AdminOutcome, MemberState};
use crate::array::reshape_plan::{plan_reshape, plan_resize, PlanKind, ReshapeGoal, ReshapePlan};
use crate::array::set::{Member, Set};
use crate::array::start::rows_max_of;
use crate::background::reshape_state::ReshapeTask;
use crate::controller::Controller;
use crate::geometry::change::ShapeChange;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::limits::Limits;

impl Controller {
    /// Begin to change the shape of an array. It is begun when the superblocks say so.
    pub(crate) fn begin_reshape(&mut self, array: ArrayId, goal: ReshapeGoal) -> Result<SetId, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get(id);
        check_ready(set)?;
        let plan = plan_of(set, goal, &[])?;
        let (limits, now) = (&self.base.limits, self.base.now);
        check_frames(&plan, limits)?;
        let rows_max = rows_max_of(limits, plan.change.on(Side::New), set.block(), 0)?;
        let slots = plan.new.raid_disks;
        let reshape = ReshapeTask::beginning(plan, limits, now);
        let set = self.sets.get_mut(id);
        self.ops.begin_set(id, set.slots().max(slots));
        set.limit_rows(rows_max);
        set.tasks.begin_reshape(reshape);
        self.sets.look();
        Ok(id)
    }
}

impl Controller {
    /// What a change of shape would do. `joining`: superblocks of drives that would join as spares before it.
    ///
    /// # Errors
    /// Why the change cannot begin.
    pub fn plan_reshape(
        &self,
        array: ArrayId,
        goal: ReshapeGoal,
        joining: &[Superblock],
    ) -> Result<ReshapePlan, AdminError> {
        let set = self.sets.get(self.arrays.set_of(&self.sets, array)?);
        check_ready(set)?;
        let plan = plan_of(set, goal, joining)?;
        check_frames(&plan, &self.base.limits)?;
        Ok(plan)
    }

    /// The requests of an array are cut for the shape of its set.
    pub(crate) fn fit_array(&mut self, id: SetId) {
        let set = self.sets.get(id);
        let geometry = set.shape().on(Side::Old);
        let gathers = matches!(geometry, Geometry::Parity(_));
        self.arrays.get_mut(set.array()).fit(&self.base.limits, geometry.full_stripe(), gathers);
    }

    /// The answer to the command that began a change, if there is one already. A change whose dirty data has no room is given
    /// up.
    pub(crate) fn check_reshape_begun(&mut self, id: SetId) -> Option<Result<AdminOutcome, AdminError>> {
        if self.sets.find(id).is_none_or(Set::has_failed) {
            return Some(Err(AdminError::Offline));
        }
        let set = self.sets.get_mut(id);
        if set.is_short_of_room() && set.tasks.reshape().is_some_and(ReshapeTask::is_draining) {
            set.tasks.end_reshape();
            return Some(Err(NO_ROOM));
        }
        let is_begun = set.tasks.reshape().is_none_or(ReshapeTask::is_begun);
        is_begun.then_some(Ok(AdminOutcome::Done))
    }
}

impl Controller {
    /// The change of an array's shape turns around at the next position at which it can.
    pub(crate) fn cancel_reshape(&mut self, array: ArrayId) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get_mut(id);
        let can_turn = set.shape().change().is_none_or(ShapeChange::can_turn);
        let Some(reshape) = set.tasks.reshape_mut() else {
            return Err(AdminError::NotPossible("the array does not change its shape"));
        };
        if !can_turn || !reshape.cancel() {
            return Err(AdminError::NotPossible(
                "this change cannot be cancelled: it is near its end, or RAID 5 becomes RAID 6; wait for the end and change back",
            ));
        }
        self.sets.look();
        Ok(AdminOutcome::Done)
    }
}

const NO_ROOM: AdminError = AdminError::NotPossible(
    "a member has no room for writes, and cached writes go to the members first: make room there",
);

/// Can a change begin in the state in which the set is?
fn check_ready(set: &Set) -> Result<(), AdminError> {
    if set.metadata.is_none() || !set.is_running() {
        return Err(AdminError::Offline);
    }
    if set.tasks.reshape().is_some() {
        return Err(AdminError::NotPossible("the array changes its shape already; wait for the end"));
    }
    if let Some(task) = set.tasks.current() {
        return Err(AdminError::TaskRuns(task.kind()));
    }
    if !set.missing().is_empty() {
        return Err(AdminError::NotPossible("members are missing: add drives and wait for the rebuild first"));
    }
    if !set.is_consistent_everywhere() {
        return Err(AdminError::NotPossible("the array is not in sync: wait for the resync first"));
    }
    if set.ppl.is_some() {
        return Err(AdminError::NotPossible(
            "the array has a partial parity log, and Linux md changes no such array; set the consistency policy to resync \
             first",
        ));
    }
    if set.is_short_of_room() {
        return Err(NO_ROOM);
    }
    if set.is_durability_lost() {
        return Err(AdminError::NotPossible("a member did not flush: restart the server first; see `openraid show`"));
    }
    Ok(())
}

/// Can a stripe of the new shape be moved in the memory that there is?
fn check_frames(plan: &ReshapePlan, limits: &Limits) -> Result<(), AdminError> {
    if plan.kind != PlanKind::Move || ReshapeTask::has_frames_for(&plan.change, limits) {
        return Ok(());
    }
    Err(AdminError::NotPossible(
        "the work memory is too small for a stripe of the new shape; give the server more (--memory)",
    ))
}

/// What the change would do with the members and spares that the set has, and drives that join it.
fn plan_of(set: &Set, goal: ReshapeGoal, joining: &[Superblock]) -> Result<ReshapePlan, AdminError> {
    let common = set.metadata.as_ref().expect("just checked").common();
    let of_state = |state: MemberState| {
        let is_it = move |member: &&Member| member.state() == state && !member.is_removed();
        set.members().iter().filter(is_it).filter_map(Member::superblock).cloned().collect::<Vec<Superblock>>()
    };
    let (members, mut spares) = (of_state(MemberState::InSync), of_state(MemberState::Spare));
    spares.extend_from_slice(joining);
    let plan = match goal {
        ReshapeGoal::Shape(new) => plan_reshape(common, &members, &spares, new),
        ReshapeGoal::AllRoom => plan_resize(common, &[members.as_slice(), &spares].concat()),
    };
    let plan = plan.map_err(|error| AdminError::Refused(error.to_string()))?;
    match &set.bitmap {
        Some(bitmap) if !members.iter().chain(&spares).all(|member| plan.has_bitmap_room(member, bitmap.chunk())) => {
            Err(AdminError::NotPossible(
                "the write-intent bitmap of the new shape has no room before the data of a member: make an array with larger \
                 regions of the bitmap, or without one",
            ))
        }
        _ => Ok(plan),
    }
}
