//! Two journals of one controller. An array whose data is in one of them must not start with the other one, even if
//! that one knows the array from earlier.

use crate::support::journalled::{attach_journal, protect, Journalled, JOURNAL};
use crate::support::{seeds, Case};
use openraid_core::admin::{AdminError, Session};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_sim::ArrayShape;
use openraid_units::Sectors;

const CHUNK: Sectors = Sectors::kib(16);

/// Write with one journal, then cut the power; the mark says that the journal has data.
fn write(machine: &mut Journalled, requests: u64) {
    let load = Workload { len_max: 32 << 10, align: 4096, ..Workload::mixed(machine.rig.session.capacity()) };
    machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
}

/// Cut the power. The next controller has another journal.
fn cut_and_change(machine: &mut Journalled, other: &mut Vec<openraid_units::DriveId>) {
    machine.rig.session.cut_power(&mut machine.rig.world);
    core::mem::swap(&mut machine.devices, other);
    machine.rig.world.boot();
    machine.attach();
}

#[track_caller]
fn is_refused(machine: &mut Journalled) {
    match machine.rig.world.assemble(false) {
        Err(ArrayStartError::Refused(AdminError::Refused(why))) => {
            assert!(why.contains("it is not the attached one"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_array_starts_with_the_journal_that_its_members_name_and_with_no_other() {
    for seed in seeds(3, 40) {
        for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK), ArrayShape::raid1(2)] {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, false, 1);
            let mut other = machine.rig.world.make_journal(1, JOURNAL);
            // The first journal knows the array, and does not know that the array no longer needs it.
            write(&mut machine, 40);
            machine.rig.session.drain(&mut machine.rig.world);
            machine.rig.rest();
            assert_eq!(machine.rig.status().session, Session::Off, "{shape}");
            cut_and_change(&mut machine, &mut other);
            machine.assemble();
            protect(&mut machine.rig.world, machine.rig.array);
            write(&mut machine, 80);
            // The acknowledged data is in the second journal.
            cut_and_change(&mut machine, &mut other);
            is_refused(&mut machine);
            cut_and_change(&mut machine, &mut other);
            machine.start();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
            // When the second journal has no data, the array also starts with the first one, which forgets its old
            // data.
            cut_and_change(&mut machine, &mut other);
            machine.start();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            write(&mut machine, 40);
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.rig.world.boot();
            attach_journal(&mut machine.rig.world, &machine.devices);
            machine.start();
            machine.rig.session.look_at_all(&mut machine.rig.world);
        }
    }
}
