//! A set whose shape changes: its two geometries, and the position between them as the superblocks say it.

use std::collections::{BTreeMap, BTreeSet};

use openraid_core::admin::{ArrayStatus, MemberState, MemberStatus, TaskKind};
use openraid_core::geometry::{Geometry, Level, Parity, SetSpec};
use openraid_core::slot_set::SlotSet;
use openraid_format::{ReshapeDirection, ShapeFields, Superblock};
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors, SetLba, Slot, StripeIndex};

use super::RunSet;
use crate::fault::row_set::SectorSet;
use crate::oracle::redundancy::superblock_on;
use crate::oracle::Members;
use crate::world::World;

/// The other side of a set whose shape changes.
#[derive(Clone, Debug)]
pub struct SetChange {
    /// The new layout.
    pub new: Geometry,
    direction: ReshapeDirection,
    /// The new start of the data of each member.
    starts: BTreeMap<DriveId, DriveLba>,
    /// The position that the engine records or has recorded.
    position: SetLba,
}

/// A sector of a member that does not match the others.
#[derive(Clone, Copy, Debug)]
pub struct Differing {
    pub slot: Slot,
    /// Its place on the member.
    pub row: MemberLba,
    /// Whether it is one of the new side of a set whose shape changes.
    is_new: bool,
}

impl SetChange {
    /// The position before anything has moved, and after everything has.
    fn ends(&self, old: &Geometry) -> (SetLba, SetLba) {
        let (old, new) = (SetLba(old.capacity().get()), SetLba(self.new.capacity().get()));
        match self.direction {
            ReshapeDirection::Forward => (SetLba::ZERO, new),
            ReshapeDirection::Backward => (old.min(new), SetLba::ZERO),
        }
    }
}

impl RunSet {
    /// Number of slots of both sides.
    #[must_use]
    pub fn slots(&self) -> u16 {
        let new = self.change.as_ref().map_or(0, |change| change.new.members());
        self.geometry.members().max(new)
    }

    /// Whether all data of both sides can be read without these slots.
    #[must_use]
    pub fn survives(&self, gone: SlotSet) -> bool {
        let gone = gone | self.fills;
        self.geometry.survives(gone) && self.change.as_ref().is_none_or(|change| change.new.survives(gone))
    }

    /// Whether the level is one of those whose data can move.
    #[must_use]
    pub fn can_change(&self) -> bool {
        match &self.geometry {
            Geometry::Parity(_) => true,
            Geometry::Mirror(mirror) => mirror.chunk().is_some(),
            Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => false,
        }
    }

    /// Take the shape from the engine's superblock.
    pub(super) fn note_shape(&mut self, world: &World, status: &ArrayStatus) {
        let Some(common) = status.superblock.as_ref().filter(|_| self.can_change()) else { return };
        let change = common.change();
        let now = geometry_of(&change.as_ref().map_or_else(|| fields_of(common), |change| change.old), common.size);
        if now != self.geometry {
            self.take_geometry(now);
        }
        self.fills = slots_filled(status, change.is_some(), &self.geometry);
        self.change = change.map(|change| {
            let drives = status.members.iter().filter_map(|member| member.drive);
            let (new, direction) = (geometry_of(&change.new, common.size), change.direction);
            let start = |drive| Some((drive, start_in(&new, &superblock_on(world, drive)?)));
            let starts = drives.filter_map(start).collect();
            SetChange { new, direction, starts, position: change.position }
        });
    }

    /// The change has ended: marks of rows mean all rows of the new shape.
    fn take_geometry(&mut self, geometry: Geometry) {
        self.extent = self.extent.max(extent_of(&geometry));
        for rows in [&mut self.doubt, &mut self.suspect] {
            let was_empty = rows.is_empty();
            *rows = SectorSet::new(self.extent);
            if !was_empty {
                rows.insert(MemberLba(0), self.extent);
            }
        }
        self.geometry = geometry;
    }

    /// The start of a member's data on the side that [`RunSet::geometry`] describes.
    pub(super) fn start_on(&self, superblock: &Superblock) -> DriveLba {
        // The end of a change reaches the members one after the other, and the next one may begin meanwhile.
        let has_ended = |new: &ShapeFields| geometry_of(new, superblock.size) == self.geometry;
        let is_behind = superblock.change().is_some_and(|change| has_ended(&change.new));
        if is_behind {
            superblock.new_data_offset()
        } else {
            superblock.data_offset
        }
    }

