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
use crate::io::state::wait::{Gate, Hindrance};
use crate::planted::{Flaw, Planted};
use crate::ppl::area::{log_keepers, record_for, write_area};
use crate::ppl::recovery::write_log_header;
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::slot_set::SlotSet;
use crate::trace::Trace;

/// The rows of an operation's record are on the members.
#[inline(always)]
pub(crate) fn end_record(sets: &mut Sets, op: &mut Op, planted: Planted) {
    if op.set_record(Partial::No) == Partial::Logged {
        end_logged(sets, op, planted);
    }
}

fn end_logged(sets: &mut Sets, op: &Op, planted: Planted) {
    let (set, slot) = (op.set(), op.parity(sets.get(op.set())).p_slot(op.rows_of().stripe));
    let reused = planted.has(Flaw::LogReusedUnflushed);
    if log_mut(sets, set, slot).end_op(reused) {
        sets.logs_are_due();
    }
}

/// The log of a slot.
fn log_mut(sets: &mut Sets, id: SetId, slot: Slot) -> &mut SlotLog {
    &mut sets.get_mut(id).ppl.as_mut().expect("asked for a set with logs").logs[slot.index()]
}

/// A command of a log ended.
pub(crate) fn on_log_written(sets: &mut Sets, id: SetId, slot: Slot) {
    log_mut(sets, id, slot).command_ended();
    sets.logs_are_due();
}

/// A flush before logs are overwritten ended.
pub(crate) fn on_ppl_flushed(sets: &mut Sets, id: SetId) {
    let ppl = sets.get_mut(id).ppl.as_mut().expect("it was flushed for its logs");
    ppl.flushes -= 1;
    sets.logs_are_due();
}

/// No member keeps a log in this slot, or the array has failed: the waiting operations continue without one. True if
/// one did.
fn release_waiting(sets: &mut Sets, id: SetId, slot: Slot, ops: &mut Ops) -> bool {
    let log = log_mut(sets, id, slot);
    log.disarm();
    let mut moved = false;
    while let Some(index) = log.next_waiting() {
        ops[index].set_record(Partial::No);
        ops.wake(index);
        moved = true;
    }
    moved
}

/// The new parity is computed: compute the parity of the columns that are not written, from the smaller number of
/// columns.
pub(crate) fn push_partial(ops: &mut Ops, set: &Set, index: u32, call: &mut Call) {
    ops[index].enter(Phase::Computing(Computation::Partial));
    let op = ops[index];
    let view = op.stripe_view(set);
    let named = op.named_slots(set);
    let others = view.data.minus(named);
    let columns = call.actions().columns.len();
    let mut push = |at| call.actions().columns.push(JobColumn { index: 0, at, old: at });
    // The columns that are not written; or the new parity without the written columns.
    if !op.is_read_modify_write() && others.len() <= named.len() + 1 {
        others.iter().for_each(|slot| push(op.buffer(slot)));
    } else {
        named.iter().for_each(|slot| push(RowFrames::of(&op).named(op.geometry(set), slot)));
        push(op.buffer(view.p));
    }
    let to = op.partial_buffer();
    let job = Job::new(JobKind::Generate, op.row_bytes(), columns).with_parity(Some(to), None);
    ops.push_job(index, job, call);
}

/// The partial parity is computed: compute its checksum.
pub(crate) fn push_partial_sum(ops: &mut Ops, index: u32, call: &mut Call) {
    ops[index].enter(Phase::Computing(Computation::PartialSum));
    let op = ops[index];
    let at = op.partial_buffer();
    let columns = call.actions().columns.len();
    call.actions().columns.push(JobColumn { index: 0, at, old: at });
    ops.push_job(index, Job::new(JobKind::Checksum, op.row_bytes(), columns), call);
}

