//! Members are lost in the middle of writes, in every way and every combination that the level survives. The data
//! stays, and a rebuild makes the array whole again.

use crate::support::{seeds, soak, Case};
use openraid_core::admin::{Health, MemberState};
use openraid_core::events::DriveError;
use openraid_core::geometry::Level;
use openraid_core::slot_set::SlotSet;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Loss, Random, Rig, RigOptions};
use openraid_units::{DriveLba, Slot};

fn load(rig: &Rig) -> Workload {
    Workload { len_max: 64 << 10, ..Workload::mixed(rig.session.capacity()) }
}

/// Lose these members one after another while requests run, and make sure that the controller has noticed each loss.
fn lose_all(rig: &mut Rig, missing: SlotSet) {
    let load = load(rig);
    let mut slots: Vec<Slot> = missing.iter().collect();
    rig.random.shuffle(&mut slots);
    for slot in slots {
        rig.session.run_on(&mut rig.world, &load, 20);
        let how = *rig.random.pick(&Loss::ALL);
        rig.lose(slot, how);
        rig.session.run_on(&mut rig.world, &load, 20);
    }
    rig.session.drain(&mut rig.world);
    for slot in missing {
        // The fault is not yet visible if no command of its kind was sent.
        if rig.state_of(slot) == MemberState::InSync {
            rig.lose(slot, Loss::Failed);
        }
    }
}

fn lose_and_rebuild(shape: ArrayShape, missing: SlotSet, seed: u64) {
    let _case = Case::new(seed, format!("{shape}, losing {missing:?}"));
    let options = RigOptions { bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) };
    let mut rig = Rig::new(shape, options);
    lose_all(&mut rig, missing);
    assert_eq!(rig.health(), Health::Degraded);
    let load = load(&rig);
    rig.session.run(&mut rig.world, &load, 60);
    rig.judge();

    for _ in missing {
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).unwrap();
        rig.session.run_on(&mut rig.world, &load, 20);
    }
    rig.session.run(&mut rig.world, &load, 60);
    rig.rest();
    assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
    rig.judge();
}

fn every_redundant(levels: &[Level], sets: usize) {
    for seed in seeds(1, 5) {
        for shape in ArrayShape::all().into_iter().filter(|shape| shape.is_redundant() && levels.contains(&shape.level))
        {
            let mut losses = shape.survivable_losses();
            Random::derived(seed, 99).shuffle(&mut losses);
            losses.truncate(if soak() { usize::MAX } else { sets });
            for missing in losses {
                lose_and_rebuild(shape, missing, seed);
            }
        }
    }
}

#[test]
fn mirrors_survive_losses_and_are_rebuilt() {
    every_redundant(&[Level::Raid1, Level::Raid10], 1);
}

#[test]
fn single_parity_survives_a_loss_and_is_rebuilt() {
    every_redundant(&[Level::Raid4, Level::Raid5], 2);
}

#[test]
fn double_parity_survives_two_losses_and_is_rebuilt() {
    every_redundant(&[Level::Raid6], 1);
}

#[test]
fn every_loss_of_small_arrays_is_survived() {
    let shapes = [
        ArrayShape::raid5(3, openraid_units::Sectors::kib(8)),
        ArrayShape::raid6(4, openraid_units::Sectors::kib(8)),
        ArrayShape::raid1(3),
        ArrayShape::raid10(0x102, 4, openraid_units::Sectors::kib(8)),
    ];
    for seed in seeds(1, 10) {
        for shape in shapes {
            for missing in shape.survivable_losses() {
                lose_and_rebuild(shape, missing, seed);
            }
        }
    }
}

#[test]
fn an_array_that_was_made_with_missing_members_serves_and_is_completed() {
    for seed in seeds(1, 10) {
        for shape in [ArrayShape::raid5(4, openraid_units::Sectors::kib(16)), ArrayShape::raid1(2)] {
            let _case = Case::new(seed, shape);
            let missing = SlotSet::one(Slot(1));
            let mut rig = Rig::new(shape, RigOptions { missing, ..RigOptions::new(seed) });
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 60);
            rig.judge();
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal);
            rig.judge();
        }
    }
}

