//! A set changes its shape: what its members, its superblocks and its map say of that. `background/pump_reshape.rs` decides when,
//! and takes each begin and end through a pair of generations; `metadata_io.rs` writes a generation to half of the members,
//! then to the other half.

use alloc::vec::Vec;
use openraid_format::{FeatureMap, MdLevel, Superblock};
use openraid_units::{DriveLba, Sectors, SetLba, Slot};

use super::member::{Member, Seat};
use super::metadata_io::member_superblock;
use super::reshape_plan::{has_new_data_area, ReshapePlan};
use super::set::{Set, SlotMembers};
use crate::geometry::shape::{Shape, Side};
use crate::geometry::takeover::Takeover;
use crate::planted::Flaw;
use crate::set_status::MemberState;

impl Set {
    /// The set gets the shape of a plan, with nothing moved, and spares get the new slots. Returns the generation of
    /// superblocks that records it, with a mark that md does not know.
    pub(crate) fn begin_change(&mut self, plan: &ReshapePlan) -> u64 {
        let (before, after, fills) = (self.slots(), plan.new.raid_disks, plan.fills());
        self.places.resize(usize::from(before.max(after)), SlotMembers::default());
        for slot in (before..after).map(Slot) {
            let spare = self.find_member(|member| member.state == MemberState::Spare && !member.is_removed());
            let spare = spare.expect("the plan has counted them");
            let member = self.member_mut(spare);
            let is_filled = fills.contains(slot);
            member.seat = Seat::Holds(slot);
            member.state = if is_filled { MemberState::Rebuilding { to: Sectors::ZERO } } else { MemberState::InSync };
            self.places[slot.index()].hold(spare);
        }
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        for member in self.members.iter_mut().filter(|member| member.is_active()) {
            let superblock = member.superblock.as_mut().expect("members of sets with metadata have a superblock");
            // The start of the data in the common part has no meaning, and must be possible.
            let Superblock { data_offset, data_size, .. } = **superblock;
            (metadata.common.data_offset, metadata.common.data_size) = (data_offset, data_size);
            plan.begin_on(superblock).expect("the plan has tried it");
            member.starts[Side::New as usize] = superblock.new_data_offset();
        }
        plan.begin_on(&mut metadata.common).expect("the plan has tried it");
        metadata.common.features.set(FeatureMap::SHAPE_GUARD, true);
        metadata.common.features.set(FeatureMap::LEVEL_GUARD, plan.from != plan.old);
        let covers = openraid_format::sync_size(&metadata.common);
        if let (Some(bitmap), Some(covers)) = (&mut self.bitmap, covers) {
            bitmap.grow(covers);
        }
        self.shape = Shape::changing(plan.change.clone(), plan.change.start());
        self.refresh();
        self.metadata.as_mut().expect("just seen").request()
    }

    /// The start of a spare's data on the new side, if it takes this slot; none if it has no room there. The room of a change
    /// is computed with one shift for each slot, so each member of the slot moves by that.
    pub(crate) fn new_start_of(&self, member: &Member, slot: Slot) -> Option<DriveLba> {
        let Some(change) = self.shape.change() else { return Some(member.starts[Side::Old as usize]) };
        let start = DriveLba(member.starts[Side::Old as usize].get().checked_add_signed(change.shift(slot).0)?);
        let common = self.metadata.as_ref()?.common();
        let mut trial = member_superblock(common, member);
        trial.set_new_data_offset(start);
        let fits = trial.set_change_position(self.shape.boundary()).is_ok() && has_new_data_area(&trial);
        fits.then_some(start)
    }

    /// Writes wait between the boundary and this distance.
    pub(crate) fn close_to(&mut self, distance: Sectors) {
        self.shape.close_to(distance);
    }

    /// Does a write to this address, or a read of it, wait until the boundary has passed it? In a failed set nothing moves any
    /// more.
    #[inline(always)]
    pub(crate) fn is_closed(&self, at: SetLba, is_read: bool) -> bool {
        self.shape.is_closed(at, is_read) && !self.has_failed()
    }

