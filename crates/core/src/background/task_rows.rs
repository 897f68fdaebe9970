//! The rows through which a task goes.
//!
//! A set with two sides has data on the rows of the new side up to the boundary, and on those of the old side from the
//! stripe of the boundary on; backwards it is the other way round. A task goes through both, one after the other:
//!
//! ```text
//!   sectors of a member   new side |----------|             old side        |-----------------|
//!   position of the task           0       new rows                      new rows           total
//! ```

use crate::geometry::reshape::ReshapeDirection;
use crate::geometry::shape::{Shape, Side};
use crate::geometry::Geometry;
use openraid_units::{Sectors, SetLba};

/// Sectors of a member: the first one, and the one after the last.
type Rows = (u64, u64);

/// See the module header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Course {
    new: Rows,
    old: Rows,
}

impl Course {
    /// The course through a shape, and its length. A steady one has `whole` rows.
    pub(crate) fn through(shape: &Shape, whole: u64) -> (Self, u64) {
        let mut course = Self { new: (0, 0), old: (0, whole) };
        if let (Some(change), Geometry::Parity(old), Geometry::Parity(new)) =
            (shape.change(), shape.on(Side::Old), shape.on(Side::New))
        {
            let boundary = shape.boundary();
            let stripe_of = |geometry: &crate::geometry::Parity, at: SetLba| {
                if at.offset() < geometry.capacity() {
                    geometry.member_lba(geometry.locate(at).0, Sectors::ZERO).get()
                } else {
                    geometry.member_extent().get()
                }
            };
            let end_of = |geometry: &Geometry| geometry.extent_below(boundary).get();
            (course.new, course.old) = match change.direction() {
                ReshapeDirection::Forward => {
                    ((0, end_of(shape.on(Side::New))), (stripe_of(old, boundary), old.member_extent().get()))
                }
                ReshapeDirection::Backward => {
                    ((stripe_of(new, boundary), new.member_extent().get()), (0, end_of(shape.on(Side::Old))))
                }
            };
        }
        (course, course.new_rows() + (course.old.1 - course.old.0))
    }

    const fn new_rows(self) -> u64 {
        self.new.1 - self.new.0
    }

    /// The place of a position: the side, and the sector of a member.
    pub(crate) const fn place(self, at: u64) -> (Side, u64) {
        if at < self.new_rows() {
            (Side::New, at + self.new.0)
        } else {
            (Side::Old, at - self.new_rows() + self.old.0)
        }
    }

    /// The positions of these sectors of a member on a side; none if the task does not go there.
    pub(crate) fn positions(self, side: Side, from: u64, to: u64) -> Option<(u64, u64)> {
        let (rows, before) = match side {
            Side::New => (self.new, 0),
            Side::Old => (self.old, self.new_rows()),
        };
        (rows.0 <= from && to <= rows.1).then(|| (from - rows.0 + before, to - rows.0 + before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::reshape::{ShapeChange, Shift};
    use crate::geometry::{Level, SetSpec};
    use crate::slot_set::SlotSet;

    fn geometry(members: u16) -> Geometry {
        let size = Sectors(1200);
        let chunk = Sectors(8);
        let spec = SetSpec { level: Level::Raid5, members, chunk, layout: 2, member_size: size, member_sizes: &[] };
        Geometry::new(&spec).unwrap()
    }

    /// Each sector of the set is on a row of its side, and each position has one place.
    #[test]
    fn a_course_has_all_rows_with_data_once() {
        for (from, to, direction) in [(3, 4, ReshapeDirection::Forward), (5, 4, ReshapeDirection::Backward)] {
            let shifts = alloc::vec![Shift(0); 5];
            let shifts = shifts[..usize::from(u16::max(from, to))].to_vec();
            let change = ShapeChange::new(geometry(from), geometry(to), direction, shifts, SlotSet::EMPTY).unwrap();
            for distance in (0..=change.total().get()).step_by(24 * 7) {
                let boundary = change.boundary(Sectors(distance));
                let shape = Shape::changing(change.clone(), boundary);
                let (course, total) = Course::through(&shape, 1200);
                for at in 0..total {
                    let (side, row) = course.place(at);
                    assert_eq!(course.positions(side, row, row + 1), Some((at, at + 1)), "{course:?} {at}");
                }
                for at in (0..shape.capacity().get()).map(SetLba) {
                    let side = shape.at(at).side();
                    let Geometry::Parity(parity) = shape.on(side) else { unreachable!() };
                    let (stripe, _, row) = parity.locate(at);
                    let lba = parity.member_lba(stripe, row).get();
                    assert!(course.positions(side, lba, lba + 1).is_some(), "{course:?} {at:?}");
                }
            }
        }
        let steady = Shape::steady(geometry(3));
        let (course, total) = Course::through(&steady, 1200);
        assert_eq!((total, course.place(7), course.positions(Side::Old, 7, 9)), (1200, (Side::Old, 7), Some((7, 9))));
    }
}
