//! An array uses more of its members while hosts write and the power is cut: nothing acknowledged is lost, and a resync makes
//! the new part agree.

use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, AdminError, Health};
use openraid_core::geometry::Level;
use openraid_sim::oracle::session::Workload;
use openraid_sim::oracle::Content;
use openraid_sim::shape::MEMBER_DATA;
use openraid_sim::{Rig, RigOptions, Shape};
use openraid_units::Sectors;

const CHUNK: Sectors = Sectors::kib(16);

fn load(rig: &Rig) -> Workload {
    Workload { depth: 4, len_max: 48 << 10, align: 512, range: 0..rig.session.capacity(), mix: [2, 4, 1, 1, 1] }
}

/// Used drives hold other data, so that only a resync makes them agree.
fn rig(seed: u64, shape: Shape, used: Sectors) -> Rig {
    let cuts = !seed.is_multiple_of(4);
    let bitmap = seed.is_multiple_of(2);
    let options =
        RigOptions { cuts, bitmap, bitmap_chunk: Some(4096), junk: true, used: Some(used), ..RigOptions::new(seed) };
    let mut rig = Rig::new(shape, options);
    rig.rest();
    rig
}

/// Returns the number of cuts.
fn more_of_each_under_cuts(seed: u64, shape: Shape) -> u32 {
    let _case = Case::new(seed, shape);
    let used = Sectors::kib(256 + 64 * (seed % 8));
    let (mut rig, cuts, mut all) = (rig(seed, shape, used), !seed.is_multiple_of(4), 0);
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 40);
    let before = rig.status().capacity;
    while rig.status().superblock.expect("it has metadata").size < MEMBER_DATA {
        let begun = rig.world.admin(AdminCommand::Resize { array: rig.array });
        match begun {
            Ok(_) => {}
            // After a cut, a resync goes first.
            Err(AdminError::TaskRuns(_)) => rig.rest(),
            Err(error) => panic!("{error}"),
        }
        rig.session.hear(&mut rig.world);
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
    let covers = status.superblock.as_ref().and_then(openraid_format::sync_size).expect("it is redundant");
    let regions = status.bitmap.map(|bitmap| bitmap.regions);
    assert_eq!(regions, seed.is_multiple_of(2).then(|| covers.get().div_ceil(8)), "{}", rig.world.dump());
    rig.judge();
    all
}

#[test]
fn more_of_each_member_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(24, 2000) {
        for shape in [
            Shape::raid1(2),
            Shape::raid5(3, CHUNK),
            Shape::raid6(5, CHUNK),
            Shape::new(Level::Raid4, 0, 4, CHUNK),
            Shape::raid10(0x102, 4, CHUNK),
            Shape::raid10(0x102, 3, CHUNK),
            Shape::raid10(0x10201, 4, CHUNK),
        ] {
            all += more_of_each_under_cuts(seed, shape);
        }
    }
    assert!(all > 100, "only {all} cuts");
}

#[test]
fn members_without_more_room_and_far_copies_are_refused() {
    for (shape, used, says) in [
        (Shape::raid5(3, CHUNK), MEMBER_DATA, "uses 1.5 MiB (3072 sectors) of each member"),
        (Shape::raid10(0x201, 4, CHUNK), Sectors::kib(512), "far copies would move"),
    ] {
        let mut rig = rig(1, shape, used);
        let refused = rig.world.admin(AdminCommand::Resize { array: rig.array }).expect_err("it cannot be");
        assert!(refused.to_string().contains(says), "{refused}");
    }
}
