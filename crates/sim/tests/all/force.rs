//! Force: members that were lost at the same moment return together, with all flushed data. Data written after a start
//! by force survives any single later loss.

use crate::support::{seeds, Case};
use openraid_core::admin::{Health, TaskKind};
use openraid_core::array::assemble::AssembleError;
use openraid_core::events::RequestKind;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, Nanos, Sectors, Slot};

/// A RAID 6 of six.
fn six() -> ArrayShape {
    ArrayShape::raid6(6, Sectors::kib(16))
}

/// Hosts with short writes only.
fn writes(rig: &Rig) -> Workload {
    Workload { len_max: 16 << 10, align: 512, mix: [0, 1, 0, 0, 0], ..Workload::mixed(rig.session.capacity()) }
}

/// Start the array by force; the test itself checks the data.
fn start_by_force(rig: &mut Rig) {
    rig.array = rig.world.assemble(true).unwrap();
    (rig.session.array, rig.session.tolerate_errors) = (rig.array, false);
}

/// Start by force, and drop all promises for earlier writes.
fn start_over(rig: &mut Rig) {
    start_by_force(rig);
    let capacity = rig.session.capacity();
    rig.session.versions_mut().give_up(0..capacity);
}

/// A cut has torn writes over the members, and one member is lost for good.
fn torn_without_a_member(options: RigOptions) -> (Rig, Workload) {
    let mut rig = Rig::new(six(), RigOptions { cuts: true, ..options });
    let load = writes(&rig);
    rig.session.run_on(&mut rig.world, &load, 60);
    rig.session.cut_power(&mut rig.world);
    rig.world.drive_mut(rig.drives[2]).faults.gone = true;
    rig.world.boot();
    (rig, load)
}

/// More members than the level survives lose their power at once while hosts write. All return when the array is
/// started. The members that were called failed first have the same event count as the others. All must be taken, so
/// that no column is computed from members of different times, and the resync makes parity match again.
#[test]
fn members_that_vanished_together_are_taken_together() {
    let mut forced = 0;
    for seed in seeds(24, 400) {
        let shapes = [
            ArrayShape::raid5(4, Sectors::kib(16)),
            ArrayShape::raid6(6, Sectors::kib(16)),
            ArrayShape::raid5(5, Sectors::kib(64)),
        ];
        let shape = shapes[usize::try_from(seed % 3).unwrap()];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { cuts: true, ..RigOptions::new(seed) });
        let load =
            Workload { len_max: 16 << 10, align: 512, mix: [1, 8, 1, 0, 0], ..Workload::mixed(rig.session.capacity()) };
        rig.session.run_on(&mut rig.world, &load, 60);
        rig.session.drain(&mut rig.world);
        rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
        rig.rest();
        let losses = if shape.geometry().losses_survived() == 2 { 3 } else { 2 };
        let gone: Vec<DriveId> = rig.drives[..losses].to_vec();
        gone.iter().for_each(|drive| rig.world.vanish(*drive));
        rig.session.tolerate_errors = true;
        rig.session.run(&mut rig.world, &load, 40);
        assert_eq!(rig.health(), Health::Failed);
        rig.session.cut_power(&mut rig.world);
        gone.iter().for_each(|drive| rig.world.drive_mut(*drive).faults.gone = false);
        rig.world.boot();
        let array = match rig.world.assemble(false) {
            Ok(array) => array,
            Err(ArrayStartError::Assemble(AssembleError::TooFew { .. } | AssembleError::DirtyDegraded { .. })) => {
                forced += 1;
                rig.world.assemble(true).unwrap()
            }
            Err(error) => panic!("{error}"),
        };
        (rig.array, rig.session.array, rig.session.tolerate_errors) = (array, array, false);
        assert_ne!(rig.health(), Health::Failed);
        rig.session.look_at_all(&mut rig.world);
        rig.rest();
        rig.judge();
    }
    assert!(forced > 0, "no run needed force");
}

/// Writes are torn over the members of a RAID 6, one member is lost for good, and the array is started by force. The
/// content of inconsistent rows is undefined. But later writes to them must survive, even if another member is lost
/// before the resync has processed all rows.
#[test]
fn writes_after_a_start_by_force_survive_another_loss() {
    for seed in seeds(24, 400) {
        let _case = Case::new(seed, six());
        let (mut rig, load) = torn_without_a_member(RigOptions::new(seed));
        let refused = rig.world.assemble(false);
        assert!(
            matches!(refused, Err(ArrayStartError::Assemble(AssembleError::DirtyDegraded { .. }))),
            "the cut left nothing in doubt"
        );
        start_over(&mut rig);
        rig.session.run_on(&mut rig.world, &load, 60);
        rig.lose(Slot(4), Loss::Failed);
        rig.session.drain(&mut rig.world);
        rig.session.look_at_all(&mut rig.world);
        for _ in 0..2 {
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
        }
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        rig.judge();
    }
}

