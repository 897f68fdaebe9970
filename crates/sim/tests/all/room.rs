//! The storage of members is full: sparse files on a full file system, thin volumes. No acknowledged data is lost, no
//! member fails, and everything works again when there is room.

use crate::support::journalled::Journalled;
use crate::support::{seeds, Case};
use openraid_core::actions::{NoticeKind, ReplyStatus};
use openraid_core::admin::{AdminCommand, Health, MemberState, MemberStatus, Policy};
use openraid_core::events::{DriveError, RequestKind};
use openraid_core::geometry::Level;
use openraid_sim::drive::DriveRoom;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{Bytes, Nanos, Sectors, Slot};

/// Much longer than the pause before members are tried again.
const LATER: Nanos = Nanos::from_secs(60);

fn load(rig: &Rig) -> Workload {
    Workload { len_max: 64 << 10, ..Workload::mixed(rig.session.capacity()) }
}

/// Arrays, and how many members each of them loses first.
fn shapes(seed: u64) -> (ArrayShape, u16) {
    let kib = Sectors::kib;
    let all = [
        (ArrayShape::raid5(3, kib(16)), 0),
        (ArrayShape::raid5(4, kib(16)), 1),
        (ArrayShape::raid5(5, kib(64)), 0),
        (ArrayShape::raid6(4, kib(16)), 0),
        (ArrayShape::raid6(5, kib(16)), 1),
        (ArrayShape::raid6(6, kib(32)), 2),
        (ArrayShape::raid5(3, kib(16)), 1),
        (ArrayShape::raid1(2), 0),
        (ArrayShape::raid1(3), 0),
        (ArrayShape::raid1(3), 1),
        (ArrayShape::raid10(0x102, 4, kib(16)), 0),
        (ArrayShape::raid10(0x201, 4, kib(16)), 0),
        (ArrayShape::raid10(0x1_0201, 5, kib(32)), 0),
        (ArrayShape::raid10(0x103, 5, kib(16)), 1),
    ];
    all[usize::try_from(seed).unwrap() % all.len()]
}

/// Let some of the working members have little room, and return their drives.
fn fill(rig: &mut Rig, seed: u64) -> Vec<openraid_units::DriveId> {
    let working = (0..rig.shape.members).filter(|slot| rig.drive_in(Slot(*slot)).is_some()).count();
    let subset = rig.random.between(1, (1 << working) - 1);
    fill_with(rig, seed, subset)
}

/// The same, for the working members whose bits are set in `subset`.
fn fill_with(rig: &mut Rig, seed: u64, subset: u64) -> Vec<openraid_units::DriveId> {
    let working: Vec<_> = (0..rig.shape.members).map(Slot).filter_map(|slot| rig.drive_in(slot)).collect();
    let mut full = Vec::new();
    for (number, drive) in working.into_iter().enumerate() {
        if subset >> number & 1 == 0 {
            continue;
        }
        let superblock = superblock_on(&rig.world, drive).expect("it is a member");
        let area = superblock.data_offset..superblock.data_offset + superblock.data_size;
        let left = rig.random.below(40);
        rig.world.drive_mut(drive).faults.room = Some(DriveRoom::half(area, seed + number as u64, left));
        full.push(drive);
    }
    full
}

/// These drives have room again, and the array notices it.
fn make_room(rig: &mut Rig, full: Vec<openraid_units::DriveId>) {
    for drive in full {
        rig.world.drive_mut(drive).faults.room = None;
    }
    rig.world.run_for(LATER);
    let status = rig.status();
    let mut members = status.members.iter().filter(|member| member.slot.is_some());
    let is_well = members.all(|member| !member.is_full && member.bad_blocks == 0);
    assert!(is_well, "{}", rig.world.dump());
}

/// Cut the power, and start again. The journal protects nothing until a resync is finished.
fn start_again(machine: &mut Journalled) {
    machine.rig.session.cut_power(&mut machine.rig.world);
    machine.rig.world.boot();
    machine.attach();
    machine.assemble();
}

