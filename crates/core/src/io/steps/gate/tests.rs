//! The rules of the write gate, one by one and in their order, on a RAID 5 with a bitmap.

extern crate std;

use std::vec;
use std::vec::Vec;

use openraid_format::{MdLevel, MinorVersion, SetName, Timestamp, Uuid};
use openraid_units::{BlockSize, Bytes, DriveId, Instant, Nanos, Sectors, SetId, Slot, StripeIndex, Token};

use crate::actions::Actions;
use crate::admin_answer::AdminOutcome;
use crate::array::active_mark::Intent;
use crate::array::assemble::Assembly;
use crate::array::new_array::{plan, CreateSpec, NewDrive};
use crate::controller::AdminCommand;
use crate::controller::Controller;
use crate::events::{Completion, DriveInfo};
use crate::geometry::shape::Side;
use crate::io::state::command::{ChannelCommand, Owner};
use crate::io::state::footprint::{Columns, Footprint, StripeRows};
use crate::io::state::op::Partial;
use crate::io::state::op::{BackgroundData, EntryState, KindData, Op, OpKind, Phase};
use crate::io::state::search::Part;
use crate::io::state::wait::Wait;
use crate::io::state::wait::{Gate, Hindrance};
use crate::io::steps::gate::open_if;
use crate::io::steps::op_io::OpIo;
use crate::journal::set_journal::{Demand, SetState, Share};
use crate::limits::Limits;
use crate::slot_set::SlotSet;

const SET: SetId = SetId(0);
/// The waits in the order of their rules.
const ORDER: [Wait; 7] =
    [Wait::Session, Wait::ActiveMark, Wait::Bitmap, Wait::FailureMark, Wait::Entry, Wait::Record, Wait::Commands];
/// The waits that may hold a kind of operation, in order.
const KINDS: [(OpKind, &[Wait]); 6] = [
    (OpKind::RowWrite, &ORDER),
    (
        OpKind::RowDestage,
        // Rule 5 holds it while the session changes: rule 1 does not apply.
        &[Wait::ActiveMark, Wait::Bitmap, Wait::FailureMark, Wait::Entry, Wait::Session, Wait::Record, Wait::Commands],
    ),
    (OpKind::Discard, &[Wait::ActiveMark, Wait::Bitmap, Wait::FailureMark, Wait::Record, Wait::Commands]),
    (OpKind::Resync, &[Wait::ActiveMark, Wait::Bitmap, Wait::Commands]),
    (OpKind::Scrub, &[Wait::ActiveMark, Wait::Bitmap, Wait::Commands]),
    (OpKind::Rebuild, &[Wait::Commands]),
];

/// A controller with an array at rest, and one operation that is ready to write.
struct Bench {
    controller: Controller,
    actions: Actions,
    op: u32,
}

/// A controller with a RAID 5 of three drives with a bitmap, at rest.
pub(in crate::io) fn array_at_rest() -> (Controller, Actions) {
    let (controller, actions, assembly) = three_drives(&Limits::small(), false);
    started(controller, actions, assembly)
}

/// A controller with three drives, and a new RAID 5 of them that was not started: with a partial parity log or with a
/// bitmap.
pub(in crate::io) fn three_drives(limits: &Limits, ppl: bool) -> (Controller, Actions, Assembly) {
    let (mut controller, actions) = (Controller::new(limits.clone()).unwrap(), Actions::new(limits));
    let capacity = Bytes::mib(1024).sectors_floor();
    let drives: Vec<DriveId> = (0..3).map(DriveId).collect();
    for drive in &drives {
        controller.admin(Token(0), AdminCommand::AttachDrive { drive: *drive, info: drive_of(capacity) });
    }
    let new = |drive: &DriveId| NewDrive { drive: *drive, capacity, uuid: Uuid([drive.0.to_le_bytes()[0] + 1; 16]) };
    let spec = CreateSpec {
        uuid: Uuid([9; 16]),
        name: SetName::new(None, "gate").unwrap(),
        created: Timestamp::new(0, 0),
        level: MdLevel::Raid5,
        layout: 2,
        chunk: Sectors::kib(64),
        minor: MinorVersion::V1_2,
        slots: drives.iter().map(|drive| Some(new(drive))).collect(),
        spares: vec![],
        size: None,
        assume_clean: true,
        bitmap: !ppl,
        ppl,
    };
    (controller, actions, plan(&spec).unwrap())
}

/// A drive of this size.
pub(in crate::io) const fn drive_of(capacity: Sectors) -> DriveInfo {
    DriveInfo {
        capacity,
        block: BlockSize::B512,
        rotational: true,
        discard: true,
        discard_zeroes: true,
        write_zeroes: true,
        room_wait: Nanos::ZERO,
        flush_waits: false,
    }
}

