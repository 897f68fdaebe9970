//! Guest memory: regions of shared files, found by guest address for payload and by the front end's address for rings.
//!
//! All bytes change at any time. Each access copies; nothing here hands out a reference to shared memory.

use crate::limits::{GUEST_BYTES_MAX, REGIONS_MAX, REGION_ALIGN};
use crate::violation::{MessageViolation, RingFault};

/// Mapped memory that others change at any time. An access outside of it is a bug of the caller.
pub trait SharedBytes {
    /// Copy bytes out, each of them once.
    fn read(&self, at: u64, into: &mut [u8]);
    /// Copy bytes in.
    fn write(&self, at: u64, from: &[u8]);
    /// A number at an even place, which is loaded before all that is loaded later.
    fn load_u16(&self, at: u64) -> u16;
    /// The same for a store, which is done after all that was stored before.
    fn store_u16(&self, at: u64, value: u16);
}

/// What a session needs of its surroundings.
pub trait Platform {
    /// A file that came with a message.
    type File;
    /// A mapping of one.
    type Memory: SharedBytes;

    /// Map a part of a file. The part must not be able to vanish while it is mapped.
    ///
    /// # Errors
    /// Why the file cannot be used.
    fn map(&mut self, file: &Self::File, offset: u64, len: u64) -> Result<Self::Memory, String>;

    /// A new file of zeros in memory that can be mapped as above, and its mapping.
    ///
    /// # Errors
    /// There is no memory.
    fn new_file(&mut self, len: u64) -> Result<(Self::File, Self::Memory), String>;

    /// Report from now on when this event is rung.
    ///
    /// # Errors
    /// It is not such an event, or there are too many.
    fn watch(&mut self, kick: &Self::File) -> Result<(), String>;

    /// Report it no longer.
    fn unwatch(&mut self, kick: &Self::File);

    /// Is this a channel by which messages can be sent to the front end?
    ///
    /// # Errors
    /// Why not.
    fn check_channel(&self, channel: &Self::File) -> Result<(), String>;

    /// Send it a message. Returns whether the channel has taken all of it at once.
    fn send(&mut self, channel: &Self::File, message: &[u8]) -> bool;

    /// Ring this event.
    fn ring(&mut self, call: &Self::File);
}

/// The memory that a request names was removed. The connection has to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestGone;

/// A region as a message describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionPlace {
    /// Its first guest address.
    pub guest: u64,
    pub len: u64,
    /// Its first address in the front end.
    pub user: u64,
    /// Its first byte in the file.
    pub offset: u64,
}

#[derive(Debug)]
struct Region<M> {
    place: RegionPlace,
    memory: M,
}

/// A place inside one region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestPlace {
    region: usize,
    at: u64,
}

/// All memory of a guest.
#[derive(Debug)]
pub struct GuestMemory<M> {
    regions: Vec<Region<M>>,
}

impl<M> Default for GuestMemory<M> {
    fn default() -> Self {
        Self { regions: Vec::new() }
    }
}

/// Check that regions are possible, before anything is mapped.
pub fn check_regions(places: &[RegionPlace]) -> Result<(), MessageViolation> {
    if places.is_empty() || places.len() > REGIONS_MAX {
        return Err(MessageViolation::Regions(u32::try_from(places.len()).unwrap_or(u32::MAX)));
    }
    for (nth, place) in places.iter().enumerate() {
        let ends = [place.guest, place.user, place.offset].map(|start| start.checked_add(place.len));
        if place.len == 0 || ends.contains(&None) {
            return Err(MessageViolation::Region(place.guest));
        }
        if !place.offset.is_multiple_of(REGION_ALIGN) {
            return Err(MessageViolation::FileOffset(place.offset));
        }
        let overlaps = |start: u64, other: u64, len: u64| start < other + len && other < start + place.len;
        for other in &places[..nth] {
            if overlaps(place.guest, other.guest, other.len) || overlaps(place.user, other.user, other.len) {
                return Err(MessageViolation::Overlap(place.guest.max(other.guest)));
            }
        }
    }
    match places.iter().fold(0_u64, |sum, place| sum.saturating_add(place.len)) {
        bytes if bytes > GUEST_BYTES_MAX => Err(MessageViolation::GuestBytes(bytes)),
        _ => Ok(()),
    }
}