/// If no further member is lost, the resync processes all rows without the missing member. After that the array starts
/// without force. A new member joins before the rest is resynced.
#[test]
fn a_double_parity_without_a_member_is_made_to_fit() {
    for (seed, comes) in seeds(12, 100).flat_map(|seed| [(seed, false), (seed, true)]) {
        let _case = Case::new(seed, six());
        let (mut rig, load) = torn_without_a_member(RigOptions { bitmap: seed % 2 == 0, ..RigOptions::new(seed) });
        start_over(&mut rig);
        assert_eq!(rig.status().task.map(|task| task.kind), Some(TaskKind::Resync));
        if comes {
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.run_for(Nanos::from_micros(10));
            assert_eq!(rig.status().task.map(|task| task.kind), Some(TaskKind::Rebuild));
        }
        rig.rest();
        assert_eq!(rig.status().consistent_to, Sectors::MAX);
        assert_eq!(rig.health(), if comes { Health::Optimal } else { Health::Degraded });
        rig.judge_redundancy();
        rig.restart();
        rig.session.run(&mut rig.world, &load, 20);
        rig.lose(Slot(4), Loss::Failed);
        rig.judge();
    }
}

/// Two members are lost, others continue without them and come to rest. Then one more member is lost for good. If force
/// takes the two, they lack the later writes, and only their event counts show it.
#[test]
fn stale_members_are_made_to_match() {
    for seed in seeds(24, 400) {
        let _case = Case::new(seed, six());
        let mut rig = Rig::new(six(), RigOptions { cuts: true, ..RigOptions::new(seed) });
        let load = writes(&rig);
        let back: Vec<DriveId> = rig.drives[..2].to_vec();
        back.iter().for_each(|drive| rig.world.vanish(*drive));
        rig.session.run(&mut rig.world, &load, 40);
        rig.rest();
        let third = rig.drives[2];
        rig.world.vanish(third);
        rig.session.tolerate_errors = true;
        rig.session.run(&mut rig.world, &load, 4);
        rig.session.cut_power(&mut rig.world);
        back.iter().for_each(|drive| rig.world.drive_mut(*drive).faults.gone = false);
        rig.world.boot();
        let refused = rig.world.assemble(false);
        assert!(matches!(refused, Err(ArrayStartError::Assemble(AssembleError::TooFew { stale: 2, .. }))));
        start_over(&mut rig);
        rig.session.run_on(&mut rig.world, &load, 60);
        rig.lose(Slot(4), Loss::Failed);
        rig.judge();
    }
}

/// A regular stop interrupts a resync that force began. The next start needs no force, and completes the resync.
#[test]
fn a_stopped_resync_continues_without_force() {
    for seed in seeds(12, 100) {
        let _case = Case::new(seed, six());
        let (mut rig, _) = torn_without_a_member(RigOptions::new(seed));
        start_over(&mut rig);
        while rig.status().task.expect("the resync is not through").done.is_zero() {
            assert!(rig.world.step());
        }
        rig.restart();
        let status = rig.status();
        assert!(status.consistent_to > Sectors::ZERO && status.consistent_to < Sectors::MAX);
        rig.rest();
        assert_eq!(rig.status().consistent_to, Sectors::MAX);
        rig.judge_redundancy();
    }
}

/// One member of each pair of a RAID 10 is lost, then the other one of one pair. Force takes back the member that this
/// pair needs. It does not take the stale half of the pair that has all its data.
#[test]
fn force_takes_no_stale_copy_of_available_data() {
    let chunk = Sectors::kib(16);
    for seed in seeds(24, 200) {
        let shape = ArrayShape::raid10(0x102, 4, chunk);
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions { cuts: true, bitmap: seed % 2 == 0, ..RigOptions::new(seed) });
        let capacity = rig.session.capacity();
        let load = writes(&rig);
        rig.session.run(&mut rig.world, &load, 20);
        let stale = [rig.drives[3], rig.drives[0]];
        for drive in stale {
            rig.world.vanish(drive);
            if seed % 3 != 0 {
                rig.session.run(&mut rig.world, &load, 20);
            }
        }
        rig.session.run(&mut rig.world, &load, 20);
        rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
        rig.rest();
        rig.world.vanish(rig.drives[2]);
        rig.session.tolerate_errors = true;
        rig.session.run(&mut rig.world, &load, 4);
        rig.session.cut_power(&mut rig.world);
        stale.iter().for_each(|drive| rig.world.drive_mut(*drive).faults.gone = false);
        rig.world.boot();
        start_by_force(&mut rig);
        assert_eq!(rig.drive_in(Slot(0)), None, "it is stale, and slot 1 has what it had");
        // The second pair has the state of its member at the time of the loss.
        let bytes = chunk.bytes().get();
        for at in (bytes..capacity).step_by(usize::try_from(2 * bytes).unwrap()) {
            rig.session.versions_mut().give_up(at..(at + bytes).min(capacity));
        }
        rig.session.look_at_all(&mut rig.world);
        rig.rest();
        rig.session.look_at_all(&mut rig.world);
        rig.rest();
    }
}
