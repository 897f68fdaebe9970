//! One unit of background work: restore, make consistent, or compare ([`compare_op`](super::compare_op)).
//!
//! A unit is a stripe of a parity set, or a range of a mirror. It is processed in parts that fit the work frames. A
//! part that cannot be read is narrowed down to one block, so that a bad sector costs only a sector.

use openraid_units::{Sectors, SetLba};

use crate::actions::{JobColumn, JobKind, NoticeKind};
use crate::array::sets::Sets;
use crate::background::check_task::{note_repaired, note_uncompared};
use crate::geometry::StripeRole;
use crate::io::state::ended::{EndedOps, OpReport, Past};
use crate::io::state::job::Job;
use crate::io::state::op::{Computation, Op, OpKind, Phase};
use crate::io::steps::background_plan::{is_obsolete, member_place, plan_of_background, rows_at, written_from};
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::row_op::weight_of;
use crate::io::steps::step::hold_for_commands;
use crate::reason::FailReason;
use crate::set_status::MemberState;
use crate::slot_set::SlotSet;

/// After a resync overwrites copies, drop the cached range: the cache may hold data of a copy that has just been
/// overwritten (hosts read whichever copy was readable first).
fn forget_copies(ended: &mut EndedOps, sets: &Sets, op: &Op) {
    if sets.get(op.set).shape().is_mirror() {
        report_stale(ended, op, rows_at(op));
    }
}

fn report_stale(ended: &mut EndedOps, op: &Op, at: SetLba) {
    ended.report(OpReport::Stale(op.set, Past { side: op.side(), at, len: Sectors(u64::from(op.rows())), columns: 1 }));
}

/// Drop from the cache data that a repair has corrected, because the cache may have read it before.
fn forget_corrected(ended: &mut EndedOps, sets: &Sets, op: &Op) {
    if op.plan.write.is_empty() {
        return;
    }
    if !op.is_by_rows() {
        return forget_copies(ended, sets, op);
    }
    for slot in op.plan.write {
        let parity = op.parity(sets.get(op.set));
        let rows = op.rows_of();
        let StripeRole::Data(column) = parity.role_of(rows.stripe, slot) else { continue };
        let at = parity.set_lba(rows.stripe, column, Sectors(u64::from(rows.part.from())));
        report_stale(ended, op, at);
    }
}

