//! Memory with the size of a drive that stores only the data written to it: the content of a paced member without a
//! file.
//!
//! Pages of zeroes need no memory. It must never exceed its limit: a write that does not fit is refused, as by a full
//! device.

use std::collections::HashMap;

use openraid_core::events::DriveError;
use openraid_units::{Bytes, DriveLba, Sectors};

use super::known_content::{of_blocks, KnownContent};

/// Bytes of a page.
const PAGE: u64 = 4096;
const PAGE_BYTES: usize = 4096;

pub struct SparseMemory {
    pages: HashMap<u64, Box<[u8; PAGE_BYTES]>>,
    pages_max: u64,
}

impl SparseMemory {
    /// A memory that reads as zeroes. It holds at most `most` bytes of other content.
    #[must_use]
    pub fn new(most: Bytes) -> Self {
        Self { pages: HashMap::new(), pages_max: most.get() / PAGE }
    }

    /// Read from a place.
    pub fn read(&self, lba: DriveLba, into: &mut [u8]) {
        for (page, from, part) in parts(lba, into.len()) {
            let into = &mut into[part];
            match self.pages.get(&page) {
                Some(bytes) => into.copy_from_slice(&bytes[from..from + into.len()]),
                None => into.fill(0),
            }
        }
    }

    /// Write to a place.
    ///
    /// # Errors
    /// [`DriveError::NoSpace`]: the limit is reached. Sectors of this write before that stay.
    pub fn write(&mut self, lba: DriveLba, bytes: &[u8]) -> Result<(), DriveError> {
        for (page, from, part) in parts(lba, bytes.len()) {
            let bytes = &bytes[part];
            if !self.pages.contains_key(&page) {
                if bytes.iter().all(|byte| *byte == 0) {
                    continue;
                }
                if self.pages.len() as u64 >= self.pages_max {
                    return Err(DriveError::NoSpace);
                }
            }
            let whole = bytes.len() == PAGE_BYTES;
            if whole && bytes.iter().all(|byte| *byte == 0) {
                self.pages.remove(&page);
                continue;
            }
            let page = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES]));
            page[from..from + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Make sectors zero.
    pub fn zero(&mut self, lba: DriveLba, len: Sectors) {
        let bytes = usize::try_from(len.bytes().get()).unwrap_or(usize::MAX);
        for (page, from, part) in parts(lba, bytes) {
            if part.len() == PAGE_BYTES {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                bytes[from..from + part.len()].fill(0);
            }
        }
    }

    /// The known content of a range.
    #[must_use]
    pub fn known_content(&self, lba: DriveLba, len: Sectors) -> KnownContent {
        of_blocks(lba.get(), len, |page| !self.pages.contains_key(&page))
    }

    /// The memory in use.
    #[must_use]
    pub fn taken(&self) -> Bytes {
        Bytes(self.pages.len() as u64 * PAGE)
    }
}

/// The pages of a range: number, first byte in the page, bytes of the range.
fn parts(lba: DriveLba, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let start = lba.offset().bytes().get();
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = start + done as u64;
        let from = usize::try_from(at % PAGE).expect("less than a page");
        let part = done..len.min(done + PAGE_BYTES - from);
        done = part.end;
        Some((at / PAGE, from, part))
    })
}

impl std::fmt::Debug for SparseMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SparseMemory({} taken)", self.taken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_as_a_plain_stretch_of_memory_and_zeroes_take_nothing() {
        let (mut memory, mut model) = (SparseMemory::new(Bytes::mib(1)), vec![0_u8; 64 * 512]);
        let far = 1 << 40;
        for (at, sectors, byte) in [(3, 2, 1), (7, 10, 2), (60, 4, 3), (8, 1, 0), (0, 24, 5), (8, 8, 0), (1, 1, 0)] {
            let bytes = vec![byte; sectors * 512];
            memory.write(DriveLba(far + at as u64), &bytes).expect("room");
            model[at * 512..(at + sectors) * 512].copy_from_slice(&bytes);
        }
        memory.zero(DriveLba(far + 20), Sectors(3));
        model[20 * 512..23 * 512].fill(0);
        for at in 0..64 {
            for end in at + 1..=64 {
                let mut read = vec![0xee; (end - at) * 512];
                memory.read(DriveLba(far + at as u64), &mut read);
                assert_eq!(read, model[at * 512..end * 512], "{at}..{end}");
            }
        }
        memory.zero(DriveLba(far), Sectors(64));
        assert_eq!(memory.taken(), Bytes(0));
    }

    #[test]
    fn it_never_takes_more_than_its_limit() {
        let mut memory = SparseMemory::new(Bytes(10 * PAGE));
        for page in 0..10 {
            assert_eq!(memory.write(DriveLba(page * 8), &[1; 512]), Ok(()));
        }
        assert_eq!(memory.write(DriveLba(1000 * 8), &[1; 512]), Err(DriveError::NoSpace));
        assert_eq!(memory.write(DriveLba(1000 * 8), &[0; 512]), Ok(()), "zeroes take nothing");
        assert_eq!(memory.write(DriveLba(9 * 8 + 7), &[2; 512]), Ok(()), "a page that is there takes more");
        memory.zero(DriveLba(8), Sectors(8));
        assert_eq!(memory.write(DriveLba(1000 * 8), &[1; 512]), Ok(()), "what was freed can be had");
        assert_eq!(memory.taken(), Bytes(10 * PAGE));
    }
}
