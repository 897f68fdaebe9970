//! A member of a mirror refuses its copy of a write because its storage is full, and stays in the array. The other copies
//! may be new, so they get back what it holds.
//!
//! ```text
//!  Writing -> Refitting: Reading -> Writing -> done
//!                         ^           | |
//!                         +-----------+ +-> ReadingCopy -> SummingCopy -> done
//!                      the next one          ^                 |
//!                                            +-----------------+ the next one
//! ```
//!
//! Each copy that refused counts once: what it holds is read over the payload, which is not needed any more, and written
//! to the others. A copy that took the write has room for that. If several refused, each may have a part of the new data.
//! If two of them differ, one has the new data, so it has room; and after the turn of the other one both have the old.
//!
//! A copy that also refuses what it would get back holds the same, unless its file system needs room to write over old data.
//! So the copies are read once more, and their checksums compared. A copy that differs is recorded as bad, and is repaired
//! when there is room.
//!
//! Only the parts in which copies agreed are refitted. If copies may differ, hosts read the first one, and the resync takes that
//! for the right one.
//!
//! Zeroes have no frames over which a copy could be read. The copies that refused them become holes. If they refuse that
//! too, one copy counts, and they are recorded as bad.

use openraid_units::{MemberLba, PoolOffset, Sectors, Slot};

use crate::actions::{JobColumn, JobKind, ReplyStatus};
use crate::geometry::Fragment;
use crate::io::state::footprint::Extent;
use crate::io::state::job::Job;
use crate::io::state::op::{Op, OpPayload, Outcome, PartialParity, Phase, Refitting};
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::extent_op::copies_alike;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::hold_for_commands;
use crate::limits::MEMBERS_MAX;
use crate::reason::{FailReason, Reason};
use crate::slot_set::SlotSet;

/// The copies of a part of an extent, in the order in which hosts read them.
struct Copies {
    all: [Fragment; MEMBERS_MAX as usize],
    count: usize,
    /// The slots of the copies that can be read.
    readable: SlotSet,
    len: Sectors,
    /// The place of its payload.
    at: PoolOffset,
}

impl Copies {
    fn iter(&self) -> impl Iterator<Item = &Fragment> {
        self.all[..self.count].iter()
    }

    /// The first one that can be read, and is in none of these slots.
    fn first_but(&self, avoided: SlotSet) -> Option<&Fragment> {
        self.iter().find(|copy| self.readable.minus(avoided).contains(copy.slot))
    }

    /// The one of this slot, if there is one and it can be read.
    fn of(&self, slot: Slot) -> Option<&Fragment> {
        self.iter().find(|copy| copy.slot == slot && self.readable.contains(slot))
    }

    /// The one with this number, or the first one if it cannot be read.
    fn numbered(&self, number: u16) -> Option<&Fragment> {
        let copy = self.iter().nth(usize::from(number)).filter(|copy| self.readable.contains(copy.slot));
        copy.or_else(|| self.first_but(SlotSet::EMPTY))
    }

    fn range(&self, copy: &Fragment) -> MemberRange {
        MemberRange { slot: copy.slot, lba: copy.lba, len: self.len, at: self.at }
    }
}

fn forget_refused(op: &mut Op) {
    op.outcome = Outcome::Unwritten(op.error().unwrap_or(ReplyStatus::IoError), SlotSet::EMPTY);
}

