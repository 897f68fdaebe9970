//! Applying one entry of a partial parity log after a crash. Its partial parity is read and checked. Then the parity of
//! its rows is computed from the partial parity and the present content of the columns that were being written.
//!
//! ```text
//!  Start -> Planning -> ReadingOld -> Computing(Check) --+  all of the partial parity, unless there is none
//!              ^                                         |
//!              +-----------------------------------------+
//!              +--> ReadingOld -> Computing(Parity) -> Writing -> Recording --+  the rows
//!              ^                                                              |
//!              +--------------------------------------------------------------+
//! ```
//!
//! An entry with a wrong checksum was being written when everything stopped: no write had begun under it. Rows with a
//! missing written column are left alone: the content that was being written there is unknown, and the other columns
//! are all present.

use openraid_units::{PoolOffset, Sectors};

use crate::actions::{Data, DriveOp, IoClass, JobColumn, JobKind};
use crate::array::sets::Sets;
use crate::events::CommandError;
use crate::events::{DriveError, ParityVerdict};
use crate::io::state::command::{ChannelCommand, Hold, Owner};
use crate::io::state::job::Job;
use crate::io::state::op::{Computation, Op, Outcome, PartialParity, Phase};
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::{hold_for_commands, release_work};
use crate::ppl::Redoing;
use crate::reason::FailReason;
use crate::slot_set::SlotSet;

fn redoing_of<'a>(sets: &'a Sets, op: &Op) -> &'a Redoing {
    let ppl = sets.get(op.set).ppl.as_ref().expect("it has logs");
    ppl.redoing()
}

/// An entry was applied, or skipped.
pub(crate) fn on_reparity_done(sets: &mut Sets, op: &Op) {
    sets.get_mut(op.set).ppl.as_mut().expect("it has logs").end_entry();
    sets.look();
}

