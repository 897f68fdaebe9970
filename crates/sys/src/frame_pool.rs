//! The frame pool: one mapping that holds the payload of all requests.
//!
//! A [`PoolRange`] names bytes of the pool. Safe code gets slices of these bytes; the kernel gets addresses through the
//! engine. A mark for every 512-byte sector ensures that both never access the same bytes in conflict:
//!
//! ```text
//!   mark (u16):  15        14                 0
//!              [ kernel  ][ commands by which   ]
//!              [ writes  ][ the kernel reads    ]
//!
//!                      safe code reads   safe code writes   kernel reads   kernel writes
//!   unmarked                 yes               yes               yes            yes
//!   kernel reads             yes              panic              yes           panic
//!   kernel writes           panic             panic             panic          panic
//! ```
//!
//! A panic here means that the core gave out a frame twice. This is always a bug, and never caused by a drive or a
//! peer. Marks are set when a command is queued, and removed when the kernel has returned the command. A timeout
//! removes no mark, so the frames of a given-up command stay held. A check costs one or-reduction over the marks (8 for
//! 4 KiB), and nothing while no command is in flight.
//!
//! The mapping exists as long as the pool or any engine that used it. If an engine was dropped with commands in flight,
//! the mapping is never unmapped, because the kernel may still write to it.

use crate::errno::{check, Errno, Note};
use openraid_units::{Bytes, PoolOffset, SECTOR_BYTES};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Maximum number of source ranges in one call of [`FramePool::disjoint`]: a stripe over 256 members.
pub const DISJOINT_READS_MAX: usize = 256;
/// Maximum number of destination ranges in one call of [`FramePool::disjoint`]: P and Q, or two reconstructed members.
pub const DISJOINT_WRITES_MAX: usize = 2;

/// Alignment of the mapping, and unit of its length: one huge page on x86-64 and most arm64 kernels.
const HUGE_PAGE: usize = 2 << 20;
/// The assumed page size for touching memory page by page. If the real page is larger, this only costs time.
const PAGE: usize = 4096;

const KERNEL_WRITES: u16 = 1 << 15;
const KERNEL_READS_MAX: u16 = KERNEL_WRITES - 1;

/// A run of bytes in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PoolRange {
    /// The first byte.
    pub start: PoolOffset,
    /// Number of bytes.
    pub len: Bytes,
}

impl PoolRange {
    /// `len` bytes from `start`.
    #[must_use]
    pub const fn new(start: PoolOffset, len: Bytes) -> Self {
        Self { start, len }
    }

    /// The part of `len` bytes that begins `offset` bytes after the start. Panics if the part is not inside the range.
    #[must_use]
    pub fn part(self, offset: Bytes, len: Bytes) -> Self {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "bug: part of {len:?} at {offset:?} is not inside {self:?}");
        Self { start: self.start + offset, len }
    }

    fn overlaps(self, other: Self) -> bool {
        self.start < other.start + other.len && other.start < self.start + self.len
    }
}

/// The kind of pages to request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HugePages {
    /// Small pages.
    No,
    /// Advise transparent huge pages; the kernel decides.
    Advise,
    /// Pages from the reserved pool (`vm.nr_hugepages`). If there are too few: [`HugePages::Advise`] with a note.
    Reserved,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolOptions {
    /// Size; rounded up to 2 MiB.
    pub len: Bytes,
    /// The kind of pages to request.
    pub huge: HugePages,
    /// Must all memory be present before `new` returns? On virtual machines whose host allocates memory late, the first
    /// touch is tens of times slower than the second, so servers and benchmarks use this option.
    pub touch: bool,
}

impl PoolOptions {
    /// `len` bytes with transparent huge pages advised, not touched.
    #[must_use]
    pub const fn of(len: Bytes) -> Self {
        Self { len, huge: HugePages::Advise, touch: false }
    }
}

