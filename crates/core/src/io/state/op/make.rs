//! The constructors of operations: one for each kind of work, so that kind, footprint and data fit each other.

use openraid_units::{Sectors, SetId, SetLba, Slot};

use super::{
    BackgroundData, DestageData, Edges, KindData, MoveData, Op, OpKind, OpPayload, RedoData, WorksFor, WriteData,
};
use crate::geometry::shape::Side;
use crate::io::state::footprint::{Extent, Footprint, MemberExtent, Stretch, StripeRows};
use crate::io::state::task_pace::TaskPace;
use crate::slot_set::SlotSet;

/// The sectors of a read, a write or a discard.
#[derive(Clone, Debug)]
pub(crate) enum HostRange {
    /// Sectors of a set that is not processed by rows.
    Extent(Extent),
    /// Rows of a stripe.
    Rows(StripeRows),
}

/// The sectors of a destage or of background work.
#[derive(Clone, Debug)]
pub(crate) enum UnitRange {
    /// A range of a set without parity.
    Stretch(Stretch),
    /// Rows of a stripe.
    Rows(StripeRows),
}

/// The kinds of background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BackgroundKind {
    /// A slot, or a bad sector of it, is filled.
    Rebuild,
    /// Parity or copies are made to match.
    Resync,
    /// A check or repair.
    Scrub,
}

impl HostRange {
    /// The footprint, and which of two kinds it needs: the first for an extent, the second for rows.
    #[inline(always)]
    fn with_kind(self, extent: OpKind, rows: OpKind) -> (OpKind, Footprint) {
        match self {
            Self::Extent(range) => (extent, Footprint::Extent(range)),
            Self::Rows(stripe_rows) => (rows, Footprint::Rows(stripe_rows)),
        }
    }
}

impl UnitRange {
    #[inline(always)]
    fn footprint(self) -> Footprint {
        match self {
            Self::Stretch(stretch) => Footprint::Stretch(stretch),
            Self::Rows(rows) => Footprint::Rows(rows),
        }
    }
}

impl Op {
    /// A read into this payload, for a piece.
    #[inline(always)]
    pub(crate) fn read(set: SetId, range: HostRange, payload: OpPayload) -> Self {
        let (kind, footprint) = range.with_kind(OpKind::Read, OpKind::RowRead);
        Self { payload, ..Self::bare(kind, set, footprint) }
    }

    /// A write of this payload, for a piece. `edges`: the blocks at its ends that the payload does not fill, if any.
    #[inline(always)]
    pub(crate) fn write(set: SetId, range: HostRange, payload: OpPayload, edges: Option<Edges>) -> Self {
        let (kind, footprint) = range.with_kind(OpKind::Write, OpKind::RowWrite);
        let data = KindData::Write(WriteData { fua: false, edges });
        Self { payload, data, ..Self::bare(kind, set, footprint) }
    }

    /// The write of rows that several requests have adjoining data for. See [`crate::requests::gather`].
    pub(crate) fn gathered(set: SetId, rows: StripeRows, fua: bool, gather: u32) -> Self {
        let data = KindData::Write(WriteData { fua, edges: None });
        let works_for = WorksFor::Gather(gather);
        Self { data, works_for, ..Self::bare(OpKind::RowWrite, set, Footprint::Rows(rows)) }
    }

    /// A discard. Rows of a stripe must be the whole stripe.
    pub(crate) fn discard(set: SetId, range: HostRange) -> Self {
        let (kind, footprint) = range.with_kind(OpKind::Discard, OpKind::Discard);
        Self::bare(kind, set, footprint)
    }

    /// A flush of the members of a set.
    pub(crate) fn flush(set: SetId) -> Self {
        Self::bare(OpKind::Flush, set, Footprint::Set)
    }

    /// A read of one block for an operation, inside its range and into its work frames.
    pub(in crate::io) fn read_for(parent: u32, set: SetId, range: HostRange, payload: OpPayload) -> Self {
        Self { works_for: WorksFor::Op(parent), ..Self::read(set, range, payload) }
    }

    /// The write of the dirty data of a unit.
    #[inline(always)]
    pub(crate) fn destage_of(set: SetId, range: UnitRange, data: DestageData) -> Self {
        let kind = match range {
            UnitRange::Stretch(_) => OpKind::Destage,
            UnitRange::Rows(_) => OpKind::RowDestage,
        };
        Self { data: KindData::Destage(data), ..Self::bare(kind, set, range.footprint()) }
    }

    /// Background work.
    pub(crate) fn in_background(kind: BackgroundKind, set: SetId, range: UnitRange, data: BackgroundData) -> Self {
        let kind = match kind {
            BackgroundKind::Rebuild => OpKind::Rebuild,
            BackgroundKind::Resync => OpKind::Resync,
            BackgroundKind::Scrub => OpKind::Scrub,
        };
        Self { data: KindData::Background(data), ..Self::bare(kind, set, range.footprint()) }
    }

    /// The write of records of the journal to one member.
    pub(in crate::io) fn redo_of(set: SetId, extent: MemberExtent, data: RedoData) -> Self {
        Self { data: KindData::Redo(data), ..Self::bare(OpKind::Redo, set, Footprint::Member(extent)) }
    }

