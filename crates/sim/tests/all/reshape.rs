//! An array gets more members while hosts write and the power is cut: nothing acknowledged is lost, and the members hold the
//! new shape at the end.

use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, Health, MemberState, Policy};
use openraid_core::array::assemble::AssembleError;
use openraid_core::array::reshape_plan::next_step;
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_format::{MdLevel, ShapeFields};
use openraid_sim::drive::{Defect, Latency};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::oracle::{Content, Members};
use openraid_sim::rig::Loss;
use openraid_sim::test_arrays::MEMBER_DATA;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{MemberLba, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);

/// Every second array has a write-intent bitmap with small regions.
fn options(seed: u64) -> RigOptions {
    RigOptions { bitmap: seed.is_multiple_of(2), bitmap_chunk: Some(4096), ..RigOptions::new(seed) }
}

fn load(rig: &Rig) -> Workload {
    Workload { depth: 4, len_max: 48 << 10, align: 512, range: 0..rig.session.capacity(), mix: [2, 4, 1, 1, 1] }
}

/// The fields of a shape in a superblock.
fn fields(shape: &ArrayShape) -> ShapeFields {
    let level = match shape.level {
        Level::Raid1 => MdLevel::Raid1,
        Level::Raid4 => MdLevel::Raid4,
        Level::Raid6 => MdLevel::Raid6,
        Level::Raid10 => MdLevel::Raid10,
        _ => MdLevel::Raid5,
    };
    ShapeFields { level, layout: shape.layout, chunk: shape.chunk, raid_disks: shape.members }
}

/// Run until the change has ended, with a cut now and then. Returns the number of cuts. `lost`: members were lost.
fn run_to_the_end(rig: &mut Rig, cuts: bool, lost: bool) -> u32 {
    let load = load(rig);
    let mut count = 0;
    for round in 0.. {
        assert!(round < 4000, "it does not end: {}", rig.world.dump());
        rig.session.run(&mut rig.world, &load, 6);
        let steps = [40, 300, 2000][rig.random.index(3)];
        rig.rest_or(steps);
        // A degraded array that was not stopped cleanly does not start by itself. One whose change fills a member does.
        let changes = rig.status().superblock.is_some_and(|superblock| superblock.change().is_some());
        let starts = rig.health() == Health::Optimal || (changes && !lost);
        if cuts && rig.random.below(3) == 0 {
            if starts {
                rig.cut_and_boot();
            } else {
                rig.restart();
            }
            count += 1;
        }
        if rig.status().superblock.is_none_or(|superblock| superblock.change().is_none()) {
            return count;
        }
    }
    count
}

/// Sectors that cannot be read before a change cannot be read after it, and all others can (S7).
#[test]
fn lost_sectors_stay_lost_at_their_new_places() {
    for seed in seeds(20, 1000) {
        for (from, to) in [
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::raid6(4, CHUNK), ArrayShape::raid6(5, CHUNK)),
        ] {
            let _case = Case::new(seed, from);
            let rig_options = RigOptions { spares: to.members - from.members, far: Sectors(512), ..options(seed) };
            let mut rig = Rig::new(from, rig_options);
            fill(&mut rig);
            // Two or three rows with more bad sectors than parity restores.
            let bad = 1 + from.geometry().losses_survived();
            for _ in 0..2 + rig.random.below(2) {
                let row = rig.random.below(2500);
                for slot in (0..bad).map(Slot) {
                    let place =
                        Members::of(&rig.world, rig.array).place(slot, MemberLba(row)).expect("it has a member");
                    rig.world.drive_mut(place.0).faults.add_defects(place.1, Sectors(1), Defect::UntilWritten);
                }
            }
            let before = unreadable_sectors(&mut rig);
            assert!(!before.is_empty() || seed % 4 != 0, "parity sectors alone");
            let command = AdminCommand::Reshape { array: rig.array, new: fields(&to) };
            rig.world.admin(command).unwrap_or_else(|error| panic!("{error}"));
            rig.rest();
            assert_eq!(
                rig.status().superblock.map(|superblock| superblock.raid_disks),
                Some(to.members),
                "{}",
                rig.world.dump()
            );
            assert_eq!(unreadable_sectors(&mut rig), before, "{}", rig.world.dump());
            rig.restart();
            assert_eq!(unreadable_sectors(&mut rig), before);
        }
    }
}

