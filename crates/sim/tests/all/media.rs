//! Bad sectors, silent drives, errors beyond the limit.

use crate::support::{seeds, Case};
use openraid_core::actions::{Notice, NoticeKind, ReplyStatus};
use openraid_core::admin::{AdminCommand, Health, MemberState};
use openraid_core::check_results::{ScrubMode, ScrubOutcome};
use openraid_core::events::RequestKind;
use openraid_core::geometry::Geometry;
use openraid_core::reason::FailReason;
use openraid_sim::drive::{Defect, Trap, WrongAnswer};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::Members;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::test_arrays::Blocks;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, DriveLba, MemberLba, Nanos, Sectors, Slot, StripeIndex};

const CHUNK: Sectors = Sectors::kib(16);

fn load(rig: &Rig) -> Workload {
    Workload { len_max: 64 << 10, depth: 8, ..Workload::mixed(rig.session.capacity()) }
}

fn place(rig: &Rig, slot: Slot, at: u64) -> (DriveId, DriveLba) {
    Members::of(&rig.world, rig.array).place(slot, MemberLba(at)).unwrap()
}

/// Write the whole array once, so that no sector is zero by accident.
fn fill(rig: &mut Rig) {
    let capacity = rig.session.capacity();
    for start in (0..capacity).step_by(128 << 10) {
        let end = (start + (128 << 10)).min(capacity);
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, start..end);
    }
    rig.rest();
}

#[test]
fn bad_sectors_of_a_healthy_array_are_rewritten_from_redundancy() {
    for seed in seeds(1, 10) {
        let shapes: Vec<_> = ArrayShape::all().into_iter().filter(ArrayShape::is_redundant).collect();
        for shape in ArrayShape::some(shapes, seed, 40) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            fill(&mut rig);
            // Two bad sectors, never two in one row.
            for at in [100, 1040] {
                let slot = Slot(u16::try_from(rig.random.below(u64::from(shape.members))).unwrap());
                let (drive, lba) = place(&rig, slot, at);
                let len = shape.block(slot.0).sectors();
                rig.world.drive_mut(drive).faults.add_defects(DriveLba(lba.get() / 8 * 8), len, Defect::UntilWritten);
            }
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 20);
            // A mirror is read from one copy: let every member be read.
            let array = rig.array;
            rig.session.look_at_all(&mut rig.world);
            rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Repair }).unwrap();
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal);
            for drive in rig.drives.clone() {
                assert_eq!(rig.world.drive(drive).faults.defects(), 0, "drive {drive} still has bad sectors");
            }
            rig.judge();
        }
    }
}

#[test]
fn one_bad_sector_of_a_degraded_array_is_lost_and_nothing_else() {
    for seed in seeds(3, 30) {
        let shape =
            [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2), ArrayShape::raid6(5, Sectors::kib(16))]
                [usize::try_from(seed % 3).unwrap()];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        fill(&mut rig);
        let lost = rig.geometry_losses();
        for slot in 0..lost {
            rig.lose(Slot(slot), Loss::Failed);
        }
        let victim = Slot(lost);
        let (drive, lba) = place(&rig, victim, 1000);
        rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(1), Defect::UntilWritten);

        let bad = unreadable_sectors(&mut rig);
        assert!((1..=u64::from(lost) + 1).contains(&(bad.len() as u64)), "lost {bad:?}");
        assert_eq!(rig.health(), Health::Degraded, "a sector is lost, not the array");

        // The rebuild ends. The loss stays known, and does not change.
        for _ in 0..lost {
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
        }
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
        assert_eq!(unreadable_sectors(&mut rig), bad);
        // A write of the sector repairs it.
        for sector in bad {
            rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, sector * 512..(sector + 1) * 512);
        }
        rig.session.drain(&mut rig.world);
        assert_eq!(unreadable_sectors(&mut rig), []);
    }
}

