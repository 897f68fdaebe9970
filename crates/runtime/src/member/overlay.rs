//! Writes to a member that are kept in memory, so that an array can be tried without any write to its members.
//!
//! ```text
//!  write --> pages of 4 KiB with a mark for each sector that was written
//!  read  --> the member itself, then the marked sectors on top
//! ```
//!
//! It must never pass a write on, and never use more memory than its limit: a member whose writes do not fit reports
//! that there is no space.

use std::collections::BTreeMap;

use openraid_core::events::DriveError;
use openraid_units::{DriveLba, SECTOR_BYTES};

use crate::limits::OVERLAY_BYTES_MAX;

const PAGE_SECTORS: u64 = 8;
const PAGE_BYTES: usize = 4096;
const SECTOR: usize = 512;

const _: () = assert!(PAGE_SECTORS * SECTOR_BYTES == PAGE_BYTES as u64 && SECTOR as u64 == SECTOR_BYTES);

#[derive(Debug)]
struct Page {
    /// Bit n: sector n of the page was written.
    written: u8,
    bytes: Box<[u8; PAGE_BYTES]>,
}

/// The writes.
#[derive(Debug, Default)]
pub struct Overlay {
    pages: BTreeMap<u64, Page>,
}

impl Overlay {
    /// Keep a write of whole sectors from `lba` on.
    ///
    /// # Errors
    /// [`DriveError::NoSpace`]: the limit is reached. Sectors of this write that were kept before stay.
    pub fn write(&mut self, lba: DriveLba, bytes: &[u8]) -> Result<(), DriveError> {
        for (sector, content) in (lba.get()..).zip(bytes.chunks_exact(SECTOR)) {
            let (page, within) = (sector / PAGE_SECTORS, index(sector % PAGE_SECTORS));
            if !self.pages.contains_key(&page) && self.pages.len() >= OVERLAY_BYTES_MAX / PAGE_BYTES {
                return Err(DriveError::NoSpace);
            }
            let page = self.pages.entry(page).or_insert_with(|| Page { written: 0, bytes: Box::new([0; PAGE_BYTES]) });
            page.written |= 1 << within;
            page.bytes[within * SECTOR..][..SECTOR].copy_from_slice(content);
        }
        Ok(())
    }

    /// Put the kept writes over data that was read from `lba` on.
    pub fn patch(&self, lba: DriveLba, bytes: &mut [u8]) {
        let end = lba.get() + bytes.len() as u64 / SECTOR_BYTES;
        for (number, page) in self.pages.range(lba.get() / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)) {
            for within in 0..PAGE_SECTORS {
                let sector = number * PAGE_SECTORS + within;
                if page.written >> within & 1 == 1 && (lba.get()..end).contains(&sector) {
                    let content = &page.bytes[index(within) * SECTOR..][..SECTOR];
                    bytes[index(sector - lba.get()) * SECTOR..][..SECTOR].copy_from_slice(content);
                }
            }
        }
    }
}

fn index(sectors: u64) -> usize {
    usize::try_from(sectors).expect("within one transfer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_sectors_are_read_back_and_all_others_come_from_the_member() {
        let mut overlay = Overlay::default();
        let mut model = vec![0xee; 64 * SECTOR];
        let writes = [(3, 2, 1), (7, 10, 2), (60, 4, 3), (8, 1, 4), (0, 1, 5)];
        for (lba, sectors, byte) in writes {
            let bytes = vec![byte; sectors * SECTOR];
            overlay.write(DriveLba(lba), &bytes).expect("room");
            let start = index(lba) * SECTOR;
            model[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        for lba in 0..64 {
            for end in lba + 1..=64 {
                let mut read = vec![0xee; (end - lba) * SECTOR];
                overlay.patch(DriveLba(lba as u64), &mut read);
                assert_eq!(read, model[lba * SECTOR..end * SECTOR], "{lba}..{end}");
            }
        }
    }

    #[test]
    fn it_never_takes_more_memory_than_its_limit() {
        let mut overlay = Overlay::default();
        let pages = OVERLAY_BYTES_MAX / PAGE_BYTES;
        let sector = [1; SECTOR];
        for page in 0..pages as u64 {
            overlay.write(DriveLba(page * PAGE_SECTORS), &sector).expect("room");
        }
        let beyond = DriveLba(pages as u64 * PAGE_SECTORS);
        assert_eq!(overlay.write(beyond, &sector), Err(DriveError::NoSpace));
        assert_eq!(overlay.write(DriveLba(1), &sector), Ok(()), "a page that is there takes more");
    }
}
