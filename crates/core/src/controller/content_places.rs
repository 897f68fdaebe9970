//! The places of an array's content on its members, for drivers that know more of members than the engine does: holes in them.

use openraid_units::{ArrayId, DriveId, DriveLba, MemberLba, Sectors, SetLba, Slot};

use super::Controller;
use crate::array::set::Set;
use crate::geometry::shape::Side;
use crate::geometry::{Geometry, COPIES_MAX};
use crate::journal::session::may_be_in_journal;
use crate::settings::WriteCache;

/// The places of the first part of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentPlaces {
    /// Length of the part.
    pub len: Sectors,
    /// Each copy that may be read; none if members do not tell the content.
    places: [Option<(DriveId, DriveLba)>; COPIES_MAX],
}

impl ContentPlaces {
    /// The members do not tell this part.
    const fn unknown(len: Sectors) -> Self {
        Self { len, places: [None; COPIES_MAX] }
    }

    /// Each copy that may be read; none if members do not tell the content.
    pub fn copies(&self) -> impl Iterator<Item = (DriveId, DriveLba)> + '_ {
        self.places.iter().copied().flatten()
    }
}

impl Controller {
    /// The places of the first part of these sectors of an array, which has them. There are none while a cache or a journal may
    /// have newer content, where the member with the content is missing, and while the shape changes.
    #[must_use]
    pub fn content_places(&self, id: ArrayId, at: Sectors, len: Sectors) -> ContentPlaces {
        let Some(array) = self.arrays.find(id) else { return ContentPlaces::unknown(len) };
        let (set, at, reach) = array.volume().map(at, |set| self.sets.get(set).shape());
        let (has_dirty, set) = (self.cache.dirty_of(set) > 0, self.sets.get(set));
        if has_dirty || !set.is_running() || may_be_in_journal(set) || set.shape().change().is_some() {
            return ContentPlaces::unknown(len);
        }
        places_in(set, at, len.min(reach))
    }

    /// Are zeroes written faster than data, everywhere in an array? Without parity and a cache, each member gets the range only.
    #[must_use]
    pub fn zeroes_are_fast(&self, id: ArrayId) -> bool {
        let Some(array) = self.arrays.find(id) else { return false };
        let mut sets = (0..array.volume().set_count()).map(|number| self.sets.get(array.volume().set(number)));
        sets.all(|set| {
            let is_plain = !set.shape().has_parity() && set.policy().write_cache == WriteCache::Through;
            is_plain && set.shape().change().is_none() && self.base.channels.zeroes_fast(set)
        })
    }
}

/// The places of the first part of this range of a set.
fn places_in(set: &Set, at: SetLba, len: Sectors) -> ContentPlaces {
    let geometry = set.shape().on(Side::Old);
    let mut part = ContentPlaces::unknown(len);
    let is_mirror = matches!(geometry, Geometry::Mirror(_));
    if is_mirror && usize::from(set.shape().copies()) > COPIES_MAX {
        return part;
    }
    let (places, len) = geometry.places_of(at, len);
    part.len = len;
    let on_drive = |(slot, at): (Slot, MemberLba)| {
        let is_readable = set.readable(Side::Old, at, at + len).contains(slot);
        let member = set.member_of(slot).filter(|_| is_readable)?;
        Some((member.drive(), member.on_drive(Side::Old, at)))
    };
    for (drive, place) in part.places.iter_mut().zip(places) {
        *drive = place.and_then(on_drive);
    }
    part
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::geometry::{Level, SetSpec};
    use crate::reason::FailReason;

    /// Length and copies of the first part of some sectors of a set of four members with chunks of 8 sectors. The member of slot 3
    /// is drive 3, with its data from sector 2048 on.
    fn of(level: Level, lost: Option<Slot>, at: u64, len: u64) -> (u64, Vec<(u16, u64)>) {
        let (chunk, member_size, member_sizes) = (Sectors(8), Sectors(512), &[Sectors(512); 4]);
        // Two near copies; left-symmetric.
        let layout = if level == Level::Raid10 { 0x102 } else { 2 };
        let spec = SetSpec { level, members: 4, chunk, layout, member_size, member_sizes };
        let mut set = Set::with_members(&spec);
        if let Some(slot) = lost {
            set.fail_slot(slot, FailReason::Administrator);
        }
        let part = places_in(&set, SetLba(at), Sectors(len));
        (part.len.get(), part.copies().map(|(drive, at)| (drive.0, at.get() - 2048)).collect())
    }

    #[test]
    fn each_level_has_content_where_its_members_have_it() {
        assert_eq!(of(Level::Raid0, None, 8 * 5 + 3, 100), (5, vec![(1, 8 + 3)]));
        assert_eq!(of(Level::Linear, None, 512 + 7, 100), (100, vec![(1, 7)]));
        assert_eq!(of(Level::Raid1, None, 9, 20), (20, vec![(0, 9), (1, 9), (2, 9), (3, 9)]));
        assert_eq!(of(Level::Raid10, None, 8 * 3, 4), (4, vec![(2, 8), (3, 8)]));
        // The second stripe has P in slot 2, and its data begin after it.
        assert_eq!(of(Level::Raid5, None, 8 * 3 + 1, 100), (7, vec![(3, 8 + 1)]));
    }

    #[test]
    fn a_copy_that_cannot_be_read_is_left_out_and_data_of_a_lost_column_are_nowhere() {
        assert_eq!(of(Level::Raid1, Some(Slot(1)), 9, 20), (20, vec![(0, 9), (2, 9), (3, 9)]));
        assert_eq!(of(Level::Raid5, Some(Slot(3)), 8 * 3 + 1, 100), (7, vec![]));
        assert_eq!(of(Level::Raid5, Some(Slot(1)), 8 * 3 + 1, 100), (7, vec![(3, 8 + 1)]));
    }
}
