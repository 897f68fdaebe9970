//! Force: members that were lost at the same moment come back together, and what was flushed before is there.

mod support;

use openraid_core::admin::Health;
use openraid_core::array::assemble::AssembleError;
use openraid_core::events::RequestKind;
use openraid_sim::oracle::session::Workload;
use openraid_sim::world::arrays::StartError;
use openraid_sim::{Rig, RigOptions, Shape};
use openraid_units::{DriveId, Sectors};
use support::{seeds, Case};

/// More members than the level survives lose their power at once while hosts write, and are back when the array is
/// started. Those of them that were called failed first have the same events as the others: all are taken, so that no
/// column is made from members of different times, and the resync makes parity fit again.
#[test]
fn members_that_vanished_together_are_taken_together() {
    let mut forced = 0;
    for seed in seeds(24, 400) {
        let shapes =
            [Shape::raid5(4, Sectors::kib(16)), Shape::raid6(6, Sectors::kib(16)), Shape::raid5(5, Sectors::kib(64))];
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
            Err(StartError::Assemble(AssembleError::TooFew { .. } | AssembleError::DirtyDegraded { .. })) => {
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
