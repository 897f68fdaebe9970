//! The end of a controller, regular or not, and the state that the next one finds on the drives.

use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Health};
use openraid_core::events::RequestKind;
use openraid_format::DeviceRole;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, Nanos, Sectors, Slot};

fn load(rig: &Rig) -> Workload {
    Workload { len_max: 64 << 10, depth: 8, mix: [30, 50, 10, 2, 4], ..Workload::mixed(rig.session.capacity()) }
}

fn with_metadata() -> Vec<ArrayShape> {
    ArrayShape::all().into_iter().filter(|shape| !shape.is_passthrough()).collect()
}

#[test]
fn after_a_stop_in_good_order_nothing_is_lost_and_nothing_is_to_be_done() {
    for seed in seeds(1, 10) {
        for shape in with_metadata() {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) });
            let load = load(&rig);
            for _ in 0..2 {
                rig.session.run(&mut rig.world, &load, 40);
                let before = rig.status().events;
                rig.restart();
                let status = rig.status();
                assert!(status.task.is_none(), "{shape}: {:?}", status.task);
                assert!(status.events >= before);
                assert_eq!(status.health, Health::Optimal);
                rig.session.look_at_all(&mut rig.world);
            }
            rig.judge();
        }
    }
}

#[test]
fn a_degraded_array_that_was_stopped_in_good_order_starts_again() {
    for seed in seeds(2, 10) {
        for shape in ArrayShape::some(with_metadata().into_iter().filter(ArrayShape::is_redundant).collect(), seed, 20)
        {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            let load = load(&rig);
            rig.session.run_on(&mut rig.world, &load, 30);
            rig.lose(Slot(0), Loss::Failed);
            rig.session.run(&mut rig.world, &load, 30);
            rig.restart();
            assert_eq!(rig.health(), Health::Degraded, "the failed member is not taken back");
            rig.session.run(&mut rig.world, &load, 30);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.rest();
            rig.judge();
        }
    }
}

#[test]
fn after_a_power_cut_flushed_data_is_there_and_redundancy_is_restored() {
    for seed in seeds(1, 20) {
        for shape in with_metadata() {
            let _case = Case::new(seed, shape);
            let options = RigOptions { cuts: true, bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) };
            let mut rig = Rig::new(shape, options);
            let load = load(&rig);
            for round in 0..3 {
                let requests = rig.random.between(1, 60);
                rig.session.run_on(&mut rig.world, &load, requests);
                let steps = u32::try_from(rig.random.below(40)).unwrap();
                rig.rest_or(steps);
                rig.cut_and_boot();
                if round % 2 == 0 {
                    rig.session.look_at_all(&mut rig.world);
                }
            }
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
            rig.judge();
        }
    }
}

#[test]
fn cuts_one_soon_after_another_leave_no_member_stale() {
    for seed in seeds(3, 40) {
        for shape in ArrayShape::some(with_metadata().into_iter().filter(ArrayShape::is_redundant).collect(), seed, 12)
        {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
            let load = Workload { mix: [1, 4, 1, 0, 0], ..load(&rig) };
            for _ in 0..12 {
                let requests = rig.random.between(1, 4);
                rig.session.run_on(&mut rig.world, &load, requests);
                let steps = u32::try_from(rig.random.below(30)).unwrap();
                rig.rest_or(steps);
                rig.cut_and_boot();
            }
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
            rig.judge();
        }
    }
}

