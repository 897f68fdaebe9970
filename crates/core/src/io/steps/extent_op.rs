//! Extents: direct reads of sectors, and writes to sets without parity.

use openraid_units::{MemberLba, PoolOffset, Sectors, SetId, SetLba, Slot};

use crate::actions::{DriveOp, ReplyStatus};
use crate::array::set::Set;
use crate::geometry::shape::Side;
use crate::geometry::{Fragment, Geometry, Mirror};
use crate::io::state::ended::OpReport;
use crate::io::state::footprint::Extent;
use crate::io::state::op::{OpPayload, Phase};
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::{hold_for_commands, CacheStep};
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::slot_set::SlotSet;

/// The part of a mirror from `at` on, of which each copy can be read as a whole or not at all.
#[cold]
pub(super) fn copies_alike((set, side): (&Set, Side), mirror: &Mirror, at: SetLba, left: Sectors) -> Sectors {
    mirror.copies(at).fold(left, |len, copy| {
        let len = len.min(copy.len);
        set.member_of(copy.slot).map_or(len, |member| member.sectors_alike(side, copy.lba, len))
    })
}

/// The place of the first part of the data at `at`; `None` for a mirror, which has several.
#[inline(always)]
fn fragment_at(geometry: &Geometry, at: SetLba) -> Option<Fragment> {
    match geometry {
        Geometry::Passthrough(g) => Some(g.map(at)),
        Geometry::Linear(g) => Some(g.map(at)),
        Geometry::Striped(g) => Some(g.map(at)),
        Geometry::Mirror(_) => None,
        Geometry::Parity(parity) => {
            let (stripe, column, within) = parity.locate(at);
            let (slot, lba) = (parity.slot_of(stripe, column), parity.member_lba(stripe, within));
            Some(Fragment { slot, lba, len: parity.chunk() - within })
        }
    }
}

/// Does its member have its first `left` sectors?
fn is_readable(fragment: &Fragment, (set, side): (&Set, Side), left: Sectors) -> bool {
    set.readable(side, fragment.lba, fragment.lba + fragment.len.min(left)).contains(fragment.slot)
}