impl OpIo<'_> {
    /// One block cannot be restored: record it as lost on the members that lack it, and continue.
    fn rows_lost(&mut self, index: u32) {
        let op = self.ops[index];
        if op.kind == OpKind::Scrub {
            return note_uncompared(self.sets, &op);
        }
        let len = Sectors(u64::from(op.rows()));
        // Members whose reads failed would be asked again each time, and fail again.
        for slot in op.excluded.minus(op.background().remade) {
            let (at, set) = (member_place(self.sets, &op, slot), self.sets.get(op.set));
            let member = set.place(slot).member();
            if let Some(member) = member.filter(|member| set.member(*member).state() == MemberState::InSync) {
                // Without a log it is as on any array without one.
                let _ = self.sets.record_lost((op.set, op.side()), member, at, len, &mut self.call);
            }
        }
        if op.kind != OpKind::Rebuild {
            return;
        }
        for slot in op.background().remade {
            let at = member_place(self.sets, &op, slot);
            let place = self.sets.get(op.set).place(slot);
            let Some(member) = place.of(op.background().replace) else { continue };
            let recorded = self.sets.record_lost((op.set, op.side()), member, at, len, &mut self.call);
            let state = self.sets.get(op.set).member(member).state();
            // A working member is asked again and says again that it cannot be read. One that is being filled would
            // be believed.
            if !recorded && state != MemberState::InSync {
                self.fail_member((op.set, member), FailReason::BadBlockLogFull);
            }
        }
    }

    pub(crate) fn step_background(&mut self, index: u32) {
        match self.ops[index].phase {
            Phase::Planning => self.plan_background(index),
            Phase::ReadingOld => {
                let op = self.ops[index];
                self.ops[index].frames_abandoned = false;
                if op.plan.read.intersects(op.excluded) {
                    self.rows_unread(index);
                    self.ops[index].phase = Phase::Planning;
                    return self.plan_background(index);
                }
                self.compute_background(index);
            }
            Phase::Computing(Computation::Recover) if self.ops[index].kind == OpKind::Scrub => self.start_check(index),
            Phase::Computing(Computation::Recover) => self.push_missing_parity(index),
            Phase::Computing(Computation::Parity) | Phase::Logging => self.log_background(index),
            Phase::Computing(Computation::Check) => self.on_checked(index),
            Phase::Writing | Phase::Recording => {
                if self.pass_reply_gate(index) {
                    self.background_written(index);
                }
            }
            phase => unreachable!("background work is never in {phase:?}"),
        }
    }

    pub(super) fn background_rows_done(&mut self, index: u32) {
        if self.next_rows(index) {
            self.plan_background(index);
        } else {
            self.finish_op(index);
        }
    }

    fn plan_background(&mut self, index: u32) {
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        self.narrow_unfit_rows(index);
        let op = self.ops[index];
        if is_obsolete(self.sets, &op) {
            return self.finish_op(index);
        }
        let Some(plan) = plan_of_background(self.sets, &op) else {
            if self.narrow_rows(index) {
                return self.plan_background(index);
            }
            self.rows_lost(index);
            return self.background_rows_done(index);
        };
        if plan.read.is_empty() {
            return self.background_rows_done(index);
        }
        if !self.take_buffers(index, plan.read | plan.lost | plan.parity) {
            return;
        }
        let op = &mut self.ops[index];
        (op.plan, op.phase) = (plan, Phase::ReadingOld);
        let op = *op;
        for slot in plan.read {
            let (lba, at) = (member_place(self.sets, &op, slot), op.buffer(slot));
            let range = MemberRange { slot, lba, len: Sectors(u64::from(op.rows())), at };
            self.issue_read(index, range, SlotSet::EMPTY);
        }
    }

    fn compute_background(&mut self, index: u32) {
        let op = self.ops[index];
        if op.kind == OpKind::Scrub {
            if op.plan.lost.is_empty() {
                return self.start_check(index);
            }
            self.ops[index].phase = Phase::Computing(Computation::Recover);
            let p = op.stripe_view(self.sets.get(op.set)).p;
            return self.push_recover_by(index, SlotSet::one(p));
        }
        if op.kind == OpKind::Resync {
            forget_copies(self.ended, self.sets, &op);
            if op.plan.lost.is_empty() && op.plan.read.intersects(op.plan.write) {
                self.ops[index].phase = Phase::Computing(Computation::Check);
                return self.push_check(index, 0, op.row_bytes());
            }
        }
        if !op.is_by_rows() || op.background().replace && op.plan.lost.is_empty() && op.plan.parity.is_empty() {
            return self.log_background(index);
        }
        if op.plan.lost.is_empty() {
            return self.push_missing_parity(index);
        }
        self.ops[index].phase = Phase::Computing(Computation::Recover);
        self.push_recover(index);
    }

    pub(super) fn push_missing_parity(&mut self, index: u32) {
        let op = self.ops[index];
        if op.plan.parity.is_empty() {
            return self.log_background(index);
        }
        self.ops[index].phase = Phase::Computing(Computation::Parity);
        let view = op.stripe_view(self.sets.get(op.set));
        let columns = self.call.actions().columns.len();
        for slot in view.data {
            let at = op.buffer(slot);
            self.call.actions().columns.push(JobColumn { index: weight_of(self.sets, &op, slot), at, old: at });
        }
        let p = op.plan.parity.contains(view.p).then(|| op.buffer(view.p));
        let q = view.q.filter(|q| op.plan.parity.contains(*q)).map(|q| op.buffer(q));
        self.push_job(index, Job::new(JobKind::Generate, op.row_bytes(), columns).with_parity(p, q));
    }

    fn log_background(&mut self, index: u32) {
        self.ops[index].phase = Phase::Logging;
        if self.pass_write_gate(index).is_err() {
            return;
        }
        self.ops[index].phase = Phase::Writing;
        let op = self.ops[index];
        for slot in op.plan.write {
            let from = written_from(self.sets, &op, slot);
            let range = MemberRange {
                slot,
                lba: member_place(self.sets, &op, slot),
                len: Sectors(u64::from(op.rows())),
                at: op.buffer(from),
            };
            if op.background().replace {
                if let Some(replacement) = self.sets.get(op.set).place(slot).replacement() {
                    self.issue_write_to(index, replacement, range);
                }
            } else {
                self.issue_write(index, range);
            }
        }
        if self.ops[index].pending == 0 {
            self.background_written(index);
        }
    }

    fn background_written(&mut self, index: u32) {
        let op = self.ops[index];
        match op.kind {
            // Reads continued while this operation waited for the write gate.
            OpKind::Resync => forget_copies(self.ended, self.sets, &op),
            OpKind::Scrub => {
                forget_corrected(self.ended, self.sets, &op);
                if !op.has_failed() {
                    note_repaired(self.sets, &op);
                }
            }
            _ => {}
        }
        if op.is_sector_rewrite() && !op.background().is_rewrite && !op.plan.write.is_empty() && !op.has_failed() {
            for slot in op.background().remade {
                let set = self.sets.get(op.set);
                if let Some(place) = set.place(slot).member() {
                    let member = set.member(place);
                    let at = member_place(self.sets, &op, slot);
                    let (lba, drive) = (member.on_drive(op.side(), at), member.drive());
                    self.sets.get_mut(op.set).member_mut(place).rewritten(lba, Sectors(u64::from(op.rows())));
                    self.call.trace().note(
                        self.sets,
                        op.set,
                        crate::reason::Reason::SectorRewritten,
                        lba.get(),
                        op.rows(),
                    );
                    let place = (op.set, Some(slot));
                    self.call.notice(self.sets, place, Some(drive), NoticeKind::SectorRepaired(lba));
                }
            }
        }
        self.background_rows_done(index);
    }
}
