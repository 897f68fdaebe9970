//! Writing the logs: records collect while the previous write is under way; then they are written together.

use openraid_format::{PplEntry, PplHeader, PPL_HEADER_BYTES, PPL_HEADER_SECTORS};
use openraid_units::{Sectors, SetId, Slot};

use super::slot_log::{LogState, SlotLog};
use crate::actions::{JobColumn, JobKind};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::call::Call;
use crate::geometry::StripeRole;
use crate::io::state::command::{Hold, Owner};
use crate::io::state::job::Job;
use crate::io::state::op::Partial;
use crate::io::state::op::{Computation, Op, OpKind, PartialParity, Phase};
use crate::io::state::ops::Ops;
use crate::io::state::row_frames::RowFrames;
use crate::io::state::wait::Wait;
use crate::io::state::wait::{Gate, Held};
use crate::planted::{Flaw, Planted};
use crate::reason::Reason;
use crate::slots::SlotSet;
use crate::steps::What;
use crate::trace::Trace;

impl Sets {
    /// The rows of an operation's record are on the members.
    pub(crate) fn end_record(&mut self, op: &mut Op, planted: Planted) {
        let before = op.set_record(Partial::No);
        if before != Partial::Logged {
            return;
        }
        let (set, slot) = (op.set(), self.get(op.set()).parity().p_slot(op.rows_of().stripe));
        let reused = planted.has(Flaw::LogReusedUnflushed);
        if self.log_mut(set, slot).end_op(reused) {
            self.logs_are_due();
        }
    }

    /// The log of a slot.
    fn log_mut(&mut self, id: SetId, slot: Slot) -> &mut SlotLog {
        &mut self.get_mut(id).ppl.as_mut().expect("asked for a set with logs").logs[slot.index()]
    }

    /// A command of a log ended.
    pub(crate) fn on_log_written(&mut self, id: SetId, slot: Slot) {
        self.log_mut(id, slot).command_ended();
        self.logs_are_due();
    }

    /// A flush before logs are overwritten ended.
    pub(crate) fn on_ppl_flushed(&mut self, id: SetId) {
        let ppl = self.get_mut(id).ppl.as_mut().expect("it was flushed for its logs");
        ppl.flushes -= 1;
        self.logs_are_due();
    }

    /// No member keeps a log in this slot, or the array has failed: the waiting operations continue without one. True if
    /// one did.
    fn release_waiting(&mut self, id: SetId, slot: Slot, ops: &mut Ops) -> bool {
        let log = self.log_mut(id, slot);
        log.disarm();
        let mut moved = false;
        while let Some(index) = log.next_waiting() {
            ops[index].set_record(Partial::No);
            ops.wake(index);
            moved = true;
        }
        moved
    }
}

impl Ops {
    /// The new parity is computed: compute the parity of the columns that are not written, from the smaller number of
    /// columns.
    pub(crate) fn push_partial(&mut self, set: &Set, index: u32, call: &mut Call) {
        self[index].enter(Phase::Computing(Computation::Partial));
        let op = self[index];
        let view = op.stripe_view(set);
        let named = op.named_slots(set);
        let others = view.data.minus(named);
        let columns = call.actions().columns.len();
        let mut push = |at| call.actions().columns.push(JobColumn { index: 0, at, old: at });
        // The columns that are not written; or the new parity without the written columns.
        if !op.is_read_modify_write() && others.len() <= named.len() + 1 {
            others.iter().for_each(|slot| push(op.buffer(slot)));
        } else {
            named.iter().for_each(|slot| push(RowFrames::of(&op).named(set.geometry(), slot)));
            push(op.buffer(view.p));
        }
        let to = op.partial_buffer();
        let job = Job::new(JobKind::Generate, op.row_bytes(), columns).with_parity(Some(to), None);
        self.push_job(index, job, call);
    }

    /// The partial parity is computed: compute its checksum.
    pub(crate) fn push_partial_sum(&mut self, index: u32, call: &mut Call) {
        self[index].enter(Phase::Computing(Computation::PartialSum));
        let op = self[index];
        let at = op.partial_buffer();
        let columns = call.actions().columns.len();
        call.actions().columns.push(JobColumn { index: 0, at, old: at });
        self.push_job(index, Job::new(JobKind::Checksum, op.row_bytes(), columns), call);
    }
}

