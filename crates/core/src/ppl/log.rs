//! Writing the logs: records collect while the previous write is under way; then they are written together.

use openraid_format::{PplEntry, PplHeader, PPL_HEADER_BYTES, PPL_HEADER_SECTORS};
use openraid_units::{Sectors, SetId, Slot};

use super::{LogState, Partial, SetPpl, LOG_OPS_MAX};
use crate::actions::{Actions, JobColumn, JobKind};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::controller::Controller;
use crate::geometry::StripeRole;
use crate::io::command::{Hold, Owner};
use crate::io::gate::Gate;
use crate::io::op::{Computation, Op, OpKind, PartialParity, Phase};
use crate::io::row::RowFrames;
use crate::io::wait::Wait;
use crate::planted::Flaw;
use crate::planted::Planted;
use crate::reason::Reason;
use crate::slots::SlotSet;
use crate::steps::What;

impl Sets {
    /// The rows of an operation's record are on the members.
    pub(crate) fn end_record(&mut self, op: &mut Op, planted: Planted) {
        let before = op.set_record(Partial::No);
        if before != Partial::Logged {
            return;
        }
        let (set, slot) = (op.set(), self.get(op.set()).parity().p_slot(op.rows_of().stripe));
        let reused = planted.has(Flaw::LogReusedUnflushed);
        let log = &mut self.get_mut(set).ppl.as_mut().expect("it was logged").logs[slot.index()];
        log.covered -= 1;
        if log.covered == 0 {
            log.state = if reused { LogState::Free } else { LogState::Stale };
            let is_due = log.is_wanted();
            if is_due {
                self.logs_are_due();
            }
        }
    }
}

impl Controller {
    // ---- the record of an operation

    /// The new parity is computed: compute the parity of the columns that are not written, from the smaller number of
    /// columns.
    pub(crate) fn push_partial(&mut self, index: u32, actions: &mut Actions) {
        self.ops[index].enter(Phase::Computing(Computation::Partial));
        let op = self.ops[index];
        let view = op.stripe_view(self.sets.get(op.set()));
        let named = op.named_slots(self.sets.get(op.set()));
        let others = view.data.minus(named);
        let columns = actions.columns.len();
        // The columns that are not written; or the new parity without the written columns.
        if !op.is_read_modify_write() && others.len() <= named.len() + 1 {
            for slot in others {
                let at = op.buffer(slot);
                actions.columns.push(JobColumn { index: 0, at, old: at });
            }
        } else {
            for slot in named {
                let at = RowFrames::of(&op).named(self.sets.get(op.set()).geometry(), slot);
                actions.columns.push(JobColumn { index: 0, at, old: at });
            }
            let at = op.buffer(view.p);
            actions.columns.push(JobColumn { index: 0, at, old: at });
        }
        let to = op.partial_buffer();
        self.ops.push_job(&mut self.trace, index, JobKind::Generate, op.row_bytes(), columns, Some(to), None, actions);
    }

    pub(crate) fn push_partial_sum(&mut self, index: u32, actions: &mut Actions) {
        self.ops[index].enter(Phase::Computing(Computation::PartialSum));
        let op = self.ops[index];
        let at = op.partial_buffer();
        let columns = actions.columns.len();
        actions.columns.push(JobColumn { index: 0, at, old: at });
        self.ops.push_job(&mut self.trace, index, JobKind::Checksum, op.row_bytes(), columns, None, None, actions);
    }

    /// Rule 6 of the write gate: put the record of an operation into the partial parity log of its stripe, and hold the
    /// operation until the record is durable. A discard of whole rows has a record, too: a crash may leave some members
    /// zeroed.
    pub(crate) fn record_write(&mut self, index: u32) -> Gate {
        if self.ops[index].kind() == OpKind::Discard {
            self.plan_discard_record(index);
        }
        let op = &self.ops[index];
        match op.record() {
            Partial::No | Partial::Logged => Gate::Open,
            Partial::Waiting => Gate::Waits(Wait::Record),
            Partial::Due => {
                let (set, stripe) = (op.set(), op.rows_of().stripe);
                let slot = self.sets.get(set).parity().p_slot(stripe);
                self.ops[index].set_record(Partial::Waiting);
                let ppl = self.sets.get_mut(set).ppl.as_mut().expect("a set with records has logs");
                let log = &mut ppl.logs[slot.index()];
                log.waiting.push(index);
                let waits = log.state != LogState::Free;
                self.sets.logs_are_due();
                if waits {
                    self.trace.note_op(
                        &mut self.sets,
                        &self.ops,
                        index,
                        Reason::WaitedForPartialParityLog,
                        stripe.0,
                        0,
                    );
                }
                Gate::Waits(Wait::Record)
            }
        }
    }

