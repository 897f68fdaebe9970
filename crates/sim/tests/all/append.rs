//! A linear array gets drives at its end, while hosts write and the power is cut at each step: nothing acknowledged is lost, and
//! the array has its former size or its new one.

use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, MemberState};
use openraid_core::events::DriveError;
use openraid_core::geometry::Level;
use openraid_format::ShapeFields;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::Content;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{DriveId, Sectors, Token};

fn linear(members: u16, chunk: Sectors) -> ArrayShape {
    ArrayShape::new(Level::Linear, 0, members, chunk)
}

fn shapes() -> [ArrayShape; 4] {
    let unequal = ArrayShape { unequal: true, ..linear(3, Sectors(0)) };
    [linear(1, Sectors(0)), linear(2, Sectors::kib(64)), unequal, linear(4, Sectors::kib(4))]
}

fn load(rig: &Rig) -> Workload {
    Workload { depth: 4, len_max: 48 << 10, align: 512, range: 0..rig.session.capacity(), mix: [2, 4, 1, 1, 1] }
}

fn written(seed: u64, shape: ArrayShape) -> (Rig, DriveId) {
    let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 20);
    let drive = rig.new_drive();
    (rig, drive)
}

/// An array to which a drive began to be added.
struct BegunAppend {
    rig: Rig,
    drive: DriveId,
    /// The size before.
    before: Sectors,
    token: Token,
}

/// An array with data, this number of events after a drive began to be added.
fn begun(seed: u64, shape: ArrayShape, events: u32) -> BegunAppend {
    let (mut rig, drive) = written(seed, shape);
    let before = rig.status().capacity;
    let token = rig.world.start_append(rig.array, drive);
    rig.rest_or(events);
    BegunAppend { rig, drive, before, token }
}

fn join(rig: &mut Rig, drive: DriveId) {
    let token = rig.world.start_append(rig.array, drive);
    rig.rest();
    rig.world.take_answer(token).expect("it has ended").result.expect("it joins");
}

/// The whole of a drive's data area, in whole chunks.
fn added(shape: &ArrayShape) -> Sectors {
    let largest = (0..shape.members).map(|slot| shape.member_data(slot)).max().expect("it has members");
    largest.round_down(shape.chunk.max(Sectors(1)))
}

/// The array works with what it has, all of which is used.
fn used_and_judged(rig: &mut Rig) {
    rig.session.learn_capacity(&rig.world, Content::Anything);
    let load = load(rig);
    rig.session.run(&mut rig.world, &load, 20);
    rig.rest();
    rig.judge();
}

#[test]
fn a_cut_at_each_step_leaves_the_former_size_or_the_new_one() {
    let mut found = [0, 0];
    for seed in seeds(3, 200) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            for step in 0.. {
                let BegunAppend { mut rig, drive, before, token } = begun(seed, shape, step);
                let is_answered = rig.world.take_answer(token).map(|answer| answer.result.expect("it joins")).is_some();
                rig.cut_and_boot();
                let now = rig.status().capacity;
                assert!(now == before && !is_answered || now == before + added(&shape), "step {step}: {now}");
                found[usize::from(now > before)] += 1;
                used_and_judged(&mut rig);
                if now == before {
                    // The drive may have its superblock, or not.
                    join(&mut rig, drive);
                    assert_eq!(rig.status().capacity, before + added(&shape));
                }
                if is_answered {
                    break;
                }
            }
        }
    }
    assert!(found.iter().all(|count| *count > 10), "{found:?}");
}

/// A start may lack the drive, because nothing but the superblocks names it yet.
#[test]
fn a_drive_that_was_to_join_may_be_absent_at_the_next_start_and_come_back() {
    let mut found = [0; 3];
    for seed in seeds(3, 200) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            for step in 0.. {
                let BegunAppend { mut rig, before, token, .. } = begun(seed, shape, step);
                if rig.world.take_answer(token).is_some() {
                    break;
                }
                rig.session.cut_power(&mut rig.world);
                rig.world.boot();
                let present = rig.drives.clone();
                if let Ok(array) = rig.world.assemble_of(&present, false) {
                    (rig.array, rig.session.array) = (array, array);
                    assert_eq!(rig.status().capacity, before);
                    let load = load(&rig);
                    let requests = [0, 1, 20][rig.random.index(3)];
                    rig.session.run(&mut rig.world, &load, requests);
                    found[0] += 1;
                } else {
                    found[1] += 1;
                }
                rig.cut_and_boot();
                used_and_judged(&mut rig);
                found[2] += u32::from(rig.status().capacity > before);
            }
        }
    }
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
}

