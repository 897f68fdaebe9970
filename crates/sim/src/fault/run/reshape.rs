//! Changes of shape: an array gets more members, another chunk or another layout.

use openraid_core::admin::{AdminCommand, Health, MemberState};
use openraid_core::array::reshape_plan::next_step;
use openraid_format::{MdLevel, ShapeFields, Superblock};
use openraid_units::Sectors;

use super::{Run, RunResult};
use crate::fault::changing_runs::ShapeWish;
use crate::fault::fault_names::Fault;
use crate::fault::judged_set::fields_of;
use crate::oracle::Content;

/// Limit of the members of an array.
const MEMBERS_MAX: u16 = 9;
/// Chunks to which an array changes.
const CHUNKS: [Sectors; 5] = [Sectors::kib(4), Sectors::kib(8), Sectors::kib(16), Sectors::kib(32), Sectors::kib(64)];
/// RAID 5 with the parity on the last member.
const PARITY_LAST: u32 = 5;
/// Layouts of RAID 6 with Q on the last member: those of RAID 5, with this bit.
const Q_LAST: u32 = 16;
/// Layouts of RAID 6; RAID 5 has the first six.
const ROTATIONS: [u32; 14] = [0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20];

impl Run<'_> {
    /// Begin to change the shape of a set. Missing spares are added.
    pub(super) fn reshape(&mut self, wish: ShapeWish) -> RunResult {
        let number = self.some_set();
        let set = &self.sets[number];
        let fits = set.can_change() && self.sets.len() == 1 && set.change.is_none();
        if !fits || self.health(number) != Health::Optimal {
            return Ok(());
        }
        let array = set.array;
        let Some(now) = self.world.status(array).and_then(|status| status.superblock) else { return Ok(()) };
        let Some(new) = self.wished(&now, wish) else { return Ok(()) };
        let spares = |run: &Self| {
            let members = run.world.status(array).into_iter().flat_map(|status| status.members);
            members.filter(|member| member.state == MemberState::Spare).count()
        };
        while spares(self) < usize::from(new.raid_disks.saturating_sub(now.raid_disks)) {
            if !self.add_to(number) {
                return Ok(());
            }
        }
        let token = self.world.start_admin(AdminCommand::Reshape { array, new });
        self.event()?;
        if let Some(Err(error)) = self.world.take_answer(token).map(|answer| answer.result) {
            self.log(|| format!("  refused: {error}"));
            return Ok(());
        }
        self.log(|| {
            let chunk = new.chunk.bytes().readable();
            format!("  {}, {} members, chunks of {chunk}, layout {:#x}", new.level, new.raid_disks, new.layout)
        });
        self.count(Fault::Reshaped);
        Ok(())
    }

    /// The change of shape that is under way turns around, if it can.
    pub(super) fn cancel_reshape(&mut self) -> RunResult {
        let number = self.some_set();
        let array = self.sets[number].array;
        if self.world.status(array).is_none_or(|status| status.reshape.is_none()) {
            return Ok(());
        }
        let token = self.world.start_admin(AdminCommand::CancelReshape { array });
        self.event()?;
        match self.world.take_answer(token).map(|answer| answer.result) {
            Some(Err(error)) => self.log(|| format!("  refused: {error}")),
            _ => {
                self.log(|| "  as soon as it can".into());
                self.count(Fault::ReshapeCancelled);
            }
        }
        Ok(())
    }

    /// The shape to which an array with this superblock changes; none if there is no such shape.
    fn wished(&mut self, now: &Superblock, wish: ShapeWish) -> Option<ShapeFields> {
        let mut new = match wish {
            ShapeWish::Level => self.level_wished(now)?,
            _ => fields_of(now),
        };
        new.raid_disks += wish.members();
        if wish.has_chunk() {
            let fits = |chunk: &Sectors| *chunk != now.chunk && (now.size % *chunk).is_zero();
            let chunks: Vec<Sectors> = CHUNKS.into_iter().filter(fits).collect();
            new.chunk = *chunks.get(self.random.index(chunks.len().max(1)))?;
        }
        if wish.has_layout() {
            new.layout = match now.level {
                MdLevel::Raid5 => *self.random.pick(&ROTATIONS[..6]),
                MdLevel::Raid6 => *self.random.pick(&ROTATIONS),
                // Near copies become copies in the next rows, and those become near copies.
                MdLevel::Raid10 if now.layout >> 16 == 0 => 0x1_0001 | now.layout << 8 & 0xff00,
                MdLevel::Raid10 => 0x100 | now.layout >> 8 & 0xff,
                _ => return None,
            };
        }
        (new != fields_of(now) && new.raid_disks <= MEMBERS_MAX).then_some(new)
    }

    /// The next step to another level.
    fn level_wished(&mut self, now: &Superblock) -> Option<ShapeFields> {
        let from = fields_of(now);
        let rotation = *self.random.pick(&ROTATIONS[..4]);
        let to = match now.level {
            MdLevel::Raid4 => ShapeFields { level: MdLevel::Raid5, layout: PARITY_LAST, ..from },
            // Its layout has been changed for that.
            MdLevel::Raid5 if from.layout == PARITY_LAST && self.random.chance(1, 2) => {
                ShapeFields { level: MdLevel::Raid4, layout: 0, ..from }
            }
            MdLevel::Raid5 if self.random.chance(1, 4) => ShapeFields { level: MdLevel::Raid4, layout: 0, ..from },
            MdLevel::Raid5 => {
                let layout = *self.random.pick(&[rotation, rotation | Q_LAST, 8]);
                ShapeFields { level: MdLevel::Raid6, layout, raid_disks: from.raid_disks + 1, ..from }
            }
            MdLevel::Raid6 => {
                let layout = if from.layout & Q_LAST != 0 { from.layout & 3 } else { rotation };
                ShapeFields { level: MdLevel::Raid5, layout, raid_disks: from.raid_disks - 1, ..from }
            }
            _ => return None,
        };
        Some(next_step(from, now.size, to))
    }

    /// An array that has grown stays so.
    pub(super) fn learn_capacity(&mut self) -> RunResult {
        if self.sets.len() > 1 || !self.sets[0].can_change() {
            return Ok(());
        }
        let Some(capacity) = self.world.controller().capacity(self.session.array) else { return Ok(()) };
        let known = self.session.capacity();
        if capacity.get() < known {
            return Err(self.lost(format!("the array is smaller than before: {} bytes after {known}", capacity.get())));
        }
        if capacity.get() > known {
            self.log(|| format!("  the array has {} bytes now", capacity.get()));
            self.session.learn_capacity(&self.world, Content::Zeroes);
        }
        Ok(())
    }
}