#[test]
fn a_lack_of_room_loses_nothing_and_ends_by_itself() {
    let (mut refused, mut noticed) = (0, 0);
    for seed in seeds(140, 2100) {
        let (shape, lost) = shapes(seed);
        let _case = Case::new(seed, shape);
        let ppl = shape.level == Level::Raid5 && seed % 3 == 1;
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 3 == 0, ppl, ..RigOptions::new(seed) });
        let load = load(&rig);
        // A write over several columns, one of which is missing, may lose its part of the missing one.
        let load = if lost > 0 { Workload { len_max: 16 << 10, ..load } } else { load };
        rig.session.run(&mut rig.world, &load, 60);
        (0..lost).for_each(|slot| _ = rig.lose(Slot(slot), Loss::Failed));
        rig.session.run(&mut rig.world, &load, 20);
        let states = |rig: &Rig| rig.status().members.iter().map(|member| member.state).collect::<Vec<_>>();
        let before = states(&rig);
        rig.session.tolerate_errors = true;
        for turn in 0..3 {
            let full = fill(&mut rig, seed * 100 + turn * 10);
            let errors = rig.session.errors;
            rig.session.run_on(&mut rig.world, &load, 40);
            rig.session.drain(&mut rig.world);
            refused += rig.session.errors - errors;
            let errors = rig.session.errors;
            rig.session.look_at_all(&mut rig.world);
            rig.session.drain(&mut rig.world);
            assert_eq!(rig.session.errors, errors, "all of it is still there\n{}", rig.world.dump());
            assert_eq!(states(&rig), before, "no member fails");
            make_room(&mut rig, full);
            let notices = rig.world.take_notices();
            let count = |kind| notices.iter().filter(|notice| notice.kind == kind).count();
            assert_eq!(count(NoticeKind::NoRoom), count(NoticeKind::RoomAgain), "{notices:#?}");
            noticed += count(NoticeKind::NoRoom);
        }
        rig.session.tolerate_errors = false;
        rig.session.run(&mut rig.world, &load, 60);
        rig.judge();
        assert_eq!(states(&rig), before);
    }
    assert!(refused > 200 && noticed > 100, "{refused} requests were refused, and {noticed} notices given");
}

#[test]
fn the_host_is_told_that_there_is_no_room_and_writes_that_need_none_go_on() {
    let mut rig = Rig::new(ArrayShape::raid5(3, Sectors::kib(64)), RigOptions::new(1));
    for (offset, byte) in [(0, 0x11), (64 << 10, 0x22)] {
        rig.world.write(rig.array, offset, &[byte; 4096]).expect("there is room");
    }
    let drive = rig.drive_in(Slot(0)).expect("it works");
    let superblock = superblock_on(&rig.world, drive).expect("it is a member");
    // The first chunk of the member has room, the others have none.
    let area = superblock.data_offset + Sectors::kib(64)..superblock.data_offset + superblock.data_size;
    rig.world.drive_mut(drive).faults.room = Some(DriveRoom { one_in: 1, ..DriveRoom::half(area, 2, 0) });
    let write = |rig: &mut Rig, chunk: u64| rig.world.write(rig.array, chunk * (64 << 10), &[0x33; 4096]);
    assert_eq!(write(&mut rig, 0), Ok(()));
    // Two data chunks a stripe: each stripe needs room on the member, for data or for parity.
    let ends: Vec<_> = (2..8).map(|chunk| write(&mut rig, chunk)).collect();
    assert!(ends.contains(&Err(ReplyStatus::NoSpace)) && !ends.contains(&Err(ReplyStatus::IoError)), "{ends:?}");
    assert_eq!(rig.state_of(Slot(0)), MemberState::InSync);
    assert!(rig.status().members[0].is_full);
    assert_eq!(rig.world.read(rig.array, 64 << 10, 4096), Ok(vec![0x22; 4096]));
    make_room(&mut rig, vec![drive]);
    (2..8).for_each(|chunk| assert_eq!(write(&mut rig, chunk), Ok(())));
}

