//! Sectors that could not be read are rewritten from redundancy.

use openraid_units::{Sectors, SetId};

use crate::array::sector_rewrite::SectorRewrite;
use crate::array::sets::Sets;
use crate::geometry::Geometry;
use crate::io::state::footprint::{narrow, Columns, Stretch, StripeRows};
use crate::io::state::op::{BackgroundData, BackgroundKind, Op, UnitRange};
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::limits::REGION_SECTORS;
use crate::slot_set::SlotSet;

/// The operation for the first part of a rewrite, and the rest of it.
fn rewrite_op(sets: &Sets, id: SetId, rewrite: SectorRewrite) -> Option<(Op, Option<SectorRewrite>)> {
    let set = sets.get(id);
    let (slot, (from, whole)) = (rewrite.slot(), rewrite.range());
    if !set.in_sync().contains(slot) {
        return None;
    }
    let data = BackgroundData::new(SlotSet::one(slot), None, false);
    let data = if rewrite.is_rewrite() { data.rewriting() } else { data };
    let side = rewrite.side();
    let (range, len) = match set.shape().on(side) {
        Geometry::Parity(parity) => {
            let (stripe, within) = parity.stripe_at(from)?;
            let len = whole.min(parity.chunk() - within);
            let lo = narrow(within);
            let part = Part::first(lo, lo + narrow(len), set.rows_max());
            (UnitRange::Rows(StripeRows::new(side, stripe, part, Columns::All)), len)
        }
        Geometry::Mirror(mirror) => {
            let (at, run) = mirror.inverse(slot, from)?;
            let in_region = Sectors(REGION_SECTORS - at.get() % REGION_SECTORS);
            let len = whole.min(run).min(in_region);
            (UnitRange::Stretch(Stretch::new(side, at, Part::first(0, narrow(len), set.rows_max()))), len)
        }
        _ => return None,
    };
    let op = Op::in_background(BackgroundKind::Rebuild, id, range, data);
    Some((op, rewrite.after(len)))
}

/// Make operations for the waiting rewrites.
pub(crate) fn pump_rewrites(sets: &mut Sets, ops: &mut Ops, id: SetId) -> bool {
    let mut moved = false;
    while ops.may_make_background_op() && sets.get(id).tasks.may_rewrite() {
        let Some(rewrite) = sets.get_mut(id).tasks.next_rewrite() else { break };
        moved = true;
        let Some((op, rest)) = rewrite_op(sets, id, rewrite) else { continue };
        let set = sets.get_mut(id);
        set.tasks.begin_rewrite(rest);
        let key = ops.begin(set, op);
        ops.wake(key.index);
    }
    moved
}
