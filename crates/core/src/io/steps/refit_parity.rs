//! A member refuses its part of a row and stays in the array, because its storage is full, or because the array cannot do
//! without it. The other members may have their parts, so parity does not fit any more.
//!
//! The data that the write does not reach must stay readable, and without redundancy it may be known only through that
//! parity. So the operation reads what the columns that were not written hold, computes the parity that fits, and writes
//! it. Then it ends with its error.
//!
//! ```text
//!  Writing, WritingParity -> Refitting: Reading -> Computing -> Writing -> done
//!                                                               | ^
//!                                      refused again: ReadingBack -> Comparing
//! ```
//!
//! Parity that was refused again is read back. If it does not fit, it is recorded as bad, so that nothing is recovered from
//! it. Two rules keep that rare:
//!
//! - If data of the row is known only through parity, or a member of the set is full, parity is written before data. If
//!   parity is refused then, no data was written, and the old parity fits.
//! - What a refused write has changed has room, so the second write can change it back.
//!
//! If a journal has records of the write, the superblocks say first that the next start must not rely on the journal alone:
//! later records of the same rows start from what the members hold.
//!
//! Refitting takes no frames: columns are read over the payload, which is not needed any more. An operation that took frames
//! here could wait for one that holds them and waits for its log record.

use openraid_units::{Sectors, Slot};

use crate::actions::{JobColumn, JobKind, ReplyStatus};
use crate::events::ParityVerdict;
use crate::geometry::Geometry;
use crate::io::state::job::Job;
use crate::io::state::op::{Op, OpPayload, Outcome, Phase, Refitting};
use crate::io::state::plan::{StripeView, WriteMethod};
use crate::io::state::row_frames::RowFrames;
use crate::io::state::wait::Wait;
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::row_op::weight_of;
use crate::io::steps::step::hold_for_commands;
use crate::journal::redo::mark_refusal;
use crate::reason::{FailReason, Reason};
use crate::slot_set::SlotSet;

/// The slots that need buffers only for refitting: zeroes have no frames over which their columns could be read.
#[inline(always)]
pub(super) fn spare_buffers(op: &Op, written: SlotSet) -> SlotSet {
    if matches!(op.payload, OpPayload::Zero { .. }) {
        written
    } else {
        SlotSet::EMPTY
    }
}