    /// The computation of the parity in a slot for an entry of a partial parity log.
    pub(crate) fn reparity(set: SetId, rows: StripeRows, parity: Slot) -> Self {
        Self { data: KindData::Reparity(parity), ..Self::bare(OpKind::Reparity, set, Footprint::Rows(rows)) }
    }

    /// The move of a range to the new side, which is the unit of the change at this distance.
    pub(crate) fn moving(set: SetId, start: SetLba, len: Sectors, at: Sectors) -> Self {
        let data = KindData::Move(MoveData { at, pace: TaskPace::Full, begun: 0, band: None, lost: SlotSet::EMPTY });
        let range = Extent::new(Side::New, start, len);
        Self { data, ..Self::bare(OpKind::Move, set, Footprint::Extent(range)) }
    }

    /// Make it work for a request without pieces.
    pub(crate) fn for_request(self, request: u32) -> Self {
        Self { works_for: WorksFor::Request(request), ..self }
    }

    /// Make it work for a piece, of a host's request or of read-ahead.
    #[inline(always)]
    pub(crate) fn for_piece(mut self, piece: u32, is_ahead: bool, fua: bool) -> Self {
        self.works_for = if is_ahead { WorksFor::Ahead(piece) } else { WorksFor::Piece(piece) };
        if fua {
            if let KindData::Write(write) = &mut self.data {
                write.fua = true;
            }
        }
        self
    }

    /// An operation of any kind, without data: for tests of rules that look at little of it.
    #[cfg(test)]
    pub(crate) fn new(kind: OpKind, set: SetId, footprint: Footprint) -> Self {
        Self::bare(kind, set, footprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::state::footprint::Columns;
    use crate::io::state::search::Part;
    use crate::reason::Reason;
    use openraid_units::{PoolOffset, StripeIndex};

    fn rows() -> StripeRows {
        StripeRows {
            side: Side::Old,
            stripe: StripeIndex(3),
            part: Part::whole(0, 8),
            columns: Columns::Named { first: 0, count: 1 },
        }
    }

    fn extent() -> Extent {
        Extent { side: Side::Old, at: SetLba(40), len: Sectors(8) }
    }

    fn stretch() -> Stretch {
        Stretch { side: Side::Old, at: SetLba(40), part: Part::whole(0, 8) }
    }

    #[test]
    fn the_range_says_whether_a_host_operation_is_one_of_rows() {
        let payload = OpPayload::Host(PoolOffset(4096));
        let edges = Some(Edges::new(512, 0));
        let kinds = |range: fn() -> HostRange| {
            let write = Op::write(SetId(2), range(), payload, edges);
            assert_eq!((write.edges(), write.payload(), write.set()), (edges, payload, SetId(2)));
            assert_eq!(Op::write(SetId(2), range(), payload, None).edges(), None);
            [Op::read(SetId(2), range(), payload).kind(), write.kind(), Op::discard(SetId(2), range()).kind()]
        };
        assert_eq!(kinds(|| HostRange::Extent(extent())), [OpKind::Read, OpKind::Write, OpKind::Discard]);
        assert_eq!(kinds(|| HostRange::Rows(rows())), [OpKind::RowRead, OpKind::RowWrite, OpKind::Discard]);
    }

    #[test]
    fn each_kind_has_its_data_and_its_owner() {
        let data = DestageData { unit: 5, epoch: 1, lines: 2, why: Reason::DestageAged };
        let of = |range| Op::destage_of(SetId(0), range, data);
        let destages = [of(UnitRange::Stretch(stretch())), of(UnitRange::Rows(rows()))];
        assert_eq!(destages.map(|op| (op.kind(), op.destage().unit)), [(OpKind::Destage, 5), (OpKind::RowDestage, 5)]);
        let kinds = [BackgroundKind::Rebuild, BackgroundKind::Resync, BackgroundKind::Scrub];
        let background = BackgroundData::new(SlotSet::one(Slot(1)), None, false);
        let works = kinds.map(|kind| Op::in_background(kind, SetId(0), UnitRange::Rows(rows()), background));
        assert_eq!(works.map(|op| op.kind()), [OpKind::Rebuild, OpKind::Resync, OpKind::Scrub]);
        assert!(works.iter().all(|op| op.is_background() && op.background().corrected() == 0));
        assert!(works[0].is_sector_rewrite(), "it belongs to no task");
        assert_eq!(Op::reparity(SetId(0), rows(), Slot(2)).parity_slot(), Slot(2));
        let ends =
            [Op::flush(SetId(0)).for_request(7), Op::read_for(9, SetId(0), HostRange::Rows(rows()), OpPayload::None)];
        assert_eq!(ends.map(|op| op.works_for()), [WorksFor::Request(7), WorksFor::Op(9)]);
        let read =
            |is_ahead| Op::read(SetId(0), HostRange::Extent(extent()), OpPayload::None).for_piece(4, is_ahead, false);
        assert_eq!([false, true].map(|ahead| read(ahead).works_for()), [WorksFor::Piece(4), WorksFor::Ahead(4)]);
    }
}
