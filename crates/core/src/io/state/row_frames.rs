//! The places of the bytes of the rows in work, in the frames of an operation and of its piece.

use crate::frames::Run;
use crate::geometry::{Geometry, StripeRole};
use crate::io::state::footprint::Columns;
use crate::io::state::op::{Op, OpPayload};
use crate::slot_set::SlotSet;
use openraid_units::{PoolOffset, Sectors, Slot, StripeIndex};

/// The places of the bytes of the rows in work, computed once for all slots: buffers in the operation's work frames,
/// followed by the data that a destage or a gathered write has copied there; or the payload of its piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFrames {
    pub(in crate::io) run: Option<Run>,
    pub(in crate::io) buffers: SlotSet,
    /// Sectors of each.
    pub(in crate::io) rows: u32,
    pub(in crate::io) data: RowData,
}

/// The place of the data of the named slots.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowData {
    /// A destage, or a gathered write: after the buffers, for these slots.
    Staged(SlotSet),
    /// The piece's data, from its first column and row on. The rows in work begin `skip` rows later.
    Payload { payload: OpPayload, stripe: StripeIndex, first: u16, skip: u32 },
}

impl RowFrames {
    #[inline(always)]
    pub(crate) fn of(op: &Op) -> Self {
        let rows = op.rows_of();
        let data = if let Columns::Dirty { band, .. } | Columns::Gathered { band, .. } = rows.columns {
            RowData::Staged(band)
        } else {
            let skip = rows.part.from() - rows.part.range().0;
            RowData::Payload { payload: op.payload, stripe: rows.stripe, first: rows.named().0, skip }
        };
        Self { run: op.work(), buffers: op.buffers, rows: rows.part.len(), data }
    }

    #[inline(always)]
    pub(in crate::io) fn place(&self, number: u32) -> PoolOffset {
        let run = self.run.expect("buffers were taken");
        run.at + Sectors(u64::from(number) * u64::from(self.rows)).bytes()
    }

    /// The work buffer of a slot.
    #[inline(always)]
    pub(crate) fn buffer(&self, slot: Slot) -> PoolOffset {
        debug_assert!(self.buffers.contains(slot));
        self.place(self.buffers.rank(slot))
    }

    /// The place of the bytes for a slot that the operation names.
    #[inline(always)]
    pub(crate) fn named(&self, geometry: &Geometry, slot: Slot) -> PoolOffset {
        match self.data {
            RowData::Staged(staged) => self.place(self.buffers.len() + staged.rank(slot)),
            RowData::Payload { payload, stripe, first, skip } => {
                let Geometry::Parity(parity) = geometry else { unreachable!("rows are of parity sets") };
                let StripeRole::Data(column) = parity.role_of(stripe, slot) else {
                    unreachable!("requests name data columns")
                };
                match payload {
                    OpPayload::Zero { .. } => PoolOffset::ZERO,
                    OpPayload::None => unreachable!("an operation without payload has no address"),
                    OpPayload::Host(base) => {
                        let columns = parity.chunk() * u64::from(column - first);
                        base + (columns + Sectors(u64::from(skip))).bytes()
                    }
                }
            }
        }
    }

    /// In the payload if the request names the slot's column, otherwise in its work buffer.
    #[inline(always)]
    pub(in crate::io) fn read_at(&self, geometry: &Geometry, slot: Slot) -> PoolOffset {
        if self.buffers.contains(slot) {
            self.buffer(slot)
        } else {
            self.named(geometry, slot)
        }
    }

    /// The place of the bytes that a slot gets; parities are in their buffers.
    #[inline(always)]
    pub(crate) fn written(&self, geometry: &Geometry, parities: SlotSet, slot: Slot) -> PoolOffset {
        if parities.contains(slot) {
            self.buffer(slot)
        } else {
            self.named(geometry, slot)
        }
    }
}
