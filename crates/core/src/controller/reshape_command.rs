//! The administrator changes the shape of an array.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use openraid_format::Superblock;
use openraid_units::{ArrayId, Sectors, SetId};

use super::append_drive_command::plan_of_append;
use crate::actions::{Actions, NoticeKind};
use crate::admin_answer::{AdminError, AdminOutcome};
use crate::array::member::Member;
use crate::array::reshape_plan::{plan_reshape, plan_resize, PlanKind, Present, ReshapeGoal, ReshapePlan};
use crate::array::set::Set;
use crate::array::set_start::rows_max_of;
use crate::array::used_size::SizeError;
use crate::background::reshape_task::ReshapeTask;
use crate::call::Call;
use crate::controller::Controller;
use crate::geometry::reshape::ShapeChange;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::limits::Limits;
use crate::set_status::MemberState;

impl Controller {
    /// Begin to change the shape of an array. It is begun when the superblocks say so.
    pub(crate) fn begin_reshape(&mut self, array: ArrayId, goal: ReshapeGoal) -> Result<SetId, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get(id);
        check_ready(set, goal.is_without_redundancy())?;
        let plan = plan_of(set, goal, &[])?;
        self.check_cut(array, &plan)?;
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

    /// What a change of shape would do. `joining`: superblocks of drives that would join as spares before it, or with it if the
    /// array is linear.
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
        if let (true, ReshapeGoal::Shape(new)) = (set.shape().is_linear(), goal) {
            return plan_of_append(set, new, joining);
        }
        check_ready(set, goal.is_without_redundancy())?;
        let plan = plan_of(set, goal, joining)?;
        check_frames(&plan, &self.base.limits)?;
        Ok(plan)
    }

    /// The requests of an array are cut for the shape of its set.
    pub(crate) fn fit_array(&mut self, id: SetId) {
        let set = self.sets.get(id);
        let geometry = set.shape().on(Side::Old);
        let gathers = matches!(geometry, Geometry::Parity(_));
        let stripe = geometry.full_stripe();
        let array = self.arrays.get_mut(set.array());
        array.fit(&self.base.limits, stripe, gathers);
        let whole = array.whole(|set| self.sets.get(set).shape());
        array.forget_limit_of(whole);
        self.sets.sort_members(&mut self.arrays, &mut self.base, id);
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

    /// Let hosts have no more than the first part of an array.
    pub(crate) fn begin_limit(
        &mut self,
        id: ArrayId,
        to: Option<Sectors>,
        actions: &mut Actions,
    ) -> Result<(), AdminError> {
        let set = self.arrays.set_of(&self.sets, id)?;
        if self.sets.get(set).tasks.reshape().is_some() {
            return Err(AdminError::NotPossible("the array changes its shape; wait for the end"));
        }
        let array = self.arrays.get_mut(id);
        if array.is_span() {
            return Err(AdminError::NotPossible("this is a span of a nested array, which needs all of it"));
        }
        let (whole, granule) = (array.whole(|set| self.sets.get(set).shape()), array.granule());
        let to = to.map_or(whole, |to| to.round_down(granule));
        if to.is_zero() || to > whole {
            return Err(AdminError::Refused(format!("hosts can have {granule} to {whole} of the array")));
        }
        array.limit_to(to);
        array.forget_limit_of(whole);
        let call = &mut Call::new(&mut self.base, actions);
        call.notice(&self.sets, (set, None), None, NoticeKind::CapacityLimited { to });
        Ok(())
    }

    /// The answer to the command that has made an array smaller for hosts, when no request is in work beyond it.
    pub(crate) fn check_limited(&self, id: ArrayId) -> Option<Result<AdminOutcome, AdminError>> {
        let Some(array) = self.arrays.find(id) else { return Some(Err(AdminError::Offline)) };
        let capacity = array.capacity(|set| self.sets.get(set).shape());
        (!self.requests.reach_beyond(id, capacity.bytes())).then_some(Ok(AdminOutcome::Done))
    }

    /// Hosts must have no more already than what a change leaves.
    fn check_cut(&self, id: ArrayId, plan: &ReshapePlan) -> Result<(), AdminError> {
        let Some(left) = plan.cuts_to() else { return Ok(()) };
        let has = self.arrays.get(id).capacity(|set| self.sets.get(set).shape());
        if has > left {
            return Err(AdminError::Refused(SizeError::Cuts { has, left }.to_string()));
        }
        if self.requests.reach_beyond(id, left.bytes()) {
            return Err(AdminError::NotPossible(
                "requests are in work beyond the new end of the array; ask again in a moment",
            ));
        }
        Ok(())
    }

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

/// Can a change begin in the state in which the set is? `is_alone`: of a set that has no redundancy, or loses it.
pub(super) fn check_ready(set: &Set, is_alone: bool) -> Result<(), AdminError> {
    if set.metadata.is_none() || !set.is_running() {
        return Err(AdminError::Offline);
    }
    if set.tasks.reshape().is_some() {
        return Err(AdminError::NotPossible("the array changes its shape already; wait for the end"));
    }
    if let Some(task) = set.tasks.current() {
        return Err(AdminError::TaskRuns(task.kind()));
    }
    if is_alone {
        check_alone(set)?;
    } else if !set.missing().is_empty() {
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

/// RAID 0 and linear have neither spares nor members that have failed: Linux md refuses such an array.
fn check_alone(set: &Set) -> Result<(), AdminError> {
    let is_over = |member: &&Member| !member.is_removed() && member.state() != MemberState::InSync;
    match set.members().iter().find(is_over) {
        Some(_) => Err(AdminError::NotPossible(
            "RAID 0 and linear have no spares and no members that have failed: take them out first (openraid remove)",
        )),
        None => Ok(()),
    }
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
    let present = Present { common, members: &members, spares: &spares, missing: set.missing() };
    let plan = match goal {
        ReshapeGoal::Shape(new) => plan_reshape(&present, new),
        ReshapeGoal::Used(to) => plan_resize(common, &[members.as_slice(), &spares].concat(), to),
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
