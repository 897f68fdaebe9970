//! Sectors that could not be read are rewritten from redundancy.

use openraid_units::{MemberLba, Sectors, SetId, Slot};

use super::set_tasks::Repair;
use crate::array::sets::Sets;
use crate::geometry::Geometry;
use crate::io::state::footprint::{narrow, Columns, Stretch, StripeRows};
use crate::io::state::op::{BackgroundData, BackgroundKind, Op, UnitRange};
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::limits::REGION_SECTORS;
use crate::slots::SlotSet;

impl Sets {
    /// A read of this range failed: rewrite it when there is time.
    pub(crate) fn want_repair(&mut self, id: SetId, slot: Slot, at: MemberLba, len: Sectors) {
        self.want(id, Repair { slot, at, len, is_rewrite: false });
    }

    /// The member had no room for a write of this range: write what it holds there.
    pub(crate) fn want_rewrite(&mut self, id: SetId, slot: Slot, at: MemberLba, len: Sectors) {
        self.want(id, Repair { slot, at, len, is_rewrite: true });
    }

    fn want(&mut self, id: SetId, repair: Repair) {
        let set = self.get_mut(id);
        let useful = set.is_redundant() && set.metadata.is_some() && set.in_sync().contains(repair.slot);
        if useful && set.tasks.want_repair(repair) {
            self.look();
        }
    }

    /// The operation for the first part of a repair, and the rest of it.
    fn repair_op(&self, id: SetId, repair: Repair) -> Option<(Op, Option<Repair>)> {
        let set = self.get(id);
        if !set.in_sync().contains(repair.slot) {
            return None;
        }
        let data = BackgroundData::new(SlotSet::one(repair.slot), None, false);
        let data = if repair.is_rewrite { data.rewriting() } else { data };
        let (range, len) = match set.geometry() {
            Geometry::Parity(parity) => {
                let (stripe, within) = parity.stripe_at(repair.at)?;
                let len = repair.len.min(parity.chunk() - within);
                let lo = narrow(within);
                let part = Part::first(lo, lo + narrow(len), set.rows_max());
                (UnitRange::Rows(StripeRows { stripe, part, columns: Columns::All }), len)
            }
            Geometry::Mirror(mirror) => {
                let (at, run) = mirror.inverse(repair.slot, repair.at)?;
                let in_region = Sectors(REGION_SECTORS - at.get() % REGION_SECTORS);
                let len = repair.len.min(run).min(in_region);
                (UnitRange::Stretch(Stretch { at, part: Part::first(0, narrow(len), set.rows_max()) }), len)
            }
            _ => return None,
        };
        let op = Op::in_background(BackgroundKind::Rebuild, id, range, data);
        let rest = (repair.len > len).then(|| Repair { at: repair.at + len, len: repair.len - len, ..repair });
        Some((op, rest))
    }
}

impl Sets {
    /// Make operations for the waiting repairs.
    pub(crate) fn pump_repairs(&mut self, ops: &mut Ops, id: SetId) -> bool {
        let mut moved = false;
        while ops.may_make_background_op() && self.get(id).tasks.may_repair() {
            let Some(repair) = self.get_mut(id).tasks.next_repair() else { break };
            moved = true;
            let Some((op, rest)) = self.repair_op(id, repair) else { continue };
            let set = self.get_mut(id);
            set.tasks.begin_repair(rest);
            set.begin_op();
            let key = ops.put(op);
            ops.wake(key.index);
        }
        moved
    }
}
