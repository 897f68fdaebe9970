//! Members and slots: the members of a set change places here and nowhere else.
//!
//! What depends on the members' states ([`Set::refresh`]), the bitmap and the superblocks follow each change at once, so that
//! no other part of the engine can forget one of them.

use openraid_units::{Sectors, Slot};

use super::member::{Member, Seat};
use super::set::{Set, SlotMembers};
use crate::geometry::shape::Side;
use crate::reason::FailReason;
use crate::set_status::MemberState;
use crate::slot_set::SlotSet;

impl Set {
    /// A member by its number in the set.
    #[inline(always)]
    pub(crate) fn member(&self, index: u32) -> &Member {
        &self.members[index as usize]
    }

    /// As [`Set::member`].
    #[inline(always)]
    pub(crate) fn member_mut(&mut self, index: u32) -> &mut Member {
        &mut self.members[index as usize]
    }

    /// All members that the set has or had, in the order of their numbers.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The first member that satisfies the condition.
    pub(crate) fn find_member(&self, is_it: impl FnMut(&Member) -> bool) -> Option<u32> {
        self.members.iter().position(is_it).map(|index| u32::try_from(index).expect("few members"))
    }

    /// The member and the replacement of a slot.
    #[inline(always)]
    pub(crate) fn place(&self, slot: Slot) -> SlotMembers {
        self.places[slot.index()]
    }

    /// Does a member hold this slot, whatever its state?
    pub(crate) fn is_held(&self, slot: Slot) -> bool {
        self.place(slot).member().is_some()
    }

    /// Add a member to the set, in the entry of a removed member if one is named. Returns its number.
    pub(crate) fn add_member(&mut self, member: Member, vacant: Option<u32>) -> u32 {
        match vacant {
            Some(index) => *self.member_mut(index) = member,
            None => self.members.push(member),
        }
        vacant.unwrap_or_else(|| u32::try_from(self.members.len() - 1).expect("few members"))
    }

    /// An administrator removes a member that has no part in the set; true if it was a spare.
    pub(crate) fn take_out(&mut self, index: u32) -> bool {
        let member = self.member_mut(index);
        member.seat = Seat::Removed;
        let before = core::mem::replace(&mut member.state, MemberState::Faulty(FailReason::Administrator));
        before == MemberState::Spare
    }

