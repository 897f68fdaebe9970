//! Failed commands of operations: what an error means for the member, and then for the operation.
//!
//! ```text
//!  command  error                       member                      operation
//!  read     media                       a defect is counted; after  another copy, recovery, or an error; repair
//!                                       too many it fails
//!  read     timeout, gone, protocol     fails                       another copy, recovery, or an error
//!  write    any, member not needed      fails                       continues; the reply waits for the record
//!  write    no space                    stays: `lack_of_room.rs`    parity or copies fit again (`refit_parity.rs`,
//!                                                                   `refit_copies.rs`), an error
//!  redo     no space                    stays                       its backlog ends: the set waits for room
//!  write    media, member needed        stays                       repeated once; then the same
//!  write    other, member needed        see `Sets::fail_member`     the same
//!  flush    any                         fails, or no later flush    continues, or an error
//!                                       succeeds
//!  discard  refused, must read zeroes   gets zeroes                 continues
//! ```
//!
//! A command without an answer is given up: it ends with a timeout. Its frames stay held until its drive answers.

use openraid_units::{Bytes, DriveId, MemberLba, PoolOffset, Sectors, SetLba, Slot, Tag};

use crate::actions::{Data, DriveOp, NoticeKind, ReplyStatus};
use crate::array::bad_blocks::DriveRange;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::events::CommandError;
use crate::events::DriveError;
use crate::frames::Pool;
use crate::geometry::shape::Side;
use crate::geometry::{Fragment, Geometry};
use crate::io::state::command::{Attempts, ChannelCommand, Hold, Owner};
use crate::io::state::ended::OpReport;
use crate::io::state::op::{Op, OpKind};
use crate::io::state::ops::Ops;
use crate::io::steps::issue::plain_command;
use crate::io::steps::op_io::OpIo;
use crate::journal::Journal;
use crate::limits::{SEARCH_WAYS, ZERO_SECTORS};
use crate::planted::Flaw;
use crate::reason::{FailReason, Reason};
use crate::set_status::MemberState;
use crate::slot_set::SlotSet;

/// A range of a member, and the place of its bytes in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberRange {
    pub(super) slot: Slot,
    pub(super) lba: MemberLba,
    pub(super) len: Sectors,
    pub(super) at: PoolOffset,
}

/// What the failure of a command means for its operation, if anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandFailure {
    /// The operation lacks the data of the read.
    Unread(CommandError),
    /// A member that stays in the array lacks the write. The operation ends with this error.
    Unwritten(ReplyStatus),
    /// A member that the array needs was not flushed.
    Unflushed,
}

/// A range that could not be read must be rewritten, or recorded as lost.
fn want_repair_of(sets: &mut Sets, op: &Op, command: &ChannelCommand) {
    let at = sets.get(command.set).member(command.member()).in_data(op.side(), command.lba);
    sets.want_restored(command.set, (op.side(), command.slot), at, command.len);
}

/// The sectors of a command.
const fn range_of(command: &ChannelCommand) -> DriveRange {
    DriveRange::of(command.lba, command.len)
}

/// Is the member of this command still in its slot?
fn is_in_slot(sets: &Sets, command: &ChannelCommand) -> bool {
    sets.get(command.set).place(command.slot).member() == Some(command.member())
}

/// Can another copy of a place of this member be read? Returns also the length for which the answer holds.
fn other_copy(
    sets: &Sets,
    (command, side): (&ChannelCommand, Side),
    at: MemberLba,
    left: Sectors,
) -> Option<(Sectors, bool)> {
    let set = sets.get(command.set);
    let Geometry::Mirror(mirror) = set.shape().on(side) else { return None };
    let (place, run) = mirror.inverse(command.slot, at)?;
    let len = left.min(run);
    let reads =
        |copy: Fragment| copy.slot != command.slot && set.readable(side, copy.lba, copy.lba + len).contains(copy.slot);
    Some((len, mirror.copies(place).any(reads)))
}

fn keep_frames(pool: &mut Pool, ops: &mut Ops, journal: &mut Journal, command: &ChannelCommand) {
    match command.hold {
        Some(Hold::Host(run)) => _ = pool.host_mut().give_up(run),
        Some(Hold::Work(run)) if pool.work_mut().give_up(run) => ops.wake_for_frames(),
        Some(Hold::Work(_)) => {}
        Some(Hold::Journal(buffer)) => journal.give_up_buffer(buffer),
        Some(Hold::Window) => journal.give_up_window(),
        None => {}
    }
}