impl OpIo<'_> {
    /// The member did not accept its new parity. The old parity must not be used for recovery.
    fn distrust_unmade_parity(&mut self, index: u32) {
        if self.ops[index].is_torn() {
            self.distrust_parity(index);
            self.ops[index].outcome = Outcome::Fine;
        }
    }

    fn take_reparity_buffers(&mut self, index: u32, slots: SlotSet) -> bool {
        let taken = self.take_buffers(index, slots);
        if !taken {
            self.ops[index].phase = Phase::Planning;
        }
        taken
    }

    pub(crate) fn step_reparity(&mut self, index: u32) {
        match self.ops[index].phase {
            Phase::Start | Phase::Planning => self.plan_reparity(index),
            Phase::ReadingOld => self.reparity_read(index),
            Phase::Computing(Computation::Check) => self.partial_checked(index),
            Phase::Computing(_) => {
                let op = &mut self.ops[index];
                op.phase = Phase::Writing;
                let op = *op;
                let slot = op.parity_slot();
                let (lba, _) = op.member_rows(self.sets.get(op.set));
                let len = Sectors(u64::from(op.rows()));
                let range = MemberRange { slot, lba, len, at: op.buffer(slot) };
                self.issue_write(index, range);
                if self.ops[index].pending == 0 {
                    self.reparity_rows_done(index);
                }
            }
            Phase::Writing | Phase::Recording => {
                self.distrust_unmade_parity(index);
                if self.pass_reply_gate(index) {
                    self.reparity_rows_done(index);
                }
            }
            phase => unreachable!("an entry of a log is never in {phase:?}"),
        }
    }

    fn reparity_rows_done(&mut self, index: u32) {
        if self.next_rows(index) {
            self.plan_reparity(index);
        } else {
            self.finish_op(index);
        }
    }

    fn plan_reparity(&mut self, index: u32) {
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        let op = self.ops[index];
        let slot = op.parity_slot();
        let keeper = self.sets.get(op.set).member_of(slot).is_some_and(|member| member.is_active());
        if self.sets.get(op.set).has_failed() || !keeper {
            return self.finish_op(index);
        }
        let redoing = *redoing_of(self.sets, &op);
        self.ops[index].phase = Phase::ReadingOld;
        if !redoing.is_sound() {
            self.ops[index].partial_parity = PartialParity::Buffered;
            if self.take_reparity_buffers(index, SlotSet::EMPTY) {
                self.read_partial(index);
            }
            return;
        }
        let (from, to) = op.member_rows(self.sets.get(op.set));
        let readable = self.sets.get(op.set).readable(op.side(), from, to).minus(op.excluded);
        let written = op.named_slots(self.sets.get(op.set));
        if !written.with(op.parity_slot()).minus(readable).is_empty() {
            // Perhaps only some of the rows are bad.
            if self.narrow_rows(index) {
                return self.plan_reparity(index);
            }
            return self.reparity_rows_done(index);
        }
        self.ops[index].partial_parity =
            if redoing.entry().at.is_some() { PartialParity::Buffered } else { PartialParity::None };
        if !self.take_reparity_buffers(index, written.with(op.parity_slot())) {
            return;
        }
        let op = &mut self.ops[index];
        op.plan.read = written;
        let op = *op;
        for slot in written {
            let range = MemberRange { slot, lba: from, len: to - from, at: op.buffer(slot) };
            self.issue_read(index, range, SlotSet::EMPTY);
        }
        if op.partial_parity.is_there() {
            self.read_partial(index);
        }
    }

    /// Read the partial parity of the rows in work.
    fn read_partial(&mut self, index: u32) {
        let op = self.ops[index];
        let redoing = redoing_of(self.sets, &op);
        let (slot, lo) = (redoing.entry().slot, redoing.entry().lo);
        let at = redoing.entry().at.expect("it has partial parity") + Sectors(u64::from(op.part().from() - lo));
        let place = self.sets.get(op.set).place(slot).member().expect("its log was read");
        let member = self.sets.get(op.set).member(place);
        let (start, _) = member.ppl_area().expect("its log was read");
        let command = ChannelCommand {
            op: DriveOp::Read,
            lba: start + at,
            len: Sectors(u64::from(op.rows())),
            data: Data::Frames(op.partial_buffer()),
            class: IoClass::Metadata,
            hold: op.work().map(Hold::Work),
            ..ChannelCommand::new(Owner::PplRead(index), op.set, place, slot, member.drive())
        };
        self.ops[index].pending += 1;
        self.call.push(&command);
    }

    /// A read of partial parity ended.
    pub(crate) fn on_partial_read(&mut self, index: u32, command: &ChannelCommand, result: Result<(), CommandError>) {
        if let Err(error) = result {
            let reason = match error {
                CommandError::Timeout => Some(FailReason::Timeout),
                CommandError::Drive(DriveError::Gone) => Some(FailReason::Gone),
                CommandError::Drive(DriveError::Media { .. }) => None,
                CommandError::Drive(_) => Some(FailReason::Protocol),
            };
            if let Some(reason) = reason {
                self.fail_member((command.set, command.member()), reason);
            }
            self.ops[index].excluded.insert(command.slot);
            // If the parity's member is gone, there is no parity to compute.
            if reason.is_none() {
                self.sets.get_mut(command.set).ppl.as_mut().expect("it has logs").entry_unread();
            }
        }
        let op = &mut self.ops[index];
        op.pending -= 1;
        if op.pending == 0 {
            self.ops.wake(index);
        }
    }

    fn reparity_read(&mut self, index: u32) {
        let op = self.ops[index];
        self.ops[index].frames_abandoned = false;
        if op.excluded.contains(op.parity_slot()) {
            return self.finish_op(index);
        }
        let sound = redoing_of(self.sets, &op).is_sound();
        if sound && op.plan.read.intersects(op.excluded) {
            release_work(self.ops, self.pool, index);
            self.ops[index].phase = Phase::Planning;
            return self.plan_reparity(index);
        }
        let columns = self.call.actions().columns.len();
        let partial = op.partial_parity.is_there().then(|| op.partial_buffer());
        let mut push = |at: PoolOffset| self.call.actions().columns.push(JobColumn { index: 0, at, old: at });
        if !sound {
            push(partial.expect("it was read"));
            self.ops[index].phase = Phase::Computing(Computation::Check);
            return self.push_job(index, Job::new(JobKind::Checksum, op.row_bytes(), columns));
        }
        op.plan.read.iter().for_each(|slot| push(op.buffer(slot)));
        partial.into_iter().for_each(push);
        let to = op.buffer(op.parity_slot());
        self.ops[index].phase = Phase::Computing(Computation::Parity);
        self.push_job(index, Job::new(JobKind::Generate, op.row_bytes(), columns).with_parity(Some(to), None));
    }

    /// A part of the partial parity was added to the checksum: continue, or check the sum of all.
    fn partial_checked(&mut self, index: u32) {
        let op = self.ops[index];
        let ParityVerdict::Checksum(crc) = op.verdict else { unreachable!("a checksum was asked for") };
        let ppl = self.sets.get_mut(op.set).ppl.as_mut().expect("it has logs");
        ppl.sum_partial(crc, u64::from(op.row_bytes()));
        if self.next_rows(index) {
            return self.plan_reparity(index);
        }
        let is_sound = self.sets.get_mut(op.set).ppl.as_mut().is_some_and(|ppl| ppl.judge_partial());
        if !is_sound {
            return self.finish_op(index);
        }
        let rows_max = self.sets.get(op.set).rows_max();
        let part = self.ops[index].part_mut();
        let (lo, hi) = part.range();
        part.take(lo, hi.min(lo.saturating_add(rows_max)));
        self.plan_reparity(index);
    }
}
