//! One unit of background work: restore, make consistent, or compare.
//!
//! A unit is a stripe of a parity set, or a range of a mirror. It is processed in parts that fit the work frames. A
//! part that cannot be read is narrowed down to one block, so that a bad sector costs only a sector.

use openraid_units::{Bytes, MemberLba, PoolOffset, Sectors, SetLba, Slot};

use crate::actions::{Actions, JobColumn, JobKind, NoticeKind};
use crate::admin::MemberState;
use crate::array::sets::Sets;
use crate::events::Verdict;
use crate::geometry::{Geometry, StripeRole};
use crate::io::command_errors::MemberRange;
use crate::io::ended::{EndedOps, News, Past};
use crate::io::job::Job;
use crate::io::op::{Computation, Op, OpKind, Phase, Plan};
use crate::io::op_io::OpIo;
use crate::io::plan::plan_recovery;
use crate::planted::Flaw;
use crate::reason::FailReason;
use crate::scrub::{MismatchRange, Remedy, ScrubMode};
use crate::slots::SlotSet;

impl Sets {
    /// A plan for the rows in work that avoids the parts that are known to be unreadable.
    pub(crate) fn plan_of_background(&self, op: &Op) -> Option<Plan> {
        if op.background().is_rewrite {
            let remade = op.background().remade.minus(op.excluded);
            return Some(Plan { read: remade, write: remade, ..Plan::default() });
        }
        // A failed large read does not show where the defect is: only the parts that fail again are rewritten, and the ones
        // that are recorded as bad.
        let (lo, hi) = op.part().range();
        let is_large = hi - lo > self.get(op.set).rows_max() && !self.is_recorded_bad(op);
        if op.is_repair() && is_large && !op.background().remade.intersects(op.excluded) {
            return Some(Plan { read: op.background().remade, ..Plan::default() });
        }
        let plan = if op.is_by_rows() { self.plan_rows(op) } else { self.plan_copies(op) };
        plan.or_else(|| {
            // No other member has the data. Perhaps only some of it is bad: try what the member itself returns.
            let untried = op.is_repair() && !op.background().remade.intersects(op.excluded);
            untried.then_some(Plan { read: op.background().remade, ..Plan::default() })
        })
    }

    /// Is a part of the rows in work recorded as bad on a member that is restored?
    fn is_recorded_bad(&self, op: &Op) -> bool {
        let (set, len) = (self.get(op.set), Sectors(u64::from(op.rows())));
        let is_bad = |slot| set.member_of(slot).is_some_and(|m| m.is_bad(self.member_place(op, slot), len));
        set.has_bad() && op.background().remade.iter().any(is_bad)
    }

    /// The members to be restored are gone, or the set is stopping or has failed.
    fn is_obsolete(&self, op: &Op) -> bool {
        let set = self.get(op.set);
        if set.life() != crate::array::set::Life::Running {
            return true;
        }
        let gone = |slot: Slot| {
            let place = set.place(slot);
            place.of(op.background().replace).is_none_or(|member| !set.member(member).is_active())
        };
        op.kind == OpKind::Rebuild && op.background().remade.iter().any(gone)
    }

    /// The place of the rows in work on the member in a slot.
    pub(crate) fn member_place(&self, op: &Op, slot: Slot) -> MemberLba {
        match self.get(op.set).geometry() {
            Geometry::Parity(_) => op.member_rows(self.get(op.set)).0,
            Geometry::Mirror(mirror) => {
                let at = self.rows_at(op);
                mirror.copies(at).find(|c| c.slot == slot).expect("the slot has a copy").lba
            }
            _ => unreachable!("background work is on redundant sets"),
        }
    }

    /// The place of the rows in work in a mirrored set.
    fn rows_at(&self, op: &Op) -> SetLba {
        op.extent().at
    }