/// The mapped memory. The pool, engines and their worker threads share it; the last of them unmaps it.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is only an address range; the marks decide which side may touch which bytes when.
unsafe impl Send for Mapping {}
// SAFETY: as above: no method of it reads or writes the memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The address of a byte of the pool. The caller has checked the range against `len`.
    pub(crate) fn address(&self, offset: PoolOffset) -> *mut u8 {
        let offset = index(offset.get());
        assert!(offset <= self.len);
        // SAFETY: offset is inside the mapping or one past its end.
        unsafe { self.base.as_ptr().add(offset) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `map` and has no other owner: the last one is being dropped.
        let returned = unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
        assert!(returned == 0, "bug: the frame pool's own mapping could not be unmapped");
    }
}

/// All memory for the payload of a shard. The module's description has the rules.
pub struct FramePool {
    mapping: Arc<Mapping>,
    marks: Vec<u16>,
    kernel_reads: usize,
    kernel_writes: usize,
    notes: Vec<Note>,
}

impl FramePool {
    /// Maps a pool of zero bytes. [`FramePool::notes`] has the fallbacks.
    ///
    /// # Errors
    /// The kernel's error, usually `ENOMEM`: a smaller pool may be possible.
    ///
    /// # Panics
    /// The length is zero or does not fit into the address space.
    pub fn new(options: PoolOptions) -> Result<Self, Errno> {
        let wanted = index(options.len.get());
        assert!(wanted > 0, "bug: a frame pool without memory");
        let len = wanted.checked_next_multiple_of(HUGE_PAGE).expect("a pool length near the address space's end");
        let mut notes = Vec::new();
        let mapping = map(len, options.huge, &mut notes)?;
        // Child processes get no copy, because they would share pinned pages. Core dumps leave the memory out, because
        // it holds gigabytes of users' data.
        advise(&mapping, libc::MADV_DONTFORK);
        advise(&mapping, libc::MADV_DONTDUMP);
        if options.touch {
            touch(&mapping);
        }
        let marks = vec![0; len / index(SECTOR_BYTES)];
        Ok(Self { mapping: Arc::new(mapping), marks, kernel_reads: 0, kernel_writes: 0, notes })
    }

    /// Number of bytes in the pool.
    #[must_use]
    pub fn len(&self) -> Bytes {
        Bytes(self.mapping.len as u64)
    }

    /// Always false: a pool has memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Notes about fallbacks when the pool was made.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The bytes of a range. Panics if the kernel is writing any of its sectors, or if the range is outside the pool.
    #[must_use]
    pub fn slice(&self, range: PoolRange) -> &[u8] {
        self.check_readable(range);
        // SAFETY: inside the mapping (checked), initialised by the kernel to zero at least, not written by the
        // kernel (checked) nor by safe code while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.mapping.address(range.start), index(range.len.get())) }
    }

    /// The bytes of a range, for writing. Panics if a command on any of its sectors is in flight, or if the range is
    /// outside the pool.
    #[must_use]
    pub fn slice_mut(&mut self, range: PoolRange) -> &mut [u8] {
        self.check_writable(range);
        // SAFETY: inside the mapping, lent to no command (checked), and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address(range.start), index(range.len.get())) }
    }

    /// Several ranges at once, for copies and parity computations: `reads` to read and `writes` to write. The ranges of
    /// `reads` may overlap each other; a range of `writes` may overlap no other. Allocates nothing.
    ///
    /// Panics on more than [`DISJOINT_READS_MAX`] or [`DISJOINT_WRITES_MAX`] ranges, on overlap, and as
    /// [`FramePool::slice`] and [`FramePool::slice_mut`] do.
    pub fn disjoint<R>(
        &mut self,
        reads: &[PoolRange],
        writes: &[PoolRange],
        job: impl FnOnce(&[&[u8]], &mut [&mut [u8]]) -> R,
    ) -> R {
        assert!(reads.len() <= DISJOINT_READS_MAX, "bug: a job with {} sources", reads.len());
        assert!(writes.len() <= DISJOINT_WRITES_MAX, "bug: a job with {} destinations", writes.len());
        for (nth, &write) in writes.iter().enumerate() {
            let clash = reads.iter().chain(&writes[..nth]).find(|other| write.overlaps(**other));
            assert!(clash.is_none(), "bug: a job writes {write:?} and also uses {clash:?}");
            self.check_writable(write);
        }
        let mut sources = [const { MaybeUninit::<&[u8]>::uninit() }; DISJOINT_READS_MAX];
        for (source, &read) in sources.iter_mut().zip(reads) {
            self.check_readable(read);
            // SAFETY: as in `slice`; the job's writes do not overlap it (checked above).
            source
                .write(unsafe { std::slice::from_raw_parts(self.mapping.address(read.start), index(read.len.get())) });
        }
        let mut targets: [&mut [u8]; DISJOINT_WRITES_MAX] = [&mut [], &mut []];
        for (target, &write) in targets.iter_mut().zip(writes) {
            // SAFETY: as in `slice_mut`; no other range of the job overlaps it (checked above).
            *target =
                unsafe { std::slice::from_raw_parts_mut(self.mapping.address(write.start), index(write.len.get())) };
        }
        // SAFETY: the first `reads.len()` elements were written just above.
        let sources = unsafe { std::slice::from_raw_parts(sources.as_ptr().cast::<&[u8]>(), reads.len()) };
        job(sources, &mut targets[..writes.len()])
    }

