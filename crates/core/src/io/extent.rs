//! Extents: direct reads of sectors, and writes to sets without parity.

use crate::array::sets::Sets;
use crate::io::channel::Channels;
use openraid_units::{MemberLba, PoolOffset, Sectors, SetLba, Slot};

use crate::actions::{Actions, DriveOp, ReplyStatus};
use crate::controller::Controller;
use crate::geometry::{Fragment, Geometry};
use crate::io::command_errors::MemberRange;
use crate::io::footprint::Extent;
use crate::io::op::{Payload, Phase};
use crate::reason::Reason;
use crate::slots::SlotSet;
use crate::steps::What;

impl Sets {
    /// Does every active member support discards, and read zeroes after one? Then redundancy still matches after a
    /// discard.
    pub(crate) fn discards_to_zeroes(&self, channels: &Channels, set_id: openraid_units::SetId) -> bool {
        let mut active = self.get(set_id).members().iter().filter(|member| member.is_active());
        active.all(|member| {
            channels.get(member.drive()).is_some_and(|channel| channel.info().discard && channel.info().discard_zeroes)
        })
    }
}

impl Controller {
    // ---- reading

    pub(crate) fn step_read(&mut self, index: u32, actions: &mut Actions) {
        match self.ops[index].phase {
            Phase::Start => {
                if self.journal.replay().is_redoing() && self.hold_for_redo(index, actions) {
                    return;
                }
                if !self.channels.may_issue() {
                    return self.ops.hold_for_commands(index);
                }
                self.ops[index].phase = Phase::ReadingOld;
                self.issue_extent_reads(index, actions);
                if self.ops[index].pending == 0 {
                    self.finish_op(index, actions);
                }
            }
            Phase::ReadingOld => self.finish_op(index, actions),
            phase => unreachable!("a read is never in {phase:?}"),
        }
    }

    fn issue_extent_reads(&mut self, index: u32, actions: &mut Actions) {
        let op = &self.ops[index];
        let Payload::Host(base) = op.payload else { unreachable!("reads have frames") };
        let (set, Extent { at: start, len: whole }) = (op.set, op.extent());
        let mut done = Sectors::ZERO;
        while done < whole {
            let at = start + done;
            let left = whole - done;
            let choice = self.choose_fragment(index, at, left);
            let Some((fragment, reason)) = choice else {
                let piece = self.ops[index].piece();
                if !piece.is_some_and(|piece| self.requests.piece(piece).is_read_again()) {
                    self.ops[index].fail(ReplyStatus::IoError);
                }
                return;
            };
            let len = fragment.len.min(left);
            if reason == Reason::ReadDirect {
                self.sets.get_mut(set).reasons.count(reason);
            } else {
                self.sets.copy_chosen(&mut self.trace, set, at, &fragment, len, reason);
            }
            self.trace.op(&self.ops, index, || What::Reason { reason, figure: 0 });
            let range = MemberRange { slot: fragment.slot, lba: fragment.lba, len, at: base + done.bytes() };
            self.issue_read(index, range, SlotSet::EMPTY, actions);
            done += len;
        }
    }

    /// The place to read `at` from; `None` if no member has it. Only reads of parity sets that have become degraded get
    /// none: their piece is read again by rows.
    fn choose_fragment(&mut self, index: u32, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        let fragment = match set.geometry() {
            Geometry::Passthrough(g) => g.map(at),
            Geometry::Linear(g) => g.map(at),
            Geometry::Striped(g) => g.map(at),
            Geometry::Mirror(mirror) => return self.choose_copy(op, mirror, at, left),
            Geometry::Parity(parity) => {
                let (stripe, column, within) = parity.locate(at);
                let slot = parity.slot_of(stripe, column);
                let fragment = Fragment { slot, lba: parity.member_lba(stripe, within), len: parity.chunk() - within };
                let end = fragment.lba + fragment.len.min(left);
                if !set.readable(fragment.lba, end).contains(slot) {
                    let piece = op.piece().expect("blocks of edges are read by rows");
                    self.requests.piece_mut(piece).read_again(false);
                    return None;
                }
                fragment
            }
        };
        let end = fragment.lba + fragment.len.min(left);
        set.readable(fragment.lba, end).contains(fragment.slot).then_some((fragment, Reason::ReadDirect))
    }

