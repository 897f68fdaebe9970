//! Operations on drives that answer in the test. The controller only holds the components: it never advances.

extern crate std;

use std::vec;
use std::vec::Vec;

use openraid_units::{ArrayId, ArrayOffset, DriveId, Instant, PoolOffset, Sectors, SetLba, Slot, StripeIndex, Token};

use super::*;
use crate::actions::Actions;
use crate::actions::{DriveCommand, DriveOp, JobKind, ReplyStatus};
use crate::array::active_mark::Intent;
use crate::array::awaited_changes::AwaitedChange;
use crate::array::fixture::metadata;
use crate::array::set::Set;
use crate::controller::Controller;
use crate::events::CommandError;
use crate::events::{BlockRequest, DriveError, ParityVerdict, RequestKind};
use crate::geometry::shape::Side;
use crate::geometry::{Level, SetSpec};
use crate::io::state::ended::OpReport;
use crate::io::state::footprint::{Columns, Extent, StripeRows};
use crate::io::state::op::{HostRange, Op, OpPayload};
use crate::io::state::search::Part;
use crate::io::state::wait::Wait;
use crate::io::steps::gate::tests::drive_of;
use crate::io::steps::step::on_job;
use crate::limits::Limits;

const SET: SetId = SetId(0);
const CHUNK: Sectors = Sectors(8);
const PAYLOAD: OpPayload = OpPayload::Host(PoolOffset(1 << 20));

/// What operations use, and a set of four members.
struct Desk {
    controller: Controller,
    actions: Actions,
}

impl Desk {
    fn new(level: Level) -> Self {
        let (limits, member_size) = (Limits::small(), Sectors(64));
        let layout = if level == Level::Raid1 { 0 } else { 2 };
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level, members: 4, chunk: CHUNK, layout, member_size, member_sizes };
        let mut controller = Controller::new(limits).expect("the limits hold");
        let mut set = Set::with_members(&spec);
        if level != Level::Raid0 {
            set.metadata = Some(metadata());
            set.mark.set(Intent::Active);
        }
        controller.ops.begin_set(SET, set.slots());
        controller.sets.put(SET, set);
        assert!((0..4).all(|drive| controller.base.channels.attach(DriveId(drive), drive_of(Sectors(4096)))));
        Self { actions: Actions::new(controller.limits()), controller }
    }

    fn io(&mut self) -> OpIo<'_> {
        self.controller.op_io(&mut self.actions)
    }

    /// Put an operation for a piece of its own into the table.
    fn put(&mut self, op: Op) -> u32 {
        let kind = if op.is_direct_write() { RequestKind::Write { fua: false } } else { RequestKind::Read };
        let request = BlockRequest { token: Token(1), array: ArrayId(0), kind, offset: ArrayOffset(0), len: 4096 };
        let piece = self.controller.requests.put_piece(request, self.controller.pool.host_mut().take(4096));
        let set = self.controller.sets.get_mut(SET);
        let key = self.controller.ops.begin(set, op.for_piece(piece, false, false));
        self.controller.ops.wake(key.index);
        piece
    }

    /// Let an operation begin, and take the commands that it issues.
    fn begin(&mut self, op: Op) -> Vec<DriveCommand> {
        self.put(op);
        self.step()
    }

    /// Advance all operations that can continue; computations end at once. Returns the commands of the drives.
    fn step(&mut self) -> Vec<DriveCommand> {
        while let Some(index) = self.controller.ops.next_ready() {
            assert_eq!(self.io().step_from(index), None);
            for job in core::mem::take(&mut self.actions.jobs) {
                on_job(&mut self.controller.ops, &mut self.controller.base.trace, job.tag, ParityVerdict::Done);
            }
        }
        core::mem::take(&mut self.actions.drive)
    }

    /// The drives have executed these commands.
    fn done(&mut self, commands: &[DriveCommand]) -> Vec<DriveCommand> {
        assert!(commands.iter().all(|command| self.io().ended_plainly(command.tag)));
        self.step()
    }

    /// A drive has refused a command.
    fn refused(&mut self, command: &DriveCommand, error: DriveError) -> Vec<DriveCommand> {
        let answered = self.controller.base.channels.answered(Instant::ZERO, command.tag, &mut self.actions);
        let crate::io::state::command::Owner::Op(op) = answered.owner() else { panic!("a command of an operation") };
        let failure = self.io().on_op_command(op, &answered, Err(CommandError::Drive(error)));
        self.io().op_command_done(op, &answered, failure);
        self.step()
    }

    /// The end that an operation has left for its piece, with the error.
    fn end(&mut self) -> Option<Option<ReplyStatus>> {
        let mut found = None;
        while let Some(report) = self.controller.ended.take_report() {
            if let OpReport::Failed(_, error) = report {
                found = Some(error);
            }
        }
        self.controller.ended.pop_piece().map(|_| found)
    }
}