    fn plan_rows(&self, op: &Op) -> Option<Plan> {
        let mut view = op.stripe_view(self.get(op.set));
        let all = view.data | view.parities();
        match op.kind {
            OpKind::Rebuild => {
                if op.background().replace && op.background().remade.minus(view.readable).is_empty() {
                    return Some(Plan {
                        read: op.background().remade,
                        write: op.background().remade,
                        ..Plan::default()
                    });
                }
                if op.is_repair() && !view.trusted && !op.background().remade.intersects(op.excluded) {
                    // Parity may not match, so only the unreadable rows are recovered from it.
                    return Some(Plan { read: op.background().remade, ..Plan::default() });
                }
                view.readable = view.readable.minus(op.background().remade);
                let recovery = plan_recovery(&view).ok()?;
                let parity = op.background().remade & view.parities();
                // Computing parity needs all data; a lost column is recovered from the other reads.
                Some(Plan { read: recovery.read, lost: recovery.lost, parity, write: op.background().remade })
            }
            OpKind::Resync => {
                let parity = view.parities() & view.writable;
                if view.data.minus(view.readable).is_empty() {
                    // Parity that matches already is not written.
                    let compares = self.compares(op) && parity.minus(view.readable).is_empty();
                    let read = if compares { view.data | parity } else { view.data };
                    return Some(Plan { read, lost: SlotSet::EMPTY, parity, write: parity });
                }
                // One parity defines the unreadable data, and the other parity is made to match.
                let recovery = plan_recovery(&view).ok()?;
                let lost = recovery.lost & view.data & view.writable;
                Some(Plan { read: recovery.read, lost: recovery.lost, parity, write: lost | parity })
            }
            _ => {
                let unread = all.minus(view.readable);
                // With one column missing on a double parity, that column is recovered from P and compared with Q.
                let lost = if view.q.is_some() && unread.len() == 1 { unread & view.data } else { SlotSet::EMPTY };
                Some(Plan { read: all.minus(unread), lost, ..Plan::default() })
            }
        }
    }

    fn plan_copies(&self, op: &Op) -> Option<Plan> {
        let set = self.get(op.set);
        let Geometry::Mirror(mirror) = set.geometry() else { unreachable!("asked for a mirror") };
        let at = self.rows_at(op);
        let rows = Sectors(u64::from(op.rows()));
        let mut all = SlotSet::EMPTY;
        let mut readable = SlotSet::EMPTY;
        let mut first = None;
        for copy in mirror.copies(at) {
            all.insert(copy.slot);
            let good = set.readable(copy.lba, copy.lba + rows).contains(copy.slot);
            let is_remade =
                op.kind == OpKind::Rebuild && !op.background().replace && op.background().remade.contains(copy.slot);
            if good && !is_remade && !op.excluded.contains(copy.slot) {
                readable.insert(copy.slot);
                first = first.or(Some(copy.slot));
            }
        }
        match op.kind {
            OpKind::Rebuild => {
                let write = op.background().remade & all;
                let source = if op.background().replace && write.minus(readable).is_empty() {
                    write.first()
                } else if set.is_consistent(at.get(), (at + rows).get()) {
                    // The copy of a member that is not write-mostly, if copies are equal.
                    let preferred = mirror.copies(at).map(|copy| copy.slot);
                    let mut preferred = preferred.filter(|slot| readable.minus(set.write_mostly()).contains(*slot));
                    preferred.next().or(first)
                } else {
                    first
                };
                Some(Plan { read: SlotSet::one(source?), write, ..Plan::default() })
            }
            OpKind::Resync => {
                let source = first?;
                let write = (all & set.writable()).without(source);
                // Copies that are equal already are not written.
                let compares = self.compares(op) && write.minus(readable).is_empty();
                let read = if compares { write.with(source) } else { SlotSet::one(source) };
                Some(Plan { read, write, ..Plan::default() })
            }
            _ => Some(Plan { read: readable, ..Plan::default() }),
        }
    }

    /// Does this unit of a resync compare before it writes?
    fn compares(&self, op: &Op) -> bool {
        let task = self.get(op.set).tasks.current();
        task.is_some_and(|task| op.background().unit_of(task.id()).is_some_and(|unit| task.is_compared(unit)))
    }

    /// The source of the bytes for a slot: its own buffer if they are computed, otherwise the copy that counts.
    fn written_from(&self, op: &Op, slot: Slot) -> Slot {
        if op.is_by_rows() {
            return slot;
        }
        let computed = op.kind == OpKind::Scrub && !op.background().remade.contains(slot);
        if computed {
            slot
        } else {
            self.first_copy(op)
        }
    }

