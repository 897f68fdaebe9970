//! Rows of parity sets: reads with recovery, and the write methods.

use openraid_units::Slot;

use crate::actions::{JobColumn, JobKind, ReplyStatus};
use crate::array::sets::Sets;
use crate::geometry::{Geometry, StripeRole};
use crate::io::state::ended::OpReport;
use crate::io::state::footprint::stripe_slots;
use crate::io::state::job::Job;
use crate::io::state::op::Partial;
use crate::io::state::op::{Computation, Op, PartialParity, Phase, Plan, WorksFor};
use crate::io::state::plan::{plan_recovery, plan_write, StripeView, WriteMethod};
use crate::io::state::row_frames::RowFrames;
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::refit_parity::spare_buffers;
use crate::io::steps::step::{hold_for_commands, CacheStep};
use crate::ppl::area::record_for;
use crate::ppl::write_log::{push_partial, push_partial_sum};
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::slot_set::SlotSet;

/// Progress of the rows in work of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Rows {
    /// They wait, or the operation is over.
    Held,
    /// They are planned and have buffers. Destage now stages its data, then the old data is read.
    Planned,
    /// The members have the data.
    Written,
}

impl Rows {
    /// The step of a destage that follows, if it needs the cache.
    pub(crate) fn of_destage(self) -> Option<CacheStep> {
        match self {
            Self::Held => None,
            Self::Planned => Some(CacheStep::Stage),
            Self::Written => Some(CacheStep::Clean),
        }
    }
}

/// The exponent of a data slot in Q.
pub(crate) fn weight_of(sets: &Sets, op: &Op, slot: Slot) -> u8 {
    weight_in(op.parity(sets.get(op.set)).row(op.rows_of().stripe), slot)
}

fn weight_in(row: crate::geometry::Row<'_>, slot: Slot) -> u8 {
    match row.role_of(slot) {
        StripeRole::Data(column) => row.coefficient(column),
        _ => unreachable!("only data columns have a weight"),
    }
}

