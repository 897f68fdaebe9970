//! The chain of descriptors of a request: followed through the table of a ring, or through a table of its own. First come bytes to
//! read, then bytes to write. A chain that loops ends at the limit of [`CHAIN_DESCRIPTORS_MAX`].

use crate::bytes::{le16, le32, le64};
use crate::limits::CHAIN_DESCRIPTORS_MAX;
use crate::memory::{GuestMemory, GuestPlace, SharedBytes};
use crate::violation::RingFault;

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = 16;
/// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

#[derive(Clone, Copy)]
struct Descriptor {
    at: u64,
    len: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn of(bytes: &[u8; 16]) -> Self {
        Self { at: le64(bytes, 0), len: le32(bytes, 8), flags: le16(bytes, 12), next: le16(bytes, 14) }
    }
}

/// A range of guest memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ChainSpan {
    at: u64,
    len: u32,
}

/// The ranges of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    /// The readable ones, then the writable ones.
    spans: Vec<ChainSpan>,
    /// Number of the readable ones.
    readable: usize,
    readable_bytes: u64,
    writable_bytes: u64,
}

impl Chain {
    /// Follow the descriptors from this head of a ring's table to their end. Each descriptor is copied once.
    pub fn walk<M: SharedBytes>(
        memory: &GuestMemory<M>,
        descriptors: GuestPlace,
        ring_entries: u16,
        head: u16,
    ) -> Result<Self, RingFault> {
        let mut chain = Self::default();
        let mut table: Option<(u64, u16)> = None;
        let (mut number, mut seen) = (head, 0);
        loop {
            let mut bytes = [0; 16];
            let entries = table.map_or(ring_entries, |(_, entries)| entries);
            if number >= entries {
                return Err(RingFault::NoDescriptor(number));
            }
            let offset = DESCRIPTOR_BYTES * u64::from(number);
            match table {
                None => memory.read_at(descriptors, offset, &mut bytes),
                Some((at, _)) => {
                    memory.read(at.checked_add(offset).ok_or(RingFault::Unmapped(at))?, &mut bytes)?;
                }
            }
            let descriptor = Descriptor::of(&bytes);
            if descriptor.flags & INDIRECT != 0 {
                let count = u64::from(descriptor.len) / DESCRIPTOR_BYTES;
                let is_whole = u64::from(descriptor.len) == count * DESCRIPTOR_BYTES && count > 0;
                // A table is the end of its chain here, as guests make it.
                if table.is_some() || !is_whole || descriptor.flags & NEXT != 0 {
                    return Err(RingFault::Table(descriptor.len));
                }
                let count = count.min(u64::from(u16::MAX));
                table = Some((descriptor.at, u16::try_from(count).expect("just limited")));
                number = 0;
                continue;
            }
            seen += 1;
            if seen > CHAIN_DESCRIPTORS_MAX {
                return Err(RingFault::ChainTooLong);
            }
            memory.check(descriptor.at, u64::from(descriptor.len))?;
            chain.add(ChainSpan { at: descriptor.at, len: descriptor.len }, descriptor.flags & WRITE != 0)?;
            if descriptor.flags & NEXT == 0 {
                return Ok(chain);
            }
            number = descriptor.next;
        }
    }

    fn add(&mut self, span: ChainSpan, is_writable: bool) -> Result<(), RingFault> {
        let bytes = match is_writable {
            true => &mut self.writable_bytes,
            false if self.spans.len() == self.readable => {
                self.readable += 1;
                &mut self.readable_bytes
            }
            false => return Err(RingFault::Order),
        };
        *bytes += u64::from(span.len);
        self.spans.push(span);
        Ok(())
    }

    fn readable(&self) -> &[ChainSpan] {
        &self.spans[..self.readable]
    }
    fn writable(&self) -> &[ChainSpan] {
        &self.spans[self.readable..]
    }

    pub fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }
    pub fn writable_bytes(&self) -> u64 {
        self.writable_bytes
    }

    /// The ranges of the payload: how many, and the length of the longest. It is between `head` readable bytes and `tail` writable
    /// ones, which have to be there.
    pub fn payload_ranges(&self, head: u64, tail: u64) -> (usize, usize) {
        let readable = parts(self.readable(), head, self.readable_bytes - head);
        let all = readable.chain(parts(self.writable(), 0, self.writable_bytes - tail));
        all.fold((0, 0), |(count, longest), (_, len)| (count + 1, longest.max(len)))
    }

    /// Copy bytes out of the readable part, from byte `first` on. They have to be there.
    pub fn read<M: SharedBytes>(
        &self,
        memory: &GuestMemory<M>,
        first: u64,
        mut into: &mut [u8],
    ) -> Result<(), RingFault> {
        for (at, len) in parts(self.readable(), first, into.len() as u64) {
            let (now, rest) = into.split_at_mut(len);
            memory.read(at, now)?;
            into = rest;
        }
        assert!(into.is_empty(), "bug: more is read than the chain has");
        Ok(())
    }

    /// Copy bytes into the writable part, from byte `first` on. There has to be room.
    pub fn write<M: SharedBytes>(&self, memory: &GuestMemory<M>, first: u64, mut from: &[u8]) -> Result<(), RingFault> {
        for (at, len) in parts(self.writable(), first, from.len() as u64) {
            let (now, rest) = from.split_at(len);
            memory.write(at, now)?;
            from = rest;
        }
        assert!(from.is_empty(), "bug: more is written than the chain has room for");
        Ok(())
    }
}

/// The addresses and lengths of `len` bytes from byte `first` on.
fn parts(spans: &[ChainSpan], first: u64, len: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
    let (mut skip, mut left) = (first, len);
    spans.iter().filter_map(move |span| {
        let skipped = skip.min(u64::from(span.len));
        skip -= skipped;
        let part = (u64::from(span.len) - skipped).min(left);
        left -= part;
        // The whole span was found in the memory, so its addresses do not wrap.
        (part > 0).then(|| (span.at + skipped, usize::try_from(part).expect("it is in memory")))
    })
}
