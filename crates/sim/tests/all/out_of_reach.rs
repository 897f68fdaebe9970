//! More members are out of reach at once than the array can do without, as when a server of remote members is away. They
//! come back with everything that they acknowledged, and the array works again by itself.

use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Health, MemberState};
use openraid_core::reason::FailReason;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);

fn shapes(seed: u64) -> ArrayShape {
    let all = [
        ArrayShape::raid5(3, CHUNK),
        ArrayShape::raid1(2),
        ArrayShape::raid6(5, CHUNK),
        ArrayShape::raid5(5, CHUNK),
        ArrayShape::raid10(0x102, 4, CHUNK),
    ];
    all[usize::try_from(seed).unwrap() % all.len()]
}

/// A few stripes, so that each is written repeatedly.
fn load(rig: &Rig) -> Workload {
    Workload {
        len_max: 48 << 10,
        range: 0..rig.session.capacity().min(512 << 10),
        ..Workload::mixed(rig.session.capacity())
    }
}

/// More members than the level survives are out of reach, at different moments: the array fails. Returns their drives.
fn lose_too_many(rig: &mut Rig, load: &Workload) -> Vec<DriveId> {
    let mut away = Vec::new();
    rig.session.tolerate_errors = true;
    for _ in 0..rig.shape.members {
        let here: Vec<Slot> =
            (0..rig.shape.members).map(Slot).filter(|slot| rig.state_of(*slot) == MemberState::InSync).collect();
        let here: Vec<DriveId> =
            here.into_iter().filter_map(|slot| rig.drive_in(slot)).filter(|d| !away.contains(d)).collect();
        let Some(drive) = (!here.is_empty()).then(|| *rig.random.pick(&here)) else { break };
        if rig.random.chance(1, 2) {
            // Commands that the server never answers are carried out or not.
            rig.world.disconnect(drive);
        }
        rig.world.pull(drive);
        away.push(drive);
        let survives = away.len() <= usize::from(rig.geometry_losses());
        // Not long enough to record the loss of the members that the array can do without.
        let steps = u32::try_from(rig.random.below(6)).unwrap();
        for _ in 0..if survives { steps } else { 400 } {
            if rig.health() == Health::Failed {
                break;
            }
            if rig.session.outstanding() < load.depth {
                rig.session.ask_random(&mut rig.world, load);
            }
            rig.rest_or(1);
        }
        if rig.health() == Health::Failed {
            break;
        }
    }
    (0..4).for_each(|_| _ = rig.session.ask_random(&mut rig.world, load));
    rig.session.drain(&mut rig.world);
    away
}

/// The members come back, in any order. True if the array works again.
fn bring_back(rig: &mut Rig, mut away: Vec<DriveId>) -> bool {
    let array = rig.array;
    let mut refused = 0;
    while !away.is_empty() {
        let drive = away.swap_remove(usize::try_from(rig.random.below(away.len() as u64)).unwrap());
        rig.world.drive_mut(drive).put_back();
        refused += u32::from(rig.world.admin(AdminCommand::Return { array, drive }).is_err());
        rig.rest_or(3);
    }
    rig.session.tolerate_errors = false;
    assert!(refused > 0 || rig.health() != Health::Failed, "{}", rig.world.dump());
    rig.health() != Health::Failed
}

