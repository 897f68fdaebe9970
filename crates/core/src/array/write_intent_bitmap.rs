//! The write-intent bitmap: which parts of the members may differ from each other.
//!
//! A bit is set, and its page is durable on every member, before the first write to its region. It is cleared later,
//! after the region was quiet for a while and the members were flushed, and never while the array is degraded: that is
//! why a member can be added back cheaply. The bits are kept in the layout of the disk, so that a page is written
//! without conversion.

use alloc::vec::Vec;
use openraid_format::BitmapHeader;
use openraid_units::{Instant, Sectors};

use crate::planted::{Flaw, Planted};
use crate::set_status::BitmapStatus;

/// Bytes of one page of the bitmap area, which is written at once.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The header in front of the bits.
const HEADER_BYTES: usize = 256;
/// Regions whose counters of 16 bits md keeps in one page of memory.
const COUNTERS_PER_PAGE: u64 = 2048;

#[derive(Clone, Copy, Default, Debug)]
struct Part {
    /// Write operations in this part now.
    writers: u16,
    /// Was there no write since the last check?
    quiet: bool,
    /// It was quiet at two checks in a row, and will be cleared after the flush that is under way.
    clearing: bool,
    /// The members may differ here because of an earlier run, until a resync has passed.
    stale: bool,
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Page {
    /// Number of changes of the page.
    version: u32,
    /// The version that the members have.
    durable: u32,
    /// The version that is being written.
    writing: u32,
    /// Number of outstanding member writes.
    pending: u16,
}

/// The bitmap of one set.
#[derive(Debug)]
pub(crate) struct Bitmap {
    /// Header and bits as on disk.
    image: Vec<u8>,
    /// Sectors that one bit covers.
    pub(super) chunk: Sectors,
    bits: u64,
    parts: Vec<Part>,
    pages: Vec<Page>,
    set_bits: u64,
    /// Bits that are set and stale.
    stale_bits: u64,
    dirty_pages: bool,
    /// Number of outstanding member writes of the page that is being written.
    writing: u16,
    /// The time of the next search for quiet bits.
    next_look: Instant,
    /// Number of flushes under way before bits are cleared.
    flushes: u32,
    /// All pages go to the members before the next superblocks.
    goes_first: bool,
    pub(super) planted: Planted,
}

/// Index of the entry of a bit.
#[allow(clippy::cast_possible_truncation)] // the table was allocated with as many entries
fn index(bit: u64) -> usize {
    bit as usize
}

impl Bitmap {
    /// A bitmap from its header (256 bytes, in front of the bits, as on disk) and its bits as on disk.
    #[allow(clippy::cast_possible_truncation)] // a bitmap of 2^32 bits would not fit any member's reserve
    pub(crate) fn new(header: &[u8], bytes: &[u8], chunk: Sectors, bits: u64) -> Self {
        assert!(header.len() == HEADER_BYTES && !chunk.is_zero());
        let pages = (HEADER_BYTES as u64 + bits.div_ceil(8)).div_ceil(PAGE_BYTES as u64) as usize;
        let mut image = alloc::vec![0u8; pages * PAGE_BYTES];
        image[..HEADER_BYTES].copy_from_slice(header);
        let take = bytes.len().min(bits.div_ceil(8) as usize);
        image[HEADER_BYTES..HEADER_BYTES + take].copy_from_slice(&bytes[..take]);
        let mut this = Self {
            image,
            chunk,
            bits,
            parts: alloc::vec![Part::default(); bits as usize],
            pages: alloc::vec![Page::default(); pages],
            set_bits: 0,
            stale_bits: 0,
            dirty_pages: false,
            writing: 0,
            next_look: Instant::ZERO,
            flushes: 0,
            goes_first: false,
            planted: Planted::default(),
        };
        this.set_bits = (0..bits).filter(|b| this.is_set(*b)).count() as u64;
        this
    }

    /// Sectors that one bit covers.
    pub(crate) const fn chunk(&self) -> Sectors {
        self.chunk
    }

