//! Reads from the first sector of a superblock which member it belongs to.
//!
//! A drive that was unreachable for a short time may come back as another drive with the same name, or with data older
//! than its acknowledged writes. One sector is enough to detect this, and the write of one sector is atomic.

use crate::superblock::{at, Superblock, HEADER_BYTES, SUPERBLOCK_MAGIC};
use crate::{little_endian, Uuid};

/// The fields of a superblock that identify the member, and its event count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberIdentity {
    set_uuid: Uuid,
    device_uuid: Uuid,
    dev_number: u32,
    events: u64,
}

impl MemberIdentity {
    /// The identity in a superblock's first sector; `None` without the magic number.
    #[must_use]
    pub fn of_sector(sector: &[u8]) -> Option<Self> {
        if sector.len() < HEADER_BYTES || little_endian::u32_at(sector, at::MAGIC) != SUPERBLOCK_MAGIC {
            return None;
        }
        Some(Self {
            set_uuid: Uuid(little_endian::array(sector, at::SET_UUID)),
            device_uuid: Uuid(little_endian::array(sector, at::DEVICE_UUID)),
            dev_number: little_endian::u32_at(sector, at::DEV_NUMBER),
            events: little_endian::u64_at(sector, at::EVENTS),
        })
    }

    /// Is `later` the same member, with the same or a higher event count?
    #[must_use]
    pub fn is_followed_by(&self, later: &Self) -> bool {
        Self { events: later.events, ..*self } == *later && self.events <= later.events
    }
}

impl From<&Superblock> for MemberIdentity {
    fn from(superblock: &Superblock) -> Self {
        let Superblock { set_uuid, device_uuid, dev_number, events, .. } = *superblock;
        Self { set_uuid, device_uuid, dev_number, events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_followed_by_itself_with_as_many_events_or_more_and_by_no_other() {
        let mut sector = [0; 512];
        assert_eq!(MemberIdentity::of_sector(&sector), None);
        sector[..4].copy_from_slice(&SUPERBLOCK_MAGIC.to_le_bytes());
        sector[at::EVENTS] = 7;
        let first = MemberIdentity::of_sector(&sector).expect("the magic number is there");
        assert_eq!(MemberIdentity::of_sector(&sector[..255]), None);
        let changed = |place: usize, value: u8| {
            let mut sector = sector;
            sector[place] = value;
            MemberIdentity::of_sector(&sector).expect("the magic number is there")
        };
        assert!(first.is_followed_by(&first) && first.is_followed_by(&changed(at::EVENTS, 9)));
        assert!(!first.is_followed_by(&changed(at::EVENTS, 6)));
        for place in [at::SET_UUID, at::DEVICE_UUID + 15, at::DEV_NUMBER] {
            assert!(!first.is_followed_by(&changed(place, 1)));
        }
    }
}