/// All members are full. The data is in the cache, and in the journal if there is one.
#[test]
fn dirty_data_without_room_stays_in_the_cache_until_there_is_room() {
    let kib = Sectors::kib;
    let shapes = [
        ArrayShape::raid5(4, kib(16)),
        ArrayShape::raid1(2),
        ArrayShape::raid10(0x102, 4, kib(16)),
        ArrayShape::raid6(5, kib(16)),
    ];
    let mut refused = 0;
    for seed in seeds(8, 80) {
        let shape = shapes[usize::try_from(seed).unwrap() % shapes.len()];
        let _case = Case::new(seed, shape);
        let mut machine = Journalled::new(shape, seed, seed % 2 == 0, 1);
        let rig = &mut machine.rig;
        let load = Workload { mix: [30, 60, 2, 0, 2], ..load(rig) };
        rig.session.run(&mut rig.world, &load, 60);
        let full = fill_with(rig, seed * 100, u64::MAX);
        rig.session.tolerate_errors = true;
        rig.session.run_on(&mut rig.world, &load, 60);
        rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
        rig.session.drain(&mut rig.world);
        refused += std::mem::take(&mut rig.session.errors);
        rig.session.look_at_all(&mut rig.world);
        rig.session.drain(&mut rig.world);
        assert_eq!(rig.session.errors, 0, "all of it is still there\n{}", rig.world.dump());
        assert!(rig.status().members.iter().all(|member| member.state == MemberState::InSync));
        make_room(rig, full);
        rig.session.tolerate_errors = false;
        rig.session.run(&mut rig.world, &load, 60);
        rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
        rig.judge();
        assert_eq!(rig.health(), Health::Optimal);
    }
    assert!(refused > 0, "no request was refused");
}

/// The power fails while all members are full. What the journal holds for them stays there until there is room.
#[test]
fn a_replay_without_room_is_done_when_there_is_room() {
    let mut unstarted = 0;
    for seed in seeds(8, 80) {
        let shape =
            if seed % 2 == 0 { ArrayShape::raid5(4, Sectors::kib(16)) } else { ArrayShape::raid6(5, Sectors::kib(16)) };
        let _case = Case::new(seed, shape);
        let mut machine = Journalled::new(shape, seed, seed % 4 < 2, 1);
        let load = Workload { len_max: 4096, align: 4096, mix: [0, 1, 0, 0, 0], ..load(&machine.rig) };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 400);
        let full = fill_with(&mut machine.rig, seed * 100, u64::MAX);
        for drive in &full {
            machine.rig.world.drive_mut(*drive).faults.room.as_mut().expect("it is full").left = 0;
        }
        machine.rig.session.cut_power(&mut machine.rig.world);
        machine.rig.world.boot();
        machine.attach();
        if let Ok(array) = machine.rig.world.assemble(false) {
            (machine.rig.array, machine.rig.session.array) = (array, array);
            machine.rig.world.run_for(LATER);
        }
        let status = machine.rig.world.status(machine.rig.array);
        let is_in_sync = |member: &MemberStatus| member.state == MemberState::InSync;
        assert!(status.iter().flat_map(|status| &status.members).all(is_in_sync), "{}", machine.rig.world.dump());
        unstarted += u64::from(status.is_none_or(|status| status.health != Health::Optimal));
        for drive in full {
            machine.rig.world.drive_mut(drive).faults.room = None;
        }
        start_again(&mut machine);
        machine.rig.rest();
        machine.rig.judge();
        assert_eq!(machine.rig.health(), Health::Optimal);
    }
    assert!(unstarted > 0, "every array was started");
}

/// Writes past the cache are refused, and others of the same rows are not. The journal has records of all of them when the
/// server ends.
#[test]
fn refused_rows_that_the_journal_has_are_consistent_after_the_next_start() {
    let mut refused = 0;
    for seed in seeds(24, 240) {
        let shapes = [ArrayShape::raid5(4, Sectors::kib(4)), ArrayShape::raid6(5, Sectors::kib(4))];
        let shape = shapes[usize::try_from(seed).unwrap() % shapes.len()];
        let _case = Case::new(seed, shape);
        let mut machine = Journalled::made(
            shape,
            RigOptions { bitmap: seed % 4 < 2, bitmap_chunk: Some(4096), ..RigOptions::new(seed) },
            1,
            Bytes::kib(128),
        );
        let load = Workload { len_max: 16 << 10, ..load(&machine.rig) };
        machine.rig.session.run(&mut machine.rig.world, &load, 30);
        let full = fill(&mut machine.rig, seed * 100);
        machine.rig.session.tolerate_errors = true;
        machine.rig.session.run_on(&mut machine.rig.world, &load, 120);
        refused += std::mem::take(&mut machine.rig.session.errors);
        for drive in full {
            machine.rig.world.drive_mut(drive).faults.room = None;
        }
        start_again(&mut machine);
        machine.rig.rest();
        // What ended with an error may be written by the replay.
        machine.rig.judge_redundancy();
        assert_eq!(machine.rig.health(), Health::Optimal);
    }
    assert!(refused > 0, "no request was refused");
}