/// Start the array; all drives answer until it is at rest.
pub(in crate::io) fn started(
    mut controller: Controller,
    actions: Actions,
    assembly: Assembly,
) -> (Controller, Actions) {
    controller.admin(Token(1), AdminCommand::StartSet(assembly));
    let mut bench = Bench { controller, actions, op: 0 };
    bench.rest();
    (bench.controller, bench.actions)
}

impl Bench {
    fn new(kind: OpKind) -> Self {
        let (controller, actions) = array_at_rest();
        let mut this = Self { controller, actions, op: 0 };
        let columns = match kind {
            OpKind::RowWrite => Columns::Named { first: 0, count: 1 },
            OpKind::RowDestage => Columns::Dirty { band: SlotSet::EMPTY, next: 0 },
            _ => Columns::All,
        };
        let rows = StripeRows { side: Side::Old, stripe: StripeIndex(1), part: Part::whole(0, 8), columns };
        let op = Op {
            phase: Phase::Logging,
            data: KindData::Background(BackgroundData::new(SlotSet::EMPTY, None, false)),
            ..Op::new(kind, SET, Footprint::Rows(rows))
        };
        this.op = this.controller.ops.put(op).index;
        this.controller.sets.get_mut(SET).mark.set(Intent::Active);
        this.release(Wait::Bitmap);
        this
    }

    /// Let all drives answer until no command is left.
    fn rest(&mut self) {
        let mut started = false;
        loop {
            self.actions.clear();
            self.controller.advance(Instant::ZERO, &mut self.actions);
            started |= self.actions.admin.iter().any(|reply| matches!(reply.result, Ok(AdminOutcome::Started(_))));
            if self.actions.drive.is_empty() {
                break;
            }
            for command in &self.actions.drive {
                self.controller.complete(Completion::Drive { tag: command.tag, result: Ok(()) });
            }
        }
        assert!(started, "the array runs");
    }

    fn io(&mut self) -> OpIo<'_> {
        self.controller.op_io(&mut self.actions)
    }

    fn pass(&mut self) -> Gate {
        let op = self.op;
        self.io().pass_write_gate(op)
    }

    fn ask(&mut self) -> Gate {
        let op = self.op;
        self.io().ask_write_gate(op)
    }

    /// Make the condition of a rule false.
    fn hold(&mut self, wait: Wait) {
        let set = self.controller.sets.get_mut(SET);
        let op = &mut self.controller.ops[self.op];
        match wait {
            Wait::Session => set.journal.set_state(SetState::Settling),
            Wait::ActiveMark => set.mark.set(Intent::Marking(u64::MAX)),
            Wait::Bitmap => set.bitmap.as_mut().unwrap().touch_all(),
            Wait::FailureMark => set.metadata.as_mut().unwrap().set_failure(u64::MAX),
            Wait::Entry => op.entry = EntryState::AwaitsData,
            Wait::Record => op.partial = Partial::Waiting,
            Wait::Commands => {
                let commands = &mut self.controller.base.channels.commands;
                while commands.room() > 0 {
                    commands.put(ChannelCommand::new(Owner::Op(self.op), SET, 0, Slot(0), DriveId(0)));
                }
            }
            _ => unreachable!("no rule of the gate on an array without a journal"),
        }
    }

    /// Make the condition of a rule true.
    fn release(&mut self, wait: Wait) {
        let set = self.controller.sets.get_mut(SET);
        let op = &mut self.controller.ops[self.op];
        match wait {
            Wait::Session => set.journal.set_state(SetState::Off(Demand::None)),
            Wait::ActiveMark => set.mark.set(Intent::Active),
            Wait::Bitmap => {
                let bitmap = set.bitmap.as_mut().unwrap();
                bitmap.begin(0, u64::MAX);
                bitmap.end(0, u64::MAX);
                while let Some(page) = bitmap.next_page() {
                    bitmap.page_issued(page, 0);
                }
            }
            Wait::FailureMark => set.metadata.as_mut().unwrap().set_failure(0),
            Wait::Entry => op.entry = EntryState::None,
            Wait::Record => op.partial = Partial::No,
            Wait::Commands => {
                let commands = &mut self.controller.base.channels.commands;
                let all: Vec<u32> = commands.iter().map(|(index, _)| index).collect();
                all.into_iter().for_each(|index| commands.free(index));
            }
            _ => unreachable!("no rule of the gate on an array without a journal"),
        }
    }
}

#[test]
fn a_write_passes_if_nothing_holds_it() {
    for (kind, _) in KINDS {
        assert_eq!(Bench::new(kind).ask(), Ok(()), "{kind:?}");
    }
}