    /// It covers more sectors from now on, at which the members do not differ. The members have room for that.
    pub(crate) fn grow(&mut self, sync_size: Sectors) {
        let Ok(header) = BitmapHeader::decode(self.header()) else { return };
        let header = BitmapHeader { sync_size: header.sync_size.max(sync_size), ..header };
        let geometry = header.geometry();
        let pages = usize::try_from(geometry.pages).expect("it fits before the data of a member");
        // A page that a cut left over may still be being written.
        let pages = pages.max(self.pages.len());
        self.bits = geometry.bits;
        self.image.resize(pages * PAGE_BYTES, 0);
        self.pages.resize(pages, Page::default());
        self.parts.resize(index(geometry.bits), Part::default());
        header.encode(&mut self.image[..HEADER_BYTES]);
        self.touch_all();
    }

    /// It covers no more than these sectors from now on, and no write is under way beyond them. Pages stay, because one may be
    /// being written.
    pub(crate) fn cut(&mut self, sync_size: Sectors) {
        let Ok(header) = BitmapHeader::decode(self.header()) else { return };
        if header.sync_size <= sync_size {
            return;
        }
        let header = BitmapHeader { sync_size, ..header };
        let bits = header.geometry().bits;
        for bit in bits..self.bits {
            let (byte, mask) = self.place(bit);
            self.set_bits -= u64::from(self.image[byte] & mask != 0);
            self.stale_bits -= u64::from(self.parts[index(bit)].stale);
            self.image[byte] &= !mask;
        }
        self.bits = bits;
        self.parts.truncate(index(bits));
        header.encode(&mut self.image[..HEADER_BYTES]);
        self.touch_all();
    }

    /// A resync must visit all sectors from this one on, also one after a restart.
    pub(crate) fn distrust_from(&mut self, from: Sectors) {
        for bit in from.get() / self.chunk.get()..self.bits {
            self.set(bit);
            let part = &mut self.parts[index(bit)];
            self.stale_bits += u64::from(!part.stale);
            (part.stale, part.quiet, part.clearing) = (true, false, false);
        }
        self.goes_first = true;
    }

    /// The time of the next search for quiet bits.
    pub(crate) const fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Set the time of the next search for quiet bits.
    pub(crate) fn look_again_at(&mut self, at: Instant) {
        self.next_look = at;
    }

    /// This number of flushes must end before bits are cleared.
    pub(crate) fn begin_flushes(&mut self, count: u32) {
        self.flushes = count;
    }

    /// One of these flushes has ended; true if it was the last one.
    pub(crate) fn end_flush(&mut self) -> bool {
        self.flushes -= 1;
        self.flushes == 0
    }

    /// Flushes under way before bits are cleared.
    pub(crate) const fn flushes(&self) -> u32 {
        self.flushes
    }

    /// The status of the bitmap, for readers.
    pub(crate) fn status(&self) -> BitmapStatus {
        let pages = self.bits.div_ceil(COUNTERS_PER_PAGE);
        let used = (0..pages).filter(|page| self.is_any_set(page * COUNTERS_PER_PAGE, COUNTERS_PER_PAGE)).count();
        BitmapStatus { marked: self.set_bits, regions: self.bits, pages: (used as u64, pages), chunk: self.chunk }
    }

    /// Is any of `count` bits set, beginning with bit `from`, which is the first one of a byte?
    fn is_any_set(&self, from: u64, count: u64) -> bool {
        let to = (from + count).min(self.bits);
        (from..to).step_by(8).any(|bit| {
            // Bits beyond the last one have no meaning.
            let mask = u8::MAX >> 8u64.saturating_sub(to - bit);
            self.image[self.place(bit).0] & mask != 0
        })
    }

    #[allow(clippy::cast_possible_truncation)] // checked against `bits`
    fn place(&self, bit: u64) -> (usize, u8) {
        assert!(bit < self.bits);
        (HEADER_BYTES + (bit / 8) as usize, 1 << (bit % 8))
    }
    fn page_of(&self, bit: u64) -> usize {
        self.place(bit).0 / PAGE_BYTES
    }

    /// Is the bit set?
    pub(crate) fn is_set(&self, bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        self.image[byte] & mask != 0
    }

