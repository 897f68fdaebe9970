//! Places of a member that could not be read, so that one defect counts once.
//!
//! A defect is met many times: by the read of a host, by the reads that search for it, by the repair, by the next
//! check. A failed read says only that some sector of its range is bad, so an entry is as small as the reads have shown
//! so far.

use alloc::vec::Vec;

use openraid_units::{DriveLba, Sectors};

use crate::limits::{DEFECTS_MAX, DEFECT_SECTORS_MAX};

/// Maximum size of a physical sector. Bad sectors within one are one defect.
const PHYSICAL_SECTORS: u64 = 8;

/// The defects of one member in sectors of its drive, in the order in which they were last met.
#[derive(Debug)]
pub(crate) struct Defects {
    /// First sector of each, and the first sector after it.
    ranges: Vec<(u64, u64)>,
}

impl Defects {
    pub(crate) fn new() -> Self {
        Self { ranges: Vec::with_capacity(DEFECTS_MAX) }
    }

    /// A read of this range failed; true if that is a defect that was not met before.
    pub(crate) fn meet(&mut self, at: DriveLba, len: Sectors) -> bool {
        let from = at.get() / PHYSICAL_SECTORS * PHYSICAL_SECTORS;
        let to = (at.get() + len.get()).next_multiple_of(PHYSICAL_SECTORS);
        if let Some(known) = self.ranges.iter_mut().find(|known| known.0 < to && from < known.1) {
            *known = (known.0.max(from), known.1.min(to));
            return false;
        }
        let grows = |known: &&mut (u64, u64)| {
            (known.0 == to || known.1 == from) && known.1 - known.0 + (to - from) <= DEFECT_SECTORS_MAX.get()
        };
        if let Some(known) = self.ranges.iter_mut().find(grows) {
            *known = (known.0.min(from), known.1.max(to));
            return false;
        }
        if self.ranges.len() == DEFECTS_MAX {
            self.ranges.remove(0);
        }
        self.ranges.push((from, to));
        true
    }

    /// This range was rewritten: an error there from now on is another defect.
    pub(crate) fn rewritten(&mut self, at: DriveLba, len: Sectors) {
        let (from, to) = (at.get(), at.get() + len.get());
        self.ranges.retain(|known| known.1 <= from || to <= known.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(defects: &mut Defects, from: u64, to: u64) -> bool {
        defects.meet(DriveLba(from), Sectors(to - from))
    }

    #[test]
    fn a_defect_that_is_narrowed_down_is_one_and_another_in_the_first_read_is_a_second() {
        let mut defects = Defects::new();
        assert!(meet(&mut defects, 0, 512));
        for (from, to) in [(64, 128), (96, 104), (97, 98), (98, 99), (0, 512), (99, 100)] {
            assert!(!meet(&mut defects, from, to), "{from}..{to}");
        }
        assert!(meet(&mut defects, 300, 301));
        assert!(!meet(&mut defects, 256, 512));
    }

    #[test]
    fn a_scratch_counts_by_its_length_and_a_place_that_goes_bad_again_counts_again() {
        let mut defects = Defects::new();
        let counted = (0..1024).step_by(8).filter(|at| meet(&mut defects, *at, at + 8)).count() as u64;
        assert_eq!(counted, 1024 / DEFECT_SECTORS_MAX.get());
        assert!(!meet(&mut defects, 0, 8));
        defects.rewritten(DriveLba(0), Sectors(8));
        assert!(meet(&mut defects, 0, 8));
    }

    #[test]
    fn a_defect_beyond_the_limit_replaces_the_oldest_one() {
        let mut defects = Defects::new();
        let places = (0..DEFECTS_MAX as u64 + 1).map(|number| number * 1000);
        assert!(places.clone().all(|at| meet(&mut defects, at, at + 1)));
        assert!(!meet(&mut defects, 1000, 1001));
        assert!(meet(&mut defects, 0, 1));
    }
}
