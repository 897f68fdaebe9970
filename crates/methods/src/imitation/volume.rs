//! The layout of files on a file system: a model of NTFS and FAT32, as far as it determines the places of requests.
//!
//! ```text
//!  NTFS    [files ->                ] [$LogFile] [MFT: 1 KiB a file ->] [indices, bitmap] [files]
//!          0                        1/3 - 64 MB  1/3                    1/3 + zone
//!  FAT32   [FAT 1][FAT 2][directories and files ->                                      ]
//! ```
//!
//! Files get the next free clusters one after the other (4 KiB with NTFS, 16 KiB with FAT32 at 32 GB). The host's lazy
//! writer writes their descriptions in batches: NTFS writes the MFT pages of the batch, a page of an index, the bitmap,
//! and its log before them; FAT32 writes the touched page of both FATs and of the directory. Reading a file needs its
//! MFT page (four files each) or directory page (64 files each), unless that was read just before. The metadata of a
//! growing file are written again and again: NTFS keeps its length in the MFT and in the log, FAT32 its clusters in
//! both FATs.
//!
//! The host's own time does not depend on the array: opening or creating a file and closing it, and copying its bytes
//! between the program and the file cache.

use crate::cell::FileSystem;
use openraid_units::Nanos;

/// Size of a partition of the file-copy test.
pub const PARTITION_BYTES: u64 = 32_000_000_000 / PAGE * PAGE;
/// The host reads and writes metadata of files in pages of this size.
pub(super) const PAGE: u64 = 4096;
/// Number of files whose metadata are written together: for NTFS, which also has a log, and for FAT32.
const BATCH_FILES: (u64, u64) = (16, 64);
/// Size of a file's MFT record in bytes.
pub(super) const RECORD_BYTES: u64 = 1024;
/// Size of NTFS's log in bytes.
const LOG_BYTES: u64 = 64 << 20;
/// Size of the indices, which end where the bitmap begins. Both are at the end of the MFT's area, unless that is too
/// small.
const INDEX_BYTES: u64 = 64 << 20;
/// Size of the bitmap; see [`INDEX_BYTES`].
const BITMAP_BYTES: u64 = 2 << 20;
/// The MFT's area is this fraction of the partition, as NTFS reserves it.
const MFT_SHARE: u64 = 8;
/// Number of directory entries in a FAT32 page: each long name has two entries of 32 bytes.
const ENTRIES_PER_PAGE: u64 = 64;

/// Number of bytes of a growing file between two updates of its metadata: NTFS, FAT32 (a page of the FAT).
const GROWTH_BYTES: (u64, u64) = (4 << 20, 16 << 20);
/// Time of the host and the test program for each file that is opened and read: NTFS, FAT32. Names are looked up in
/// metadata that were read before, one after the other. Calibrated, see docs/lab/calibration.md.
const OPEN_TIME: (Nanos, Nanos) = (Nanos::from_micros(6_000), Nanos::from_micros(5_000));
/// Time of the host and the test program for each file that is created and written: its metadata stay in memory until
/// later.
const MAKE_TIME: (Nanos, Nanos) = (Nanos::from_micros(3_500), Nanos::from_micros(3_000));
/// Time to copy one KiB through the file cache. MSR-TR-2000-55, table 11, buffered, gives 6 to 7 us on a machine that
/// is assumed to be four times as slow as that of the reviews (as in models/hosts). The measurement was on NTFS; FAT32
/// is assumed to cost a tenth less.
const COPY_NANOS_PER_KIB: (u64, u64) = (1_600, 1_440);

/// A formatted partition.
#[derive(Clone, Debug)]
pub struct Partition {
    fs: FileSystem,
    start: u64,
    len: u64,
    /// Offset of the next free byte in the file area.
    free: u64,
    /// Number of files that were created or read.
    files: u64,
    /// Number of pages of the log that were written.
    log: u64,
    /// Number of bytes of files since the last read of the FAT.
    since_fat: u64,
    /// Number of bytes of the growing file that the metadata cover.
    noted: u64,
    /// First byte of the batch that is not yet written.
    batch_start: u64,
}

impl Partition {
    /// A new partition at an offset of the target.
    #[must_use]
    pub fn new(fs: FileSystem, start: u64, len: u64) -> Self {
        let mut volume = Self { fs, start, len, free: 0, files: 0, log: 0, since_fat: 0, noted: 0, batch_start: 0 };
        volume.free = match fs {
            // The boot file and the first indices.
            FileSystem::Ntfs => 1 << 20,
            FileSystem::Fat32 => 2 * volume.fat_bytes() + (1 << 20),
        };
        volume.batch_start = volume.free;
        volume
    }

