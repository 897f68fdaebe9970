//! A controller's second read of its journal. Entries are checked when the controller starts. Their content is read
//! again for writing it to the members, without a checksum of its own. Bits that flip between the two reads are the
//! same fault as bits that flip on the members.

use openraid_core::admin::{FoundEntry, FoundJournal};
use openraid_format::{JournalRecord, JOURNAL_ALIGN};
use openraid_units::{DriveLba, Sectors};

use super::Run;

/// The places of an entry's bytes: its own, and those of its copy.
struct EntryPlace<'a> {
    entry: &'a FoundEntry,
    at: DriveLba,
}

/// The offset of a sector in a range on a device, if the range contains the sector.
fn inside(lba: DriveLba, from: DriveLba, sectors: Sectors) -> Option<Sectors> {
    (from <= lba && lba < from + sectors).then(|| lba - from)
}

impl Run<'_> {
    /// Add the rows that get the data of this sector of a device to the suspect rows.
    pub(super) fn suspect_what_is_read_again(&mut self, log: &FoundJournal, lba: DriveLba) {
        self.journal.read_wrong = true;
        let ring = log.superblock.ring();
        let kept = log.kept.iter().map(|kept| EntryPlace { entry: &kept.entry, at: kept.at });
        let of_ring = log.entries.iter().map(|entry| EntryPlace { entry, at: ring.drive_lba(entry.position) });
        let placed: Vec<EntryPlace> = kept.chain(of_ring).collect();
        // Also the place of this sector in the ring before its entry was copied, because older entries are identified
        // by that place.
        let mut places = vec![lba];
        places.extend(placed.iter().filter_map(|placed| {
            let within = inside(lba, placed.at, placed.entry.sectors)?;
            Some(ring.drive_lba(placed.entry.position) + within)
        }));
        for set in &mut self.sets {
            let Some(index) = set.uuid.and_then(|uuid| log.superblock.index_of(uuid)) else { continue };
            let records =
                placed.iter().flat_map(|placed| placed.entry.records.iter().map(|record| (placed.at, *record)));
            for (at, record) in records.filter(|(_, record)| record.array() == index) {
                match record {
                    JournalRecord::Redo { member_lba, sectors, payload_at, .. } => {
                        let within = inside(lba, at + JOURNAL_ALIGN + payload_at, sectors);
                        within.into_iter().for_each(|offset| set.suspect.insert(member_lba + offset, Sectors(1)));
                    }
                    JournalRecord::RedoRef { member_lba, sectors, at, .. } => {
                        let within = places.iter().filter_map(|lba| inside(*lba, ring.drive_lba(at), sectors));
                        within.for_each(|offset| set.suspect.insert(member_lba + offset, Sectors(1)));
                    }
                    JournalRecord::Data { set_lba, sectors, payload_at, .. } => {
                        let within = inside(lba, at + JOURNAL_ALIGN + payload_at, sectors);
                        within.into_iter().for_each(|offset| set.suspect_sector(set_lba + offset));
                    }
                    _ => {}
                }
            }
        }
    }
}
