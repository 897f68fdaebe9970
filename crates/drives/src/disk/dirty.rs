//! The write cache: data that the host regards as written and that is not yet on the medium.
//!
//! Pieces are kept in order of address and merge when they touch. Their total size and number are bounded.

use super::geometry::Geometry;
use super::Spot;
use std::collections::VecDeque;

/// A piece of written data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First sector.
    pub start: u64,
    /// Sector after the last.
    pub end: u64,
    /// When its first sector came.
    pub since: u64,
    /// Number of the write that its first sector came with.
    pub number: u64,
}

/// This many beginnings are compared one by one.
const SEARCH_FEW: usize = 8;

/// Bits of a key that name the slot.
const SLOT_BITS: u32 = 16;
/// Sectors begin below this.
const LBA_END: u64 = 1 << (64 - SLOT_BITS);

/// A piece in the order of addresses: its start above its slot in one number, so that only one list is kept in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(u64);

impl Key {
    #[inline]
    fn new(start: u64, slot: u16) -> Self {
        Self(start << SLOT_BITS | u64::from(slot))
    }

    /// No piece that begins at or before a sector is greater.
    #[inline]
    fn last_of(lba: u64) -> Self {
        Self::new(lba.min(LBA_END - 1), u16::MAX)
    }

    #[inline]
    fn start(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower bits are the slot
    fn name(self) -> u16 {
        self.0 as u16
    }

    #[inline]
    fn slot(self) -> usize {
        usize::from(self.name())
    }
}

/// Parts of a disk, less one than a power of two.
const PARTS: usize = 63;

/// How many pieces begin before each part of the disk; all parts have one length. These are the bounds of a search.
#[derive(Clone, Debug)]
struct Guide {
    before: [u16; PARTS + 1],
    /// Parts times 2^64 by the sectors of the disk.
    scale: u64,
}

impl Guide {
    fn new(sectors: u64) -> Self {
        let scale = (PARTS as u128) << 64;
        let scale = u64::try_from(scale / u128::from(sectors.max(1))).unwrap_or(u64::MAX);
        Self { before: [0; PARTS + 1], scale }
    }

    /// The part of a sector; the last part for sectors after the disk's end.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the upper half of a product; below the number of parts
    fn part(&self, lba: u64) -> u16 {
        let part = (u128::from(lba) * u128::from(self.scale)) >> 64;
        (part as u64).min(PARTS as u64 - 1) as u16
    }

    /// Places of the pieces that begin in the part of a sector.
    #[inline]
    fn around(&self, lba: u64) -> (usize, usize) {
        let part = usize::from(self.part(lba));
        (usize::from(self.before[part]), usize::from(self.before[part + 1]))
    }

    /// One more piece begins here. All parts are counted, as that is a few instructions without a branch.
    #[inline]
    fn add(&mut self, start: u64) {
        let part = self.part(start);
        for (other, count) in (0u16..).zip(&mut self.before) {
            *count += u16::from(other > part);
        }
    }

    /// One less.
    #[inline]
    fn remove(&mut self, start: u64) {
        let part = self.part(start);
        for (other, count) in (0u16..).zip(&mut self.before) {
            *count -= u16::from(other > part);
        }
    }
}

/// The beginning of a piece that is no more.
const GONE: u64 = u64::MAX;

/// When a piece came. Outlives the piece: it is one of today's only if the slot still holds what began there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Age {
    since: u64,
    start: u64,
    slot: u16,
}

/// The dirty data of one disk. The pieces are in a slab. Only their keys are kept in order of address, because most of
/// the time goes into keeping that order. Their positions on the medium have a table of their own: most lookups need
/// nothing else.
#[derive(Clone, Debug)]
pub struct Dirty {
    order: Vec<Key>,
    slab: Vec<Extent>,
    spots: Vec<Spot>,
    free: Vec<u16>,
    guide: Guide,
    ages: VecDeque<Age>,
    /// The oldest piece's time of arrival and its start, if known.
    eldest: Option<(u64, u64)>,
    sectors: u64,
    sectors_max: u64,
    extents_max: usize,
    number: u64,
}

impl Dirty {
    /// A cache of a disk with `sectors` sectors: at most `sectors_max` of them are dirty, in at most `extents_max`
    /// pieces (never more than 65535).
    ///
    /// # Panics
    /// The disk has more than 2^48 sectors.
    #[must_use]
    pub fn new(sectors: u64, sectors_max: u64, extents_max: usize) -> Self {
        assert!(sectors <= LBA_END, "a disk of {sectors} sectors");
        Self {
            order: Vec::new(),
            slab: Vec::new(),
            spots: Vec::new(),
            free: Vec::new(),
            guide: Guide::new(sectors),
            ages: VecDeque::new(),
            eldest: None,
            sectors: 0,
            sectors_max,
            extents_max: extents_max.min(usize::from(u16::MAX)),
            number: 0,
        }
    }

