//! The rows in work: a part of them is tried, or the next ones are taken.

use crate::array::sets::Sets;
use crate::io::state::op::OpKind;
use crate::io::state::op::Phase;
use crate::io::state::ops::Ops;
use crate::io::state::plan::{plan_recovery, plan_write};
use crate::io::steps::background_plan::{member_place, plan_of_background};
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::release_work;
use crate::ppl::write_log::end_record;
use crate::slot_set::SlotSet;
use openraid_units::Sectors;

impl OpIo<'_> {
    /// The rows in work cannot be read as a whole: try parts of them. False if they are one block, which is lost.
    pub(crate) fn narrow_rows(&mut self, index: u32) -> bool {
        let block = self.ops.block_of(self.sets, index);
        release_work(self.ops, self.pool, index);
        let op = &mut self.ops[index];
        let is_narrowed = op.part_mut().narrow(block);
        if is_narrowed {
            op.excluded = SlotSet::EMPTY;
        }
        is_narrowed
    }

    /// Reads of the rows in work failed. If parity may not match there, recovered data would be a guess, and the other
    /// sectors of the command are unknown, not bad: they are read in parts. If redundancy has the missing data, or the
    /// bad block is found, its member is repaired there. Otherwise the next plan narrows the rows.
    pub(crate) fn rows_unread(&mut self, index: u32) {
        release_work(self.ops, self.pool, index);
        let op = &self.ops[index];
        let failed = op.plan.read & op.excluded;
        if is_unfit(self.sets, self.ops, index) && self.narrow_rows(index) {
            return;
        }
        if !is_replaced(self.sets, self.ops, index) {
            let op = &self.ops[index];
            // Background work records lost blocks at once, without a repair.
            if op.is_background() || op.rows() > self.ops.block_of(self.sets, index) {
                return;
            }
        }
        let op = self.ops[index];
        // A repair already knows its member.
        let known = if op.is_sector_rewrite() { op.background().remade } else { SlotSet::EMPTY };
        for slot in failed.minus(known) {
            let (at, len) = (member_place(self.sets, &op, slot), Sectors(u64::from(op.rows())));
            self.sets.want_restored(op.set, (op.side(), slot), at, len);
        }
    }

    /// If parity may not match, a known bad block is left out by itself, without its neighbours.
    pub(crate) fn narrow_unfit_rows(&mut self, index: u32) {
        if !self.sets.get(self.ops[index].set).has_bad() {
            return;
        }
        while is_unfit(self.sets, self.ops, index) && meets_bad_block(self.sets, self.ops, index) {
            if self.ops[index].rows() <= self.ops.block_of(self.sets, index) || !self.narrow_rows(index) {
                return;
            }
        }
    }

    /// The rows in work are done: take the next ones, if any.
    pub(crate) fn next_rows(&mut self, index: u32) -> bool {
        self.journal.unlog(self.sets, &mut self.ops[index]);
        end_record(self.sets, &mut self.ops[index], self.call.planted());
        release_work(self.ops, self.pool, index);
        let block = self.ops.block_of(self.sets, index);
        let op = &mut self.ops[index];
        let set = self.sets.get(op.set);
        let rows_max = if op.is_background() { set.tasks.pace().rows(set.rows_max()) } else { set.rows_max() };
        op.excluded = SlotSet::EMPTY;
        op.phase = Phase::Planning;
        op.part_mut().advance(block, rows_max)
    }
}

/// Can the operation do without the members whose reads failed?
pub(crate) fn is_replaced(sets: &Sets, ops: &Ops, index: u32) -> bool {
    let op = &ops[index];
    match op.kind {
        OpKind::Rebuild | OpKind::Resync | OpKind::Scrub => plan_of_background(sets, op).is_some(),
        OpKind::RowRead => plan_recovery(&op.stripe_view(sets.get(op.set))).is_ok(),
        _ => {
            let policy = sets.get(op.set).policy().partial_write;
            plan_write(&op.stripe_view(sets.get(op.set)), op.named_slots(sets.get(op.set)), policy).is_ok()
        }
    }
}

pub(crate) fn meets_bad_block(sets: &Sets, ops: &Ops, index: u32) -> bool {
    let op = &ops[index];
    let (set, (from, to)) = (sets.get(op.set), op.member_rows(sets.get(op.set)));
    set.good(set.in_sync(), op.side(), from, to) != set.in_sync()
}

/// May the parity of the rows in work not match?
pub(crate) fn is_unfit(sets: &Sets, ops: &Ops, index: u32) -> bool {
    let op = &ops[index];
    if !op.is_by_rows() {
        return false;
    }
    let (from, to) = op.member_rows(sets.get(op.set));
    !sets.get(op.set).is_consistent(op.side(), from.get(), to.get())
}