    fn plan_discard_record(&mut self, index: u32) {
        let op = self.ops[index];
        if op.record() == Partial::No && self.sets.get(op.set()).ppl.is_some() {
            let all = SlotSet::first_n(self.sets.get(op.set()).slots());
            let named = op.named_slots(self.sets.get(op.set()));
            self.ops[index].set_record(op.record_for(self.sets.get(op.set()), named, all).0);
        }
    }

    fn entry_of(&self, op: &Op) -> PplEntry {
        let parity = self.sets.get(op.set()).parity();
        let (named, rows) = (op.named_slots(self.sets.get(op.set())), op.rows_of());
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

    // ---- the logs of a set

    /// Advance the logs of all sets; true if one changed.
    pub(crate) fn pump_ppl(&mut self, actions: &mut Actions) -> bool {
        if !self.sets.take_logs_due() {
            return false;
        }
        let mut moved = false;
        for id in self.sets.numbers() {
            let Some(slots) = self.sets.find(id).and_then(|set| Some(set.ppl.as_ref()?.logs.len())) else {
                continue;
            };
            moved |= self.pump_ppl_flush(id, actions);
            for slot in 0..slots {
                moved |= self.pump_log(id, Slot(u16::try_from(slot).expect("few slots")), actions);
            }
        }
        moved
    }

    fn log_mut(&mut self, id: SetId, slot: Slot) -> &mut super::Log {
        &mut self.sets.get_mut(id).ppl.as_mut().expect("asked for a set with logs").logs[slot.index()]
    }

    fn pump_log(&mut self, id: SetId, slot: Slot, actions: &mut Actions) -> bool {
        let set = self.sets.get(id);
        let ppl = set.ppl.as_ref().expect("asked for a set with logs");
        let log = &ppl.logs[slot.index()];
        if set.has_failed() && log.state != LogState::Writing {
            return self.release_waiting(id, slot);
        }
        match log.state {
            LogState::Free if log.is_wanted() && ppl.is_ready() => self.write_log(id, slot, actions),
            LogState::Writing if log.pending == 0 && set.is_failure_durable() => {
                self.log_is_durable(id, slot);
                true
            }
            LogState::Stale if set.has_failed_flush() => self.refuse_waiting(id, slot),
            _ => false,
        }
    }

    /// No member keeps a log in this slot, or the array has failed: the waiting operations continue without one.
    fn release_waiting(&mut self, id: SetId, slot: Slot) -> bool {
        let mut moved = false;
        self.log_mut(id, slot).arm = false;
        while let Some(index) = self.log_mut(id, slot).waiting.pop() {
            self.ops[index].set_record(Partial::No);
            self.ops.wake(index);
            moved = true;
        }
        moved
    }

    /// A flush failed on a member that the array needs. The writes that the log covers may be lost, so the log must
    /// stay as it is, and operations that need a record are refused.
    fn refuse_waiting(&mut self, id: SetId, slot: Slot) -> bool {
        let mut moved = false;
        while let Some(index) = self.log_mut(id, slot).waiting.pop() {
            self.ops[index].set_record(Partial::No);
            self.trace.note(&mut self.sets, id, Reason::FlushFailed, 0, 0);
            self.ops.refuse(index);
            moved = true;
        }
        moved
    }

    /// Write the log of a slot, with as many records as it takes.
    fn write_log(&mut self, id: SetId, slot: Slot, actions: &mut Actions) -> bool {
        let keepers = self.sets.get(id).log_keepers(slot);
        if keepers == [None; 2] {
            return self.release_waiting(id, slot);
        }
        if !self.channels.may_issue() || !actions.has_room() {
            self.sets.logs_are_due();
            self.more_to_do |= !actions.has_room();
            return false;
        }
        let uuid = self.sets.get(id).metadata.as_ref().expect("sets with logs have metadata").common().set_uuid;
        let mut header = PplHeader::new(uuid, self.sets.get_mut(id).next_log_generation());
        let room = self.sets.get(id).ppl.as_ref().expect("it has logs").room;
        let mut payload = Sectors::ZERO;
        while let Some(index) = self.log_mut(id, slot).waiting.front() {
            let op = self.ops[index];
            let rows = if op.partial_parity().is_there() { Sectors(u64::from(op.rows())) } else { Sectors::ZERO };
            if payload + rows > room || self.log_mut(id, slot).flying.len() == LOG_OPS_MAX {
                break;
            }
            self.log_mut(id, slot).waiting.pop();
            self.log_mut(id, slot).flying.push(index);
            self.trace.note_op(
                &mut self.sets,
                &self.ops,
                index,
                Reason::PartialParityLogged,
                op.rows_of().stripe.0,
                u32::from(op.partial_parity().is_there()),
            );
            header.push(self.entry_of(&op)).expect("fewer than fit");
            if op.partial_parity().is_there() {
                self.write_partial(id, slot, keepers, &op, payload, actions);
            }
            payload += rows;
        }
        let log = self.log_mut(id, slot);
        (log.state, log.arm) = (LogState::Writing, false);
        let mut bytes = [0; PPL_HEADER_BYTES];
        header.encode(&mut bytes);
        for keeper in keepers.into_iter().flatten() {
            self.log_mut(id, slot).pending += 1;
            self.write_log_header(id, keeper, Owner::PplLog, &bytes, actions);
        }
        true
    }

    fn write_partial(
        &mut self,
        id: SetId,
        slot: Slot,
        keepers: [Option<usize>; 2],
        op: &Op,
        at: Sectors,
        actions: &mut Actions,
    ) {
        let (frames, hold) = (op.partial_buffer(), op.work().map(Hold::Work));
        let place = (PPL_HEADER_SECTORS + at, Sectors(u64::from(op.rows())));
        for keeper in keepers.into_iter().flatten() {
            self.log_mut(id, slot).pending += 1;
            self.write_area(id, keeper, Owner::PplLog, place, frames, hold, actions);
        }
    }

    /// A command of a log ended.
    pub(crate) fn on_log_written(&mut self, id: SetId, slot: Slot) {
        let log = self.log_mut(id, slot);
        log.pending -= 1;
        self.sets.logs_are_due();
    }

    /// The log being written is on the members that work: the operations that wait for it write now.
    fn log_is_durable(&mut self, id: SetId, slot: Slot) {
        let log = self.log_mut(id, slot);
        let mut flying = core::mem::take(&mut log.flying);
        log.covered = u32::try_from(flying.len()).expect("few operations");
        log.state = if flying.is_empty() { LogState::Free } else { LogState::Covering };
        for index in flying.drain(..) {
            self.ops[index].set_record(Partial::Logged);
            self.trace.op(&self.ops, index, || What::Durable);
            self.ops.wake(index);
        }
        let log = self.log_mut(id, slot);
        log.flying = flying;
        // Operations that came while an empty header was being written.
        let due = log.state == LogState::Free && log.is_wanted();
        if due {
            self.sets.logs_are_due();
        }
    }

    /// Flush the members so that logs can be overwritten. One flush serves all logs whose writes have completed.
    fn pump_ppl_flush(&mut self, id: SetId, actions: &mut Actions) -> bool {
        let set = self.sets.get_mut(id);
        let (durable, doubt) = (set.is_failure_durable(), set.has_failed_flush());
        let ppl = set.ppl.as_mut().expect("asked for a set with logs");
        if ppl.flushes > 0 {
            return false;
        }
        let mut moved = false;
        if durable {
            // The flush has ended.
            let next = if doubt { LogState::Stale } else { LogState::Free };
            for log in ppl.logs.iter_mut().filter(|log| log.state == LogState::Flushing) {
                log.state = next;
                moved = true;
            }
        }
        let flushing = ppl.logs.iter().any(|log| log.state == LogState::Flushing);
        let wanted = ppl.logs.iter().any(|log| log.state == LogState::Stale && log.is_wanted());
        if flushing || doubt || !wanted {
            return moved;
        }
        if !self.channels.may_issue() {
            self.sets.logs_are_due();
            return moved;
        }
        let ppl = self.sets.get_mut(id).ppl.as_mut().expect("just seen");
        for log in ppl.logs.iter_mut().filter(|log| log.state == LogState::Stale) {
            log.state = LogState::Flushing;
        }
        let issued = self.sets.flush_members(id, Owner::PplFlush, &mut self.channels, self.now, actions);
        self.sets.get_mut(id).ppl.as_mut().expect("just seen").flushes += issued;
        // No flush is needed if a later one has covered the writes.
        if issued == 0 {
            self.sets.logs_are_due();
        }
        true
    }

    /// A flush before logs are overwritten ended.
    pub(crate) fn on_ppl_flushed(&mut self, id: SetId) {
        let ppl = self.sets.get_mut(id).ppl.as_mut().expect("it was flushed for its logs");
        ppl.flushes -= 1;
        self.sets.logs_are_due();
    }
}

impl Set {
    /// The generation of the next header: 0 while parity is not consistent everywhere.
    pub(super) fn next_log_generation(&mut self) -> u64 {
        let consistent = self.is_consistent_everywhere();
        let ppl = self.ppl.as_mut().expect("asked for a set with logs");
        ppl.generation += u64::from(consistent && !ppl.planted.has(Flaw::LogNeverArmed));
        if consistent {
            ppl.generation
        } else {
            0
        }
    }