/// A cut has torn rows, and one sector of them cannot be read. Its neighbours on that member can be read, and must not
/// be computed from inconsistent parity. In one run the resync reads them first, in the other a host does.
#[test]
fn if_parity_may_not_match_only_the_bad_sector_is_recovered() {
    for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK)] {
        for looks in [false, true] {
            let _case = Case::new(u64::from(looks), shape);
            let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(5) });
            fill(&mut rig);
            rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
            rig.rest();
            let Geometry::Parity(parity) = shape.geometry() else { unreachable!("both have parity") };
            let (stripe, within) = (StripeIndex(3), Sectors(13));
            let at = |within| parity.member_lba(stripe, within).get();
            let (drive, bad) = place(&rig, parity.slot_of(stripe, 1), at(within));
            let parities: Vec<_> = [Some(parity.p_slot(stripe)), parity.q_slot(stripe)].into_iter().flatten().collect();
            let torn: Vec<_> = parities.into_iter().map(|slot| place(&rig, slot, at(Sectors::ZERO))).collect();
            // The array is not clean, so there is a resync.
            rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, 0..512);
            rig.session.drain(&mut rig.world);
            rig.session.cut_power(&mut rig.world);
            for (drive, lba) in torn {
                rig.world.drive_mut(drive).poke(lba, &vec![0xa5; usize::try_from(CHUNK.bytes().get()).unwrap()]);
            }
            rig.world.drive_mut(drive).faults.add_defects(bad, Sectors(1), Defect::UntilWritten);
            rig.boot();
            let lost = parity.set_lba(stripe, 1, within).get() * 512;
            rig.session.versions_mut().give_up(lost..lost + 512);
            if looks {
                rig.session.look_at_all(&mut rig.world);
            }
            rig.rest();
            rig.session.look_at_all(&mut rig.world);
            let status = rig.status();
            let errors: u32 = status.members.iter().map(|member| member.media_errors).sum();
            assert!((1..=3).contains(&errors), "one sector counts as {errors}");
            assert_eq!((rig.world.drive(drive).faults.defects(), rig.session.versions_mut().beyond() > 0), (0, true));
            rig.judge();
        }
    }
}

/// Read sector by sector around every range with an error.
fn unreadable_sectors(rig: &mut Rig) -> Vec<u64> {
    let sectors = rig.session.capacity() / 512;
    let mut bad = Vec::new();
    let mut ranges = vec![(0, sectors)];
    while let Some((start, end)) = ranges.pop() {
        if end - start > 512 {
            let middle = start.midpoint(end);
            ranges.extend([(start, middle), (middle, end)]);
            continue;
        }
        match rig.world.read(rig.array, start * 512, (end - start) * 512) {
            Ok(bytes) => {
                let begun = rig.session.versions_mut().begin_read();
                rig.session.versions_mut().end_read(begun, start * 512, &bytes).unwrap_or_else(|m| panic!("{m:?}"));
            }
            Err(ReplyStatus::IoError) if end - start == 1 => bad.push(start),
            Err(ReplyStatus::IoError) => {
                let middle = start.midpoint(end);
                ranges.extend([(start, middle), (middle, end)]);
            }
            Err(status) => panic!("{status:?}"),
        }
    }
    bad.sort_unstable();
    bad
}

#[test]
fn too_many_bad_sectors_fail_the_member() {
    let shape = ArrayShape::raid5(4, Sectors::kib(16));
    let mut rig = Rig::new(shape, RigOptions::new(9));
    fill(&mut rig);
    let budget = u64::from(rig.world.limits().media_errors_max);
    let (drive, _) = place(&rig, Slot(2), 0);
    for count in 0..budget + 5 {
        let (_, lba) = place(&rig, Slot(2), count * 64);
        rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(1), Defect::UntilWritten);
    }
    rig.world.take_notices();
    rig.session.look_at_all(&mut rig.world);
    rig.rest();
    assert_eq!(rig.state_of(Slot(2)), MemberState::Missing, "{}", rig.world.dump());
    let notices = rig.world.take_notices();
    assert!(notices.iter().any(|notice| notice.kind == NoticeKind::Fail(FailReason::ErrorBudget)), "{notices:?}");
    rig.judge();
}

#[test]
fn a_sector_that_accepts_no_write_fails_the_member_or_is_recorded() {
    for seed in seeds(3, 30) {
        let shape = ArrayShape::raid5(4, Sectors::kib(16));
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        fill(&mut rig);
        let (drive, lba) = place(&rig, Slot(1), 640);
        rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(2), Defect::Permanent);
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 100);
        rig.session.look_at_all(&mut rig.world);
        rig.rest();
        // Whatever the state of the member, no byte is wrong.
        rig.session.look_at_all(&mut rig.world);
    }
}

/// The content of the data areas of all members.
fn media(rig: &Rig) -> Vec<Vec<u8>> {
    let drives = rig.drives.iter().map(|drive| {
        let drive = rig.world.drive(*drive);
        let mut bytes = vec![0; usize::try_from(drive.spec().capacity.bytes().get()).unwrap()];
        drive.peek(DriveLba(0), &mut bytes);
        bytes.split_off(usize::try_from(BEFORE_DATA.bytes().get()).unwrap())
    });
    drives.collect()
}

/// Let the next read of a member's data fail silently.
fn arm(rig: &mut Rig, slot: Slot, effect: WrongAnswer) -> DriveId {
    let (drive, from) = place(rig, slot, 0);
    let trap = Trap { from, len: rig.shape.member_data(slot.0), effect };
    rig.world.drive_mut(drive).faults.trap = Some(trap);
    drive
}

