//! The sectors that an operation works on, in its set, on its members and in the table of ranges.
//!
//! All of it is computed from the operation and its set alone.

use openraid_units::{MemberLba, PoolOffset, Sectors, SetLba, Slot, StripeIndex};

use crate::array::set::Set;
use crate::geometry::shape::Side;
use crate::geometry::{Geometry, Mirror, Parity, Row, StripeRole};
use crate::io::state::lock::{LockMode, LockRange};
use crate::io::state::op::{Op, OpKind, OpPayload};
use crate::io::state::plan::StripeView;
use crate::io::state::search::Part;
use crate::limits::REGION_SECTORS;
use crate::slot_set::SlotSet;

/// The sectors of an operation, by form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Footprint {
    /// Its set as a whole: [`OpKind::Flush`].
    Set,
    /// Sectors of its set at once: [`OpKind::Read`] and [`OpKind::Write`]; without parity [`OpKind::Discard`].
    Extent(Extent),
    /// A range of a set without parity, part by part: [`OpKind::Destage`], and background work on a mirror.
    Stretch(Stretch),
    /// Rows of a stripe, part by part: row operations, [`OpKind::Reparity`]; with parity [`OpKind::Discard`] and
    /// background work.
    Rows(StripeRows),
    /// Sectors of one member: [`OpKind::Redo`].
    Member(MemberExtent),
}

/// Sectors of a set, on one side of its shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(in crate::io) side: Side,
    pub at: SetLba,
    pub len: Sectors,
}

impl Extent {
    /// These sectors.
    #[inline(always)]
    pub(crate) const fn new(side: Side, at: SetLba, len: Sectors) -> Self {
        Self { side, at, len }
    }

    /// The side of the shape on which they are.
    pub(crate) const fn side(&self) -> Side {
        self.side
    }
}

/// Sectors of the member in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemberExtent {
    pub(in crate::io) side: Side,
    pub(in crate::io) slot: Slot,
    pub(in crate::io) at: MemberLba,
    pub(in crate::io) len: Sectors,
}

/// Sectors of a set, on one side of its shape, worked through in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(in crate::io) side: Side,
    pub at: SetLba,
    /// Counted from `at`: its range begins with 0.
    pub part: Part,
}

impl Stretch {
    /// A range from `at` on, with this part of it in work.
    #[inline(always)]
    pub(crate) const fn new(side: Side, at: SetLba, part: Part) -> Self {
        Self { side, at, part }
    }

    /// The whole footprint as one extent.
    pub(crate) fn whole(&self) -> Extent {
        Extent { side: self.side, at: self.at, len: Sectors(u64::from(self.part.range().1)) }
    }

    /// The part of it that is in work.
    pub(crate) fn in_work(&self) -> Extent {
        let (from, len) = (Sectors(u64::from(self.part.from())), Sectors(u64::from(self.part.len())));
        Extent { side: self.side, at: self.at + from, len }
    }
}

/// Rows of a stripe, worked through in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripeRows {
    /// The side of the shape on which the stripe has this number.
    pub(in crate::io) side: Side,
    pub stripe: StripeIndex,
    /// In rows of the stripe.
    pub part: Part,
    pub columns: Columns,
}

/// The data columns of a stripe that an operation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Columns {
    /// Every data column of the stripe.
    All,
    /// Neighbouring columns that a request, or an entry of a partial parity log, names.
    Named { first: u16, count: u16 },
    /// The slots of the neighbouring columns that gathered writes of several requests have data for, and the first of the
    /// columns. The data is copied into the operation's work frames.
    Gathered { band: SlotSet, first: u16 },
    /// Destage: the slots that get dirty data of the rows in work, none between two bands; and the first column of the
    /// next band in the same rows, 0 if there is none.
    Dirty { band: SlotSet, next: u16 },
}

/// The number of columns with these slots.
const fn columns_of(band: SlotSet) -> u16 {
    #[allow(clippy::cast_possible_truncation)] // a set has at most `MEMBERS_MAX` slots
    let count = band.len() as u16;
    count
}

impl StripeRows {
    /// These rows and columns of a stripe.
    #[inline(always)]
    pub(crate) const fn new(side: Side, stripe: StripeIndex, part: Part, columns: Columns) -> Self {
        Self { side, stripe, part, columns }
    }

