//! The storage of members is full: sparse files on a full file system, thin volumes. No acknowledged data is lost, no
//! member fails, and everything works again when there is room.

mod support;

use openraid_core::actions::{NoticeKind, ReplyStatus};
use openraid_core::admin::MemberState;
use openraid_core::geometry::Level;
use openraid_sim::drive::Room;
use openraid_sim::oracle::members::superblock_on;
use openraid_sim::oracle::session::Workload;
use openraid_sim::{Loss, Rig, RigOptions, Shape};
use openraid_units::{Nanos, Sectors, Slot};
use support::{seeds, Case};

/// Much longer than the pause before members are tried again.
const LATER: Nanos = Nanos::from_secs(60);

fn load(rig: &Rig) -> Workload {
    Workload { len_max: 64 << 10, ..Workload::mixed(rig.session.capacity()) }
}

/// Arrays, and how many members each of them loses first.
fn shapes(seed: u64) -> (Shape, u16) {
    let kib = Sectors::kib;
    let all = [
        (Shape::raid5(3, kib(16)), 0),
        (Shape::raid5(4, kib(16)), 1),
        (Shape::raid5(5, kib(64)), 0),
        (Shape::raid6(4, kib(16)), 0),
        (Shape::raid6(5, kib(16)), 1),
        (Shape::raid6(6, kib(32)), 2),
        (Shape::raid5(3, kib(16)), 1),
        (Shape::raid1(2), 0),
        (Shape::raid1(3), 0),
        (Shape::raid1(3), 1),
        (Shape::raid10(0x102, 4, kib(16)), 0),
        (Shape::raid10(0x201, 4, kib(16)), 0),
        (Shape::raid10(0x1_0201, 5, kib(32)), 0),
        (Shape::raid10(0x103, 5, kib(16)), 1),
    ];
    all[usize::try_from(seed).unwrap() % all.len()]
}

/// Let some of the working members have little room, and return their drives.
fn fill(rig: &mut Rig, seed: u64) -> Vec<openraid_units::DriveId> {
    let working: Vec<_> = (0..rig.shape.members).map(Slot).filter_map(|slot| rig.drive_in(slot)).collect();
    let subset = rig.random.between(1, (1 << working.len()) - 1);
    let mut full = Vec::new();
    for (number, drive) in working.into_iter().enumerate() {
        if subset >> number & 1 == 0 {
            continue;
        }
        let own = superblock_on(&rig.world, drive).expect("it is a member");
        let area = own.data_offset..own.data_offset + own.data_size;
        let left = rig.random.below(40);
        rig.world.drive_mut(drive).faults.room = Some(Room::half(area, seed + number as u64, left));
        full.push(drive);
    }
    full
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
            for drive in full {
                rig.world.drive_mut(drive).faults.room = None;
            }
            rig.world.run_for(LATER);
            let notices = rig.world.take_notices();
            let count = |kind| notices.iter().filter(|notice| notice.kind == kind).count();
            assert_eq!(count(NoticeKind::NoRoom), count(NoticeKind::RoomAgain), "{notices:#?}");
            noticed += count(NoticeKind::NoRoom);
            let members = rig.status().members;
            let is_well = members.iter().all(|member| !member.is_full && member.bad_blocks == 0);
            assert!(is_well, "{}", rig.world.dump());
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
    let mut rig = Rig::new(Shape::raid5(3, Sectors::kib(64)), RigOptions::new(1));
    for (offset, byte) in [(0, 0x11), (64 << 10, 0x22)] {
        rig.world.write(rig.array, offset, &[byte; 4096]).expect("there is room");
    }
    let drive = rig.drive_in(Slot(0)).expect("it works");
    let own = superblock_on(&rig.world, drive).expect("it is a member");
    // The first chunk of the member has room, the others have none.
    let area = own.data_offset + Sectors::kib(64)..own.data_offset + own.data_size;
    rig.world.drive_mut(drive).faults.room = Some(Room { one_in: 1, ..Room::half(area, 2, 0) });
    let write = |rig: &mut Rig, chunk: u64| rig.world.write(rig.array, chunk * (64 << 10), &[0x33; 4096]);
    assert_eq!(write(&mut rig, 0), Ok(()));
    // Two data chunks a stripe: each stripe needs room on the member, for data or for parity.
    let ends: Vec<_> = (2..8).map(|chunk| write(&mut rig, chunk)).collect();
    assert!(ends.contains(&Err(ReplyStatus::NoSpace)) && !ends.contains(&Err(ReplyStatus::IoError)), "{ends:?}");
    assert_eq!(rig.state_of(Slot(0)), MemberState::InSync);
    assert!(rig.status().members[0].is_full);
    assert_eq!(rig.world.read(rig.array, 64 << 10, 4096), Ok(vec![0x22; 4096]));
    rig.world.drive_mut(drive).faults.room = None;
    rig.world.run_for(LATER);
    assert!(!rig.status().members[0].is_full);
    (2..8).for_each(|chunk| assert_eq!(write(&mut rig, chunk), Ok(())));
}