    /// Sectors that it holds at most.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.sectors_max
    }
    /// Sectors that it holds.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
    /// Writes taken so far.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
    /// A piece by its place in the order of addresses.
    #[must_use]
    pub fn extent(&self, index: usize) -> &Extent {
        &self.slab[self.order[index].slot()]
    }

    fn extent_mut(&mut self, index: usize) -> &mut Extent {
        &mut self.slab[self.order[index].slot()]
    }

    /// Is there room for a write?
    #[must_use]
    pub fn has_room(&self, lba: u64, len: u64) -> bool {
        if self.sectors + len > self.sectors_max {
            return false;
        }
        self.order.len() < self.extents_max || self.touched(lba).is_some()
    }

    /// Pieces that begin at or before a sector.
    #[must_use]
    #[inline]
    pub fn index(&self, lba: u64) -> usize {
        let most = Key::last_of(lba);
        let (mut before, end) = self.guide.around(lba);
        let mut left = &self.order[before..end];
        // Three looks at once: each step of a search waits for memory that few have touched before it.
        while left.len() >= SEARCH_FEW {
            let quarter = left.len() / 4;
            let is_before = |part: usize| usize::from(left[part * quarter - 1] <= most);
            let skipped = quarter * (is_before(1) + is_before(2) + is_before(3));
            before += skipped;
            left = &left[skipped..][..left.len() - 3 * quarter];
        }
        // The keys after `left` begin later anyway, so a fixed number is always compared: the number left is
        // unpredictable.
        let is_before = |key: &Key| usize::from(*key <= most);
        match self.order[before..].first_chunk::<SEARCH_FEW>() {
            Some(few) => before + few.iter().map(is_before).sum::<usize>(),
            None => before + left.iter().map(is_before).sum::<usize>(),
        }
    }

    /// The piece that contains a sector, or ends just before it.
    fn touched(&self, lba: u64) -> Option<usize> {
        self.touched_before(self.index(lba), lba)
    }

    /// The same, if the number of pieces that begin at or before the sector is known.
    fn touched_before(&self, index: usize, lba: u64) -> Option<usize> {
        let before = index.checked_sub(1)?;
        (self.extent(before).end >= lba).then_some(before)
    }

    #[allow(clippy::cast_possible_truncation)] // no more pieces than extents_max
    fn insert(&mut self, index: usize, extent: Extent, spot: Spot) -> u16 {
        let slot = self.free.pop().unwrap_or(self.slab.len() as u16);
        if usize::from(slot) == self.slab.len() {
            self.slab.push(extent);
            self.spots.push(spot);
        } else {
            self.slab[usize::from(slot)] = extent;
            self.spots[usize::from(slot)] = spot;
        }
        self.guide.add(extent.start);
        self.order.insert(index, Key::new(extent.start, slot));
        slot
    }

    fn remove(&mut self, index: usize) -> Extent {
        let key = self.order.remove(index);
        let (start, slot) = (key.start(), key.slot());
        self.guide.remove(start);
        if self.eldest.is_some_and(|(_, eldest)| eldest == start) {
            self.eldest = None;
        }
        self.free.push(key.name());
        let extent = self.slab[slot];
        self.slab[slot].start = GONE;
        extent
    }

    /// Take a write, for which there must be room.
    pub fn add(&mut self, geometry: &Geometry, now: u64, lba: u64, len: u64) {
        self.number += 1;
        let end = lba + len;
        let index = self.index(lba);
        let at = if let Some(before) = self.touched_before(index, lba) {
            let extent = self.extent_mut(before);
            if end <= extent.end {
                return;
            }
            let more = end - extent.end;
            extent.end = end;
            self.sectors += more;
            before
        } else {
            let spot = Spot::of(&geometry.place(lba));
            let slot = self.insert(index, Extent { start: lba, end, since: now, number: self.number }, spot);
            self.ages.push_back(Age { since: now, start: lba, slot });
            self.sectors += len;
            index
        };
        while at + 1 < self.order.len() && self.order[at + 1].start() <= end {
            let next = self.remove(at + 1);
            let this = self.extent_mut(at);
            let common = this.end.min(next.end) - next.start;
            this.end = this.end.max(next.end);
            this.since = this.since.min(next.since);
            this.number = this.number.min(next.number);
            self.sectors -= common;
        }
        // Entries of pieces that are no more are dropped when they come to the front; this bounds them.
        if self.ages.len() > 4 * self.extents_max + 16 {
            let age = |key: &Key| {
                let extent = &self.slab[key.slot()];
                Age { since: extent.since, start: extent.start, slot: key.name() }
            };
            self.ages = self.order.iter().map(age).collect();
            self.ages.make_contiguous().sort_unstable();
            self.eldest = None;
        }
    }

    /// Is all of a range here?
    #[must_use]
    pub fn covers(&self, lba: u64, len: u64) -> bool {
        self.touched(lba).is_some_and(|index| self.extent(index).end >= lba + len)
    }

    /// The piece that has waited for longest: since when, and where it begins.
    #[inline]
    pub fn oldest(&mut self) -> Option<(u64, u64)> {
        if self.eldest.is_none() {
            self.eldest = self.find_oldest();
        }
        self.eldest
    }

    fn find_oldest(&mut self) -> Option<(u64, u64)> {
        while let Some(age) = self.ages.front() {
            let extent = &self.slab[usize::from(age.slot)];
            if extent.start == age.start && extent.since <= age.since {
                return Some((age.since, age.start));
            }
            self.ages.pop_front();
        }
        // Every piece came with an entry; without entries there is none.
        self.order.first().map(|key| (self.extent(0).since, key.start()))
    }

    /// Take up to `most` sectors from the front of a piece to write them out. They keep their room until
    /// [`Dirty::written`].
    pub fn take(&mut self, geometry: &Geometry, index: usize, most: u64) -> Extent {
        let extent = *self.extent(index);
        if extent.end - extent.start <= most {
            return self.remove(index);
        }
        let start = extent.start + most;
        let rest = self.extent_mut(index);
        rest.start = start;
        let slot = self.order[index].name();
        self.spots[usize::from(slot)] = Spot::of(&geometry.place(start));
        self.order[index] = Key::new(start, slot);
        self.guide.remove(extent.start);
        self.guide.add(start);
        self.eldest = None;
        self.ages.push_front(Age { since: extent.since, start, slot });
        Extent { end: start, ..extent }
    }

    /// Sectors that were taken are on the medium: their room is free.
    pub fn written(&mut self, sectors: u64) {
        self.sectors -= sectors;
    }

    /// Does anything wait that came with this write or before it?
    #[must_use]
    pub fn has_before(&self, number: u64) -> bool {
        self.order.iter().any(|key| self.slab[key.slot()].number <= number)
    }

    /// At most `count` pieces around a sector.
    #[must_use]
    pub fn near(&self, lba: u64, count: usize) -> Near<'_> {
        let middle = self.index(lba);
        let end = (middle.saturating_sub(count / 2) + count).min(self.order.len());
        let first = end.saturating_sub(count);
        let middle = middle.clamp(first, end);
        let (before, behind) = self.order[first..end].split_at(middle - first);
        let follows = middle > first && self.order[middle - 1].start() == lba;
        Near { first, before, behind, follows, spots: &self.spots }
    }
}

