//! A split virtqueue: the guest's table of descriptors, its ring of available heads, and our ring of used ones.
//!
//! ```text
//!  available: flags u16, idx u16, heads [u16; n], used_event u16        descriptor: address u64, len u32, flags u16, next u16
//!  used:      flags u16, idx u16, [head u32, len u32; n], avail_event u16
//! ```

use std::sync::atomic::{fence, Ordering};

use crate::bytes::{le16, le32, le64};
use crate::chain::{Chain, ChainSpan};
use crate::limits::CHAIN_DESCRIPTORS_MAX;
use crate::memory::{GuestMemory, GuestPlace, SharedBytes};
use crate::violation::{MessageViolation, RingFault};

const DESCRIPTOR_BYTES: u64 = 16;
const USED_BYTES: u64 = 8;
/// Place of the index in both rings, and of their first entry.
const INDEX: u64 = 2;
const ENTRIES: u64 = 4;
/// Flags of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// A flag of the available ring: the guest wants no event.
const NO_INTERRUPT: u16 = 1;

/// The addresses of a ring in the front end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingAddresses {
    pub descriptors: u64,
    pub used: u64,
    pub available: u64,
}

/// A ring that runs.
#[derive(Debug)]
pub struct VirtRing {
    entries: u16,
    descriptors: GuestPlace,
    available: GuestPlace,
    used: GuestPlace,
    /// Do both sides say at which index they want an event?
    has_events: bool,
    /// Index of the next available entry to take.
    next: u16,
    /// Index of the next used entry.
    used_index: u16,
    /// The used index at the last look whether the guest wants an event.
    looked: u16,
}

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

/// The places of a ring's parts.
fn places<M: SharedBytes>(
    memory: &GuestMemory<M>,
    addresses: &RingAddresses,
    entries: u16,
) -> Result<(GuestPlace, GuestPlace, GuestPlace), MessageViolation> {
    let entries = u64::from(entries);
    Ok((
        memory.ring_part(addresses.descriptors, DESCRIPTOR_BYTES * entries, 16)?,
        memory.ring_part(addresses.available, ENTRIES + 2 * entries + 2, 2)?,
        memory.ring_part(addresses.used, ENTRIES + USED_BYTES * entries + 2, 4)?,
    ))
}

impl VirtRing {
    /// The ring at these addresses; it continues at the used index that is in the memory.
    pub fn new<M: SharedBytes>(
        memory: &GuestMemory<M>,
        addresses: &RingAddresses,
        entries: u16,
        has_events: bool,
    ) -> Result<Self, MessageViolation> {
        let (descriptors, available, used) = places(memory, addresses, entries)?;
        let used_index = memory.load_u16(used, INDEX);
        let (next, looked) = (used_index, used_index);
        Ok(Self { entries, descriptors, available, used, has_events, next, used_index, looked })
    }

    /// The memory was replaced: find the ring again.
    pub fn move_to<M: SharedBytes>(
        &mut self,
        memory: &GuestMemory<M>,
        addresses: &RingAddresses,
    ) -> Result<(), MessageViolation> {
        (self.descriptors, self.available, self.used) = places(memory, addresses, self.entries)?;
        Ok(())
    }

    pub fn used_index(&self) -> u16 {
        self.used_index
    }
    /// Index of the next available entry to take.
    pub fn next(&self) -> u16 {
        self.next
    }
    pub fn set_next(&mut self, next: u16) {
        self.next = next;
    }

    /// The next available head. It stays available until [`VirtRing::advance`].
    pub fn available<M: SharedBytes>(&self, memory: &GuestMemory<M>) -> Result<Option<u16>, RingFault> {
        let waiting = memory.load_u16(self.available, INDEX).wrapping_sub(self.next);
        if waiting == 0 {
            return Ok(None);
        }
        if waiting > self.entries {
            return Err(RingFault::Available(waiting));
        }
        let nth = u64::from(self.next % self.entries);
        let head = memory.load_u16(self.available, ENTRIES + 2 * nth);
        if head >= self.entries {
            return Err(RingFault::NoDescriptor(head));
        }
        Ok(Some(head))
    }

    pub fn advance(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Ask for an event at the next available entry. True if there is one already.
    pub fn arm<M: SharedBytes>(&self, memory: &GuestMemory<M>) -> bool {
        if self.has_events {
            let place = ENTRIES + USED_BYTES * u64::from(self.entries);
            memory.store_u16(self.used, place, self.next);
            // The guest stores its index and then looks at ours; both orders must be the same for both.
            fence(Ordering::SeqCst);
        }
        memory.load_u16(self.available, INDEX) != self.next
    }

    /// The chain of descriptors that begins at this head. Each descriptor is copied once.
    pub fn chain<M: SharedBytes>(&self, memory: &GuestMemory<M>, head: u16) -> Result<Chain, RingFault> {
        let mut chain = Chain::default();
        let mut table: Option<(u64, u16)> = None;
        let (mut number, mut seen) = (head, 0);
        loop {
            let mut bytes = [0; 16];
            let entries = table.map_or(self.entries, |(_, entries)| entries);
            if number >= entries {
                return Err(RingFault::NoDescriptor(number));
            }
            let offset = DESCRIPTOR_BYTES * u64::from(number);
            match table {
                None => memory.read_at(self.descriptors, offset, &mut bytes),
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

    /// Give a head back to the guest.
    pub fn push<M: SharedBytes>(&mut self, memory: &GuestMemory<M>, head: u16, written: u32) {
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&written.to_le_bytes());
        let nth = u64::from(self.used_index % self.entries);
        memory.write_at(self.used, ENTRIES + USED_BYTES * nth, &entry);
        self.used_index = self.used_index.wrapping_add(1);
        memory.store_u16(self.used, INDEX, self.used_index);
    }

    /// Does the guest want an event for what was pushed since the last call?
    pub fn take_event_wish<M: SharedBytes>(&mut self, memory: &GuestMemory<M>) -> bool {
        let (from, to) = (std::mem::replace(&mut self.looked, self.used_index), self.used_index);
        if from == to {
            return false;
        }
        // Our index is stored before the guest's wish is loaded.
        fence(Ordering::SeqCst);
        if !self.has_events {
            return memory.load_u16(self.available, 0) & NO_INTERRUPT == 0;
        }
        let wish = memory.load_u16(self.available, ENTRIES + 2 * u64::from(self.entries));
        // Was the index of the wish passed?
        to.wrapping_sub(wish).wrapping_sub(1) < to.wrapping_sub(from)
    }
}