#[test]
fn cuts_during_a_resync_or_a_rebuild_lose_nothing_and_it_ends_at_last() {
    for seed in seeds(2, 20) {
        for shape in [
            ArrayShape::raid5(4, Sectors::kib(16)),
            ArrayShape::raid6(5, Sectors::kib(16)),
            ArrayShape::raid1(2),
            ArrayShape::raid10(0x201, 4, Sectors::kib(16)),
        ] {
            let _case = Case::new(seed, shape);
            let options = RigOptions { cuts: true, bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) };
            let mut rig = Rig::new(shape, options);
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 40);
            rig.lose(Slot(1), Loss::Failed);
            rig.session.run(&mut rig.world, &load, 20);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.rest_or(30);
            // At rest the array is clean, so that it may start again degraded.
            rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
            rig.session.drain(&mut rig.world);
            rig.run_for(Nanos::from_secs(2));
            rig.cut_and_boot();
            rig.rest_or(10);
            rig.run_for(Nanos::from_secs(2));
            rig.cut_and_boot();
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
            rig.judge();
        }
    }
}

#[test]
fn a_killed_service_loses_nothing_that_was_answered() {
    for seed in seeds(1, 20) {
        for shape in ArrayShape::some(with_metadata(), seed, 40) {
            let _case = Case::new(seed, shape);
            // The drives keep their power, so every answered write survives, flushed or not.
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            let load = load(&rig);
            for _ in 0..2 {
                rig.session.run_on(&mut rig.world, &load, 40);
                rig.session.kill(&mut rig.world);
                rig.boot();
                rig.session.look_at_all(&mut rig.world);
            }
            rig.rest();
            rig.judge();
        }
    }
}

#[test]
fn dirty_and_degraded_is_refused_without_force() {
    for seed in seeds(2, 20) {
        let shape = [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid6(5, Sectors::kib(16))]
            [usize::from(seed.is_multiple_of(2))];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
        let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
        rig.session.run_on(&mut rig.world, &load, 20);
        rig.session.cut_power(&mut rig.world);
        let lost = rig.drives[1];
        rig.world.drive_mut(lost).pull();
        rig.world.boot();
        assert!(rig.world.assemble(false).is_err());
        rig.array = rig.world.assemble(true).unwrap();
        rig.session.array = rig.array;
        assert_eq!(rig.health(), Health::Degraded);
    }
}

#[test]
fn a_stopped_array_takes_no_requests() {
    let mut rig = Rig::new(ArrayShape::raid5(3, Sectors::kib(16)), RigOptions::new(1));
    rig.session.tolerate_errors = true;
    let load = load(&rig);
    rig.session.run_on(&mut rig.world, &load, 30);
    let array = rig.array;
    let stopped = rig.world.start_admin(AdminCommand::Stop { array });
    rig.session.drain(&mut rig.world);
    rig.world.run_until_answered();
    assert!(rig.world.take_answer(stopped).unwrap().result.is_ok());
    assert!(rig.world.read(array, 0, 512).is_err());
}

/// A bitmap chunk is 256 KiB of each member; each member has 24 chunks. A resync of mirrors processes one chunk at
/// once.
#[test]
fn after_a_cut_only_what_the_bitmap_names_is_read() {
    const PART: u64 = 256 << 10;
    let chunk = Sectors::kib(16);
    // Places of the array, one in each of these parts of the members.
    let parts = [2, 3, 17];
    for (mut shape, data) in
        [(ArrayShape::raid5(4, chunk), 3), (ArrayShape::raid6(5, chunk), 3), (ArrayShape::raid1(2), 1)]
    {
        let members = u64::from(shape.members);
        shape.data = Sectors(24 * PART / 512);
        let bitmap_chunk = Some(u32::try_from(PART).expect("small"));
        let options = RigOptions { cuts: true, bitmap: true, bitmap_chunk, ..RigOptions::new(1) };
        let mut rig = Rig::new(shape, options);
        rig.rest();
        for part in parts {
            let at = part * PART * data;
            rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, at..at + 4096);
        }
        rig.session.drain(&mut rig.world);
        rig.cut_and_boot();
        rig.rest();
        let read = |rig: &Rig| rig.status().members.iter().map(|member| member.sectors_read * 512).sum::<u64>();
        // All data in these parts is compared.
        assert_eq!(read(&rig), parts.len() as u64 * PART * members, "{shape}");
        // No data is compared if every bit was cleared before the power cut.
        rig.run_for(Nanos::from_secs(30));
        rig.cut_and_boot();
        rig.rest();
        assert_eq!(read(&rig), 0, "{shape}");
        rig.judge();
    }
}