    /// The first of the copies that were read, in the order in which hosts read them.
    fn first_copy(&self, op: &Op) -> Slot {
        let Geometry::Mirror(mirror) = self.get(op.set).geometry() else { unreachable!("asked for a mirror") };
        let mut copies = mirror.copies(self.rows_at(op));
        copies.find(|copy| op.plan.read.contains(copy.slot)).expect("a copy was read").slot
    }

    /// Add the data columns (or copies) among `slots`, in their buffers from `from` on, to the job. Returns P and Q.
    fn check_columns(
        &self,
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
        let view = op.stripe_view(self.get(op.set));
        for slot in view.data & slots {
            let at = op.buffer(slot) + from;
            actions.columns.push(JobColumn { index: self.weight(op, slot), at, old: at });
        }
        let parity = |slot: Slot| slots.contains(slot).then(|| op.buffer(slot) + from);
        (parity(view.p), view.q.and_then(parity))
    }

    /// The slots with redundant data: parity, or all copies but the first.
    fn copies_of_data(&self, op: &Op) -> SlotSet {
        if op.is_by_rows() {
            return op.stripe_view(self.get(op.set)).parities() & op.plan.read;
        }
        op.plan.read.without(self.first_copy(op))
    }

    /// The slot that disagrees, by the last verdict.
    fn culprit(&self, op: &Op) -> Option<Slot> {
        if !op.plan.lost.is_empty() {
            // Recovered data always matches one parity by itself, so any column could be wrong.
            return None;
        }
        if !op.is_by_rows() {
            return match op.verdict {
                Verdict::ColumnWrong(number) => op.plan.read.iter().nth(usize::from(number)),
                _ => None,
            };
        }
        let view = op.stripe_view(self.get(op.set));
        match op.verdict {
            Verdict::ColumnWrong(number) => view.data.iter().nth(usize::from(number)),
            // With P alone no slot can be named: any column could be wrong.
            Verdict::PWrong => view.q.map(|_| view.p),
            Verdict::QWrong => view.q,
            Verdict::Match | Verdict::Unknown | Verdict::Done | Verdict::Checksum(_) => None,
        }
    }

    /// The sector of the rows in work that is checked by itself.
    fn checked_sector(op: &Op) -> u32 {
        op.background().sector.expect("the rows are checked sector by sector")
    }
}

impl EndedOps {
    /// Copies may have differed, and the cache may have data of any of them: hosts read the first readable copy, which
    /// may have been another one then, and a command that met a bad sector was read again as a whole from the next
    /// copy. Data that is about to disappear from all copies is dropped from the cache.
    fn forget_copies(&mut self, sets: &Sets, op: &Op) {
        if matches!(sets.get(op.set).geometry(), Geometry::Mirror(_)) {
            self.report_stale(op, sets.rows_at(op));
        }
    }

    fn report_stale(&mut self, op: &Op, at: SetLba) {
        self.report(News::Stale(op.set, Past { at, len: Sectors(u64::from(op.rows())), columns: 1 }));
    }

    /// Drop from the cache data that a repair has corrected, because the cache may have read it before.
    fn forget_corrected(&mut self, sets: &Sets, op: &Op) {
        if op.plan.write.is_empty() {
            return;
        }
        if !op.is_by_rows() {
            return self.forget_copies(sets, op);
        }
        for slot in op.plan.write {
            let parity = sets.get(op.set).parity();
            let rows = op.rows_of();
            let StripeRole::Data(column) = parity.role_of(rows.stripe, slot) else { continue };
            let at = parity.set_lba(rows.stripe, column, Sectors(u64::from(rows.part.from())));
            self.report_stale(op, at);
        }
    }
}

