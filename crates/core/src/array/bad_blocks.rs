//! The bad-block log of a member in memory: ranges that cannot be read, or that must not be used for recovery.
//!
//! The list has sectors of the drive, as the log on disk, and is sorted by position. A range that the log on disk cannot express is not entered, and the caller is
//! informed. If the log has no room for the exact list, sectors that are not bad are recorded too. No bad sector is left out.

use alloc::vec::Vec;
use openraid_format::{BadBlockPlace, FeatureMap, Superblock, BAD_BLOCK_LENGTH_MAX};
use openraid_units::{DriveLba, MemberLba, Sectors};

use crate::limits::{BAD_BLOCKS_MAX, BAD_BLOCKS_PER_SECTOR};

/// A bad range of a member, in sectors of its data area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadRange {
    /// First bad sector.
    pub at: MemberLba,
    /// Number of bad sectors.
    pub len: Sectors,
}

/// The place of a member's log, if it can be written. A log in units other than sectors is read and obeyed, but not
/// changed (mdadm makes none).
pub(crate) fn writable_log(superblock: &Superblock) -> Option<BadBlockPlace> {
    superblock.bad_block_log().filter(|log| log.shift == 0)
}

/// A range of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DriveRange {
    at: DriveLba,
    len: Sectors,
}

impl DriveRange {
    /// The range of `len` sectors from `at` on.
    pub(crate) const fn of(at: DriveLba, len: Sectors) -> Self {
        Self { at, len }
    }

    /// Its first sector.
    pub(crate) const fn at(self) -> DriveLba {
        self.at
    }

    /// Length of the range.
    pub(crate) const fn len(self) -> Sectors {
        self.len
    }

    fn new(from: u64, to: u64) -> Self {
        Self { at: DriveLba(from), len: Sectors(to - from) }
    }
    fn bounds(self) -> (u64, u64) {
        (self.at.get(), self.at.get() + self.len.get())
    }
}

/// The bad ranges of one list.
#[derive(Debug)]
pub(crate) struct BadList {
    ranges: Vec<DriveRange>,
    /// Maximum number of entries of the log; 0 if the member keeps none.
    max: usize,
    /// The log on the drive is older than this list.
    pub(super) dirty: bool,
    /// The log is being written.
    pub(super) writing: bool,
    /// The log on the drive lacks a range, and writes must not be acknowledged until it has that range.
    pub(super) urgent: bool,
    /// The log was written to the drive at least once, so the superblock may announce it.
    stored: bool,
}

impl BadList {
    /// The list of a member with this superblock and this start of its data, from the entries of its log.
    pub(crate) fn new(superblock: Option<&Superblock>, data: DriveLba, known: &[BadRange]) -> Self {
        let log = superblock.and_then(writable_log);
        let max = log.map_or(0, |log| (usize::from(log.size) * BAD_BLOCKS_PER_SECTOR).min(BAD_BLOCKS_MAX));
        let stored = superblock.is_some_and(|superblock| superblock.features.contains(FeatureMap::BAD_BLOCKS));
        let known: Vec<_> = known.iter().map(|bad| DriveRange { at: data + bad.at.offset(), len: bad.len }).collect();
        Self { stored, ..Self::with_room(max, &known) }
    }

    /// May the superblock announce the log? The area of a log that was never written has old content, or on a full file
    /// system no space, and an array with such a member does not start.
    pub(crate) fn is_announced(&self) -> bool {
        self.stored && !self.ranges.is_empty()
    }

    /// The log is on the drive; true if it was not before, so that no superblock has announced it yet.
    pub(crate) fn store(&mut self) -> bool {
        !core::mem::replace(&mut self.stored, true)
    }

    fn with_room(max: usize, known: &[DriveRange]) -> Self {
        let mut list = Self {
            ranges: Vec::with_capacity(BAD_BLOCKS_MAX.max(known.len()) + 1),
            max: usize::MAX,
            dirty: false,
            writing: false,
            urgent: false,
            stored: false,
        };
        for range in known {
            // There is room, because all ranges come from a log.
            let _ = list.insert(*range);
        }
        Self { max, dirty: false, urgent: false, ..list }
    }

    pub(crate) fn ranges(&self) -> &[DriveRange] {
        &self.ranges
    }

    /// Does a known bad range touch these sectors?
    pub(crate) fn touches(&self, from: u64, to: u64) -> bool {
        self.ranges.iter().any(|b| b.at.get() < to && from < b.at.get() + b.len.get())
    }

