//! One record of an entry, in 32 bytes.
//!
//! ```text
//!  0 kind u8 | 1 array u8 | 2 slot u16 | 4 payload_at u32 | 8 lba u64 | 16 sectors u64 | 24 ring_sector u64
//! ```
//!
//! A field that its kind does not have is zero. A record of an unknown kind makes the whole journal unusable, because
//! the write of a skipped record would be lost.

use super::error::EntryFault;
use super::ring::RingSector;
use super::{JOURNAL_ARRAYS_MAX, JOURNAL_LBA_END, JOURNAL_PAYLOAD_MAX};
use crate::little_endian;
use crate::role::ROLES_MAX;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 32;

mod at {
    pub const KIND: usize = 0;
    pub const ARRAY: usize = 1;
    pub const SLOT: usize = 2;
    pub const PAYLOAD_AT: usize = 4;
    pub const LBA: usize = 8;
    pub const SECTORS: usize = 16;
    pub const RING_SECTOR: usize = 24;
}
const _: () = assert!(at::RING_SECTOR + 8 == RECORD_BYTES);
/// [`JournalRecord::encode`] writes whole words.
const _: () = assert!(at::LBA == 8 && at::SECTORS == 16 && at::RING_SECTOR == 24);

/// One range of an entry. `array` is an index in the table of the journal's superblock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JournalRecord {
    /// Host data that were acknowledged or may be.
    Data {
        /// Array the range belongs to.
        array: u8,
        /// First sector of the range in the array's data.
        set_lba: SetLba,
        /// Length of the range.
        sectors: Sectors,
        /// Place of the bytes: sectors from the start of this entry's payload.
        payload_at: Sectors,
    },
    /// Bytes (data, P or Q) that a member will get.
    Redo {
        /// Array the member belongs to.
        array: u8,
        /// Slot of the member.
        slot: Slot,
        /// First sector in the member's data area.
        member_lba: MemberLba,
        /// Length of the range.
        sectors: Sectors,
        /// Place of the bytes: sectors from the start of this entry's payload.
        payload_at: Sectors,
    },
    /// As `Redo`, but the bytes are in the payload of an older entry that is not before the tail.
    RedoRef {
        /// Array the member belongs to.
        array: u8,
        /// Slot of the member.
        slot: Slot,
        /// First sector in the member's data area.
        member_lba: MemberLba,
        /// Length of the range.
        sectors: Sectors,
        /// Place of the bytes in the ring.
        at: RingSector,
    },
    /// The range reads as zeroes from this record on.
    Zero {
        /// Array the range belongs to.
        array: u8,
        /// First sector of the range in the array's data.
        set_lba: SetLba,
        /// Length of the range.
        sectors: Sectors,
    },
    /// Older entries no longer apply to the range.
    Revoke {
        /// Array the range belongs to.
        array: u8,
        /// First sector of the range in the array's data.
        set_lba: SetLba,
        /// Length of the range.
        sectors: Sectors,
    },
    /// All older entries of this array are durable on its members.
    Release {
        /// Number of the array in the journal.
        array: u8,
    },
    /// The row was written without this member: older redo records for this range of the member are outdated.
    Outdated {
        /// Array the member belongs to.
        array: u8,
        /// Slot of the member.
        slot: Slot,
        /// First sector in the member's data area.
        member_lba: MemberLba,
        /// Length of the range.
        sectors: Sectors,
    },
}

/// The fields of a record as stored, before they are checked.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Raw {
    kind: u8,
    array: u8,
    slot: u16,
    payload_at: u32,
    lba: u64,
    sectors: u64,
    ring_sector: u64,
}

const DATA: u8 = 1;
const REDO: u8 = 2;
const REDO_REF: u8 = 3;
const ZERO: u8 = 4;
const REVOKE: u8 = 5;
const RELEASE: u8 = 6;
const OUTDATED: u8 = 7;