    /// Does the kernel hold any sector of the range?
    #[must_use]
    pub fn in_flight(&self, range: PoolRange) -> bool {
        self.marks[self.sectors(range)].iter().any(|&mark| mark != 0)
    }

    /// Number of ranges that the kernel holds now, over all engines.
    #[must_use]
    pub fn ranges_in_flight(&self) -> usize {
        self.kernel_reads + self.kernel_writes
    }

    pub(crate) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Marks that the kernel begins to read the range (a write to a drive). Panics as [`FramePool::slice`].
    pub(crate) fn lend_to_read(&mut self, range: PoolRange) {
        self.check_readable(range);
        let sectors = self.sectors(range);
        for mark in &mut self.marks[sectors] {
            assert!(*mark < KERNEL_READS_MAX, "bug: a sector lent to the kernel {KERNEL_READS_MAX} times");
            *mark += 1;
        }
        self.kernel_reads += 1;
    }

    /// Marks that the kernel begins to write the range (a read from a drive). Panics as [`FramePool::slice_mut`].
    pub(crate) fn lend_to_write(&mut self, range: PoolRange) {
        self.check_writable(range);
        let sectors = self.sectors(range);
        self.marks[sectors].fill(KERNEL_WRITES);
        self.kernel_writes += 1;
    }

    /// Marks that the kernel has returned a range that it read.
    pub(crate) fn take_back_read(&mut self, range: PoolRange) {
        let sectors = self.sectors(range);
        for mark in &mut self.marks[sectors] {
            assert!(*mark & KERNEL_WRITES == 0 && *mark > 0, "bug: {range:?} returned that was not lent to read");
            *mark -= 1;
        }
        self.kernel_reads -= 1;
    }

    /// Marks that the kernel has returned a range that it wrote.
    pub(crate) fn take_back_write(&mut self, range: PoolRange) {
        let sectors = self.sectors(range);
        for mark in &mut self.marks[sectors] {
            assert!(*mark == KERNEL_WRITES, "bug: {range:?} returned that was not lent to write");
            *mark = 0;
        }
        self.kernel_writes -= 1;
    }

    fn check_readable(&self, range: PoolRange) {
        let sectors = self.sectors(range);
        if self.kernel_writes > 0 {
            let all = self.marks[sectors].iter().fold(0, |all, mark| all | mark);
            assert!(all & KERNEL_WRITES == 0, "bug: {range:?} is used while the kernel writes it");
        }
    }

    fn check_writable(&self, range: PoolRange) {
        let sectors = self.sectors(range);
        if self.kernel_writes > 0 || self.kernel_reads > 0 {
            let all = self.marks[sectors].iter().fold(0, |all, mark| all | mark);
            assert!(all == 0, "bug: {range:?} is written while a command of the kernel is in flight on it");
        }
    }

    /// The marks of a range, which must be inside the pool.
    fn sectors(&self, range: PoolRange) -> Range<usize> {
        let end = range.start.get().checked_add(range.len.get());
        let end = end.filter(|&end| end <= self.mapping.len as u64);
        let end = end.unwrap_or_else(|| panic!("bug: {range:?} is not inside the pool of {}", self.len()));
        if range.len.is_zero() {
            return 0..0;
        }
        index(range.start.get() / SECTOR_BYTES)..index(end.div_ceil(SECTOR_BYTES))
    }
}