/// Pieces around a sector, in order of address.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    /// The place of the first of them among all.
    pub first: usize,
    /// Keys that begin at or before the sector.
    pub before: &'a [Key],
    /// Keys after it.
    pub behind: &'a [Key],
    /// The last one before begins just there.
    pub follows: bool,
    spots: &'a [Spot],
}

impl Near<'_> {
    /// Where one of them begins on the medium.
    #[must_use]
    #[inline(always)]
    pub fn spot(&self, piece: Key) -> &Spot {
        &self.spots[piece.slot()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use openraid_models::{DriveKind, Library};

    /// Compared with a plain search of all of them; and the cached oldest piece does not stay too long.
    #[test]
    fn pieces_are_found_where_a_plain_search_finds_them() {
        let drive = Library::builtin().drive("exos_x18_18tb").unwrap().clone();
        let DriveKind::Disk(disk) = &drive.kind else { panic!("it is a disk") };
        let geometry = Geometry::new(disk, drive.capacity.value);
        let (sectors, mut random) = (geometry.sectors(), Random::new(9));
        // All of the disk, and one small part of it at its end.
        for from in [0, sectors - 5000] {
            let mut dirty = Dirty::new(sectors, 1 << 20, 700);
            for now in 0..30_000 {
                let lba = from + random.below(sectors - from - 64) / 8 * 8;
                let len = random.between(1, 8) * 8;
                if random.chance(1, 2) && dirty.has_room(lba, len) {
                    dirty.add(&geometry, now, lba, len);
                } else if !dirty.order.is_empty() {
                    let piece = random.index(dirty.order.len());
                    let taken = dirty.take(&geometry, piece, 16);
                    dirty.written(taken.end - taken.start);
                }
                for lba in [0, lba, sectors - 1, sectors, u64::MAX] {
                    let plain = dirty.order.iter().filter(|key| key.start() <= lba).count();
                    assert_eq!(dirty.index(lba), plain, "pieces that begin by {lba}");
                }
                assert_eq!(dirty.oldest(), dirty.find_oldest());
            }
            assert!(dirty.number > 5000);
        }
    }
}