impl JournalRecord {
    /// The array of the record.
    #[must_use]
    pub const fn array(&self) -> u8 {
        match *self {
            Self::Data { array, .. }
            | Self::Redo { array, .. }
            | Self::RedoRef { array, .. }
            | Self::Zero { array, .. }
            | Self::Revoke { array, .. }
            | Self::Release { array }
            | Self::Outdated { array, .. } => array,
        }
    }

    /// The part of this entry's payload that belongs to the record: sectors from the start of the payload, and a
    /// length. `None` for records without bytes of their own.
    #[must_use]
    pub const fn payload(&self) -> Option<(Sectors, Sectors)> {
        match *self {
            Self::Data { payload_at, sectors, .. } | Self::Redo { payload_at, sectors, .. } => {
                Some((payload_at, sectors))
            }
            Self::RedoRef { .. }
            | Self::Zero { .. }
            | Self::Revoke { .. }
            | Self::Release { .. }
            | Self::Outdated { .. } => None,
        }
    }

    /// Encodes the record.
    ///
    /// # Panics
    /// The place in the payload is larger than any payload.
    pub(super) fn encode(&self, out: &mut [u8; RECORD_BYTES]) {
        let Raw { kind, array, slot, payload_at, lba, sectors, ring_sector } = self.raw();
        let first = u64::from(kind) << (8 * at::KIND)
            | u64::from(array) << (8 * at::ARRAY)
            | u64::from(slot) << (8 * at::SLOT)
            | u64::from(payload_at) << (8 * at::PAYLOAD_AT);
        let (words, _) = out.as_chunks_mut::<8>();
        for (word, number) in words.iter_mut().zip([first, lba, sectors, ring_sector]) {
            *word = number.to_le_bytes();
        }
    }

    /// Decodes the record with this index of an entry. [`Self::check`] checks that its ranges fit the entry.
    pub(super) fn decode(bytes: &[u8; RECORD_BYTES], index: usize) -> Result<Self, EntryFault> {
        let raw = Raw {
            kind: bytes[at::KIND],
            array: bytes[at::ARRAY],
            slot: little_endian::u16_at(bytes, at::SLOT),
            payload_at: little_endian::u32_at(bytes, at::PAYLOAD_AT),
            lba: little_endian::u64_at(bytes, at::LBA),
            sectors: little_endian::u64_at(bytes, at::SECTORS),
            ring_sector: little_endian::u64_at(bytes, at::RING_SECTOR),
        };
        let Some(record) = raw.meaning() else {
            return Err(EntryFault::BadRecord { index, field: "kind", value: raw.kind.into() });
        };
        let back = record.raw();
        let unused = [
            ("slot", raw.slot.into(), back.slot.into()),
            ("payload_at", raw.payload_at.into(), u64::from(back.payload_at)),
            ("lba", raw.lba, back.lba),
            ("sectors", raw.sectors, back.sectors),
            ("ring_sector", raw.ring_sector, back.ring_sector),
        ];
        match unused.into_iter().find(|(_, stored, meant)| stored != meant) {
            Some((field, value, _)) => Err(EntryFault::BadRecord { index, field, value }),
            None => Ok(record),
        }
    }

