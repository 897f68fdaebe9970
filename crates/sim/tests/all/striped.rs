//! A RAID 0 gets parity or copies, and an array that has lost them on purpose becomes RAID 0, while hosts write and the power
//! is cut: nothing moves, and nothing is lost.

use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, AdminError, Health, MemberState, NewMember};
use openraid_core::array::new_array::{superblock_for_new_member, NewDrive};
use openraid_core::geometry::Level;
use openraid_format::{MdLevel, ShapeFields, Uuid};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::rig::Loss;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);

const fn raid0(members: u16) -> ArrayShape {
    ArrayShape::new(Level::Raid0, 0, members, CHUNK)
}

fn load(rig: &Rig) -> Workload {
    Workload { depth: 4, len_max: 48 << 10, align: 512, range: 0..rig.session.capacity(), mix: [2, 4, 1, 1, 1] }
}

fn fields(shape: &ArrayShape) -> ShapeFields {
    let level = MdLevel::from_number(shape.level.md_number().expect("md has it")).expect("md's number");
    ShapeFields { level, layout: shape.layout, chunk: shape.chunk, raid_disks: shape.members }
}

fn shape_now(rig: &Rig) -> ShapeFields {
    rig.status().superblock.expect("it has metadata").shape()
}

/// Write and cut the power now and then. Returns the number of cuts.
fn run_on(rig: &mut Rig, cuts: bool, rounds: u32) -> u32 {
    let (load, mut all) = (load(rig), 0);
    for _ in 0..rounds {
        rig.session.run(&mut rig.world, &load, 6);
        let steps = [3, 40, 300][rig.random.index(3)];
        rig.rest_or(steps);
        if cuts && rig.random.below(2) == 0 {
            rig.cut_and_boot();
            all += 1;
        }
    }
    all
}

/// Change the shape, with a cut at any step of it. Returns the number of cuts.
fn take_over(rig: &mut Rig, to: ArrayShape, cuts: bool) -> u32 {
    let (before, mut all) = (rig.status().capacity, 0);
    while shape_now(rig) != fields(&to) {
        let load = load(rig);
        rig.session.run(&mut rig.world, &load, 6);
        let token = rig.world.start_admin(AdminCommand::Reshape { array: rig.array, new: fields(&to) });
        let steps = rig.random.below(60);
        rig.rest_or(u32::try_from(steps).expect("few"));
        if cuts && rig.random.below(4) > 0 {
            rig.cut_and_boot();
            all += 1;
        } else {
            rig.rest();
            let answer = rig.world.take_answer(token).expect("it has ended");
            answer.result.unwrap_or_else(|error| panic!("{error}: {}", rig.world.dump()));
        }
    }
    rig.rest();
    assert_eq!(rig.status().capacity, before, "nothing moves");
    rig.shape = to;
    rig.judge();
    all
}

/// Give all slots that are empty a member.
fn fill_slots(rig: &mut Rig, cuts: bool) -> u32 {
    let mut all = 0;
    for number in 0.. {
        let status = rig.status();
        if status.health == Health::Optimal {
            break;
        }
        assert!(number < 40, "{}", rig.world.dump());
        let busy = status.members.iter().any(|member| matches!(member.state, MemberState::Rebuilding { .. }));
        let spare = status.members.iter().any(|member| member.state == MemberState::Spare);
        if !busy && !spare {
            let drive = rig.new_drive();
            let capacity = rig.world.drive(drive).spec().capacity;
            let new = NewDrive { drive, capacity, uuid: Uuid([100 + number; 16]) };
            let common = status.superblock.expect("it has metadata");
            let superblock = superblock_for_new_member(&common, &new).expect("it fits");
            let member = NewMember { drive, superblock, returning: false };
            rig.world.admin(AdminCommand::Add { array: rig.array, member }).expect("it is taken");
            rig.session.hear(&mut rig.world);
        }
        all += run_on(rig, cuts, 2);
        rig.rest();
    }
    rig.judge();
    all
}

/// Take the members of these slots out of the array.
fn take_out(rig: &mut Rig, slots: &[u16]) {
    rig.rest();
    for slot in slots.iter().copied().map(Slot) {
        let drive = rig.lose(slot, Loss::Failed);
        rig.rest();
        rig.world.admin(AdminCommand::Remove { array: rig.array, drive }).unwrap_or_else(|error| panic!("{error}"));
        rig.rest();
    }
}

/// From RAID 0 to the level, with members for all slots, and back without these members. Returns the number of cuts.
fn there_and_back(seed: u64, to: ArrayShape, without: &[u16]) -> u32 {
    let _case = Case::new(seed, to);
    let cuts = !seed.is_multiple_of(4);
    let from = raid0(to.members - u16::try_from(without.len()).expect("few"));
    let mut rig = Rig::new(from, RigOptions { cuts, ..RigOptions::new(seed) }.with_cache(seed));
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    let mut all = take_over(&mut rig, to, cuts);
    assert_eq!(rig.health(), Health::Degraded, "{}", rig.world.dump());
    all += run_on(&mut rig, cuts && to.level != Level::Raid10, 4);
    all += fill_slots(&mut rig, cuts);
    let back = AdminCommand::Reshape { array: rig.array, new: fields(&from) };
    let refused = rig.world.admin(back).expect_err("all members are there").to_string();
    assert!(refused.contains("remove"), "{refused}");
    take_out(&mut rig, without);
    all += take_over(&mut rig, from, cuts);
    assert_eq!(rig.health(), Health::Optimal);
    all += run_on(&mut rig, cuts, 4);
    rig.rest();
    rig.judge();
    rig.restart();
    rig.judge();
    all
}