    /// The bits that a range of sectors touches.
    pub(crate) fn bits_of(&self, from: u64, to: u64) -> core::ops::Range<u64> {
        from / self.chunk.get()..to.div_ceil(self.chunk.get()).min(self.bits)
    }

    /// Replace the header. Its event counts follow those of the superblock.
    pub(crate) fn set_header(&mut self, header: &[u8]) {
        if self.image[..HEADER_BYTES] != *header {
            self.image[..HEADER_BYTES].copy_from_slice(header);
            self.touch(0);
        }
    }
    /// The header in memory.
    pub(crate) fn header(&self) -> &[u8] {
        &self.image[..HEADER_BYTES]
    }

    fn touch(&mut self, page: usize) {
        self.pages[page].version += 1;
        self.dirty_pages = true;
    }

    /// Every page must be written: a new member came, or the bitmap is new.
    pub(crate) fn touch_all(&mut self) {
        for page in 0..self.pages.len() {
            self.touch(page);
        }
    }

    fn set(&mut self, bit: u64) {
        let (byte, mask) = self.place(bit);
        if self.image[byte] & mask == 0 {
            self.image[byte] |= mask;
            self.set_bits += 1;
            self.touch(byte / PAGE_BYTES);
        }
    }

    /// Set every bit.
    pub(crate) fn set_all(&mut self) {
        for bit in 0..self.bits {
            self.set(bit);
        }
    }

    /// A write of these sectors begins; true if its bits are durable, so that it may continue at once.
    pub(crate) fn begin(&mut self, from: u64, to: u64) -> bool {
        for bit in self.bits_of(from, to) {
            self.set(bit);
            let part = &mut self.parts[index(bit)];
            part.writers += 1;
            part.quiet = false;
            part.clearing &= self.planted.has(Flaw::BitClearedOverWrite);
        }
        self.is_durable(from, to)
    }

    /// Are the bits of these sectors durable?
    pub(crate) fn is_durable(&self, from: u64, to: u64) -> bool {
        self.bits_of(from, to).all(|bit| {
            let page = &self.pages[self.page_of(bit)];
            page.durable == page.version
        })
    }

    /// May superblocks be written: is the header in memory durable on every member, and with it all that a larger array needs?
    pub(crate) fn lets_superblocks_go(&self) -> bool {
        let needed = if self.goes_first { self.pages.len() } else { 1 };
        self.pages[..needed].iter().all(|page| page.durable == page.version)
    }

    /// The superblocks have been written.
    pub(crate) fn superblocks_follow(&mut self) {
        self.goes_first = false;
    }

    /// A write that began has ended.
    pub(crate) fn end(&mut self, from: u64, to: u64) {
        for bit in self.bits_of(from, to) {
            self.parts[index(bit)].writers -= 1;
        }
    }

    /// The number of the next page to write. Its content is [`Bitmap::page`]. The caller reports the number of member
    /// writes with [`Bitmap::page_issued`], and each end with [`Bitmap::page_written`].
    pub(crate) fn next_page(&mut self) -> Option<usize> {
        // One page at a time: bits that are set meanwhile go with the next one.
        if !self.dirty_pages || self.is_writing() {
            return None;
        }
        let next = self.pages.iter().position(|p| p.durable != p.version && p.pending == 0);
        if next.is_none() {
            self.dirty_pages = self.pages.iter().any(|p| p.durable != p.version);
        }
        next
    }
    /// The bytes of a page.
    pub(crate) fn page(&self, page: usize) -> &[u8] {
        &self.image[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]
    }
    /// The page is being written to this number of members.
    pub(crate) fn page_issued(&mut self, page: usize, members: u16) {
        self.writing = members;
        let page = &mut self.pages[page];
        page.writing = page.version;
        page.pending = members;
        if members == 0 {
            page.durable = page.writing;
        }
    }
    /// One member has the page; true if it was the last one.
    pub(crate) fn page_written(&mut self, page: usize) -> bool {
        self.writing -= 1;
        let page = &mut self.pages[page];
        page.pending -= 1;
        if page.pending == 0 {
            page.durable = page.writing;
            self.dirty_pages = true;
        }
        page.pending == 0
    }
    /// Is a page being written?
    pub(crate) fn is_writing(&self) -> bool {
        self.writing > 0
    }