/// Ranges wait for a repair as the shape begins to change. Soon other rows are at their places, which is where a later repair
/// would write what the old rows give.
#[test]
fn ranges_that_wait_for_a_repair_as_a_change_begins_are_not_repaired_where_other_rows_are_then() {
    for seed in seeds(4, 200) {
        for (from, to) in [
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::raid6(4, CHUNK), ArrayShape::raid6(5, CHUNK)),
        ] {
            let _case = Case::new(seed, from);
            // A disk that hosts have just used gets one command of a repair at a time.
            let disks = RigOptions { rotational: true, latency: Latency::SPINDLE, ..RigOptions::new(seed) };
            let mut options = RigOptions { spares: 1, far: Sectors(128), ..disks };
            options.world.limits.media_errors_max = 1000;
            let mut rig = Rig::new(from, options);
            fill(&mut rig);
            let (drive, start) =
                Members::of(&rig.world, rig.array).place(Slot(1), MemberLba(0)).expect("it has a member");
            for row in (0..1024).step_by(8) {
                rig.world.drive_mut(drive).faults.add_defects(start + Sectors(row), Sectors(1), Defect::UntilWritten);
            }
            // The first rows last: their places are the first ones that get other rows.
            for at in (0..192).rev().map(|number| number << 12) {
                rig.session.ask(&mut rig.world, RequestKind::Read, at..at + 4096);
            }
            rig.session.drain(&mut rig.world);
            assert!(!rig.world.dump().contains(" 0 repairs,"), "some wait");
            rig.world.start_admin(AdminCommand::Reshape { array: rig.array, new: fields(&to) });
            rig.rest();
            rig.shape = to;
            rig.session.learn_capacity(&rig.world, Content::Zeroes);
            rig.judge();
        }
    }
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

/// Sectors of the old size that cannot be read. The others must have what was written.
fn unreadable_sectors(rig: &mut Rig) -> Vec<u64> {
    let mut bad = Vec::new();
    for sector in 0..rig.session.capacity() / 512 {
        let begun = rig.session.versions_mut().begin_read();
        match rig.world.read(rig.array, sector * 512, 512) {
            Ok(bytes) => {
                if let Err(wrong) = rig.session.versions_mut().end_read(begun, sector * 512, &bytes) {
                    panic!("sector {sector}: {}", wrong.text);
                }
            }
            Err(_) => {
                rig.session.versions_mut().drop_read(begun);
                bad.push(sector);
            }
        }
    }
    bad
}

/// Members are lost while the shape changes. A spare takes the place of the first one, on both sides.
#[test]
fn members_are_lost_and_filled_during_a_change() {
    let mut filled = 0;
    for seed in seeds(24, 2000) {
        for (from, to) in [
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::raid6(4, CHUNK), ArrayShape::raid6(6, CHUNK)),
        ] {
            let _case = Case::new(seed, from);
            let spares = to.members - from.members + u16::from(seed % 2 == 0);
            let cuts = seed % 3 != 0;
            let rig_options = RigOptions { cuts, spares, far: Sectors(512), ..options(seed) };
            let mut rig = Rig::new(from, rig_options);
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 60);
            let command = AdminCommand::Reshape { array: rig.array, new: fields(&to) };
            rig.world.admin(command).unwrap_or_else(|error| panic!("{error}"));
            rig.session.hear(&mut rig.world);
            let steps = u32::try_from(rig.random.below(600)).expect("few");
            rig.session.run(&mut rig.world, &load, 4);
            rig.rest_or(steps);
            let losses = if from.geometry().losses_survived() > 1 { 1 + rig.random.below(2) } else { 1 };
            for _ in 0..losses {
                let slot = Slot(u16::try_from(rig.random.below(u64::from(to.members))).expect("few"));
                if rig.state_of(slot) != MemberState::InSync {
                    continue;
                }
                let how = [Loss::Failed, Loss::Pulled, Loss::ReadOnly][rig.random.index(3)];
                let _ = rig.lose(slot, how);
                rig.session.run(&mut rig.world, &load, 8);
            }
            run_to_the_end(&mut rig, cuts, true);
            rig.rest();
            if rig.status().superblock.is_some_and(|superblock| superblock.raid_disks == to.members) {
                rig.shape = to;
                rig.session.learn_capacity(&rig.world, Content::Zeroes);
            }
            filled += u32::from(rig.health() == Health::Optimal);
            rig.judge();
        }
    }
    assert!(filled > 8, "only {filled} arrays are whole again");
}

