//! Members whose storage is full: a thin volume, or a sparse file on a full file system.
//!
//! ```text
//!               a write is refused                    that place was written
//!   Enough --------------------------> Short -----------------------------------> Healing --> Enough
//!                                      | ^ every ROOM_PAUSE that place                |
//!                                      +-+ is written again as it is                  +--> ranges recorded as bad
//!                                                                                         are repaired
//! ```
//!
//! Such a member keeps its place, because all that was written to it is there. Writes that need room end with an error, and
//! others continue. Meanwhile parity is written before data (`io/steps/refit_parity.rs`). There is room again when a write
//! over the end of the refused write succeeds. Hosts make such a write, or the engine does, with the data that the member holds there.

use openraid_units::{Instant, MemberLba, Sectors, SetId, Slot};

use super::bad_blocks::DriveRange;
use super::member::Member;
use super::set::{Room, Set};
use super::sets::Sets;
use crate::actions::NoticeKind;
use crate::array::sector_rewrite::SectorRewrite;
use crate::call::Call;
use crate::events::Wake;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::limits::{ROOM_PAUSE, ROOM_PROBE};
use crate::set_status::MemberState;

impl Member {
    /// Is its storage full?
    pub(crate) const fn is_full(&self) -> bool {
        self.lacks_room.is_some()
    }
}

impl Sets {
    /// A read of this range failed: rewrite it when there is time.
    pub(crate) fn want_restored(&mut self, id: SetId, (side, slot): (Side, Slot), at: MemberLba, len: Sectors) {
        self.want_range(id, SectorRewrite::restored(side, slot, at, len));
    }

    /// The member had no room for a write of this range: write what it holds there.
    pub(crate) fn want_rewrite(&mut self, id: SetId, (side, slot): (Side, Slot), at: MemberLba, len: Sectors) {
        self.want_range(id, SectorRewrite::as_it_is(side, slot, at, len));
    }

    fn want_range(&mut self, id: SetId, rewrite: SectorRewrite) {
        let set = self.get_mut(id);
        let is_steady = !set.shape.is_changing();
        // The read may have begun before the end of a change, when this side was the new one.
        let rewrite = rewrite.in_steady_set();
        let useful =
            set.is_redundant() && is_steady && set.metadata.is_some() && set.in_sync().contains(rewrite.slot());
        if useful && set.tasks.want_rewrite(rewrite) {
            self.look();
        }
    }

    /// A working member has no room for a write of this range. It stays.
    pub(crate) fn note_no_room(&mut self, (id, index): (SetId, u32), refused: DriveRange, call: &mut Call) {
        let now = call.now();
        let set = self.get_mut(id);
        let most = ROOM_PROBE.min(Sectors(u64::from(set.rows_max)));
        let member = set.member_mut(index);
        let (slot, drive, is_new) = (member.slot(), member.drive, !member.is_full());
        let len = refused.len().min(most);
        let at = refused.at() + (refused.len() - len);
        member.lacks_room = Some(DriveRange::of(at, len));
        if !set.is_short_of_room() {
            set.room = Room::Short { look: now + ROOM_PAUSE };
            self.look_at(now + ROOM_PAUSE, Wake::Background);
        }
        if is_new {
            call.notice(self, (id, slot), Some(drive), NoticeKind::NoRoom);
        }
    }

    /// A write of this range has succeeded: if its member had no room there, it has room again.
    pub(crate) fn note_room(&mut self, (id, index): (SetId, u32), written: DriveRange, call: &mut Call) {
        let now = call.now();
        let set = self.get_mut(id);
        let member = set.member_mut(index);
        let (slot, drive) = (member.slot(), member.drive);
        let is_over =
            |place: DriveRange| written.at() <= place.at() && place.at() + place.len() <= written.at() + written.len();
        if !member.lacks_room.is_some_and(is_over) {
            return;
        }
        member.lacks_room = None;
        set.end_shortage(now);
        self.look();
        call.notice(self, (id, slot), Some(drive), NoticeKind::RoomAgain);
    }