    /// The first column that a request names, and the number of columns; 0 for operations without a request.
    #[inline(always)]
    pub(crate) const fn named(&self) -> (u16, u16) {
        match self.columns {
            Columns::Named { first, count } => (first, count),
            Columns::Gathered { first, band } => (first, columns_of(band)),
            Columns::All | Columns::Dirty { .. } => (0, 0),
        }
    }

    /// The slots whose data of the rows in work is copied into work frames: dirty data, or gathered writes.
    #[inline(always)]
    pub(crate) const fn band(&self) -> SlotSet {
        match self.columns {
            Columns::Dirty { band, .. } | Columns::Gathered { band, .. } => band,
            Columns::All | Columns::Named { .. } => SlotSet::EMPTY,
        }
    }

    /// The band is on the members.
    pub(crate) fn end_band(&mut self) {
        if let Columns::Dirty { band, .. } = &mut self.columns {
            *band = SlotSet::EMPTY;
        }
    }

    /// The first sector in the set: in the first of the named columns and rows.
    pub(crate) fn set_lba(&self, parity: &Parity) -> SetLba {
        parity.set_lba(self.stripe, self.named().0, Sectors(u64::from(self.part.range().0)))
    }
}

/// The slots of the data columns of a stripe, of P and of Q.
pub(crate) fn stripe_slots(parity: &Parity, row: Row<'_>) -> (SlotSet, Slot, Option<Slot>) {
    let (p, q) = (row.p_slot(), row.q_slot());
    let data = SlotSet::first_n(parity.members()).without(p);
    (q.map_or(data, |q| data.without(q)), p, q)
}

impl Footprint {
    /// The side of the set on which it is. A set as a whole counts as the old side.
    #[inline(always)]
    pub(in crate::io) const fn side(&self) -> Side {
        match self {
            Self::Set => Side::Old,
            Self::Extent(extent) => extent.side,
            Self::Stretch(stretch) => stretch.side,
            Self::Rows(rows) => rows.side,
            Self::Member(member) => member.side,
        }
    }
}

