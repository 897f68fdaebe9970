//! Lines: which 4 KiB of which set is in which frame, and the state of each of its sectors.
//!
//! ```text
//!           take                 a write                destaged
//!   Free ----------> Clean  <--------------> Dirty ----------------> Clean
//!     ^                |                                               |
//!     +----------------+ evicted, the one that was used longest ago  <-+
//! ```
//!
//! A line that a read is filling, or that has a dirty sector, is not evicted. All memory is taken at start.
//! [`super::place_table`] finds the line of a place.

use alloc::vec::Vec;
use openraid_units::{PoolOffset, Sectors, SetId};

use super::dirty_units::DirtyUnit;
use super::linked_list::{Link, List};
use super::place_table::Places;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::limits::FRAME_BYTES;
use crate::slab::NONE;

/// Sectors of one line, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mask(pub u8);

impl Mask {
    pub(crate) const NONE: Self = Self(0);

    /// Sectors `from..to` of a line.
    pub(crate) fn range(from: u64, to: u64) -> Self {
        debug_assert!(from <= to && to <= LINE_SECTORS);
        let below = |n: u64| (1_u16 << n) - 1;
        Self((below(to) & !below(from)).to_le_bytes()[0])
    }
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub(crate) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }
    /// Is sector `from` in the mask, and up to which sector does the answer hold?
    pub(crate) fn run(self, from: u64) -> (bool, u64) {
        let rest = self.0 >> from;
        let inside = rest & 1 == 1;
        let len = if inside { rest.trailing_ones() } else { rest.trailing_zeros() };
        (inside, (from + u64::from(len)).min(LINE_SECTORS))
    }
}

/// One line. It fills one line of the processor's caches, so an access to one of its fields loads all of them.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    pub(super) set: SetId,
    /// Its place in the set, in lines.
    pub(super) number: u64,
    /// Sectors whose bytes are in the frame.
    pub(super) valid: Mask,
    /// Sectors that the members do not have yet.
    pub(super) dirty: Mask,
    /// Sectors that a read will bring, unless they are written first.
    pub(super) filling: Mask,
    /// The piece that fills them.
    pub(super) filler: u32,
    /// It was read ahead, or is being read ahead, and no host has requested it yet.
    pub(super) ahead: bool,
    /// Its dirty sectors are being written to the members, and nothing was written to the line since.
    pub(super) staged: bool,
    /// All that was dirty was staged.
    pub(super) staged_whole: bool,
    /// Sequence numbers of journal entries that must stay while the line is dirty (0: none): `pin` is the first,
    /// `repin` the first since staging, `newest` the last.
    pub(super) pin: u64,
    pub(super) repin: u64,
    pub(super) newest: u64,
    /// The place of all its dirty sectors in entry `newest`, if they are contiguous there: the distance in sectors from
    /// the start of the payload to the line's first sector, whether that sector is in the entry or not.
    pub(super) logged_at: Option<i16>,
    /// The dirty unit that it is in, while it has dirty sectors.
    pub(super) unit: u32,
    used: bool,
}
const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    /// Are its dirty sectors being written to the members, and was nothing written to it since?
    pub(crate) const fn is_staged(&self) -> bool {
        self.staged
    }

    /// If its dirty sectors are staged and contiguous in one entry of the journal: that entry, and the place of the
    /// line there (see `logged_at`).
    pub(crate) fn staged_place(&self) -> Option<(u64, i16)> {
        self.logged_at.filter(|_| self.staged).map(|place| (self.newest, place))
    }

    /// It is clean or void. Returns the entries of the journal that it needed.
    pub(crate) fn release_pins(&mut self) -> [u64; 2] {
        let pins = [self.pin, self.repin];
        (self.pin, self.repin, self.newest, self.logged_at, self.staged_whole) = (0, 0, 0, None, false);
        pins
    }
}

/// All lines.
#[derive(Debug)]
pub(crate) struct Lines {
    base: PoolOffset,
    lines: Vec<Line>,
    /// The neighbours of each line: among the free ones, the clean ones, or in its dirty unit.
    links: Vec<Link>,
    places: Places,
    /// The hash of the place of each line, so that the table entry of that hash can be loaded together with the line,
    /// not after it.
    hashes: Vec<u32>,
    free: u32,
    free_count: u32,
    /// Clean lines, least recently used first.
    clean: List,
    clean_count: u32,
    /// Number of sectors that were read ahead and dropped before a host requested them.
    pub(super) wasted: u64,
}