    /// Parity is consistent from now on: logs without records are rewritten.
    pub(crate) fn arm_logs(&mut self) {
        if let Some(ppl) = &mut self.ppl {
            ppl.logs.iter_mut().for_each(|log| log.arm = true);
        }
    }

    /// The rebuild of this slot begins. The header of this member's log may be older than the consistent parity. After
    /// the rebuild it may be the only log that is left.
    pub(crate) fn arm_log(&mut self, slot: Slot) {
        if self.is_consistent_everywhere() {
            if let Some(ppl) = &mut self.ppl {
                ppl.logs[slot.index()].arm = true;
            }
        }
    }

    /// Is some work of the logs under way that no operation waits for?
    pub(crate) fn is_ppl_busy(&self) -> bool {
        let writing = |ppl: &SetPpl| ppl.logs.iter().any(|log| log.state == LogState::Writing);
        self.ppl.as_ref().is_some_and(|ppl| ppl.setups + ppl.flushes > 0 || writing(ppl))
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::PlannedPpl;
    use super::super::Stage;
    use super::*;
    use crate::geometry::{Geometry, Level, SetSpec};
    use crate::io::footprint::{Columns, Footprint, StripeRows};
    use crate::io::search::Part;
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, StripeIndex};

    const SET: SetId = SetId(0);