impl OpIo<'_> {
    /// What a failed read means for its member.
    fn member_read_error(&mut self, command: &ChannelCommand, error: CommandError) {
        let (set, member) = (command.set, command.member());
        match error {
            CommandError::Drive(DriveError::Media { .. } | DriveError::NoSpace | DriveError::Unsupported) => {
                let budget = self.call.limits().media_errors_max;
                let entry = self.sets.get_mut(set).member_mut(member);
                if entry.meet_defect(command.lba, command.len).is_some_and(|defects| defects > budget) {
                    self.fail_member((set, member), FailReason::ErrorBudget);
                }
            }
            CommandError::Timeout => {
                self.fail_member((set, member), FailReason::Timeout);
            }
            CommandError::Drive(DriveError::Gone) => {
                self.fail_member((set, member), FailReason::Gone);
            }
            CommandError::Drive(_) => {
                self.fail_member((set, member), FailReason::Protocol);
            }
        }
    }

    /// This member lacks a write that others may have, and stays. Reads would alternate between differing
    /// copies, so this copy is no longer read. For a row, `distrust_parity` decides when all its commands have ended.
    fn distrust_unwritten(&mut self, index: u32, command: &ChannelCommand) {
        self.ops[index].tear();
        let set = self.sets.get(command.set);
        if set.has_failed() || !set.shape().is_mirror() {
            return;
        }
        let side = self.ops[index].side();
        let at = set.member(command.member()).in_data(side, command.lba);
        let mut done = Sectors::ZERO;
        while done < command.len {
            let Some((len, other)) = other_copy(self.sets, (command, side), at + done, command.len - done) else {
                return;
            };
            let (set, member) = (command.set, command.member());
            let unrecorded = other && !self.sets.record_bad((set, side), member, at + done, len);
            // If the array needs it, nothing is recorded, as on any array without a log.
            if unrecorded && !self.sets.is_needed(set, member) {
                self.fail_member((set, member), FailReason::BadBlockLogFull);
                return;
            }
            done += len;
        }
    }

    fn flush_failed(&mut self, command: &ChannelCommand, error: CommandError) -> Option<CommandFailure> {
        let reason = match error {
            CommandError::Timeout => FailReason::Timeout,
            CommandError::Drive(DriveError::Gone) => FailReason::Gone,
            CommandError::Drive(_) => FailReason::FlushFailed,
        };
        let redundant = self.sets.get(command.set).is_redundant();
        let failed = self.fail_member((command.set, command.member()), reason);
        (!redundant || !failed).then_some(CommandFailure::Unflushed)
    }

    /// The drive does not support WRITE ZEROES after all: from now on it gets zeroes as data.
    fn write_zeroes_plainly(&mut self, index: u32, command: &ChannelCommand) {
        if let Some(channel) = self.call.channels_mut().get_mut(command.drive) {
            channel.info().write_zeroes = false;
        }
        // Frames of zeroes never change, so nothing is held.
        let op = DriveOp::Write { fua: self.ops[index].is_fua() };
        let again = ChannelCommand { op, data: Data::Frames(PoolOffset::ZERO), hold: None, ..*command };
        self.push_op_command(index, again);
    }

    /// Give up the next command, and keep the frames that its drive may still access: any command of the condemned drive,
    /// if there is one, else one that is overdue. One overdue command condemns its drive: the other commands would wait as
    /// long again. Reports to the administrator the drive that did not answer.
    pub(crate) fn give_up_next(&mut self, condemned: Option<DriveId>) -> Option<ChannelCommand> {
        let command = match condemned {
            Some(drive) => self.call.channels_mut().give_up_issued(drive)?,
            None => self.call.give_up_overdue()?,
        };
        if condemned.is_none() && !matches!(command.owner, Owner::Journal(_)) {
            let (slot, drive) = (Some(command.slot), Some(command.drive));
            self.call.notice(self.sets, (command.set, slot), drive, NoticeKind::Timeout);
        }
        keep_frames(self.pool, self.ops, self.journal, &command);
        Some(command)
    }

    /// The drive has answered a command that was given up. The frames and the place of the command are free, and no
    /// operation that ends releases them: what waits for them is called here.
    pub(crate) fn given_up_came_back(&mut self, command: &ChannelCommand) {
        match command.hold {
            Some(Hold::Host(run)) => {
                self.pool.host_mut().come_back(run);
                self.ended.report(OpReport::FramesBack);
            }
            Some(Hold::Work(run)) => {
                self.pool.work_mut().come_back(run);
                self.ops.wake_for_frames();
            }
            Some(Hold::Journal(buffer)) => self.journal.buffer_came_back(buffer),
            Some(Hold::Window) => self.journal.window_came_back(),
            None => {}
        }
        self.ops.wake_for_commands();
        self.sets.look();
    }

    /// Send a command without payload to one member.
    pub(crate) fn issue_plain(
        &mut self,
        index: u32,
        member_index: u32,
        drive_op: DriveOp,
        lba: MemberLba,
        len: Sectors,
    ) {
        let command = plain_command(self.sets, self.ops, index, member_index);
        let member = self.sets.get(command.set).member(member_index);
        let lba = if drive_op == DriveOp::Flush {
            openraid_units::DriveLba::ZERO
        } else {
            member.on_drive(self.ops[index].side(), lba)
        };
        self.push_op_command(index, ChannelCommand { op: drive_op, lba, len, ..command });
    }

    /// A command has succeeded. True if nothing else had to be done but count it, as for nearly all commands. Then that
    /// is done, without copying the command.
    #[inline(always)]
    pub(crate) fn ended_plainly(&mut self, tag: Tag) -> bool {
        let Self { call, sets, .. } = self;
        let Some(command) = call.channels().asked_by(tag) else { return false };
        let Owner::Op(index) = command.owner else { return false };
        let set = sets.get_mut(command.set);
        let (has_bad, is_short) = (set.has_bad(), set.is_short_of_room());
        let member = set.member_mut(command.member());
        let is_plain = match command.op {
            DriveOp::Read => member.is_active(),
            DriveOp::Write { .. } => !has_bad && !is_short,
            DriveOp::Flush | DriveOp::Discard | DriveOp::WriteZeroes { .. } => false,
        };
        if !is_plain || call.keeps_steps() {
            return false;
        }
        // A flush that was issued during the write may not cover the write.
        if command.op != DriveOp::Read {
            member.note_written();
        }
        call.forget(tag);
        self.ops.command_ended(index);
        true
    }

    /// A command of an operation has ended. If it failed, this decides what that means for its member; for the
    /// operation see [`Controller::op_command_done`].
    pub(crate) fn on_op_command(
        &mut self,
        index: u32,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
    ) -> Option<CommandFailure> {
        self.trace_op(index, || command.ended_step(result.is_ok()));
        let set = self.sets.get_mut(command.set);
        let has_bad = set.has_bad();
        let member = set.member_mut(command.member());
        let result = match command.op {
            // A member that has failed meanwhile may have lost cached data, so its answers are not trusted. A member
            // that left for its replacement, or by an administrator's command, has everything.
            DriveOp::Read if !member.is_active() && !member.left_in_order() => {
                result.and(Err(CommandError::Drive(DriveError::Gone)))
            }
            DriveOp::Flush => {
                member.end_flush();
                result
            }
            DriveOp::Read => result,
            DriveOp::Write { .. } | DriveOp::WriteZeroes { .. } | DriveOp::Discard => {
                // A flush that was issued during the write may not cover the write. A write that ended with an error
                // may have been executed.
                member.note_written();
                // A range that is written back as it was is not better than before.
                let is_new = !self.ops[index].is_rewrite();
                if result.is_ok() && has_bad && is_new && command.op == (DriveOp::Write { fua: true }) {
                    self.sets.clear_bad(command.set, command.member(), command.lba, command.len);
                }
                if result.is_ok() && command.op != DriveOp::Discard {
                    self.note_room(command);
                }
                result
            }
        };
        result.err().and_then(|error| self.op_command_failed(index, command, error))
    }

    /// What the failure of a command means for its operation, which continues after its last command.
    pub(crate) fn op_command_done(&mut self, index: u32, command: &ChannelCommand, failure: Option<CommandFailure>) {
        match failure {
            None => {}
            Some(CommandFailure::Unread(error)) => self.unread(index, command, error),
            Some(CommandFailure::Unwritten(status)) if self.ops[index].refits(status) => {
                self.ops[index].refuse(command.slot, status);
            }
            Some(CommandFailure::Unwritten(status)) => {
                self.ops[index].fail(status);
                if !self.ops[index].is_rewrite() {
                    self.distrust_unwritten(index, command);
                }
            }
            Some(CommandFailure::Unflushed) => self.ops[index].fail(ReplyStatus::IoError),
        }
        self.ops.command_ended(index);
    }

    #[cold]
    fn op_command_failed(
        &mut self,
        index: u32,
        command: &ChannelCommand,
        error: CommandError,
    ) -> Option<CommandFailure> {
        match command.op {
            DriveOp::Read => {
                self.member_read_error(command, error);
                Some(CommandFailure::Unread(error))
            }
            DriveOp::Write { .. } | DriveOp::WriteZeroes { .. } => self.write_failed(index, command, error),
            DriveOp::Flush => self.flush_failed(command, error),
            DriveOp::Discard => self.discard_failed(index, command, error),
        }
    }

    /// A discard is advisory, but redundancy must match after it. If the other members read zeroes now, the member that
    /// refused gets zeroes, as data if it has no other way; if it refuses these too, it fails. On a mirror whose discarded blocks may read as anything,
    /// copies may differ, and the refusal has no consequence. A discard that was given up may still be executed over
    /// data that is written next, so its member fails.
    fn discard_failed(&mut self, index: u32, command: &ChannelCommand, error: CommandError) -> Option<CommandFailure> {
        let set = self.sets.get(command.set);
        let must_fit = set.is_redundant() && self.call.channels().discards_to_zeroes(set);
        let zeroes = self.call.channels().get(command.drive).is_some_and(|channel| channel.info().write_zeroes);
        match error {
            CommandError::Timeout if !must_fit => {
                self.fail_member((command.set, command.member()), FailReason::Timeout);
                None
            }
            CommandError::Drive(_) if !must_fit => None,
            CommandError::Drive(_) if self.call.planted().has(Flaw::DiscardRefusalIgnored) => None,
            CommandError::Drive(refused) if refused != DriveError::Gone && zeroes => {
                self.note(index, Reason::DiscardRefused, command.lba.get(), u32::from(command.slot.0));
                let zeroing = DriveOp::WriteZeroes { may_discard: false };
                self.push_op_command(index, ChannelCommand { op: zeroing, ..*command });
                None
            }
            CommandError::Drive(refused) if refused != DriveError::Gone && command.len <= ZERO_SECTORS => {
                self.note(index, Reason::DiscardRefused, command.lba.get(), u32::from(command.slot.0));
                self.write_zeroes_plainly(index, command);
                None
            }
            CommandError::Timeout | CommandError::Drive(_) => self.write_failed(index, command, error),
        }
    }

    /// An operation lacks the data of a read.
    fn unread(&mut self, index: u32, command: &ChannelCommand, error: CommandError) {
        let op = &mut self.ops[index];
        op.excluded.insert(command.slot);
        if error == CommandError::Timeout {
            op.frames_abandoned = true;
        }
        match op.kind {
            OpKind::Read => self.extent_unread(index, command, error),
            // These operations plan again, which decides how they continue: see `rows_unread`.
            OpKind::RowRead | OpKind::RowWrite | OpKind::RowDestage => {}
            OpKind::Rebuild | OpKind::Resync | OpKind::Scrub => {}
            OpKind::Move => {}
            OpKind::Write | OpKind::Discard | OpKind::Flush | OpKind::Destage | OpKind::Redo | OpKind::Reparity => {
                want_repair_of(self.sets, &self.ops[index], command);
            }
        }
    }

    /// An extent, or a part of it, could not be read from its place.
    fn extent_unread(&mut self, index: u32, command: &ChannelCommand, error: CommandError) {
        let (set, piece) = (self.ops[index].set, self.ops[index].piece());
        match self.ops[index].geometry(self.sets.get(set)) {
            Geometry::Mirror(_) if error != CommandError::Timeout => self.read_other_copy(index, command),
            Geometry::Mirror(_) | Geometry::Parity(_) if piece.is_some() => {
                // The piece is read again by rows, in other frames if needed: reads by rows can reconstruct.
                let piece = piece.expect("just seen");
                self.ended.report(OpReport::ReadAgain { piece, abandons_frames: error == CommandError::Timeout });
                self.note(index, Reason::ReadRetried, command.lba.get(), 0);
            }
            _ => self.ops[index].fail(ReplyStatus::IoError),
        }
    }

    /// Read from another copy. If all copies failed, each part is read by itself, because the copies may have failed in
    /// different sectors.
    fn read_other_copy(&mut self, index: u32, command: &ChannelCommand) {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let mirror = op.mirror(set);
        let Data::Frames(at) = command.data else { unreachable!("reads have frames") };
        let crate::io::state::op::OpPayload::Host(base) = op.payload else { unreachable!("reads have frames") };
        let block = set.block().sectors();
        let set_lba = op.extent().at + Bytes((at - base).get()).sectors_floor();
        // Its replacement may have taken the slot meanwhile, and was not tried.
        let tried = command.tried.copies();
        let tried = if is_in_slot(self.sets, command) { tried.with(command.slot) } else { tried };
        let other = mirror.copies(set_lba).find(|copy| {
            let end = MemberLba(copy.lba.get() + command.len.get());
            !tried.contains(copy.slot) && set.readable(op.side(), copy.lba, end).contains(copy.slot)
        });
        if let Some(copy) = other {
            want_repair_of(self.sets, &op, command);
            self.note(index, Reason::ReadRetried, copy.lba.get(), u32::from(copy.slot.0));
            let range = MemberRange { slot: copy.slot, lba: copy.lba, len: command.len, at };
            self.issue_read(index, range, tried);
        } else if command.len > block && self.call.channels().may_issue() {
            let part = Sectors(command.len.get().div_ceil(u64::from(SEARCH_WAYS)).next_multiple_of(block.get()));
            let mut from = Sectors::ZERO;
            while from < command.len {
                let len = part.min(command.len - from);
                let at = at + from.bytes();
                match first_readable_copy(self.sets.get(op.set), &op, set_lba + from, len) {
                    Some((slot, lba)) => {
                        let range = MemberRange { slot, lba, len, at };
                        self.issue_read(index, range, SlotSet::EMPTY);
                    }
                    None => self.ops[index].fail(ReplyStatus::IoError),
                }
                from += len;
            }
        } else {
            want_repair_of(self.sets, &op, command);
            self.ops[index].fail(ReplyStatus::IoError);
        }
    }

    fn write_failed(&mut self, index: u32, command: &ChannelCommand, error: CommandError) -> Option<CommandFailure> {
        let redundant = self.sets.get(command.set).is_redundant();
        let is_discard = self.ops[index].kind == OpKind::Discard;
        let zeroes = matches!(command.op, DriveOp::WriteZeroes { .. }) && !is_discard;
        if zeroes && error == CommandError::Drive(DriveError::Unsupported) {
            self.write_zeroes_plainly(index, command);
            return None;
        }
        let media = matches!(error, CommandError::Drive(DriveError::Media { .. }));
        if media && (self.call.planted().has(Flaw::RefusalIgnored) || self.write_again(index, command)) {
            return None;
        }
        let status = match error {
            CommandError::Drive(DriveError::NoSpace) => ReplyStatus::NoSpace,
            CommandError::Timeout | CommandError::Drive(_) => ReplyStatus::IoError,
        };
        if status == ReplyStatus::NoSpace && self.stays_without_room(index, command) {
            return Some(CommandFailure::Unwritten(status));
        }
        if error == CommandError::Timeout {
            // Its drive may still read the frames.
            self.ops[index].frames_abandoned = true;
        }
        let reason = match error {
            CommandError::Timeout => FailReason::Timeout,
            CommandError::Drive(DriveError::Gone) => FailReason::Gone,
            CommandError::Drive(DriveError::NoSpace) => FailReason::NoSpace,
            CommandError::Drive(DriveError::ReadOnly) => FailReason::ReadOnly,
            CommandError::Drive(DriveError::FlushFailed) => FailReason::FlushFailed,
            CommandError::Drive(DriveError::Media { .. }) => FailReason::WriteError,
            CommandError::Drive(DriveError::Protocol | DriveError::Unsupported) => FailReason::Protocol,
        };
        let failed = self.fail_member((command.set, command.member()), reason);
        (!redundant || !failed).then_some(CommandFailure::Unwritten(status))
    }

    /// Its storage is full: does it stay in the array, and the operation refit that? What it holds is intact. A member
    /// that is being filled leaves: no host has read from it yet.
    fn stays_without_room(&mut self, index: u32, command: &ChannelCommand) -> bool {
        let (op, set) = (&self.ops[index], self.sets.get(command.set));
        let member = set.member(command.member());
        if member.state() != MemberState::InSync || member.is_replacement() {
            return false;
        }
        if set.has_failed() {
            // Other rows were lost before, and it is as good as it was.
            return true;
        }
        let stays = match op.kind {
            OpKind::RowWrite | OpKind::RowDestage | OpKind::Write | OpKind::Destage | OpKind::Scrub => true,
            // The journal keeps its redos, and what a discard or a log lacks is not used: see `distrust_unwritten`.
            OpKind::Redo | OpKind::Discard | OpKind::Reparity => true,
            OpKind::Rebuild => op.is_sector_rewrite(),
            OpKind::Resync => {
                // The rest is made to agree, and this range is repaired when there is room.
                let at = member.in_data(op.side(), command.lba);
                self.sets.record_bad((command.set, op.side()), command.member(), at, command.len)
            }
            OpKind::Read | OpKind::RowRead | OpKind::Flush | OpKind::Move => false,
        };
        if stays {
            let range = range_of(command);
            self.sets.note_no_room((command.set, command.member()), range, &mut self.call);
        }
        stays
    }

    /// A write has succeeded: there may be room again.
    fn note_room(&mut self, command: &ChannelCommand) {
        if self.sets.get(command.set).is_short_of_room() {
            let range = range_of(command);
            self.sets.note_room((command.set, command.member()), range, &mut self.call);
        }
    }

    /// Repeat a failed write once if the array needs the member, because a missing part would make the parts on other
    /// members useless. A member that the array can do without fails instead: the layers below have retried often
    /// enough.
    fn write_again(&mut self, index: u32, command: &ChannelCommand) -> bool {
        if command.tried == Attempts::Once || !self.sets.is_needed(command.set, command.member()) {
            return false;
        }
        self.note(index, Reason::WriteRetried, command.lba.get(), u32::from(command.slot.0));
        self.push_op_command(index, ChannelCommand { tried: Attempts::Once, ..*command });
        true
    }
}