fn events(rig: &Rig, n: usize) -> u64 {
    superblock_on(&rig.world, rig.drives[n]).unwrap().events
}

/// Flush, and wait until the first of two members has the next generation of superblocks and the other one does not.
fn put_first_member_ahead(rig: &mut Rig) -> DriveId {
    rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
    rig.session.drain(&mut rig.world);
    while events(rig, 0) == events(rig, 1) {
        assert!(rig.world.step(), "no superblock is written");
    }
    assert_eq!(events(rig, 0), events(rig, 1) + 1);
    rig.drives[0]
}

/// The power is cut in the first wave of a generation, and one of the members with that wave is lost. Later writes
/// without the member must not be lost when it returns, although its event count was one higher than that of the
/// remaining member.
#[test]
fn a_member_that_was_one_event_ahead_is_stale_when_it_is_back() {
    let shape = ArrayShape::raid1(2);
    for seed in seeds(8, 80) {
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run_on(&mut rig.world, &load, 30);
        rig.session.drain(&mut rig.world);
        let ahead = put_first_member_ahead(&mut rig);
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(ahead).faults.gone = true;
        rig.boot();
        assert_eq!(rig.health(), Health::Degraded);
        rig.session.run(&mut rig.world, &load, 30);
        rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
        rig.session.drain(&mut rig.world);
        assert!(events(&rig, 0) + 2 <= events(&rig, 1), "two behind");
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(ahead).faults.gone = false;
        rig.boot();
        assert_eq!(rig.health(), Health::Degraded, "it missed writes");
        rig.session.look_at_all(&mut rig.world);
    }
}

/// A member had an event count one higher at the power cut, and is lost. Three generations record the loss. The power
/// is cut after the first, which gives the other member the same count. No superblock calls the lost member faulty
/// until the last generation. If it returns then, it is a member, because no data was written without it. If it does
/// not return, the count starts again. When a write is answered, its event count is two lower.
#[test]
fn an_absence_recorded_only_in_its_first_generation_is_counted_again() {
    let shape = ArrayShape::raid1(2);
    for (seed, back) in seeds(4, 40).flat_map(|seed| [(seed, true), (seed, false)]) {
        let _case = Case::new(seed, format!("{shape}, back: {back}"));
        let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 30);
        let ahead = put_first_member_ahead(&mut rig);
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(ahead).faults.gone = true;
        rig.boot();
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, 0..4096);
        while events(&rig, 1) < events(&rig, 0) {
            assert!(rig.world.step(), "the absence is not recorded");
        }
        assert_eq!(events(&rig, 1), events(&rig, 0), "after the first generation");
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(ahead).faults.gone = !back;
        rig.boot();
        let health = if back { Health::Optimal } else { Health::Degraded };
        assert_eq!(rig.health(), health);
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, 0..4096);
        rig.session.drain(&mut rig.world);
        assert!(back || events(&rig, 0) + 2 <= events(&rig, 1), "md takes a member that is one event behind");
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(ahead).faults.gone = false;
        rig.boot();
        assert_eq!(rig.health(), health);
        rig.session.look_at_all(&mut rig.world);
    }
}

