//! A drive is gone, and the driver knows it before any command meets it: nothing is written or read, and still what uses the
//! drive goes on without it at once.

use crate::support::journalled::Journalled;
use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, AdminError, Health, JournalLoss, JournalState};
use openraid_core::admin::{MemberState, MemberStatus, NewMember};
use openraid_core::array::new_array::{superblock_for_new_member, NewDrive};
use openraid_core::events::DriveError;
use openraid_core::reason::FailReason;
use openraid_format::Uuid;
use openraid_sim::drive::Faults;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{DriveId, DriveLba, Nanos, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);
const GONE: MemberState = MemberState::Faulty(FailReason::Gone);

fn lose(rig: &mut Rig, drive: DriveId) {
    rig.world.pull(drive);
    rig.world.admin(AdminCommand::Lose { drive }).expect("it is attached");
}

/// The notices of failed members since the last call.
fn failures(rig: &mut Rig) -> Vec<(Option<DriveId>, NoticeKind)> {
    let notices = rig.world.take_notices();
    let is_failure = |kind| matches!(kind, NoticeKind::Fail(_) | NoticeKind::Degraded { .. } | NoticeKind::Failed);
    notices.iter().filter(|notice| is_failure(notice.kind)).map(|notice| (notice.drive, notice.kind)).collect()
}

fn state_of(rig: &Rig, drive: DriveId) -> MemberState {
    let is_it = |member: &&MemberStatus| member.drive == Some(drive);
    rig.status().members.iter().find(is_it).expect("it is listed").state
}

/// Begins faults of a drive.
type Begin = fn(&mut Faults);

/// An array with a member that has failed for this reason after its faults began.
fn failed_by(begin: Begin, reason: FailReason) -> (Rig, DriveId) {
    let mut rig = Rig::new(ArrayShape::raid5(4, CHUNK), RigOptions::new(6));
    rig.rest();
    let drive = rig.drive_in(Slot(2)).expect("it works");
    begin(&mut rig.world.drive_mut(drive).faults);
    let load = Workload { range: 0..512 << 10, ..Workload::mixed(rig.session.capacity()) };
    rig.world.take_notices();
    rig.session.run(&mut rig.world, &load, 200);
    rig.world.run_for(Nanos::from_secs(10));
    let wanted = [NoticeKind::Fail(reason), NoticeKind::Degraded { tolerated: 0 }];
    assert_eq!(failures(&mut rig), wanted.map(|kind| (Some(drive), kind)));
    (rig, drive)
}

fn add_spare(rig: &mut Rig) -> DriveId {
    let drive = rig.new_drive();
    let array = rig.world.status(rig.array).and_then(|status| status.superblock).expect("it has one");
    let capacity = rig.world.drive(drive).spec().capacity;
    let superblock =
        superblock_for_new_member(&array, &NewDrive { drive, capacity, uuid: Uuid([7; 16]) }).expect("it fits");
    let member = NewMember { drive, superblock, returning: false };
    rig.world.admin(AdminCommand::Add { array: rig.array, member }).expect("it fits");
    drive
}

#[test]
fn an_idle_member_that_is_gone_is_failed_once_and_the_spare_takes_over() {
    let mut rig = Rig::new(ArrayShape::raid5(4, CHUNK), RigOptions::new(3));
    rig.rest();
    let spare = add_spare(&mut rig);
    rig.rest();
    let lost = rig.drive_in(Slot(1)).expect("it works");
    rig.world.take_notices();
    lose(&mut rig, lost);
    let wanted = [NoticeKind::Fail(FailReason::Gone), NoticeKind::Degraded { tolerated: 0 }];
    assert_eq!(failures(&mut rig), wanted.map(|kind| (Some(lost), kind)));
    // Messages may be doubled.
    rig.world.admin(AdminCommand::Lose { drive: lost }).expect("it is attached");
    assert_eq!(failures(&mut rig), []);
    rig.rest();
    assert_eq!((rig.health(), rig.drive_in(Slot(1))), (Health::Optimal, Some(spare)));
    rig.world.admin(AdminCommand::Lose { drive: lost }).expect("it is attached");
    assert_eq!((rig.health(), failures(&mut rig)), (Health::Optimal, Vec::new()));
    rig.judge();
    rig.judge_redundancy();
    let unknown = DriveId(200);
    assert_eq!(rig.world.admin(AdminCommand::Lose { drive: unknown }), Err(AdminError::NoSuchDrive(unknown)));
}

#[test]
fn errors_of_commands_that_a_removal_follows_are_part_of_the_removal() {
    // Linux answers commands of a device that is being removed with EIO, and removes the device a moment later.
    let causes: [(Begin, FailReason); 4] = [
        (|faults| faults.writes = Some(DriveError::Media { lba: DriveLba(0) }), FailReason::WriteError),
        (|faults| faults.writes = Some(DriveError::ReadOnly), FailReason::ReadOnly),
        (|faults| faults.flushes = true, FailReason::FlushFailed),
        (|faults| faults.reads = true, FailReason::ErrorBudget),
    ];
    for (begin, reason) in causes {
        let (mut rig, lost) = failed_by(begin, reason);
        lose(&mut rig, lost);
        let notices = rig.world.take_notices();
        let told = notices.iter().map(|notice| (notice.slot, notice.drive, notice.kind)).collect::<Vec<_>>();
        assert_eq!(told, [(Some(Slot(2)), Some(lost), NoticeKind::Fail(FailReason::Gone))], "a member, and no spare");
        rig.rest();
        assert_eq!((rig.health(), state_of(&rig, lost)), (Health::Degraded, GONE));
        assert_eq!(failures(&mut rig), []);
        rig.judge();
    }
}