/// A spare takes the slot of a member that was lost before anything has moved, and the power fails. The member has nothing, as one
/// that the change fills. But its slot has data on the old side, so stripes that were being written may give wrong data for it.
#[test]
fn a_spare_in_the_slot_of_a_lost_member_is_not_taken_for_one_that_the_change_fills() {
    for seed in seeds(8, 200) {
        let (from, to) = (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(5, CHUNK));
        let _case = Case::new(seed, from);
        let mut rig = Rig::new(from, RigOptions { cuts: true, spares: 2, far: Sectors(512), ..RigOptions::new(seed) });
        fill(&mut rig);
        let policy = Policy { rebuild_rate: Sectors::kib(512), ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("the policy is taken");
        rig.world.start_admin(AdminCommand::Reshape { array: rig.array, new: fields(&to) });
        rig.rest_or(1);
        let _ = rig.lose(Slot(0), Loss::Failed);
        let is_filled_from_zero = |rig: &Rig| {
            let superblock = rig.drive_in(Slot(0)).and_then(|drive| superblock_on(&rig.world, drive));
            superblock.is_some_and(|found| found.change().is_some() && found.recovery_offset() == Some(MemberLba(0)))
        };
        while !is_filled_from_zero(&rig) {
            rig.session.step(&mut rig.world);
        }
        assert_eq!(rig.status().reshape.map(|now| now.recorded), Some(Sectors::ZERO), "nothing has moved");
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, 0..4096);
        rig.session.drain(&mut rig.world);
        rig.session.cut_power(&mut rig.world);
        rig.world.boot();
        let refused = rig.world.assemble(false);
        let is_right = matches!(refused, Err(ArrayStartError::Assemble(AssembleError::DirtyDegraded { .. })));
        assert!(is_right, "{refused:?}");
        rig.array = rig.world.assemble(true).unwrap_or_else(|error| panic!("{error}"));
        rig.session.array = rig.array;
        rig.rest();
        rig.shape = to;
        rig.session.learn_capacity(&rig.world, Content::Zeroes);
        assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
        rig.judge();
    }
}

/// The parts of a unit read and write rows, which need work memory too. A unit that has more than half of a zone would wait for
/// them for ever.
#[test]
fn a_unit_that_would_take_more_than_half_of_a_zone_of_the_work_memory_is_refused() {
    for seed in seeds(6, 200) {
        // The work area has 1 MiB: zones of 512, 256 and 256 KiB.
        for (chunk, fits) in [(Sectors::kib(32), true), (Sectors::kib(64), false)] {
            let (from, to) = (ArrayShape::raid5(3, chunk), ArrayShape::raid5(4, chunk));
            let _case = Case::new(seed, from);
            let mut rig = Rig::new(from, RigOptions { spares: 1, far: Sectors(2048), ..options(seed) });
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 60);
            let begun = rig.world.admin(AdminCommand::Reshape { array: rig.array, new: fields(&to) });
            if !fits {
                let error = begun.expect_err("too little memory").to_string();
                assert!(error.starts_with("the work memory is too small for a stripe of the new shape"), "{error}");
                continue;
            }
            begun.unwrap_or_else(|error| panic!("{error}"));
            rig.session.hear(&mut rig.world);
            rig.rest_or(200);
            // Its reads are made with recovery, in the zone that serves after the first one.
            let _ = rig.lose(Slot(1), Loss::Hanging);
            run_to_the_end(&mut rig, false, false);
            rig.rest();
            rig.shape = to;
            rig.session.learn_capacity(&rig.world, Content::Zeroes);
            rig.judge();
        }
    }
}

/// Change the shape with writes and cuts, and check everything. Returns the number of cuts.
fn change_under_cuts(seed: u64, from: ArrayShape, to: ArrayShape) -> u32 {
    let _case = Case::new(seed, to);
    let (mut all, cuts) = (0, !seed.is_multiple_of(4));
    let spares = to.members.saturating_sub(from.members);
    let rig_options = RigOptions { cuts, spares, far: Sectors(2048), ..options(seed) };
    let mut rig = Rig::new(from, rig_options);
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    let before = rig.status().capacity;
    let shape_now = |rig: &Rig| rig.status().superblock.expect("it has metadata").shape();
    loop {
        let size = rig.status().superblock.expect("it has metadata").size;
        let new = next_step(shape_now(&rig), size, fields(&to));
        let command = AdminCommand::Reshape { array: rig.array, new };
        rig.world.admin(command).unwrap_or_else(|error| panic!("{error}"));
        rig.session.hear(&mut rig.world);
        all += run_to_the_end(&mut rig, cuts, false);
        rig.rest();
        // A cut at the begin takes the change back, and some changes have two steps.
        if shape_now(&rig) == fields(&to) {
            break;
        }
    }
    rig.shape = to;
    let capacity = rig.status().capacity;
    let columns = |shape: &ArrayShape| shape.members - shape.geometry().losses_survived();
    assert_eq!(capacity.cmp(&before), columns(&to).cmp(&columns(&from)), "{capacity}");
    rig.session.learn_capacity(&rig.world, Content::Zeroes);
    // All of the new capacity is written, too.
    let load = self::load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    if cuts {
        rig.cut_and_boot();
        rig.rest();
    }
    let status = rig.status();
    let covers = status.superblock.as_ref().and_then(openraid_format::sync_size).expect("it is redundant");
    let regions = status.bitmap.map(|bitmap| bitmap.regions);
    assert_eq!(regions, seed.is_multiple_of(2).then(|| covers.get().div_ceil(8)), "{}", rig.world.dump());
    rig.judge();
    all
}