    // ---- writing

    /// Advance a write of a host.
    pub(crate) fn step_write(&mut self, index: u32, actions: &mut Actions) {
        if self.step_extent(index, actions) {
            self.finish_op(index, actions);
        }
    }

    /// Advance the write of an extent, for a host or for destage. True if the members have it; an operation that fails
    /// is over.
    pub(crate) fn step_extent(&mut self, index: u32, actions: &mut Actions) -> bool {
        match self.ops[index].phase {
            Phase::Planning | Phase::Logging => {
                self.ops[index].phase = Phase::Logging;
                if !self.pass_write_gate(index, actions).is_open() {
                    return false;
                }
                self.ops[index].phase = Phase::Writing;
                self.issue_extent_writes(index, actions);
                self.ops[index].pending == 0 && self.step_extent(index, actions)
            }
            Phase::Writing | Phase::Recording => {
                if !self.ops[index].has_failed()
                    && !self.ops.pass_reply_gate(&mut self.sets, &mut self.trace, self.planted, index)
                {
                    return false;
                }
                let is_written = !self.ops[index].has_failed();
                if !is_written {
                    self.finish_op(index, actions);
                }
                is_written
            }
            phase => unreachable!("a write is never in {phase:?}"),
        }
    }

    fn issue_extent_writes(&mut self, index: u32, actions: &mut Actions) {
        let op = &self.ops[index];
        let base = match op.payload {
            Payload::Host(base) => Some(base),
            Payload::Zero { .. } => None,
            Payload::None => unreachable!("writes have payload"),
        };
        let (set, Extent { at, len: whole }) = (op.set, op.extent());
        let mirrored = matches!(self.sets.get(set).geometry(), Geometry::Mirror(_));
        let reason = if mirrored { Reason::Mirrored } else { Reason::Direct };
        self.sets.get_mut(set).reasons.count(reason);
        self.trace.op(&self.ops, index, || What::Reason { reason, figure: 0 });
        let mut done = Sectors::ZERO;
        while done < whole {
            let payload = base.map_or(PoolOffset::ZERO, |base| base + done.bytes());
            let len = self.write_fragment(index, at + done, whole - done, payload, actions);
            done += len;
        }
    }

    /// Write the fragment at `at`, every copy of it; returns its length.
    fn write_fragment(
        &mut self,
        index: u32,
        at: SetLba,
        left: Sectors,
        payload: PoolOffset,
        actions: &mut Actions,
    ) -> Sectors {
        let set_id = self.ops[index].set;
        let pending = self.ops[index].pending;
        let set = self.sets.get(set_id);
        let one = match set.geometry() {
            Geometry::Passthrough(g) => Some(g.map(at)),
            Geometry::Linear(g) => Some(g.map(at)),
            Geometry::Striped(g) => Some(g.map(at)),
            Geometry::Mirror(_) => None,
            Geometry::Parity(_) => unreachable!("parity sets are written by rows"),
        };
        let len = if let Some(fragment) = one {
            let len = fragment.len.min(left);
            let range = MemberRange { slot: fragment.slot, lba: fragment.lba, len, at: payload };
            self.issue_write(index, range, actions);
            len
        } else {
            self.write_copies(index, at, left, payload, actions)
        };
        if self.ops[index].pending == pending {
            // No member accepted it.
            self.ops[index].fail(ReplyStatus::IoError);
        }
        len
    }

    fn write_copies(
        &mut self,
        index: u32,
        at: SetLba,
        left: Sectors,
        payload: PoolOffset,
        actions: &mut Actions,
    ) -> Sectors {
        let mut copy_number = 0;
        loop {
            let Geometry::Mirror(mirror) = self.sets.get(self.ops[index].set).geometry() else {
                unreachable!("asked for a mirror")
            };
            let count = usize::from(mirror.copy_count());
            let copy = mirror.copies(at).nth(copy_number).expect("below the number of copies");
            let len = copy.len.min(left);
            let range = MemberRange { slot: copy.slot, lba: copy.lba, len, at: payload };
            self.issue_write(index, range, actions);
            let set = self.ops[index].set;
            self.sets.get_mut(set).mirror_reads.moved(range.slot, (range.lba + len).get());
            copy_number += 1;
            if copy_number == count {
                return len;
            }
        }
    }