#[test]
fn each_rule_alone_holds_the_kinds_of_operations_that_it_applies_to() {
    for (kind, rules) in KINDS {
        for wait in ORDER {
            let mut bench = Bench::new(kind);
            bench.hold(wait);
            let wanted = open_if(!rules.contains(&wait), wait);
            assert_eq!(bench.ask(), wanted, "{kind:?} held by {wait:?}");
            bench.release(wait);
            assert_eq!(bench.ask(), Ok(()), "{kind:?} released from {wait:?}");
        }
    }
}

#[test]
fn an_operation_that_everything_holds_waits_for_one_rule_after_the_other() {
    for (kind, rules) in KINDS {
        let mut bench = Bench::new(kind);
        ORDER.into_iter().for_each(|wait| bench.hold(wait));
        for wait in rules {
            assert_eq!(bench.ask(), Err(Hindrance::Waits(*wait)), "{kind:?}");
            bench.release(*wait);
        }
        assert_eq!(bench.ask(), Ok(()), "{kind:?}");
    }
}

#[test]
fn a_write_that_waits_for_its_session_is_not_counted_as_a_writer() {
    let mut bench = Bench::new(OpKind::RowWrite);
    bench.hold(Wait::ActiveMark);
    assert_eq!(bench.ask(), Err(Hindrance::Waits(Wait::ActiveMark)));
    assert!(bench.controller.sets.get(SET).mark.has_writers());
    bench.hold(Wait::Session);
    assert_eq!(bench.ask(), Err(Hindrance::Waits(Wait::Session)));
    assert!(!bench.controller.sets.get(SET).mark.has_writers());
}

#[test]
fn a_write_waits_in_the_queue_that_its_wait_names() {
    for (wait, queue) in [
        (Wait::Session, &["for a change of the set"][..]),
        (Wait::ActiveMark, &["for a change of the set"][..]),
        (Wait::Bitmap, &["for a change of the set"][..]),
        (Wait::FailureMark, &["for a change of the set"][..]),
        (Wait::Entry, &[]),
        (Wait::Record, &[]),
        (Wait::Commands, &["for commands"]),
    ] {
        let mut bench = Bench::new(OpKind::RowWrite);
        bench.hold(wait);
        assert_eq!(bench.pass(), Err(Hindrance::Waits(wait)));
        let queues = bench.controller.ops.queues();
        let found: Vec<_> = queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(name, _)| *name).collect();
        assert_eq!(found, queue, "{wait:?}");
    }
}

#[test]
fn an_operation_that_waits_for_something_available_is_found() {
    for wait in [Wait::Session, Wait::ActiveMark, Wait::Bitmap, Wait::FailureMark] {
        let mut bench = Bench::new(OpKind::RowWrite);
        bench.hold(wait);
        assert!(bench.pass().is_err());
        assert_eq!(bench.io().find_forgotten(), None, "{wait:?}");
        // The condition is met, but no event has ended the wait.
        bench.release(wait);
        assert_eq!(bench.io().find_forgotten(), Some((bench.op, wait)));
    }
    // The same after the write.
    let mut bench = Bench::new(OpKind::RowWrite);
    bench.hold(Wait::FailureMark);
    let op = bench.op;
    assert!(!bench.io().pass_reply_gate(op));
    assert_eq!(bench.io().find_forgotten(), None);
    bench.release(Wait::FailureMark);
    assert_eq!(bench.io().find_forgotten(), Some((bench.op, Wait::ReplyMark)));
}

#[test]
fn a_failed_array_and_one_whose_members_take_no_record_refuse_the_write() {
    let mut bench = Bench::new(OpKind::RowWrite);
    bench.controller.sets.get_mut(SET).fail();
    assert_eq!(bench.ask(), Err(Hindrance::Failed));
    // A member whose superblock could not be written, and that the array cannot do without.
    let mut bench = Bench::new(OpKind::RowWrite);
    let set = bench.controller.sets.get_mut(SET);
    set.make_stale(0);
    assert_eq!(bench.ask(), Err(Hindrance::Failed));
    // A rebuild needs no mark.
    let mut bench = Bench::new(OpKind::Rebuild);
    let set = bench.controller.sets.get_mut(SET);
    set.make_stale(0);
    assert_eq!(bench.ask(), Ok(()));
}

#[test]
fn without_its_journal_a_write_waits_until_the_superblocks_call_the_journal_stale() {
    let mut bench = Bench::new(OpKind::RowWrite);
    bench.controller.sets.get_mut(SET).journal.make_on(Share::new(Uuid([7; 16]), 0, 1));
    assert_eq!(bench.ask(), Err(Hindrance::Waits(Wait::StaleMark)));
    assert_eq!(bench.ask(), Err(Hindrance::Waits(Wait::StaleMark)), "the mark is asked for once");
    let set = bench.controller.sets.get_mut(SET);
    let (asked, metadata) = (set.journal.stale().unwrap(), set.metadata.as_mut().unwrap());
    metadata.make_durable(asked);
    assert_eq!(bench.ask(), Ok(()));
}