/// The first copy of an extent that can be read.
fn first_readable_copy(set: &Set, op: &Op, at: SetLba, len: Sectors) -> Option<(Slot, MemberLba)> {
    let Geometry::Mirror(mirror) = op.geometry(set) else { return None };
    let is_readable = |copy: &Fragment| set.readable(op.side(), copy.lba, copy.lba + len).contains(copy.slot);
    mirror.copies(at).find(is_readable).map(|copy| (copy.slot, copy.lba))
}

#[cfg(test)]
mod tests {
    use openraid_units::Token;

    use crate::actions::{DriveOp, NoticeKind, ReplyStatus};
    use crate::events::DriveError;
    use crate::io::steps::fixture::Drives;
    use crate::reason::FailReason;

    #[test]
    fn a_refused_write_fails_the_member_and_not_the_request_until_the_array_needs_the_member() {
        let mut drives = Drives::new();
        for (number, status) in [(1, ReplyStatus::Ok), (2, ReplyStatus::IoError)] {
            drives.write(Token(number), 0);
            let mut failed = None;
            while !drives.out.is_empty() {
                let is_write = |c: &crate::actions::DriveCommand| {
                    matches!(c.op, DriveOp::Write { .. }) && c.class == crate::actions::IoClass::Foreground
                };
                let first = drives.out.iter().find(|c| is_write(c) && failed.is_none_or(|drive| drive == c.drive));
                failed = failed.or(first.map(|command| command.drive));
                let tag = first.map(|command| command.tag);
                drives.answer(|c| if Some(c.tag) == tag { Err(DriveError::Protocol) } else { Ok(()) });
            }
            assert_eq!(drives.replies.pop(), Some((Token(number), status)));
        }
    }

    #[test]
    fn one_silent_command_condemns_its_drive_and_the_administrator_is_told_once() {
        let mut drives = Drives::new();
        drives.write(Token(1), 0);
        drives.answer_all();
        // They do not adjoin, so none waits for another.
        (2..6).for_each(|number| drives.write(Token(number), number * 8192));
        assert!(drives.out.len() >= 4);
        let silent = drives.out[0].drive;
        drives.out.retain(|command| command.drive != silent);
        drives.answer_all();
        drives.now = drives.now + crate::limits::Limits::small().command_timeout;
        drives.actions.clear();
        drives.controller.advance(drives.now, &mut drives.actions);
        let count = |kind| drives.actions.notices.iter().filter(|notice| notice.kind == kind).count();
        assert_eq!([count(NoticeKind::Timeout), count(NoticeKind::Fail(FailReason::Timeout))], [1, 1]);
    }
}
