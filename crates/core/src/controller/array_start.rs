//! Sets start, and drives without an array are passed through.

use alloc::string::ToString;
use alloc::vec::Vec;
use openraid_format::Superblock;
use openraid_units::ArrayId;
use openraid_units::BlockSize;
use openraid_units::DriveId;
use openraid_units::Sectors;
use openraid_units::SetId;

use crate::admin_answer::AdminError;
use crate::admin_answer::AdminOutcome;
use crate::array::assemble::Assembly;
use crate::array::set::Set;
use crate::array::set_start::rows_max_of;
use crate::array::volume::Volume;
use crate::background::reshape_task::ReshapeTask;
use crate::controller::Controller;
use crate::geometry::Geometry;
use crate::geometry::Level;
use crate::geometry::SetSpec;
use crate::ppl::recovery::{block_and_rows_of, start_ppl};

impl Controller {
    /// A free number for a set, for which the cache has room.
    fn free_set(&mut self) -> Result<SetId, AdminError> {
        let id = self.sets.free_number().ok_or(AdminError::Full("set"))?;
        self.cache.make_room_for(id);
        Ok(id)
    }

    pub(crate) fn start_set(&mut self, assembly: &Assembly) -> Result<(ArrayId, SetId), AdminError> {
        let id = self.free_set()?;
        let drives: Vec<DriveId> = assembly.members.iter().map(|m| m.drive).collect();
        self.base.channels.claim(&drives, id)?;
        let (block, rows_max) = match block_and_rows_of(&self.base.channels, &self.base.limits, assembly, &drives) {
            Ok(found) => found,
            Err(error) => {
                self.base.channels.release(&drives);
                return Err(error);
            }
        };
        let array = match self.add_array(block, assembly.geometry.full_stripe(), id) {
            Ok(array) => array,
            Err(error) => {
                self.base.channels.release(&drives);
                return Err(error);
            }
        };
        self.arrays.get_mut(array).set_gathers(matches!(assembly.geometry, Geometry::Parity(_)));
        let mut set = Set::of_assembly(array, (block, rows_max), assembly, &self.base);
        if let (Some(planned), Some(said)) = (&assembly.change, assembly.common.change()) {
            let (fields, base) = ((said.old, said.new), &self.base);
            let reshape = ReshapeTask::new(&planned.change, planned.moved, fields, &base.limits, base.now);
            // A member may still say the position before this one.
            let brought_up = set.metadata.as_ref().expect("of superblocks").wanted();
            set.tasks.begin_reshape(reshape.after_record(brought_up));
        }
        start_ppl(&mut set, assembly, self.base.limits.ops_max);
        set.plant(self.base.planted);
        if let Err(error) = self.journal.enlist_for_replay(id, &mut set) {
            self.base.channels.release(&drives);
            self.arrays.remove(array);
            return Err(error);
        }
        self.put_set(id, set);
        Ok((array, id))
    }

    /// An array over one set, of which requests are cut at stripes of this length.
    fn add_array(&mut self, block: BlockSize, stripe: Sectors, set: SetId) -> Result<ArrayId, AdminError> {
        let array = self.arrays.add_array(&self.base, block, stripe, Volume::Direct(set))?;
        self.cache.begin_array(array);
        Ok(array)
    }

    /// An array over arrays that run.
    pub(crate) fn start_striped(
        &mut self,
        spans: &[ArrayId],
        superblocks: &[Superblock],
    ) -> Result<AdminOutcome, AdminError> {
        let array = self.arrays.start_striped(&mut self.sets, &self.base, spans, superblocks)?;
        self.cache.begin_array(array);
        Ok(AdminOutcome::Started(array))
    }

    /// A set is in the tables from now on.
    fn put_set(&mut self, id: SetId, set: Set) {
        self.ops.begin_set(id, set.slots());
        self.sets.put(id, set);
        self.sets.sort_members(&mut self.arrays, &mut self.base, id);
    }

    /// A set that could not be started leaves no trace.
    pub(crate) fn take_back(&mut self, array: ArrayId, id: SetId) {
        let log = self.journal.log_mut();
        self.cache.forget_set(id, |sequence| log.unpin_if_held(sequence));
        let drives: Vec<DriveId> = self.sets.get(id).members().iter().map(|m| m.drive()).collect();
        self.base.channels.release(&drives);
        self.sets.remove(id);
        self.arrays.remove(array);
    }

    pub(crate) fn start_passthrough(&mut self, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let id = self.free_set()?;
        let info = self.base.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?.info();
        let spec = SetSpec {
            level: Level::Passthrough,
            members: 1,
            chunk: Sectors::ZERO,
            layout: 0,
            member_size: info.capacity,
            member_sizes: &[],
        };
        let geometry = Geometry::new(&spec).map_err(|e| AdminError::Refused(e.to_string()))?;
        let rows_max = rows_max_of(&self.base.limits, &geometry, info.block, 0)?;
        self.base.channels.claim(&[drive], id)?;
        let array = self.add_array(info.block, geometry.full_stripe(), id)?;
        let set = Set::passed_through(array, geometry, drive, (info.block, rows_max), &self.base.limits);
        self.put_set(id, set);
        Ok(AdminOutcome::Started(array))
    }
}
