//! The plan of PPL recovery: the rows whose parity must be computed again. Pure: typed headers in, a list of rows out.
//!
//! An entry describes a rectangle of a stripe: `pp_size` bytes of rows, and `data_size / pp_size` columns beginning
//! with that of `data_sector`. Without partial parity it covers all columns. Source: kernel
//! `Documentation/driver-api/md/raid5-ppl.rst`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_format::{FeatureMap, PplEntry, PplLog, Superblock, PPL_HEADER_SECTORS};
use openraid_units::{Sectors, Slot, StripeIndex, SECTOR_BYTES};

use super::{Candidate, Membership};
use crate::geometry::{Geometry, Parity};

/// The content of the area of a member's partial parity log, as a driver found it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PplArea {
    /// It could not be read.
    Unreadable,
    /// There is no log: none was ever written, or its last write was interrupted.
    Nothing,
    /// The log that counts.
    Log(Box<PplLog>),
}

/// One entry to apply: the parity of these rows is computed again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PplRedo {
    /// The slot of the log, which is the slot of the parity.
    pub slot: Slot,
    /// Distance in sectors from the start of the log's area to the partial parity; `None` if the entry covers all
    /// columns.
    pub at: Option<Sectors>,
    /// The stripe.
    pub stripe: StripeIndex,
    /// First row of it.
    pub lo: u32,
    /// The row after the last one.
    pub hi: u32,
    /// First column that was being written.
    pub first: u16,
    /// Number of columns that were being written.
    pub columns: u16,
    /// CRC-32C of the partial parity.
    pub checksum: u32,
}

/// The partial parity logs of a planned set.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PlannedPpl {
    /// Entries to apply before the set takes requests, in order.
    pub redo: Vec<PplRedo>,
    /// The highest generation that was found.
    pub generation: u64,
    /// When the entries are applied, nothing else is inconsistent.
    pub covers: bool,
    /// The set was not stopped cleanly.
    pub dirty: bool,
    /// Start it even if something cannot be read.
    pub force: bool,
}

/// Plan the recovery from the logs; `None` if the set has none.
pub(super) fn plan_ppl(
    candidates: &[Candidate],
    verdicts: &[Membership],
    common: &Superblock,
    geometry: &Geometry,
    force: bool,
) -> Option<PlannedPpl> {
    let Geometry::Parity(parity) = geometry else { return None };
    if !common.features.intersects(FeatureMap::PPL | FeatureMap::MULTIPLE_PPLS) {
        return None;
    }
    let mut plan = PlannedPpl { dirty: common.resync_position().is_some(), force, ..PlannedPpl::default() };
    let (mut sound, mut armed) = (true, false);
    for (candidate, verdict) in candidates.iter().zip(verdicts) {
        let (Membership::Member(slot) | Membership::Forced(slot) | Membership::Rebuilding(slot, _)) = *verdict else {
            continue;
        };
        match &candidate.ppl {
            None | Some(PplArea::Unreadable) => sound = false,
            Some(PplArea::Nothing) => {}
            Some(PplArea::Log(log)) => {
                armed |= log.header.generation > 0;
                plan.generation = plan.generation.max(log.header.generation);
                if plan.dirty {
                    let area = candidate.superblock.ppl_area().map_or(Sectors::ZERO, |(_, size)| size);
                    sound &= entries_of(log, slot, area, parity, &mut plan.redo);
                }
            }
        }
    }
    plan.covers = sound && armed;
    Some(plan)
}

/// Append the rows of a log; false if an entry is invalid.
fn entries_of(log: &PplLog, slot: Slot, area: Sectors, parity: &Parity, redo: &mut Vec<PplRedo>) -> bool {
    let mut sound = true;
    let mut at = log.at + PPL_HEADER_SECTORS;
    for entry in log.header.entries() {
        let payload = Sectors(u64::from(entry.pp_size) / SECTOR_BYTES);
        match redo_of(entry, slot, at, parity).filter(|_| at + payload <= area) {
            Some(entry) => redo.push(entry),
            None => sound = false,
        }
        at += payload;
    }
    sound
}

fn redo_of(entry: &PplEntry, slot: Slot, at: Sectors, parity: &Parity) -> Option<PplRedo> {
    let (partial, data) = (u64::from(entry.pp_size), u64::from(entry.data_size));
    let all = u64::from(parity.data_columns());
    let rows = if partial > 0 { partial } else { data / all };
    let columns = data.checked_div(rows)?;
    let whole = rows.is_multiple_of(SECTOR_BYTES) && columns * rows == data && columns > 0;
    if !whole || entry.data_sector.get() >= parity.capacity().get() {
        return None;
    }
    let (stripe, first, lo) = parity.locate(entry.data_sector);
    let hi = lo + Sectors(rows / SECTOR_BYTES);
    let fits = hi <= parity.chunk() && u64::from(first) + columns <= all;
    let owns = parity.p_slot(stripe) == slot && entry.parity_disk == u32::from(slot.0);
    (fits && owns).then(|| PplRedo {
        slot,
        at: (partial > 0).then_some(at),
        stripe,
        lo: u32::try_from(lo.get()).expect("a chunk is small"),
        hi: u32::try_from(hi.get()).expect("a chunk is small"),
        first,
        columns: u16::try_from(columns).expect("at most all columns"),
        checksum: entry.checksum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Level, SetSpec};
    use openraid_units::SetLba;

    /// The example of the kernel's document: the first stripe of four members with chunks of 16 KiB, two columns
    /// written from row 8 to the end.
    #[test]
    fn an_entry_is_a_rectangle_of_its_stripe() {
        let spec = SetSpec {
            level: Level::Raid5,
            members: 4,
            chunk: Sectors::kib(16),
            layout: 2,
            member_size: Sectors::mib(1),
            member_sizes: &[],
        };
        let Geometry::Parity(parity) = Geometry::new(&spec).unwrap() else { panic!("RAID 5 has parity") };
        let entry = PplEntry {
            data_sector: SetLba(8),
            pp_size: 3 * 4096,
            data_size: 2 * 3 * 4096,
            parity_disk: 3,
            checksum: 7,
        };
        let redo = redo_of(&entry, Slot(3), Sectors(8), &parity);
        let right = PplRedo {
            slot: Slot(3),
            at: Some(Sectors(8)),
            stripe: StripeIndex(0),
            lo: 8,
            hi: 32,
            first: 0,
            columns: 2,
            checksum: 7,
        };
        assert_eq!(redo, Some(right));
        let full = PplEntry { data_sector: SetLba(0), pp_size: 0, data_size: 3 * 16384, ..entry };
        let whole = PplRedo { at: None, lo: 0, columns: 3, ..right };
        assert_eq!(redo_of(&full, Slot(3), Sectors(8), &parity), Some(whole));
        // In the log of another member, beyond the chunk, beyond the columns, in parts of sectors, empty, far away.
        assert_eq!(redo_of(&entry, Slot(2), Sectors(8), &parity), None);
        for wrong in [
            PplEntry { pp_size: 4 * 4096, data_size: 8 * 4096, ..entry },
            PplEntry { data_sector: SetLba(72), pp_size: 512, data_size: 1024, ..entry },
            PplEntry { pp_size: 100, data_size: 200, ..entry },
            PplEntry { data_size: 0, ..entry },
            PplEntry { pp_size: 0, data_size: 0, ..entry },
            PplEntry { data_sector: SetLba(u64::MAX), ..entry },
            PplEntry { parity_disk: 1, ..entry },
        ] {
            assert_eq!(redo_of(&wrong, Slot(3), Sectors(8), &parity), None, "{wrong:?}");
        }
    }
}
