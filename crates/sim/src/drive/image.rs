//! Bytes at sparse addresses: the content of a medium.
//!
//! Only written pages take memory, so a drive may have terabytes. Unwritten bytes are zeroes, or the junk of a used
//! drive. Junk is a function of the address, so each read returns the same bytes.

use std::collections::BTreeMap;

use openraid_units::{Bytes, DriveLba, Sectors};

use crate::random::mix;

pub const PAGE_BYTES: u64 = 64 << 10;

/// Bytes that one step copies between images; less than a page.
const COPY_BYTES: usize = 4096;

/// The content of unwritten places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreshContent {
    /// Zeroes: a new drive.
    Zeroes,
    /// Junk of a used drive, from this seed.
    Junk(u64),
}

impl FreshContent {
    /// Fill `out` with the bytes at `at`; both are multiples of 8.
    fn fill(self, at: u64, out: &mut [u8]) {
        match self {
            Self::Zeroes => out.fill(0),
            Self::Junk(seed) => {
                let (words, _) = out.as_chunks_mut::<8>();
                let mut place = at;
                for word in words {
                    *word = mix(seed ^ place).to_le_bytes();
                    place += 8;
                }
            }
        }
    }
}

/// A medium's content.
#[derive(Clone, Debug)]
pub struct Image {
    pages: BTreeMap<u64, Box<[u8]>>,
    fresh: FreshContent,
}

impl Image {
    /// A medium without written bytes.
    #[must_use]
    pub fn new(fresh: FreshContent) -> Self {
        Self { pages: BTreeMap::new(), fresh }
    }

    /// Number of pages with bytes.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Read from `lba`; `out` is a whole number of sectors.
    pub fn read(&self, lba: DriveLba, out: &mut [u8]) {
        for_each_piece(lba.offset().bytes(), out.len(), |page, within, range| match self.pages.get(&page) {
            Some(bytes) => out[range.clone()].copy_from_slice(&bytes[within..within + range.len()]),
            None => self.fresh.fill(page * PAGE_BYTES + within as u64, &mut out[range]),
        });
    }

    /// Write from `lba`; `bytes` is a whole number of sectors.
    pub fn write(&mut self, lba: DriveLba, bytes: &[u8]) {
        for_each_piece(lba.offset().bytes(), bytes.len(), |page, within, range| {
            self.page_mut(page)[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Copy a range from `other`.
    pub fn copy_from(&mut self, other: &Self, lba: DriveLba, len: Sectors) {
        let mut piece = [0; COPY_BYTES];
        let (mut at, end) = (lba, lba + len);
        while at < end {
            let bytes = (end - at).bytes().get().min(COPY_BYTES as u64);
            let piece = &mut piece[..within_page(bytes)];
            other.read(at, piece);
            self.write(at, piece);
            at += Bytes(bytes).sectors_floor();
        }
    }

    /// Let a range of any length read as zero.
    pub fn zero(&mut self, lba: DriveLba, len: Sectors) {
        let (start, end) = (lba.offset().bytes().get(), (lba + len).offset().bytes().get());
        let mut at = start;
        while at < end {
            let page = at / PAGE_BYTES;
            let stop = end.min((page + 1) * PAGE_BYTES);
            if stop - at == PAGE_BYTES && self.fresh == FreshContent::Zeroes {
                self.pages.remove(&page);
            } else if self.fresh != FreshContent::Zeroes || self.pages.contains_key(&page) {
                self.page_mut(page)[within_page(at)..][..within_page(stop - at - 1) + 1].fill(0);
            }
            at = stop;
        }
    }

    fn page_mut(&mut self, page: u64) -> &mut [u8] {
        let fresh = self.fresh;
        self.pages.entry(page).or_insert_with(|| {
            let mut bytes = vec![0; within_page(PAGE_BYTES - 1) + 1].into_boxed_slice();
            fresh.fill(page * PAGE_BYTES, &mut bytes);
            bytes
        })
    }
}

#[allow(clippy::cast_possible_truncation)] // below PAGE_BYTES
const fn within_page(at: u64) -> usize {
    (at % PAGE_BYTES) as usize
}

/// Split `len` bytes at `at` into pieces of one page each: page number, offset in the page, range of the buffer.
fn for_each_piece(at: Bytes, len: usize, mut piece: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let here = at.get() + done as u64;
        let within = within_page(here);
        let count = (within_page(PAGE_BYTES - 1) + 1 - within).min(len - done);
        piece(here / PAGE_BYTES, within, done..done + count);
        done += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn an_image_reads_as_a_flat_array_of_bytes() {
        const SECTORS: u64 = 1024;
        for fresh in [FreshContent::Zeroes, FreshContent::Junk(3)] {
            let mut image = Image::new(fresh);
            let mut flat = vec![0; 512 * 1024];
            image.read(DriveLba(0), &mut flat);
            let mut random = Random::new(1);
            for _ in 0..500 {
                let start = random.below(SECTORS);
                let len = random.between(1, (SECTORS - start).min(300));
                let range = usize::try_from(start * 512).unwrap()..usize::try_from((start + len) * 512).unwrap();
                match random.below(3) {
                    0 => {
                        image.zero(DriveLba(start), Sectors(len));
                        flat[range].fill(0);
                    }
                    1 => {
                        random.fill(&mut flat[range.clone()]);
                        image.write(DriveLba(start), &flat[range]);
                    }
                    _ => {
                        let mut out = vec![1; range.len()];
                        image.read(DriveLba(start), &mut out);
                        assert_eq!(out, flat[range]);
                    }
                }
            }
        }
    }

    #[test]
    fn high_addresses_and_large_zeroed_ranges_take_no_memory() {
        let mut image = Image::new(FreshContent::Zeroes);
        image.write(DriveLba(1 << 40), &[7; 512]);
        assert_eq!(image.pages(), 1);
        image.zero(DriveLba((1 << 40) - 128), Sectors(1 << 22));
        assert_eq!(image.pages(), 0);
        let mut out = [1; 512];
        image.read(DriveLba(1 << 40), &mut out);
        assert_eq!(out, [0; 512]);
    }
}