#[test]
fn more_members_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(24, 2000) {
        for (from, to) in [
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(5, CHUNK)),
            (ArrayShape::raid6(4, CHUNK), ArrayShape::raid6(5, CHUNK)),
        ] {
            all += change_under_cuts(seed, from, to);
        }
    }
    assert!(all > 25, "only {all} cuts");
}

/// Begin a change, cancel it somewhere, and go on to the end. Returns whether the array has its former shape.
fn cancel_under_cuts(seed: u64, from: ArrayShape, to: ArrayShape) -> bool {
    let _case = Case::new(seed, to);
    let cuts = !seed.is_multiple_of(4);
    let spares = to.members.saturating_sub(from.members);
    let mut rig = Rig::new(from, RigOptions { cuts, spares, far: Sectors(2048), ..options(seed) });
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    let before = rig.status().capacity;
    let begun = rig.world.admin(AdminCommand::Reshape { array: rig.array, new: fields(&to) });
    begun.unwrap_or_else(|error| panic!("{error}"));
    rig.session.hear(&mut rig.world);
    rig.session.run(&mut rig.world, &load, 4);
    let steps = u32::try_from(rig.random.below(900)).expect("few");
    rig.rest_or(steps);
    let _ = rig.world.admin(AdminCommand::CancelReshape { array: rig.array });
    rig.session.hear(&mut rig.world);
    run_to_the_end(&mut rig, cuts, false);
    rig.rest();
    let now = rig.status().superblock.expect("it has metadata").shape();
    let is_back = now == fields(&from);
    assert!(is_back || now == fields(&to), "{now:?}");
    assert!(!is_back || rig.status().capacity == before);
    rig.shape = if is_back { from } else { to };
    rig.session.learn_capacity(&rig.world, Content::Zeroes);
    rig.judge();
    is_back
}

#[test]
fn cancelled_changes_under_writes_and_cuts() {
    let mut back = 0;
    for seed in seeds(12, 1000) {
        for (from, to) in [
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::raid6(4, CHUNK), ArrayShape::raid6(6, CHUNK)),
            (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(4, Sectors::kib(32))),
            (ArrayShape::raid5(4, CHUNK), ArrayShape::new(Level::Raid5, 3, 4, CHUNK)),
            (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 6, CHUNK)),
            (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 4, Sectors::kib(32))),
        ] {
            back += u32::from(cancel_under_cuts(seed, from, to));
        }
    }
    assert!(back > 20, "only {back} changes went back");
}

#[test]
fn other_levels_under_writes_and_cuts() {
    let mut all = 0;
    // With 257 the power is cut in the end of a change that has filled a member.
    for seed in seeds(12, 1000).chain([257]) {
        for (from, to) in [
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid6(4, CHUNK)),
            (ArrayShape::raid5(3, CHUNK), ArrayShape::raid6(5, CHUNK)),
            (ArrayShape::raid5(4, CHUNK), ArrayShape::new(Level::Raid6, 18, 5, CHUNK)),
            (ArrayShape::raid6(5, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::new(Level::Raid6, 18, 5, CHUNK), ArrayShape::raid5(4, CHUNK)),
            (ArrayShape::new(Level::Raid4, 0, 4, CHUNK), ArrayShape::new(Level::Raid5, 5, 4, CHUNK)),
            (ArrayShape::raid5(4, CHUNK), ArrayShape::new(Level::Raid4, 0, 4, CHUNK)),
        ] {
            all += change_under_cuts(seed, from, to);
        }
    }
    assert!(all > 25, "only {all} cuts");
}