    /// Try the members that had no room, and repair what was recorded as bad meanwhile.
    pub(crate) fn pump_room(&mut self, id: SetId, now: Instant) {
        let set = self.get_mut(id);
        let side = set.shape.work_side();
        match set.room {
            Room::Short { look } if look <= now => {
                set.forget_full_leavers(now);
                if !set.is_short_of_room() {
                    return;
                }
                set.room = Room::Short { look: now + ROOM_PAUSE };
                if set.shape.is_changing() {
                    // Units that move data are such writes.
                    return;
                }
                for index in 0..set.members.len() {
                    if let Some((slot, at, len)) = self.get_mut(id).place_to_try(index, side) {
                        self.want_rewrite(id, (side, slot), at, len);
                    }
                }
            }
            Room::Healing { look, entries } if look <= now => {
                let left = set.bad_entries();
                let goes_on = left > 0 && left < entries;
                set.room = if goes_on { Room::Healing { look: now + ROOM_PAUSE, entries: left } } else { Room::Enough };
                for index in (0..set.members.len()).filter(|_| goes_on) {
                    let Some(slot) = self.get(id).members[index].slot() else { continue };
                    for number in 0..self.get(id).members[index].bad.ranges().len() {
                        let set = self.get(id);
                        let range = set.members[index].bad.ranges()[number];
                        if let Some(at) = set.in_data_of(index, side, range) {
                            self.want_restored(id, (side, slot), at, range.len());
                        }
                    }
                }
            }
            Room::Enough | Room::Short { .. } | Room::Healing { .. } => {}
        }
    }
}

impl Set {
    /// Is the storage of a member full?
    #[inline(always)]
    pub(crate) const fn is_short_of_room(&self) -> bool {
        matches!(self.room, Room::Short { .. })
    }

    /// Can every row be read without parity, and has every member room as far as is known?
    #[inline(always)]
    pub(crate) fn writes_rows_at_once(&self) -> bool {
        self.is_whole && !self.has_bad && !self.is_short_of_room()
    }

    /// The time at which members are tried again.
    pub(crate) const fn room_look(&self) -> Option<Instant> {
        match self.room {
            Room::Enough => None,
            Room::Short { look } | Room::Healing { look, .. } => Some(look),
        }
    }

    fn bad_entries(&self) -> usize {
        self.members.iter().filter(|member| member.state == MemberState::InSync).map(|m| m.bad.ranges().len()).sum()
    }

    /// The place in the data of a member of a range on its drive; none if it is outside of them. A change of shape moves the
    /// start of the data, and what was known of other places stays known.
    fn in_data_of(&self, index: usize, side: Side, range: DriveRange) -> Option<MemberLba> {
        let at = self.members[index].range_in_data(side, range)?;
        let extent = match self.shape.on(side) {
            Geometry::Parity(parity) => parity.member_extent(),
            Geometry::Mirror(mirror) => mirror.member_extent(),
            _ => return Some(at),
        };
        (at.offset() + range.len() <= extent).then_some(at)
    }

    /// The place at which a full member is tried again. If the refused one holds no data any longer, the first one is.
    fn place_to_try(&mut self, index: usize, side: Side) -> Option<(Slot, MemberLba, Sectors)> {
        let (refused, slot) = (self.members[index].lacks_room?, self.members[index].slot()?);
        let at = self.in_data_of(index, side, refused).unwrap_or(MemberLba::ZERO);
        let member = &mut self.members[index];
        member.lacks_room = Some(DriveRange::of(member.on_drive(side, at), refused.len()));
        Some((slot, at, refused.len()))
    }

    /// Members that have left the array need no room.
    fn forget_full_leavers(&mut self, now: Instant) {
        for member in &mut self.members {
            if member.state != MemberState::InSync {
                member.lacks_room = None;
            }
        }
        self.end_shortage(now);
    }

    /// If no member is full any more, what was recorded as bad is repaired.
    fn end_shortage(&mut self, now: Instant) {
        if self.members.iter().all(|member| !member.is_full()) {
            self.room = Room::Healing { look: now, entries: usize::MAX };
        }
    }
}
