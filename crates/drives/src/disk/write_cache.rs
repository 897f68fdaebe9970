//! The write cache: acknowledged data that is not yet on the medium.
//!
//! Pieces are in the order of address, and merge when they touch. Their total size and their number are limited. A piece
//! occupies a segment of the drive's buffer until its last sector is on the medium.

use super::geometry::DiskGeometry;
use super::Spot;
use std::collections::VecDeque;

/// A piece of written data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyExtent {
    /// First sector.
    pub start: u64,
    /// Sector after the last.
    pub end: u64,
    /// The arrival of the first sector.
    pub since: u64,
    /// Number of the write that brought the first sector.
    pub number: u64,
}

/// Number of starts below which a search compares them one by one.
const SEARCH_FEW: usize = 8;

/// Bits of a key that hold the slot.
const SLOT_BITS: u32 = 16;
/// Upper bound of the start of a piece.
const LBA_END: u64 = 1 << (64 - SLOT_BITS);

/// The key of a piece: its start above its slot in one number. So only one list must be in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PieceKey(u64);

impl PieceKey {
    #[inline]
    fn new(start: u64, slot: u16) -> Self {
        Self(start << SLOT_BITS | u64::from(slot))
    }

    /// A key that is not less than that of any piece that begins at or before a sector.
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

/// Number of parts of a disk: one less than a power of two.
const PARTS: usize = 63;

/// The number of pieces that begin before each part of the disk. All parts have equal length. These numbers bound a
/// search.
#[derive(Clone, Debug)]
struct Guide {
    before: [u16; PARTS + 1],
    /// Parts times 2^64, divided by the sectors of the disk.
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

    /// Indices of the pieces that begin in the part of a sector.
    #[inline]
    fn around(&self, lba: u64) -> (usize, usize) {
        let part = usize::from(self.part(lba));
        (usize::from(self.before[part]), usize::from(self.before[part + 1]))
    }

    /// Count a piece that begins here. All parts are updated, which takes a few instructions without a branch.
    #[inline]
    fn add(&mut self, start: u64) {
        let part = self.part(start);
        for (other, count) in (0u16..).zip(&mut self.before) {
            *count += u16::from(other > part);
        }
    }

    /// Remove a piece from the counts.
    #[inline]
    fn remove(&mut self, start: u64) {
        let part = self.part(start);
        for (other, count) in (0u16..).zip(&mut self.before) {
            *count -= u16::from(other > part);
        }
    }
}

/// The start that marks a removed piece.
const GONE: u64 = u64::MAX;

/// When a piece arrived. The entry may outlive the piece: it is valid only if a piece with this start is still in the
/// slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Age {
    since: u64,
    start: u64,
    slot: u16,
}

/// The dirty data of one disk. The pieces are in a slab. Only their keys are in the order of address, because that
/// order takes most of the time. Their positions on the medium are in a separate table, because most lookups need
/// nothing else.
#[derive(Clone, Debug)]
pub struct Dirty {
    order: Vec<PieceKey>,
    slab: Vec<DirtyExtent>,
    spots: Vec<Spot>,
    free: Vec<u16>,
    guide: Guide,
    ages: VecDeque<Age>,
    /// Arrival and start of the oldest piece, if known.
    eldest: Option<(u64, u64)>,
    sectors: u64,
    sectors_max: u64,
    extents_max: usize,
    /// Whether the end of a piece is being written. It is no longer in `order`, but its place is still occupied.
    is_leaving: bool,
    number: u64,
}

