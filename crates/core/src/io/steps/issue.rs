//! Commands of an operation to its members. What they have in common is looked up once for all of them, and each is
//! made in its final place.

use openraid_units::{DriveLba, MemberLba, PoolOffset, Sectors, Slot};

use crate::actions::{Data, DriveOp, IoClass};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::call::Call;
use crate::frames::Pool;
use crate::geometry::Geometry;
use crate::io::state::command::{Attempts, ChannelCommand, Hold, Owner};
use crate::io::state::op::{Op, OpKind, OpPayload, WorksFor};
use crate::io::state::ops::Ops;
use crate::io::steps::command_errors::MemberRange;
use crate::io::steps::op_io::OpIo;
use crate::planted::Flaw;
use crate::requests::Requests;
use crate::slab::Key;
use crate::slot_set::SlotSet;

/// The operation whose commands are made, and the frames to which they may point.
#[derive(Clone, Copy)]
pub(super) struct Issuer<'a> {
    index: u32,
    op: &'a Op,
    ops: &'a Ops,
    requests: &'a Requests,
    class: IoClass,
    /// The start of the work area.
    work_from: u64,
}

impl<'a> Issuer<'a> {
    #[inline(always)]
    pub(super) fn new(ops: &'a Ops, pool: &Pool, requests: &'a Requests, index: u32) -> Self {
        let op = &ops[index];
        Self { index, op, ops, requests, class: class_of(op), work_from: pool.work_from() }
    }

    /// The frames to which a command at this place of the pool points: those of the operation, of its parent, or of its
    /// piece.
    #[inline(always)]
    pub(super) fn hold(&self, at: PoolOffset) -> Option<Hold> {
        if at.get() >= self.work_from {
            let work = self.op.work();
            let parent = self.op.parent().and_then(|parent| self.ops[parent].work());
            parent.filter(|run| work.is_none() || run.holds(at)).or(work).map(Hold::Work)
        } else {
            self.op.piece().and_then(|piece| self.requests.piece(piece).run()).map(Hold::Host)
        }
    }

    /// A read from the member in a slot.
    #[inline(always)]
    fn read(&self, set: &mut Set, range: MemberRange, tried: SlotSet) -> ChannelCommand {
        let member_index = set.place(range.slot).member().expect("a readable slot has a member");
        let member = set.member_mut(member_index);
        member.count_read(range.len);
        ChannelCommand {
            op: DriveOp::Read,
            lba: member.on_drive(self.op.side, range.lba),
            len: range.len,
            data: Data::Frames(range.at),
            class: self.class,
            tried: Attempts::Copies(tried),
            hold: self.hold(range.at),
            ..ChannelCommand::new(Owner::Op(self.index), self.op.set, member_index, range.slot, member.drive())
        }
    }

    /// A write to a member, unless the member takes no writes.
    #[inline(always)]
    fn write(&self, set: &mut Set, member_index: u32, range: MemberRange) -> Option<ChannelCommand> {
        let has_bad = set.has_bad();
        let member = set.member_mut(member_index);
        if !member.is_active() {
            return None;
        }
        // What its log calls bad may be called good only when new content is there for certain.
        let fua = self.op.is_fua() || (has_bad && member.is_bad(self.op.side, range.lba, range.len));
        member.note_written();
        member.count_write(range.len);
        Some(ChannelCommand {
            op: DriveOp::Write { fua },
            lba: member.on_drive(self.op.side, range.lba),
            len: range.len,
            data: Data::Frames(range.at),
            class: self.class,
            hold: self.hold(range.at),
            ..ChannelCommand::new(Owner::Op(self.index), self.op.set, member_index, range.slot, member.drive())
        })
    }
}