impl OpIo<'_> {
    /// The parity that is written before the data of the rows in work; empty if all is written at once.
    #[inline(always)]
    pub(super) fn parity_that_goes_first(&mut self, index: u32) -> SlotSet {
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        if set.writes_rows_at_once() && op.excluded.is_empty() {
            return SlotSet::EMPTY;
        }
        self.parity_of_doubtful_row(index)
    }

    #[cold]
    fn parity_of_doubtful_row(&mut self, index: u32) -> SlotSet {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let view = op.stripe_view(set);
        let is_known = !set.is_short_of_room() && view.data.minus(view.readable).is_empty();
        let (parity, data) = (op.plan.write & op.plan.parity, op.plan.write.minus(op.plan.parity));
        if is_known || parity.is_empty() || data.is_empty() {
            return SlotSet::EMPTY;
        }
        self.note(index, Reason::ParityFirst, op.rows_of().stripe.0, parity.len());
        parity
    }

    /// The members have the parity: write the data. After a failure of the array, nothing more is written.
    #[cold]
    pub(super) fn write_data_after_parity(&mut self, index: u32) {
        let op = &mut self.ops[index];
        op.phase = Phase::Writing;
        let (set, data) = (op.set, op.plan.write.minus(op.plan.parity));
        if self.sets.get(set).has_failed() {
            self.ops[index].fail(ReplyStatus::IoError);
        } else {
            self.write_rows(index, data);
        }
    }

    /// Write these slots of the rows in work. Returns the number of commands.
    #[inline(never)]
    pub(super) fn write_rows(&mut self, index: u32, slots: SlotSet) -> u32 {
        let op = &self.ops[index];
        let ((lba, to), frames, parities) = (op.member_rows(self.sets.get(op.set)), RowFrames::of(op), op.plan.parity);
        let len = to - lba;
        let range_of =
            |geometry: &Geometry, slot| MemberRange { slot, lba, len, at: frames.written(geometry, parities, slot) };
        self.issue_writes(index, slots.iter(), range_of)
    }

    /// A write of rows has failed, and all its commands have ended: refit if a member refused its part, then end.
    #[cold]
    pub(super) fn end_failed_rows(&mut self, index: u32) {
        let op = self.ops[index];
        if op.refused().is_empty() || self.sets.get(op.set).has_failed() {
            self.distrust_parity(index);
            return self.finish_op(index);
        }
        if op.plan.parity.is_empty() {
            return self.finish_op(index);
        }
        if !mark_refusal(self.sets, &op, self.call.planted()) {
            return self.ops.hold_op(index, Wait::StaleMark);
        }
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        let set = self.sets.get(op.set);
        let view = op.stripe_view(set);
        let without_data = op.phase == Phase::WritingParity || op.plan.write.minus(op.plan.parity).is_empty();
        let (unwritten, missing) = if without_data {
            // The old data of a missing column may have been recovered. If not, its new data goes into the parity.
            (op.plan.write & view.data & view.readable, op.plan.lost & op.named_slots(set))
        } else {
            (op.refused() & view.data, SlotSet::EMPTY)
        };
        if (unwritten | missing).is_empty() {
            return self.end_with_parity(index, &view, without_data);
        }
        let places = match op.method {
            WriteMethod::ReadModifyWrite => op.buffers,
            _ if matches!(op.payload, OpPayload::Zero { .. }) => op.buffers,
            _ => view.data,
        };
        // A given-up command may still read the payload.
        let can_refit = unwritten.minus(view.readable & places).is_empty() && !op.frames_abandoned;
        if !can_refit {
            return self.end_torn(index);
        }
        let refitted = &mut self.ops[index];
        refitted.outcome = Outcome::Unwritten(op.error().unwrap_or(ReplyStatus::IoError), SlotSet::EMPTY);
        (refitted.plan.read, refitted.plan.lost, refitted.phase) =
            (unwritten, missing, Phase::Refitting(Refitting::Reading));
        self.note(index, Reason::ParityFitted, op.rows_of().stripe.0, unwritten.len());
        let op = &self.ops[index];
        let ((lba, to), frames) = (op.member_rows(self.sets.get(op.set)), RowFrames::of(op));
        let len = to - lba;
        let range_of = |geometry: &Geometry, slot| MemberRange { slot, lba, len, at: frames.read_at(geometry, slot) };
        self.issue_reads(index, unwritten.iter(), range_of, SlotSet::EMPTY);
        if self.ops[index].pending == 0 {
            self.step_refit(index, Refitting::Reading);
        }
    }

    /// Only parity was refused, and no column has to be read. Refused parity does not fit the data that was written. If no
    /// data was written, the missing column was: each sector of it is old or new now, and one parity is enough to say so.
    fn end_with_parity(&mut self, index: u32, view: &StripeView, without_data: bool) {
        let op = self.ops[index];
        let written = (view.parities() & view.writable).minus(op.refused());
        let keeps_one = without_data && (written & view.readable).is_empty();
        let kept = op.refused().first().filter(|_| keeps_one).map_or(SlotSet::EMPTY, SlotSet::one);
        self.distrust_rows(index, view, written | kept);
        self.finish_op(index);
    }

    /// It cannot be refitted: parity is recorded as bad.
    fn end_torn(&mut self, index: u32) {
        self.ops[index].tear();
        self.distrust_parity(index);
        self.finish_op(index);
    }

    /// What the operation waited for has ended.
    #[cold]
    pub(super) fn step_refit(&mut self, index: u32, step: Refitting) {
        let op = self.ops[index];
        if self.sets.get(op.set).has_failed() {
            return self.finish_op(index);
        }
        match step {
            Refitting::Reading if op.plan.read.intersects(op.excluded) => self.end_torn(index),
            Refitting::Reading => {
                self.ops[index].enter(Phase::Refitting(Refitting::Computing));
                self.push_fitting_parity(index);
            }
            Refitting::Computing => {
                if !self.call.channels().may_issue() {
                    return hold_for_commands(self.ops, index);
                }
                self.ops[index].enter(Phase::Refitting(Refitting::Writing));
                self.write_rows(index, op.plan.write & op.plan.parity);
                self.write_back_to_replacements(index);
                if self.ops[index].pending == 0 {
                    self.read_back(index);
                }
            }
            Refitting::Writing => self.read_back(index),
            Refitting::ReadingBack => self.compare_back(index),
            Refitting::Comparing => {
                let slot = op.refused().first().expect("it was compared");
                self.compared_back(index, slot, op.verdict == ParityVerdict::Match);
            }
            Refitting::ReadingCopy(_) | Refitting::SummingCopy(_) => unreachable!("rows have no copies"),
        }
    }

    /// A replacement took the part that its member refused: it gets back what the member holds, which the parity fits.
    fn write_back_to_replacements(&mut self, index: u32) {
        let op = self.ops[index];
        let ((lba, to), frames) = (op.member_rows(self.sets.get(op.set)), RowFrames::of(&op));
        for slot in op.plan.read {
            let set = self.sets.get(op.set);
            let Some(replacement) = set.place(slot).replacement() else { continue };
            let at = frames.read_at(op.geometry(set), slot);
            self.issue_write_to(index, replacement, MemberRange { slot, lba, len: to - lba, at });
        }
    }

    /// The parity of what the members hold now.
    fn push_fitting_parity(&mut self, index: u32) {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let (view, named, geometry) = (op.stripe_view(set), op.named_slots(set), op.geometry(set));
        let (frames, columns) = (RowFrames::of(&op), self.call.actions().columns.len());
        let unwritten = op.plan.read | op.plan.lost;
        let kind = if op.is_read_modify_write() {
            // In its buffer is the parity with the new data of all columns.
            for slot in op.plan.read {
                let (at, old) = (frames.buffer(slot), frames.named(geometry, slot));
                self.call.actions().columns.push(JobColumn { index: weight_of(self.sets, &op, slot), at, old });
            }
            JobKind::Update
        } else {
            for slot in view.data {
                let at = match (unwritten.contains(slot), named.contains(slot)) {
                    (true, _) => frames.read_at(geometry, slot),
                    (false, true) => frames.named(geometry, slot),
                    (false, false) => frames.buffer(slot),
                };
                self.call.actions().columns.push(JobColumn { index: weight_of(self.sets, &op, slot), at, old: at });
            }
            JobKind::Generate
        };
        let p = op.plan.parity.contains(view.p).then(|| frames.buffer(view.p));
        let q = view.q.filter(|q| op.plan.parity.contains(*q)).map(|q| frames.buffer(q));
        self.push_job(index, Job::new(kind, op.row_bytes(), columns).with_parity(p, q));
    }

    /// The parity that fits was written. If a member refused it, read it back, one after the other, over a column that was
    /// read before.
    fn read_back(&mut self, index: u32) {
        let op = self.ops[index];
        let Some(slot) = op.refused().first() else { return self.finish_op(index) };
        let set = self.sets.get(op.set);
        let place = (op.plan.read | op.plan.lost).first();
        let Some(place) = place.filter(|_| op.stripe_view(set).readable.contains(slot)) else {
            return self.compared_back(index, slot, false);
        };
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        self.ops[index].enter(Phase::Refitting(Refitting::ReadingBack));
        let (lba, to) = op.member_rows(set);
        let at = RowFrames::of(&op).read_at(op.geometry(set), place);
        self.issue_read(index, MemberRange { slot, lba, len: to - lba, at }, SlotSet::EMPTY);
    }

    fn compare_back(&mut self, index: u32) {
        let op = self.ops[index];
        let slot = op.refused().first().expect("it was read back");
        if op.excluded.contains(slot) {
            return self.compared_back(index, slot, false);
        }
        let place = (op.plan.read | op.plan.lost).first().expect("it was read over a column");
        let frames = RowFrames::of(&op);
        let columns = self.call.actions().columns.len();
        let read = frames.read_at(op.geometry(self.sets.get(op.set)), place);
        for (number, at) in [(0, frames.buffer(slot)), (1, read)] {
            self.call.actions().columns.push(JobColumn { index: number, at, old: at });
        }
        self.ops[index].enter(Phase::Refitting(Refitting::Comparing));
        self.push_job(index, Job::new(JobKind::Compare, op.row_bytes(), columns));
    }

    /// The parity in this slot fits, or it is recorded as bad: continue with the next one that was refused.
    fn compared_back(&mut self, index: u32, slot: Slot, fits: bool) {
        let op = &mut self.ops[index];
        let status = op.error().unwrap_or(ReplyStatus::IoError);
        op.outcome = Outcome::Unwritten(status, op.refused().without(slot));
        op.enter(Phase::Refitting(Refitting::Writing));
        if !fits {
            let view = self.ops[index].stripe_view(self.sets.get(self.ops[index].set));
            self.distrust_rows(index, &view, view.parities().without(slot));
        }
        self.read_back(index);
    }

    /// Record the parities of the rows in work as bad, except these. A member that takes no record leaves the array, and an
    /// array that needs it fails.
    pub(super) fn distrust_rows(&mut self, index: u32, view: &StripeView, fitting: SlotSet) {
        if self.leave_parities_out(index, view, fitting) {
            return;
        }
        let op = self.ops[index];
        for slot in (view.parities() & view.writable).minus(fitting) {
            let Some(member) = self.sets.get(op.set).place(slot).member() else { continue };
            let (at, to) = op.member_rows(self.sets.get(op.set));
            let is_recorded = self.sets.get(op.set).member(member).is_bad(op.side(), at, Sectors(to.get() - at.get()));
            if !is_recorded && !self.fail_member((op.set, member), FailReason::BadBlockLogFull) {
                self.sets.lose_array((op.set, member), FailReason::BadBlockLogFull, &mut self.call);
                return;
            }
        }
    }
}