/// One read of a member returns wrong data silently: one for a host, and one for a repair.
fn one_read_goes_wrong(effect: WrongAnswer) {
    for shape in [ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(3), ArrayShape::raid5(4, CHUNK), ArrayShape::raid1(2)]
    {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions::new(1));
        fill(&mut rig);
        let array = rig.array;
        let before = media(&rig);
        let everything = |rig: &mut Rig| {
            let starts = (0..rig.session.capacity()).step_by(64 << 10);
            starts.flat_map(|at| rig.world.read(array, at, 64 << 10).unwrap()).collect::<Vec<u8>>()
        };
        let right = everything(&mut rig);
        // No level can detect it, so the data of this one read is wrong.
        let victim = arm(&mut rig, Slot(0), effect);
        assert_ne!(everything(&mut rig), right);
        assert_eq!(rig.world.drive(victim).faults.wrong.len(), 1);
        assert_eq!(everything(&mut rig), right);
        // A repair detects it. It names the member if the redundancy suffices, and writes no wrong data.
        rig.world.take_notices();
        let victim = arm(&mut rig, Slot(1), effect);
        rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Repair }).unwrap();
        rig.rest();
        assert_eq!(rig.world.drive(victim).faults.wrong.len(), 1);
        let ScrubOutcome::Mismatches { count: found, .. } = rig.status().last_scrub.unwrap().outcome else {
            panic!("none")
        };
        let notices = rig.world.take_notices();
        let named = |notice: &Notice| match notice.kind {
            NoticeKind::RowCorrected(range) if rig.geometry_losses() > 1 && notice.slot == Some(Slot(1)) => range.len,
            NoticeKind::RowMismatch(range) if rig.geometry_losses() == 1 && notice.slot.is_none() => range.len,
            _ => Sectors::ZERO,
        };
        let reported: u64 = notices.iter().map(|notice| named(notice).get()).sum();
        assert!(found > 0 && reported == found, "{found} rows: {notices:?}");
        rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check }).unwrap();
        rig.rest();
        assert_eq!(rig.status().last_scrub.unwrap().outcome, ScrubOutcome::Clean);
        assert!(media(&rig) == before, "{shape}: the media are not as they were");
        rig.judge();
    }
}

#[test]
fn a_repair_reports_a_bit_that_flipped_in_transfer_and_does_not_change_the_medium() {
    one_read_goes_wrong(WrongAnswer::FlippedOnTheWay { byte: 77, mask: 4 });
}

#[test]
fn a_repair_reports_a_read_from_the_wrong_place_and_does_not_change_the_medium() {
    one_read_goes_wrong(WrongAnswer::Misread { from: DriveLba(BEFORE_DATA.get() + 1500) });
}

#[test]
fn a_drive_that_hangs_is_given_up_and_requests_end() {
    for seed in seeds(2, 20) {
        let shapes: Vec<_> = ArrayShape::all().into_iter().filter(ArrayShape::is_redundant).collect();
        for shape in ArrayShape::some(shapes, seed, 16) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            fill(&mut rig);
            let load = load(&rig);
            rig.session.run_on(&mut rig.world, &load, 20);
            let drive = rig.lose(Slot(1), Loss::Hanging);
            let begin = rig.world.now();
            rig.session.run(&mut rig.world, &load, 60);
            let timeout = rig.world.limits().command_timeout;
            assert!(rig.world.now().since(begin) < timeout * 3, "requests waited more than once for the timeout");
            // Late answers have no effect.
            rig.world.release(drive);
            rig.session.run(&mut rig.world, &load, 40);
            rig.run_for(Nanos::from_secs(1));
            rig.judge();
        }
    }
}

#[test]
fn a_silent_drive_leaves_enough_frames_for_all_others() {
    for seed in seeds(4, 40) {
        let shape = ArrayShape { blocks: Blocks::Large, layout: 8, ..ArrayShape::raid6(6, Sectors::kib(64)) };
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        fill(&mut rig);
        let load = Workload { depth: 16, len_max: 64 << 10, mix: [1, 3, 0, 0, 0], ..load(&rig) };
        rig.session.run_on(&mut rig.world, &load, 40);
        rig.lose(Slot(1), Loss::Hanging);
        // The drive never answers again. Hosts and a rebuild continue without it.
        rig.session.run(&mut rig.world, &load, 100);
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).unwrap();
        rig.session.run(&mut rig.world, &load, 100);
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        rig.judge();
    }
}

#[test]
fn a_silent_drive_does_not_stall_requests_that_do_not_need_it() {
    let shape = ArrayShape::new(openraid_core::geometry::Level::Raid0, 2, 3, Sectors::kib(64));
    let mut rig = Rig::new(shape, RigOptions::new(4));
    rig.lose(Slot(2), Loss::Hanging);
    let stuck = rig.world.submit(rig.array, RequestKind::Read, 128 << 10, 4096, Vec::new());
    let begin = rig.world.now();
    for _ in 0..20 {
        rig.world.read(rig.array, 0, 64 << 10).unwrap();
        rig.world.read(rig.array, 64 << 10, 64 << 10).unwrap();
    }
    assert!(rig.world.now().since(begin) < Nanos::from_millis(100));
    assert_eq!(rig.world.run_until(stuck).status, ReplyStatus::IoError);
}
