//! The administrator gives a linear array another drive.

use alloc::string::ToString;
use alloc::vec::Vec;
use openraid_format::{ShapeFields, Superblock};
use openraid_units::{ArrayId, DriveId, Sectors, SetId};

use super::reshape_command::check_ready;
use crate::admin_answer::{AdminError, AdminOutcome};
use crate::array::append_drive::plan_append;
use crate::array::new_array::NewMember;
use crate::array::reshape_plan::ReshapePlan;
use crate::array::set::Set;
use crate::array::set_start::rows_max_of;
use crate::array::suitable_drive::check_suits;
use crate::background::reshape_task::ReshapeTask;
use crate::controller::Controller;
use crate::geometry::shape::Side;

impl Controller {
    /// Begin to give a linear array another drive at its end. Hosts have its room when the superblocks say so.
    pub(crate) fn begin_append(&mut self, array: ArrayId, new: NewMember) -> Result<(SetId, DriveId), AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let before = self.sets.get(id).metadata.as_ref().map(|metadata| metadata.common().shape());
        let before = before.ok_or(AdminError::Offline)?;
        let after = ShapeFields { raid_disks: before.raid_disks.saturating_add(1), ..before };
        let plan = plan_of_append(self.sets.get(id), after, core::slice::from_ref(&new.superblock))?;
        let drive = new.drive;
        let info = self.base.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?.info();
        let set = self.sets.get(id);
        check_suits(set, &new, info)?;
        let (limits, now) = (&self.base.limits, self.base.now);
        let rows_max = rows_max_of(limits, plan.change.on(Side::New), set.block(), 0)?;
        self.base.channels.claim(&[drive], id)?;
        let slots = plan.new.raid_disks;
        let append = ReshapeTask::beginning(plan, &self.base.limits, now).with_new(new);
        let set = self.sets.get_mut(id);
        self.ops.begin_set(id, slots);
        set.limit_rows(rows_max);
        set.tasks.begin_reshape(append);
        self.sets.look();
        Ok((id, drive))
    }

    /// The answer to the command, when the drive is a member for good, or never will be one.
    pub(crate) fn check_appended(&mut self, id: SetId, drive: DriveId) -> Option<Result<AdminOutcome, AdminError>> {
        let set = self.sets.find(id);
        let is_member = set.is_some_and(|set| set.has_slot(drive));
        let refused = match set {
            None => AdminError::Offline,
            Some(set) if set.has_failed() => AdminError::Offline,
            Some(set) if set.tasks.reshape().is_some() => return None,
            Some(_) if is_member => return Some(Ok(AdminOutcome::Done)),
            Some(_) => AdminError::NotPossible(
                "the drive did not take its superblock, or the array stopped before; nothing has changed",
            ),
        };
        if !is_member {
            self.base.channels.release(&[drive]);
        }
        Some(Err(refused))
    }
}

/// What it would be if these drives joined a linear set at its end, which gets this shape.
pub(super) fn plan_of_append(set: &Set, after: ShapeFields, joining: &[Superblock]) -> Result<ReshapePlan, AdminError> {
    check_ready(set, true)?;
    let common = set.metadata.as_ref().expect("just checked").common();
    let sizes: Vec<Sectors> = joining.iter().map(|superblock| superblock.data_size).collect();
    plan_append(common, after, &set.data_sizes(), &sizes).map_err(|error| AdminError::Refused(error.to_string()))
}
