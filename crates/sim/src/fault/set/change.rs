//! A set whose shape changes: its two geometries, and the position between them as the superblocks say it.

use std::collections::{BTreeMap, BTreeSet};

use openraid_core::admin::ArrayStatus;
use openraid_core::geometry::{Geometry, Level, SetSpec};
use openraid_core::slots::SlotSet;
use openraid_format::{ShapeFields, Superblock};
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors, SetLba, Slot};

use super::Set;
use crate::fault::rows::Rows;
use crate::oracle::members::superblock_on;
use crate::oracle::Members;
use crate::world::World;

/// The other side of a set whose shape changes.
#[derive(Clone, Debug)]
pub struct SetChange {
    /// The new layout.
    pub new: Geometry,
    /// The new start of the data of each member.
    starts: BTreeMap<DriveId, DriveLba>,
    /// The position that the engine records or has recorded.
    position: SetLba,
}

impl Set {
    /// Number of slots of both sides.
    #[must_use]
    pub fn slots(&self) -> u16 {
        let new = self.change.as_ref().map_or(0, |change| change.new.members());
        self.geometry.members().max(new)
    }

    /// Whether all data of both sides can be read without these slots.
    #[must_use]
    pub fn survives(&self, gone: SlotSet) -> bool {
        self.geometry.survives(gone) && self.change.as_ref().is_none_or(|change| change.new.survives(gone))
    }

    /// Take the shape from the engine's superblock.
    pub(super) fn note_shape(&mut self, world: &World, status: &ArrayStatus) {
        let Some(common) = status.superblock.as_ref().filter(|_| self.has_parity()) else { return };
        let change = common.change();
        let now = change.as_ref().map_or_else(|| fields_of(common), |change| change.old);
        if now.raid_disks != self.geometry.members() {
            self.take_geometry(geometry_of(&now, common.size));
        }
        self.change = change.map(|change| {
            let drives = status.members.iter().filter_map(|member| member.drive);
            let start = |drive| Some((drive, superblock_on(world, drive)?.new_data_offset()));
            let starts = drives.filter_map(start).collect();
            SetChange { new: geometry_of(&change.new, common.size), starts, position: change.position }
        });
    }

    /// The change has ended: marks of rows mean all rows of the new shape.
    fn take_geometry(&mut self, geometry: Geometry) {
        let Geometry::Parity(parity) = &geometry else { unreachable!("only sets with parity change their shape") };
        self.extent = self.extent.max(parity.member_extent());
        for rows in [&mut self.doubt, &mut self.suspect] {
            let was_empty = rows.is_empty();
            *rows = Rows::new(self.extent);
            if !was_empty {
                rows.insert(MemberLba(0), self.extent);
            }
        }
        self.geometry = geometry;
    }

    /// The start of a member's data on the side that [`Set::geometry`] describes.
    pub(super) fn start_on(&self, superblock: &Superblock) -> DriveLba {
        // The end of a change reaches the members one after the other.
        let is_behind = self.change.is_none()
            && superblock.change().is_some_and(|change| change.new.raid_disks == self.geometry.members());
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
        let positions: Vec<SetLba> = recorded.map(|own| own.position).chain([change.position]).collect();
        let (least, most) = (positions.iter().min().copied(), positions.iter().max().copied());
        let old_from = start_row(&self.geometry, least.unwrap_or_default());
        let new_to = end_row(&change.new, most.unwrap_or_default());
        let is_doubtful = self.places().any(|place| {
            let drive = world.drive(place.drive);
            let new_start = change.starts.get(&place.drive).copied().unwrap_or(place.start);
            let cached = drive.in_doubt().filter(|_| power_goes);
            let flying = drive.outstanding().map(|command| (command.lba, command.len));
            let faults = &drive.faults;
            let lately = faults.torn.iter().chain(&faults.refused).chain(faults.written.iter().flatten()).copied();
            let (old, new) = (place.start + old_from..place.start + self.extent, new_start..new_start + new_to);
            let mut all = cached.chain(flying).chain(lately);
            all.any(|(lba, len)| [&old, &new].iter().any(|rows| lba < rows.end && rows.start < lba + len))
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
    ) -> Result<Vec<(Slot, MemberLba)>, String> {
        let rows = |geometry: &Geometry, members: &[(Slot, DriveId, DriveLba)]| {
            Members::known(world, geometry.clone(), members).differing_rows()
        };
        let Some(change) = &self.change else { return Ok(rows(&self.geometry, members)) };
        let superblocks = members.iter().filter_map(|(_, drive, _)| superblock_on(world, *drive));
        let newest = superblocks.max_by_key(|superblock| superblock.events);
        // A begin that did not get durable is none; an end that did is one.
        let position = newest.map_or(SetLba::ZERO, |newest| match newest.change() {
            Some(change) => change.position,
            None if newest.raid_disks == change.new.members() => SetLba(change.new.capacity().get()),
            None => SetLba::ZERO,
        });
        if !position.get().is_multiple_of(full_stripe(&change.new).get()) {
            return Err(format!("a position of a change of shape that md refuses: sector {}", position.get()));
        }
        let (old_from, new_to) = (start_row(&self.geometry, position), start_row(&change.new, position));
        let of_old = members.iter().copied().filter(|(slot, ..)| slot.0 < self.geometry.members());
        let of_old: Vec<_> = of_old.collect();
        let moved = |(slot, drive, start): &(Slot, DriveId, DriveLba)| {
            (*slot, *drive, change.starts.get(drive).copied().unwrap_or(*start))
        };
        let of_new: Vec<_> = members.iter().map(moved).collect();
        // Of the old stripe in which the position is, no column has been overwritten.
        let mut differing: Vec<_> =
            rows(&self.geometry, &of_old).into_iter().filter(|(_, row)| row.offset() >= old_from).collect();
        differing.extend(rows(&change.new, &of_new).into_iter().filter(|(_, row)| row.offset() < new_to));
        Ok(differing)
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

fn fields_of(superblock: &Superblock) -> ShapeFields {
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

fn chunk_of(geometry: &Geometry) -> Sectors {
    let Geometry::Parity(parity) = geometry else { unreachable!("only sets with parity change their shape") };
    parity.chunk()
}

fn full_stripe(geometry: &Geometry) -> Sectors {
    let Geometry::Parity(parity) = geometry else { unreachable!("only sets with parity change their shape") };
    parity.full_stripe()
}

/// The first row of the stripe with this address.
fn start_row(geometry: &Geometry, at: SetLba) -> Sectors {
    chunk_of(geometry) * (at.get() / full_stripe(geometry).get())
}

/// The end of the stripe before this address, or with it.
fn end_row(geometry: &Geometry, at: SetLba) -> Sectors {
    chunk_of(geometry) * at.get().div_ceil(full_stripe(geometry).get())
}