impl OpIo<'_> {
    /// Take one buffer for each of these slots.
    pub(crate) fn take_buffers(&mut self, index: u32, slots: SlotSet) -> bool {
        let op = &mut self.ops[index];
        op.buffers = slots;
        // After the buffers comes the data of a destage, and then the partial parity.
        let staged = op.band().len();
        let count = slots.len() + staged + u32::from(op.partial_parity.is_there());
        if count == 0 {
            return true;
        }
        let bytes = u64::from(count) * u64::from(op.row_bytes());
        self.take_work(index, bytes)
    }

    /// Recover the lost columns from all data that was read.
    pub(crate) fn push_recover(&mut self, index: u32) {
        let view = self.ops[index].stripe_view(self.sets.get(self.ops[index].set));
        self.push_recover_by(index, view.parities());
    }

    /// The same with these parities alone.
    pub(crate) fn push_recover_by(&mut self, index: u32, by: SlotSet) {
        let op = self.ops[index];
        let view = op.stripe_view(self.sets.get(op.set));
        let by = by & op.plan.read;
        let (columns, frames, geometry) =
            (self.call.actions().columns.len(), RowFrames::of(&op), op.geometry(self.sets.get(op.set)));
        for slots in [op.plan.read & view.data, op.plan.lost] {
            for slot in slots {
                let at = frames.read_at(geometry, slot);
                self.call.actions().columns.push(JobColumn { index: weight_of(self.sets, &op, slot), at, old: at });
            }
        }
        let p = by.contains(view.p).then(|| frames.read_at(geometry, view.p));
        let q = view.q.filter(|q| by.contains(*q)).map(|q| frames.read_at(geometry, q));
        let lost = u16::try_from(op.plan.lost.len()).expect("at most two");
        self.push_job(index, Job::new(JobKind::Recover { lost }, op.row_bytes(), columns).with_parity(p, q));
    }

    /// Parities that are not written stay old. Members that are being filled are filled again from here; on others the
    /// range is recorded as bad. False if that is impossible.
    pub(super) fn leave_parities_out(&mut self, index: u32, view: &StripeView, written: SlotSet) -> bool {
        let left_out = (view.parities() & view.writable).minus(written);
        if left_out.is_empty() {
            return true;
        }
        let op = self.ops[index];
        let (at, to) = op.member_rows(self.sets.get(op.set));
        for slot in left_out {
            if view.filling.contains(slot) {
                self.sets.get_mut(op.set).leave_out(slot, at);
                continue;
            }
            // Its replacement may have the old parity too. It takes the slot together with its own list of bad ranges.
            let place = self.sets.get(op.set).place(slot);
            for member in place.each() {
                let active = self.sets.get(op.set).member(member).is_active();
                if active && !self.sets.record_bad((op.set, op.side()), member, at, to - at) {
                    return false;
                }
            }
        }
        true
    }

    /// Some of the row was written, and a member that the array needs lacks its part: recovered data would be data that
    /// no host has written. If that cannot be recorded, the array fails.
    pub(crate) fn distrust_parity(&mut self, index: u32) {
        let op = self.ops[index];
        if !op.is_torn() || self.sets.get(op.set).has_failed() {
            return;
        }
        let view = op.stripe_view(self.sets.get(op.set));
        self.distrust_rows(index, &view, SlotSet::EMPTY);
    }

    /// A command of a read was given up while it pointed into the host's frames: the whole piece is read again, or the
    /// operation fails. Returns whether that was so.
    fn replace_frames(&mut self, index: u32) -> bool {
        let op = self.ops[index];
        if op.frames_abandoned {
            if let Some(piece) = op.piece() {
                self.ops[index].frames_abandoned = false;
                self.ended.report(OpReport::ReadAgain { piece, abandons_frames: true });
                self.finish_op(index);
            } else {
                self.fail_op(index, ReplyStatus::IoError);
            }
        }
        op.frames_abandoned
    }

    // ---- reading

    pub(crate) fn step_row_read(&mut self, index: u32) {
        match self.ops[index].phase {
            Phase::Planning => self.plan_row_read(index),
            Phase::ReadingOld => {
                if self.replace_frames(index) {
                    return;
                }
                let op = self.ops[index];
                if op.plan.read.intersects(op.excluded) {
                    self.rows_unread(index);
                    self.ops[index].phase = Phase::Planning;
                    return self.plan_row_read(index);
                }
                if op.plan.lost.is_empty() {
                    return self.row_read_done(index);
                }
                self.ops[index].phase = Phase::Computing(Computation::Recover);
                self.push_recover(index);
            }
            Phase::Computing(_) => self.row_read_done(index),
            phase => unreachable!("a row read is never in {phase:?}"),
        }
    }

    fn row_read_done(&mut self, index: u32) {
        if self.next_rows(index) {
            self.plan_row_read(index);
        } else {
            self.finish_op(index);
        }
    }

    fn plan_row_read(&mut self, index: u32) {
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        self.narrow_unfit_rows(index);
        let op = &self.ops[index];
        let view = op.stripe_view(self.sets.get(op.set));
        let named = op.named_slots(self.sets.get(op.set));
        let (read, lost, buffers) = if named.minus(view.readable).is_empty() {
            (named, SlotSet::EMPTY, SlotSet::EMPTY)
        } else if self.sets.get(self.ops[index].set).has_failed() {
            // Some of the row may have been written when the operation ended, so its parity is useless.
            return self.fail_op(index, ReplyStatus::IoError);
        } else if let Ok(plan) = plan_recovery(&view) {
            (plan.read, plan.lost, (plan.read | plan.lost).minus(named))
        } else if self.narrow_rows(index) {
            return self.plan_row_read(index);
        } else {
            return self.fail_op(index, ReplyStatus::IoError);
        };
        if !self.take_buffers(index, buffers) {
            return;
        }
        let op = &mut self.ops[index];
        (op.plan, op.phase) = (Plan { read, lost, ..Plan::default() }, Phase::ReadingOld);
        if !lost.is_empty() {
            let (set, stripe) = (op.set, op.rows_of().stripe);
            self.call.trace().note(self.sets, set, Reason::ReadRecovered, stripe.0, read.len());
            let (reason, parity) = (Reason::ReadRecovered, SlotSet::EMPTY);
            self.trace_op(index, || StepEvent::Planned { reason, rejected: 0, parity, lost });
        }
        let op = &self.ops[index];
        let ((lba, to), frames) = (op.member_rows(self.sets.get(op.set)), RowFrames::of(op));
        let len = to - lba;
        let range_of = |geometry: &Geometry, slot| MemberRange { slot, lba, len, at: frames.read_at(geometry, slot) };
        self.issue_reads(index, read.iter(), range_of, SlotSet::EMPTY);
    }

    // ---- writing

    /// Advance a write of a host.
    #[inline(always)]
    pub(crate) fn step_row_write(&mut self, index: u32) {
        let mut rows = self.step_rows(index);
        loop {
            rows = match rows {
                Rows::Held => return,
                Rows::Planned => self.read_old(index),
                Rows::Written if self.next_rows(index) => self.plan_row_write(index),
                Rows::Written => return self.finish_op(index),
            }
        }
    }

    /// Advance the destage of a stripe to its next step that needs the cache, if it comes so far.
    pub(crate) fn step_row_destage(&mut self, index: u32) -> Option<CacheStep> {
        let op = &self.ops[index];
        if matches!(op.phase, Phase::Planning) && op.band().is_empty() {
            return Some(CacheStep::Choose);
        }
        self.step_rows(index).of_destage()
    }

    /// Advance the rows in work of a write, for a host or for destage.
    #[inline(always)]
    fn step_rows(&mut self, index: u32) -> Rows {
        match self.ops[index].phase {
            Phase::Planning => self.plan_row_write(index),
            Phase::ReadingOld => self.old_data_read(index),
            Phase::Computing(Computation::Recover) => {
                self.ops[index].phase = Phase::Computing(Computation::Parity);
                self.push_parity(index)
            }
            Phase::Computing(Computation::Parity) if self.ops[index].partial_parity.is_there() => {
                let set = self.sets.get(self.ops[index].set);
                push_partial(self.ops, set, index, &mut self.call);
                Rows::Held
            }
            Phase::Computing(Computation::Partial) => {
                push_partial_sum(self.ops, index, &mut self.call);
                Rows::Held
            }
            Phase::Computing(Computation::PartialSum) => {
                self.ops[index].keep_partial_sum();
                self.log_row_write(index)
            }
            Phase::Computing(_) | Phase::Logging => self.log_row_write(index),
            Phase::WritingParity | Phase::Writing | Phase::Recording => self.row_written(index),
            Phase::Refitting(step) => {
                self.step_refit(index, step);
                Rows::Held
            }
            phase => unreachable!("a row write is never in {phase:?}"),
        }
    }

    fn plan_row_write(&mut self, index: u32) -> Rows {
        if !self.call.channels().may_issue() {
            hold_for_commands(self.ops, index);
            return Rows::Held;
        }
        self.narrow_unfit_rows(index);
        let op = &self.ops[index];
        let (set, stripe) = (op.set, op.rows_of().stripe);
        let here = self.sets.get(set);
        let (view, named, policy) = (op.stripe_view(here), op.named_slots(here), here.policy().partial_write);
        let plan = plan_write(&view, named, policy);
        if plan.is_err() && self.narrow_rows(index) {
            return self.plan_row_write(index);
        }
        // A single block may be written without a parity whose old bytes cannot be read and which recovery does not
        // use.
        let plan = plan.or_else(|_| {
            let filling = view.filling | view.parities().minus(view.readable);
            plan_write(&StripeView { filling, ..view }, named, policy)
        });
        let Ok(plan) = plan else { return self.write_without_parity(index, &view, named) };
        if !self.leave_parities_out(index, &view, plan.write) {
            self.fail_op(index, ReplyStatus::IoError);
            return Rows::Held;
        }
        let op = &mut self.ops[index];
        (op.partial, op.partial_parity) = record_for(op, self.sets.get(set), named, plan.parity);
        let spare = spare_buffers(op, plan.write);
        if !self.take_buffers(index, plan.read | plan.lost | plan.parity | spare) {
            return Rows::Held;
        }
        self.call.trace().note(self.sets, set, plan.reason, stripe.0, plan.rejected_reads);
        let (reason, rejected, parity, lost) = (plan.reason, plan.rejected_reads, plan.parity, plan.lost);
        self.trace_op(index, || StepEvent::Planned { reason, rejected, parity, lost });
        let op = &mut self.ops[index];
        (op.method, op.phase) = (plan.method, Phase::ReadingOld);
        op.plan = Plan { read: plan.read, lost: plan.lost, parity: plan.parity, write: plan.write };
        if let WorksFor::Gather(gather) = op.works_for() {
            self.stage_gathered(index, gather);
        }
        Rows::Planned
    }

    /// The rows are planned, and destage has staged its data: read the old blocks that their parity needs.
    pub(crate) fn read_old(&mut self, index: u32) -> Rows {
        let op = &self.ops[index];
        if op.plan.read.is_empty() {
            return match op.pending {
                // Without parity nothing is computed.
                0 if !matches!(op.phase, Phase::ReadingOld) => self.log_row_write(index),
                0 => self.old_data_read(index),
                _ => Rows::Held,
            };
        }
        let ((lba, to), frames) = (op.member_rows(self.sets.get(op.set)), RowFrames::of(op));
        let len = to - lba;
        let range_of = |_: &Geometry, slot| MemberRange { slot, lba, len, at: frames.buffer(slot) };
        self.issue_reads(index, op.plan.read.iter(), range_of, SlotSet::EMPTY);
        Rows::Held
    }

    /// Too much of this block's row is lost to compute its parity: the data is still written, and the parity is
    /// recorded as bad, so that it is not used for recovery.
    fn write_without_parity(&mut self, index: u32, view: &StripeView, named: SlotSet) -> Rows {
        let can_write = named.minus(view.writable).is_empty();
        if !can_write || !self.leave_parities_out(index, view, SlotSet::EMPTY) {
            self.fail_op(index, ReplyStatus::IoError);
            return Rows::Held;
        }
        let op = self.ops[index];
        (self.ops[index].partial, self.ops[index].partial_parity) = (Partial::No, PartialParity::None);
        if !self.take_buffers(index, SlotSet::EMPTY) {
            return Rows::Held;
        }
        self.note(index, Reason::WriteNoParity, op.rows_of().stripe.0, 0);
        let op = &mut self.ops[index];
        op.method = WriteMethod::DataOnly;
        op.plan = Plan { write: named, ..Plan::default() };
        // Until destage has staged its data.
        op.phase = Phase::Computing(Computation::Parity);
        if let WorksFor::Gather(gather) = op.works_for() {
            self.stage_gathered(index, gather);
        }
        Rows::Planned
    }

    fn old_data_read(&mut self, index: u32) -> Rows {
        let op = &mut self.ops[index];
        op.frames_abandoned = false;
        if op.plan.read.intersects(op.excluded) {
            op.phase = Phase::Planning;
            self.rows_unread(index);
            return self.plan_row_write(index);
        }
        if op.plan.lost.is_empty() {
            op.phase = Phase::Computing(Computation::Parity);
            self.push_parity(index)
        } else {
            op.phase = Phase::Computing(Computation::Recover);
            self.push_recover(index);
            Rows::Held
        }
    }

    /// Compute the new parity.
    fn push_parity(&mut self, index: u32) -> Rows {
        if self.ops[index].plan.parity.is_empty() {
            return self.log_row_write(index);
        }
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        let (geometry, parity) = (op.geometry(set), op.parity(set));
        let row = parity.row(op.rows_of().stripe);
        let (data, p, q) = stripe_slots(parity, row);
        let (named, frames) = (op.named_slots(self.sets.get(op.set)), RowFrames::of(op));
        let columns = self.call.actions().columns.len();
        let kind = match op.method {
            WriteMethod::ReadModifyWrite => {
                for slot in named {
                    let (at, old) = (frames.named(geometry, slot), frames.buffer(slot));
                    self.call.actions().columns.push(JobColumn { index: weight_in(row, slot), at, old });
                }
                JobKind::Update
            }
            WriteMethod::FullStripe
            | WriteMethod::ReconstructWrite
            | WriteMethod::RecoverThenWrite
            | WriteMethod::DataOnly => {
                for slot in data {
                    let at = if named.contains(slot) { frames.named(geometry, slot) } else { frames.buffer(slot) };
                    self.call.actions().columns.push(JobColumn { index: weight_in(row, slot), at, old: at });
                }
                JobKind::Generate
            }
        };
        let p = op.plan.parity.contains(p).then(|| frames.buffer(p));
        let q = q.filter(|q| op.plan.parity.contains(*q)).map(|q| frames.buffer(q));
        let bytes = op.row_bytes();
        self.push_job(index, Job::new(kind, bytes, columns).with_parity(p, q));
        Rows::Held
    }

    fn log_row_write(&mut self, index: u32) -> Rows {
        self.ops[index].phase = Phase::Logging;
        if self.pass_write_gate(index).is_err() {
            return Rows::Held;
        }
        let first = self.parity_that_goes_first(index);
        let op = &mut self.ops[index];
        op.phase = if first.is_empty() { Phase::Writing } else { Phase::WritingParity };
        let slots = if first.is_empty() { op.plan.write } else { first };
        if self.write_rows(index, slots) == 0 {
            self.row_written(index)
        } else {
            Rows::Held
        }
    }

    fn row_written(&mut self, index: u32) -> Rows {
        if !self.ops[index].has_failed() && self.ops[index].phase == Phase::WritingParity {
            self.write_data_after_parity(index);
            if self.ops[index].pending > 0 {
                return Rows::Held;
            }
        }
        if !self.ops[index].has_failed() && !self.pass_reply_gate(index) {
            return Rows::Held;
        }
        if !self.ops[index].has_failed() {
            return Rows::Written;
        }
        self.end_failed_rows(index);
        Rows::Held
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use openraid_units::Token;

    use crate::actions::{DriveOp, ReplyStatus};
    use crate::events::RequestKind;
    use crate::io::steps::fixture::Drives;

    /// All commands of one write to payload areas, as reads and writes.
    fn commands(offset: u64, len: u64) -> [usize; 2] {
        let mut drives = Drives::new();
        drives.request(Token(1), RequestKind::Write { fua: false }, offset, len);
        let mut ops = Vec::new();
        while !drives.out.is_empty() {
            let is_payload = |c: &&crate::actions::DriveCommand| c.class == crate::actions::IoClass::Foreground;
            ops.extend(drives.out.iter().filter(is_payload).map(|command| command.op));
            drives.answer(|_| Ok(()));
        }
        assert_eq!(drives.replies, [(Token(1), ReplyStatus::Ok)]);
        [
            ops.iter().filter(|op| **op == DriveOp::Read).count(),
            ops.iter().filter(|op| matches!(op, DriveOp::Write { .. })).count(),
        ]
    }

    /// The limits allow 16 KiB of rows at a time: a chunk of 64 KiB takes four turns.
    #[test]
    fn a_full_stripe_is_written_without_reads_and_a_part_of_three_members_reads_the_other_column() {
        assert_eq!(commands(0, 128 << 10), [0, 4 * 3]);
        assert_eq!(commands(0, 64 << 10), [4, 4 * 2]);
        assert_eq!(commands(0, 4096), [1, 2]);
    }
}