    /// Can the record stand in an entry with this payload? `reachable` says whether a stretch of the ring lies
    /// between the entry's tail and the entry itself.
    pub(super) fn check(
        &self,
        index: usize,
        payload: Sectors,
        reachable: impl Fn(RingSector, Sectors) -> bool,
    ) -> Result<(), EntryFault> {
        let bad = |field, value| Err(EntryFault::BadRecord { index, field, value });
        let raw = self.raw();
        if usize::from(raw.array) >= JOURNAL_ARRAYS_MAX {
            return bad("array", raw.array.into());
        }
        if usize::from(raw.slot) >= ROLES_MAX {
            return bad("slot", raw.slot.into());
        }
        if matches!(self, Self::Release { .. }) {
            return Ok(());
        }
        let end = raw.lba.checked_add(raw.sectors);
        if raw.sectors == 0 || end.is_none_or(|end| end > JOURNAL_LBA_END) {
            return bad("sectors", raw.sectors);
        }
        if let Some((start, len)) = self.payload() {
            if start.checked_add(len).is_none_or(|end| end > payload) {
                return bad("payload_at", start.get());
            }
        }
        if let Self::RedoRef { at, sectors, .. } = *self {
            if sectors > JOURNAL_PAYLOAD_MAX {
                return bad("sectors", sectors.get());
            }
            if !reachable(at, sectors) {
                return bad("ring_sector", at.0);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn raw(&self) -> Raw {
        let payload_at = |at: Sectors| u32::try_from(at.get()).expect("no payload is that long");
        match *self {
            Self::Data { array, set_lba, sectors, payload_at: place } => Raw {
                kind: DATA,
                array,
                payload_at: payload_at(place),
                lba: set_lba.0,
                sectors: sectors.0,
                ..Raw::default()
            },
            Self::Redo { array, slot, member_lba, sectors, payload_at: place } => Raw {
                kind: REDO,
                array,
                slot: slot.0,
                payload_at: payload_at(place),
                lba: member_lba.0,
                sectors: sectors.0,
                ..Raw::default()
            },
            Self::RedoRef { array, slot, member_lba, sectors, at } => Raw {
                kind: REDO_REF,
                array,
                slot: slot.0,
                lba: member_lba.0,
                sectors: sectors.0,
                ring_sector: at.0,
                ..Raw::default()
            },
            Self::Zero { array, set_lba, sectors } => {
                Raw { kind: ZERO, array, lba: set_lba.0, sectors: sectors.0, ..Raw::default() }
            }
            Self::Revoke { array, set_lba, sectors } => {
                Raw { kind: REVOKE, array, lba: set_lba.0, sectors: sectors.0, ..Raw::default() }
            }
            Self::Release { array } => Raw { kind: RELEASE, array, ..Raw::default() },
            Self::Outdated { array, slot, member_lba, sectors } => {
                Raw { kind: OUTDATED, array, slot: slot.0, lba: member_lba.0, sectors: sectors.0, ..Raw::default() }
            }
        }
    }
}

impl Raw {
    /// The fields as a record; fields that the kind does not have are left out.
    fn meaning(&self) -> Option<JournalRecord> {
        let array = self.array;
        let slot = Slot(self.slot);
        let (set_lba, member_lba) = (SetLba(self.lba), MemberLba(self.lba));
        let sectors = Sectors(self.sectors);
        let payload_at = Sectors(self.payload_at.into());
        Some(match self.kind {
            DATA => JournalRecord::Data { array, set_lba, sectors, payload_at },
            REDO => JournalRecord::Redo { array, slot, member_lba, sectors, payload_at },
            REDO_REF => JournalRecord::RedoRef { array, slot, member_lba, sectors, at: RingSector(self.ring_sector) },
            ZERO => JournalRecord::Zero { array, set_lba, sectors },
            REVOKE => JournalRecord::Revoke { array, set_lba, sectors },
            RELEASE => JournalRecord::Release { array },
            OUTDATED => JournalRecord::Outdated { array, slot, member_lba, sectors },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outdated_record_names_a_member() {
        let record =
            JournalRecord::Outdated { array: 3, slot: Slot(0x0102), member_lba: MemberLba(0x99), sectors: Sectors(8) };
        let mut bytes = [0xa5; RECORD_BYTES];
        record.encode(&mut bytes);
        let mut right = [0; RECORD_BYTES];
        right[..4].copy_from_slice(&[7, 3, 2, 1]);
        (right[8], right[16]) = (0x99, 8);
        assert_eq!(bytes, right);
        assert_eq!(JournalRecord::decode(&right, 0), Ok(record));
        assert_eq!((record.payload(), record.array()), (None, 3));
        assert_eq!(record.check(0, Sectors::ZERO, |_, _| false), Ok(()));
        right[24] = 1;
        let fault = EntryFault::BadRecord { index: 0, field: "ring_sector", value: 1 };
        assert_eq!(JournalRecord::decode(&right, 0), Err(fault));
    }
}