/// Rule 6 of the write gate: put the record of an operation into the partial parity log of its stripe, and hold the
/// operation until the record is durable. A discard of whole rows has a record, too: a crash may leave some members
/// zeroed.
pub(crate) fn record_write(sets: &mut Sets, index: u32, ops: &mut Ops, trace: &mut Trace) -> Gate {
    let op = &mut ops[index];
    let (id, is_discard) = (op.set(), op.kind() == OpKind::Discard);
    if is_discard {
        plan_discard_record(sets.get(id), op);
    }
    match op.record() {
        Partial::No | Partial::Logged => return Ok(()),
        Partial::Waiting => return Err(Hindrance::Waits(Wait::Record)),
        Partial::Due => {}
    }
    op.set_record(Partial::Waiting);
    let stripe = op.rows_of().stripe;
    let slot = op.parity(sets.get(id)).p_slot(stripe);
    let waits = log_mut(sets, id, slot).wait(index);
    sets.logs_are_due();
    if waits {
        trace.note_op(sets, ops, index, Reason::WaitedForPartialParityLog, stripe.0, 0);
    }
    Err(Hindrance::Waits(Wait::Record))
}

/// Advance the logs of all sets. Returns whether one changed, and whether there was no room for all actions.
pub(crate) fn pump_logs(sets: &mut Sets, ops: &mut Ops, call: &mut Call) -> bool {
    let mut has_moved = false;
    if !sets.take_logs_due() {
        return false;
    }
    for id in sets.numbers() {
        let Some(slots) = sets.find(id).and_then(|set| Some(set.ppl.as_ref()?.logs.len())) else {
            continue;
        };
        has_moved |= pump_ppl_flush(sets, id, call);
        for slot in 0..slots {
            let log = (id, Slot(u16::try_from(slot).expect("few slots")));
            has_moved |= match advance_log(sets, log, ops, call.trace()) {
                LogStep::Waits => false,
                LogStep::Moved => true,
                LogStep::Writes if log_keepers(sets.get(id), log.1) == [None; 2] => {
                    release_waiting(sets, id, log.1, ops)
                }
                LogStep::Writes if call.channels().may_issue() && call.actions().has_room() => {
                    write_log(sets, log, ops, call);
                    true
                }
                LogStep::Writes => {
                    sets.logs_are_due();
                    call.check_room();
                    false
                }
            };
        }
    }
    has_moved
}

