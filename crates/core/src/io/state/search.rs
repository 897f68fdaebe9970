//! The next rows of an operation, and the search for blocks that cannot be read.
//!
//! Rows are processed in parts that fit the work frames. If a part cannot be read as a whole, because a read failed
//! that redundancy does not replace, the search finds the bad blocks, and all others are returned.
//!
//! ```text
//!  |--------------------- failed ----------------------|        a stretch that could not be read
//!  |--good--|--good--|-failed-|                                 parts, an eighth each, in order
//!                    |g|g|f|                                    parts of the first part that failed
//!                       |x|                                     one block: lost
//!                         |b|--8--|-------- 64 --------|--...   then on: eight times more after each success
//! ```
//!
//! A failed read may take a drive seconds, a good one takes a fraction of a millisecond: eighths instead of halves mean
//! fewer failures. If all parts but the last are good, the last one is not read as a whole. A neighbour of a bad block
//! is read by itself, because a drive whose sectors are larger than its blocks loses several blocks at once. So one
//! defect costs at most [`SEARCH_COMMANDS_MAX`] commands.

use crate::limits::SEARCH_WAYS;

/// The size of the next part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Search {
    /// As large as the work frames allow; no search is under way.
    None,
    /// A block in the rows up to `end` is bad. Parts of `step` sectors are tried.
    Within { step: u32, end: u32 },
    /// The search ended, with a bad block or without one. The last part had `step` sectors; 0 if its block was bad.
    After { step: u32 },
}

impl Search {
    /// The search after a part that failed; `None` after a single block.
    fn narrowed(from: u32, to: u32, block: u32) -> Option<Self> {
        (to - from > block).then(|| Self::Within { step: part(to - from, block), end: to })
    }

    /// The next state of the search after the part that ended at `at`, and the size of the next part.
    fn next(self, at: u32, block: u32, rows_max: u32) -> (Self, u32) {
        match self {
            Self::Within { step, end } if at < end => {
                let is_last = end - at <= step;
                let step = if is_last && step > block { part(end - at, block) } else { step };
                (Self::Within { step, end }, step.min(end - at))
            }
            Self::Within { step, .. } | Self::After { step } => {
                let step = (step * SEARCH_WAYS).max(block);
                if step >= rows_max {
                    (Self::None, rows_max)
                } else {
                    (Self::After { step }, step)
                }
            }
            Self::None => (Self::None, rows_max),
        }
    }
}

/// A range of sectors that is processed in parts: rows of a stripe, or sectors of an extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    lo: u32,
    hi: u32,
    /// The sectors that are in work now.
    from: u32,
    to: u32,
    /// State of the search for a bad block.
    search: Search,
}

impl Part {
    /// All of the range at once.
    #[inline(always)]
    pub(crate) const fn whole(lo: u32, hi: u32) -> Self {
        Self { lo, hi, from: lo, to: hi, search: Search::None }
    }

    /// No sector of the range is in work yet.
    #[inline(always)]
    pub(crate) const fn not_begun(lo: u32, hi: u32) -> Self {
        Self { lo, hi, from: lo, to: lo, search: Search::None }
    }

    /// The first part, with at most `most` sectors.
    pub(crate) fn first(lo: u32, hi: u32, most: u32) -> Self {
        Self { lo, hi, from: lo, to: hi.min(lo.saturating_add(most)), search: Search::None }
    }

    /// The whole range.
    #[inline(always)]
    pub(crate) const fn range(&self) -> (u32, u32) {
        (self.lo, self.hi)
    }

    /// The first sector in work.
    #[inline(always)]
    pub(crate) const fn from(&self) -> u32 {
        self.from
    }

    /// The first sector after the part in work.
    #[inline(always)]
    pub(crate) const fn to(&self) -> u32 {
        self.to
    }

    /// Sectors in work.
    #[inline(always)]
    pub(crate) const fn len(&self) -> u32 {
        self.to - self.from
    }

    /// Take these sectors into work, in place of the ones that were in work.
    pub(crate) fn take(&mut self, from: u32, to: u32) {
        debug_assert!(self.lo <= from && from <= to && to <= self.hi);
        (self.from, self.to) = (from, to);
    }