impl fmt::Debug for FramePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FramePool({}, {} ranges with the kernel)", self.len(), self.ranges_in_flight())
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).expect("a pool offset beyond the address space")
}

fn map(len: usize, huge: HugePages, notes: &mut Vec<Note>) -> Result<Mapping, Errno> {
    if huge == HugePages::Reserved {
        match map_anonymous(len, libc::MAP_HUGETLB) {
            Ok(base) => return Ok(Mapping { base, len }),
            Err(error) => notes.push(Note(format!(
                "no reserved huge pages for the frame pool of {} MiB ({error}); using ordinary ones; \
                 raise vm.nr_hugepages to change that",
                len >> 20
            ))),
        }
    }
    let mapping = map_aligned(len)?;
    if huge != HugePages::No {
        advise(&mapping, libc::MADV_HUGEPAGE);
    }
    Ok(mapping)
}

/// Maps ordinary pages at a huge-page boundary: maps more than needed, and unmaps both edges.
fn map_aligned(len: usize) -> Result<Mapping, Errno> {
    let base = map_anonymous(len + HUGE_PAGE, 0)?;
    let before = base.as_ptr().align_offset(HUGE_PAGE);
    let after = HUGE_PAGE - before;
    // SAFETY: base + before + len is inside the mapping of len + HUGE_PAGE bytes just made (before < HUGE_PAGE).
    let (start, end) = unsafe { (base.add(before), base.add(before + len)) };
    for (edge, size) in [(base, before), (end, after)] {
        if size > 0 {
            // SAFETY: the edges belong to the mapping just made, to which no reference exists yet.
            check(unsafe { libc::munmap(edge.as_ptr().cast(), size) })?;
        }
    }
    Ok(Mapping { base: start, len })
}

fn map_anonymous(len: usize, flags: libc::c_int) -> Result<NonNull<u8>, Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    NonNull::new(base.cast()).ok_or(Errno(libc::ENOMEM))
}

/// Gives the kernel advice. If a kernel does not know the advice, only speed or comfort suffers.
fn advise(mapping: &Mapping, advice: libc::c_int) -> bool {
    // SAFETY: the range is the mapping's own; none of the advice used here changes its contents.
    unsafe { libc::madvise(mapping.base.as_ptr().cast(), mapping.len, advice) == 0 }
}