    /// The set of a RAID 5 with logs, and no drives.
    fn controller() -> Controller {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
        let mut controller = Controller::new(Limits::small()).unwrap();
        let mut set = controller.new_set(ArrayId(0), Geometry::new(&spec).unwrap(), BlockSize::B512, 8);
        let mut ppl = SetPpl::new(&PlannedPpl { generation: 6, ..PlannedPpl::default() }, 4, Sectors(128), 8);
        ppl.stage = Stage::Ready;
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
        (controller.log_mut(SET, slot).state, controller.log_mut(SET, slot).covered) = (LogState::Covering, 2);
        controller.sets.end_record(&mut row_write(), Planted::default());
        assert_eq!(controller.log_mut(SET, slot).covered, 2, "an operation without a record covers nothing");
        controller.sets.end_record(&mut logged(), Planted::default());
        assert_eq!(controller.log_mut(SET, slot).state, LogState::Covering);
        // The second one waits, so the log must be advanced at once.
        controller.log_mut(SET, slot).waiting.push(5);
        assert!(!controller.sets.are_logs_due());
        let mut last = logged();
        controller.sets.end_record(&mut last, Planted::default());
        assert_eq!((last.record(), controller.log_mut(SET, slot).state), (Partial::No, LogState::Stale));
        assert!(controller.sets.are_logs_due());
    }

    #[test]
    fn headers_have_a_generation_only_while_parity_is_consistent() {
        let mut controller = controller();
        let set = controller.sets.get_mut(SET);
        set.set_consistent_to(Sectors(8));
        assert_eq!(set.next_log_generation(), 0);
        set.set_consistent_to(Sectors::MAX);
        assert_eq!((set.next_log_generation(), set.next_log_generation()), (7, 8));
    }

    #[test]
    fn an_operation_that_waits_for_its_record_writes_when_the_log_is_durable() {
        let mut controller = controller();
        let op = controller.ops.put(with_record(Partial::Waiting)).index;
        controller.hold_op(op, Wait::Record);
        let log = controller.log_mut(SET, Slot(1));
        log.state = LogState::Writing;
        log.flying.push(op);
        // Another one came while the log was being written: it needs the next write.
        log.waiting.push(op + 1);
        controller.log_is_durable(SET, Slot(1));
        assert_eq!((controller.ops[op].record(), controller.ops.next_ready()), (Partial::Logged, Some(op)));
        assert!(!controller.ops.has_ready(), "the other one still waits");
        let log = controller.log_mut(SET, Slot(1));
        assert_eq!((log.state, log.covered, log.waiting.len()), (LogState::Covering, 1, 1));
    }

    #[test]
    fn an_operation_that_waits_for_a_log_whose_member_is_gone_continues_without_a_record() {
        let mut controller = controller();
        let op = controller.ops.put(with_record(Partial::Waiting)).index;
        controller.log_mut(SET, Slot(1)).waiting.push(op);
        assert!(controller.release_waiting(SET, Slot(1)));
        assert_eq!((controller.ops[op].record(), controller.ops.next_ready()), (Partial::No, Some(op)));
        assert!(!controller.release_waiting(SET, Slot(1)), "nothing waits any more");
    }
}