#[test]
fn an_array_whose_members_were_only_out_of_reach_works_again_and_has_lost_nothing() {
    let (mut failed, mut again, mut resynced) = (0, 0, 0);
    for seed in seeds(80, 20_000) {
        let shape = shapes(seed);
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 2 == 0, ..RigOptions::new(seed) });
        rig.rest();
        let load = load(&rig);
        rig.session.run_on(&mut rig.world, &load, 40);
        let away = lose_too_many(&mut rig, &load);
        if rig.health() != Health::Failed {
            continue;
        }
        failed += 1;
        rig.world.take_notices();
        if !bring_back(&mut rig, away) {
            continue;
        }
        again += 1;
        rig.session.run(&mut rig.world, &load, 40);
        rig.rest();
        let notices = rig.world.take_notices();
        let has = |kind: NoticeKind| notices.iter().any(|notice| notice.kind == kind);
        assert!(has(NoticeKind::Returned), "{notices:#?}");
        resynced += u32::from(has(NoticeKind::ResyncFinished));
        rig.judge();
        if rig.health() == Health::Optimal {
            rig.judge_redundancy();
        }
        // What the superblocks say is enough for the next start, too.
        rig.restart();
        rig.judge();
    }
    println!("{failed} failed, {again} work again, {resynced} of them after a resync");
    assert!(failed > 60 && again * 10 > failed * 9, "{failed} failed, {again} work again");
    assert!(resynced > 40, "{resynced} resyncs");
}

#[test]
fn power_that_fails_just_after_the_return_loses_nothing() {
    let (mut cuts, mut started) = (0, 0);
    for seed in seeds(60, 20_000) {
        let shape = shapes(seed);
        let _case = Case::new(seed, shape);
        let options = RigOptions { bitmap: seed % 2 == 0, cuts: true, ..RigOptions::new(seed) };
        let mut rig = Rig::new(shape, options);
        rig.rest();
        let load = load(&rig);
        rig.session.run_on(&mut rig.world, &load, 40);
        let away = lose_too_many(&mut rig, &load);
        if rig.health() != Health::Failed || !bring_back(&mut rig, away) {
            continue;
        }
        for _ in 0..rig.random.below(60) {
            if rig.session.outstanding() < load.depth {
                rig.session.ask_random(&mut rig.world, &load);
            }
            rig.rest_or(1);
        }
        rig.session.cut_power(&mut rig.world);
        cuts += 1;
        rig.world.boot();
        // A start that would have to guess is refused.
        let Ok(array) = rig.world.assemble(false) else { continue };
        (rig.array, rig.session.array) = (array, array);
        started += 1;
        rig.judge();
        rig.session.run(&mut rig.world, &load, 20);
        rig.judge();
    }
    println!("{cuts} cuts, {started} starts");
    assert!(cuts > 40 && started * 10 > cuts * 8, "{cuts} cuts, {started} starts");
}

#[test]
fn a_member_whose_loss_was_recorded_stays_out_and_the_last_ones_come_back() {
    for seed in seeds(40, 2000) {
        let shape = ArrayShape::raid6(5, CHUNK);
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { bitmap: seed % 2 == 0, ..RigOptions::new(seed) });
        rig.rest();
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 20);
        let first = rig.lose(Slot(0), Loss::Pulled);
        rig.session.run_on(&mut rig.world, &load, 20);
        rig.rest();
        assert_eq!(rig.state_of(Slot(0)), MemberState::Missing, "its failure is recorded");
        let others = [Slot(1), Slot(2)].map(|slot| rig.lose(slot, Loss::Pulled));
        rig.session.tolerate_errors = true;
        // Reads alone: no write is torn.
        let reads = Workload { mix: [1, 0, 0, 0, 0], ..load.clone() };
        rig.session.run_on(&mut rig.world, &reads, 40);
        rig.session.drain(&mut rig.world);
        assert_eq!(rig.health(), Health::Failed);
        rig.session.tolerate_errors = false;
        rig.world.drive_mut(first).put_back();
        let array = rig.array;
        rig.world.admin(AdminCommand::Return { array, drive: first }).expect_err("it lacks acknowledged writes");
        for drive in others {
            rig.world.drive_mut(drive).put_back();
            rig.world.admin(AdminCommand::Return { array, drive }).expect("it has everything");
        }
        assert_eq!(rig.health(), Health::Degraded);
        assert!(rig.status().members.iter().any(|member| member.state == MemberState::Faulty(FailReason::Gone)));
        rig.session.run(&mut rig.world, &load, 20);
        rig.judge();
    }
}
