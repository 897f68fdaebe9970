//! The sectors that an operation works on, in its set, on its members and in the table of ranges.
//!
//! All of it is computed from the operation and its set alone.

use openraid_units::{MemberLba, PoolOffset, Sectors, Slot};

use crate::array::set::Set;
use crate::geometry::{Geometry, Parity, Row};
use crate::io::lock::{LockMode, LockRange};
use crate::io::op::{Op, OpKind, Payload};
use crate::io::plan::StripeView;
use crate::io::row::RowFrames;
use crate::limits::REGION_SECTORS;
use crate::slots::SlotSet;

/// The slots of the data columns of a stripe, of P and of Q.
pub(crate) fn stripe_slots(parity: &Parity, row: Row<'_>) -> (SlotSet, Slot, Option<Slot>) {
    let (p, q) = (row.p_slot(), row.q_slot());
    let data = SlotSet::first_n(parity.members()).without(p);
    (q.map_or(data, |q| data.without(q)), p, q)
}

impl Op {
    /// Does the operation work on rows of a stripe, not on an extent?
    pub(crate) fn is_by_rows(&self, set: &Set) -> bool {
        match self.kind {
            OpKind::RowRead | OpKind::RowWrite | OpKind::RowDestage | OpKind::Reparity => true,
            OpKind::Read | OpKind::Write | OpKind::Flush | OpKind::Destage | OpKind::Redo => false,
            OpKind::Discard | OpKind::Rebuild | OpKind::Resync | OpKind::Scrub => {
                matches!(set.geometry, Geometry::Parity(_))
            }
        }
    }

    /// The range that it locks: rows of its stripe, or sectors of its region.
    pub(crate) fn lock_range(&self, set: &Set) -> LockRange {
        let mode = if self.kind == OpKind::RowRead { LockMode::Shared } else { LockMode::Exclusive };
        if self.is_by_rows(set) {
            return LockRange { set: self.set, unit: self.stripe.0, lo: self.lo, hi: self.hi, mode };
        }
        let lo = u32::try_from(self.at.get() % REGION_SECTORS).expect("a region is small");
        let len = u32::try_from(self.len.get()).expect("an extent lies in its region");
        LockRange { set: self.set, unit: self.at.get() / REGION_SECTORS, lo, hi: lo + len, mode }
    }

    /// The sectors that a bitmap would mark for it: of a member, or of the set for RAID 10.
    pub(crate) fn marked_range(&self, set: &Set) -> (u64, u64) {
        if self.is_by_rows(set) {
            let base = set.parity().member_lba(self.stripe, Sectors::ZERO).get();
            (base + u64::from(self.lo), base + u64::from(self.hi))
        } else {
            (self.at.get(), self.at.get() + self.len.get())
        }
    }

    /// Are the bitmap bits of its range durable, if there is a bitmap?
    pub(crate) fn are_bits_durable(&self, set: &Set) -> bool {
        set.bitmap.as_ref().is_none_or(|bitmap| {
            let (from, to) = self.marked_range(set);
            bitmap.is_durable(from, to)
        })
    }

    /// The rows in work, as sectors of the members.
    pub(crate) fn member_rows(&self, set: &Set) -> (MemberLba, MemberLba) {
        let from = set.parity().member_lba(self.stripe, Sectors(u64::from(self.cursor)));
        (from, from + Sectors(u64::from(self.rows())))
    }

    /// Slots of the columns that the request names.
    pub(crate) fn named_slots(&self, set: &Set) -> SlotSet {
        if self.kind == OpKind::RowDestage {
            return self.band();
        }
        let row = set.parity().row(self.stripe);
        (self.first..self.first + self.columns).map(|column| row.slot_of(column)).collect()
    }

    /// The members of its stripe and their condition for the rows in work.
    pub(crate) fn stripe_view(&self, set: &Set) -> StripeView {
        let parity = set.parity();
        let (data, p, q) = stripe_slots(parity, parity.row(self.stripe));
        let (from, to) = self.member_rows(set);
        let filled = set.filled(from, to);
        StripeView {
            data,
            p,
            q,
            readable: set.good(set.in_sync | filled, from, to).minus(self.excluded),
            writable: set.writable,
            filling: set.writable.minus(set.in_sync | filled | set.filled_in_part(from, to) | set.inherited),
            trusted: set.is_consistent(from.get(), to.get()),
        }
    }

    /// The work buffer of a slot.
    pub(crate) fn buffer(&self, slot: Slot) -> PoolOffset {
        RowFrames::of(self).buffer(slot)
    }