/// A member is lost with the power. Another drive joins while the first superblocks without the lost member are being
/// written. It must not get the number that these superblocks give to a member.
#[test]
fn a_drive_that_joins_during_a_superblock_write_is_no_member_yet() {
    let shape = ArrayShape::raid1(2);
    let mut joined = 0;
    for (before, after) in (0..12).flat_map(|before| (0..8).map(move |after| (before, after))) {
        let _case = Case::new(1, format!("{before} events before it, and {after} after it"));
        let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(1) });
        let load = load(&rig);
        // The lost member itself joined later, so its number may be used again.
        rig.lose(Slot(1), Loss::Failed);
        let gone = rig.new_drive();
        rig.world.add_member(rig.array, gone).unwrap();
        rig.session.run(&mut rig.world, &load, 20);
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(gone).faults.gone = true;
        rig.boot();
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, 0..4096);
        rig.rest_or(before);
        let new = rig.new_drive();
        rig.world.add_member(rig.array, new).unwrap();
        rig.rest_or(after);
        rig.session.cut_power(&mut rig.world);
        rig.boot();
        let member = rig.status().members.into_iter().find(|member| member.drive == Some(new));
        joined += u32::from(member.is_some());
        rig.session.look_at_all(&mut rig.world);
        rig.rest();
        rig.judge_redundancy();
    }
    assert!(joined > 0);
}

/// A spare is removed. Another drive joins and is filled. It has the spare's number, and its own place among the
/// members. The remains of the spare must not make it faulty: it is a member after the next start.
#[test]
fn a_removed_spare_does_not_make_the_member_with_its_number_faulty() {
    for shape in [ArrayShape::raid1(2), ArrayShape::raid5(4, Sectors(128)), ArrayShape::raid6(5, Sectors(128))] {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(1) });
        let load = load(&rig);
        let spare = rig.new_drive();
        rig.world.add_member(rig.array, spare).unwrap();
        rig.rest();
        rig.world.admin(AdminCommand::Remove { array: rig.array, drive: spare }).unwrap();
        rig.rest();
        let lost = rig.lose(Slot(1), Loss::Failed);
        rig.rest();
        rig.world.admin(AdminCommand::Remove { array: rig.array, drive: lost }).unwrap();
        let new = rig.new_drive();
        rig.world.add_member(rig.array, new).unwrap();
        rig.session.run(&mut rig.world, &load, 20);
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        let number = superblock_on(&rig.world, new).unwrap().dev_number;
        for drive in rig.status().members.iter().filter_map(|member| member.drive) {
            let role = superblock_on(&rig.world, drive).unwrap().roles.get(number);
            assert_eq!(role, DeviceRole::Active(Slot(1)), "{shape}: as {drive:?} has it");
        }
        rig.session.cut_power(&mut rig.world);
        rig.boot();
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal, "{shape}");
        rig.session.look_at_all(&mut rig.world);
        rig.judge_redundancy();
    }
}

/// Administrators rely on the status: the next member may be pulled, and the power may fail. So the superblocks
/// record a rebuilt member before the array is optimal.
#[test]
fn a_rebuild_that_is_reported_as_complete_is_complete_after_a_power_cut() {
    for seed in seeds(2, 40) {
        for shape in
            [ArrayShape::raid5(3, Sectors::kib(16)), ArrayShape::raid6(5, Sectors::kib(16)), ArrayShape::raid1(2)]
        {
            let _case = Case::new(seed, shape);
            let options = RigOptions { cuts: true, bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) };
            let mut rig = Rig::new(shape, options);
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 30);
            rig.lose(Slot(1), Loss::Failed);
            rig.session.run(&mut rig.world, &load, 10);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            let mut is_full = false;
            while rig.health() != Health::Optimal {
                is_full |= rig.status().task.is_some_and(|task| task.done == task.total);
                let mut notices = rig.world.take_notices().into_iter();
                let ends = notices.any(|notice| matches!(notice.kind, NoticeKind::RebuildFinished(_)));
                assert!(!ends, "{shape}: the end is reported before it is recorded");
                assert!(rig.world.step(), "{shape}: the rebuild does not end");
            }
            assert!(is_full && rig.status().task.is_none(), "{shape}: it runs until it is recorded");
            rig.cut_and_boot();
            assert_eq!((rig.health(), rig.drive_in(Slot(1))), (Health::Optimal, Some(drive)), "{}", rig.world.dump());
            rig.rest();
            rig.judge();
        }
    }
}