    // ---- discarding

    pub(crate) fn step_discard(&mut self, index: u32, actions: &mut Actions) {
        match self.ops[index].phase {
            Phase::Planning | Phase::Logging => {
                self.ops[index].phase = Phase::Logging;
                let set = self.ops[index].set;
                // The journal took over while it waited for its range: a replay would restore part of the discarded
                // data.
                if self.sets.get(set).journal.has_session() {
                    self.trace.note_op(
                        &mut self.sets,
                        &self.ops,
                        index,
                        Reason::DiscardProtected,
                        self.ops[index].place_number(),
                        0,
                    );
                    return self.finish_op(index, actions);
                }
                if !self.pass_write_gate(index, actions).is_open() {
                    return;
                }
                self.ops[index].phase = Phase::Writing;
                let op = self.ops[index];
                self.trace.note_op(&mut self.sets, &self.ops, index, Reason::DiscardDone, op.place_number(), 0);
                if op.is_by_rows() {
                    let (from, to) = op.member_rows(self.sets.get(op.set));
                    for slot in SlotSet::first_n(self.sets.get(op.set).slots()) {
                        self.discard_slot(index, slot, from, to - from, actions);
                    }
                } else {
                    self.discard_extent(index, actions);
                }
                if self.ops[index].pending == 0 {
                    self.finish_op(index, actions);
                }
            }
            _ => self.discarded(index, actions),
        }
    }

    fn discarded(&mut self, index: u32, actions: &mut Actions) {
        let op = &self.ops[index];
        let is_redundant = self.sets.get(op.set).is_redundant();
        if is_redundant
            && !op.has_failed()
            && !self.ops.pass_reply_gate(&mut self.sets, &mut self.trace, self.planted, index)
        {
            return;
        }
        if self.ops[index].is_by_rows() {
            self.sets.distrust_parity(&self.ops, &self.trace, self.now, index, actions);
        }
        self.finish_op(index, actions);
    }

    fn discard_extent(&mut self, index: u32, actions: &mut Actions) {
        let op = self.ops[index];
        let Extent { at: start, len: whole } = op.extent();
        let mut done = Sectors::ZERO;
        while done < whole && self.channels.may_issue() {
            let at = start + done;
            let set = self.sets.get(op.set);
            let (one, copies) = match set.geometry() {
                Geometry::Passthrough(g) => (g.map(at), 1),
                Geometry::Linear(g) => (g.map(at), 1),
                Geometry::Striped(g) => (g.map(at), 1),
                Geometry::Mirror(g) => (g.copies(at).next().expect("a copy"), usize::from(g.copy_count())),
                Geometry::Parity(_) => unreachable!("parity sets discard by rows"),
            };
            let len = one.len.min(whole - done);
            for number in 0..copies {
                let fragment = match self.sets.get(op.set).geometry() {
                    Geometry::Mirror(g) => g.copies(at).nth(number).expect("below the number of copies"),
                    _ => one,
                };
                self.discard_slot(index, fragment.slot, fragment.lba, len, actions);
            }
            done += len;
        }
    }

    fn discard_slot(&mut self, index: u32, slot: Slot, lba: MemberLba, len: Sectors, actions: &mut Actions) {
        let set = self.sets.get(self.ops[index].set);
        let place = set.place(slot);
        for member in place.each() {
            let takes = |m: &crate::array::set::Member| {
                m.is_active() && self.channels.get(m.drive()).is_some_and(|c| c.info().discard)
            };
            if takes(self.sets.get(self.ops[index].set).member(member)) {
                self.issue_plain(index, member, DriveOp::Discard, lba, len, actions);
            }
        }
    }
}