    /// Everything up to this distance has moved, and the members were flushed. Returns the generation of superblocks that
    /// records it.
    pub(crate) fn record_position(&mut self, distance: Sectors) -> u64 {
        let change = self.shape.change().expect("its shape changes");
        let boundary = change.boundary(distance);
        if let Some(filled) = change.filled_at(boundary) {
            for slot in self.joined {
                let index = self.places[slot.index()].member().expect("a joined slot has a member");
                if let MemberState::Rebuilding { to } = &mut self.members[index as usize].state {
                    *to = filled;
                }
            }
        }
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        metadata.common.set_change_position(boundary).expect("a boundary of the change");
        metadata.request()
    }

    /// The members say that everything up to this distance has moved: hosts find it on the new side.
    pub(crate) fn set_boundary(&mut self, distance: Sectors) {
        self.shape.set_boundary(distance);
        self.refresh();
    }

    /// Everything has moved and is recorded, and nothing uses the old side: from now on there is only the new one. Returns
    /// the generation of superblocks that records it, with a mark that md does not know.
    pub(crate) fn end_old_side(&mut self) -> u64 {
        let joined = self.joined;
        for member in &mut self.members {
            member.end_old_side(member.slot().is_some_and(|slot| joined.contains(slot)));
        }
        self.shape.end_old_side();
        for place in self.places.split_off(usize::from(self.shape.slots())) {
            for member in place.each() {
                let member = self.member_mut(member);
                (member.state, member.seat) = (MemberState::Spare, Seat::None);
            }
        }
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        metadata.common.end_change();
        metadata.common.features.set(FeatureMap::SHAPE_GUARD, true);
        self.refresh();
        self.metadata.as_mut().expect("just seen").request()
    }

    /// A planted bug: in a change of shape, is a member that is filled read as if it had everything?
    pub(super) fn trusts_new_members(&self) -> bool {
        let planted = self.metadata.as_ref().is_some_and(|metadata| metadata.planted.has(Flaw::NewMemberTrusted));
        planted && self.shape.change().is_some()
    }

