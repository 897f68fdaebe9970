//! Ranges of members that are to be rewritten. `background/rewrite_sectors.rs` does it.

use openraid_units::{MemberLba, Sectors, Slot};

use crate::geometry::shape::Side;

/// A range of a member that could not be read, or that is rewritten as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SectorRewrite {
    /// Its own content is written back: does the member have room there?
    is_rewrite: bool,
    side: Side,
    slot: Slot,
    at: MemberLba,
    len: Sectors,
}

impl SectorRewrite {
    /// Restore a range of the member in this slot from redundancy.
    pub(crate) const fn restored(side: Side, slot: Slot, at: MemberLba, len: Sectors) -> Self {
        Self { is_rewrite: false, side, slot, at, len }
    }

    /// Write a range back as it is.
    pub(crate) const fn as_it_is(side: Side, slot: Slot, at: MemberLba, len: Sectors) -> Self {
        Self { is_rewrite: true, side, slot, at, len }
    }

    /// The same in a set whose shape does not change: its one side has the name of the old one.
    pub(crate) const fn in_steady_set(self) -> Self {
        Self { side: Side::Old, ..self }
    }

    /// The side of the set on which the range is.
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// The slot of the member.
    pub(crate) const fn slot(&self) -> Slot {
        self.slot
    }

    /// The first sector and the length.
    pub(crate) const fn range(&self) -> (MemberLba, Sectors) {
        (self.at, self.len)
    }

    /// Is the content written back as it is?
    pub(crate) const fn is_rewrite(&self) -> bool {
        self.is_rewrite
    }

    /// The range without its first `done` sectors; `None` if nothing is left.
    pub(crate) fn after(self, done: Sectors) -> Option<Self> {
        (self.len > done).then(|| Self { at: self.at + done, len: self.len - done, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_was_wanted_on_the_new_side_is_on_the_one_side_after_the_change() {
        let (slot, at, len) = (Slot(3), MemberLba(40), Sectors(16));
        for make in [SectorRewrite::restored, SectorRewrite::as_it_is] {
            let wanted = make(Side::New, slot, at, len);
            assert_eq!(wanted.in_steady_set(), make(Side::Old, slot, at, len));
            assert_ne!(wanted.in_steady_set(), wanted);
            let rest = wanted.in_steady_set().after(Sectors(6)).expect("ten sectors are left");
            assert_eq!((rest.side(), rest.slot(), rest.range()), (Side::Old, slot, (MemberLba(46), Sectors(10))));
            assert_eq!(wanted.after(len), None);
        }
    }
}
