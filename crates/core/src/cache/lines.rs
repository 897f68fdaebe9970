//! Lines: which 4 KiB of which set is in which frame, and what is known of each of its sectors.
//!
//! ```text
//!           take                 a write                destaged
//!   Free ----------> Clean  <--------------> Dirty ----------------> Clean
//!     ^                |                                               |
//!     +----------------+ evicted, the one that was used longest ago  <-+
//! ```
//!
//! A line that a read is filling, or that has a dirty sector, is not evicted. All memory is taken at start; finding
//! a line is one step through a table of chains, whose order nobody looks at.

use alloc::vec::Vec;
use openraid_units::{PoolOffset, Sectors, SetId, SetLba};

use crate::limits::FRAME_BYTES;
use crate::slab::NONE;

/// Sectors of a line.
pub(crate) const LINE_SECTORS: u64 = FRAME_BYTES / openraid_units::SECTOR_BYTES;

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
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }
    /// From `from` on, is this sector in it, and up to which sector is it the same?
    pub(crate) fn run(self, from: u64) -> (bool, u64) {
        let rest = self.0 >> from;
        let inside = rest & 1 == 1;
        let len = if inside { rest.trailing_ones() } else { rest.trailing_zeros() };
        (inside, (from + u64::from(len)).min(LINE_SECTORS))
    }
}

/// One line. It fills one line of the processor's caches: whoever needs one of its fields has waited for all.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    pub set: SetId,
    /// Its place in the set, in lines.
    pub number: u64,
    /// Sectors whose bytes the frame has.
    pub valid: Mask,
    /// Sectors that the members do not have yet.
    pub dirty: Mask,
    /// Sectors that a read will bring, unless they are written before.
    pub filling: Mask,
    /// The piece that fills them.
    pub filler: u32,
    /// It was read ahead, or is being so, and no host has asked for it yet.
    pub ahead: bool,
    /// Its dirty sectors are being written to the members, and nothing was written to the line since.
    pub staged: bool,
    /// All that was dirty was staged.
    pub staged_whole: bool,
    /// The first entry of the journal that it needs while it is dirty, the first that came after it was staged, and
    /// the last; 0 is none.
    pub pin: u64,
    pub repin: u64,
    pub newest: u64,
    /// Where entry `newest` has all its dirty sectors, if they stand there in one piece: its first sector is, or would
    /// be, so many sectors behind the start of the payload.
    pub logged_at: Option<i16>,
    /// The dirty unit that it is in, while it has dirty sectors.
    pub unit: u32,
    /// Neighbours: among the clean lines, or in the dirty unit.
    pub previous: u32,
    pub next: u32,
    used: bool,
}
const _: () = assert!(size_of::<Line>() == 64);

/// Which place a line stands for: all that finding it needs, close together.
#[derive(Clone, Copy, Debug)]
struct Name {
    number: u64,
    chain: u32,
    set: SetId,
}

impl Line {
    /// It is clean, or void: the entries of the journal that it needed.
    pub(crate) fn release_pins(&mut self) -> [u64; 2] {
        let pins = [self.pin, self.repin];
        (self.pin, self.repin, self.newest, self.logged_at, self.staged_whole) = (0, 0, 0, None, false);
        pins
    }
}

/// A list linked through the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineList {
    pub head: u32,
    pub tail: u32,
}

