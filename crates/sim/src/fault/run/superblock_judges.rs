//! Two judges of superblocks. First: a cut alone costs no member. Second: a member that lacks a write is never taken as
//! good.

use openraid_core::admin::{Health, MemberState, WriteCache};
use openraid_format::{DeviceRole, FeatureMap};
use openraid_units::DriveId;

use super::{Run, RunResult};
use crate::oracle::redundancy::superblock_on;

impl Run<'_> {
    /// Record the whole sets, and the drives outside of their sets.
    pub(super) fn note_members(&mut self) -> RunResult {
        if !self.bounded() || !self.scenario.aimed {
            return Ok(());
        }
        for set in 0..self.sets.len() {
            self.note_whole(set);
            self.judge_left(set)?;
        }
        Ok(())
    }

    /// A set counts as whole after the drives say so, until a member has a fault.
    pub(super) fn note_whole(&mut self, number: usize) {
        let set = &self.sets[number];
        let Some(status) = self.world.status(set.array) else { return };
        let sound = status.health == Health::Optimal && !set.is_losing(&self.world) && !self.has_scars(set);
        self.sets[number].whole = sound && (set.whole || set.is_whole_on_disk(&self.world));
    }

    /// Check that a set is whole after the start if it was whole at the power cut and no drive stayed away.
    pub(super) fn judge_whole(&mut self) -> RunResult {
        for set in 0..self.sets.len() {
            let whole = std::mem::take(&mut self.sets[set].whole);
            let losing = self.sets[set].is_losing(&self.world);
            if self.bounded() && whole && !losing && self.health(set) != Health::Optimal {
                return Err(self.lost("a cut alone has cost the array a member"));
            }
        }
        Ok(())
    }

    /// A member that is outside of a set when a write is answered may lack that write. Its event count must be lower by
    /// two or more than that of all working members, because md accepts a member whose count is lower by one. The check
    /// runs whenever an answer says that members have the write.
    fn judge_left(&mut self, number: usize) -> RunResult {
        let writes = self.session.writes;
        let out = self.out(number);
        let left = &mut self.sets[number].left;
        left.retain(|drive, _| out.contains(drive));
        for drive in &out {
            left.entry(*drive).or_insert(writes);
        }
        let through = self.policy.write_cache == WriteCache::Through && !self.cached;
        if !through || self.scenario.journal.is_some() || self.sets.len() > 1 {
            return Ok(());
        }
        let Some(status) = self.world.status(self.sets[number].array) else { return Ok(()) };
        let working = status.members.iter().filter(|member| member.state == MemberState::InSync && !member.replacement);
        let drives = working.filter_map(|member| superblock_on(&self.world, member.drive?));
        let Some(oldest) = drives.map(|superblock| superblock.events).min() else { return Ok(()) };
        let lacks = |drive: &&DriveId| self.sets[number].left[drive] < writes;
        let near = |drive: &&DriveId| {
            superblock_on(&self.world, **drive).is_some_and(|superblock| superblock.events + 1 >= oldest)
        };
        match out.iter().filter(lacks).find(near) {
            Some(drive) => Err(self.lost(format!(
                "a member that lacks a write could be taken: {} is less than two events behind the others",
                self.name(*drive)
            ))),
            None => Ok(()),
        }
    }

    /// Drives that call themselves full members of a set, and are outside of it.
    fn out(&self, number: usize) -> Vec<DriveId> {
        let set = &self.sets[number];
        let Some(status) = self.world.status(set.array) else { return Vec::new() };
        let inside = |drive: DriveId| {
            let counts = |state| !matches!(state, MemberState::Faulty(_) | MemberState::Missing);
            status.members.iter().any(|member| member.drive == Some(drive) && counts(member.state))
        };
        let claims = |drive: DriveId| {
            superblock_on(&self.world, drive).is_some_and(|superblock| {
                Some(superblock.set_uuid) == set.uuid
                    && superblock.recovery_offset().is_none()
                    && !superblock.features.contains(FeatureMap::REPLACEMENT)
                    && matches!(superblock.role(), DeviceRole::Active(_))
            })
        };
        let drives = (0..self.world.drives_len()).map(super::drive_id);
        drives.filter(|drive| !inside(*drive) && claims(*drive)).collect()
    }
}
