//! The write cache: what the host believes written and the medium has not yet.
//!
//! Pieces are kept in order of address and grow together where they touch. How much there may be, and in how many
//! pieces, is bounded.

use super::geometry::Geometry;
use super::Spot;
use std::collections::VecDeque;

/// A piece of written data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First sector.
    pub start: u64,
    /// Sector behind the last.
    pub end: u64,
    /// Where it begins on the medium.
    pub spot: Spot,
    /// When its first sector came.
    pub since: u64,
    /// Number of the write that its first sector came with.
    pub number: u64,
}

/// The dirty data of one disk.
#[derive(Clone, Debug)]
pub struct Dirty {
    extents: Vec<Extent>,
    ages: VecDeque<(u64, u64)>,
    sectors: u64,
    sectors_max: u64,
    extents_max: usize,
    number: u64,
}

impl Dirty {
    /// Room for so much.
    #[must_use]
    pub fn new(sectors_max: u64, extents_max: usize) -> Self {
        Self {
            extents: Vec::with_capacity(extents_max + 1),
            ages: VecDeque::new(),
            sectors: 0,
            sectors_max,
            extents_max,
            number: 0,
        }
    }

    /// Sectors that it holds at most.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.sectors_max
    }
    /// Is nothing waiting to be destaged?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }
    /// Writes taken so far.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
    /// The pieces, in order of address.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Is there room for a write?
    #[must_use]
    pub fn has_room(&self, lba: u64, len: u64) -> bool {
        if self.sectors + len > self.sectors_max {
            return false;
        }
        if self.extents.len() < self.extents_max {
            return true;
        }
        let index = self.index(lba);
        index > 0 && self.extents[index - 1].end >= lba
    }

    /// Pieces that begin at or before a sector.
    fn index(&self, lba: u64) -> usize {
        self.extents.partition_point(|extent| extent.start <= lba)
    }

    /// Take a write.
    pub fn add(&mut self, geometry: &Geometry, now: u64, lba: u64, len: u64) {
        self.number += 1;
        let end = lba + len;
        let index = self.index(lba);
        let at = if index > 0 && self.extents[index - 1].end >= lba {
            let before = &mut self.extents[index - 1];
            if end <= before.end {
                return;
            }
            self.sectors += end - before.end;
            before.end = end;
            index - 1
        } else {
            let spot = Spot::of(&geometry.place(lba));
            self.extents.insert(index, Extent { start: lba, end, spot, since: now, number: self.number });
            self.ages.push_back((now, lba));
            self.sectors += len;
            index
        };
        while at + 1 < self.extents.len() && self.extents[at + 1].start <= self.extents[at].end {
            let next = self.extents.remove(at + 1);
            let this = &mut self.extents[at];
            let common = this.end.min(next.end) - next.start;
            self.sectors -= common;
            this.end = this.end.max(next.end);
            this.since = this.since.min(next.since);
            this.number = this.number.min(next.number);
        }
        // Entries of pieces that are no more are dropped when they come to the front; this bounds them.
        if self.ages.len() > 4 * self.extents_max + 16 {
            self.ages = self.extents.iter().map(|extent| (extent.since, extent.start)).collect();
            self.ages.make_contiguous().sort_unstable();
        }
    }

    /// Is all of a range here?
    #[must_use]
    pub fn covers(&self, lba: u64, len: u64) -> bool {
        let index = self.index(lba);
        index > 0 && self.extents[index - 1].end >= lba + len
    }

    /// The piece that has waited for longest: since when, and which.
    pub fn oldest(&mut self) -> Option<(u64, usize)> {
        while let Some((since, start)) = self.ages.front().copied() {
            let index = self.index(start);
            if index > 0 && self.extents[index - 1].start == start && self.extents[index - 1].since <= since {
                return Some((since, index - 1));
            }
            self.ages.pop_front();
        }
        // Every piece begins with an entry of its own; without entries there are no pieces, or they were split.
        self.extents.first().map(|extent| (extent.since, 0))
    }

    /// Take up to `most` sectors from the front of a piece to write them out. They keep their room until
    /// [`Dirty::written`].
    pub fn take(&mut self, geometry: &Geometry, index: usize, most: u64) -> Extent {
        let extent = self.extents[index];
        if extent.end - extent.start <= most {
            self.extents.remove(index);
            return extent;
        }
        let rest = &mut self.extents[index];
        rest.start += most;
        rest.spot = Spot::of(&geometry.place(rest.start));
        self.ages.push_front((rest.since, rest.start));
        Extent { end: extent.start + most, ..extent }
    }

    /// Sectors that were taken are on the medium: their room is free.
    pub fn written(&mut self, sectors: u64) {
        self.sectors -= sectors;
    }

    /// Does anything wait that came with this write or before it?
    #[must_use]
    pub fn has_before(&self, number: u64) -> bool {
        self.extents.iter().any(|extent| extent.number <= number)
    }

    /// Pieces near a sector, as a range of indices of at most `count`.
    #[must_use]
    pub fn near(&self, lba: u64, count: usize) -> std::ops::Range<usize> {
        let middle = self.index(lba);
        let start = middle.saturating_sub(count / 2);
        let end = (start + count).min(self.extents.len());
        end.saturating_sub(count)..end
    }
}