/// Members of a new array have junk without matching parity. Data written before the end of the resync must survive,
/// whichever member is lost next.
#[test]
fn a_double_parity_that_was_made_with_a_missing_member_survives_another_loss() {
    for seed in seeds(24, 200) {
        let shape = ArrayShape::raid6(6, openraid_units::Sectors::kib(16));
        let _case = Case::new(seed, shape);
        let missing = SlotSet::one(Slot(u16::try_from(seed % 6).unwrap()));
        let mut rig = Rig::new(shape, RigOptions { missing, junk: true, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run_on(&mut rig.world, &load, 40);
        rig.lose(Slot(u16::try_from((seed + 3) % 6).unwrap()), Loss::Failed);
        rig.judge();
    }
}

/// A degraded array needs every remaining member. If one of them refuses some writes, the others have their part of the
/// rows. The missing part cannot be reconstructed, and must not be invented.
#[test]
fn a_write_that_a_needed_member_does_not_take_makes_nothing_up() {
    let mut unread = 0;
    for seed in seeds(24, 200) {
        let kib = openraid_units::Sectors::kib;
        let (shape, lost) =
            if seed % 2 == 0 { (ArrayShape::raid5(4, kib(16)), 1) } else { (ArrayShape::raid6(5, kib(16)), 2) };
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 3 == 0, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 60);
        for slot in 0..lost {
            rig.lose(Slot(slot), Loss::Failed);
        }
        rig.session.run(&mut rig.world, &load, 20);
        let refuses = rig.drive_in(Slot(3)).unwrap();
        rig.session.tolerate_errors = true;
        for _ in 0..6 {
            rig.session.run_on(&mut rig.world, &load, 8);
            rig.world.drive_mut(refuses).faults.writes = Some(DriveError::NoSpace);
            rig.session.run_on(&mut rig.world, &load, 2);
            rig.world.drive_mut(refuses).faults.writes = None;
        }
        rig.session.drain(&mut rig.world);
        let before = rig.session.errors;
        rig.session.look_at_all(&mut rig.world);
        rig.session.drain(&mut rig.world);
        unread += rig.session.errors - before;
    }
    assert!(unread > 0, "no write left an unreadable row");
}

/// A needed member that fails a write once gets the write again. No data is lost, no host gets an error, and the array
/// continues.
#[test]
fn a_write_that_a_needed_member_takes_at_the_second_time_is_no_loss() {
    for seed in seeds(24, 200) {
        let kib = openraid_units::Sectors::kib;
        let shapes = [
            (ArrayShape::raid5(4, kib(16)), 1),
            (ArrayShape::raid6(5, kib(16)), 2),
            (ArrayShape::raid1(2), 1),
            (ArrayShape::new(Level::Raid0, 4, 4, kib(16)), 0),
        ];
        let (shape, lost) = shapes[usize::try_from(seed % 4).unwrap()];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: lost > 0 && seed % 3 == 0, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 60);
        for slot in 0..lost {
            rig.lose(Slot(slot), Loss::Failed);
        }
        rig.session.run(&mut rig.world, &load, 20);
        let refuses = rig.drive_in(Slot(shape.members - 1)).unwrap();
        let mut asked = 0;
        for _ in 0..20 {
            rig.world.drive_mut(refuses).faults.next_write = Some(DriveError::Media { lba: DriveLba(4096) });
            rig.session.run(&mut rig.world, &load, 8);
            rig.session.drain(&mut rig.world);
            asked += u32::from(rig.world.drive(refuses).faults.next_write.is_none());
        }
        assert!(asked > 10, "hardly a write was refused: {asked}");
        assert_eq!(rig.session.errors, 0);
        rig.judge();
    }
}

/// Arrays with parity are written, and then discarded in whole stripes if `before` has allowed it. Parity must match,
/// so that the later loss of a member loses no data. `before` determines the health of the arrays during the discards.
fn judge_discards(
    seeds: std::ops::Range<u64>,
    options: impl Fn(u64) -> RigOptions,
    before: impl Fn(&mut Rig, u64) -> Health,
) {
    for seed in seeds {
        let kib = openraid_units::Sectors::kib;
        let shape = if seed % 2 == 0 { ArrayShape::raid5(4, kib(16)) } else { ArrayShape::raid6(5, kib(16)) };
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, options(seed));
        let writes = load(&rig);
        // Whole stripes, because only whole stripes are discarded.
        let trims = Workload { mix: [10, 20, 2, 60, 2], align: 16 << 10, len_max: 512 << 10, ..writes.clone() };
        rig.session.run(&mut rig.world, &writes, 60);
        let health = before(&mut rig, seed);
        rig.session.run(&mut rig.world, &trims, 80);
        rig.session.drain(&mut rig.world);
        assert_eq!(rig.health(), health);
        rig.judge_redundancy();
        rig.lose(Slot(u16::try_from((seed + 1) % 4).unwrap()), Loss::Failed);
        rig.session.run(&mut rig.world, &writes, 40);
        rig.judge();
    }
}