/// Rows of the first stripe of a RAID 5 of four members: data in slots 0 to 2, parity in slot 3.
fn rows(first: u16, count: u16) -> HostRange {
    let columns = Columns::Named { first, count };
    HostRange::Rows(StripeRows { side: Side::Old, stripe: StripeIndex(0), part: Part::whole(0, 8), columns })
}

/// Reads or writes, by drive.
fn seen(commands: &[DriveCommand]) -> Vec<(u16, bool)> {
    let mut seen: Vec<_> = commands.iter().map(|command| (command.drive.0, command.op == DriveOp::Read)).collect();
    seen.sort_unstable();
    seen
}

#[test]
fn a_full_stripe_is_written_without_reads_and_its_request_gets_the_end() {
    let mut desk = Desk::new(Level::Raid5);
    let writes = desk.begin(Op::write(SET, rows(0, 3), PAYLOAD, None));
    assert_eq!(seen(&writes), [(0, false), (1, false), (2, false), (3, false)]);
    assert_eq!(desk.end(), None);
    assert!(desk.done(&writes).is_empty());
    assert_eq!((desk.end(), desk.controller.ops.len(), desk.controller.ops.locks().is_empty()), (Some(None), 0, true));
}

#[test]
fn one_column_of_three_is_written_with_its_parity_after_the_others_were_read() {
    let mut desk = Desk::new(Level::Raid5);
    let reads = desk.begin(Op::write(SET, rows(1, 1), PAYLOAD, None));
    assert_eq!(seen(&reads), [(0, true), (2, true)]);
    let writes = desk.done(&reads);
    assert_eq!(seen(&writes), [(1, false), (3, false)]);
    desk.done(&writes);
    assert_eq!(desk.end(), Some(None));
    assert_eq!(
        desk.controller.pool.work().free_frames(),
        Pool::new(desk.controller.limits()).work().free_frames(),
        "its buffers are free"
    );
}

#[test]
fn a_second_write_of_a_row_waits_for_the_end_of_the_first() {
    let mut desk = Desk::new(Level::Raid5);
    let first = desk.begin(Op::write(SET, rows(0, 3), PAYLOAD, None));
    assert!(desk.begin(Op::write(SET, rows(0, 3), PAYLOAD, None)).is_empty());
    let second = desk.done(&first);
    assert_eq!((desk.end(), second.len()), (Some(None), 4));
    desk.done(&second);
    assert_eq!(desk.end(), Some(None));
}

#[test]
fn a_column_that_cannot_be_read_is_computed_from_the_others() {
    let mut desk = Desk::new(Level::Raid5);
    let read = desk.begin(Op::read(SET, rows(2, 1), PAYLOAD));
    assert_eq!(seen(&read), [(2, true)]);
    let lba = read[0].lba;
    let others = desk.refused(&read[0], DriveError::Media { lba });
    assert_eq!(seen(&others), [(0, true), (1, true), (3, true)]);
    others.iter().for_each(|command| assert!(desk.io().ended_plainly(command.tag)));
    let index = desk.controller.ops.next_ready().unwrap();
    desk.io().step_from(index);
    let jobs = core::mem::take(&mut desk.actions.jobs);
    assert_eq!(jobs.iter().map(|job| job.kind).collect::<Vec<_>>(), [JobKind::Recover { lost: 1 }]);
    on_job(&mut desk.controller.ops, &mut desk.controller.base.trace, jobs[0].tag, ParityVerdict::Done);
    assert!(desk.step().is_empty());
    assert_eq!(desk.end(), Some(None));
}

