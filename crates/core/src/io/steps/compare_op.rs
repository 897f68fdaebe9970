//! Members are compared: a check, a repair or a resync finds sectors that do not match, and names or corrects the wrong member.
//!
//! ```text
//!  start_check --> the rows as a whole --differ--> each sector by itself --differs--> on_mismatch --> the next sector
//!                        |                                                                                 |
//!                        v match                                                                           v none left
//!                    the next rows                                                    what was corrected is written
//! ```

use openraid_units::{Bytes, PoolOffset, Sectors, Slot};

use crate::actions::{Actions, JobColumn, JobKind};
use crate::array::sets::Sets;
use crate::background::check_task::{note_mismatch, note_uncompared, scrub_mode};
use crate::check_results::{MismatchRange, Remedy, ScrubMode};
use crate::events::ParityVerdict;
use crate::io::state::job::Job;
use crate::io::state::op::{Computation, Op, OpKind, Phase};
use crate::io::steps::background_plan::{first_copy, rows_at};
use crate::io::steps::op_io::OpIo;
use crate::io::steps::row_op::weight_of;
use crate::planted::Flaw;
use crate::slot_set::SlotSet;

/// Add the data columns (or copies) among `slots`, in their buffers from `from` on, to the job. Returns P and Q.
fn check_columns(
    sets: &Sets,
    op: &Op,
    from: Bytes,
    slots: SlotSet,
    actions: &mut Actions,
) -> (Option<PoolOffset>, Option<PoolOffset>) {
    if !op.is_by_rows() {
        for (number, slot) in (0..).zip(slots) {
            let at = op.buffer(slot) + from;
            actions.columns.push(JobColumn { index: number, at, old: at });
        }
        return (None, None);
    }
    let view = op.stripe_view(sets.get(op.set));
    for slot in view.data & slots {
        let at = op.buffer(slot) + from;
        actions.columns.push(JobColumn { index: weight_of(sets, op, slot), at, old: at });
    }
    let parity = |slot: Slot| slots.contains(slot).then(|| op.buffer(slot) + from);
    (parity(view.p), view.q.and_then(parity))
}

/// The slots with redundant data: parity, or all copies but the first.
pub(super) fn copies_of_data(sets: &Sets, op: &Op) -> SlotSet {
    if op.is_by_rows() {
        return op.stripe_view(sets.get(op.set)).parities() & op.plan.read;
    }
    op.plan.read.without(first_copy(sets, op))
}

/// The slot that disagrees, by the last verdict.
pub(super) fn culprit(sets: &Sets, op: &Op) -> Option<Slot> {
    if !op.plan.lost.is_empty() {
        // Recovered data always matches one parity by itself, so any column could be wrong.
        return None;
    }
    if !op.is_by_rows() {
        return match op.verdict {
            ParityVerdict::ColumnWrong(number) => op.plan.read.iter().nth(usize::from(number)),
            _ => None,
        };
    }
    let view = op.stripe_view(sets.get(op.set));
    match op.verdict {
        ParityVerdict::ColumnWrong(number) => view.data.iter().nth(usize::from(number)),
        // With P alone no slot can be named: any column could be wrong.
        ParityVerdict::PWrong => view.q.map(|_| view.p),
        ParityVerdict::QWrong => view.q,
        ParityVerdict::Match | ParityVerdict::Unknown | ParityVerdict::Done | ParityVerdict::Checksum(_) => None,
    }
}

/// The sector of the rows in work that is checked by itself.
fn checked_sector(op: &Op) -> u32 {
    op.background().sector.expect("the rows are checked sector by sector")
}

