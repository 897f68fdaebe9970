//! Redos: data of redo records is read from the journal and written to a member. Other operations that need these rows
//! wait here. The journal knows which redos are pending: see [`redo_backlog`](crate::journal::redo_backlog).

use openraid_units::{Bytes, DriveLba, PoolOffset, Sectors, SetId};

use crate::actions::{Data, DriveOp, ReplyStatus};
use crate::array::sets::Sets;
use crate::background::task_start::start_task;
use crate::events::CommandError;
use crate::io::state::command::JournalWork;
use crate::io::state::command::{ChannelCommand, Hold};
use crate::io::state::drive_queues::Channels;
use crate::io::state::footprint::{Extent, Footprint, MemberExtent};
use crate::io::state::op::{Op, OpPayload, Phase, RedoData, RedoReads, WorkFrames};
use crate::io::state::ops::Ops;
use crate::io::state::wait::Wait;
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::issue::class_of;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::hold_for_commands;
use crate::journal::redo_backlog::MemberRows;
use crate::journal::replay::refuse_start;
use crate::journal::window::SILENT;
use crate::journal::Journal;
use crate::limits::Limits;
use crate::reason::Reason;

/// Maximum number of redos in work that no operation waits for, and their share of the table of operations: enough that
/// every drive of a set can sort them.
const REDOS_MAX: u32 = 256;
const OPS_SHARE: u32 = 4;

const UNREADABLE: &str = "the journal's entries for the array cannot be read";
const NOT_TAKEN: &str = "a member refuses the writes that the journal holds for it";
const NO_ROOM: &str =
    "a member has no room for the writes that the journal holds for it: make room, then start the array again";

/// The rows of a parity set's members that an operation touches.
fn member_rows_of(sets: &Sets, op: &Op) -> Option<MemberRows> {
    let set = sets.get(op.set);
    if !set.shape().has_parity() {
        return None;
    }
    let parity = set.shape().parity(op.side());
    let rows_of = |first, last, lo, hi| {
        let units = (parity.stripe_start(first), parity.stripe_start(last));
        MemberRows::new(units, parity.member_lba(first, lo), parity.member_lba(last, hi))
    };
    if let Footprint::Rows(rows) = &op.footprint {
        let (lo, hi) = rows.part.range();
        return Some(rows_of(rows.stripe, rows.stripe, Sectors(u64::from(lo)), Sectors(u64::from(hi))));
    }
    let Extent { at, len, .. } = op.extent();
    let (first, _, within) = parity.locate(at);
    if within + len <= parity.chunk() {
        return Some(rows_of(first, first, within, within + len));
    }
    let (last, ..) = parity.locate(at + (len - Sectors(1)));
    Some(rows_of(first, last, Sectors::ZERO, parity.chunk()))
}

/// May one more redo begin that no operation waits for, with `out` at work? Operations that wait for places or frames
/// go first, but one redo is always at work.
fn may_begin_redo(ops: &Ops, limits: &Limits, out: u32) -> bool {
    let most = REDOS_MAX.min(limits.ops_max / OPS_SHARE);
    match out {
        0 => ops.may_make_awaited_op(),
        _ => out < most && ops.may_make_op() && !ops.are_frames_awaited(),
    }
}

/// The device to try next. Each device may fail once for an operation before the operation ends.
fn next_redo_device(ops: &mut Ops, journal: &Journal, channels: &Channels, index: u32, tried: usize) -> Option<usize> {
    let op = &mut ops[index];
    let again = op.count_failed_read() <= op.redo().count;
    redo_device(journal, channels, Some(tried)).filter(|_| again)
}

pub(crate) fn wake_redo_waiters(ops: &mut Ops, sets: &mut Sets) {
    sets.look();
    ops.wake_for_redos();
}

fn may_redo(sets: &Sets, journal: &Journal, number: usize) -> bool {
    let backlog = journal.replay().backlog(number);
    backlog.error().is_none() && !sets.get(backlog.owner().0).has_failed()
}

/// Is a redo of its rows pending, in a backlog that is not over?
pub(super) fn is_held_by_redo(sets: &Sets, journal: &Journal, op: &Op) -> bool {
    let replay = journal.replay();
    let (Some(number), Some(rows)) = (replay.number_of(op.set), member_rows_of(sets, op)) else {
        return false;
    };
    let backlog = replay.backlog(number);
    !backlog.is_over() && backlog.pending(rows).next().is_some()
}