#[test]
fn a_mirror_is_read_from_another_copy_and_a_set_without_redundancy_has_none() {
    for (level, retries) in [(Level::Raid1, 1), (Level::Raid0, 0)] {
        let mut desk = Desk::new(level);
        let extent = HostRange::Extent(Extent { side: Side::Old, at: SetLba(0), len: Sectors(8) });
        let read = desk.begin(Op::read(SET, extent, PAYLOAD));
        let lba = read[0].lba;
        let again = desk.refused(&read[0], DriveError::Media { lba });
        assert_eq!(again.len(), retries, "{level:?}");
        assert!(again.iter().all(|command| command.drive != read[0].drive));
        desk.done(&again);
        assert_eq!(desk.end(), Some((retries == 0).then_some(ReplyStatus::IoError)));
    }
}

#[test]
fn a_piece_whose_member_is_gone_is_reported_for_reading_by_rows() {
    let mut desk = Desk::new(Level::Raid5);
    desk.controller.sets.get_mut(SET).fail_slot(Slot(0), FailReason::Gone);
    let extent = HostRange::Extent(Extent { side: Side::Old, at: SetLba(0), len: Sectors(8) });
    assert!(desk.begin(Op::read(SET, extent, PAYLOAD)).is_empty());
    assert_eq!(desk.controller.ended.take_report(), Some(OpReport::ReadAgain { piece: 0, abandons_frames: false }));
    assert_eq!(
        (desk.controller.ended.take_report(), desk.controller.ended.pop_piece()),
        (None, Some(0)),
        "it has no error"
    );
}

#[test]
fn a_write_that_a_member_refuses_ends_when_the_failure_is_recorded_or_with_an_error_if_the_set_needs_the_member() {
    let refused_by = |level| {
        let mut desk = Desk::new(level);
        let extent = HostRange::Extent(Extent { side: Side::Old, at: SetLba(0), len: Sectors(8) });
        let mut writes = desk.begin(Op::write(SET, extent, PAYLOAD, None));
        let refused = writes.remove(0);
        desk.refused(&refused, DriveError::Protocol);
        desk.done(&writes);
        assert!(desk.controller.sets.has_signal(), "other parts learn that the member has failed");
        desk
    };
    assert_eq!(refused_by(Level::Raid0).end(), Some(Some(ReplyStatus::IoError)));
    let mut mirror = refused_by(Level::Raid1);
    assert_eq!(mirror.end(), None);
    assert_eq!(mirror.controller.ops.iter().map(|(_, op)| op.wait).collect::<Vec<_>>(), [Some(Wait::ReplyMark)]);
    mirror.controller.sets.get_mut(SET).metadata.as_mut().unwrap().set_failure(0);
    mirror.controller.sets.changed(SET, AwaitedChange::Marks);
    mirror.controller.ops.wake_changed(&mut mirror.controller.sets);
    assert!(mirror.step().is_empty());
    assert_eq!(mirror.end(), Some(None));
}

#[test]
fn operations_advance_together_until_one_has_ended() {
    let mut desk = Desk::new(Level::Raid0);
    let extent = |at| HostRange::Extent(Extent { side: Side::Old, at: SetLba(at), len: Sectors(8) });
    let ops = [0, 8, 16].map(|at| Op::read(SET, extent(at), PAYLOAD));
    ops.into_iter().for_each(|op| _ = desk.put(op));
    let first = desk.controller.ops.next_ready().unwrap();
    desk.io().step_from(first);
    let reads = core::mem::take(&mut desk.actions.drive);
    assert_eq!((seen(&reads), desk.controller.ops.has_ready()), (vec![(0, true), (1, true), (2, true)], false));
    reads.iter().for_each(|command| assert!(desk.io().ended_plainly(command.tag)));
    for left in [2, 1, 0] {
        let next = desk.controller.ops.next_ready().unwrap();
        desk.io().step_from(next);
        assert_eq!(
            (desk.controller.ops.len(), desk.end()),
            (left, Some(None)),
            "an end is handed on before the next one moves"
        );
    }
}