impl OpIo<'_> {
    /// One block cannot be restored: record it as lost on the members that lack it, and continue.
    fn rows_lost(&mut self, index: u32) {
        let op = self.ops[index];
        if op.kind == OpKind::Scrub {
            return self.sets.note_uncompared(&op);
        }
        let len = Sectors(u64::from(op.rows()));
        // Members whose reads failed would be asked again each time, and fail again.
        for slot in op.excluded.minus(op.background().remade) {
            let (at, set) = (self.sets.member_place(&op, slot), self.sets.get(op.set));
            let member = set.place(slot).member();
            if let Some(member) = member.filter(|member| set.member(*member).state() == MemberState::InSync) {
                // Without a log it is as on any array without one.
                let _ = self.sets.record_lost(op.set, member, at, len, &mut self.call);
            }
        }
        if op.kind != OpKind::Rebuild {
            return;
        }
        for slot in op.background().remade {
            let at = self.sets.member_place(&op, slot);
            let place = self.sets.get(op.set).place(slot);
            let Some(member) = place.of(op.background().replace) else { continue };
            let recorded = self.sets.record_lost(op.set, member, at, len, &mut self.call);
            let state = self.sets.get(op.set).member(member).state();
            // A working member is asked again and says again that it cannot be read. One that is being filled would
            // be believed.
            if !recorded && state != MemberState::InSync {
                self.fail_member((op.set, member), FailReason::BadBlockLogFull);
            }
        }
    }

    fn push_check(&mut self, index: u32, from: u32, len: u32) {
        let op = self.ops[index];
        let from = Bytes(u64::from(from));
        let columns = self.call.actions().columns.len();
        let (p, q) = self.sets.check_columns(&op, from, op.plan.read | op.plan.lost, self.call.actions());
        let kind = if op.is_by_rows() { JobKind::Check } else { JobKind::Compare };
        self.push_job(index, Job::new(kind, len, columns).with_parity(p, q));
    }

    fn push_correction(&mut self, index: u32, slot: Slot) {
        let op = self.ops[index];
        let from = Bytes(u64::from(Sets::checked_sector(&op)) * 512);
        let wrong = op.buffer(slot) + from;
        if !op.is_by_rows() {
            let good = op.plan.read.without(slot).first().expect("a majority is against it");
            return self.push_copy(index, wrong, op.buffer(good) + from, 512);
        }
        let view = op.stripe_view(self.sets.get(op.set));
        let columns = self.call.actions().columns.len();
        let (p, _) = self.sets.check_columns(&op, from, op.plan.read.without(slot), self.call.actions());
        if slot == view.p || Some(slot) == view.q {
            let (p, q) = if slot == view.p { (Some(wrong), None) } else { (None, Some(wrong)) };
            return self.push_job(index, Job::new(JobKind::Generate, 512, columns).with_parity(p, q));
        }
        self.call.actions().columns.push(JobColumn { index: self.sets.weight(&op, slot), at: wrong, old: wrong });
        self.push_job(index, Job::new(JobKind::Recover { lost: 1 }, 512, columns).with_parity(p, None));
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

    fn background_rows_done(&mut self, index: u32) {
        if self.next_rows(index) {
            self.plan_background(index);
        } else {
            self.finish_op(index);
        }
    }

    fn plan_background(&mut self, index: u32) {
        if !self.call.channels().may_issue() {
            return self.ops.hold_for_commands(index);
        }
        self.narrow_unfit_rows(index);
        let op = self.ops[index];
        if self.sets.is_obsolete(&op) {
            return self.finish_op(index);
        }
        let Some(plan) = self.sets.plan_of_background(&op) else {
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
            let (lba, at) = (self.sets.member_place(&op, slot), op.buffer(slot));
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
            self.ended.forget_copies(self.sets, &op);
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

    fn push_missing_parity(&mut self, index: u32) {
        let op = self.ops[index];
        if op.plan.parity.is_empty() {
            return self.log_background(index);
        }
        self.ops[index].phase = Phase::Computing(Computation::Parity);
        let view = op.stripe_view(self.sets.get(op.set));
        let columns = self.call.actions().columns.len();
        for slot in view.data {
            let at = op.buffer(slot);
            self.call.actions().columns.push(JobColumn { index: self.sets.weight(&op, slot), at, old: at });
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
            let from = self.sets.written_from(&op, slot);
            let range = MemberRange {
                slot,
                lba: self.sets.member_place(&op, slot),
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
            OpKind::Resync => self.ended.forget_copies(self.sets, &op),
            OpKind::Scrub => {
                self.ended.forget_corrected(self.sets, &op);
                if !op.has_failed() {
                    self.sets.note_repaired(&op);
                }
            }
            _ => {}
        }
        if op.is_repair() && !op.background().is_rewrite && !op.plan.write.is_empty() && !op.has_failed() {
            for slot in op.background().remade {
                let set = self.sets.get(op.set);
                if let Some(place) = set.place(slot).member() {
                    let member = set.member(place);
                    let at = self.sets.member_place(&op, slot);
                    let (lba, drive) = (member.on_drive(at), member.drive());
                    self.sets.get_mut(op.set).member_mut(place).rewritten(at, Sectors(u64::from(op.rows())));
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

    // ---- comparing

    fn start_check(&mut self, index: u32) {
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
            self.sets.note_uncompared(&op);
            return self.background_rows_done(index);
        }
        let op = &mut self.ops[index];
        op.phase = Phase::Computing(Computation::Check);
        (op.background_mut().sector, op.background_mut().corrected) = (None, 0);
        (op.plan.write, op.background_mut().remade) = (SlotSet::EMPTY, SlotSet::EMPTY);
        let bytes = op.row_bytes();
        self.push_check(index, 0, bytes);
    }

    fn on_checked(&mut self, index: u32) {
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
            if op.verdict == Verdict::Match {
                return self.background_rows_done(index);
            }
            // The mismatch is somewhere in these rows: check each sector by itself.
            self.ops[index].background_mut().sector = Some(0);
            return self.push_check(index, 0, 512);
        }
        // Matches, or the correction of this sector is computed.
        if matches!(op.verdict, Verdict::Match | Verdict::Done) {
            return self.probe_next(index);
        }
        self.on_mismatch(index);
    }

    /// The rows of a resync were compared: the parts that differ are written.
    fn on_sync_compared(&mut self, index: u32) {
        let op = self.ops[index];
        let differs = op.verdict != Verdict::Match;
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
        let culprit = self.sets.culprit(&op);
        let at = if op.is_by_rows() {
            op.member_rows(self.sets.get(op.set)).0.offset()
        } else {
            self.sets.rows_at(&op).offset()
        };
        let mode = self.sets.scrub_mode(&op);
        let slot = culprit.filter(|_| mode != Some(ScrubMode::TrustData));
        let rewritten = match mode {
            Some(ScrubMode::TrustData) => self.sets.copies_of_data(&op),
            Some(ScrubMode::Repair) if slot.is_none() && self.call.planted().has(Flaw::RepairGuesses) => {
                self.sets.copies_of_data(&op)
            }
            Some(ScrubMode::Repair) => slot.map_or(SlotSet::EMPTY, SlotSet::one),
            Some(ScrubMode::Check) | None => SlotSet::EMPTY,
        };
        let from = at + Sectors(u64::from(Sets::checked_sector(&op)));
        let has_parity = op.is_by_rows();
        let remedy = match (rewritten.is_empty(), slot) {
            (true, None) if !has_parity => Remedy::CopiesLeft,
            (true, _) => Remedy::Left,
            (false, Some(_)) => Remedy::Corrected,
            (false, None) if has_parity => Remedy::Parity,
            (false, None) => Remedy::Copies,
        };
        let range = MismatchRange::sector(from, slot, remedy);
        self.sets.note_mismatch(&op, range, &mut self.call);
        let own = &mut self.ops[index];
        own.plan.write |= rewritten;
        own.background_mut().corrected += u32::from(!rewritten.is_empty());
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
        let next = Sets::checked_sector(op) + 1;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::consistency::Consistency;
    use crate::array::set::Set;
    use crate::geometry::{Level, SetSpec};
    use crate::io::footprint::{Columns, Stretch, StripeRows};
    use crate::io::op::{BackgroundData, BackgroundKind, UnitRange};
    use crate::io::search::Part;
    use openraid_units::{SetId, StripeIndex};

    const SET: SetId = SetId(0);

    fn sets(level: Level, members: u16) -> Sets {
        let member_size = Sectors::kib(1024);
        let sizes = [member_size; 6];
        let layout = if level == Level::Raid1 { 0 } else { 2 };
        let member_sizes = &sizes[..usize::from(members)];
        let spec = SetSpec { level, members, chunk: Sectors::kib(64), layout, member_size, member_sizes };
        let mut sets = Sets::new();
        sets.put(SET, Set::with_members(&spec));
        sets
    }

    fn slots(of: &[u16]) -> SlotSet {
        of.iter().map(|slot| Slot(*slot)).collect()
    }

    fn op(sets: &Sets, kind: BackgroundKind, remade: &[u16], replace: bool) -> Op {
        let part = Part::whole(0, 8);
        let range = match sets.get(SET).geometry() {
            Geometry::Parity(_) => UnitRange::Rows(StripeRows { stripe: StripeIndex(0), part, columns: Columns::All }),
            _ => UnitRange::Stretch(Stretch { at: SetLba(0), part }),
        };
        let task = Some(crate::io::op::TaskUnit { task: 1, unit: 0 });
        Op::in_background(kind, SET, range, BackgroundData::new(slots(remade), task, replace))
    }

    /// The slots that a plan reads, recovers, computes and writes.
    fn planned(sets: &Sets, op: &Op) -> Option<[SlotSet; 4]> {
        sets.plan_of_background(op).map(|plan| [plan.read, plan.lost, plan.parity, plan.write])
    }

    // In stripe 0 of a left-symmetric RAID 5 of four, slot 3 has parity. In stripe 0 of a RAID 6 of five, slot 4 has P and
    // slot 0 has Q: data is in slots 1, 2 and 3.

    #[test]
    fn a_rebuild_reads_what_defines_the_slot_and_writes_the_slot_alone() {
        let sets5 = sets(Level::Raid5, 4);
        let of = |slot| planned(&sets5, &op(&sets5, BackgroundKind::Rebuild, &[slot], false)).unwrap();
        let none = SlotSet::EMPTY;
        assert_eq!(of(1), [slots(&[0, 2, 3]), slots(&[1]), none, slots(&[1])], "data is recovered");
        assert_eq!(of(3), [slots(&[0, 1, 2]), none, slots(&[3]), slots(&[3])], "parity is computed");
        // A replacement is copied from its member while that can be read.
        let copy = op(&sets5, BackgroundKind::Rebuild, &[1], true);
        assert_eq!(planned(&sets5, &copy), Some([slots(&[1]), none, none, slots(&[1])]));
        let mut unread = copy;
        unread.excluded = slots(&[1]);
        assert_eq!(planned(&sets5, &unread).unwrap()[0], slots(&[0, 2, 3]));
        unread.excluded = slots(&[1, 2]);
        assert_eq!(planned(&sets5, &unread), None, "two columns of four are too many");
    }

    #[test]
    fn a_resync_reads_all_data_and_writes_the_parity_and_one_parity_makes_the_other_match() {
        let sets6 = sets(Level::Raid6, 5);
        let mut resync = op(&sets6, BackgroundKind::Resync, &[], false);
        let (data, parity, none) = (slots(&[1, 2, 3]), slots(&[0, 4]), SlotSet::EMPTY);
        assert_eq!(planned(&sets6, &resync), Some([data, none, parity, parity]));
        resync.excluded = slots(&[2]);
        let [read, lost, made, written] = planned(&sets6, &resync).unwrap();
        assert_eq!((lost, written), (slots(&[2]), parity | slots(&[2])));
        assert!(!read.contains(Slot(2)) && read.len() == 3 && made == parity);
    }

    #[test]
    fn a_check_reads_everything_and_recovers_one_missing_column_of_a_double_parity() {
        let (sets5, sets6) = (sets(Level::Raid5, 4), sets(Level::Raid6, 5));
        let none = SlotSet::EMPTY;
        let mut check = op(&sets6, BackgroundKind::Scrub, &[], false);
        assert_eq!(planned(&sets6, &check), Some([slots(&[0, 1, 2, 3, 4]), none, none, none]));
        check.excluded = slots(&[2]);
        assert_eq!(planned(&sets6, &check), Some([slots(&[0, 1, 3, 4]), slots(&[2]), none, none]));
        check.excluded = slots(&[4]);
        assert_eq!(planned(&sets6, &check).unwrap()[1], none, "it is parity");
        let mut check = op(&sets5, BackgroundKind::Scrub, &[], false);
        check.excluded = slots(&[2]);
        assert_eq!(planned(&sets5, &check).unwrap()[1], none, "there is nothing to compare it with");
    }

    #[test]
    fn copies_are_made_from_the_first_one_that_can_be_read() {
        let sets1 = sets(Level::Raid1, 3);
        let none = SlotSet::EMPTY;
        let mut resync = op(&sets1, BackgroundKind::Resync, &[], false);
        assert_eq!(planned(&sets1, &resync), Some([slots(&[0]), none, none, slots(&[1, 2])]));
        resync.excluded = slots(&[0]);
        assert_eq!(planned(&sets1, &resync), Some([slots(&[1]), none, none, slots(&[0, 2])]));
        let rebuild = op(&sets1, BackgroundKind::Rebuild, &[0], false);
        assert_eq!(planned(&sets1, &rebuild), Some([slots(&[1]), none, none, slots(&[0])]));
        let replace = op(&sets1, BackgroundKind::Rebuild, &[2], true);
        assert_eq!(planned(&sets1, &replace), Some([slots(&[2]), none, none, slots(&[2])]));
        let mut check = op(&sets1, BackgroundKind::Scrub, &[], false);
        check.plan = sets1.plan_of_background(&check).unwrap();
        assert_eq!((check.plan.read, sets1.first_copy(&check)), (slots(&[0, 1, 2]), Slot(0)));
        assert_eq!(sets1.copies_of_data(&check), slots(&[1, 2]));
    }

    #[test]
    fn a_verdict_names_a_slot_only_if_no_other_one_could_be_wrong() {
        let (sets5, sets6, sets1) = (sets(Level::Raid5, 4), sets(Level::Raid6, 5), sets(Level::Raid1, 3));
        let culprit = |sets: &Sets, verdict| {
            let mut check = op(sets, BackgroundKind::Scrub, &[], false);
            check.plan = sets.plan_of_background(&check).unwrap();
            check.verdict = verdict;
            sets.culprit(&check).map(|slot| slot.0)
        };
        // With P alone any column could be wrong.
        assert_eq!(culprit(&sets5, Verdict::PWrong), None);
        let of_double = [Verdict::PWrong, Verdict::QWrong, Verdict::ColumnWrong(0), Verdict::ColumnWrong(2)];
        assert_eq!(of_double.map(|verdict| culprit(&sets6, verdict)), [Some(4), Some(0), Some(1), Some(3)]);
        assert_eq!([Verdict::Match, Verdict::Unknown].map(|verdict| culprit(&sets6, verdict)), [None; 2]);
        assert_eq!(culprit(&sets1, Verdict::ColumnWrong(1)), Some(1));
        // Recovered data matches one parity by itself.
        let mut check = op(&sets6, BackgroundKind::Scrub, &[], false);
        check.excluded = slots(&[2]);
        check.plan = sets6.plan_of_background(&check).unwrap();
        check.verdict = Verdict::PWrong;
        assert_eq!(sets6.culprit(&check), None);
    }

    #[test]
    fn a_unit_is_obsolete_when_its_member_is_gone_or_the_set_does_not_run() {
        let mut sets5 = sets(Level::Raid5, 4);
        let (rebuild, replace) =
            (op(&sets5, BackgroundKind::Rebuild, &[1], false), op(&sets5, BackgroundKind::Rebuild, &[1], true));
        assert_eq!([&rebuild, &replace].map(|op| sets5.is_obsolete(op)), [false, true], "there is no replacement");
        sets5.get_mut(SET).fail_slot(Slot(1), FailReason::Gone);
        assert!(sets5.is_obsolete(&rebuild));
        let check = op(&sets5, BackgroundKind::Scrub, &[], false);
        assert!(!sets5.is_obsolete(&check), "it needs no certain member");
        sets5.get_mut(SET).fail();
        assert!(sets5.is_obsolete(&check));
    }

    #[test]
    fn parity_that_may_not_match_repairs_only_what_its_member_does_not_return() {
        let mut sets5 = sets(Level::Raid5, 4);
        sets5.get_mut(SET).set_consistency(Consistency::Below { to: Sectors::ZERO, only_marked: false });
        let mut repair = op(&sets5, BackgroundKind::Rebuild, &[1], false);
        repair.background_mut().task = None;
        assert_eq!(planned(&sets5, &repair).unwrap()[0], slots(&[1]));
        repair.excluded = slots(&[1]);
        assert_eq!(planned(&sets5, &repair).unwrap()[0], slots(&[0, 2, 3]));
    }
}