    /// Skips this number of bytes, as files that were created before would occupy them.
    pub fn skip(&mut self, bytes: u64) {
        let bytes = bytes.next_multiple_of(self.cluster());
        self.take(bytes);
        self.batch_start = self.free;
    }

    /// Area of the MFT and the structures next to it.
    const fn zone(&self) -> u64 {
        self.len / MFT_SHARE / PAGE * PAGE
    }

    /// The page of a file's record, counted from the start of the MFT. If a partition has too few pages for its files,
    /// the first pages are used again.
    fn record_page(&self, file: u64) -> u64 {
        file * RECORD_BYTES / PAGE * PAGE % (self.zone() / 4 / PAGE * PAGE)
    }

    /// Size of the log. It is smaller if it would take more than a twelfth of the partition.
    fn log_bytes(&self) -> u64 {
        LOG_BYTES.min(self.len / 12 / PAGE * PAGE)
    }

    const fn cluster(&self) -> u64 {
        match self.fs {
            FileSystem::Ntfs => 4096,
            FileSystem::Fat32 => 16 << 10,
        }
    }

    fn fat_bytes(&self) -> u64 {
        (self.len / self.cluster() * 4).next_multiple_of(PAGE)
    }

    fn mft_start(&self) -> u64 {
        self.len / 3 / PAGE * PAGE
    }

    fn mft_end(&self) -> u64 {
        self.mft_start() + self.zone()
    }

    /// The place on the target of the next file with this size.
    pub fn place(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.next_multiple_of(self.cluster());
        self.start + self.take(bytes)
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let (low, high) = match self.fs {
            FileSystem::Ntfs => (self.mft_start() - self.log_bytes(), self.mft_end()),
            FileSystem::Fat32 => (self.len, self.len),
        };
        if self.free < low && self.free + bytes > low {
            self.free = high;
        }
        if self.free + bytes > self.len {
            // The partition is full: the next file begins at the start again, as if an earlier set had been deleted.
            self.free = 1 << 20;
        }
        let place = self.free;
        self.free += bytes;
        place
    }

    /// The reads before the data of a file: place and length.
    pub fn look_up(&mut self) -> Vec<(u64, u64)> {
        let number = self.files;
        self.files += 1;
        match self.fs {
            FileSystem::Ntfs => {
                let per_page = PAGE / RECORD_BYTES;
                let mut pages = Vec::new();
                if number.is_multiple_of(30) {
                    pages.push((self.start + self.index_page(number / 30), PAGE));
                }
                if number.is_multiple_of(per_page) {
                    pages.push((self.start + self.mft_start() + self.record_page(number), PAGE));
                }
                pages
            }
            FileSystem::Fat32 => {
                let mut pages = Vec::new();
                if number.is_multiple_of(ENTRIES_PER_PAGE) {
                    pages.push((self.start + self.directory_page(number), PAGE));
                }
                // One page of the FAT describes 1024 clusters.
                let fat_page = self.free / self.cluster() * 4 / PAGE * PAGE;
                if self.since_fat != fat_page {
                    self.since_fat = fat_page;
                    pages.push((self.start + fat_page.min(self.fat_bytes() - PAGE), PAGE));
                }
                pages
            }
        }
    }

    const fn of<T: Copy>(&self, (ntfs, fat32): (T, T)) -> T {
        match self.fs {
            FileSystem::Ntfs => ntfs,
            FileSystem::Fat32 => fat32,
        }
    }

    /// Time of the host for a file that is read, written, or both.
    #[must_use]
    pub const fn own_time(&self, reads: bool, writes: bool) -> Nanos {
        let open = if reads { self.of(OPEN_TIME).get() } else { 0 };
        let make = if writes { self.of(MAKE_TIME).get() } else { 0 };
        Nanos(open + make)
    }

    /// Time of the host for bytes that pass through its file cache.
    #[must_use]
    pub const fn copy_time(&self, bytes: u64) -> Nanos {
        Nanos(self.of(COPY_NANOS_PER_KIB) * bytes / 1024)
    }

    /// The writes that record the present length of a file that is being written.
    pub fn grown(&mut self, bytes: u64) -> Vec<(u64, u64)> {
        let step = self.of(GROWTH_BYTES);
        if bytes < step {
            self.noted = 0;
        }
        if bytes < self.noted + step {
            return Vec::new();
        }
        self.noted = bytes / step * step;
        match self.fs {
            FileSystem::Ntfs => {
                let log = self.next_log();
                let mft = self.mft_start() + self.record_page(self.files);
                vec![(self.start + log, 4 * PAGE), (self.start + mft, PAGE)]
            }
            FileSystem::Fat32 => {
                let fat = self.fat_page(self.free);
                vec![(self.start + fat, PAGE), (self.start + self.fat_bytes() + fat, PAGE)]
            }
        }
    }