impl<M: SharedBytes> GuestMemory<M> {
    /// Memory of these regions, which were checked.
    pub fn new(regions: Vec<(RegionPlace, M)>) -> Self {
        Self { regions: regions.into_iter().map(|(place, memory)| Region { place, memory }).collect() }
    }

    /// The place of a ring's part, by the front end's address. It has to be in one region.
    pub fn ring_part(&self, user: u64, len: u64, align: u64) -> Result<GuestPlace, MessageViolation> {
        let fits = |region: &Region<M>| {
            let at = user.checked_sub(region.place.user)?;
            (at.checked_add(len)? <= region.place.len).then_some(at)
        };
        let found = self.regions.iter().enumerate().find_map(|(nth, region)| Some((nth, fits(region)?)));
        // The parts are loaded and stored as aligned numbers, in the guest's view and in ours.
        match found {
            Some((region, at)) if user.is_multiple_of(align) && at.is_multiple_of(align) => {
                Ok(GuestPlace { region, at })
            }
            _ => Err(MessageViolation::RingPlace(user)),
        }
    }

    pub fn read_at(&self, place: GuestPlace, offset: u64, into: &mut [u8]) {
        self.regions[place.region].memory.read(place.at + offset, into);
    }

    pub fn write_at(&self, place: GuestPlace, offset: u64, from: &[u8]) {
        self.regions[place.region].memory.write(place.at + offset, from);
    }

    pub fn load_u16(&self, place: GuestPlace, offset: u64) -> u16 {
        self.regions[place.region].memory.load_u16(place.at + offset)
    }

    pub fn store_u16(&self, place: GuestPlace, offset: u64, value: u16) {
        self.regions[place.region].memory.store_u16(place.at + offset, value);
    }

    /// The region of a guest address, the place inside of it, and the number of bytes from there to its end.
    fn find(&self, guest: u64) -> Result<(&M, u64, u64), RingFault> {
        let region = self.regions.iter().find(|region| {
            let place = &region.place;
            guest >= place.guest && guest - place.guest < place.len
        });
        let region = region.ok_or(RingFault::Unmapped(guest))?;
        let at = guest - region.place.guest;
        Ok((&region.memory, at, region.place.len - at))
    }

    /// Is all of this range mapped?
    pub fn check(&self, mut guest: u64, mut len: u64) -> Result<(), RingFault> {
        while len > 0 {
            let (_, _, left) = self.find(guest)?;
            let part = left.min(len);
            len -= part;
            guest = guest.checked_add(part).ok_or(RingFault::Unmapped(guest))?;
        }
        Ok(())
    }

    /// Copy bytes out.
    pub fn read(&self, mut guest: u64, mut into: &mut [u8]) -> Result<(), RingFault> {
        while !into.is_empty() {
            let (memory, at, left) = self.find(guest)?;
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
            let (now, rest) = into.split_at_mut(part);
            memory.read(at, now);
            into = rest;
            guest = guest.checked_add(part as u64).ok_or(RingFault::Unmapped(guest))?;
        }
        Ok(())
    }

    /// Copy bytes in.
    pub fn write(&self, mut guest: u64, mut from: &[u8]) -> Result<(), RingFault> {
        while !from.is_empty() {
            let (memory, at, left) = self.find(guest)?;
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(from.len());
            let (now, rest) = from.split_at(part);
            memory.write(at, now);
            from = rest;
            guest = guest.checked_add(part as u64).ok_or(RingFault::Unmapped(guest))?;
        }
        Ok(())
    }
}