impl Sets {
    /// Rule 6 of the write gate: put the record of an operation into the partial parity log of its stripe, and hold the
    /// operation until the record is durable. A discard of whole rows has a record, too: a crash may leave some members
    /// zeroed.
    pub(crate) fn record_write(&mut self, index: u32, ops: &mut Ops, trace: &mut Trace) -> Gate {
        let op = &mut ops[index];
        let (id, is_discard) = (op.set(), op.kind() == OpKind::Discard);
        if is_discard {
            self.get(id).plan_discard_record(op);
        }
        match op.record() {
            Partial::No | Partial::Logged => return Ok(()),
            Partial::Waiting => return Err(Held::Waits(Wait::Record)),
            Partial::Due => {}
        }
        op.set_record(Partial::Waiting);
        let stripe = op.rows_of().stripe;
        let slot = self.get(id).parity().p_slot(stripe);
        let waits = self.log_mut(id, slot).wait(index);
        self.logs_are_due();
        if waits {
            trace.note_op(self, ops, index, Reason::WaitedForPartialParityLog, stripe.0, 0);
        }
        Err(Held::Waits(Wait::Record))
    }

    /// Advance the logs of all sets. Returns whether one changed, and whether there was no room for all actions.
    pub(crate) fn pump_logs(&mut self, ops: &mut Ops, call: &mut Call) -> bool {
        let mut has_moved = false;
        if !self.take_logs_due() {
            return false;
        }
        for id in self.numbers() {
            let Some(slots) = self.find(id).and_then(|set| Some(set.ppl.as_ref()?.logs.len())) else {
                continue;
            };
            has_moved |= self.pump_ppl_flush(id, call);
            for slot in 0..slots {
                let log = (id, Slot(u16::try_from(slot).expect("few slots")));
                has_moved |= match self.advance_log(log, ops, call.trace()) {
                    LogStep::Waits => false,
                    LogStep::Moved => true,
                    LogStep::Writes if self.get(id).log_keepers(log.1) == [None; 2] => {
                        self.release_waiting(id, log.1, ops)
                    }
                    LogStep::Writes if call.channels().may_issue() && call.actions().has_room() => {
                        self.write_log(log, ops, call);
                        true
                    }
                    LogStep::Writes => {
                        self.logs_are_due();
                        call.check_room();
                        false
                    }
                };
            }
        }
        has_moved
    }

    /// Do for a log what needs no command.
    fn advance_log(&mut self, (id, slot): (SetId, Slot), ops: &mut Ops, trace: &mut Trace) -> LogStep {
        let set = self.get(id);
        let ppl = set.ppl.as_ref().expect("asked for a set with logs");
        let log = &ppl.logs[slot.index()];
        let moved = if set.has_failed() && !log.is_writing() {
            self.release_waiting(id, slot, ops)
        } else {
            match log.state() {
                LogState::Free if log.is_wanted() && ppl.is_ready() => return LogStep::Writes,
                LogState::Writing { pending: 0 } if set.is_failure_durable() => {
                    self.log_is_durable(id, slot, ops, trace);
                    true
                }
                LogState::Stale if set.has_failed_flush() => self.refuse_waiting(id, slot, ops, trace),
                _ => false,
            }
        };
        if moved {
            LogStep::Moved
        } else {
            LogStep::Waits
        }
    }

    /// A flush failed on a member that the array needs. The writes that the log covers may be lost, so the log must
    /// stay as it is, and operations that need a record are refused.
    fn refuse_waiting(&mut self, id: SetId, slot: Slot, ops: &mut Ops, trace: &mut Trace) -> bool {
        let mut moved = false;
        while let Some(index) = self.log_mut(id, slot).next_waiting() {
            ops[index].set_record(Partial::No);
            trace.note(self, id, Reason::FlushFailed, 0, 0);
            ops.refuse(index);
            moved = true;
        }
        moved
    }

