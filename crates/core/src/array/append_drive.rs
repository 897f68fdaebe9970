//! A set without redundancy whose members are one after the other (linear) gets one more at its end.
//!
//! Nothing moves, and no address has another place. The drive has no role before: a spare in such a set has no meaning, and
//! md starts no set that has one. So the drive joins in the generation of superblocks that gives it the slot, and its
//! superblock is written first: as long as it is not durable, no other member names a slot that a start would miss. If
//! the drive refuses the superblock, nothing has changed.

use alloc::vec::Vec;
use openraid_format::{DeviceRole, FeatureMap, MdLevel, ShapeFields, Superblock};
use openraid_units::{DriveId, Sectors, Slot};

use super::member::new_member;
use super::member::Seat;
use super::reshape_plan::{PlanKind, ReshapeError, ReshapePlan};
use super::set::{Set, SlotMembers};
use crate::array::new_array::NewMember;
use crate::geometry::reshape::ShapeChange;
use crate::geometry::shape::Side;
use crate::geometry::{Geometry, Level, SetSpec};
use crate::set_status::MemberState;

/// A drive that joins with its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Joining {
    /// Its place in the table of members.
    pub(super) index: usize,
    /// The generation that gives it the slot. Superblocks before that one do not go to it.
    pub(super) generation: u64,
    /// It has refused its superblock.
    pub(super) is_refused: bool,
}

/// Plan that a linear array gets drives with data areas of these sizes at its end, and this shape. `sizes`: of the members, by
/// slot.
///
/// # Errors
/// Why that cannot be; see [`ReshapeError`].
pub(crate) fn plan_append(
    common: &Superblock,
    new: ShapeFields,
    sizes: &[Sectors],
    joining: &[Sectors],
) -> Result<ReshapePlan, ReshapeError> {
    let from = common.shape();
    let all = [sizes, joining].concat();
    let raid_disks = u16::try_from(all.len()).unwrap_or(u16::MAX);
    if from.level != MdLevel::Linear || joining.is_empty() || new != (ShapeFields { raid_disks, ..from }) {
        return Err(ReshapeError::Level(from.level));
    }
    let change = ShapeChange::in_place(one_after_the_other(&from, sizes)?, one_after_the_other(&new, &all)?);
    Ok(ReshapePlan { from, old: from, new, kind: PlanKind::Append, change, shift: 0, room: Sectors::ZERO })
}

fn one_after_the_other(fields: &ShapeFields, sizes: &[Sectors]) -> Result<Geometry, ReshapeError> {
    let ShapeFields { chunk, raid_disks: members, .. } = *fields;
    let (level, member_size) = (Level::Linear, Sectors::ZERO);
    let spec = SetSpec { level, members, chunk, layout: 0, member_size, member_sizes: sizes };
    Geometry::new(&spec).map_err(ReshapeError::Geometry)
}

impl Set {
    /// The sizes of the members' data areas, by slot.
    pub(crate) fn data_sizes(&self) -> Vec<Sectors> {
        let superblock = |place: &SlotMembers| self.member(place.member()?).superblock();
        self.places.iter().map(|place| superblock(place).map_or(Sectors::ZERO, |found| found.data_size)).collect()
    }

    /// Nothing is in work: the set gets this drive at its end. Writes wait until [`Set::reopen`]. Returns the generation of
    /// superblocks that records it, with a mark that md does not know.
    pub(crate) fn append(&mut self, new: NewMember, plan: &ReshapePlan) -> u64 {
        let slot = Slot(plan.from.raid_disks);
        let is_used = |number: u32| self.members.iter().any(|member| member.number() == Some(number));
        let mut superblock = new.superblock;
        superblock.dev_number = (u32::from(slot.0)..).find(|number| !is_used(*number)).expect("numbers do not run out");
        superblock.forget_change();
        superblock.set_recovery_offset(None);
        let (number, start) = (superblock.dev_number, superblock.data_offset);
        let member = new_member(new.drive, Some(slot), MemberState::InSync, start, Some(superblock), &[]);
        let index = self.add_member(member, None);
        let mut place = SlotMembers::default();
        place.hold(index);
        self.places.push(place);
        self.shape.exchange(plan.change.on(Side::New).clone());
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        metadata.grow_roles(number);
        metadata.common.set_shape(&plan.new);
        metadata.common.features.set(FeatureMap::SHAPE_GUARD, true);
        let generation = metadata.request();
        metadata.joining = Some(Joining { index: index as usize, generation, is_refused: false });
        self.refresh();
        generation
    }

    /// Does this member join, and is its superblock the only one that is being written? If it refuses it, the set gets its former
    /// shape back.
    pub(super) fn refuse_joining(&mut self, member: u32) -> bool {
        let Some(metadata) = self.metadata.as_mut().filter(|metadata| metadata.is_joining()) else { return false };
        let joining = metadata.joining.as_mut().expect("just seen");
        let is_it = joining.index == member as usize;
        joining.is_refused |= is_it;
        is_it
    }

    /// The drive that joined has refused its superblock, and no other one was written: it never was a member. The next
    /// generation has the events of this one.
    pub(super) fn take_back_joining(&mut self, joining: Joining) {
        let place = self.places.pop().expect("it has the last slot");
        debug_assert_eq!(place.member().map(|index| index as usize), Some(joining.index));
        let number = self.members[joining.index].number().expect("members of sets with metadata have a superblock");
        (self.members[joining.index].seat, self.members[joining.index].state) = (Seat::Removed, MemberState::Missing);
        let sizes = self.data_sizes();
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        let before = ShapeFields { raid_disks: metadata.common.raid_disks - 1, ..metadata.common.shape() };
        metadata.common.set_shape(&before);
        metadata.common.roles.set(number as usize, DeviceRole::Faulty);
        metadata.common.features.set(FeatureMap::GUARDS, false);
        metadata.common.events -= 1;
        metadata.joining = None;
        // The drive may have the superblock all the same. Two events behind, it is no member.
        metadata.request_failure();
        self.shape.exchange(one_after_the_other(&before, &sizes).expect("it had this shape"));
        self.shape.reopen();
        self.tasks.end_reshape();
        self.refresh();
    }

    /// Is this drive a member with a slot?
    pub(crate) fn has_slot(&self, drive: DriveId) -> bool {
        self.members.iter().any(|member| member.drive() == drive && !member.is_removed() && member.slot().is_some())
    }
}