impl Dirty {
    /// The cache of a disk with `sectors` sectors. At most `sectors_max` sectors are dirty, in at most `extents_max`
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
            is_leaving: false,
            number: 0,
        }
    }

    /// Limit of the dirty sectors.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.sectors_max
    }
    /// The present number of dirty sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
    /// Number of writes taken.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
    /// A piece, by its index in the order of addresses.
    #[must_use]
    pub fn extent(&self, index: usize) -> &DirtyExtent {
        &self.slab[self.order[index].slot()]
    }

    fn extent_mut(&mut self, index: usize) -> &mut DirtyExtent {
        &mut self.slab[self.order[index].slot()]
    }

    /// Whether there is room for a write.
    #[must_use]
    pub fn has_room(&self, lba: u64, len: u64) -> bool {
        if self.sectors + len > self.sectors_max {
            return false;
        }
        self.pieces() < self.extents_max || self.touched(lba).is_some()
    }

    /// Number of occupied places.
    fn pieces(&self) -> usize {
        self.order.len() + usize::from(self.is_leaving)
    }

    /// Number of pieces that begin at or before a sector.
    #[must_use]
    #[inline]
    pub fn index(&self, lba: u64) -> usize {
        let most = PieceKey::last_of(lba);
        let (mut before, end) = self.guide.around(lba);
        let mut left = &self.order[before..end];
        // Each step examines three keys at once, because each step waits for memory that is rarely in the processor's
        // cache.
        while left.len() >= SEARCH_FEW {
            let quarter = left.len() / 4;
            let is_before = |part: usize| usize::from(left[part * quarter - 1] <= most);
            let skipped = quarter * (is_before(1) + is_before(2) + is_before(3));
            before += skipped;
            left = &left[skipped..][..left.len() - 3 * quarter];
        }
        // A fixed number of keys is compared, because the number that is left is unpredictable. Keys after `left` begin
        // later and do not count.
        let is_before = |key: &PieceKey| usize::from(*key <= most);
        match self.order[before..].first_chunk::<SEARCH_FEW>() {
            Some(few) => before + few.iter().map(is_before).sum::<usize>(),
            None => before + left.iter().map(is_before).sum::<usize>(),
        }
    }

    /// The piece that contains a sector or ends just before it.
    fn touched(&self, lba: u64) -> Option<usize> {
        self.touched_before(self.index(lba), lba)
    }

    /// Like `touched`, if the number of pieces that begin at or before the sector is known.
    fn touched_before(&self, index: usize, lba: u64) -> Option<usize> {
        let before = index.checked_sub(1)?;
        (self.extent(before).end >= lba).then_some(before)
    }

    #[allow(clippy::cast_possible_truncation)] // no more pieces than extents_max
    fn insert(&mut self, index: usize, extent: DirtyExtent, spot: Spot) -> u16 {
        let slot = self.free.pop().unwrap_or(self.slab.len() as u16);
        if usize::from(slot) == self.slab.len() {
            self.slab.push(extent);
            self.spots.push(spot);
        } else {
            self.slab[usize::from(slot)] = extent;
            self.spots[usize::from(slot)] = spot;
        }
        self.guide.add(extent.start);
        self.order.insert(index, PieceKey::new(extent.start, slot));
        slot
    }

    fn remove(&mut self, index: usize) -> DirtyExtent {
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

    /// Take a write. There must be room for it.
    pub fn add(&mut self, geometry: &DiskGeometry, now: u64, lba: u64, len: u64) {
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
            let slot = self.insert(index, DirtyExtent { start: lba, end, since: now, number: self.number }, spot);
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
        // Entries of removed pieces are dropped when they reach the front. This limits their number.
        if self.ages.len() > 4 * self.extents_max + 16 {
            let age = |key: &PieceKey| {
                let extent = &self.slab[key.slot()];
                Age { since: extent.since, start: extent.start, slot: key.name() }
            };
            self.ages = self.order.iter().map(age).collect();
            self.ages.make_contiguous().sort_unstable();
            self.eldest = None;
        }
    }

    /// Whether the whole range is dirty.
    #[must_use]
    pub fn covers(&self, lba: u64, len: u64) -> bool {
        self.touched(lba).is_some_and(|index| self.extent(index).end >= lba + len)
    }

    /// The oldest piece: its arrival and its start.
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
        // Every piece arrived with an entry; without entries there is no piece.
        self.order.first().map(|key| (self.extent(0).since, key.start()))
    }

    /// Take up to `most` sectors from the front of a piece, to write them to the medium. They occupy their room, and
    /// the last ones also the place of the piece, until [`Dirty::written`].
    pub fn take(&mut self, geometry: &DiskGeometry, index: usize, most: u64) -> DirtyExtent {
        let extent = *self.extent(index);
        if extent.end - extent.start <= most {
            self.is_leaving = true;
            return self.remove(index);
        }
        let start = extent.start + most;
        let rest = self.extent_mut(index);
        rest.start = start;
        let slot = self.order[index].name();
        self.spots[usize::from(slot)] = Spot::of(&geometry.place(start));
        self.order[index] = PieceKey::new(start, slot);
        self.guide.remove(extent.start);
        self.guide.add(start);
        self.eldest = None;
        self.ages.push_front(Age { since: extent.since, start, slot });
        DirtyExtent { end: start, ..extent }
    }

    /// The taken sectors are on the medium: free their room.
    pub fn written(&mut self, sectors: u64) {
        self.is_leaving = false;
        self.sectors -= sectors;
    }

    /// Whether any waiting data arrived with this write or an earlier one.
    #[must_use]
    pub fn has_before(&self, number: u64) -> bool {
        self.order.iter().any(|key| self.slab[key.slot()].number <= number)
    }

    /// Up to `count` pieces around a sector.
    #[must_use]
    pub fn near(&self, lba: u64, count: usize) -> PiecesAround<'_> {
        let middle = self.index(lba);
        let end = (middle.saturating_sub(count / 2) + count).min(self.order.len());
        let first = end.saturating_sub(count);
        let middle = middle.clamp(first, end);
        let (before, behind) = self.order[first..end].split_at(middle - first);
        let follows = middle > first && self.order[middle - 1].start() == lba;
        PiecesAround { first, before, behind, follows, spots: &self.spots }
    }
}

