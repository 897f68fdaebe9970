//! Promises that cannot be kept: flushes that fail on members that the array needs, and losses that no log can name.
//! The answer is an error, and remains one.

use crate::support::journalled::Journalled;
use crate::support::{seeds, Case};
use openraid_core::actions::{NoticeKind, ReplyStatus};
use openraid_core::admin::{AdminCommand, Health, MemberState, Session};
use openraid_core::array::assemble::AssembleError;
use openraid_core::events::{DriveError, RequestKind};
use openraid_core::geometry::{Geometry, Level};
use openraid_core::reason::FailReason;
use openraid_sim::drive::Defect;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::oracle::Members;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, MemberLba, Nanos, Sectors, Slot, StripeIndex};

const CHUNK: Sectors = Sectors::kib(16);

fn drive_in(rig: &Rig, slot: u16) -> DriveId {
    rig.drive_in(Slot(slot)).expect("the slot has a member")
}

/// Run until a flush has failed on a member that the array needs.
#[track_caller]
fn run_into_doubt(rig: &mut Rig) {
    while !rig.world.take_notices().iter().any(|notice| notice.kind == NoticeKind::FlushFailed) {
        assert!(rig.world.step(), "a flush fails");
    }
}

fn write_and_flush(rig: &mut Rig) -> Result<(), ReplyStatus> {
    let bytes = vec![7; 64 << 10];
    rig.world.write(rig.array, 0, &bytes).unwrap();
    rig.world.flush(rig.array)
}

#[test]
fn a_flush_that_failed_on_a_member_that_is_needed_is_never_forgotten() {
    for shape in [
        ArrayShape::new(Level::Raid0, 2, 2, CHUNK),
        ArrayShape::raid5(4, CHUNK),
        ArrayShape::raid1(2),
        ArrayShape::raid10(0x102, 4, CHUNK),
    ] {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions::new(1));
        if shape.is_redundant() {
            rig.lose(Slot(0), Loss::Failed);
        }
        rig.rest();
        let needed = drive_in(&rig, 1);
        rig.world.drive_mut(needed).faults.flushes = true;
        rig.world.take_notices();
        assert_eq!(write_and_flush(&mut rig), Err(ReplyStatus::IoError));
        let count = rig.world.take_notices().iter().filter(|n| n.kind == NoticeKind::FlushFailed).count();
        assert_eq!(count, 1);
        // The drive works again, but the data that it had promised before stays in doubt.
        rig.world.drive_mut(needed).faults.flushes = false;
        for _ in 0..3 {
            assert_eq!(rig.world.flush(rig.array), Err(ReplyStatus::IoError));
            assert_eq!(write_and_flush(&mut rig), Err(ReplyStatus::IoError));
            rig.run_for(Nanos::from_secs(10));
        }
        assert_eq!(rig.world.take_notices().iter().filter(|n| n.kind == NoticeKind::FlushFailed).count(), 0);
        // The array can be stopped, and the next start sees that it was not clean.
        let result = rig.world.admin(AdminCommand::Stop { array: rig.array });
        result.unwrap_or_else(|error| panic!("the array does not stop: {error}"));
        if shape.is_redundant() {
            let superblock = superblock_on(&rig.world, needed).unwrap();
            assert_eq!(superblock.resync_position(), Some(Sectors::ZERO), "it was marked clean");
        }
        rig.world.boot();
        rig.array = rig.world.assemble(true).unwrap();
        assert_eq!(write_and_flush(&mut rig), Ok(()));
    }
}

/// After a failed flush, drives and kernels drop the writes that it covered. The next flush succeeds, even one already
/// under way.
#[test]
fn a_flush_concurrent_with_a_failed_one_fails_too() {
    for shape in [ArrayShape::new(Level::Raid0, 2, 2, CHUNK), ArrayShape::raid5(4, CHUNK)] {
        for seed in seeds(20, 100) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            if shape.is_redundant() {
                rig.lose(Slot(0), Loss::Failed);
            }
            rig.rest();
            let needed = drive_in(&rig, 1);
            rig.world.write(rig.array, 0, &vec![7; 64 << 10]).unwrap();
            rig.world.drive_mut(needed).faults.flushes = true;
            rig.world.take_notices();
            let flushes = [0; 2].map(|_| rig.world.submit(rig.array, RequestKind::Flush, 0, 0, Vec::new()));
            run_into_doubt(&mut rig);
            rig.world.drive_mut(needed).faults.flushes = false;
            assert_eq!(flushes.map(|token| rig.world.run_until(token).status), [ReplyStatus::IoError; 2]);
        }
    }
}

