//! A chain of descriptors that was copied from a ring: bytes to read, then bytes to write.

use crate::memory::{GuestMemory, SharedBytes};
use crate::violation::RingFault;

/// A range of guest memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainSpan {
    pub at: u64,
    pub len: u32,
}

/// The ranges of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    readable: Vec<ChainSpan>,
    writable: Vec<ChainSpan>,
    readable_bytes: u64,
    writable_bytes: u64,
}

impl Chain {
    pub fn add(&mut self, span: ChainSpan, is_writable: bool) -> Result<(), RingFault> {
        let (spans, bytes) = match is_writable {
            true => (&mut self.writable, &mut self.writable_bytes),
            false if self.writable.is_empty() => (&mut self.readable, &mut self.readable_bytes),
            false => return Err(RingFault::Order),
        };
        spans.push(span);
        *bytes += u64::from(span.len);
        Ok(())
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
        let readable = parts(&self.readable, head, self.readable_bytes - head);
        let all = readable.chain(parts(&self.writable, 0, self.writable_bytes - tail));
        all.fold((0, 0), |(count, longest), (_, len)| (count + 1, longest.max(len)))
    }

    /// Copy bytes out of the readable part, from byte `first` on. They have to be there.
    pub fn read<M: SharedBytes>(
        &self,
        memory: &GuestMemory<M>,
        first: u64,
        mut into: &mut [u8],
    ) -> Result<(), RingFault> {
        for (at, len) in parts(&self.readable, first, into.len() as u64) {
            let (now, rest) = into.split_at_mut(len);
            memory.read(at, now)?;
            into = rest;
        }
        assert!(into.is_empty(), "bug: more is read than the chain has");
        Ok(())
    }

    /// Copy bytes into the writable part, from byte `first` on. There has to be room.
    pub fn write<M: SharedBytes>(&self, memory: &GuestMemory<M>, first: u64, mut from: &[u8]) -> Result<(), RingFault> {
        for (at, len) in parts(&self.writable, first, from.len() as u64) {
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