    /// Before an end in a change: everything is in doubt if a row of one side may be left torn. Data on its way to its
    /// new place is not: it is moved again.
    pub(super) fn doubt_both_sides(&mut self, world: &World, power_goes: bool) {
        let Some(change) = &self.change else { return };
        let recorded = self.places().filter_map(|place| superblock_on(world, place.drive)?.change());
        let positions: Vec<SetLba> = recorded.map(|found| found.position).chain([change.position]).collect();
        let least = positions.iter().min().copied().unwrap_or_default();
        let most = positions.iter().max().copied().unwrap_or_default();
        let (old, new) = match (&self.geometry, &change.new, change.direction) {
            (Geometry::Parity(old), Geometry::Parity(new), ReshapeDirection::Forward) => {
                (start_row(old, least)..self.extent, Sectors::ZERO..end_row(new, most))
            }
            (Geometry::Parity(old), Geometry::Parity(new), ReshapeDirection::Backward) => {
                (Sectors::ZERO..end_row(old, most), start_row(new, least)..self.extent)
            }
            // Copies of data on its way differ until the next move, too.
            _ => (Sectors::ZERO..self.extent, Sectors::ZERO..self.extent),
        };
        let is_doubtful = self.places().any(|place| {
            let drive = world.drive(place.drive);
            let new_start = change.starts.get(&place.drive).copied().unwrap_or(place.start);
            let cached = drive.in_doubt().filter(|_| power_goes);
            let flying = drive.outstanding().map(|command| (command.lba, command.len));
            let faults = &drive.faults;
            let lately = faults.torn.iter().chain(&faults.refused).chain(faults.written.iter().flatten()).copied();
            let rows = [place.start + old.start..place.start + old.end, new_start + new.start..new_start + new.end];
            let mut all = cached.chain(flying).chain(lately);
            all.any(|(lba, len)| rows.iter().any(|rows| lba < rows.end && rows.start < lba + len))
        });
        if is_doubtful {
            self.doubt.insert(MemberLba(0), self.extent);
            self.dirty = true;
        }
    }

    /// The sectors of these members that do not match, each on the side where the superblocks of the members say that it
    /// counts.
    ///
    /// # Errors
    /// The position is one that md would refuse.
    pub fn differing_rows(
        &self,
        world: &World,
        members: &[(Slot, DriveId, DriveLba)],
    ) -> Result<Vec<Differing>, String> {
        let rows = |geometry: &Geometry, members: &[(Slot, DriveId, DriveLba)], is_new| {
            let rows = Members::known(world, geometry.clone(), members).differing_rows();
            rows.into_iter().map(move |(slot, row)| Differing { slot, row, is_new })
        };
        let Some(change) = &self.change else { return Ok(rows(&self.geometry, members, false).collect()) };
        let superblocks = members.iter().filter_map(|(_, drive, _)| superblock_on(world, *drive));
        let newest = superblocks.max_by_key(|superblock| superblock.events);
        let said = newest.as_ref().and_then(Superblock::change);
        // The engine turns the change around before superblocks say so. Until then they call each side by its other name.
        let is_before_turn = said.as_ref().zip(newest.as_ref()).is_some_and(|(said, newest)| {
            geometry_of(&said.new, newest.size) == self.geometry && geometry_of(&said.old, newest.size) == change.new
        });
        let (old, new, direction) = match is_before_turn {
            true => (&change.new, &self.geometry, change.direction.reversed()),
            false => (&self.geometry, &change.new, change.direction),
        };
        // A begin that did not get durable is none; an end that did is one.
        let (before, after) = change.ends(&self.geometry);
        let position = newest.map_or(before, |newest| match said {
            Some(said) if is_before_turn || geometry_of(&said.new, newest.size) == change.new => said.position,
            None if geometry_of(&fields_of(&newest), newest.size) == change.new => after,
            // It may still describe the change before this one.
            Some(_) | None => before,
        });
        if let (Geometry::Parity(old), Geometry::Parity(new)) = (old, new) {
            let step = old.chunk().max(new.chunk()) * u64::from(new.data_columns());
            if !position.get().is_multiple_of(step.get()) {
                return Err(format!("a position of a change of shape that md refuses: sector {}", position.get()));
            }
        }
        let of_old: Vec<_> = members.iter().copied().filter(|(slot, ..)| slot.0 < self.geometry.members()).collect();
        let moved = |(slot, drive, start): &(Slot, DriveId, DriveLba)| {
            (*slot, *drive, change.starts.get(drive).copied().unwrap_or(*start))
        };
        let of_new: Vec<_> = members.iter().filter(|(slot, ..)| slot.0 < change.new.members()).map(moved).collect();
        // No column of the old stripe with the position has been overwritten.
        let counts = |differing: &Differing| {
            let Some((from, to)) = span_of(self.geometry_with(differing), differing.slot, differing.row) else {
                return false;
            };
            match (direction, differing.is_new != is_before_turn) {
                (ReshapeDirection::Forward, false) => to > position,
                (ReshapeDirection::Forward, true) => to <= position,
                (ReshapeDirection::Backward, false) => from < position,
                (ReshapeDirection::Backward, true) => from >= position,
            }
        };
        let all = rows(&self.geometry, &of_old, false).chain(rows(&change.new, &of_new, true));
        Ok(all.filter(counts).collect())
    }