/// Data that the journal has acknowledged and a member has dropped is written from the journal at the next start of the
/// array. A member that is filled from that member before would lack the data.
#[test]
fn no_member_is_filled_from_one_whose_flush_failed_while_the_journal_holds_its_dropped_data() {
    for shape in [ArrayShape::raid1(2), ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK)] {
        for seed in seeds(10, 60) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, false, 1);
            for slot in 0..machine.rig.geometry_losses() {
                machine.rig.lose(Slot(slot), Loss::Failed);
            }
            machine.rig.rest();
            let needed = drive_in(&machine.rig, shape.members - 1);
            machine.rig.world.take_notices();
            let load =
                Workload { align: 4096, mix: [0, 1, 0, 0, 0], ..Workload::mixed(machine.rig.session.capacity()) };
            // All requests are answered while the journal protects the array.
            machine.rig.session.run(&mut machine.rig.world, &load, 30);
            machine.rig.world.drive_mut(needed).faults.flushes = true;
            run_into_doubt(&mut machine.rig);
            machine.rig.world.drive_mut(needed).faults.flushes = false;
            let drive = machine.rig.new_drive();
            machine.rig.world.add_member(machine.rig.array, drive).unwrap();
            machine.rig.run_for(Nanos::from_secs(60));
            assert_ne!(machine.rig.state_of(Slot(0)), MemberState::InSync);
            let replace = AdminCommand::Replace { array: machine.rig.array, slot: Slot(shape.members - 1), with: None };
            let refused = machine.rig.world.admin(replace).expect_err("no member is filled from it");
            assert!(refused.to_string().contains("restart the server"), "{refused}");
            assert_eq!(machine.rig.status().session, Session::On);
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.boot();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            assert_eq!(machine.rig.state_of(Slot(0)), MemberState::InSync);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.judge_members();
        }
    }
}

/// The mark that an array is active did not reach the only member. A crash would not be detected, so no data is
/// written.
#[test]
fn a_record_that_the_last_member_refuses_does_not_count() {
    for shape in [ArrayShape::raid5(3, CHUNK), ArrayShape::raid1(2)] {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions::new(1));
        rig.lose(Slot(0), Loss::Failed);
        rig.rest();
        rig.world.take_notices();
        let needed = drive_in(&rig, 1);
        rig.world.drive_mut(needed).faults.writes = Some(DriveError::ReadOnly);
        assert_eq!(rig.world.write(rig.array, 0, &[1; 4096]), Err(ReplyStatus::IoError));
        let notices = rig.world.take_notices();
        assert_eq!(notices.iter().filter(|notice| notice.kind == NoticeKind::FlushFailed).count(), 1, "{notices:?}");
        rig.world.drive_mut(needed).faults.writes = None;
        assert_eq!(rig.world.write(rig.array, 0, &[2; 4096]), Err(ReplyStatus::IoError));
        assert_eq!(rig.world.flush(rig.array), Err(ReplyStatus::IoError));
        assert!(rig.world.read(rig.array, 0, 4096).is_ok(), "what is there can still be had");
        rig.world.kill();
        rig.world.boot();
        rig.array = rig.world.assemble(true).unwrap();
        assert_eq!(write_and_flush(&mut rig), Ok(()));
    }
}

/// The mark of a session with the journal did not reach a needed member. The session stays, and no flush relies on it.
#[test]
fn a_flush_does_not_rely_on_a_journal_that_no_member_names() {
    let shape = ArrayShape::new(Level::Raid0, 2, 2, CHUNK);
    let mut machine = Journalled::new(shape, 1, false, 1);
    let rig = &mut machine.rig;
    let needed = drive_in(rig, 1);
    rig.world.take_notices();
    rig.world.drive_mut(needed).faults.next_write = Some(DriveError::ReadOnly);
    assert_eq!(rig.world.write(rig.array, 0, &[1; 4096]), Err(ReplyStatus::IoError));
    let notices = rig.world.take_notices();
    assert_eq!(notices.iter().filter(|notice| notice.kind == NoticeKind::FlushFailed).count(), 1, "{notices:?}");
    assert_eq!(rig.status().session, Session::On, "it is not what this is about");
    for _ in 0..3 {
        assert_eq!(rig.world.flush(rig.array), Err(ReplyStatus::IoError));
    }
    machine.cut();
    assert_eq!(write_and_flush(&mut machine.rig), Ok(()));
}