#[test]
fn a_discard_that_members_refuse_without_room_for_zeroes_fails_no_member() {
    for seed in seeds(24, 240) {
        let kib = Sectors::kib;
        let shapes = [
            ArrayShape::raid5(4, kib(16)),
            ArrayShape::raid1(2),
            ArrayShape::raid6(5, kib(16)),
            ArrayShape::raid10(0x102, 4, kib(16)),
            ArrayShape::raid1(3),
            ArrayShape::raid10(0x201, 4, kib(16)),
        ];
        let shape = shapes[usize::try_from(seed).unwrap() % shapes.len()];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 3 == 0, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 60);
        let full = fill(&mut rig, seed * 100);
        for drive in &full {
            rig.world.drive_mut(*drive).faults.discards = Some(DriveError::Unsupported);
        }
        rig.session.tolerate_errors = true;
        rig.session.run_on(&mut rig.world, &Workload { mix: [10, 20, 2, 60, 2], ..load.clone() }, 60);
        rig.session.drain(&mut rig.world);
        let errors = rig.session.errors;
        rig.session.look_at_all(&mut rig.world);
        rig.session.drain(&mut rig.world);
        assert_eq!(rig.session.errors, errors, "all of it can be read\n{}", rig.world.dump());
        make_room(&mut rig, full);
        rig.session.tolerate_errors = false;
        assert_eq!(rig.health(), Health::Optimal);
        rig.judge();
    }
}

#[test]
fn a_member_that_is_being_filled_and_has_no_room_leaves_and_another_one_takes_its_place() {
    for seed in seeds(8, 80) {
        let shape = if seed % 2 == 0 { ArrayShape::raid5(4, Sectors::kib(16)) } else { ArrayShape::raid1(2) };
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { spares: 2, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 60);
        let spares: Vec<_> = rig.drives.iter().rev().take(2).copied().collect();
        for (number, spare) in spares.iter().enumerate() {
            let superblock = superblock_on(&rig.world, *spare).expect("it is a spare");
            let area = superblock.data_offset..superblock.data_offset + superblock.data_size;
            rig.world.drive_mut(*spare).faults.room =
                (number as u64 == seed / 2 % 2).then(|| DriveRoom { one_in: 1, ..DriveRoom::half(area, seed, 20) });
        }
        rig.lose(Slot(1), Loss::Failed);
        rig.session.run(&mut rig.world, &load, 60);
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
        let full = spares[usize::try_from(seed / 2 % 2).unwrap()];
        assert_ne!(rig.drive_in(Slot(1)), Some(full));
        rig.judge();
    }
}

/// Its replacement has room, and takes what the member refuses. Both must hold the same when the replacement takes over.
#[test]
fn a_member_without_room_and_its_replacement_hold_the_same() {
    let mut refused = 0;
    for seed in seeds(40, 800) {
        let (shape, lost) = shapes(seed);
        if lost > 0 {
            continue;
        }
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { spares: 1, ..RigOptions::new(seed) });
        let load = Workload { len_max: 16 << 10, ..load(&rig) };
        rig.session.run(&mut rig.world, &load, 60);
        rig.rest();
        let slow = Policy { rebuild_rate: Sectors::kib(128), background_depth: 1, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy: slow }).unwrap();
        let slot = Slot(u16::try_from(seed % u64::from(shape.members)).unwrap());
        let spare = rig.drives.last().copied();
        rig.world.admin(AdminCommand::Replace { array: rig.array, slot, with: spare }).unwrap();
        rig.run_for(Nanos::from_secs(1 + seed % 4));
        rig.session.tolerate_errors = true;
        let full = fill_with(&mut rig, seed * 100, 1 << slot.0);
        let errors = rig.session.errors;
        rig.session.run_on(&mut rig.world, &load, 60);
        rig.session.drain(&mut rig.world);
        refused += rig.session.errors - errors;
        make_room(&mut rig, full);
        rig.session.tolerate_errors = false;
        let fast = Policy::default();
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy: fast }).unwrap();
        rig.rest();
        assert_eq!((rig.health(), rig.drive_in(slot)), (Health::Optimal, spare), "{}", rig.world.dump());
        rig.judge();
    }
    assert!(refused > 100, "{refused} requests were refused");
}