#[test]
fn mirrors_and_parity_under_writes_and_cuts() {
    let mut all = 0;
    let pages = Sectors::kib(64);
    for seed in seeds(12, 1000) {
        for (from, to) in [
            (ArrayShape::raid1(2), ArrayShape::raid1(3)),
            (ArrayShape::raid1(3), ArrayShape::raid1(2)),
            (ArrayShape::raid1(2), ArrayShape::raid5(2, pages)),
            (ArrayShape::raid1(2), ArrayShape::raid5(3, pages)),
            (ArrayShape::raid1(3), ArrayShape::raid6(4, CHUNK)),
            (ArrayShape::raid5(2, CHUNK), ArrayShape::raid1(2)),
        ] {
            all += change_under_cuts(seed, from, to);
        }
    }
    assert!(all > 25, "only {all} cuts");
}

#[test]
fn other_chunks_and_layouts_under_writes_and_cuts() {
    let mut all = 0;
    let (small, large) = (Sectors::kib(8), Sectors::kib(32));
    for seed in seeds(12, 1000) {
        for (from, to) in [
            (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(4, large)),
            (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(4, small)),
            (ArrayShape::raid5(4, CHUNK), ArrayShape::new(Level::Raid5, 3, 4, CHUNK)),
            (ArrayShape::raid6(5, CHUNK), ArrayShape::new(Level::Raid6, 8, 5, large)),
        ] {
            all += change_under_cuts(seed, from, to);
        }
    }
    assert!(all > 25, "only {all} cuts");
}

#[test]
fn striped_mirrors_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(12, 1000) {
        for (from, to) in [
            (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 5, CHUNK)),
            (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 6, CHUNK)),
            (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 4, Sectors::kib(32))),
            (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x1_0201, 4, CHUNK)),
        ] {
            all += change_under_cuts(seed, from, to);
        }
    }
    assert!(all > 25, "only {all} cuts");
}

/// The end of the array is cut off, and then the array gets fewer members, while hosts write and the power is cut. Returns the
/// number of cuts.
fn fewer_under_cuts(seed: u64, from: ArrayShape, to: ArrayShape) -> u32 {
    let _case = Case::new(seed, to);
    let (mut all, cuts) = (0, !seed.is_multiple_of(4));
    let used = Some(MEMBER_DATA - Sectors::kib(256));
    let mut rig = Rig::new(from, RigOptions { cuts, used, ..options(seed) }.with_cache(seed));
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    let left = ArrayShape { data: MEMBER_DATA - Sectors::kib(256), ..to }.geometry().capacity();
    let command = |rig: &Rig| AdminCommand::Reshape { array: rig.array, new: fields(&to) };
    let order = command(&rig);
    let refused = rig.world.admin(order).expect_err("hosts have the end").to_string();
    assert!(refused.contains(&format!("--array-size {}K", left.get() / 2)), "{refused}");
    while rig.status().superblock.expect("it has metadata").shape() != fields(&to) {
        let limit = AdminCommand::LimitCapacity { array: rig.array, to: Some(left) };
        rig.world.admin(limit).unwrap_or_else(|error| panic!("{error}"));
        rig.session.hear(&mut rig.world);
        rig.session.learn_end(&rig.world);
        let order = command(&rig);
        rig.world.admin(order).unwrap_or_else(|error| panic!("{error}"));
        rig.session.hear(&mut rig.world);
        all += run_to_the_end(&mut rig, cuts, false);
        rig.rest();
    }
    rig.shape = to;
    let status = rig.status();
    let spares = status.members.iter().filter(|member| member.state == MemberState::Spare).count();
    assert_eq!((status.capacity, spares), (left, usize::from(from.members - to.members)), "{}", rig.world.dump());
    rig.session.learn_end(&rig.world);
    rig.judge();
    all
}

#[test]
fn fewer_members_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(16, 2000) {
        for (from, to) in [
            (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(3, CHUNK)),
            (ArrayShape::raid5(5, CHUNK), ArrayShape::raid5(3, CHUNK)),
            (ArrayShape::raid6(6, CHUNK), ArrayShape::raid6(5, CHUNK)),
            (ArrayShape::new(Level::Raid4, 0, 4, CHUNK), ArrayShape::new(Level::Raid4, 0, 3, CHUNK)),
        ] {
            all += fewer_under_cuts(seed, from, to);
        }
    }
    assert!(all > 25, "only {all} cuts");
}

#[test]
fn fewer_members_without_room_after_the_data_are_refused_with_what_helps() {
    let mut rig = Rig::new(ArrayShape::raid5(5, CHUNK), RigOptions::new(1));
    let command = AdminCommand::Reshape { array: rig.array, new: fields(&ArrayShape::raid5(4, CHUNK)) };
    let refused = rig.world.admin(command).expect_err("it cannot be").to_string();
    assert!(refused.contains("(--size)"), "{refused}");
}
