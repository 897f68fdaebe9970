//! RAID 0: chunks in turn over all members.
//!
//! If members are unequal, the set is a row of *zones*: in the first zone all members take part, up to the end of the
//! smallest one; in the next zone the remaining ones, and so on. md changed its mind about the member with which a zone
//! begins: see [`StripedLayout`].
//!
//! Two roundings of md are kept. Each member counts in whole chunks. And the size of the set is the sum of `size AND
//! NOT (chunk - 1)` over the members, which for a chunk that is not a power of two clears bits that have nothing to do
//! with chunks: such a set ends before its last zone.

use super::{check_capacity, Fragment, GeometryError, SetSpec};
use alloc::vec::Vec;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// The member with which a zone begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripedLayout {
    /// md's layout 1: chunks are counted from the start of the set.
    Original,
    /// md's layout 2: the count starts again with every zone.
    Alternate,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Zone {
    /// First chunk of the set in this zone, and the chunk after its last one.
    start: u64,
    end: u64,
    /// Chunks of the member before this zone, the same for all its members.
    member_start: u64,
    /// The place of the zone's first chunk in the list of members.
    turn: usize,
    /// The members that reach into this zone, in the order of slots.
    slots: Vec<u8>,
}

/// RAID 0 over equal or unequal members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Striped {
    members: u16,
    chunk: Sectors,
    /// The logarithm of a chunk that is a power of two: a shift is cheaper than a division.
    shift: Option<u32>,
    capacity: Sectors,
    zones: Vec<Zone>,
}

impl Striped {
    pub(super) fn new(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        let chunk = spec.chunk;
        if chunk.is_zero() {
            return Err(GeometryError::ChunkZero);
        }
        spec.check_member_sizes(chunk)?;
        let chunks: Vec<u64> = spec.member_sizes.iter().map(|size| *size / chunk).collect();
        let mask = !(chunk.0 - 1);
        let capacity = chunks.iter().map(|count| Sectors((chunk * *count).0 & mask)).sum();
        check_capacity(capacity)?;
        if capacity.is_zero() {
            let size = chunk * chunks[0];
            return Err(GeometryError::SizeTooSmall { slot: None, size, least: Sectors(chunk.0.next_power_of_two()) });
        }
        let mut zones = zones_of(&chunks);
        // The map is the same for both layouts if only the first zone has more than one member.
        if zones.get(1).is_some_and(|zone| zone.slots.len() > 1) {
            let layout = match spec.layout {
                1 => StripedLayout::Original,
                2 => StripedLayout::Alternate,
                layout => return Err(GeometryError::StripedLayout { layout }),
            };
            turn(&mut zones, layout);
        }
        let shift = chunk.0.is_power_of_two().then(|| chunk.0.trailing_zeros());
        Ok(Self { members: spec.members, chunk, shift, capacity, zones })
    }
    /// Size of the set.
    #[must_use]
    pub const fn capacity(&self) -> Sectors {
        self.capacity
    }
    /// Number of slots.
    #[must_use]
    pub const fn members(&self) -> u16 {
        self.members
    }
    /// The chunk.
    #[must_use]
    pub const fn chunk(&self) -> Sectors {
        self.chunk
    }
    /// One chunk on every member.
    #[must_use]
    pub fn full_stripe(&self) -> Sectors {
        self.chunk * u64::from(self.members)
    }
    /// The piece from `at` to the end of its chunk, or to the end of the set if that comes first.
    #[must_use]
    pub fn map(&self, at: SetLba) -> Fragment {
        assert!(at.0 < self.capacity.0, "{at:?} is outside a striped set of {}", self.capacity);
        let (chunk, within) = self.divide(at.0);
        let index = self.zones.iter().position(|zone| chunk < zone.end);
        let zone = &self.zones[index.expect("the zones reach to the capacity at least")];
        let width = zone.slots.len() as u64;
        let (row, place) = ((chunk - zone.start) / width, (chunk - zone.start) % width);
        let mut place = usize::try_from(place).expect("below the number of members") + zone.turn;
        if place >= zone.slots.len() {
            place -= zone.slots.len();
        }
        let lba = MemberLba((zone.member_start + row) * self.chunk.0 + within);
        let len = (self.chunk.0 - within).min(self.capacity.0 - at.0);
        Fragment { slot: Slot(u16::from(zone.slots[place])), lba, len: Sectors(len) }
    }
    /// The address in the set of `at` on the member in `slot`, and the length for which it continues; `None` for an
    /// unused tail.
    #[must_use]
    pub fn inverse(&self, slot: Slot, at: MemberLba) -> Option<(SetLba, Sectors)> {
        let (member_chunk, within) = self.divide(at.0);
        let zone = self.zones.iter().rev().find(|zone| zone.member_start <= member_chunk)?;
        let place = zone.slots.iter().position(|other| u16::from(*other) == slot.0)?;
        let width = zone.slots.len() as u64;
        let row = member_chunk - zone.member_start;
        if row >= (zone.end - zone.start) / width {
            return None;
        }
        let place = (place + zone.slots.len() - zone.turn) % zone.slots.len();
        let chunk = zone.start + row * width + place as u64;
        let start = SetLba(chunk * self.chunk.0 + within);
        let run = self.capacity.saturating_sub(start.offset()).min(Sectors(self.chunk.0 - within));
        (!run.is_zero()).then_some((start, run))
    }

    /// Quotient and rest by the chunk.
    const fn divide(&self, sectors: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (sectors >> shift, sectors & (self.chunk.0 - 1)),
            None => (sectors / self.chunk.0, sectors % self.chunk.0),
        }
    }
}

/// The zones over members of these numbers of chunks, every turn still zero.
fn zones_of(chunks: &[u64]) -> Vec<Zone> {
    let mut zones = Vec::new();
    let (mut start, mut member_start) = (0, 0);
    while let Some(member_end) = chunks.iter().copied().filter(|count| *count > member_start).min() {
        let slots: Vec<u8> =
            (0..).zip(chunks).filter(|(_, count)| **count > member_start).map(|(slot, _)| slot).collect();
        let end = start + (member_end - member_start) * slots.len() as u64;
        zones.push(Zone { start, end, member_start, turn: 0, slots });
        (start, member_start) = (end, member_end);
    }
    zones
}

fn turn(zones: &mut [Zone], layout: StripedLayout) {
    for zone in zones {
        let turn = match layout {
            StripedLayout::Original => zone.start % zone.slots.len() as u64,
            StripedLayout::Alternate => 0,
        };
        zone.turn = usize::try_from(turn).expect("below the number of members");
    }
}