impl OpIo<'_> {
    // ---- reading

    pub(crate) fn step_read(&mut self, index: u32) {
        match self.ops[index].phase {
            Phase::Start => {
                if self.journal.replay().is_redoing() && self.hold_for_redo(index) {
                    return;
                }
                if !self.call.channels().may_issue() {
                    return hold_for_commands(self.ops, index);
                }
                self.issue_extent_reads(index);
            }
            Phase::ReadingOld => self.finish_op(index),
            phase => unreachable!("a read is never in {phase:?}"),
        }
    }

    #[inline(always)]
    fn issue_extent_reads(&mut self, index: u32) {
        let op = &mut self.ops[index];
        op.phase = Phase::ReadingOld;
        let OpPayload::Host(base) = op.payload else { unreachable!("reads have frames") };
        let (set, Extent { side, at: start, len: whole }) = (op.set, op.extent());
        let mut done = Sectors::ZERO;
        while done < whole {
            let at = start + done;
            let left = whole - done;
            let Some((fragment, reason)) = self.choose_fragment(index, (set, side), at, left) else {
                return self.nowhere_readable(index);
            };
            let len = fragment.len.min(left);
            if reason != Reason::ReadDirect {
                self.copy_chosen((set, side), at, &fragment, len, reason);
            }
            self.trace_op(index, || StepEvent::Reason { reason, figure: 0 });
            let range = MemberRange { slot: fragment.slot, lba: fragment.lba, len, at: base + done.bytes() };
            self.issue_read(index, range, SlotSet::EMPTY);
            done += len;
        }
    }

    /// No member has a part of an extent. The piece of a parity set that has become degraded is read again by rows, which
    /// can reconstruct.
    #[cold]
    fn nowhere_readable(&mut self, index: u32) {
        let op = &self.ops[index];
        if self.sets.get(op.set).shape().has_parity() {
            let piece = op.piece().expect("blocks of edges are read by rows");
            self.ended.report(OpReport::ReadAgain { piece, abandons_frames: false });
        } else if !op.piece().is_some_and(|piece| self.requests.piece(piece).is_read_again()) {
            self.ops[index].fail(ReplyStatus::IoError);
        }
        if self.ops[index].pending == 0 {
            self.finish_op(index);
        }
    }

    /// The place to read `at` from; `None` if no member has it. A place without a choice is counted.
    #[inline(always)]
    fn choose_fragment(
        &mut self,
        index: u32,
        (set_id, side): (SetId, Side),
        at: SetLba,
        left: Sectors,
    ) -> Option<(Fragment, Reason)> {
        let set = self.sets.get_mut(set_id);
        let Some(fragment) = fragment_at(set.shape().on(side), at) else {
            return self.choose_alike(index, at, left);
        };
        if !is_readable(&fragment, (set, side), left) {
            return None;
        }
        set.reasons.count(Reason::ReadDirect);
        Some((fragment, Reason::ReadDirect))
    }

    /// The copy of a mirror to read `at` from; `None` if no member has it.
    fn choose_alike(&self, index: u32, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
        let op = &self.ops[index];
        let mirror = op.mirror(self.sets.get(op.set));
        self.choose_copy(op, mirror, at, left).or_else(|| self.choose_for_part(index, at, left))
    }

    /// No copy can be read as far as asked: the copy of the part that each of them has as a whole or not at all.
    #[cold]
    fn choose_for_part(&self, index: u32, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
        let op = &self.ops[index];
        let set = self.sets.get(op.set);
        let part = copies_alike((set, op.side()), op.mirror(set), at, left);
        let (copy, reason) = if part < left { self.choose_alike(index, at, part)? } else { return None };
        Some((Fragment { len: copy.len.min(part), ..copy }, reason))
    }

    // ---- writing

    /// Advance a write of a host.
    pub(crate) fn step_write(&mut self, index: u32) {
        if self.step_extent(index) {
            self.finish_op(index);
        }
    }

    /// Advance the destage of a stretch to its next step that needs the cache, if it comes so far.
    pub(super) fn step_stretch_destage(&mut self, index: u32) -> Option<CacheStep> {
        match self.ops[index].phase {
            Phase::Planning => return Some(CacheStep::Choose),
            // The data is staged.
            Phase::Computing(_) => self.ops[index].enter(Phase::Logging),
            _ => {}
        }
        self.step_extent(index).then_some(CacheStep::Clean)
    }

    /// Advance the write of an extent, for a host or for destage. True if the members have it; an operation that fails
    /// is over.
    fn step_extent(&mut self, index: u32) -> bool {
        let op = &mut self.ops[index];
        match op.phase {
            Phase::Planning | Phase::Logging => {
                op.phase = Phase::Logging;
                if self.pass_write_gate(index).is_err() {
                    return false;
                }
                if self.issue_extent_writes(index) {
                    return false;
                }
            }
            Phase::Writing | Phase::Recording => {}
            Phase::Refitting(step) => {
                self.step_refit_copies(index, step);
                return false;
            }
            phase => unreachable!("a write is never in {phase:?}"),
        }
        if !self.ops[index].has_failed() && !self.pass_reply_gate(index) {
            return false;
        }
        let is_written = !self.ops[index].has_failed();
        if !is_written {
            self.end_failed_extent(index);
        }
        is_written
    }

    /// Write the extent; true if it has commands to wait for.
    #[inline(always)]
    fn issue_extent_writes(&mut self, index: u32) -> bool {
        let op = &mut self.ops[index];
        op.phase = Phase::Writing;
        let base = match op.payload {
            OpPayload::Host(base) => Some(base),
            OpPayload::Zero { .. } => None,
            OpPayload::None => unreachable!("writes have payload"),
        };
        let (set_id, Extent { side, at, len: whole }) = (op.set, op.extent());
        let set = self.sets.get_mut(set_id);
        let reason = if set.shape().is_mirror() { Reason::Mirrored } else { Reason::Direct };
        set.reasons.count(reason);
        self.trace_op(index, || StepEvent::Reason { reason, figure: 0 });
        let (mut done, mut is_issued) = (Sectors::ZERO, false);
        while done < whole {
            let payload = base.map_or(PoolOffset::ZERO, |base| base + done.bytes());
            let (len, commands) = self.write_fragment(index, (set_id, side), (at + done, whole - done), payload);
            if commands == 0 {
                // No member accepted it.
                self.ops[index].fail(ReplyStatus::IoError);
            }
            is_issued |= commands > 0;
            done += len;
        }
        is_issued
    }

    /// Write the fragment at `at`, every copy of it; returns its length and the number of commands.
    #[inline(always)]
    fn write_fragment(
        &mut self,
        index: u32,
        (set_id, side): (SetId, Side),
        (at, left): (SetLba, Sectors),
        payload: PoolOffset,
    ) -> (Sectors, u32) {
        let geometry = self.sets.get(set_id).shape().on(side);
        debug_assert!(!matches!(geometry, Geometry::Parity(_)), "parity sets are written by rows");
        let Some(Fragment { slot, lba, len }) = fragment_at(geometry, at) else {
            return self.write_copies(index, (set_id, side), (at, left), payload);
        };
        let len = len.min(left);
        (len, self.issue_write(index, MemberRange { slot, lba, len, at: payload }))
    }

    fn write_copies(
        &mut self,
        index: u32,
        (set_id, side): (SetId, Side),
        (at, left): (SetLba, Sectors),
        payload: PoolOffset,
    ) -> (Sectors, u32) {
        let mirror = self.sets.get(set_id).shape().mirror(side);
        let (heads, len) = (self.ops.heads_mut(set_id), mirror.copy_len(at).min(left));
        mirror.copies(at).for_each(|copy| heads.moved(copy.slot, (copy.lba + len).get()));
        let range_of = |geometry: &Geometry, number: u16| {
            let Geometry::Mirror(mirror) = geometry else { unreachable!("copies are of mirrored sets") };
            let copy = mirror.copies(at).nth(number.into()).expect("below the number of copies");
            MemberRange { slot: copy.slot, lba: copy.lba, len, at: payload }
        };
        let numbers = 0..mirror.copy_count();
        (len, self.issue_writes(index, numbers, range_of))
    }

    // ---- discarding

    pub(crate) fn step_discard(&mut self, index: u32) {
        match self.ops[index].phase {
            Phase::Planning | Phase::Logging => {
                self.ops[index].phase = Phase::Logging;
                let set = self.ops[index].set;
                // The journal took over while it waited for its range: a replay would restore part of the discarded
                // data.
                if self.sets.get(set).journal.has_session() {
                    self.note(index, Reason::DiscardProtected, self.ops[index].place_number(), 0);
                    return self.finish_op(index);
                }
                if self.pass_write_gate(index).is_err() {
                    return;
                }
                self.ops[index].phase = Phase::Writing;
                let op = self.ops[index];
                self.note(index, Reason::DiscardDone, op.place_number(), 0);
                if op.is_by_rows() {
                    let (from, to) = op.member_rows(self.sets.get(op.set));
                    for slot in SlotSet::first_n(self.sets.get(op.set).slots()) {
                        self.discard_slot(index, slot, from, to - from);
                    }
                } else {
                    self.discard_extent(index);
                }
                if self.ops[index].pending == 0 {
                    self.finish_op(index);
                }
            }
            _ => self.discarded(index),
        }
    }

    fn discarded(&mut self, index: u32) {
        let op = &self.ops[index];
        let is_redundant = self.sets.get(op.set).is_redundant();
        if is_redundant && !op.has_failed() && !self.pass_reply_gate(index) {
            return;
        }
        if self.ops[index].is_by_rows() {
            self.distrust_parity(index);
        }
        self.finish_op(index);
    }

    fn discard_extent(&mut self, index: u32) {
        let op = self.ops[index];
        let Extent { at: start, len: whole, .. } = op.extent();
        let mut done = Sectors::ZERO;
        while done < whole && self.call.channels().may_issue() {
            let at = start + done;
            let geometry = op.geometry(self.sets.get(op.set));
            let (one, copies) = match geometry {
                Geometry::Mirror(g) => (g.copies(at).next().expect("a copy"), usize::from(g.copy_count())),
                Geometry::Parity(_) => unreachable!("parity sets discard by rows"),
                _ => (fragment_at(geometry, at).expect("it is no mirror"), 1),
            };
            let len = one.len.min(whole - done);
            for number in 0..copies {
                let fragment = match op.geometry(self.sets.get(op.set)) {
                    Geometry::Mirror(g) => g.copies(at).nth(number).expect("below the number of copies"),
                    _ => one,
                };
                self.discard_slot(index, fragment.slot, fragment.lba, len);
            }
            done += len;
        }
    }

    fn discard_slot(&mut self, index: u32, slot: Slot, lba: MemberLba, len: Sectors) {
        let set = self.sets.get(self.ops[index].set);
        let place = set.place(slot);
        for member in place.each() {
            let takes = |m: &crate::array::member::Member| {
                m.is_active() && self.call.channels().get(m.drive()).is_some_and(|c| c.info().discard)
            };
            if takes(self.sets.get(self.ops[index].set).member(member)) {
                self.issue_plain(index, member, DriveOp::Discard, lba, len);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::sets::Sets;
    use crate::geometry::{Level, SetSpec};
    use crate::io::state::drive_queues::Channels;
    use crate::io::steps::gate::tests::drive_of;
    use crate::limits::Limits;
    use crate::reason::FailReason;
    use openraid_units::{DriveId, SetId};

    const CHUNK: u64 = 16;
    const SIZE: Sectors = Sectors(4 * CHUNK);

    fn set(level: Level, members: u16, layout: u32) -> Set {
        let sizes = [SIZE; 5];
        let (chunk, member_sizes) = (Sectors(CHUNK), &sizes[..usize::from(members)]);
        Set::with_members(&SetSpec { level, members, chunk, layout, member_size: SIZE, member_sizes })
    }

    fn fragment_of(set: &Set, at: u64) -> Option<Fragment> {
        fragment_at(set.shape().at(SetLba(at)).geometry(), SetLba(at))
    }

    /// The slot and the sector of a member that have each sector of a set, one sector at a time.
    fn check(set: &Set, place: impl Fn(u64) -> (u64, u64)) {
        for at in 0..set.shape().capacity().get() {
            let one = fragment_of(set, at).unwrap();
            assert_eq!((u64::from(one.slot.0), one.lba.get()), place(at), "sector {at}");
            // A part goes to the end of its chunk, and not beyond.
            assert_eq!(one.len, Sectors(CHUNK - at % CHUNK), "sector {at}");
        }
    }

    #[test]
    fn each_sector_of_a_striped_and_of_a_parity_set_is_where_the_layout_says() {
        check(&set(Level::Raid0, 3, 2), |at| {
            let chunk = at / CHUNK;
            (chunk % 3, chunk / 3 * CHUNK + at % CHUNK)
        });
        // Left-symmetric: parity moves to the left by one slot for each stripe, and data begins after it.
        check(&set(Level::Raid5, 4, 2), |at| {
            let (stripe, column) = (at / CHUNK / 3, at / CHUNK % 3);
            let parity = 3 - stripe % 4;
            ((parity + 1 + column) % 4, stripe * CHUNK + at % CHUNK)
        });
        assert!(fragment_of(&set(Level::Raid1, 2, 0), 0).is_none(), "several members have it");
    }

    #[test]
    fn a_part_is_readable_while_its_member_is_in_sync_and_has_no_bad_block_there() {
        let mut sets = Sets::new();
        sets.put(SetId(0), set(Level::Raid5, 4, 2));
        let one = fragment_of(sets.get(SetId(0)), 3).unwrap();
        assert!(is_readable(&one, (sets.get(SetId(0)), Side::Old), Sectors(8)));
        let other = fragment_of(sets.get(SetId(0)), CHUNK).unwrap();
        assert_ne!(one.slot, other.slot);
        sets.get_mut(SetId(0)).fail_slot(one.slot, FailReason::Gone);
        let readable = |one: &Fragment| is_readable(one, (sets.get(SetId(0)), Side::Old), Sectors(8));
        assert_eq!([readable(&one), readable(&other)], [false, true]);
    }

    #[test]
    fn a_discard_keeps_redundancy_only_if_every_active_member_reads_zeroes_after_it() {
        let mut sets = Sets::new();
        sets.put(SetId(0), set(Level::Raid5, 4, 2));
        let zeroes = |odd: Option<(u16, bool, bool)>, sets: &Sets| {
            let mut channels = Channels::new(&Limits::small());
            for number in 0..4 {
                let mut info = drive_of(SIZE);
                if let Some((_, discard, discard_zeroes)) = odd.filter(|(drive, ..)| *drive == number) {
                    (info.discard, info.discard_zeroes) = (discard, discard_zeroes);
                }
                assert!(channels.attach(DriveId(number), info));
            }
            channels.discards_to_zeroes(sets.get(SetId(0)))
        };
        assert!(zeroes(None, &sets));
        assert!(!zeroes(Some((2, true, false)), &sets), "its content is not certain");
        assert!(!zeroes(Some((2, false, true)), &sets), "it has no discard");
        sets.get_mut(SetId(0)).fail_slot(Slot(2), FailReason::Gone);
        assert!(zeroes(Some((2, false, false)), &sets), "it does not count any more");
    }
}