/// Do for a log what needs no command.
fn advance_log(sets: &mut Sets, (id, slot): (SetId, Slot), ops: &mut Ops, trace: &mut Trace) -> LogStep {
    let set = sets.get(id);
    let ppl = set.ppl.as_ref().expect("asked for a set with logs");
    let log = &ppl.logs[slot.index()];
    let moved = if set.has_failed() && !log.is_writing() {
        release_waiting(sets, id, slot, ops)
    } else {
        match log.state() {
            LogState::Free if log.is_wanted() && ppl.is_ready() => return LogStep::Writes,
            LogState::Writing { pending: 0 } if set.is_failure_durable() => {
                log_is_durable(sets, id, slot, ops, trace);
                true
            }
            LogState::Stale if set.has_failed_flush() => refuse_waiting(sets, id, slot, ops, trace),
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
fn refuse_waiting(sets: &mut Sets, id: SetId, slot: Slot, ops: &mut Ops, trace: &mut Trace) -> bool {
    let mut moved = false;
    while let Some(index) = log_mut(sets, id, slot).next_waiting() {
        ops[index].set_record(Partial::No);
        trace.note(sets, id, Reason::FlushFailed, 0, 0);
        ops.refuse(index);
        moved = true;
    }
    moved
}

/// Write the log of a slot, with as many records as it takes.
fn write_log(sets: &mut Sets, (id, slot): (SetId, Slot), ops: &Ops, call: &mut Call) {
    let set = sets.get_mut(id);
    let keepers = log_keepers(set, slot);
    let uuid = set.metadata.as_ref().expect("sets with logs have metadata").common().set_uuid;
    let mut header = PplHeader::new(uuid, next_log_generation(set));
    let room = set.ppl.as_ref().expect("it has logs").room;
    let mut payload = Sectors::ZERO;
    log_mut(sets, id, slot).begin_write();
    while let Some(index) = log_mut(sets, id, slot).next_record() {
        let op = &ops[index];
        let has_parity = op.partial_parity().is_there();
        let rows = if has_parity { Sectors(u64::from(op.rows())) } else { Sectors::ZERO };
        if payload + rows > room {
            break;
        }
        log_mut(sets, id, slot).take_record();
        let stripe = op.rows_of().stripe.0;
        call.trace().note_op(sets, ops, index, Reason::PartialParityLogged, stripe, u32::from(has_parity));
        header.push(entry_of(sets.get(id), op)).expect("fewer than fit");
        for keeper in keepers.into_iter().flatten().filter(|_| has_parity) {
            let (frames, hold) = (op.partial_buffer(), op.work().map(Hold::Work));
            log_mut(sets, id, slot).command_issued();
            let place = (PPL_HEADER_SECTORS + payload, rows);
            write_area(sets, (id, keeper), Owner::PplLog, place, frames, hold, call);
        }
        payload += rows;
    }
    let mut bytes = [0; PPL_HEADER_BYTES];
    header.encode(&mut bytes);
    for keeper in keepers.into_iter().flatten() {
        log_mut(sets, id, slot).command_issued();
        write_log_header(sets, (id, keeper), Owner::PplLog, &bytes, call);
    }
}

/// The log being written is on the members that work: the operations that wait for it write now.
fn log_is_durable(sets: &mut Sets, id: SetId, slot: Slot, ops: &mut Ops, trace: &mut Trace) {
    let is_due = log_mut(sets, id, slot).land(|index| {
        ops[index].set_record(Partial::Logged);
        trace.op(ops, index, || StepEvent::Durable);
        ops.wake(index);
    });
    if is_due {
        sets.logs_are_due();
    }
}

/// Flush the members so that logs can be overwritten. One flush serves all logs whose writes have completed.
fn pump_ppl_flush(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    let set = sets.get_mut(id);
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
        sets.logs_are_due();
        return moved;
    }
    ppl.begin_flush();
    let issued = sets.flush_members(id, Owner::PplFlush, call);
    sets.get_mut(id).ppl.as_mut().expect("just seen").flushes += issued;
    // No flush is needed if a later one has covered the writes.
    if issued == 0 {
        sets.logs_are_due();
    }
    true
}

/// What a log does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LogStep {
    /// The log waits.
    Waits,
    /// It has changed.
    Moved,
    /// It is to be written.
    Writes,
}

/// The generation of the next header: 0 while parity is not consistent everywhere.
pub(super) fn next_log_generation(set: &mut Set) -> u64 {
    let consistent = set.is_consistent_everywhere();
    set.ppl.as_mut().expect("asked for a set with logs").next_generation(consistent)
}

/// A discard that has no record yet needs one, if the set has logs.
fn plan_discard_record(set: &Set, op: &mut Op) {
    if op.record() == Partial::No && set.ppl.is_some() {
        let (record, _) = record_for(op, set, op.named_slots(set), SlotSet::first_n(set.slots()));
        op.set_record(record);
    }
}

/// The record of an operation.
fn entry_of(set: &Set, op: &Op) -> PplEntry {
    let parity = op.parity(set);
    let (named, rows) = (op.named_slots(set), op.rows_of());
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
pub(crate) fn arm_logs(set: &mut Set) {
    if let Some(ppl) = &mut set.ppl {
        ppl.logs.iter_mut().for_each(SlotLog::arm);
    }
}

/// The rebuild of this slot begins. The header of this member's log may be older than the consistent parity. After
/// the rebuild it may be the only log that is left.
pub(crate) fn arm_log(set: &mut Set, slot: Slot) {
    if set.is_consistent_everywhere() {
        if let Some(ppl) = &mut set.ppl {
            ppl.logs[slot.index()].arm();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SetPpl, StartStage};
    use super::*;
    use crate::array::assemble::PlannedPpl;
    use crate::array::consistency::Consistency;
    use crate::controller::Controller;
    use crate::geometry::shape::{Shape, Side};
    use crate::geometry::{Level, SetSpec};
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
        let mut set = Set::new(ArrayId(0), Shape::of(&spec), (BlockSize::B512, 8), &Limits::small());
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
        let rows = StripeRows::new(Side::Old, StripeIndex(0), Part::whole(0, 8), columns);
        Op::new(OpKind::RowWrite, SET, Footprint::Rows(rows))
    }

    #[test]
    fn a_log_is_stale_when_all_that_it_covers_is_written() {
        let mut controller = controller();
        let slot = controller.sets.get(SET).shape().parity(Side::Old).p_slot(StripeIndex(0));
        cover(log_mut(&mut controller.sets, SET, slot), 2);
        end_record(&mut controller.sets, &mut row_write(), Planted::default());
        let state = |controller: &mut Controller| log_mut(&mut controller.sets, SET, slot).state();
        assert_eq!(state(&mut controller), LogState::Covering { ops: 2 }, "it has no record and covers nothing");
        end_record(&mut controller.sets, &mut logged(), Planted::default());
        assert_eq!(state(&mut controller), LogState::Covering { ops: 1 });
        // Another operation waits, so the log must be advanced at once.
        log_mut(&mut controller.sets, SET, slot).wait(5);
        assert!(!controller.sets.are_logs_due());
        let mut last = logged();
        end_record(&mut controller.sets, &mut last, Planted::default());
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
        let log = log_mut(&mut controller.sets, SET, Slot(1));
        log.wait(op);
        log.begin_write();
        log.take_record();
        // Another one came while the log was being written: it needs the next write.
        log.wait(op + 1);
        let Controller { sets, ops, base, .. } = &mut controller;
        log_is_durable(sets, SET, Slot(1), ops, &mut base.trace);
        assert_eq!((controller.ops[op].record(), controller.ops.next_ready()), (Partial::Logged, Some(op)));
        assert!(!controller.ops.has_ready(), "the other one still waits");
        let log = log_mut(&mut controller.sets, SET, Slot(1));
        assert_eq!((log.state(), log.next_record()), (LogState::Covering { ops: 1 }, Some(op + 1)));
    }

    #[test]
    fn an_operation_that_waits_for_a_log_whose_member_is_gone_continues_without_a_record() {
        let mut controller = controller();
        let op = controller.ops.put(with_record(Partial::Waiting)).index;
        log_mut(&mut controller.sets, SET, Slot(1)).wait(op);
        assert!(release_waiting(&mut controller.sets, SET, Slot(1), &mut controller.ops));
        assert_eq!((controller.ops[op].record(), controller.ops.next_ready()), (Partial::No, Some(op)));
        assert!(!release_waiting(&mut controller.sets, SET, Slot(1), &mut controller.ops), "nothing waits any more");
    }

    #[test]
    fn an_operation_asks_for_its_record_once_and_waits_until_the_record_is_durable() {
        let mut controller = controller();
        let Controller { sets, ops, base, .. } = &mut controller;
        let op = ops.put(with_record(Partial::Due)).index;
        let slot = sets.get(SET).shape().parity(Side::Old).p_slot(StripeIndex(0));
        for _ in 0..2 {
            assert_eq!(record_write(sets, op, ops, &mut base.trace), Err(Hindrance::Waits(Wait::Record)));
            assert_eq!(ops[op].record(), Partial::Waiting);
        }
        let log = log_mut(sets, SET, slot);
        assert_eq!((log.next_waiting(), log.next_waiting()), (Some(op), None));
        for record in [Partial::No, Partial::Logged] {
            ops[op].set_record(record);
            assert_eq!(record_write(sets, op, ops, &mut base.trace), Ok(()));
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_over_refuses_its_operations_and_a_failed_array_lets_them_go_on() {
        for has_failed in [false, true] {
            let mut controller = controller();
            let Controller { sets, ops, base, .. } = &mut controller;
            let op = ops.put(with_record(Partial::Waiting)).index;
            let log = (SET, Slot(1));
            log_mut(sets, SET, Slot(1)).wait(op);
            assert_eq!(advance_log(sets, log, ops, &mut base.trace), LogStep::Writes);
            if has_failed {
                sets.get_mut(SET).fail();
                assert_eq!(advance_log(sets, log, ops, &mut base.trace), LogStep::Moved);
            } else {
                assert!(refuse_waiting(sets, SET, Slot(1), ops, &mut base.trace));
            }
            let called = (ops.next_refused(), ops.next_ready());
            assert_eq!(called, if has_failed { (None, Some(op)) } else { (Some(op), None) });
            assert_eq!(ops[op].record(), Partial::No);
            assert_eq!(advance_log(sets, log, ops, &mut base.trace), LogStep::Waits, "nothing waits for it any more");
        }
    }

    #[test]
    fn headers_have_a_generation_only_while_parity_is_consistent() {
        let mut controller = controller();
        let set = controller.sets.get_mut(SET);
        set.set_consistency(Consistency::from(Some(Sectors(8)), false));
        assert_eq!(next_log_generation(set), 0);
        set.set_consistency(Consistency::Everywhere);
        assert_eq!((next_log_generation(set), next_log_generation(set)), (7, 8));
    }
}