    /// Maximum number of sectors of the next part from `at` on; the search continues there.
    pub(crate) fn search_from(&mut self, at: u32, block: u32, most: u32) -> u32 {
        let (search, len) = self.search.next(at, block, most);
        self.search = search;
        len
    }

    /// Continue with the next part; false if there is none.
    pub(crate) fn advance(&mut self, block: u32, most: u32) -> bool {
        let at = self.to;
        let len = self.search_from(at, block, most);
        (self.from, self.to) = (at, self.hi.min(at.saturating_add(len)));
        self.from < self.hi
    }

    /// The sectors in work cannot be read as a whole: take a part of them. False if they are one block, which is lost.
    pub(crate) fn narrow(&mut self, block: u32) -> bool {
        let Some(search) = Search::narrowed(self.from, self.to, block) else {
            self.search = Search::After { step: 0 };
            return false;
        };
        self.search = search;
        if let Search::Within { step, .. } = search {
            self.to = self.from + step;
        }
        true
    }
}

/// An eighth of `sectors`, rounded up to whole blocks.
fn part(sectors: u32, block: u32) -> u32 {
    sectors.div_ceil(SEARCH_WAYS).next_multiple_of(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SEARCH_COMMANDS_MAX;
    use alloc::vec::Vec;

    /// Number of reads of rows from 0 on, and the blocks that are found bad, on a drive with these bad sectors.
    fn search(rows: u32, block: u32, bad: core::ops::Range<u32>) -> (u32, Vec<u32>) {
        let (mut search, mut at, mut to) = (Search::None, 0, rows);
        let (mut reads, mut lost) = (0, Vec::new());
        while at < rows {
            reads += 1;
            if at < bad.end && bad.start < to {
                if let Some(narrowed) = Search::narrowed(at, to, block) {
                    search = narrowed;
                    if let Search::Within { step, .. } = narrowed {
                        to = at + step;
                    }
                    continue;
                }
                lost.push(at);
                search = Search::After { step: 0 };
            }
            at = to;
            let (next, len) = search.next(at, block, rows);
            (search, to) = (next, rows.min(at + len));
        }
        (reads, lost)
    }

    #[test]
    fn a_defect_of_4_kib_is_found_exactly_and_within_the_named_number_of_commands() {
        for (rows, block) in [(512, 1), (512, 8), (488, 8), (24, 8), (8, 8), (8, 1), (100, 1)] {
            let mut most = 0;
            for start in (0..rows - 7).step_by(8) {
                let (reads, lost) = search(rows, block, start..start + 8);
                let blocks: Vec<u32> = (start..start + 8).step_by(block as usize).collect();
                assert_eq!(lost, blocks, "of {rows} rows in blocks of {block}");
                most = most.max(reads);
            }
            assert!(most <= SEARCH_COMMANDS_MAX, "{most} reads of {rows} rows in blocks of {block}");
        }
        assert_eq!(search(512, 1, 600..608).0, 1);
    }

    #[test]
    fn parts_cover_their_range_once_and_go_on_after_a_search() {
        let mut part = Part::first(4, 30, 10);
        let mut covered = Vec::new();
        loop {
            covered.push((part.from(), part.to()));
            // The second part is bad, and is searched to its end.
            if covered.len() == 2 {
                assert!(part.narrow(1));
                assert_eq!((part.from(), part.len()), (14, 2), "an eighth of ten");
                covered[1].1 = part.to();
            }
            if !part.advance(1, 10) {
                break;
            }
        }
        assert_eq!((covered[0], covered.last().map(|last| last.1)), ((4, 14), Some(30)));
        assert!(covered.windows(2).all(|pair| pair[0].1 == pair[1].0 && pair[1].0 < pair[1].1), "{covered:?}");
        assert_eq!(part.range(), (4, 30));
        let mut block = Part::whole(3, 4);
        assert!(!block.narrow(1), "one block is lost");
        assert_eq!(Part::not_begun(3, 9).len(), 0);
    }

    #[test]
    fn a_defect_of_one_block_costs_its_neighbours_nothing() {
        for bad in 0..512 {
            let (reads, lost) = search(512, 1, bad..bad + 1);
            assert_eq!(lost, [bad]);
            assert!(reads <= SEARCH_COMMANDS_MAX, "{reads} reads");
        }
    }
}