/// Pieces around a sector, in order of address.
#[derive(Clone, Copy, Debug)]
pub struct PiecesAround<'a> {
    /// Index of the first piece of these among all pieces.
    pub first: usize,
    /// Keys of the pieces that begin at or before the sector.
    pub before: &'a [PieceKey],
    /// Keys of the pieces that begin after the sector.
    pub behind: &'a [PieceKey],
    /// Whether the last piece of `before` begins exactly at the sector.
    pub follows: bool,
    spots: &'a [Spot],
}

impl PiecesAround<'_> {
    /// The position on the medium where a piece begins.
    #[must_use]
    #[inline(always)]
    pub fn spot(&self, piece: PieceKey) -> &Spot {
        &self.spots[piece.slot()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use openraid_models::{DriveKind, Library};

    /// Compared with a plain search of all pieces. The test also finds an oldest piece that was kept for too long.
    #[test]
    fn pieces_are_found_where_a_plain_search_finds_them() {
        let drive = Library::builtin().drive("exos_x18_18tb").unwrap().clone();
        let DriveKind::Disk(disk) = &drive.kind else { panic!("it is a disk") };
        let geometry = DiskGeometry::new(disk, drive.capacity.value);
        let (sectors, mut random) = (geometry.sectors(), Random::new(9));
        // The whole disk, and a small part at its end.
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

    #[test]
    fn a_piece_keeps_its_place_until_its_last_sector_is_on_the_medium() {
        let drive = Library::builtin().drive("wd360gd").unwrap().clone();
        let DriveKind::Disk(disk) = &drive.kind else { panic!("it is a disk") };
        let geometry = DiskGeometry::new(disk, drive.capacity.value);
        let mut dirty = Dirty::new(geometry.sectors(), 1 << 20, 2);
        dirty.add(&geometry, 0, 1000, 16);
        dirty.add(&geometry, 0, 2000, 16);
        assert!(!dirty.has_room(3000, 16) && dirty.has_room(2016, 16));
        // The front of a piece leaves: the rest has the place. Then the rest leaves.
        for taken in [8, 16] {
            let leaving = dirty.take(&geometry, 0, taken);
            assert!(!dirty.has_room(3000, 16), "{leaving:?}");
            dirty.written(leaving.end - leaving.start);
            assert_eq!(dirty.has_room(3000, 16), leaving.end == 1016);
        }
    }
}
