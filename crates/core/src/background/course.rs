//! The rows through which a task goes.
//!
//! A set with two sides has data on the rows of the new side up to the boundary, and on those of the old side from the
//! stripe of the boundary on. A task goes through both, one after the other:
//!
//! ```text
//!   sectors of a member   new side |----------|             old side        |-----------------|
//!   position of the task           0       new_rows                     new_rows            total
//! ```

use crate::geometry::shape::{Shape, Side};
use crate::geometry::Geometry;
use openraid_units::Sectors;

/// See the module header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Course {
    new_rows: u64,
    old_from: u64,
}

impl Course {
    /// The course through a set of one side, whose rows are positions.
    pub(crate) const STEADY: Self = Self { new_rows: 0, old_from: 0 };

    /// The course through a shape, and its length. A steady one is as long as `whole`.
    pub(crate) fn through(shape: &Shape, whole: u64) -> (Self, u64) {
        let (Some(change), Geometry::Parity(old)) = (shape.change(), shape.on(Side::Old)) else {
            return (Self::STEADY, whole);
        };
        let boundary = shape.boundary();
        let new_rows = change.new_extent(boundary).get();
        let end = old.member_extent().get();
        let old_from = if boundary.offset() < old.capacity() {
            old.member_lba(old.locate(boundary).0, Sectors::ZERO).get()
        } else {
            end
        };
        (Self { new_rows, old_from }, new_rows + (end - old_from))
    }

    /// The place of a position: the side, and the sector of a member.
    pub(crate) const fn place(self, at: u64) -> (Side, u64) {
        if at < self.new_rows {
            (Side::New, at)
        } else {
            (Side::Old, at - self.new_rows + self.old_from)
        }
    }

    /// The positions of these sectors of a member on a side; none if the task does not go there.
    pub(crate) fn positions(self, side: Side, from: u64, to: u64) -> Option<(u64, u64)> {
        match side {
            // A steady set has the old side only.
            Side::New => (to <= self.new_rows).then_some((from, to)),
            Side::Old => (from >= self.old_from)
                .then(|| (from - self.old_from + self.new_rows, to - self.old_from + self.new_rows)),
        }
    }
}