/// Members refuse discards, in part or completely, while others carry them out.
#[test]
fn a_discard_that_a_member_refuses_leaves_parity_that_fits() {
    let options = |seed| RigOptions { bitmap: seed % 3 == 0, ..RigOptions::new(seed) };
    judge_discards(seeds(24, 200), options, |rig, seed| {
        let refuses = rig.drive_in(Slot(u16::try_from(seed % 4).unwrap())).unwrap();
        rig.world.drive_mut(refuses).faults.discards = Some(DriveError::Unsupported);
        // A drive that does not zero gets zeroes as data.
        Health::Optimal
    });
}

/// A degraded array needs every member. One that refuses a discard, and does not zero, gets zeroes as data: a trim, which
/// is advisory, must not fail the array.
#[test]
fn a_discard_that_a_needed_member_refuses_fails_no_array() {
    for seed in seeds(8, 80) {
        let kib = openraid_units::Sectors::kib;
        let (shape, lost) =
            if seed % 2 == 0 { (ArrayShape::raid5(4, kib(16)), 1) } else { (ArrayShape::raid6(5, kib(16)), 2) };
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { write_zeroes: false, ..RigOptions::new(seed) });
        let writes = load(&rig);
        let trims = Workload { mix: [10, 20, 2, 60, 2], align: 16 << 10, len_max: 512 << 10, ..writes.clone() };
        rig.session.run(&mut rig.world, &writes, 60);
        for slot in 0..lost {
            rig.lose(Slot(slot), Loss::Failed);
        }
        let refuses = rig.drive_in(Slot(shape.members - 1)).unwrap();
        rig.world.drive_mut(refuses).faults.discards = Some(DriveError::Unsupported);
        rig.session.run(&mut rig.world, &trims, 80);
        rig.session.drain(&mut rig.world);
        assert_eq!((rig.health(), rig.session.errors), (Health::Degraded, 0));
        rig.judge();
    }
}

/// A copy that was not discarded would differ from the others, and no later write or resync would find it.
#[test]
fn a_discard_that_a_mirrored_member_refuses_leaves_copies_that_fit() {
    for seed in seeds(12, 100) {
        let shape = if seed % 2 == 0 {
            ArrayShape::raid1(3)
        } else {
            ArrayShape::raid10(0x102, 4, openraid_units::Sectors::kib(16))
        };
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 3 == 0, ..RigOptions::new(seed) });
        let writes = load(&rig);
        let trims = Workload { mix: [10, 20, 2, 60, 2], ..writes.clone() };
        rig.session.run(&mut rig.world, &writes, 60);
        let slot = Slot(u16::try_from(seed % 3).unwrap());
        let refuses = rig.drive_in(slot).unwrap();
        rig.world.drive_mut(refuses).faults.discards = Some(DriveError::Unsupported);
        rig.session.run(&mut rig.world, &trims, 80);
        rig.session.drain(&mut rig.world);
        assert_eq!(rig.health(), Health::Optimal);
        rig.judge_redundancy();
        rig.judge();
    }
}

/// Drives whose content after a discard is unknown.
#[test]
fn the_content_of_drives_after_a_discard_need_not_be_known() {
    let options = |seed| RigOptions { discard_zeroes: false, ..RigOptions::new(seed) };
    judge_discards(seeds(12, 100), options, |_, _| Health::Optimal);
}

#[test]
fn losing_more_than_can_be_survived_fails_requests_and_breaks_no_rule() {
    for seed in seeds(6, 60) {
        let shapes = [
            ArrayShape::raid5(4, openraid_units::Sectors::kib(16)),
            ArrayShape::raid6(5, openraid_units::Sectors::kib(4)),
        ];
        let shape = shapes[usize::from(seed.is_multiple_of(2))];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        rig.session.tolerate_errors = true;
        let load = load(&rig);
        for slot in 0..3 {
            rig.session.run_on(&mut rig.world, &load, 20);
            rig.lose(Slot(slot), Loss::Pulled);
        }
        rig.session.run(&mut rig.world, &load, 60);
        assert_eq!(rig.health(), Health::Failed);
        assert!(rig.session.errors > 30);
    }
}