    /// The place of the next pages in NTFS's log.
    fn next_log(&mut self) -> u64 {
        let log = self.mft_start() - self.log_bytes() + self.log * PAGE % self.log_bytes();
        self.log += 4;
        log
    }

    /// The page of the FAT that describes the cluster of this byte.
    fn fat_page(&self, byte: u64) -> u64 {
        (byte / self.cluster() * 4 / PAGE * PAGE).min(self.fat_bytes() - PAGE)
    }

    /// The writes that record a new file: place and length. There are none before the end of a batch.
    pub fn note_down(&mut self, bytes: u64) -> Vec<(u64, u64)> {
        let number = self.files;
        self.files += 1;
        // A file of many megabytes does not wait for other files.
        let large = bytes > (16 << 20);
        let batch = self.of(BATCH_FILES);
        if !self.files.is_multiple_of(batch) && !large {
            return Vec::new();
        }
        let mut pages = Vec::new();
        match self.fs {
            FileSystem::Ntfs => {
                let log = self.next_log();
                let first = if large { number } else { number + 1 - batch };
                let mft = self.mft_start() + self.record_page(first);
                let length = if large { PAGE } else { (batch * RECORD_BYTES).next_multiple_of(PAGE) };
                pages.push((self.start + log, 4 * PAGE));
                pages.push((self.start + mft, length));
                pages.push((self.start + self.index_page(number / 30), PAGE));
                let bitmap = self.mft_end() - BITMAP_BYTES.min(self.zone() / 16 / PAGE * PAGE);
                pages.push((self.start + bitmap + self.batch_start / self.cluster() / 8 / PAGE * PAGE, PAGE));
            }
            FileSystem::Fat32 => {
                let fat = self.fat_page(self.batch_start);
                pages.push((self.start + fat, PAGE));
                pages.push((self.start + self.fat_bytes() + fat, PAGE));
                pages.push((self.start + self.directory_page(number), PAGE));
            }
        }
        self.batch_start = self.free;
        pages
    }

    /// The indices are in the file area near the MFT.
    fn index_page(&self, number: u64) -> u64 {
        let room = INDEX_BYTES.min(self.zone() / 2 / PAGE * PAGE);
        self.mft_end() - room + number % 4096 * PAGE % (room / 2)
    }

    fn directory_page(&self, file: u64) -> u64 {
        2 * self.fat_bytes() + file / ENTRIES_PER_PAGE % 128 * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_one_another_and_never_overlap_metadata() {
        for fs in [FileSystem::Ntfs, FileSystem::Fat32] {
            let mut volume = Partition::new(fs, 0, PARTITION_BYTES);
            let mut before = 0;
            for number in 0..3000u64 {
                let bytes = 4096 + number * 4001;
                let place = volume.place(bytes);
                assert!(place >= before && place + bytes <= PARTITION_BYTES);
                before = place + bytes;
                for (page, len) in volume.note_down(bytes) {
                    assert!(page + len <= PARTITION_BYTES && page.is_multiple_of(PAGE), "{fs} {page}");
                    assert!(page >= before || page + len <= place || fs == FileSystem::Ntfs);
                }
            }
        }
    }

    #[test]
    fn fat_writes_both_copies_and_ntfs_its_log_first() {
        let mut fat = Partition::new(FileSystem::Fat32, 0, PARTITION_BYTES);
        let mut ntfs = Partition::new(FileSystem::Ntfs, 0, PARTITION_BYTES);
        let notes = |volume: &mut Partition| -> Vec<Vec<(u64, u64)>> {
            (0..128).map(|_| (volume.place(4096), volume.note_down(4096)).1).filter(|pages| !pages.is_empty()).collect()
        };
        let fat_notes = notes(&mut fat);
        assert_eq!(fat_notes.len(), 2);
        assert_eq!(fat_notes[0][1].0 - fat_notes[0][0].0, fat.fat_bytes());
        let ntfs_notes = notes(&mut ntfs);
        assert_eq!(ntfs_notes[1][0].0 - ntfs_notes[0][0].0, 4 * PAGE, "the log goes on");
        assert_eq!(ntfs_notes[1][1].0 - ntfs_notes[0][1].0, BATCH_FILES.0 * RECORD_BYTES);
    }
}