    /// Mark the regions that were quiet since the last check. True if some of them can be cleared after a flush of all
    /// members, by [`Bitmap::clear_marked`].
    pub(crate) fn age(&mut self) -> bool {
        let mut any = false;
        for bit in 0..self.bits {
            if !self.is_set(bit) {
                continue;
            }
            let part = &mut self.parts[index(bit)];
            if part.writers > 0 || part.stale {
                continue;
            }
            part.clearing = part.quiet;
            part.quiet = true;
            any |= part.clearing;
        }
        any
    }

    /// Are there bits that may become clear later?
    pub(crate) fn has_clearable_bits(&self) -> bool {
        self.set_bits > self.stale_bits
    }

    /// The members were flushed after the last [`Bitmap::age`]: clear the bits that it marked and that are still quiet.
    pub(crate) fn clear_marked(&mut self) {
        for bit in 0..self.bits {
            let part = &mut self.parts[index(bit)];
            if part.clearing && part.writers == 0 {
                part.clearing = false;
                let (byte, mask) = self.place(bit);
                if self.image[byte] & mask != 0 {
                    self.image[byte] &= !mask;
                    self.set_bits -= 1;
                    self.touch(byte / PAGE_BYTES);
                }
            }
        }
    }

    /// All bits that are set now were set before this start, or before the set failed: the members may differ there until a resync has passed.
    pub(crate) fn mark_stale(&mut self) {
        for bit in 0..self.bits {
            let stale = self.is_set(bit);
            let part = &mut self.parts[index(bit)];
            (part.stale, part.quiet, part.clearing) = (stale, false, false);
        }
        self.stale_bits = self.set_bits;
    }

    /// Must a resync or a re-added member visit these sectors?
    pub(crate) fn is_marked(&self, from: u64, to: u64) -> bool {
        self.bits_of(from, to).any(|bit| self.is_set(bit))
    }

    /// A resync is complete: no bit is left from before this start.
    pub(crate) fn mark_consistent(&mut self) {
        for part in &mut self.parts {
            part.stale = false;
        }
        self.stale_bits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitmap(bits: u64) -> Bitmap {
        Bitmap::new(&[7; HEADER_BYTES], &[], Sectors(8), bits)
    }

    #[test]
    fn a_write_waits_until_its_page_is_on_every_member() {
        let mut map = bitmap(100_000);
        assert!(!map.begin(0, 16), "two bits, not yet durable");
        let status = map.status();
        assert_eq!((status.marked, status.regions, status.pages), (2, 100_000, (1, 49)));
        let page = map.next_page().unwrap();
        assert_eq!(page, 0);
        assert_eq!(map.page(0)[HEADER_BYTES], 0b11);
        map.page_issued(page, 2);
        assert_eq!(map.next_page(), None);
        assert!(!map.page_written(page) && !map.is_durable(0, 16));
        assert!(map.page_written(page) && map.is_durable(0, 16));
        assert!(map.begin(8, 9), "a second write of the same part goes on at once");
        assert!(!map.begin(8 * 50_000, 8 * 50_000 + 1), "another page");
        assert_eq!(map.status().pages, (2, 49));
        assert!(!map.begin(8 * 99_999, 8 * 100_000), "the last region");
        assert_eq!(map.status().pages, (3, 49));
    }

    #[test]
    fn a_bit_is_cleared_only_when_quiet_twice_and_flushed_between() {
        let mut map = bitmap(64);
        map.begin(0, 1);
        assert!(!map.age() && !map.age(), "a writer is there");
        map.end(0, 1);
        assert!(!map.age());
        assert!(map.age());
        map.begin(0, 1);
        map.end(0, 1);
        map.clear_marked();
        assert!(map.is_set(0), "a write came between the look and the flush");
        assert!(!map.age() && map.age());
        map.clear_marked();
        assert!(!map.is_set(0));
    }
}
