//! What the devices of a journal held when they were found.

use alloc::vec::Vec;
use openraid_format::{JournalEntry, JournalRecord, JournalRing, JournalSuperblock, LogPlace, RingSector};
use openraid_units::{DriveId, DriveLba, Sectors, SetId};

/// The owner of the journal's drives, in the place of a set.
pub(crate) const JOURNAL_SET: SetId = SetId(u16::MAX);

/// An entry that a driver has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundEntry {
    /// Position of its header.
    pub position: RingSector,
    /// Sectors of the ring that it takes.
    pub sectors: Sectors,
    /// The first entry that was needed when it was written. Its references are not older.
    pub tail: u64,
    /// Its records.
    pub records: Vec<JournalRecord>,
}

impl FoundEntry {
    pub(super) fn of(entry: &JournalEntry, ring: &JournalRing) -> Self {
        let header = &entry.header;
        let (position, sectors, tail) = (header.position, header.sectors(ring), header.tail.sequence);
        Self { position, sectors, tail, records: entry.records().collect() }
    }
}

/// An entry that was copied out of the ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptEntry {
    /// Sequence number of the entry.
    pub sequence: u64,
    /// Where its header is now.
    pub at: DriveLba,
    /// The entry as it was in the ring.
    pub entry: FoundEntry,
}

/// The content of a journal's devices, as a driver has found it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundJournal {
    /// The devices, each with its number in the superblock; the log of the first was followed.
    pub devices: Vec<(DriveId, u8)>,
    /// The superblock that counts.
    pub superblock: JournalSuperblock,
    /// The place of the first entry that counts.
    pub tail: LogPlace,
    /// The place of the next entry. If the log was discarded, its number is above all numbers that were seen.
    pub head: LogPlace,
    /// The highest epoch that was seen.
    pub epoch: u64,
    /// The entries from the tail on.
    pub entries: Vec<FoundEntry>,
    /// Older entries, which were copied out of the ring.
    pub kept: Vec<KeptEntry>,
}