    /// Write the log of a slot, with as many records as it takes.
    fn write_log(&mut self, (id, slot): (SetId, Slot), ops: &Ops, call: &mut Call) {
        let set = self.get_mut(id);
        let keepers = set.log_keepers(slot);
        let uuid = set.metadata.as_ref().expect("sets with logs have metadata").common().set_uuid;
        let mut header = PplHeader::new(uuid, set.next_log_generation());
        let room = set.ppl.as_ref().expect("it has logs").room;
        let mut payload = Sectors::ZERO;
        self.log_mut(id, slot).begin_write();
        while let Some(index) = self.log_mut(id, slot).next_record() {
            let op = &ops[index];
            let has_parity = op.partial_parity().is_there();
            let rows = if has_parity { Sectors(u64::from(op.rows())) } else { Sectors::ZERO };
            if payload + rows > room {
                break;
            }
            self.log_mut(id, slot).take_record();
            let stripe = op.rows_of().stripe.0;
            call.trace().note_op(self, ops, index, Reason::PartialParityLogged, stripe, u32::from(has_parity));
            header.push(self.get(id).entry_of(op)).expect("fewer than fit");
            for keeper in keepers.into_iter().flatten().filter(|_| has_parity) {
                let (frames, hold) = (op.partial_buffer(), op.work().map(Hold::Work));
                self.log_mut(id, slot).command_issued();
                let place = (PPL_HEADER_SECTORS + payload, rows);
                self.write_area((id, keeper), Owner::PplLog, place, frames, hold, call);
            }
            payload += rows;
        }
        let mut bytes = [0; PPL_HEADER_BYTES];
        header.encode(&mut bytes);
        for keeper in keepers.into_iter().flatten() {
            self.log_mut(id, slot).command_issued();
            self.write_log_header((id, keeper), Owner::PplLog, &bytes, call);
        }
    }

    /// The log being written is on the members that work: the operations that wait for it write now.
    fn log_is_durable(&mut self, id: SetId, slot: Slot, ops: &mut Ops, trace: &mut Trace) {
        let is_due = self.log_mut(id, slot).land(|index| {
            ops[index].set_record(Partial::Logged);
            trace.op(ops, index, || What::Durable);
            ops.wake(index);
        });
        if is_due {
            self.logs_are_due();
        }
    }

    /// Flush the members so that logs can be overwritten. One flush serves all logs whose writes have completed.
    fn pump_ppl_flush(&mut self, id: SetId, call: &mut Call) -> bool {
        let set = self.get_mut(id);
        let (durable, doubt) = (set.is_failure_durable(), set.has_failed_flush());
        let ppl = set.ppl.as_mut().expect("asked for a set with logs");
        if ppl.flushes > 0 {
            return false;
        }
        let moved = durable && ppl.end_flush(doubt);
        if doubt || !ppl.is_flush_due() {
            return moved;
        }
        if !call.channels().may_issue() {
            self.logs_are_due();
            return moved;
        }
        ppl.begin_flush();
        let issued = self.flush_members(id, Owner::PplFlush, call);
        self.get_mut(id).ppl.as_mut().expect("just seen").flushes += issued;
        // No flush is needed if a later one has covered the writes.
        if issued == 0 {
            self.logs_are_due();
        }
        true
    }
}

/// What a log does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogStep {
    /// It waits.
    Waits,
    /// It has changed.
    Moved,
    /// It is to be written.
    Writes,
}

impl Set {
    /// The generation of the next header: 0 while parity is not consistent everywhere.
    pub(super) fn next_log_generation(&mut self) -> u64 {
        let consistent = self.is_consistent_everywhere();
        self.ppl.as_mut().expect("asked for a set with logs").next_generation(consistent)
    }

    /// A discard that has no record yet needs one, if the set has logs.
    fn plan_discard_record(&self, op: &mut Op) {
        if op.record() == Partial::No && self.ppl.is_some() {
            let (record, _) = op.record_for(self, op.named_slots(self), SlotSet::first_n(self.slots()));
            op.set_record(record);
        }
    }