fn touch(mapping: &Mapping) {
    // Linux 5.14 and later do this in one call.
    if advise(mapping, libc::MADV_POPULATE_WRITE) {
        return;
    }
    for offset in (0..mapping.len).step_by(PAGE) {
        // SAFETY: inside the mapping, to which no reference exists yet.
        unsafe { mapping.base.as_ptr().add(offset).write_volatile(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> FramePool {
        FramePool::new(PoolOptions { len: Bytes::mib(2), huge: HugePages::No, touch: true }).expect("2 MiB")
    }

    fn range(start: u64, len: u64) -> PoolRange {
        PoolRange::new(PoolOffset(start), Bytes(len))
    }

    #[test]
    fn a_pool_is_zero_aligned_and_rounded_up() {
        let pool = FramePool::new(PoolOptions { len: Bytes(1), huge: HugePages::Reserved, touch: false }).expect("map");
        assert_eq!(pool.len(), Bytes::mib(2));
        let bytes = pool.slice(range(0, 2 << 20));
        assert_eq!(bytes.as_ptr() as usize % PAGE, 0);
        assert!(bytes.iter().all(|&b| b == 0));
    }

    #[test]
    fn bytes_written_are_read_back_at_the_same_place() {
        let mut pool = pool();
        pool.slice_mut(range(1000, 3)).copy_from_slice(b"abc");
        assert_eq!(pool.slice(range(999, 5)), b"\0abc\0");
        assert_eq!(pool.slice(range(2 << 20, 0)), b"");
    }

    #[test]
    fn disjoint_hands_out_exactly_the_ranges_asked_for() {
        let mut pool = pool();
        for n in 0..256u64 {
            pool.slice_mut(range(n * 512, 512)).fill(u8::try_from(n).expect("below 256"));
        }
        let reads: Vec<_> = (0..256u64).map(|n| range(n * 512, 512)).collect();
        let writes = [range(256 * 512, 512), range(257 * 512, 512)];
        let sum = pool.disjoint(&reads, &writes, |sources, targets| {
            for (source, value) in sources.iter().zip(0u8..=255) {
                assert_eq!(*source, [value; 512]);
                for (target, byte) in targets[0].iter_mut().zip(*source) {
                    *target ^= byte;
                }
            }
            targets[1].fill(9);
            sources.len()
        });
        assert_eq!(sum, 256);
        assert_eq!(pool.slice(writes[0]), [0u8; 512], "0 ^ 1 ^ .. ^ 255 is 0");
        assert_eq!(pool.slice(writes[1]), [9u8; 512]);
    }

    #[test]
    fn disjoint_reads_may_repeat() {
        let mut pool = pool();
        pool.slice_mut(range(0, 4)).copy_from_slice(b"same");
        pool.disjoint(&[range(0, 4), range(0, 4)], &[range(4, 4)], |sources, targets| {
            assert_eq!(sources[0], sources[1]);
            targets[0].copy_from_slice(sources[1]);
        });
        assert_eq!(pool.slice(range(0, 8)), b"samesame");
    }

    #[test]
    #[should_panic(expected = "bug: a job writes")]
    fn a_destination_over_a_source_is_a_bug() {
        pool().disjoint(&[range(0, 513)], &[range(512, 512)], |_, _| ());
    }

    #[test]
    #[should_panic(expected = "bug: a job writes")]
    fn two_destinations_over_each_other_are_a_bug() {
        pool().disjoint(&[], &[range(0, 512), range(511, 512)], |_, _| ());
    }

    #[test]
    #[should_panic(expected = "is not inside the pool")]
    fn a_range_past_the_end_is_a_bug() {
        let _ = pool().slice(range((2 << 20) - 1, 2));
    }

    #[test]
    #[should_panic(expected = "is not inside the pool")]
    fn a_range_that_overflows_is_a_bug() {
        let _ = pool().slice(range(u64::MAX, 2));
    }

    #[test]
    #[should_panic(expected = "while the kernel writes it")]
    fn reading_what_the_kernel_writes_is_a_bug() {
        let mut pool = pool();
        pool.lend_to_write(range(512, 512));
        let _ = pool.slice(range(0, 513));
    }

    #[test]
    #[should_panic(expected = "in flight on it")]
    fn writing_what_the_kernel_reads_is_a_bug() {
        let mut pool = pool();
        pool.lend_to_read(range(0, 512));
        let _ = pool.slice_mut(range(511, 1));
    }

    #[test]
    #[should_panic(expected = "while the kernel writes it")]
    fn a_job_on_what_the_kernel_writes_is_a_bug() {
        let mut pool = pool();
        pool.lend_to_write(range(4096, 4096));
        pool.disjoint(&[range(8191, 1)], &[range(0, 1)], |_, _| ());
    }

    #[test]
    fn ranges_lent_to_read_twice_are_free_after_the_second_return() {
        let mut pool = pool();
        pool.lend_to_read(range(0, 1024));
        pool.lend_to_read(range(512, 1024));
        assert_eq!(pool.slice(range(0, 2048)).len(), 2048, "reading while the kernel reads is fine");
        pool.take_back_read(range(0, 1024));
        assert!(!pool.in_flight(range(0, 512)));
        assert!(pool.in_flight(range(512, 1)));
        pool.take_back_read(range(512, 1024));
        assert_eq!(pool.slice_mut(range(0, 2048)).len(), 2048);
        assert_eq!(pool.ranges_in_flight(), 0);
    }

    #[test]
    fn neighbours_of_a_range_in_flight_stay_usable() {
        let mut pool = pool();
        pool.lend_to_write(range(512, 512));
        pool.slice_mut(range(0, 512)).fill(1);
        pool.slice_mut(range(1024, 512)).fill(2);
        pool.take_back_write(range(512, 512));
        assert_eq!(pool.slice(range(512, 512)), [0u8; 512]);
    }
}