impl Op {
    /// The side of its set on which it works.
    #[inline(always)]
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// The geometry by which it was made.
    #[inline(always)]
    pub(crate) fn geometry<'a>(&self, set: &'a Set) -> &'a Geometry {
        set.shape().on(self.side())
    }

    /// The same for an operation on rows.
    #[inline(always)]
    pub(crate) fn parity<'a>(&self, set: &'a Set) -> &'a Parity {
        set.shape().parity(self.side)
    }

    /// The same for an operation on a mirror.
    #[inline(always)]
    pub(crate) fn mirror<'a>(&self, set: &'a Set) -> &'a Mirror {
        set.shape().mirror(self.side())
    }

    /// The sectors of the set that a slot of the band in work holds.
    pub(crate) fn band_extent(&self, set: &Set, slot: Slot) -> (SetLba, Sectors) {
        let (parity, rows) = (self.parity(set), self.rows_of());
        let StripeRole::Data(column) = parity.role_of(rows.stripe, slot) else {
            unreachable!("bands are of data columns")
        };
        (parity.set_lba(rows.stripe, column, Sectors(u64::from(rows.part.from()))), Sectors(u64::from(rows.part.len())))
    }

    /// Does the operation work on rows of a stripe, not on an extent?
    #[inline(always)]
    pub(crate) const fn is_by_rows(&self) -> bool {
        matches!(self.footprint, Footprint::Rows(_))
    }

    /// The stripe of its rows.
    #[inline(always)]
    pub(crate) const fn stripe(&self) -> Option<StripeIndex> {
        match &self.footprint {
            Footprint::Rows(rows) => Some(rows.stripe),
            _ => None,
        }
    }

    /// See [`StripeRows::band`].
    #[inline(always)]
    pub(crate) const fn band(&self) -> SlotSet {
        match &self.footprint {
            Footprint::Rows(rows) => rows.band(),
            _ => SlotSet::EMPTY,
        }
    }

    /// The number of its stripe, or the first sector of its extent, for readers.
    pub(crate) fn place_number(&self) -> u64 {
        match &self.footprint {
            Footprint::Set => 0,
            Footprint::Extent(extent) => extent.at.get(),
            Footprint::Stretch(stretch) => stretch.at.get(),
            Footprint::Rows(rows) => rows.stripe.0,
            Footprint::Member(member) => member.at.get(),
        }
    }

    /// The range that it locks: rows of its stripe, or sectors of its region.
    #[inline(always)]
    pub(crate) fn lock_range(&self, set: &Set) -> LockRange {
        let mode = if self.kind == OpKind::RowRead { LockMode::Shared } else { LockMode::Exclusive };
        let extent = match &self.footprint {
            Footprint::Rows(rows) => {
                let (lo, hi) = rows.part.range();
                let unit = self.parity(set).stripe_start(rows.stripe);
                return LockRange { set: self.set, unit, lo, hi, mode };
            }
            Footprint::Extent(extent) => *extent,
            Footprint::Stretch(stretch) => stretch.whole(),
            Footprint::Set | Footprint::Member(_) => unreachable!("it takes no range"),
        };
        let lo = u32::try_from(extent.at.get() % REGION_SECTORS).expect("a region is small");
        let len = u32::try_from(extent.len.get()).expect("an extent lies in its region");
        let unit = SetLba(extent.at.get() - u64::from(lo));
        LockRange { set: self.set, unit, lo, hi: lo + len, mode }
    }

    /// The number of the unit in which it locks its range, for readers: of its stripe or region.
    pub(crate) fn unit_number(&self) -> u64 {
        match &self.footprint {
            Footprint::Rows(rows) => rows.stripe.0,
            _ => self.extent().at.get() / REGION_SECTORS,
        }
    }

    /// The sectors that a bitmap would mark for it: of a member, or of the set for RAID 10.
    pub(crate) fn marked_range(&self, set: &Set) -> (u64, u64) {
        let extent = match &self.footprint {
            Footprint::Rows(rows) => {
                let base = self.parity(set).member_lba(rows.stripe, Sectors::ZERO).get();
                let (lo, hi) = rows.part.range();
                return (base + u64::from(lo), base + u64::from(hi));
            }
            Footprint::Extent(extent) => *extent,
            // Each run of a destage is a write of its own.
            Footprint::Stretch(stretch) if self.kind == OpKind::Destage => stretch.in_work(),
            Footprint::Stretch(stretch) => stretch.whole(),
            Footprint::Set | Footprint::Member(_) => unreachable!("it marks nothing"),
        };
        (extent.at.get(), extent.at.get() + extent.len.get())
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
        let rows = self.rows_of();
        let from = self.parity(set).member_lba(rows.stripe, Sectors(u64::from(rows.part.from())));
        (from, from + Sectors(u64::from(rows.part.len())))
    }

    /// Slots of the columns that it works on.
    pub(crate) fn named_slots(&self, set: &Set) -> SlotSet {
        let rows = self.rows_of();
        let row = || self.parity(set).row(rows.stripe);
        match rows.columns {
            Columns::Dirty { band, .. } | Columns::Gathered { band, .. } => band,
            Columns::Named { first, count } => {
                let row = row();
                (first..first + count).map(|column| row.slot_of(column)).collect()
            }
            Columns::All => stripe_slots(self.parity(set), row()).0,
        }
    }

    /// The members of its stripe and their condition for the rows in work.
    pub(crate) fn stripe_view(&self, set: &Set) -> StripeView {
        let parity = self.parity(set);
        let (data, p, q) = stripe_slots(parity, parity.row(self.rows_of().stripe));
        let (from, to) = self.member_rows(set);
        let (side, filled) = (self.side(), set.filled(self.side(), from, to));
        StripeView {
            data,
            p,
            q,
            readable: set.good(set.in_sync() | filled, side, from, to).minus(self.excluded),
            writable: set.writable(side),
            filling: set
                .writable(side)
                .minus(set.in_sync() | filled | set.filled_in_part(side, from, to) | set.inherited()),
            trusted: set.is_consistent(side, from.get(), to.get()),
        }
    }

    /// The work buffer of a slot.
    pub(crate) fn buffer(&self, slot: Slot) -> PoolOffset {
        debug_assert!(self.buffers.contains(slot));
        let before = u64::from(self.buffers.rank(slot)) * u64::from(self.rows());
        self.work().expect("buffers were taken").at + Sectors(before).bytes()
    }

    /// The first byte of its payload.
    pub(crate) fn payload_start(&self) -> PoolOffset {
        match self.payload {
            OpPayload::Zero { .. } => PoolOffset::ZERO,
            OpPayload::None => unreachable!("an operation without payload has no address"),
            OpPayload::Host(base) => base,
        }
    }

    /// The payload of a column and row of a row operation.
    pub(crate) fn payload_address(&self, set: &Set, column: u16, row: u32) -> PoolOffset {
        match self.payload {
            OpPayload::Zero { .. } => PoolOffset::ZERO,
            OpPayload::None => unreachable!("an operation without payload has no address"),
            OpPayload::Host(base) => {
                let rows = self.rows_of();
                let columns = self.parity(set).chunk() * u64::from(column - rows.named().0);
                base + (columns + Sectors(u64::from(row - rows.part.range().0))).bytes()
            }
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

    use crate::geometry::shape::Shape;
    use crate::geometry::{Level, SetSpec};
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, SetId, SetLba, StripeIndex};

    /// Four members of 64 chunks of 8 sectors, layout left-symmetric (RAID 5) or near 2 (RAID 10).
    fn set(level: Level, layout: u32) -> Set {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level, members: 4, chunk: Sectors(8), layout, member_size, member_sizes };
        Set::new(ArrayId(0), Shape::of(&spec), (BlockSize::B512, 8), &Limits::small())
    }

    /// Rows 2 to 6 of two columns from the second one of stripe 5, rows 4 to 6 in work.
    fn row_write() -> Op {
        let mut part = Part::whole(2, 6);
        part.take(4, 6);
        let rows = StripeRows {
            side: Side::Old,
            stripe: StripeIndex(5),
            part,
            columns: Columns::Named { first: 1, count: 2 },
        };
        Op::new(OpKind::RowWrite, SetId(0), Footprint::Rows(rows))
    }

    #[test]
    fn a_row_write_locks_its_rows_and_marks_the_same_rows_of_the_members() {
        let (set, op) = (set(Level::Raid5, 2), row_write());
        let range = op.lock_range(&set);
        // Stripe 5 of three data columns begins with sector 5 x 24.
        assert_eq!((range.unit, range.lo, range.hi, range.mode), (SetLba(5 * 24), 2, 6, LockMode::Exclusive));
        assert_eq!(op.unit_number(), 5);
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
    fn a_stretch_is_locked_as_a_whole_and_a_destage_marks_only_the_run_in_work() {
        let mirror = set(Level::Raid10, 0x102);
        let mut part = Part::not_begun(0, 8);
        part.take(2, 5);
        let at = 2 * REGION_SECTORS + 16;
        let on = |kind| Op::new(kind, SetId(0), Footprint::Stretch(Stretch { side: Side::Old, at: SetLba(at), part }));
        for (kind, marked) in [(OpKind::Resync, (at, at + 8)), (OpKind::Destage, (at + 2, at + 5))] {
            let op = on(kind);
            let range = op.lock_range(&mirror);
            assert_eq!((range.unit, range.lo, range.hi), (SetLba(2 * REGION_SECTORS), 16, 24));
            assert_eq!(op.marked_range(&mirror), marked, "{kind:?}");
            assert_eq!(op.extent(), Extent { side: Side::Old, at: SetLba(at + 2), len: Sectors(3) });
        }
    }

    #[test]
    fn a_stripe_is_for_all_columns_for_named_ones_or_for_dirty_ones() {
        let set = set(Level::Raid5, 2);
        let slots = |columns| {
            let rows = StripeRows { side: Side::Old, stripe: StripeIndex(5), part: Part::whole(0, 8), columns };
            Op::new(OpKind::Discard, SetId(0), Footprint::Rows(rows)).named_slots(&set)
        };
        // Its parity is in slot 2.
        assert!(slots(Columns::All).iter().eq([Slot(0), Slot(1), Slot(3)]));
        assert!(slots(Columns::Named { first: 0, count: 1 }).iter().eq([Slot(3)]));
        let band = SlotSet::one(Slot(1));
        let mut rows = StripeRows {
            side: Side::Old,
            stripe: StripeIndex(5),
            part: Part::not_begun(0, 8),
            columns: Columns::Dirty { band, next: 2 },
        };
        assert_eq!(slots(rows.columns), band);
        rows.end_band();
        assert_eq!(rows.columns, Columns::Dirty { band: SlotSet::EMPTY, next: 2 });
    }

    #[test]
    fn payload_of_later_columns_follows_a_chunk_apart() {
        let (set, base) = (set(Level::Raid5, 2), PoolOffset(1 << 20));
        let op = Op { payload: OpPayload::Host(base), ..row_write() };
        assert_eq!(op.payload_address(&set, 1, 2), base);
        assert_eq!(op.payload_address(&set, 2, 3), base + (Sectors(8) + Sectors(1)).bytes());
        let zero = Op { payload: OpPayload::Zero { may_discard: false }, ..op };
        assert_eq!(zero.payload_address(&set, 2, 3), PoolOffset::ZERO);
    }
}