#[test]
fn a_drive_that_refuses_its_superblock_changes_nothing() {
    for (number, shape) in (0..).zip(shapes()) {
        let _case = Case::new(number, shape);
        for fault in [DriveError::ReadOnly, DriveError::Gone] {
            let (mut rig, drive) = written(number, shape);
            let before = rig.status().capacity;
            rig.world.drive_mut(drive).faults.writes = Some(fault);
            let token = rig.world.start_append(rig.array, drive);
            rig.rest();
            let refused = rig.world.take_answer(token).expect("it has ended").result.expect_err("it is refused");
            assert!(refused.to_string().contains("did not take its superblock"), "{refused}");
            assert_eq!(rig.status().capacity, before);
            used_and_judged(&mut rig);
            rig.restart();
            assert_eq!(rig.status().capacity, before);
            let drive = rig.new_drive();
            join(&mut rig, drive);
            used_and_judged(&mut rig);
            rig.cut_and_boot();
            assert_eq!(rig.status().capacity, before + added(&shape));
            rig.judge();
        }
    }
}

#[test]
fn other_levels_and_other_changes_are_refused() {
    let (mut rig, drive) = written(1, linear(2, Sectors(0)));
    let new = ShapeFields { raid_disks: 3, ..rig.status().superblock.expect("it has metadata").shape() };
    let refused = rig.world.admin(AdminCommand::Reshape { array: rig.array, new }).expect_err("it cannot be");
    assert!(refused.to_string().contains("at its end (--members DRIVE)"), "{refused}");
    let refused = rig.world.add_member(rig.array, drive).expect_err("it has no redundancy");
    assert!(refused.to_string().contains("linear has no spares"), "{refused}");
    for shape in [ArrayShape::raid5(3, Sectors::kib(16)), ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(16))] {
        let mut rig = Rig::new(shape, RigOptions::new(2));
        rig.rest();
        let drive = rig.new_drive();
        let token = rig.world.start_append(rig.array, drive);
        rig.rest();
        let refused = rig.world.take_answer(token).expect("it has ended").result.expect_err("it is not linear");
        assert!(refused.to_string().contains("cannot change its shape"), "{refused}");
    }
}

/// Inside of the engine, a single drive is a mirror of one copy.
#[test]
fn a_single_drive_becomes_a_mirror_under_writes_and_cuts() {
    for seed in seeds(12, 1000) {
        let _case = Case::new(seed, ArrayShape::raid1(1));
        let cuts = !seed.is_multiple_of(4);
        let mut rig = Rig::new(ArrayShape::raid1(1), RigOptions { cuts, ..RigOptions::new(seed) }.with_cache(seed));
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 20);
        let (before, drive) = (rig.status().capacity, rig.new_drive());
        rig.world.add_member(rig.array, drive).unwrap_or_else(|error| panic!("{error}"));
        rig.session.hear(&mut rig.world);
        for _ in 0..20 {
            let common = rig.status().superblock.expect("it has metadata");
            if common.raid_disks == 1 && rig.status().reshape.is_none() {
                let new = ShapeFields { raid_disks: 2, ..common.shape() };
                let _ = rig.world.start_admin(AdminCommand::Reshape { array: rig.array, new });
            }
            rig.session.run(&mut rig.world, &load, 3);
            let steps = [3, 30, 200][rig.random.index(3)];
            rig.rest_or(steps);
            if cuts {
                rig.cut_and_boot();
            }
        }
        rig.rest();
        let status = rig.status();
        assert_eq!((status.capacity, status.superblock.map(|common| common.raid_disks)), (before, Some(2)));
        assert_eq!(status.members.iter().filter(|member| member.state == MemberState::InSync).count(), 2);
        rig.judge();
    }
}