    /// The record of an operation.
    fn entry_of(&self, op: &Op) -> PplEntry {
        let parity = self.parity();
        let (named, rows) = (op.named_slots(self), op.rows_of());
        let columns = named.iter().filter_map(|slot| match parity.role_of(rows.stripe, slot) {
            StripeRole::Data(column) => Some(column),
            StripeRole::P | StripeRole::Q => None,
        });
        let first = columns.min().expect("something is written");
        let bytes = op.row_bytes();
        PplEntry {
            data_sector: parity.set_lba(rows.stripe, first, Sectors(u64::from(rows.part.from()))),
            pp_size: if op.partial_parity().is_there() { bytes } else { 0 },
            data_size: bytes * named.len(),
            parity_disk: u32::from(parity.p_slot(rows.stripe).0),
            checksum: if let PartialParity::Summed(crc) = op.partial_parity() { crc } else { 0 },
        }
    }

    /// Parity is consistent from now on: logs without records are rewritten.
    pub(crate) fn arm_logs(&mut self) {
        if let Some(ppl) = &mut self.ppl {
            ppl.logs.iter_mut().for_each(SlotLog::arm);
        }
    }

    /// The rebuild of this slot begins. The header of this member's log may be older than the consistent parity. After
    /// the rebuild it may be the only log that is left.
    pub(crate) fn arm_log(&mut self, slot: Slot) {
        if self.is_consistent_everywhere() {
            if let Some(ppl) = &mut self.ppl {
                ppl.logs[slot.index()].arm();
            }
        }
    }

    /// Is some work of the logs under way that no operation waits for?
    pub(crate) fn is_ppl_busy(&self) -> bool {
        self.ppl.as_ref().is_some_and(|ppl| ppl.is_busy())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::PlannedPpl;
    use super::super::{SetPpl, StartStage};
    use super::*;
    use crate::array::consistency::Consistency;
    use crate::controller::Controller;
    use crate::geometry::{Geometry, Level, SetSpec};
    use crate::io::state::footprint::{Columns, Footprint, StripeRows};
    use crate::io::state::search::Part;
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, StripeIndex};

    const SET: SetId = SetId(0);

    /// The set of a RAID 5 with logs, and no drives.
    fn controller() -> Controller {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
        let mut controller = Controller::new(Limits::small()).unwrap();
        let mut set = Set::new(ArrayId(0), Geometry::new(&spec).unwrap(), (BlockSize::B512, 8), &Limits::small());
        let mut ppl = SetPpl::new(&PlannedPpl { generation: 6, ..PlannedPpl::default() }, 4, Sectors(128), 8);
        ppl.stage = StartStage::Ready;
        set.ppl = Some(alloc::boxed::Box::new(ppl));
        controller.sets.put(SET, set);
        controller
    }

    fn logged() -> Op {
        with_record(Partial::Logged)
    }

    fn with_record(record: Partial) -> Op {
        let mut op = row_write();
        assert_eq!(op.set_record(record), Partial::No);
        op
    }

    /// A write of the first column of stripe 0.
    fn row_write() -> Op {
        let columns = Columns::Named { first: 0, count: 1 };
        let rows = StripeRows { stripe: StripeIndex(0), part: Part::whole(0, 8), columns };
        Op::new(OpKind::RowWrite, SET, Footprint::Rows(rows))
    }

    #[test]
    fn a_log_is_stale_when_all_that_it_covers_is_written() {
        let mut controller = controller();
        let slot = controller.sets.get(SET).parity().p_slot(StripeIndex(0));
        cover(controller.sets.log_mut(SET, slot), 2);
        controller.sets.end_record(&mut row_write(), Planted::default());
        let state = |controller: &mut Controller| controller.sets.log_mut(SET, slot).state();
        assert_eq!(state(&mut controller), LogState::Covering { ops: 2 }, "it has no record and covers nothing");
        controller.sets.end_record(&mut logged(), Planted::default());
        assert_eq!(state(&mut controller), LogState::Covering { ops: 1 });
        // Another operation waits, so the log must be advanced at once.
        controller.sets.log_mut(SET, slot).wait(5);
        assert!(!controller.sets.are_logs_due());
        let mut last = logged();
        controller.sets.end_record(&mut last, Planted::default());
        assert_eq!((last.record(), state(&mut controller)), (Partial::No, LogState::Stale));
        assert!(controller.sets.are_logs_due());
    }