impl LineList {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) fn push(&mut self, lines: &mut [Line], index: u32) {
        lines[index as usize].previous = self.tail;
        lines[index as usize].next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            lines[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    pub(crate) fn remove(&mut self, lines: &mut [Line], index: u32) {
        let Line { previous, next, .. } = lines[index as usize];
        if previous == NONE {
            self.head = next;
        } else {
            lines[previous as usize].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            lines[next as usize].previous = previous;
        }
    }
}

/// All lines.
#[derive(Debug)]
pub(crate) struct Lines {
    base: PoolOffset,
    lines: Vec<Line>,
    names: Vec<Name>,
    /// Heads of the chains; a power of two, and more than lines.
    heads: Vec<u32>,
    free: u32,
    free_count: u32,
    /// Clean lines, the one that was used longest ago first.
    clean: LineList,
    clean_count: u32,
    /// Sectors that were read ahead and left before anybody asked for them.
    pub wasted: u64,
}

impl Lines {
    /// Lines over `bytes` bytes of the pool from `base` on.
    /// Bytes of the tables of so many lines.
    pub(crate) const fn table_bytes(count: u64) -> u64 {
        count * (size_of::<Line>() + size_of::<Name>()) as u64 + 2 * count.next_power_of_two() * size_of::<u32>() as u64
    }

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
            previous: NONE,
            next: NONE,
            used: false,
        };
        let mut lines = alloc::vec![blank; count as usize];
        for (index, line) in (1..).zip(&mut lines) {
            line.next = if index < count { index } else { NONE };
        }
        let names = alloc::vec![Name { number: 0, chain: NONE, set: SetId(0) }; count as usize];
        let heads = alloc::vec![NONE; 2 * (count as usize).next_power_of_two()];
        let free = if count == 0 { NONE } else { 0 };
        Self { base, lines, names, heads, free, free_count: count, clean: LineList::EMPTY, clean_count: 0, wasted: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).expect("limits bound the cache")
    }
    /// Lines that can be had: free ones and clean ones.
    pub(crate) fn room(&self) -> u32 {
        self.free_count + self.clean_count
    }
    pub(crate) fn all_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }
    pub(crate) fn get(&self, index: u32) -> &Line {
        &self.lines[index as usize]
    }
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Line {
        &mut self.lines[index as usize]
    }
    /// Where the bytes of a line are, from its sector `from` on.
    pub(crate) fn frame(&self, index: u32, from: u64) -> PoolOffset {
        PoolOffset(self.base.get() + u64::from(index) * FRAME_BYTES) + Sectors(from).bytes()
    }

    #[allow(clippy::cast_possible_truncation)] // as many bits as the table has places
    fn head_of(&self, set: SetId, number: u64) -> usize {
        // Fibonacci hashing: neighbours land far apart.
        let key = number ^ (u64::from(set.0) << 48);
        let bits = self.heads.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(bits) as usize) & (self.heads.len() - 1)
    }

    /// The line of this place, if there is one.
    pub(crate) fn find(&self, set: SetId, number: u64) -> Option<u32> {
        let mut index = *self.heads.get(self.head_of(set, number))?;
        while index != NONE {
            let name = &self.names[index as usize];
            if name.number == number && name.set == set {
                return Some(index);
            }
            index = name.chain;
        }
        None
    }

    /// A new, empty line for this place, which has none; it is in no list. `None` where every line is in use.
    pub(crate) fn take(&mut self, set: SetId, number: u64) -> Option<u32> {
        let index = if self.free == NONE {
            let oldest = self.clean.head;
            if oldest == NONE {
                return None;
            }
            self.clean.remove(&mut self.lines, oldest);
            self.clean_count -= 1;
            self.unchain(oldest);
            self.waste(oldest);
            oldest
        } else {
            let index = self.free;
            self.free = self.lines[index as usize].next;
            self.free_count -= 1;
            index
        };
        let head = self.head_of(set, number);
        let line = &mut self.lines[index as usize];
        (line.set, line.number, line.valid, line.used) = (set, number, Mask::NONE, true);
        (line.previous, line.next) = (NONE, NONE);
        debug_assert!(line.dirty.is_empty() && line.filling.is_empty() && line.unit == NONE && !line.staged);
        let chain = core::mem::replace(&mut self.heads[head], index);
        self.names[index as usize] = Name { number, chain, set };
        Some(index)
    }

    /// What was read ahead into a line is not wanted any more.
    pub(crate) fn waste(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        if core::mem::take(&mut line.ahead) {
            self.wasted += u64::from(line.valid.len());
        }
    }

    fn unchain(&mut self, index: u32) {
        let Name { set, number, chain } = self.names[index as usize];
        let head = self.head_of(set, number);
        if self.heads[head] == index {
            self.heads[head] = chain;
            return;
        }
        let mut at = self.heads[head];
        while self.names[at as usize].chain != index {
            at = self.names[at as usize].chain;
        }
        self.names[at as usize].chain = chain;
    }

    /// A line that is in no list and neither dirty nor being filled has nothing that keeps it: it becomes the clean
    /// one that was used last, or is free if it has no bytes.
    pub(crate) fn settle(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        debug_assert!(line.dirty.is_empty() && line.filling.is_empty());
        line.unit = NONE;
        line.staged = false;
        if line.valid.is_empty() {
            line.ahead = false;
            self.unchain(index);
            self.lines[index as usize].used = false;
            self.lines[index as usize].next = self.free;
            self.free = index;
            self.free_count += 1;
        } else {
            self.clean.push(&mut self.lines, index);
            self.clean_count += 1;
        }
    }

    /// Take a clean line out of the list of clean ones, because it is about to be something else.
    pub(crate) fn lift(&mut self, index: u32) {
        debug_assert!(self.is_clean(index));
        self.clean.remove(&mut self.lines, index);
        self.clean_count -= 1;
    }

    /// Does it stand for a place of a set?
    pub(crate) fn is_used(&self, index: u32) -> bool {
        self.lines[index as usize].used
    }

    /// Is it among the clean ones?
    pub(crate) fn is_clean(&self, index: u32) -> bool {
        let line = &self.lines[index as usize];
        line.dirty.is_empty() && line.filling.is_empty()
    }

    /// It was used: it is evicted last.
    pub(crate) fn touch(&mut self, index: u32) {
        if self.is_clean(index) && self.clean.tail != index {
            self.clean.remove(&mut self.lines, index);
            self.clean.push(&mut self.lines, index);
        }
    }
}

/// The lines of an extent, each with the first and the last sector (exclusive) that the extent has of it.
pub(crate) fn lines_of(at: SetLba, len: Sectors) -> impl Iterator<Item = (u64, u64, u64)> {
    let (start, end) = (at.get(), at.get() + len.get());
    (start / LINE_SECTORS..end.div_ceil(LINE_SECTORS)).map(move |number| {
        let first = number * LINE_SECTORS;
        (number, start.max(first) - first, end.min(first + LINE_SECTORS) - first)
    })
}