    /// The payload of a column and row of a row operation; of an extent the start, for any column and row.
    pub(crate) fn payload_address(&self, set: &Set, column: u16, row: u32) -> PoolOffset {
        match self.payload {
            Payload::Zero { .. } => PoolOffset::ZERO,
            Payload::None => unreachable!("an operation without payload has no address"),
            Payload::Host(base) => match &set.geometry {
                Geometry::Parity(parity) if self.is_by_rows(set) => {
                    let columns = parity.chunk() * u64::from(column - self.first);
                    base + (columns + Sectors(u64::from(row - self.lo))).bytes()
                }
                _ => base,
            },
        }
    }
}

/// Sectors within a unit fit 32 bits: chunks and regions are far below 2 TiB.
pub(crate) fn narrow(sectors: Sectors) -> u32 {
    u32::try_from(sectors.get()).expect("a place within a unit fits 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::geometry::{Level, SetSpec};
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, SetId, SetLba, StripeIndex};

    /// Four members of 64 chunks of 8 sectors, layout left-symmetric (RAID 5) or near 2 (RAID 10).
    fn set(level: Level, layout: u32) -> Set {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level, members: 4, chunk: Sectors(8), layout, member_size, member_sizes };
        let controller = Controller::new(Limits::small()).unwrap();
        controller.new_set(ArrayId(0), Geometry::new(&spec).unwrap(), BlockSize::B512, 8)
    }

    /// Rows 2 to 6 of two columns from the second one of stripe 5, rows 4 to 6 in work.
    fn row_write() -> Op {
        let mut op = Op::new(OpKind::RowWrite, SetId(0));
        (op.stripe, op.first, op.columns) = (StripeIndex(5), 1, 2);
        (op.lo, op.hi, op.cursor, op.cursor_end) = (2, 6, 4, 6);
        op
    }

    #[test]
    fn a_row_write_locks_its_rows_and_marks_the_same_rows_of_the_members() {
        let (set, op) = (set(Level::Raid5, 2), row_write());
        let range = op.lock_range(&set);
        assert_eq!((range.unit, range.lo, range.hi, range.mode), (5, 2, 6, LockMode::Exclusive));
        assert_eq!(op.marked_range(&set), (5 * 8 + 2, 5 * 8 + 6));
        assert_eq!(op.member_rows(&set), (MemberLba(5 * 8 + 4), MemberLba(5 * 8 + 6)));
        let read = Op { kind: OpKind::RowRead, ..op };
        assert_eq!(read.lock_range(&set).mode, LockMode::Shared);
    }

    #[test]
    fn the_slots_of_a_stripe_are_those_of_the_left_symmetric_layout() {
        let (set, op) = (set(Level::Raid5, 2), row_write());
        // md: stripe 5 of four members has its parity in slot 3 - 5 % 4 = 2, its data from the next slot on.
        let view = op.stripe_view(&set);
        assert_eq!((view.p, view.q), (Slot(2), None));
        assert!(op.named_slots(&set).iter().eq([Slot(0), Slot(1)]), "columns 1 and 2 of 3, 0, 1");
        assert!(view.data.iter().eq([Slot(0), Slot(1), Slot(3)]));
    }

    #[test]
    fn background_work_is_by_rows_on_parity_alone() {
        let op = Op { at: SetLba(2 * REGION_SECTORS + 16), len: Sectors(8), ..Op::new(OpKind::Resync, SetId(0)) };
        assert!(op.is_by_rows(&set(Level::Raid5, 2)));
        let mirror = set(Level::Raid10, 0x102);
        assert!(!op.is_by_rows(&mirror));
        let range = op.lock_range(&mirror);
        assert_eq!((range.unit, range.lo, range.hi), (2, 16, 24));
        assert_eq!(op.marked_range(&mirror), (2 * REGION_SECTORS + 16, 2 * REGION_SECTORS + 24));
    }

    #[test]
    fn payload_of_later_columns_follows_a_chunk_apart() {
        let (set, base) = (set(Level::Raid5, 2), PoolOffset(1 << 20));
        let op = Op { payload: Payload::Host(base), ..row_write() };
        assert_eq!(op.payload_address(&set, 1, 2), base);
        assert_eq!(op.payload_address(&set, 2, 3), base + (Sectors(8) + Sectors(1)).bytes());
        let zero = Op { payload: Payload::Zero { may_discard: false }, ..op };
        assert_eq!(zero.payload_address(&set, 2, 3), PoolOffset::ZERO);
    }
}
