//! A split virtqueue: the guest's table of descriptors, its ring of available heads, and our ring of used ones.
//!
//! ```text
//!  available: flags u16, idx u16, heads [u16; n], used_event u16        descriptor: address u64, len u32, flags u16, next u16
//!  used:      flags u16, idx u16, [head u32, len u32; n], avail_event u16
//! ```

use std::sync::atomic::{fence, Ordering};

use crate::chain::{Chain, DESCRIPTOR_BYTES};
use crate::memory::{GuestMemory, GuestPlace, SharedBytes};
use crate::violation::{MessageViolation, RingFault};

const USED_BYTES: u64 = 8;
/// Place of the index in both rings, and of their first entry.
const INDEX: u64 = 2;
const ENTRIES: u64 = 4;
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

    /// The chain of descriptors that begins at this head.
    pub fn chain<M: SharedBytes>(&self, memory: &GuestMemory<M>, head: u16) -> Result<Chain, RingFault> {
        Chain::walk(memory, self.descriptors, self.entries, head)
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
