//! Room that runs out: a drive on a thin volume, or in a sparse file on a full file system.
//!
//! Every 4 KiB of such a drive either have room already, drawn from a seed, or need new room, which is
//! limited. A write that needs more is refused. What it has written before that stays: all blocks up to the first one
//! without room, as in a file, or every block that has room, as on a thin volume.
//!
//! The storage of some drives keeps such writes for a time first. If there is room by then, it carries them out.
//! Otherwise it refuses them, and all later ones at once, until there is room again.

use std::collections::BTreeSet;
use std::ops::Range;

use openraid_units::{DriveLba, Sectors};

use crate::random::mix;

/// Sectors that get room together.
const BLOCK: u64 = 8;

/// See the module header.
#[derive(Clone, Debug)]
pub struct DriveRoom {
    /// The area that may lack room. Metadata has room from the start.
    pub area: Range<DriveLba>,
    /// Decides which blocks have room.
    pub seed: u64,
    /// One block in this number has none.
    pub one_in: u64,
    /// Number of blocks for which there is new room.
    pub left: u64,
    /// A refused write ends at its first block without room.
    pub stops_at_first: bool,
    /// Blocks that got room since.
    pub given: BTreeSet<u64>,
    /// Whether the storage has waited for room in vain.
    pub waited: bool,
}

impl DriveRoom {
    /// Half of the blocks of this area have room, and there is new room for `left` of the others.
    #[must_use]
    pub fn half(area: Range<DriveLba>, seed: u64, left: u64) -> Self {
        Self {
            area,
            seed,
            one_in: 2,
            left,
            stops_at_first: seed.is_multiple_of(2),
            given: BTreeSet::new(),
            waited: false,
        }
    }

    /// Whether a write of this range needs more room than there is.
    pub(super) fn lacks(&self, lba: DriveLba, len: Sectors) -> bool {
        let blocks = lba.get() / BLOCK..(lba.get() + len.get()).div_ceil(BLOCK);
        blocks.filter(|block| self.needs(*block)).count() as u64 > self.left
    }

    /// Whether the storage may have no room for records of its own.
    pub(super) const fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// The parts of a write of this range that have room, if not all of it has.
    pub(super) fn refuse(&mut self, lba: DriveLba, len: Sectors) -> Option<Vec<(DriveLba, Sectors)>> {
        let (from, to) = (lba.get(), lba.get() + len.get());
        let mut parts = Vec::new();
        let mut is_refused = false;
        for block in from / BLOCK..to.div_ceil(BLOCK) {
            if !self.take(block) {
                is_refused = true;
                if self.stops_at_first {
                    break;
                }
                continue;
            }
            let (start, end) = (from.max(block * BLOCK), to.min((block + 1) * BLOCK));
            parts.push((DriveLba(start), Sectors(end - start)));
        }
        is_refused.then_some(parts)
    }

    /// Does this block need new room?
    fn needs(&self, block: u64) -> bool {
        let is_inside = self.area.contains(&DriveLba(block * BLOCK));
        is_inside && mix(self.seed ^ block).is_multiple_of(self.one_in) && !self.given.contains(&block)
    }

    /// Does this block have room, or get some?
    fn take(&mut self, block: u64) -> bool {
        if !self.needs(block) {
            return true;
        }
        let has_room = self.left > 0;
        if has_room {
            self.left -= 1;
            self.given.insert(block);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_got_room_keeps_it_and_a_refused_write_leaves_what_had_room() {
        for stops_at_first in [true, false] {
            let area = DriveLba(0)..DriveLba(800);
            let mut room = DriveRoom { one_in: 1, stops_at_first, ..DriveRoom::half(area, 1, 2) };
            assert!(room.lacks(DriveLba(12), Sectors(16)) && !room.lacks(DriveLba(12), Sectors(8)));
            assert_eq!(room.refuse(DriveLba(12), Sectors(8)), None, "two blocks get room");
            assert_eq!(room.refuse(DriveLba(8), Sectors(16)), None, "they keep it");
            assert_eq!(room.refuse(DriveLba(800), Sectors(8)), None, "it is outside");
            let first = (DriveLba(20), Sectors(4));
            assert_eq!(room.refuse(DriveLba(20), Sectors(12)), Some(vec![first]));
            let after = room.refuse(DriveLba(4), Sectors(8)).unwrap();
            assert_eq!(after, if stops_at_first { vec![] } else { vec![(DriveLba(8), Sectors(4))] });
        }
    }
}