/// The device of the journal to read from, other than the one that was tried.
fn redo_device(journal: &Journal, channels: &Channels, tried: Option<usize>) -> Option<usize> {
    journal.device_to_read(tried, |drive| channels.is_silent(drive))
}

fn redos_done(journal: &mut Journal, sets: &mut Sets, set: SetId, first: usize, count: usize) {
    if journal.end_redos(set, first, count) {
        sets.look();
    }
}

pub(crate) fn on_redone(journal: &mut Journal, ops: &mut Ops, sets: &mut Sets, op: &Op) {
    let RedoData { first, count, .. } = *op.redo();
    let count = count as usize;
    let backlog = journal.replay_mut().backlog_of(op.set).expect("it is kept while redos are out");
    let failed = op.is_redo_lost() || op.has_failed();
    backlog.end_work(first, count, failed);
    if failed {
        match op.error() {
            Some(ReplyStatus::NoSpace) => backlog.fail(NO_ROOM),
            Some(_) => backlog.fail(NOT_TAKEN),
            None => {}
        }
    } else {
        redos_done(journal, sets, op.set, first, count);
    }
    wake_redo_waiters(ops, sets);
}

impl OpIo<'_> {
    /// Advance the backlogs; true if something has changed.
    pub(crate) fn pump_redos(&mut self) -> bool {
        let mut moved = self.journal.replay_mut().take_asked() && self.redo_for_waiters();
        for number in (0..self.journal.replay().len()).rev() {
            moved |= self.pump_backlog(number);
            if self.sets.has_signal() {
                // A set has failed: the controller hands that on first.
                break;
            }
        }
        moved
    }

    fn pump_backlog(&mut self, number: usize) -> bool {
        if self.journal.replay().backlog(number).is_over() {
            return false;
        }
        let can_be_read = redo_device(self.journal, self.call.channels(), None).is_some();
        let backlog = self.journal.replay_mut().backlog_mut(number);
        let (left, out) = backlog.progress();
        if left > 0 && !can_be_read {
            backlog.fail(SILENT);
        }
        if !may_redo(self.sets, self.journal, number) || left == 0 {
            return out == 0 && self.end_redos(number);
        }
        if !self.prepare_redo(number) {
            return false;
        }
        let mut moved = false;
        while self.call.actions().has_room()
            && may_begin_redo(self.ops, self.call.limits(), self.journal.replay().backlog(number).progress().1)
        {
            let Some(index) = self.journal.replay_mut().backlog_mut(number).next() else { break };
            if !self.begin_redo(number, index, false) {
                break;
            }
            moved = true;
        }
        moved
    }

    /// Take the spare frames that one write needs at any time; true if a redo may begin. From then on a set with parity
    /// serves hosts.
    fn prepare_redo(&mut self, number: usize) -> bool {
        let backlog = self.journal.replay_mut().backlog_mut(number);
        if backlog.needs_spare() {
            backlog.keep_spare(self.pool.work_mut().take(backlog.bytes_max()));
        }
        let (id, array) = backlog.owner();
        let may_begin = backlog.has_spare() || backlog.progress().1 > 0;
        let is_by_rows = self.sets.get(id).shape().has_parity();
        if backlog.has_spare() && is_by_rows && backlog.begin_to_serve() {
            self.journal.begin_to_serve(self.sets, id, array, self.call.now());
        }
        may_begin
    }

    /// The backlog of a set is empty, or no more of it can be done.
    fn end_redos(&mut self, number: usize) -> bool {
        let may = may_redo(self.sets, self.journal, number);
        let backlog = self.journal.replay_mut().backlog_mut(number);
        let ((id, array), error) = (backlog.owner(), backlog.error());
        backlog.end();
        let spare = backlog.take_spare();
        self.journal.give_up_redos(number);
        if let Some(run) = spare {
            self.pool.work_mut().release(run);
            self.ops.wake_for_frames();
        }
        let set = self.sets.get_mut(id);
        let starts = set.journal.is_replaying();
        set.journal.end_redoing();
        if may || starts {
            self.journal.replay_mut().remove(number);
        }
        match (may, starts) {
            (true, true) => self.journal.begin_to_serve(self.sets, id, array, self.call.now()),
            (false, true) => refuse_start(self.sets, id, error),
            // A rebuild continues where it was before hosts write again.
            (true, false) if self.sets.get(id).is_running() => {
                _ = start_task(self.sets, id, &mut self.call);
            }
            (true, false) => {}
            (false, false) => {
                if !self.sets.get(id).has_failed() {
                    self.sets.lose_rows(id, &mut self.call);
                }
            }
        }
        wake_redo_waiters(self.ops, self.sets);
        true
    }

    /// Begin the redos that operations wait for; true if one began. If there is no room for all of them, this is called
    /// again.
    fn redo_for_waiters(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.ops.redo_waiters() {
            // All are called at once after a redo for a slot without a member.
            let Some(waiting) = self.ops.next_redo_waiter() else { break };
            let (set, rows) = (self.ops[waiting].set, member_rows_of(self.sets, &self.ops[waiting]));
            let number = self.journal.replay().number_of(set);
            let (Some(number), Some(rows)) = (number, rows) else { continue };
            while may_redo(self.sets, self.journal, number) {
                let backlog = self.journal.replay().backlog(number);
                let Some(index) = backlog.next_of(rows) else { break };
                let room = self.call.actions().has_room() && self.ops.may_make_awaited_op();
                if !room || !self.begin_redo(number, index, true) {
                    self.journal.replay_mut().ask();
                    return moved;
                }
                moved = true;
            }
        }
        moved
    }

    /// Begin a redo, with the neighbours that share its write; false if there is no room.
    fn begin_redo(&mut self, number: usize, index: usize, is_awaited: bool) -> bool {
        let block = self.journal.block_sectors();
        let backlog = self.journal.replay_mut().backlog_mut(number);
        let (id, redo) = (backlog.owner().0, backlog.redo(index));
        let (count, len) = backlog.run_from(index, block);
        let set = self.sets.get(id);
        let (side, (slot, at, _)) = (redo.side(), redo.place());
        if slot.0 >= set.slots() || !set.writable(side).contains(slot) {
            // The slot has no member. A later one is filled by a rebuild.
            redos_done(self.journal, self.sets, id, index, count);
            wake_redo_waiters(self.ops, self.sets);
            return true;
        }
        let (Some(device), true) =
            (redo_device(self.journal, self.call.channels(), None), self.call.channels().may_issue())
        else {
            return false;
        };
        let before = redo.from().get() % block;
        let bytes = Sectors((before + len.get()).next_multiple_of(block)).bytes();
        let backlog = self.journal.replay_mut().backlog_mut(number);
        let (mut run, mut has_spare) = (self.pool.work_mut().take(bytes.get()), false);
        if run.is_none() {
            run = backlog.take_spare();
            has_spare = true;
        }
        let Some(run) = run else { return false };
        backlog.begin(index, count);
        let number_of_redos = u32::try_from(count).expect("few go together");
        let data = RedoData { first: index, count: number_of_redos, reads: RedoReads::Going(0), is_awaited };
        let op = Op {
            work: WorkFrames::Run(run),
            payload: OpPayload::Host(run.at + Sectors(before).bytes()),
            phase: Phase::ReadingOld,
            ..Op::redo_of(id, MemberExtent { side, slot, at, len }, data)
        };
        let key = self.ops.begin(self.sets.get_mut(id), op);
        if has_spare {
            self.journal.replay_mut().backlog_mut(number).spare_goes_to(key.index);
        }
        self.journal.count_redo();
        let mut done = Bytes::ZERO;
        for next in index..index + count {
            let redo = self.journal.replay().backlog(number).redo(next);
            let (from, (_, _, sectors)) = (DriveLba(redo.from().get() - before), redo.place());
            let len = Sectors((before + sectors.get()).next_multiple_of(block));
            self.read_for_redo(key.index, device, (from, len), run.at + done);
            done += sectors.bytes();
        }
        true
    }

    /// Make an operation on a parity set wait if its rows are in the backlog; true if it waits or has failed. A waiting
    /// operation is called again.
    pub(crate) fn hold_for_redo(&mut self, index: u32) -> bool {
        let op = &self.ops[index];
        if op.parent().is_some() {
            // Its parent has waited.
            return false;
        }
        let Some(rows) = member_rows_of(self.sets, op) else { return false };
        let (set, stripe) = (op.set, op.stripe().map_or(0, |stripe| stripe.0));
        let Some(backlog) = self.journal.replay_mut().backlog_of(set) else { return false };
        if backlog.pending(rows).next().is_none() {
            return false;
        }
        if backlog.is_over() {
            self.fail_op(index, ReplyStatus::IoError);
        } else {
            self.note(index, Reason::WaitedForRedo, stripe, 0);
            self.ops.hold_op(index, Wait::Redo);
            self.journal.replay_mut().ask();
        }
        true
    }

    fn read_for_redo(&mut self, index: u32, device: usize, (lba, len): (DriveLba, Sectors), to: PoolOffset) {
        let op = &self.ops[index];
        let command = ChannelCommand {
            op: DriveOp::Read,
            lba,
            len,
            data: Data::Frames(to),
            class: class_of(op),
            hold: op.work().map(Hold::Work),
            ..self.journal.command_to(device, JournalWork::Redo(index))
        };
        self.ops[index].pending += 1;
        self.call.push(&command);
    }

    /// A part of a redo was read, or the other device is tried. A device that did not answer was dropped before.
    pub(crate) fn on_redo_read(&mut self, index: u32, command: &ChannelCommand, result: Result<(), CommandError>) {
        let set = self.ops[index].set;
        let number = command.journal_device();
        let why = match result {
            Ok(()) => None,
            Err(_) if !command.is_issued() => {
                self.ops[index].lose_redo();
                None
            }
            Err(CommandError::Timeout) => {
                self.ops[index].lose_redo();
                let works = self.journal.has_working_device();
                (!works).then_some(SILENT)
            }
            Err(CommandError::Drive(_)) => {
                match next_redo_device(self.ops, self.journal, self.call.channels(), index, number) {
                    Some(other) => {
                        let Data::Frames(to) = command.data else { unreachable!("it is read into frames") };
                        self.read_for_redo(index, other, (command.lba, command.len), to);
                        None
                    }
                    None => Some(UNREADABLE),
                }
            }
        };
        if let (Some(why), Some(backlog)) = (why, self.journal.replay_mut().backlog_of(set)) {
            backlog.fail(why);
            self.ops[index].lose_redo();
        }
        self.ops.command_ended(index);
    }

    /// Advance a redo: write the data that was read.
    pub(crate) fn step_redo(&mut self, index: u32) {
        let op = self.ops[index];
        match op.phase {
            Phase::ReadingOld if op.is_redo_lost() => self.finish_redo(index),
            Phase::ReadingOld => {
                if !self.call.channels().may_issue() {
                    return hold_for_commands(self.ops, index);
                }
                self.ops[index].phase = Phase::Writing;
                let Footprint::Member(extent) = op.footprint else { unreachable!("a redo is for a member") };
                let OpPayload::Host(at) = op.payload else { unreachable!("it was read into frames") };
                let range = MemberRange { slot: extent.slot, lba: extent.at, len: extent.len, at };
                self.issue_write(index, range);
                if self.ops[index].pending == 0 {
                    self.finish_redo(index);
                }
            }
            Phase::Writing | Phase::Recording => {
                if op.has_failed() || self.pass_reply_gate(index) {
                    self.finish_redo(index);
                }
            }
            phase => unreachable!("a redo is never in {phase:?}"),
        }
    }

    /// A redo has ended. If it used the spare frames and a hung drive may still access them, others take their place.
    fn finish_redo(&mut self, index: u32) {
        let op = &mut self.ops[index];
        let backlog = self.journal.replay_mut().backlog_of(op.set);
        let backlog = backlog.expect("it is kept while redos are out");
        if let Some(run) = op.work().filter(|_| backlog.spare_comes_back(index)) {
            op.work = WorkFrames::None;
            self.pool.work_mut().release(run);
            backlog.keep_spare(self.pool.work_mut().take(backlog.bytes_max()));
        }
        self.finish_op(index);
    }
}