    /// Number of sectors from `from` on, at most up to `to`, of which all are known to be bad, or none.
    pub(crate) fn alike(&self, from: u64, to: u64) -> u64 {
        let ends = self.ranges.iter().flat_map(|b| <[u64; 2]>::from(b.bounds())).filter(|end| *end > from);
        ends.fold(to, u64::min) - from
    }

    /// Is every sector of this range known to be bad?
    pub(crate) fn covers(&self, range: DriveRange) -> bool {
        let (from, to) = range.bounds();
        self.ranges.iter().map(|b| b.bounds()).any(|(start, end)| start <= from && to <= end)
    }

    /// Number of entries that this list needs in the log on disk.
    fn entries(&self) -> u64 {
        self.ranges.iter().map(|b| entries_of(b.len.get())).sum()
    }

    /// Enter a range, and merge it with the ranges that it touches. False if the log has no room, and then nothing
    /// is entered.
    #[must_use]
    pub(crate) fn insert(&mut self, range: DriveRange) -> bool {
        let (mut from, mut to) = range.bounds();
        let first = self.ranges.partition_point(|b| b.bounds().1 < from);
        let after = self.ranges.partition_point(|b| b.at.get() <= to).max(first);
        if first < after {
            from = from.min(self.ranges[first].bounds().0);
            to = to.max(self.ranges[after - 1].bounds().1);
        }
        let joined: u64 = self.ranges[first..after].iter().map(|b| entries_of(b.len.get())).sum();
        if self.entries() - joined + entries_of(to - from) > self.max as u64 {
            return false;
        }
        self.ranges.drain(first..after);
        self.ranges.insert(first, DriveRange::new(from, to));
        (self.dirty, self.urgent) = (true, true);
        true
    }

    /// These sectors were written and are good again; true if that changes the list. The rest on both sides stays bad.
    /// If the log has no room for two parts in place of one, the whole range stays bad.
    #[must_use]
    pub(crate) fn remove(&mut self, from: u64, to: u64) -> bool {
        let mut changed = false;
        let mut at = 0;
        while at < self.ranges.len() {
            let (start, end) = self.ranges[at].bounds();
            let (before, after) = (from.saturating_sub(start), end.saturating_sub(to));
            let fits = || {
                let parts = entries_of(before) + entries_of(after);
                self.entries() - entries_of(end - start) + parts <= self.max as u64
            };
            if end <= from || to <= start || !fits() {
                at += 1;
                continue;
            }
            changed = true;
            self.ranges.remove(at);
            for (start, end) in [(start, start + before), (end - after, end)] {
                if start < end {
                    self.ranges.insert(at, DriveRange::new(start, end));
                    at += 1;
                }
            }
        }
        self.dirty |= changed;
        changed
    }
}

/// Entries that a range of this many sectors takes.
const fn entries_of(sectors: u64) -> u64 {
    sectors.div_ceil(BAD_BLOCK_LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_random::draws;

    /// Against a map with one flag for each sector: entered sectors are bad, removed ones are good, and when the log is
    /// full, too many sectors are bad rather than too few.
    #[test]
    fn the_list_says_what_a_map_of_sectors_says() {
        let mut next = draws(7);
        for room in [0, 64, 512] {
            let mut list = BadList::with_room(room, &[]);
            let mut map = [false; 2000];
            for _ in 0..20_000 {
                let (from, len) = (next(1900), 1 + next(8));
                let range = DriveRange::new(from, from + len);
                let start = usize::try_from(from).unwrap();
                let span = start..start + usize::try_from(len).unwrap();
                if next(5) < 3 {
                    if list.insert(range) {
                        map[span].fill(true);
                        assert!(list.covers(range));
                    } else {
                        assert!(list.entries() + 1 >= room as u64);
                    }
                } else if list.remove(from, from + len) {
                    map[span].fill(false);
                }
                assert!(list.entries() <= room as u64);
                assert!(list.ranges.iter().all(|b| !b.len.is_zero()));
                assert!(list.ranges.windows(2).all(|w| w[0].bounds().1 < w[1].bounds().0));
                let alike = list.alike(from, from + len);
                assert!((1..=len).contains(&alike));
                assert!((from..from + alike).all(|at| list.touches(at, at + 1) == list.touches(from, from + 1)));
            }
            let exact = room == 512;
            for (at, is) in map.into_iter().enumerate() {
                let said = list.touches(at as u64, at as u64 + 1);
                assert!(said == is || (said && !exact), "sector {at} of a log of {room} entries");
            }
        }
    }
}