#[test]
fn the_first_of_two_drives_that_are_pulled_is_gone_even_if_the_second_failed_the_array() {
    let (mut rig, first) = failed_by(|faults| faults.writes = Some(DriveError::ReadOnly), FailReason::ReadOnly);
    let second = rig.drive_in(Slot(0)).expect("it works");
    lose(&mut rig, second);
    assert_eq!(rig.health(), Health::Failed);
    lose(&mut rig, first);
    assert_eq!([first, second].map(|drive| state_of(&rig, drive)), [GONE; 2]);
}

#[test]
fn older_reasons_and_an_order_s_reason_stay_when_the_drive_is_pulled() {
    let (mut rig, lost) = failed_by(|faults| faults.writes = Some(DriveError::ReadOnly), FailReason::ReadOnly);
    let array = rig.array;
    rig.world.run_for(Nanos::from_secs(61));
    lose(&mut rig, lost);
    assert_eq!((state_of(&rig, lost), failures(&mut rig)), (MemberState::Faulty(FailReason::ReadOnly), Vec::new()));
    let mut rig = Rig::new(ArrayShape::raid6(5, CHUNK), RigOptions::new(7));
    rig.rest();
    let drive = rig.drive_in(Slot(0)).expect("it works");
    rig.world.admin(AdminCommand::Fail { array, drive, unsynced: false }).expect("it may fail");
    rig.rest();
    rig.world.take_notices();
    lose(&mut rig, drive);
    assert_eq!(failures(&mut rig), []);
    assert_eq!(state_of(&rig, drive), MemberState::Faulty(FailReason::Administrator));
}

#[test]
fn a_spare_that_is_gone_is_failed_and_an_array_without_redundancy_loses_its_drive() {
    let mut rig = Rig::new(ArrayShape::raid1(2), RigOptions::new(4));
    rig.rest();
    let spare = add_spare(&mut rig);
    rig.rest();
    lose(&mut rig, spare);
    rig.rest();
    assert_eq!((rig.health(), state_of(&rig, spare)), (Health::Optimal, GONE));
    let drives = [0, 1].map(|slot| rig.drive_in(Slot(slot)).expect("it works"));
    for drive in drives {
        lose(&mut rig, drive);
        rig.rest();
        assert_eq!(state_of(&rig, drive), GONE);
    }
    assert_eq!(rig.health(), Health::Failed);
    rig.world.take_notices();
    rig.world.admin(AdminCommand::Lose { drive: drives[0] }).expect("it is attached");
    assert_eq!(failures(&mut rig), [], "a failed array stays as it is");
}

#[test]
fn drives_that_go_under_load_take_no_acknowledged_write_with_them() {
    for seed in seeds(40, 4000) {
        let shape =
            [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(3)][(seed % 3) as usize];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 2 == 0, ..RigOptions::new(seed) });
        rig.rest();
        let load = Workload { range: 0..512 << 10, ..Workload::mixed(rig.session.capacity()) };
        rig.session.run_on(&mut rig.world, &load, 30);
        (0..6).for_each(|_| _ = rig.session.ask_random(&mut rig.world, &load));
        let steps = u32::try_from(rig.random.below(30)).expect("few");
        rig.rest_or(steps);
        let slot = Slot(u16::try_from(rig.random.below(u64::from(shape.members))).expect("few"));
        let lost = rig.drive_in(slot).expect("it works");
        lose(&mut rig, lost);
        rig.session.run(&mut rig.world, &load, 30);
        rig.rest();
        assert_eq!((rig.health(), state_of(&rig, lost)), (Health::Degraded, GONE));
        rig.judge();
    }
}

#[test]
fn a_journal_device_that_is_gone_is_left_and_without_any_writes_are_not_protected() {
    let mut machine = Journalled::new(ArrayShape::raid5(3, CHUNK), 5, false, 2);
    let [first, second] = [machine.devices[0], machine.devices[1]];
    let load = Workload { range: 0..512 << 10, ..Workload::mixed(machine.rig.session.capacity()) };
    machine.rig.session.run(&mut machine.rig.world, &load, 30);
    let kinds =
        |rig: &mut Rig| rig.world.take_notices().iter().map(|notice| (notice.drive, notice.kind)).collect::<Vec<_>>();
    kinds(&mut machine.rig);
    lose(&mut machine.rig, first);
    machine.rig.rest();
    assert!(kinds(&mut machine.rig).contains(&(Some(first), NoticeKind::JournalDegraded)));
    machine.rig.session.run(&mut machine.rig.world, &load, 30);
    lose(&mut machine.rig, second);
    machine.rig.rest();
    assert!(kinds(&mut machine.rig).contains(&(Some(second), NoticeKind::JournalLost)));
    let state = machine.rig.world.journal().expect("it had one").state;
    assert_eq!(state, JournalState::Lost(JournalLoss::Device));
    machine.rig.session.run(&mut machine.rig.world, &load, 30);
    machine.rig.rest();
    machine.rig.judge();
}
