//! The places of host data that are lost when the journal entries of an array are discarded.

use std::collections::BTreeMap;

use openraid_core::admin::{FoundEntry, FoundJournal};
use openraid_format::{JournalRecord, Uuid};
use openraid_units::{Sectors, SetLba};

use super::find::entries_of;

/// A range of a set that may differ on the members from the acknowledged writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRange {
    /// Identity of the set: of the array, or of a span of it.
    pub set_uuid: Uuid,
    /// Its start in the set's data.
    pub at: SetLba,
    pub len: Sectors,
}

/// Host data that the members of some arrays may lack: by set, in order, adjacent ranges joined. The members may have
/// much of it already, because the log records that later. If an array with parity lacks a member, the rest of the same
/// stripes is lost too, because their parity may be old or new.
#[must_use]
pub fn lost_ranges(journal: &FoundJournal, arrays: &[Uuid]) -> Vec<LostRange> {
    let superblock = &journal.superblock;
    let mut lost = Vec::new();
    for set_uuid in arrays {
        let Some(index) = superblock.index_of(*set_uuid) else { continue };
        let counts = |sequence: u64| superblock.counts(index, sequence);
        let entries = entries_of(journal).filter(|(sequence, _)| counts(*sequence)).map(|(_, entry)| entry);
        let ranges = promised(entries, index).0;
        let range =
            |(from, to): (u64, u64)| LostRange { set_uuid: *set_uuid, at: SetLba(from), len: Sectors(to - from) };
        lost.extend(ranges.into_iter().map(range));
    }
    lost
}

/// The acknowledged ranges of the array with this index in some entries, oldest first.
fn promised<'a>(entries: impl Iterator<Item = &'a FoundEntry>, index: u8) -> Ranges {
    let mut ranges = Ranges::default();
    for record in entries.flat_map(|entry| &entry.records).filter(|record| record.array() == index) {
        match *record {
            // A revoked range has newer content, which is in the member writes next to this record.
            JournalRecord::Data { set_lba, sectors, .. }
            | JournalRecord::Zero { set_lba, sectors, .. }
            | JournalRecord::Revoke { set_lba, sectors, .. } => {
                ranges.add(set_lba.get(), set_lba.get() + sectors.get());
            }
            JournalRecord::Release { .. } => ranges = Ranges::default(),
            JournalRecord::Redo { .. } | JournalRecord::RedoRef { .. } | JournalRecord::Outdated { .. } => {}
        }
    }
    ranges
}

/// Ranges that neither overlap nor touch: where each begins, and where it ends.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn add(&mut self, mut from: u64, mut to: u64) {
        while let Some((&begin, &end)) = self.0.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            self.0.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.0.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_format::RingSector;

    fn data(from: u64, len: u64) -> JournalRecord {
        JournalRecord::Data { array: 3, set_lba: SetLba(from), sectors: Sectors(len), payload_at: Sectors::ZERO }
    }

    fn ranges(records: &[JournalRecord]) -> Vec<(u64, u64)> {
        let entry = |records: &[JournalRecord]| FoundEntry {
            position: RingSector(0),
            sectors: Sectors(8),
            tail: 0,
            records: records.to_vec(),
        };
        let entries: Vec<FoundEntry> = records.chunks(2).map(entry).collect();
        promised(entries.iter(), 3).0.into_iter().collect()
    }

    #[test]
    fn ranges_that_touch_are_one_and_those_of_others_do_not_count() {
        let other = JournalRecord::Zero { array: 2, set_lba: SetLba(0), sectors: Sectors(1000) };
        assert_eq!(ranges(&[data(8, 8), data(24, 8), data(16, 8), other]), [(8, 32)]);
        assert_eq!(ranges(&[data(8, 8), data(24, 8), data(40, 8), data(12, 30)]), [(8, 48)]);
        let revoked = JournalRecord::Revoke { array: 3, set_lba: SetLba(90), sectors: Sectors(6) };
        let zero = JournalRecord::Zero { array: 3, set_lba: SetLba(96), sectors: Sectors(4) };
        assert_eq!(ranges(&[data(8, 8), revoked, zero]), [(8, 16), (90, 100)]);
        assert_eq!(ranges(&[data(8, 8), JournalRecord::Release { array: 3 }, zero]), [(96, 100)]);
    }

    /// Against one bit for each sector.
    #[test]
    fn ranges_are_what_single_sectors_are() {
        const END: usize = 64;
        let mut state = 1_u64;
        for round in 1..200 {
            let (mut ranges, mut plain) = (Ranges::default(), [false; END]);
            for _ in 0..round % 16 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (from, len) = ((state >> 40) % 56, 1 + (state >> 50) % 8);
                ranges.add(from, from + len);
                (from..from + len).for_each(|at| plain[usize::try_from(at).unwrap()] = true);
            }
            let mut runs: Vec<(u64, u64)> = Vec::new();
            for at in (0..END as u64).zip(plain).filter(|(_, lost)| *lost).map(|(at, _)| at) {
                match runs.last_mut() {
                    Some((_, end)) if *end == at => *end += 1,
                    _ => runs.push((at, at + 1)),
                }
            }
            assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), runs);
        }
    }
}