    /// The place of such a sector for marks: in sectors of the set for RAID 10, otherwise of a member.
    #[must_use]
    pub fn place_of_mark(&self, differing: &Differing) -> u64 {
        match self.geometry_with(differing) {
            Geometry::Mirror(mirror) => {
                mirror.inverse(differing.slot, differing.row).map_or(differing.row.0, |(at, _)| at.0)
            }
            _ => differing.row.0,
        }
    }

    /// The array's sectors in its row.
    #[must_use]
    pub fn sectors_with(&self, differing: &Differing) -> Vec<u64> {
        self.of_row_in(self.geometry_with(differing), differing.slot, differing.row)
    }

    fn geometry_with(&self, differing: &Differing) -> &Geometry {
        match &self.change {
            Some(change) if differing.is_new => &change.new,
            _ => &self.geometry,
        }
    }
}

/// The slots that a change of level fills on the way. No data of the set is in them alone: before the change they have Q, and
/// nothing else. Any other slot that is being filled has lost its member, also if its rebuild has not begun yet.
fn slots_filled(status: &ArrayStatus, is_changing: bool, old: &Geometry) -> SlotSet {
    let is_rebuilt = status.task.as_ref().is_some_and(|task| task.kind == TaskKind::Rebuild);
    let filling =
        |member: &&MemberStatus| matches!(member.state, MemberState::Rebuilding { .. }) && !member.replacement;
    let fills = status.members.iter().filter(filling).filter_map(|member| member.slot);
    fills.filter(|slot| is_changing && !is_rebuilt && has_q_alone(old, *slot)).collect()
}

/// Whether a slot has Q in each stripe.
fn has_q_alone(geometry: &Geometry, slot: Slot) -> bool {
    let Geometry::Parity(parity) = geometry else { return false };
    slot.0 < parity.members() && (0..parity.stripes()).all(|at| parity.q_slot(StripeIndex(at)) == Some(slot))
}

/// The start of a member's data in the new layout. Its superblock may be the one from before a turn.
fn start_in(new: &Geometry, superblock: &Superblock) -> DriveLba {
    match superblock.change() {
        Some(found) if geometry_of(&found.old, superblock.size) == *new => superblock.data_offset,
        _ => superblock.new_data_offset(),
    }
}

/// The sectors that a slot has in any of these layouts.
pub(super) fn sectors_on(slot: Slot, layouts: &[&Geometry]) -> Vec<u64> {
    let parities = layouts.iter().filter_map(|layout| match layout {
        Geometry::Parity(parity) => Some(parity),
        _ => None,
    });
    let mut sectors = BTreeSet::new();
    for parity in parities {
        let here = |sector: &u64| {
            let (stripe, column, _) = parity.locate(SetLba(*sector));
            parity.slot_of(stripe, column) == slot
        };
        sectors.extend((0..parity.capacity().get()).filter(here));
    }
    sectors.into_iter().collect()
}

/// The shape of a superblock without a change.
pub fn fields_of(superblock: &Superblock) -> ShapeFields {
    let Superblock { level, layout, chunk, raid_disks, .. } = *superblock;
    ShapeFields { level, layout, chunk, raid_disks }
}

fn geometry_of(fields: &ShapeFields, size: Sectors) -> Geometry {
    let spec = SetSpec {
        level: Level::from_md(fields.level.number()).expect("a level of md"),
        members: fields.raid_disks,
        chunk: fields.chunk,
        layout: fields.layout,
        member_size: size,
        member_sizes: &[],
    };
    Geometry::new(&spec).unwrap_or_else(|error| panic!("the superblocks describe no array: {error}"))
}

/// Sectors of a member that a set uses.
fn extent_of(geometry: &Geometry) -> Sectors {
    match geometry {
        Geometry::Parity(parity) => parity.member_extent(),
        Geometry::Mirror(mirror) => mirror.member_extent(),
        Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => Sectors::ZERO,
    }
}

/// The addresses of a row: the first one, and the one after the last.
fn span_of(geometry: &Geometry, slot: Slot, row: MemberLba) -> Option<(SetLba, SetLba)> {
    match geometry {
        Geometry::Parity(parity) => {
            let start = parity.stripe_start(parity.stripe_at(row)?.0);
            Some((start, start + parity.full_stripe()))
        }
        Geometry::Mirror(mirror) => mirror.inverse(slot, row).map(|(at, _)| (at, at + Sectors(1))),
        Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => None,
    }
}

/// The first row of the stripe with this address.
fn start_row(parity: &Parity, at: SetLba) -> Sectors {
    parity.chunk() * (at.get() / parity.full_stripe().get())
}

/// The end of the stripe before this address, or with it.
fn end_row(parity: &Parity, at: SetLba) -> Sectors {
    parity.chunk() * at.get().div_ceil(parity.full_stripe().get())
}
