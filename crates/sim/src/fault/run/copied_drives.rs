//! Drives that are not what they say they are: copied in part, or given to two arrays.

use openraid_core::admin::AdminCommand;
use openraid_units::{ArrayId, BlockSize, DriveId, Sectors};

use super::power::LostDriveFate;
use super::{second_array, Run, RunResult};
use crate::fault::fault_names::Fault;
use crate::fault::scenario::ControllerEnd;
use crate::oracle::redundancy::superblock_on;
use crate::rig::BEFORE_DATA;

/// The part of the data that is compared with the right one takes memory.
const LOST_MOST: Sectors = Sectors::mib(4);

impl Run<'_> {
    /// The power is cut. A member is there whose superblock says that it is a full member, and whose data was copied up to
    /// some place only.
    pub(super) fn half_copied(&mut self) -> RunResult {
        if self.bounded() {
            return Ok(());
        }
        self.suspect();
        if !self.prepare_end(LostDriveFate::StayAway)? {
            return Ok(());
        }
        self.count_end(ControllerEnd::Cut);
        self.go_down(ControllerEnd::Cut)?;
        let set = self.some_set();
        let full: Vec<DriveId> =
            self.sets[set].places().filter(|place| place.is_full()).map(|place| place.drive).collect();
        if full.is_empty() {
            return self.boot(None);
        }
        let drive = *self.random.pick(&full);
        if let Some(superblock) = superblock_on(&self.world, drive) {
            self.count(Fault::HalfCopied);
            let block = self.world.drive(drive).spec().block.sectors();
            let done = Sectors(self.random.below(superblock.data_size.get())).round_down(block);
            self.log(|| format!("  {} was copied up to sector {} of its data", self.name(drive), done.get()));
            let from = superblock.data_offset + done;
            self.world.drive_mut(drive).lose(from, (superblock.data_size - done).min(LOST_MOST));
            self.suspect();
        }
        self.boot(None)
    }

    /// A new drive is given to two arrays, one after the other: only one of them takes it.
    pub(super) fn share_spare(&mut self) -> RunResult {
        let set = self.some_set();
        let array = self.sets[set].array;
        let Some(other) = self.second_array.as_ref().map(|second| second.session.array) else { return Ok(()) };
        let is_there = |run: &Self, array| run.world.status(array).is_some_and(|status| status.superblock.is_some());
        if !self.sets[set].is_redundant() || !is_there(self, array) || !is_there(self, other) {
            return Ok(());
        }
        let Some(drive) = self.new_drive() else { return Ok(()) };
        let spec = self.world.drive(drive).spec();
        if spec.capacity < BEFORE_DATA + self.scenario.extras.far + second_array::DATA || spec.block != BlockSize::B512
        {
            return Ok(());
        }
        let [first, second] = if self.random.chance(1, 2) { [array, other] } else { [other, array] };
        self.log(|| format!("  drive {drive} is given to array {first}, then to array {second}"));
        self.count(Fault::SpareShared);
        let taken = [first, second].map(|array| self.world.add_member(array, drive).is_ok());
        if taken == [true, true] {
            return Err(self.lost("two arrays have taken the same spare"));
        }
        if taken[0] && self.random.chance(1, 2) {
            self.pass_on(drive, first, second)?;
        }
        Ok(())
    }

    /// A spare that is not in use leaves its array, and another array takes it.
    fn pass_on(&mut self, drive: DriveId, from: ArrayId, to: ArrayId) -> RunResult {
        self.rest()?;
        if self.admin(AdminCommand::Remove { array: from, drive }).is_err() {
            return Ok(());
        }
        self.log(|| format!("  array {from} gives it up, for array {to}"));
        self.rest()?;
        match self.world.add_member(to, drive) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.lost(format!("a spare that was given up is refused: {error}"))),
        }
    }
}