impl Lines {
    /// Does the line of this dirty unit that has been dirty longest need an entry of the journal below this one?
    pub(crate) fn keeps_entry_below(&self, unit: &DirtyUnit, sequence: u64) -> bool {
        let pin = unit.lines.first().map_or(0, |first| self.get(first).pin);
        pin != 0 && pin < sequence
    }

    /// Size in bytes of the tables for `count` lines.
    pub(crate) const fn table_bytes(count: u64) -> u64 {
        count * (size_of::<Line>() + size_of::<Link>() + size_of::<u32>()) as u64 + Places::table_bytes(count)
    }

    /// Lines over `bytes` bytes of the pool from `base` on.
    pub(crate) fn new(base: PoolOffset, bytes: u64) -> Self {
        let count = u32::try_from(bytes / FRAME_BYTES).expect("limits bound the cache");
        let blank = Line {
            set: SetId(0),
            number: 0,
            valid: Mask::NONE,
            dirty: Mask::NONE,
            filling: Mask::NONE,
            filler: NONE,
            ahead: false,
            staged: false,
            staged_whole: false,
            pin: 0,
            repin: 0,
            newest: 0,
            logged_at: None,
            unit: NONE,
            used: false,
        };
        let lines = alloc::vec![blank; count as usize];
        let links = Link::chain(count);
        Self {
            base,
            lines,
            links,
            places: Places::new(count),
            hashes: alloc::vec![0; count as usize],
            free: if count == 0 { NONE } else { 0 },
            free_count: count,
            clean: List::EMPTY,
            clean_count: 0,
            wasted: 0,
        }
    }