impl OpIo<'_> {
    /// The write of an extent has failed, and all its commands have ended: refit if members refused it, then end.
    #[cold]
    pub(super) fn end_failed_extent(&mut self, index: u32) {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let is_mirror = set.shape().is_mirror();
        let Extent { at, len, .. } = op.extent();
        let (agrees, run) = set.consistent_run(op.side(), at.get(), len.get());
        let differs = !agrees && run == len.get();
        if op.refused().is_empty() || set.has_failed() || !is_mirror || differs {
            return self.finish_op(index);
        }
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        self.note(index, Reason::CopiesFitted, op.extent().at.get(), op.refused().len());
        match op.payload {
            OpPayload::Zero { may_discard: false } => self.make_holes(index),
            OpPayload::Host(_) if !op.frames_abandoned => {
                self.ops[index].plan.lost = op.refused();
                forget_refused(&mut self.ops[index]);
                self.fit_next_copy(index);
            }
            // A given-up command may still use the payload.
            OpPayload::Host(_) | OpPayload::Zero { may_discard: true } | OpPayload::None => self.end_apart(index),
        }
    }

    /// What an operation that refits waited for has ended.
    #[cold]
    pub(super) fn step_refit_copies(&mut self, index: u32, step: Refitting) {
        let op = self.ops[index];
        if self.sets.get(op.set).has_failed() {
            return self.finish_op(index);
        }
        if op.frames_abandoned {
            // A given-up command may still use the payload.
            return self.end_apart(index);
        }
        match step {
            Refitting::Reading if op.plan.read.intersects(op.excluded) => {
                self.distrust_copies(index, op.plan.read);
                self.fit_next_copy(index);
            }
            Refitting::Reading => self.write_back(index),
            Refitting::Writing if matches!(op.payload, OpPayload::Zero { .. }) => self.end_apart(index),
            Refitting::Writing => self.fit_next_copy(index),
            Refitting::ReadingCopy(_) if !op.excluded.is_empty() => self.end_apart(index),
            Refitting::ReadingCopy(number) => {
                let at = self.payload_of(index);
                let columns = self.call.actions().columns.len();
                self.call.actions().columns.push(JobColumn { index: 0, at, old: at });
                self.ops[index].enter(Phase::Refitting(Refitting::SummingCopy(number)));
                let len = u32::try_from(op.extent().len.bytes().get()).expect("an extent is small");
                self.push_job(index, Job::new(JobKind::Checksum, len, columns));
            }
            Refitting::SummingCopy(number) => self.copy_summed(index, number),
            Refitting::Computing | Refitting::ReadingBack | Refitting::Comparing => {
                unreachable!("copies are never refitted by {step:?}")
            }
        }
    }

    /// Read the next copy that counts, over the payload.
    fn fit_next_copy(&mut self, index: u32) {
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        let op = &mut self.ops[index];
        let Some(source) = op.plan.lost.first() else { return self.compare_copies(index) };
        (op.plan.read, op.plan.lost) = (SlotSet::one(source), op.plan.lost.without(source));
        op.excluded = SlotSet::EMPTY;
        op.enter(Phase::Refitting(Refitting::Reading));
        self.each_part(index, |this, copies| {
            if let Some(copy) = copies.of(source) {
                this.issue_read(index, copies.range(copy), SlotSet::EMPTY);
            }
        });
        if self.ops[index].pending == 0 {
            self.step_refit_copies(index, Refitting::Reading);
        }
    }

    /// Write what was read to the other copies.
    fn write_back(&mut self, index: u32) {
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        self.ops[index].enter(Phase::Refitting(Refitting::Writing));
        let source = self.ops[index].plan.read.first().expect("it was read");
        self.each_part(index, |this, copies| {
            if copies.of(source).is_none() {
                return;
            }
            for copy in copies.iter() {
                let replacement = this.sets.get(this.ops[index].set).place(copy.slot).replacement();
                match (copy.slot == source, replacement) {
                    (true, Some(replacement)) => this.issue_write_to(index, replacement, copies.range(copy)),
                    (true, None) => {}
                    (false, _) => _ = this.issue_write(index, copies.range(copy)),
                }
            }
        });
        if self.ops[index].pending == 0 {
            self.step_refit_copies(index, Refitting::Writing);
        }
    }

    /// All copies that refused the write have counted. If none refused what it would get back, all are equal.
    fn compare_copies(&mut self, index: u32) {
        if self.ops[index].refused().is_empty() {
            return self.finish_op(index);
        }
        self.ops[index].excluded = SlotSet::EMPTY;
        self.read_copy(index, 0);
    }

    /// Read the copies with this number. If one cannot be read, the first readable one is.
    fn read_copy(&mut self, index: u32, number: u16) {
        self.ops[index].enter(Phase::Refitting(Refitting::ReadingCopy(number)));
        self.each_part(index, |this, copies| {
            if let Some(copy) = copies.numbered(number) {
                this.issue_read(index, copies.range(copy), SlotSet::EMPTY);
            }
        });
        if self.ops[index].pending == 0 {
            self.finish_op(index);
        }
    }

    /// The checksum of the copies with this number is known. The first ones count.
    fn copy_summed(&mut self, index: u32, number: u16) {
        if !self.call.channels().may_issue() {
            return hold_for_commands(self.ops, index);
        }
        let op = &mut self.ops[index];
        let counts = op.partial_parity;
        op.keep_partial_sum();
        if number > 0 && core::mem::replace(&mut op.partial_parity, counts) != counts {
            self.each_part(index, |this, copies| {
                let (copy, first) = (copies.numbered(number), copies.first_but(SlotSet::EMPTY));
                if let (Some(copy), Some(first)) = (copy, first) {
                    if copy.slot != first.slot {
                        this.distrust_copy(index, copy, copies.len);
                    }
                }
            });
        }
        let op = &self.ops[index];
        let mirror = op.mirror(self.sets.get(op.set));
        if number + 1 < mirror.copy_count() {
            self.read_copy(index, number + 1);
        } else {
            self.ops[index].partial_parity = PartialParity::None;
            self.finish_op(index);
        }
    }

    /// The copies that refused zeroes become holes.
    fn make_holes(&mut self, index: u32) {
        let refused = self.ops[index].refused();
        forget_refused(&mut self.ops[index]);
        self.ops[index].bring(OpPayload::Zero { may_discard: true });
        self.ops[index].enter(Phase::Refitting(Refitting::Writing));
        self.each_part(index, |this, copies| {
            for copy in copies.iter().filter(|copy| refused.contains(copy.slot)) {
                this.issue_write(index, copies.range(copy));
            }
        });
        if self.ops[index].pending == 0 {
            self.finish_op(index);
        }
    }

    /// It cannot be refitted: the copies that refused something are recorded as bad.
    fn end_apart(&mut self, index: u32) {
        let op = self.ops[index];
        self.distrust_copies(index, op.refused() | op.plan.lost | op.plan.read);
        self.finish_op(index);
    }

    /// Copies in these slots may differ from others: they are not read any more. One copy is read in any case.
    fn distrust_copies(&mut self, index: u32, doubtful: SlotSet) {
        self.each_part(index, |this, copies| {
            let Some(kept) = copies.first_but(doubtful).or_else(|| copies.first_but(SlotSet::EMPTY)) else { return };
            let is_doubtful = |slot| doubtful.contains(slot) && copies.readable.contains(slot);
            for copy in copies.iter().filter(|copy| copy.slot != kept.slot && is_doubtful(copy.slot)) {
                this.distrust_copy(index, copy, copies.len);
            }
        });
    }

    /// A member that takes no record leaves the array.
    fn distrust_copy(&mut self, index: u32, copy: &Fragment, len: Sectors) {
        let set = self.ops[index].set;
        let Some(member) = self.sets.get(set).place(copy.slot).member() else { return };
        if !self.sets.record_bad((set, self.ops[index].side()), member, copy.lba, len) {
            self.fail_member((set, member), FailReason::BadBlockLogFull);
        }
    }

    fn payload_of(&self, index: u32) -> PoolOffset {
        if let OpPayload::Host(at) = self.ops[index].payload {
            at
        } else {
            PoolOffset::ZERO
        }
    }

    /// For each part of the extent in which copies agreed, and every copy lies in one piece and can be read as a whole or not at
    /// all.
    fn each_part(&mut self, index: u32, mut act: impl FnMut(&mut Self, &Copies)) {
        let (Extent { at: start, len: whole, .. }, payload) = (self.ops[index].extent(), self.payload_of(index));
        let none = Fragment { slot: Slot(0), lba: MemberLba::ZERO, len: Sectors::ZERO };
        let mut done = Sectors::ZERO;
        while done < whole {
            let op = &self.ops[index];
            let set = self.sets.get(op.set);
            let mirror = op.mirror(set);
            let alike = copies_alike((set, op.side()), mirror, start + done, whole - done);
            let (agrees, run) = set.consistent_run(op.side(), (start + done).get(), alike.get());
            let mut copies = Copies {
                all: [none; MEMBERS_MAX as usize],
                count: 0,
                readable: SlotSet::EMPTY,
                len: Sectors(run),
                at: payload + done.bytes(),
            };
            for copy in mirror.copies(start + done) {
                copies.all[copies.count] = copy;
                copies.count += 1;
                if set.readable(op.side(), copy.lba, copy.lba + copies.len).contains(copy.slot) {
                    copies.readable.insert(copy.slot);
                }
            }
            if agrees {
                act(self, &copies);
            }
            done += copies.len;
        }
    }
}
