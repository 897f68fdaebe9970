//! The end of a run: all faults are repaired as far as possible, and the result is judged.

use openraid_core::admin::{AdminCommand, ArrayStatus, Health, MemberState};
use openraid_core::check_results::ScrubMode;
use openraid_core::events::RequestKind;
use openraid_units::DriveId;

use super::{Run, RunResult};
use crate::fault::judged_set::RunSet;
use crate::fault::verdict::Excuse;

/// Limit of new drives and rebuilds until a set is whole.
const REPAIRS_MAX: u32 = 8;

impl Run<'_> {
    /// Repair all faults and judge the result.
    pub(super) fn finish(&mut self) -> RunResult {
        self.log(|| "the end: the faults of drives are removed, and everything comes to rest".into());
        for drive in (0..self.world.drives_len()).map(super::drive_id) {
            self.world.release(drive);
            self.world.drive_mut(drive).faults.late = None;
        }
        self.make_room();
        self.resume_all();
        self.drain()?;
        self.drain_second_array()?;
        if self.bounded() {
            for set in 0..self.sets.len() {
                self.make_whole(set)?;
            }
        }
        self.log(|| "a host reads everything, and flushes".into());
        self.look()?;
        self.session.ask(&mut self.world, RequestKind::Flush, 0..0);
        self.rest()?;
        self.look()?;
        self.rest()?;
        for set in 0..self.sets.len() {
            self.judge_members(set)?;
        }
        if self.session.errors > 0 || self.has_failed() {
            self.excuse(Excuse::Errors);
        }
        // With a partial parity log, only the writes in flight when a member was lost with the power are not promised.
        let in_flight = self.bounded() && self.scenario.ppl;
        if self.session.versions_mut().beyond() > 0 && !in_flight {
            self.excuse(Excuse::WriteHole);
        }
        Ok(())
    }

    /// Replace members that are not full members, until the set is whole.
    fn make_whole(&mut self, set: usize) -> RunResult {
        for _ in 0..REPAIRS_MAX {
            self.rest()?;
            let array = self.sets[set].array;
            let Some(status) = self.world.status(array) else { break };
            let failing = |drive: &DriveId| self.world.drive(*drive).faults.is_failing();
            let members = status.members.iter().filter(|member| !matches!(member.state, MemberState::Faulty(_)));
            let broken: Vec<DriveId> = members.filter_map(|member| member.drive).filter(failing).collect();
            for drive in broken {
                let _ = self.admin(AdminCommand::Fail { array, drive, unsynced: true });
            }
            if self.health(set) == Health::Optimal {
                break;
            }
            if !self.sets[set].is_redundant() || self.world.status(array).is_some_and(|s| s.task.is_some()) {
                continue;
            }
            if !self.add_to(set) {
                break;
            }
        }
        if self.health(set) != Health::Optimal {
            return Err(self.lost("the array cannot be made whole"));
        }
        if self.sets[set].is_redundant() && !self.sets[set].scarred(&self.world).is_empty() {
            let array = self.sets[set].array;
            let _ = self.admin(AdminCommand::Scrub { array, mode: ScrubMode::Repair });
            self.rest()?;
        }
        Ok(())
    }

    /// Whether the set has sectors that cannot be read or cannot be judged.
    pub(super) fn has_scars(&self, set: &RunSet) -> bool {
        let bad_blocks = |status: ArrayStatus| status.members.iter().any(|member| member.bad_blocks > 0);
        !set.scarred(&self.world).is_empty() || self.world.status(set.array).is_some_and(bad_blocks)
    }

    /// Check that parity and copies match, unless an event allows a difference.
    fn judge_members(&mut self, set: usize) -> RunResult {
        self.settle();
        if !self.sets[set].is_redundant() {
            return Ok(());
        }
        let judged = self.whole(set) && !self.sets[set].unfit && !self.sets[set].dirty;
        if self.bounded() && !judged && !self.has_scars(&self.sets[set]) {
            return Err(self.lost("the array never becomes consistent again"));
        }
        if !judged {
            return Ok(());
        }
        self.sets[set].suspect_what_went_wrong(&self.world);
        if !self.bounded() && !self.sets[set].suspect.is_empty() {
            return Ok(());
        }
        let misfits = self.misfits(set);
        match misfits.is_empty() {
            true => Ok(()),
            false => Err(self.lost_by_members(set, &misfits)),
        }
    }
}
