//! An array uses more of its members while hosts write and the power is cut: nothing acknowledged is lost, and a resync makes
//! the new part agree.

use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, AdminError, Health};
use openraid_core::array::used_size::UsedSize;
use openraid_core::geometry::Level;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::Content;
use openraid_sim::test_arrays::MEMBER_DATA;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::Sectors;

const CHUNK: Sectors = Sectors::kib(16);

fn load(rig: &Rig) -> Workload {
    Workload { depth: 4, len_max: 48 << 10, align: 512, range: 0..rig.session.capacity(), mix: [2, 4, 1, 1, 1] }
}

/// Used drives hold other data, so that only a resync makes them agree.
fn rig(seed: u64, shape: ArrayShape, used: Sectors) -> Rig {
    let cuts = !seed.is_multiple_of(4);
    let bitmap = seed.is_multiple_of(2);
    let options =
        RigOptions { cuts, bitmap, bitmap_chunk: Some(4096), junk: true, used: Some(used), ..RigOptions::new(seed) };
    let mut rig = Rig::new(shape, options);
    rig.rest();
    rig
}

/// Begin a change, and cut the power at any step of it, or wait for its end. True if the power was cut.
fn begin_or_cut(rig: &mut Rig, command: AdminCommand, cuts: bool) -> bool {
    let token = rig.world.start_admin(command);
    let steps = u32::try_from(rig.random.below(60)).expect("few");
    rig.rest_or(steps);
    if cuts && rig.random.below(4) > 0 {
        rig.cut_and_boot();
        return true;
    }
    rig.rest();
    match rig.world.take_answer(token).expect("it has ended").result {
        // After a cut, a resync goes first.
        Ok(_) | Err(AdminError::TaskRuns(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the number of cuts.
fn more_of_each_under_cuts(seed: u64, shape: ArrayShape) -> u32 {
    let _case = Case::new(seed, shape);
    let used = Sectors::kib(256 + 64 * (seed % 8));
    let (mut rig, cuts, mut all) = (rig(seed, shape, used), !seed.is_multiple_of(4), 0);
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 40);
    let before = rig.status().capacity;
    while rig.status().superblock.expect("it has metadata").size < MEMBER_DATA {
        let command = AdminCommand::Resize { array: rig.array, to: UsedSize::Max };
        all += u32::from(begin_or_cut(&mut rig, command, cuts));
        rig.session.run(&mut rig.world, &load, 6);
        let steps = [3, 40, 300][rig.random.index(3)];
        rig.rest_or(steps);
        if cuts && rig.health() == Health::Optimal {
            rig.cut_and_boot();
            all += 1;
        }
    }
    while rig.status().reshape.is_some() {
        rig.rest_or(3);
    }
    assert!(rig.status().capacity > before, "{}", rig.world.dump());
    rig.session.learn_capacity(&rig.world, Content::Anything);
    // All of the new capacity is written, too, before, in and after the resync.
    for _ in 0..4 {
        let load = self::load(&rig);
        rig.session.run(&mut rig.world, &load, 30);
        if cuts && rig.random.below(2) == 0 {
            rig.cut_and_boot();
            all += 1;
        }
    }
    rig.rest();
    let status = rig.status();
    assert!(status.health == Health::Optimal && status.task.is_none(), "{}", rig.world.dump());
    check_regions(&rig, seed.is_multiple_of(2));
    rig.judge();
    all
}

fn shapes() -> [ArrayShape; 7] {
    [
        ArrayShape::raid1(2),
        ArrayShape::raid5(3, CHUNK),
        ArrayShape::raid6(5, CHUNK),
        ArrayShape::new(Level::Raid4, 0, 4, CHUNK),
        ArrayShape::raid10(0x102, 4, CHUNK),
        ArrayShape::raid10(0x102, 3, CHUNK),
        ArrayShape::raid10(0x10201, 4, CHUNK),
    ]
}

#[test]
fn more_of_each_member_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(24, 2000) {
        for shape in shapes() {
            all += more_of_each_under_cuts(seed, shape);
        }
    }
    assert!(all > 100, "only {all} cuts");
}

#[test]
fn members_without_more_room_and_far_copies_are_refused() {
    for (shape, used, says) in [
        (ArrayShape::raid5(3, CHUNK), MEMBER_DATA, "uses 1.5 MiB (3072 sectors) of each member"),
        (ArrayShape::raid10(0x201, 4, CHUNK), Sectors::kib(512), "far copies would move"),
    ] {
        let mut rig = rig(1, shape, used);
        let command = AdminCommand::Resize { array: rig.array, to: UsedSize::Max };
        let refused = rig.world.admin(command).expect_err("it cannot be");
        assert!(refused.to_string().contains(says), "{refused}");
    }
}

/// The host stops to use the end of the array, an administrator cuts the end off, and then the members are used less, while
/// hosts write and the power is cut. Then the members are used as before again. Returns the number of cuts.
fn less_of_each_under_cuts(seed: u64, shape: ArrayShape) -> u32 {
    let _case = Case::new(seed, shape);
    let (cuts, bitmap) = (!seed.is_multiple_of(4), seed.is_multiple_of(2));
    let options = RigOptions { cuts, bitmap, bitmap_chunk: Some(4096), ..RigOptions::new(seed) };
    let (mut rig, mut all) = (Rig::new(shape, options.with_cache(seed)), 0);
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    let whole = rig.status().capacity;
    let to = MEMBER_DATA - Sectors::kib(64 + 64 * (seed % 8));
    let left = ArrayShape { data: to, ..shape }.geometry().capacity();
    let resize = |rig: &Rig| AdminCommand::Resize { array: rig.array, to: UsedSize::Of(to) };
    let limit = |rig: &Rig| AdminCommand::LimitCapacity { array: rig.array, to: Some(left) };
    let command = resize(&rig);
    let refused = rig.world.admin(command).expect_err("hosts have the end").to_string();
    let needed = format!("--array-size {}K", left.get() / 2);
    assert!(refused.contains(&needed), "{refused}");
    while rig.status().superblock.expect("it has metadata").size != to {
        let command = limit(&rig);
        rig.world.admin(command).unwrap_or_else(|error| panic!("{error}"));
        rig.session.hear(&mut rig.world);
        assert_eq!(rig.status().capacity, left);
        rig.session.learn_end(&rig.world);
        let load = self::load(&rig);
        rig.session.run(&mut rig.world, &load, 6);
        let command = resize(&rig);
        all += u32::from(begin_or_cut(&mut rig, command, cuts));
    }
    let load = self::load(&rig);
    rig.session.run(&mut rig.world, &load, 6);
    if cuts {
        rig.cut_and_boot();
        all += 1;
    }
    rig.rest();
    assert_eq!(rig.status().capacity, left, "{}", rig.world.dump());
    rig.session.learn_end(&rig.world);
    check_regions(&rig, bitmap);
    rig.judge();
    // The sectors beyond the end are no data of the array any longer.
    rig.world
        .admin(AdminCommand::Resize { array: rig.array, to: UsedSize::Max })
        .unwrap_or_else(|error| panic!("{error}"));
    rig.rest();
    assert_eq!(rig.status().capacity, whole);
    rig.session.learn_capacity(&rig.world, Content::Anything);
    let load = self::load(&rig);
    rig.session.run(&mut rig.world, &load, 30);
    rig.rest();
    check_regions(&rig, bitmap);
    rig.judge();
    all
}

fn check_regions(rig: &Rig, bitmap: bool) {
    let status = rig.status();
    let covers = status.superblock.as_ref().and_then(openraid_format::sync_size).expect("it is redundant");
    let regions = status.bitmap.map(|bitmap| bitmap.regions);
    assert_eq!(regions, bitmap.then(|| covers.get().div_ceil(8)), "{}", rig.world.dump());
}

#[test]
fn less_of_each_member_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(24, 2000) {
        for shape in shapes() {
            all += less_of_each_under_cuts(seed, shape);
        }
    }
    assert!(all > 100, "only {all} cuts");
}

#[test]
fn sizes_that_no_member_can_have_are_refused() {
    let mut rig = rig(1, ArrayShape::raid5(3, CHUNK), Sectors::kib(512));
    for (to, says) in [
        (Sectors::kib(515), "ask for 512 KiB"),
        (Sectors(3), "ask for 16 KiB"),
        (Sectors::mib(3), "the smallest has 1.5 MiB"),
        (Sectors::kib(512), "has this shape already"),
    ] {
        let command = AdminCommand::Resize { array: rig.array, to: UsedSize::Of(to) };
        let refused = rig.world.admin(command).expect_err("it cannot be");
        assert!(refused.to_string().contains(says), "{refused}");
    }
    for to in [Sectors::mib(3), Sectors::ZERO] {
        let command = AdminCommand::LimitCapacity { array: rig.array, to: Some(to) };
        let refused = rig.world.admin(command).expect_err("it cannot be");
        assert!(refused.to_string().contains("hosts can have"), "{refused}");
    }
}

/// A trial loses nothing.
#[test]
fn hosts_get_the_end_back_that_was_cut_off_for_a_trial() {
    let mut rig = Rig::new(ArrayShape::raid5(3, CHUNK), RigOptions::new(5));
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    let whole = rig.status().capacity;
    for to in [Some(whole / 2), None, Some(whole)] {
        rig.session.drain(&mut rig.world);
        rig.world.admin(AdminCommand::LimitCapacity { array: rig.array, to }).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rig.status().capacity, to.unwrap_or(whole));
        let beyond = rig.world.read(rig.array, whole.bytes().get() - 4096, 4096);
        assert_eq!(beyond.is_ok(), to != Some(whole / 2), "{beyond:?}");
    }
    rig.judge();
}
