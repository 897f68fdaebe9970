//! A member fails, and the power is cut before any other member can record the failure. The member returns with the
//! power and counts as good. No data that was written meanwhile may depend on its failure.

use crate::support::journalled::{attach_journal, limits_with_journal, protect, JOURNAL};
use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, Health, MemberState, Policy};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::array::membership::Membership;
use openraid_core::events::DriveError;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Nanos, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);

/// Writes of a few stripes, so that each is written repeatedly.
fn load(rig: &Rig) -> Workload {
    Workload {
        depth: 8,
        len_max: 24 << 10,
        align: 512,
        range: 0..rig.session.capacity().min(256 << 10),
        mix: [0, 1, 0, 0, 0],
    }
}

/// The member in a slot refuses writes from now on, while hosts write. A few steps after the engine has seen it, the
/// power is cut. After that the member works again.
fn fails_and_is_back(rig: &mut Rig, slot: Slot, load: &Workload) {
    let drive = rig.drive_in(slot).expect("the slot has a member");
    rig.world.drive_mut(drive).faults.writes = Some(DriveError::Gone);
    for _ in 0..4000 {
        if matches!(rig.state_of(slot), MemberState::Failing(_)) {
            break;
        }
        if rig.session.outstanding() < load.depth {
            rig.session.ask_random(&mut rig.world, load);
        }
        rig.rest_or(1);
    }
    for _ in 0..8 {
        rig.session.ask_random(&mut rig.world, load);
    }
    let steps = u32::try_from(rig.random.below(8)).expect("few");
    rig.rest_or(steps);
    rig.session.cut_power(&mut rig.world);
    rig.world.drive_mut(drive).faults.writes = None;
}

/// Check all data, and the redundancy of all members.
fn judge(rig: &mut Rig) {
    rig.session.look_at_all(&mut rig.world);
    rig.rest();
    rig.judge();
    rig.judge_redundancy();
}

#[test]
fn rows_fit_with_a_partial_parity_log() {
    let mut back = 0;
    for seed in seeds(300, 8000) {
        let shape = ArrayShape::raid5(4, CHUNK);
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { ppl: true, cuts: true, ..RigOptions::new(seed) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 40);
        fails_and_is_back(&mut rig, Slot(u16::try_from(seed % 4).expect("small")), &load);
        rig.boot();
        // If the failure was recorded, such a log does not cover the writes to the member that were under way.
        if rig.health() == Health::Optimal {
            back += 1;
            judge(&mut rig);
        }
    }
    assert!(back > 20, "only {back} times it was back before anybody knew");
}

#[test]
fn rows_and_copies_fit_with_a_journal() {
    let mut back = 0;
    for seed in seeds(100, 3000) {
        for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(2)] {
            let _case = Case::new(seed, shape);
            let mut options = RigOptions { cuts: false, ..RigOptions::new(seed) };
            options.world.limits = limits_with_journal(openraid_units::Bytes::kib(256));
            let mut rig = Rig::new(shape, options);
            rig.rest();
            let devices = rig.world.make_journal(1, JOURNAL);
            attach_journal(&mut rig.world, &devices);
            protect(&mut rig.world, rig.array);
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 40);
            fails_and_is_back(&mut rig, Slot(u16::try_from(seed % 2).expect("small")), &load);
            rig.world.boot();
            attach_journal(&mut rig.world, &devices);
            rig.array = rig.world.assemble(false).unwrap_or_else(|error| panic!("{error}"));
            rig.session.array = rig.array;
            protect(&mut rig.world, rig.array);
            back += u32::from(rig.health() == Health::Optimal);
            judge(&mut rig);
        }
    }
    assert!(back > 20, "only {back} times it was back before anybody knew");
}

/// The member's bitmap lacks the bits of later writes, and is the first that is found.
#[test]
fn rows_and_copies_fit_with_a_bitmap() {
    let mut back = 0;
    for seed in seeds(300, 8000) {
        for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid1(2)] {
            let _case = Case::new(seed, shape);
            let options = RigOptions { bitmap: true, bitmap_chunk: Some(4096), cuts: true, ..RigOptions::new(seed) };
            let mut rig = Rig::new(shape, options);
            rig.rest();
            // The array is active, and most regions of the member are clean.
            let load = Workload { depth: 2, range: 0..rig.session.capacity(), ..load(&rig) };
            rig.session.run(&mut rig.world, &load, 2);
            fails_and_is_back(&mut rig, Slot(0), &load);
            rig.boot();
            back += u32::from(rig.state_of(Slot(0)) == MemberState::InSync);
            rig.session.look_at_all(&mut rig.world);
            rig.rest();
            rig.judge_redundancy();
        }
    }
    assert!(back > 20, "only {back} times it was back before anybody knew");
}

/// Superblocks are written in two waves, so the member may have one generation more than the others at the power cut.
/// While it was absent, it missed writes.
#[test]
fn a_replacement_that_was_away_is_not_trusted_when_it_is_back() {
    for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(2)] {
        let _case = Case::new(3, shape);
        let mut rig = Rig::new(shape, RigOptions { spares: 1, cuts: true, ..RigOptions::new(3) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 40);
        let policy = Policy { rebuild_rate: Sectors::kib(128), background_depth: 1, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
        let spare = rig.drives.last().copied().unwrap();
        rig.world.admin(AdminCommand::Replace { array: rig.array, slot: Slot(1), with: Some(spare) }).unwrap();
        rig.run_for(Nanos::from_secs(2));
        rig.session.drain(&mut rig.world);
        rig.world.admin(AdminCommand::Stop { array: rig.array }).unwrap();
        rig.world.run_until_idle();
        let mut superblock = superblock_on(&rig.world, spare).expect("it is a member");
        superblock.events += 1;
        let mut bytes = vec![0; superblock.encoded_len().next_multiple_of(512)];
        superblock.encode(&mut bytes);
        rig.world.drive_mut(spare).poke(superblock.super_offset, &bytes);
        rig.world.drive_mut(spare).faults.gone = true;
        rig.boot();
        rig.session.run(&mut rig.world, &load, 1);
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(spare).put_back();
        rig.world.boot();
        let plan = assemble::plan(&rig.world.candidates(), AssembleOptions::default()).expect("all members are there");
        let verdict = plan.verdicts.iter().find(|(drive, _)| *drive == spare).expect("it is there").1;
        assert!(matches!(verdict, Membership::Stale { .. } | Membership::Replaced), "{verdict:?}");
        rig.boot();
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        judge(&mut rig);
    }
}