    /// A write of this number of records is durable.
    fn cover(log: &mut SlotLog, records: u32) {
        (0..records).for_each(|op| _ = log.wait(op));
        log.begin_write();
        (0..records).for_each(|_| log.take_record());
        log.land(|_| {});
    }

    #[test]
    fn an_operation_that_waits_for_its_record_writes_when_the_log_is_durable() {
        let mut controller = controller();
        let op = controller.ops.put(with_record(Partial::Waiting)).index;
        controller.ops.hold_op(op, Wait::Record);
        let log = controller.sets.log_mut(SET, Slot(1));
        log.wait(op);
        log.begin_write();
        log.take_record();
        // Another one came while the log was being written: it needs the next write.
        log.wait(op + 1);
        let Controller { sets, ops, base, .. } = &mut controller;
        sets.log_is_durable(SET, Slot(1), ops, &mut base.trace);
        assert_eq!((controller.ops[op].record(), controller.ops.next_ready()), (Partial::Logged, Some(op)));
        assert!(!controller.ops.has_ready(), "the other one still waits");
        let log = controller.sets.log_mut(SET, Slot(1));
        assert_eq!((log.state(), log.next_record()), (LogState::Covering { ops: 1 }, Some(op + 1)));
    }

    #[test]
    fn an_operation_that_waits_for_a_log_whose_member_is_gone_continues_without_a_record() {
        let mut controller = controller();
        let op = controller.ops.put(with_record(Partial::Waiting)).index;
        controller.sets.log_mut(SET, Slot(1)).wait(op);
        assert!(controller.sets.release_waiting(SET, Slot(1), &mut controller.ops));
        assert_eq!((controller.ops[op].record(), controller.ops.next_ready()), (Partial::No, Some(op)));
        assert!(!controller.sets.release_waiting(SET, Slot(1), &mut controller.ops), "nothing waits any more");
    }

    #[test]
    fn an_operation_asks_for_its_record_once_and_waits_until_the_record_is_durable() {
        let mut controller = controller();
        let Controller { sets, ops, base, .. } = &mut controller;
        let op = ops.put(with_record(Partial::Due)).index;
        let slot = sets.get(SET).parity().p_slot(StripeIndex(0));
        for _ in 0..2 {
            assert_eq!(sets.record_write(op, ops, &mut base.trace), Err(Held::Waits(Wait::Record)));
            assert_eq!(ops[op].record(), Partial::Waiting);
        }
        let log = sets.log_mut(SET, slot);
        assert_eq!((log.next_waiting(), log.next_waiting()), (Some(op), None));
        for record in [Partial::No, Partial::Logged] {
            ops[op].set_record(record);
            assert_eq!(sets.record_write(op, ops, &mut base.trace), Ok(()));
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_over_refuses_its_operations_and_a_failed_array_lets_them_go_on() {
        for has_failed in [false, true] {
            let mut controller = controller();
            let Controller { sets, ops, base, .. } = &mut controller;
            let op = ops.put(with_record(Partial::Waiting)).index;
            let log = (SET, Slot(1));
            sets.log_mut(SET, Slot(1)).wait(op);
            assert_eq!(sets.advance_log(log, ops, &mut base.trace), LogStep::Writes);
            if has_failed {
                sets.get_mut(SET).fail();
                assert_eq!(sets.advance_log(log, ops, &mut base.trace), LogStep::Moved);
            } else {
                assert!(sets.refuse_waiting(SET, Slot(1), ops, &mut base.trace));
            }
            let called = (ops.next_refused(), ops.next_ready());
            assert_eq!(called, if has_failed { (None, Some(op)) } else { (Some(op), None) });
            assert_eq!(ops[op].record(), Partial::No);
            assert_eq!(sets.advance_log(log, ops, &mut base.trace), LogStep::Waits, "nothing waits for it any more");
        }
    }

    #[test]
    fn headers_have_a_generation_only_while_parity_is_consistent() {
        let mut controller = controller();
        let set = controller.sets.get_mut(SET);
        set.set_consistency(Consistency::from(Some(Sectors(8)), false));
        assert_eq!(set.next_log_generation(), 0);
        set.set_consistency(Consistency::Everywhere);
        assert_eq!((set.next_log_generation(), set.next_log_generation()), (7, 8));
    }
}