impl OpIo<'_> {
    pub(super) fn start_check(&mut self, index: u32) {
        let op = self.ops[index];
        let enough = if op.is_by_rows() {
            let view = op.stripe_view(self.sets.get(op.set));
            view.data.minus(op.plan.read | op.plan.lost).is_empty() && view.parities().intersects(op.plan.read)
        } else {
            op.plan.read.len() > 1
        };
        let blind = self.call.planted().has(Flaw::DegradedCheckBlind) && !self.sets.get(op.set).missing().is_empty();
        let enough = enough && !blind;
        // Degraded rows have no redundancy to compare with. That they could be read is the whole result.
        if !enough {
            note_uncompared(self.sets, &op);
            return self.background_rows_done(index);
        }
        let op = &mut self.ops[index];
        op.phase = Phase::Computing(Computation::Check);
        (op.background_mut().sector, op.background_mut().corrected) = (None, 0);
        (op.plan.write, op.background_mut().remade) = (SlotSet::EMPTY, SlotSet::EMPTY);
        let bytes = op.row_bytes();
        self.push_check(index, 0, bytes);
    }

    pub(super) fn on_checked(&mut self, index: u32) {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        if op.plan.read.iter().any(|slot| !set.is_held(slot)) {
            // A compared member has left meanwhile: there is none to blame or to correct.
            return self.background_rows_done(index);
        }
        if op.kind == OpKind::Resync {
            return self.on_sync_compared(index);
        }
        if op.background().sector.is_none() {
            if op.verdict == ParityVerdict::Match {
                return self.background_rows_done(index);
            }
            // The mismatch is somewhere in these rows: check each sector by itself.
            self.ops[index].background_mut().sector = Some(0);
            return self.push_check(index, 0, 512);
        }
        // Matches, or the correction of this sector is computed.
        if matches!(op.verdict, ParityVerdict::Match | ParityVerdict::Done) {
            return self.probe_next(index);
        }
        self.on_mismatch(index);
    }

    /// The rows of a resync were compared: the parts that differ are written.
    fn on_sync_compared(&mut self, index: u32) {
        let op = self.ops[index];
        let differs = op.verdict != ParityVerdict::Match;
        let task = self.sets.get_mut(op.set).tasks.current_mut();
        if let Some(task) = task.filter(|task| op.background().unit_of(task.id()).is_some()) {
            task.note_compared(differs);
        }
        if !differs {
            return self.background_rows_done(index);
        }
        self.push_missing_parity(index);
    }

    /// A sector does not match: count it, and correct it if that was requested and is possible.
    fn on_mismatch(&mut self, index: u32) {
        let op = self.ops[index];
        let culprit = culprit(self.sets, &op);
        let at = if op.is_by_rows() { op.member_rows(self.sets.get(op.set)).0.offset() } else { rows_at(&op).offset() };
        let mode = scrub_mode(self.sets, &op);
        let slot = culprit.filter(|_| mode != Some(ScrubMode::TrustData));
        let rewritten = match mode {
            Some(ScrubMode::TrustData) => copies_of_data(self.sets, &op),
            Some(ScrubMode::Repair) if slot.is_none() && self.call.planted().has(Flaw::RepairGuesses) => {
                copies_of_data(self.sets, &op)
            }
            Some(ScrubMode::Repair) => slot.map_or(SlotSet::EMPTY, SlotSet::one),
            Some(ScrubMode::Check) | None => SlotSet::EMPTY,
        };
        let from = at + Sectors(u64::from(checked_sector(&op)));
        let has_parity = op.is_by_rows();
        let remedy = match (rewritten.is_empty(), slot) {
            (true, None) if !has_parity => Remedy::CopiesLeft,
            (true, _) => Remedy::Left,
            (false, Some(_)) => Remedy::Corrected,
            (false, None) if has_parity => Remedy::Parity,
            (false, None) => Remedy::Copies,
        };
        let range = MismatchRange::sector(from, slot, remedy);
        note_mismatch(self.sets, &op, range, &mut self.call);
        let op = &mut self.ops[index];
        op.plan.write |= rewritten;
        op.background_mut().corrected += u32::from(!rewritten.is_empty());
        match slot.filter(|_| mode == Some(ScrubMode::Repair)) {
            Some(slot) => self.push_correction(index, slot),
            None => {
                self.ops[index].background_mut().remade |= rewritten;
                self.probe_next(index);
            }
        }
    }

    fn probe_next(&mut self, index: u32) {
        let row = self.ops[index].is_by_rows();
        let op = &mut self.ops[index];
        let next = checked_sector(op) + 1;
        op.background_mut().sector = Some(next);
        if next < op.rows() {
            let from = next * 512;
            return self.push_check(index, from, 512);
        }
        if op.plan.write.is_empty() {
            return self.background_rows_done(index);
        }
        // If the data of the rows is trusted, their whole parity is computed again.
        op.plan.parity = if row { op.background().remade } else { SlotSet::EMPTY };
        self.push_missing_parity(index);
    }

    pub(super) fn push_check(&mut self, index: u32, from: u32, len: u32) {
        let op = self.ops[index];
        let from = Bytes(u64::from(from));
        let columns = self.call.actions().columns.len();
        let (p, q) = check_columns(self.sets, &op, from, op.plan.read | op.plan.lost, self.call.actions());
        let kind = if op.is_by_rows() { JobKind::Check } else { JobKind::Compare };
        self.push_job(index, Job::new(kind, len, columns).with_parity(p, q));
    }

    fn push_correction(&mut self, index: u32, slot: Slot) {
        let op = self.ops[index];
        let from = Bytes(u64::from(checked_sector(&op)) * 512);
        let wrong = op.buffer(slot) + from;
        if !op.is_by_rows() {
            let good = op.plan.read.without(slot).first().expect("a majority is against it");
            return self.push_copy(index, wrong, op.buffer(good) + from, 512);
        }
        let view = op.stripe_view(self.sets.get(op.set));
        let columns = self.call.actions().columns.len();
        let (p, _) = check_columns(self.sets, &op, from, op.plan.read.without(slot), self.call.actions());
        if slot == view.p || Some(slot) == view.q {
            let (p, q) = if slot == view.p { (Some(wrong), None) } else { (None, Some(wrong)) };
            return self.push_job(index, Job::new(JobKind::Generate, 512, columns).with_parity(p, q));
        }
        self.call.actions().columns.push(JobColumn { index: weight_of(self.sets, &op, slot), at: wrong, old: wrong });
        self.push_job(index, Job::new(JobKind::Recover { lost: 1 }, 512, columns).with_parity(p, None));
    }
}