    /// Is there no line?
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Number of lines.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).expect("limits bound the cache")
    }
    /// Number of lines that can be used: free and clean ones.
    pub(crate) fn room(&self) -> u32 {
        self.free_count + self.clean_count
    }
    pub(crate) fn links_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }
    /// The next line in its list.
    pub(crate) fn next(&self, index: u32) -> u32 {
        self.links[index as usize].next
    }
    pub(crate) fn get(&self, index: u32) -> &Line {
        &self.lines[index as usize]
    }
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Line {
        &mut self.lines[index as usize]
    }
    /// The place of the bytes of a line, from its sector `from` on.
    pub(crate) fn frame(&self, index: u32, from: u64) -> PoolOffset {
        PoolOffset(self.base.get() + u64::from(index) * FRAME_BYTES) + Sectors(from).bytes()
    }

    /// The line of this place, if there is one.
    pub(crate) fn find(&self, set: SetId, number: u64) -> Option<u32> {
        self.places.find(set, number, |index| {
            let line = &self.lines[index as usize];
            line.number == number && line.set == set
        })
    }

    /// Touch the table entry of a place: see [`super::prefetch`].
    pub(crate) fn place_seen(&self, hash: u32) -> u32 {
        self.places.seen(hash)
    }

    /// Touch a line: see [`super::prefetch`].
    pub(crate) fn line_seen(&self, index: u32) -> u32 {
        self.lines.get(index as usize).map_or(0, |line| line.filler)
    }

    /// Touch the table entry of a line: see [`super::prefetch`].
    pub(crate) fn place_of_line_seen(&self, index: u32) -> u32 {
        self.hashes.get(index as usize).map_or(0, |hash| self.places.seen(*hash))
    }

    /// The lines that are evicted next, if none is free, as many as there is room for.
    pub(crate) fn evicted_next(&self, indices: &mut [u32]) {
        let mut index = if self.free == NONE { self.clean.head } else { NONE };
        for place in indices {
            *place = index;
            index = self.links.get(index as usize).map_or(NONE, |link| link.next);
        }
    }

    /// A new, empty line for this place, which has none. The line is in no list. `None` if every line is in use.
    pub(crate) fn take(&mut self, set: SetId, number: u64) -> Option<u32> {
        let index = if self.free == NONE {
            let oldest = self.clean.head;
            if oldest == NONE {
                return None;
            }
            self.clean.remove(&mut self.links, oldest);
            self.clean_count -= 1;
            self.forget_place(oldest);
            self.waste(oldest);
            oldest
        } else {
            let index = self.free;
            self.free = self.links[index as usize].next;
            self.free_count -= 1;
            index
        };
        let hash = Places::hash_of(set, number);
        self.places.insert(hash, index);
        self.hashes[index as usize] = hash;
        let line = &mut self.lines[index as usize];
        (line.set, line.number, line.valid, line.used) = (set, number, Mask::NONE, true);
        debug_assert!(line.dirty.is_empty() && line.filling.is_empty() && line.unit == NONE && !line.staged);
        Some(index)
    }

    /// Data that was read ahead into a line is not needed any more.
    pub(crate) fn waste(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        if core::mem::take(&mut line.ahead) {
            self.wasted += u64::from(line.valid.len());
        }
    }

    /// Remove a line from the table of places.
    fn forget_place(&mut self, index: u32) {
        self.places.remove(self.hashes[index as usize], index);
    }

    /// Nothing keeps this line: it is in no list, not dirty and not being filled. It becomes the most recently used
    /// clean line, or a free one if it has no bytes.
    pub(crate) fn release(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        debug_assert!(line.dirty.is_empty() && line.filling.is_empty());
        line.unit = NONE;
        line.staged = false;
        if line.valid.is_empty() {
            line.ahead = false;
            self.forget_place(index);
            self.lines[index as usize].used = false;
            self.links[index as usize].next = self.free;
            self.free = index;
            self.free_count += 1;
        } else {
            self.clean.push(&mut self.links, index);
            self.clean_count += 1;
        }
    }

    /// Take a clean line out of the list of clean lines, because its state is about to change.
    pub(crate) fn lift(&mut self, index: u32) {
        debug_assert!(self.is_clean(index));
        self.clean.remove(&mut self.links, index);
        self.clean_count -= 1;
    }

    /// Does it have a place of a set?
    pub(crate) fn is_used(&self, index: u32) -> bool {
        self.lines[index as usize].used
    }

    /// Is it among the clean ones?
    pub(crate) fn is_clean(&self, index: u32) -> bool {
        let line = &self.lines[index as usize];
        line.dirty.is_empty() && line.filling.is_empty()
    }

    /// It was used: it becomes the most recently used line.
    pub(crate) fn touch(&mut self, index: u32) {
        if self.is_clean(index) && self.clean.tail != index {
            self.clean.remove(&mut self.links, index);
            self.clean.push(&mut self.links, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: SetId = SetId(0);

    /// A line of this place with content, which nothing keeps.
    fn clean(lines: &mut Lines, number: u64) -> u32 {
        let index = lines.take(SET, number).expect("there is room");
        lines.get_mut(index).valid = Mask::range(0, LINE_SECTORS);
        lines.release(index);
        index
    }

    #[test]
    fn the_clean_line_that_was_used_longest_ago_is_evicted_and_its_place_forgotten() {
        let mut lines = Lines::new(PoolOffset(1 << 20), 3 * FRAME_BYTES);
        let [first, second, third] = [5, 6, 7].map(|number| clean(&mut lines, number));
        assert_eq!(lines.room(), 3);
        lines.touch(first);
        let mut coming = [NONE; 2];
        lines.evicted_next(&mut coming);
        assert_eq!(coming, [second, third]);
        assert_eq!(lines.take(SET, 8), Some(second));
        assert_eq!((lines.find(SET, 6), lines.find(SET, 8), lines.find(SET, 5)), (None, Some(second), Some(first)));
        assert_eq!(lines.frame(second, 2), PoolOffset((1 << 20) + FRAME_BYTES * u64::from(second) + 1024));
    }

    #[test]
    fn a_line_in_use_is_never_evicted_and_one_without_bytes_is_free_again() {
        let mut lines = Lines::new(PoolOffset(0), 2 * FRAME_BYTES);
        let used = lines.take(SET, 1).unwrap();
        let empty = lines.take(SET, 2).unwrap();
        assert_eq!((lines.take(SET, 3), lines.room()), (None, 0));
        lines.release(empty);
        assert_eq!((lines.find(SET, 2), lines.room(), lines.is_used(empty)), (None, 1, false));
        assert_eq!(lines.take(SET, 3), Some(empty));
        assert!(lines.is_used(used));
    }

    #[test]
    fn sectors_that_were_read_ahead_and_never_requested_are_counted_as_wasted() {
        let mut lines = Lines::new(PoolOffset(0), FRAME_BYTES);
        let index = clean(&mut lines, 1);
        lines.get_mut(index).ahead = true;
        lines.take(SET, 2);
        assert_eq!(lines.wasted, LINE_SECTORS);
    }
}