#[test]
fn raid_0_gets_parity_and_loses_it_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(24, 2000) {
        all += there_and_back(seed, ArrayShape::new(Level::Raid4, 0, 4, CHUNK), &[3]);
        all += there_and_back(seed, ArrayShape::new(Level::Raid5, 5, 4, CHUNK), &[3]);
        all += there_and_back(seed, ArrayShape::new(Level::Raid5, 5, 3, CHUNK), &[2]);
    }
    assert!(all > 100, "only {all} cuts");
}

#[test]
fn raid_0_gets_copies_and_loses_them_under_writes_and_cuts() {
    let mut all = 0;
    for seed in seeds(24, 2000) {
        // One of each pair goes, the first or the second one.
        let without: Vec<u16> = (0..3).map(|pair| 2 * pair + u16::from(seed >> pair & 1 == 1)).collect();
        all += there_and_back(seed, ArrayShape::raid10(0x102, 6, CHUNK), &without);
    }
    assert!(all > 30, "only {all} cuts");
}

#[test]
fn what_md_does_not_do_is_refused_with_what_would_help() {
    let unequal = ArrayShape { unequal: true, layout: 2, ..raid0(3) };
    let five = ArrayShape::new(Level::Raid5, 5, 4, CHUNK);
    for (from, to, says) in [
        (unequal, five, "RAID 0 over members of unequal size keeps its level"),
        (raid0(3), ArrayShape::raid5(4, CHUNK), "without a move of data the layout is 5"),
        (raid0(3), ArrayShape::raid10(0x102, 4, CHUNK), "without a move of data"),
        (raid0(3), raid0(4), "raid0 cannot change its shape"),
        (five, raid0(3), "when the parity member in slot 3 is removed"),
        (ArrayShape::raid5(4, CHUNK), raid0(3), "change the layout to parity-last first"),
        (ArrayShape::raid10(0x103, 3, CHUNK), raid0(1), "only with the layout n2"),
        (ArrayShape::raid10(0x102, 4, CHUNK), raid0(2), "exactly one member of each pair is missing"),
    ] {
        let mut rig = Rig::new(from, RigOptions::new(1));
        let command = AdminCommand::Reshape { array: rig.array, new: fields(&to) };
        let refused = rig.world.admin(command).expect_err("it cannot be");
        assert!(matches!(refused, AdminError::Refused(_)), "{from}: {refused}");
        assert!(refused.to_string().contains(says), "{from} to {to}: {refused}");
    }
}

/// Linux md starts no RAID 0 with other devices than its members.
#[test]
fn a_raid_0_with_spares_is_not_made() {
    let shape = ArrayShape::new(Level::Raid5, 5, 4, CHUNK);
    let mut rig = Rig::new(shape, RigOptions::new(3));
    let drive = rig.lose(Slot(3), Loss::Failed);
    rig.rest();
    let command = AdminCommand::Reshape { array: rig.array, new: fields(&raid0(3)) };
    let refused = rig.world.admin(command.clone()).expect_err("a member has failed").to_string();
    assert!(refused.contains("take them out first"), "{refused}");
    rig.world.admin(AdminCommand::Remove { array: rig.array, drive }).expect("it has failed");
    rig.world.admin(command).expect("it is alone");
}

/// RAID 0 has no write-intent bitmap, and Linux md refuses to make one of an array that has one. Here it goes with the
/// redundancy, whatever is being written to it.
#[test]
fn a_bitmap_goes_with_the_redundancy() {
    for seed in seeds(12, 400) {
        let shape = ArrayShape::new(Level::Raid5, 5, 4, CHUNK);
        let _case = Case::new(seed, shape);
        let options = RigOptions { cuts: true, bitmap: true, bitmap_chunk: Some(4096), ..RigOptions::new(seed) };
        let mut rig = Rig::new(shape, options);
        run_on(&mut rig, false, 3);
        take_out(&mut rig, &[3]);
        assert!(rig.status().bitmap.is_some());
        take_over(&mut rig, raid0(3), true);
        run_on(&mut rig, true, 3);
        rig.rest();
        let status = rig.status();
        assert!(status.bitmap.is_none() && status.health == Health::Optimal, "{}", rig.world.dump());
        let has = |superblock: &openraid_format::Superblock| superblock.bitmap_offset().is_some();
        assert!(!rig
            .drives
            .iter()
            .filter_map(|drive| superblock_on(&rig.world, *drive))
            .take(3)
            .any(|superblock| has(&superblock)));
        rig.judge();
    }
}