/// Write zeroes to a member, without payload if its drive can make them; true if it takes writes.
#[cold]
fn write_zeroes(
    by: Issuer<'_>,
    (set, call): (&mut Set, &mut Call<'_>),
    member_index: u32,
    (slot, lba, len): (Slot, MemberLba, Sectors),
) -> bool {
    let range = MemberRange { slot, lba, len, at: PoolOffset::ZERO };
    let Some(mut command) = by.write(set, member_index, range) else { return false };
    let can_zero = call.channels().get(command.drive).is_some_and(|drive| drive.info().write_zeroes);
    if can_zero && command.op == (DriveOp::Write { fua: false }) {
        let may_discard = by.op.payload == OpPayload::Zero { may_discard: true };
        (command.op, command.data, command.hold) = (DriveOp::WriteZeroes { may_discard }, Data::None, None);
    }
    send_op_command(by.ops, call, by.index, command);
    true
}

/// The class of its commands.
pub(super) fn class_of(op: &Op) -> IoClass {
    match op.kind {
        _ if op.is_part_of_move() => IoClass::Rebuild,
        OpKind::Redo if op.redo().is_awaited => IoClass::Foreground,
        OpKind::Redo => IoClass::Destage,
        OpKind::Rebuild | OpKind::Resync | OpKind::Reparity | OpKind::Move => IoClass::Rebuild,
        OpKind::Destage | OpKind::RowDestage => IoClass::Destage,
        OpKind::Scrub => IoClass::Scrub,
        OpKind::Read | OpKind::RowRead if matches!(op.works_for, WorksFor::Ahead(_)) => IoClass::ReadAhead,
        OpKind::Read | OpKind::RowRead | OpKind::Write | OpKind::RowWrite | OpKind::Discard | OpKind::Flush => {
            IoClass::Foreground
        }
    }
}

/// A command without payload to one member.
pub(super) fn plain_command(sets: &Sets, ops: &Ops, index: u32, member_index: u32) -> ChannelCommand {
    let op = &ops[index];
    let member = sets.get(op.set).member(member_index);
    let (slot, class) = (member.slot().unwrap_or_default(), class_of(op));
    ChannelCommand { class, ..ChannelCommand::new(Owner::Op(index), op.set, member_index, slot, member.drive()) }
}

/// Send a command of an operation. The caller counts it.
#[inline(always)]
fn send_op_command(ops: &Ops, call: &mut Call<'_>, index: u32, command: ChannelCommand) {
    let cut = call.planted().has(Flaw::AddressCut);
    let lba = if cut { DriveLba(command.lba.get() & u64::from(u32::MAX)) } else { command.lba };
    let (key, waits) = call.send(ChannelCommand { lba, ..command });
    if call.keeps_steps() {
        trace_asked(ops, call, index, key, waits);
    }
}

#[cold]
fn trace_asked(ops: &Ops, call: &mut Call<'_>, index: u32, key: Key, waits: bool) {
    let step = call.channels().commands[key.index].asked_step(waits);
    call.trace().op(ops, index, || step);
}

impl OpIo<'_> {
    pub(super) fn push_op_command(&mut self, index: u32, command: ChannelCommand) {
        self.ops[index].pending += 1;
        send_op_command(self.ops, &mut self.call, index, command);
    }

    /// Read from the member in a slot. The caller has chosen a readable slot.
    pub(crate) fn issue_read(&mut self, index: u32, range: MemberRange, tried: SlotSet) {
        self.issue_reads(index, core::iter::once(range.slot), |_, _| range, tried);
    }

    /// Read from the members in some slots, all of them readable; `range_of` gives the range of each.
    #[inline(always)]
    pub(crate) fn issue_reads(
        &mut self,
        index: u32,
        slots: impl Iterator<Item = Slot>,
        range_of: impl Fn(&Geometry, Slot) -> MemberRange,
        tried: SlotSet,
    ) {
        let Self { sets, ops, call, .. } = self;
        let by = Issuer::new(ops, self.pool, self.requests, index);
        let set = sets.get_mut(by.op.set);
        let mut count = 0;
        for slot in slots {
            let range = range_of(set.shape().on(by.op.side), slot);
            send_op_command(ops, call, index, by.read(set, range, tried));
            count += 1;
        }
        ops[index].pending += count;
    }

    /// Write to a slot: its member, unless it takes no writes, and its replacement. Returns the number of commands.
    pub(crate) fn issue_write(&mut self, index: u32, range: MemberRange) -> u32 {
        self.issue_writes(index, core::iter::once(range.slot), |_, _| range)
    }

    /// Write to some places, such as slots: `range_of` gives the range of each. Returns the number of commands.
    #[inline(always)]
    pub(crate) fn issue_writes<P>(
        &mut self,
        index: u32,
        places: impl Iterator<Item = P>,
        range_of: impl Fn(&Geometry, P) -> MemberRange,
    ) -> u32 {
        let Self { sets, ops, call, .. } = self;
        let by = Issuer::new(ops, self.pool, self.requests, index);
        let set = sets.get_mut(by.op.set);
        let mut count = 0;
        for place in places {
            let range = range_of(set.shape().on(by.op.side), place);
            let members = set.place(range.slot);
            for member in members.each() {
                if range.at == PoolOffset::ZERO {
                    let by = Issuer::new(ops, self.pool, self.requests, index);
                    let place = (range.slot, range.lba, range.len);
                    count += u32::from(write_zeroes(by, (set, call), member, place));
                } else if let Some(command) = by.write(set, member, range) {
                    send_op_command(ops, call, index, command);
                    count += 1;
                }
            }
        }
        ops[index].pending += count;
        count
    }

    /// Write to one member of a slot, unless it takes no writes.
    pub(crate) fn issue_write_to(&mut self, index: u32, member_index: u32, range: MemberRange) {
        let Self { sets, ops, call, .. } = self;
        let by = Issuer::new(ops, self.pool, self.requests, index);
        let set = sets.get_mut(by.op.set);
        if range.at == PoolOffset::ZERO {
            let place = (range.slot, range.lba, range.len);
            ops[index].pending += u32::from(write_zeroes(by, (set, call), member_index, place));
        } else if let Some(command) = by.write(set, member_index, range) {
            self.push_op_command(index, command);
        }
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::SetId;

    use super::*;
    use crate::io::state::footprint::Footprint;
    use crate::io::state::op::{KindData, RedoData, RedoReads};

    #[test]
    fn work_for_hosts_goes_before_destage_and_destage_before_rebuild() {
        let of_kind = |kind| class_of(&Op::new(kind, SetId(0), Footprint::Set));
        let kinds = [OpKind::Read, OpKind::RowWrite, OpKind::Flush, OpKind::RowDestage, OpKind::Rebuild, OpKind::Scrub];
        let (host, destage) = (IoClass::Foreground, IoClass::Destage);
        assert_eq!(kinds.map(of_kind), [host, host, host, destage, IoClass::Rebuild, IoClass::Scrub]);
        // A redo goes with destage until an operation waits for it.
        for (is_awaited, wanted) in [(false, destage), (true, host)] {
            let data = KindData::Redo(RedoData { first: 0, count: 1, reads: RedoReads::Going(0), is_awaited });
            assert_eq!(class_of(&Op { data, ..Op::new(OpKind::Redo, SetId(0), Footprint::Set) }), wanted);
        }
    }
}