#[test]
fn an_array_whose_flushes_fail_is_not_marked_clean() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let mut rig = Rig::new(shape, RigOptions::new(1));
    rig.rest();
    for slot in 0..4 {
        let drive = drive_in(&rig, slot);
        rig.world.drive_mut(drive).faults.flushes = true;
    }
    rig.world.write(rig.array, 0, &[1; 4096]).unwrap();
    rig.run_for(Nanos::from_secs(30));
    assert!(rig.status().active, "{}", rig.world.dump());
    assert_eq!(rig.health(), Health::Degraded, "the first member whose flush failed is out");
    rig.world.kill();
    rig.world.boot();
    match rig.world.assemble(false) {
        Err(ArrayStartError::Assemble(AssembleError::DirtyDegraded { .. })) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_array_without_redundancy_that_lost_a_member_has_failed() {
    for level in [Level::Raid0, Level::Linear] {
        let layout = if level == Level::Raid0 { 2 } else { 0 };
        let mut rig = Rig::new(ArrayShape::new(level, layout, 3, CHUNK), RigOptions::new(1));
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        rig.lose(Slot(1), Loss::Pulled);
        let capacity = rig.session.capacity();
        let mut failed = 0;
        for at in (0..capacity).step_by(16 << 10) {
            failed += u32::from(rig.world.read(rig.array, at, 4096).is_err());
        }
        assert_eq!(rig.health(), Health::Failed, "{}", rig.world.dump());
        // The data of the other members can still be saved.
        assert!(failed > 0 && u64::from(failed) <= capacity / (16 << 10) / 2);
    }
}

/// A write changes an unreadable sector of a degraded RAID 5. Without the old content, the parity of the row cannot be
/// computed, and must not be used to reconstruct. The write is answered after the parity member's bad-block log on disk
/// records that.
#[test]
fn a_parity_that_cannot_be_made_is_in_the_log_before_the_write_is_answered() {
    for seed in seeds(40, 400) {
        let shape = ArrayShape::raid5(4, CHUNK);
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        rig.rest();
        rig.lose(Slot(0), Loss::Failed);
        rig.rest();
        let members = Members::of(&rig.world, rig.array);
        let (drive, lba) = members.place(Slot(2), MemberLba(3)).unwrap();
        let Geometry::Parity(parity) = members.geometry() else { unreachable!("a parity set") };
        let row = parity.row(StripeIndex(0));
        let column = (0..3).find(|column| row.slot_of(*column) == Slot(2)).expect("slot 2 has data in this row");
        let (offset, p) = (parity.set_lba(StripeIndex(0), column, Sectors(3)), row.p_slot());
        rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(1), Defect::UntilWritten);
        let bytes = vec![9; 512];
        rig.world.write(rig.array, offset.get() * 512, &bytes).unwrap();
        rig.world.cut_power();
        rig.world.boot();
        rig.array = rig.world.assemble(true).unwrap();
        let known = rig.world.controller().bad_ranges(rig.array);
        assert!(
            known.iter().any(|(slot, range)| *slot == Some(p) && range.at == MemberLba(3)),
            "{known:?}\n{}",
            rig.world.dump()
        );
    }
}

#[test]
fn a_rebuild_that_loses_more_sectors_than_the_log_can_name_gives_the_new_member_up() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let mut rig = Rig::new(shape, RigOptions::new(1));
    rig.rest();
    rig.lose(Slot(0), Loss::Failed);
    rig.rest();
    for at in (0..600).map(|n| n * 4) {
        let (drive, lba) = Members::of(&rig.world, rig.array).place(Slot(1), MemberLba(at)).unwrap();
        rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(1), Defect::UntilWritten);
    }
    let drive = rig.new_drive();
    rig.world.add_member(rig.array, drive).unwrap();
    rig.world.take_notices();
    rig.rest();
    assert_eq!(rig.state_of(Slot(0)), MemberState::Missing, "{}", rig.world.dump());
    assert_eq!(rig.health(), Health::Degraded);
    let notices = rig.world.take_notices();
    assert!(notices.iter().any(|n| n.kind == NoticeKind::Fail(FailReason::BadBlockLogFull)), "{notices:?}");
}