    /// A spare will be filled next to the member of this slot, and then take the slot.
    pub(crate) fn begin_replacement(&mut self, slot: Slot, spare: u32) {
        let member = self.member_mut(spare);
        member.state = MemberState::Rebuilding { to: Sectors::ZERO };
        member.seat = Seat::Replaces(slot);
        self.places[slot.index()].begin_replacement(spare);
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.touch_all();
        }
        self.metadata.as_mut().expect("redundant sets have metadata").request();
    }

    /// Begin to fill a member in this slot. Returns the position from which it is filled, and whether it needs only
    /// what the bitmap marks.
    pub(crate) fn begin_fill(&mut self, slot: Slot, index: u32) -> (Sectors, bool) {
        let start = self.new_start_of(self.member(index), slot);
        let entry = self.member_mut(index);
        if let (Some(start), MemberState::Spare) = (start, entry.state) {
            entry.starts[Side::New as usize] = start;
        }
        let from = match entry.state {
            MemberState::Rebuilding { to } => to,
            _ => Sectors::ZERO,
        };
        let only_marked = entry.seat == Seat::Returns(slot);
        entry.state = MemberState::Rebuilding { to: from };
        entry.seat = Seat::Holds(slot);
        self.places[slot.index()].hold(index);
        // Other members that came back for this slot are not needed. They miss the writes from now on.
        self.members
            .iter_mut()
            .filter(|member| member.seat == Seat::Returns(slot))
            .for_each(|member| member.seat = Seat::None);
        self.refresh();
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.touch_all();
        }
        (from, only_marked)
    }

    /// The member of a slot, or its replacement, is filled up to here. From now on its superblock may record this.
    pub(crate) fn fill_to(&mut self, slot: Slot, is_replacement: bool, to: Sectors) {
        let Some(index) = self.place(slot).of(is_replacement) else { return };
        if let MemberState::Rebuilding { to: at } = &mut self.member_mut(index).state {
            *at = to;
        }
    }

    /// The replacement in a slot is complete. Its superblock must record this before it takes over the slot. False if
    /// it is gone.
    pub(crate) fn complete_replacement(&mut self, slot: Slot) -> bool {
        let Some(index) = self.place(slot).replacement() else { return false };
        self.member_mut(index).state = MemberState::Rebuilding { to: Sectors::MAX };
        true
    }

    /// The member in this slot is complete. Returns the generation of superblocks that records it.
    pub(crate) fn slot_filled(&mut self, slot: Slot) -> u64 {
        let index = self.place(slot).member().expect("a member was filled");
        self.member_mut(index).state = MemberState::InSync;
        self.refresh();
        self.metadata.as_mut().expect("redundant sets have metadata").request()
    }

    /// The replacement in this slot is complete, and its superblock records it: it takes over the slot.
    pub(crate) fn slot_replaced(&mut self, slot: Slot) {
        let old = self.place(slot).member();
        let new = self.places[slot.index()].succeed().expect("a replacement was filled");
        let entry = self.member_mut(new);
        entry.state = MemberState::InSync;
        entry.seat = Seat::Holds(slot);
        if let Some(old) = old {
            let entry = self.member_mut(old);
            entry.state = MemberState::Faulty(FailReason::Replaced);
            entry.seat = Seat::Left(slot);
        }
        self.refresh();
        self.metadata.as_mut().expect("redundant sets have metadata").request_failure();
    }

    /// For tests: the metadata of a member is stale.
    #[cfg(test)]
    pub(crate) fn make_stale(&mut self, index: u32) {
        self.suspect = true;
        self.member_mut(index).trust = super::member::Trust::MetadataStale;
    }

    /// Slots whose data is valid everywhere.
    #[inline(always)]
    pub(crate) const fn in_sync(&self) -> SlotSet {
        self.in_sync
    }

    /// Is the data of every slot valid everywhere?
    #[inline(always)]
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Slots that take writes on this side.
    #[inline(always)]
    pub(crate) fn writable(&self, side: Side) -> SlotSet {
        match side {
            Side::Old => self.writable.minus(self.joined),
            Side::New => self.writable,
        }
    }

    /// Slots whose member is leaving and whose replacement gets the writes. It also gets parity, as far as that can be
    /// computed, because its superblock may record already that it is filled.
    #[inline(always)]
    pub(crate) const fn inherited(&self) -> SlotSet {
        self.inherited
    }

    /// Slots that a change of shape fills, and that have all that has moved.
    pub(crate) const fn joined(&self) -> SlotSet {
        self.joined
    }

    /// Has any member an entry in its bad-block log?
    #[inline(always)]
    pub(crate) const fn has_bad(&self) -> bool {
        self.has_bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::member::new_member;
    use crate::array::metadata::Metadata;
    use crate::array::new_array::{plan, CreateSpec, NewDrive};
    use crate::geometry::shape::Shape;
    use crate::geometry::{Level, SetSpec};
    use crate::limits::Limits;
    use alloc::vec::Vec;
    use openraid_format::{MdLevel, MinorVersion, SetName, Superblock, Timestamp, Uuid};
    use openraid_units::{ArrayId, BlockSize, Bytes, DriveId, DriveLba, MemberLba};

    /// A RAID 5 of three members and a spare, with superblocks and without drives.
    fn set() -> Set {
        let sizes = &[Sectors::kib(1024); 3];
        let (chunk, member_size) = (Sectors::kib(64), sizes[0]);
        let spec = SetSpec { level: Level::Raid5, members: 3, chunk, layout: 2, member_size, member_sizes: sizes };
        let mut set = Set::new(ArrayId(0), Shape::of(&spec), (BlockSize::B512, 8), &Limits::small());
        set.metadata = Some(Metadata::new(common()));
        for number in 0..3_u16 {
            let index = set.add_member(member(number, Some(Slot(number)), MemberState::InSync), None);
            set.places[usize::from(number)].hold(index);
        }
        assert_eq!(set.add_member(member(3, None, MemberState::Spare), None), 3);
        set.refresh();
        set
    }

    fn common() -> Superblock {
        let new = |number: u16| NewDrive {
            drive: DriveId(number),
            capacity: Bytes::mib(16).sectors_floor(),
            uuid: Uuid([number.to_le_bytes()[0] + 1; 16]),
        };
        let spec = CreateSpec {
            uuid: Uuid([9; 16]),
            name: SetName::new(None, "roster").unwrap(),
            created: Timestamp::new(0, 0),
            level: MdLevel::Raid5,
            layout: 2,
            chunk: Sectors::kib(64),
            minor: MinorVersion::V1_2,
            slots: (0..3).map(|number| Some(new(number))).collect(),
            spares: Vec::new(),
            size: None,
            assume_clean: true,
            bitmap: false,
            ppl: false,
        };
        plan(&spec).unwrap().common
    }

    fn member(number: u16, slot: Option<Slot>, state: MemberState) -> Member {
        new_member(DriveId(number), slot, state, DriveLba(2048), None, &[])
    }

    fn slots(of: &[u16]) -> SlotSet {
        of.iter().map(|slot| Slot(*slot)).collect()
    }

    fn wanted(set: &Set) -> u64 {
        set.metadata.as_ref().unwrap().wanted
    }

    #[test]
    fn a_slot_that_is_filled_takes_writes_first_and_reads_when_it_is_complete() {
        let mut set = set();
        set.members[1].state = MemberState::Faulty(FailReason::Gone);
        set.members[1].seat = Seat::Left(Slot(1));
        set.places[1] = SlotMembers::default();
        set.refresh();
        assert_eq!((set.in_sync(), set.is_whole(), set.is_held(Slot(1))), (slots(&[0, 2]), false, false));
        assert_eq!(set.begin_fill(Slot(1), 3), (Sectors::ZERO, false));
        assert_eq!((set.in_sync(), set.writable(Side::Old)), (slots(&[0, 2]), slots(&[0, 1, 2])));
        set.fill_to(Slot(1), false, Sectors(640));
        assert_eq!(set.member(3).state(), MemberState::Rebuilding { to: Sectors(640) });
        // The task is interrupted, and begins again from there.
        assert_eq!(set.begin_fill(Slot(1), 3), (Sectors(640), false));
        let before = wanted(&set);
        set.slot_filled(Slot(1));
        assert_eq!((set.in_sync(), set.is_whole()), (slots(&[0, 1, 2]), true));
        assert!(wanted(&set) > before, "the superblocks say so");
    }

    #[test]
    fn a_member_that_came_back_needs_what_the_bitmap_marks_only_in_its_own_slot() {
        let mut set = set();
        set.members[3].seat = Seat::Returns(Slot(1));
        assert_eq!(set.add_member(member(4, None, MemberState::Spare).returning_to(Some(Slot(1))), None), 4);
        set.places[1] = SlotMembers::default();
        assert_eq!(set.begin_fill(Slot(1), 3), (Sectors::ZERO, true));
        assert_eq!(set.member(4).returns_to(), None, "it misses the writes from here on");
        set.members[4].seat = Seat::Returns(Slot(2));
        set.places[0] = SlotMembers::default();
        assert_eq!(set.begin_fill(Slot(0), 4), (Sectors::ZERO, false));
    }

    #[test]
    fn a_replacement_takes_the_slot_and_the_old_member_has_left_it() {
        let mut set = set();
        set.begin_replacement(Slot(2), 3);
        assert_eq!((set.place(Slot(2)).member(), set.place(Slot(2)).replacement()), (Some(2), Some(3)));
        assert!(set.member(3).is_replacement() && set.is_whole());
        set.fill_to(Slot(2), true, Sectors(128));
        assert_eq!(set.member(2).state(), MemberState::InSync, "it is the replacement that is filled");
        assert!(set.complete_replacement(Slot(2)));
        assert_eq!(set.member(3).state(), MemberState::Rebuilding { to: Sectors::MAX });
        assert!(!set.complete_replacement(Slot(1)), "it has none");
        set.slot_replaced(Slot(2));
        assert_eq!(set.place(Slot(2)).each().collect::<Vec<_>>(), [3]);
        assert_eq!((set.member(2).slot(), set.member(2).left()), (None, Some(Slot(2))));
        assert!(set.is_whole() && !set.member(3).is_replacement());
    }

    #[test]
    fn the_entry_of_a_removed_member_is_used_again() {
        let mut set = set();
        assert!(set.take_out(3), "it was a spare");
        assert!(set.member(3).is_removed());
        assert_eq!(set.find_member(Member::is_removed), Some(3));
        assert_eq!(set.add_member(member(7, None, MemberState::Spare), Some(3)), 3);
        assert_eq!((set.member(3).drive(), set.members().len()), (DriveId(7), 4));
    }

    #[test]
    fn places_of_the_data_area_and_of_the_drive_are_a_data_offset_apart() {
        let mut member = member(0, None, MemberState::Spare);
        let (side, lba) = (Side::Old, DriveLba(2053));
        assert_eq!((member.on_drive(side, MemberLba(5)), member.in_data(side, lba)), (lba, MemberLba(5)));
        assert_eq!([8, 8, 4096].map(|at| member.meet_defect(DriveLba(at), Sectors(8))), [Some(1), None, Some(2)]);
        member.rewritten(DriveLba(8), Sectors(8));
        assert_eq!(member.meet_defect(DriveLba(8), Sectors(8)), Some(3));
    }
}
