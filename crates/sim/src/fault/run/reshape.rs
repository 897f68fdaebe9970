//! Changes of shape: an array with parity gets more members.

use openraid_core::admin::{AdminCommand, Health, MemberState};
use openraid_format::ShapeFields;

use super::{Run, RunResult};
use crate::fault::verdict::Fault;

/// Limit of the members of an array.
const MEMBERS_MAX: u64 = 9;

impl Run<'_> {
    /// Begin to give a set more members. Missing spares are added.
    pub(super) fn reshape(&mut self, more: u64) -> RunResult {
        let number = self.some_set();
        let set = &self.sets[number];
        let members = u64::from(set.geometry.members()) + more;
        let fits = set.has_parity() && self.sets.len() == 1 && set.change.is_none() && members <= MEMBERS_MAX;
        if !fits || self.health(number) != Health::Optimal {
            return Ok(());
        }
        let array = set.array;
        let spares = |run: &Self| {
            let members = run.world.status(array).into_iter().flat_map(|status| status.members);
            members.filter(|member| member.state == MemberState::Spare).count() as u64
        };
        while spares(self) < more {
            if !self.add_to(number) {
                return Ok(());
            }
        }
        let Some(common) = self.world.status(array).and_then(|status| status.superblock) else { return Ok(()) };
        let new = ShapeFields {
            level: common.level,
            layout: common.layout,
            chunk: common.chunk,
            raid_disks: u16::try_from(members).expect("few members"),
        };
        let token = self.world.start_admin(AdminCommand::Reshape { array, new });
        self.event()?;
        if let Some(Err(error)) = self.world.take_answer(token).map(|answer| answer.result) {
            self.log(|| format!("  refused: {error}"));
            return Ok(());
        }
        self.log(|| format!("  {members} members"));
        self.count(Fault::Reshaped);
        Ok(())
    }

    /// An array that has grown stays so.
    pub(super) fn learn_capacity(&mut self) -> RunResult {
        if self.sets.len() > 1 || !self.sets[0].has_parity() {
            return Ok(());
        }
        let Some(capacity) = self.world.controller().capacity(self.session.array) else { return Ok(()) };
        let known = self.session.capacity();
        if capacity.get() < known {
            return Err(self.lost(format!("the array is smaller than before: {} bytes after {known}", capacity.get())));
        }
        if capacity.get() > known {
            self.log(|| format!("  the array has {} bytes now", capacity.get()));
            self.session.learn_capacity(&self.world);
        }
        Ok(())
    }
}