    /// Are superblocks being written? Their common part is fixed since then, and what each member has alone must not change until
    /// they are written: they would say the places of one shape and the level, chunk or direction of another.
    pub(crate) fn is_being_recorded(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.being_written().is_some())
    }

    /// All requests wait.
    pub(crate) fn shut(&mut self) {
        self.shape.shut();
    }

    /// Nothing is in work: what has moved moves back from now on. Returns the generation of superblocks that records it, with
    /// a mark that md does not know; none if there is no way back from here.
    pub(crate) fn turn_change(&mut self) -> Option<u64> {
        let (change, boundary) = self.shape.change()?.turned(self.shape.boundary())?;
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        let mut common = metadata.common.clone();
        common.turn_change(boundary).ok()?;
        common.features.set(FeatureMap::SHAPE_GUARD | FeatureMap::TURN_GUARD, true);
        metadata.common = common;
        for member in self.members.iter_mut().filter(|member| member.is_active()) {
            member.starts.swap(Side::Old as usize, Side::New as usize);
            let superblock = member.superblock.as_mut().expect("members of sets with metadata have a superblock");
            superblock.forget_change();
            superblock.move_data_to(member.starts[Side::Old as usize]);
        }
        self.shape = Shape::changing(change, boundary);
        self.refresh();
        Some(self.metadata.as_mut().expect("just seen").request())
    }

    /// There is no way back from here: requests go on.
    pub(crate) fn open_again(&mut self) {
        let (change, boundary) = self.shape.clone().into_change().expect("its shape changes");
        self.shape = Shape::changing(change, boundary);
    }

    /// Nothing is in work: the set and its members get the level of a plan in which nothing moves. Writes wait until
    /// [`Set::reopen`]. Members of slots that there are not any longer are spares. Returns the generation of superblocks that
    /// records it, with a mark that md does not know.
    pub(crate) fn take_over(&mut self, takeover: &Takeover, plan: &ReshapePlan) -> u64 {
        let missing = self.missing();
        self.shape.exchange(plan.change.on(Side::New).clone());
        let slots = usize::from(self.slots());
        let before = core::mem::replace(&mut self.places, alloc::vec![SlotMembers::default(); slots]);
        for slot in (0..plan.new.raid_disks).map(Slot) {
            let place = takeover.source(slot, missing).map(|source| before[source.index()]);
            self.places[slot.index()] = place.unwrap_or_default();
            for member in self.places[slot.index()].each() {
                self.member_mut(member).seat = Seat::Holds(slot);
            }
        }
        let kept: Vec<u32> = self.places.iter().flat_map(|place| place.each()).collect();
        for index in before.iter().flat_map(|place| place.each()).filter(|index| !kept.contains(index)) {
            let member = self.member_mut(index);
            (member.state, member.seat) = (MemberState::Spare, Seat::None);
        }
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        let superblocks = self.members.iter_mut().filter_map(|member| member.superblock.as_mut());
        for superblock in superblocks.chain([&mut metadata.common]) {
            superblock.take_over(&plan.new, takeover.member_size());
        }
        metadata.common.features.set(FeatureMap::SHAPE_GUARD, true);
        if plan.new.level == MdLevel::Raid0 {
            self.bitmap = None;
        }
        self.refresh();
        self.metadata.as_mut().expect("just seen").request()
    }

    /// Nothing is in work: the set uses this part of each member, and parity or copies of the new part may differ. Writes wait
    /// until [`Set::reopen`]. Returns the generation of superblocks that records it, with a mark that md does not know.
    pub(crate) fn resize(&mut self, size: Sectors, plan: &ReshapePlan) -> u64 {
        let agree_to = self.covers().expect("the level has redundancy");
        self.use_of_each(size, plan);
        let covers = self.covers().expect("just seen");
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.grow(covers);
            bitmap.distrust_from(agree_to);
        }
        self.differ_from(agree_to);
        self.refresh();
        self.metadata.as_mut().expect("just seen").request()
    }

    /// Nothing is in work: the set uses no more than this part of each member, and hosts have no more than the rest of the set.
    /// Writes wait until [`Set::reopen`]. Returns the generation of superblocks that records it, with a mark that md does not
    /// know.
    pub(crate) fn cut(&mut self, size: Sectors, plan: &ReshapePlan) -> u64 {
        self.use_of_each(size, plan);
        self.shape.open_all();
        self.refresh();
        self.metadata.as_mut().expect("just seen").request()
    }

    /// Superblocks that are made from now on say that this part of each member is used.
    fn use_of_each(&mut self, size: Sectors, plan: &ReshapePlan) {
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        metadata.common.size = size;
        metadata.common.features.set(FeatureMap::SHAPE_GUARD, true);
        for superblock in self.members.iter_mut().filter_map(|member| member.superblock.as_mut()) {
            superblock.size = size;
        }
        self.shape.exchange(plan.change.on(Side::New).clone());
    }

    /// The sectors that a bitmap of the set covers.
    fn covers(&self) -> Option<Sectors> {
        openraid_format::sync_size(self.metadata.as_ref()?.common())
    }

    /// All superblocks have the new shape: the bitmap covers no more than that.
    pub(crate) fn fit_bitmap(&mut self) {
        let covers = self.covers();
        if let (Some(bitmap), Some(covers)) = (&mut self.bitmap, covers) {
            bitmap.superblocks_follow();
            bitmap.cut(covers);
        }
    }

    /// Nothing waits for the change of level any longer.
    pub(crate) fn reopen(&mut self) {
        self.shape.reopen();
    }

    /// All members have the new shape: the mark that md does not know goes. Returns the generation without it.
    pub(crate) fn end_guard(&mut self) -> u64 {
        let metadata = self.metadata.as_mut().expect("sets whose shape changes have metadata");
        metadata.common.features.set(FeatureMap::GUARDS, false);
        metadata.request()
    }

    /// The new shape is durable: hosts may use all of it.
    pub(crate) fn offer_capacity(&mut self) {
        self.shape.open_all();
    }
}

impl Member {
    /// Sectors from the old start of its data to the new one.
    pub(crate) fn new_start(&self) -> DriveLba {
        self.starts[Side::New as usize]
    }

    /// Only the new side is left. A member that the change has filled is in sync.
    fn end_old_side(&mut self, was_filled: bool) {
        self.starts = [self.starts[Side::New as usize]; 2];
        if let Some(superblock) = &mut self.superblock {
            superblock.end_change();
            superblock.move_data_to(self.starts[0]);
        }
        if was_filled {
            self.state = MemberState::InSync;
        }
    }
}
