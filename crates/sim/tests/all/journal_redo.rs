//! After a crash an array serves requests as soon as the acknowledged data is loaded. The redo backlog comes later. If
//! a request needs a row, the redo of that row comes first.

use crate::support;

use crate::support::journalled::Journalled;
use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, Health};
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Loss};
use openraid_units::{Bytes, Sectors, Slot};

fn parities() -> [ArrayShape; 3] {
    [
        ArrayShape::raid5(4, Sectors::kib(64)),
        ArrayShape::raid6(5, Sectors::kib(16)),
        ArrayShape::new(Level::Raid4, 0, 3, Sectors::kib(16)),
    ]
}

/// An array with overwritten places, with destage at work at all times, followed by a power cut.
fn overwritten(shape: ArrayShape, seed: u64, mirrors: u8) -> Journalled {
    let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), mirrors);
    let load = Workload {
        len_max: 4096,
        align: 4096,
        mix: [0, 1, 0, 0, 0],
        depth: 8,
        ..Workload::mixed(machine.rig.session.capacity())
    };
    machine.rig.session.run_on(&mut machine.rig.world, &load, 400);
    let odd = Workload { len_max: 9000, align: 1, ..load };
    machine.rig.session.run_on(&mut machine.rig.world, &odd, 40);
    machine.rig.session.cut_power(&mut machine.rig.world);
    machine
}

fn started(machine: &mut Journalled) {
    machine.rig.world.boot();
    machine.attach();
    machine.assemble();
}

/// Number of pending redos, and of begun ones.
fn redos(machine: &Journalled) -> (u64, u64) {
    let journal = machine.rig.world.journal().expect("it is there");
    (journal.pending_redos, journal.counters.replayed_redos)
}

#[test]
fn a_start_waits_for_no_redo_and_a_request_only_for_the_redos_of_its_rows() {
    for (seed, shape) in (1..).zip(parities()) {
        let _case = Case::new(seed, shape);
        let mut machine = overwritten(shape, seed, 1);
        started(&mut machine);
        let (backlog, begun) = redos(&machine);
        assert!(
            backlog > 60 && begun * 4 < backlog,
            "{backlog} redos in the backlog, {begun} begun when the array was started"
        );
        // The last place of the array, because the other redos reach it last.
        let capacity = machine.rig.session.capacity();
        let token = machine.rig.world.submit(machine.rig.array, RequestKind::Read, capacity - 4096, 4096, Vec::new());
        machine.rig.world.run_until(token);
        let (left, _) = redos(&machine);
        assert!(left * 5 > backlog, "{left} of {backlog} were left when a read was answered");
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        let (left, begun) = redos(&machine);
        assert!(left == 0 && begun <= backlog, "neighbours go together: {begun} writes for {backlog}, {left} left");
        machine.rig.judge();
    }
}

#[test]
fn the_first_request_after_a_start_is_right_whatever_it_is_and_further_cuts_change_nothing() {
    for seed in seeds(6, 60) {
        for shape in parities() {
            let _case = Case::new(seed, shape);
            let mut machine = overwritten(shape, seed, 1);
            for _ in 0..4 {
                started(&mut machine);
                support::journalled::protect(&mut machine.rig.world, machine.rig.array);
                let load = Workload::mixed(machine.rig.session.capacity());
                for _ in 0..machine.rig.random.below(40) {
                    machine.rig.session.ask_random(&mut machine.rig.world, &load);
                    machine.rig.session.step(&mut machine.rig.world);
                }
                let steps = u32::try_from(machine.rig.random.below(60)).unwrap();
                machine.rig.rest_or(steps);
                machine.rig.session.cut_power(&mut machine.rig.world);
            }
            started(&mut machine);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            assert_eq!(redos(&machine).0, 0);
            machine.rig.judge();
        }
    }
}

#[test]
fn a_member_that_is_lost_before_its_redos_are_done_takes_nothing_along() {
    for seed in seeds(4, 40) {
        for shape in parities() {
            let _case = Case::new(seed, shape);
            let mut machine = overwritten(shape, seed, 1);
            started(&mut machine);
            assert!(redos(&machine).0 > 0);
            machine.rig.lose(Slot(u16::try_from(seed % 3).unwrap()), Loss::Pulled);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            assert_eq!((redos(&machine).0, machine.rig.health()), (0, Health::Degraded));
            machine.rig.judge();
        }
    }
}

/// Each block is right or gives an error; some blocks are right.
fn look_at_a_failed_array(machine: &mut Journalled) {
    let session = &mut machine.rig.session;
    let before = session.errors;
    session.tolerate_errors = true;
    for start in (0..session.capacity()).step_by(4096) {
        session.ask(&mut machine.rig.world, RequestKind::Read, start..start + 4096);
    }
    session.drain(&mut machine.rig.world);
    assert!(session.errors > before, "rows that miss something are served");
    session.tolerate_errors = false;
}

/// Only the journal has the data of rows that are half written. If there are two devices, one of them may be lost.
#[test]
fn without_the_journal_rows_that_miss_something_are_not_served_and_with_it_all_is_there() {
    for (seed, shape) in (1..).zip(parities()) {
        for mirrors in [1, 2] {
            let _case = Case::new(seed, shape);
            let mut machine = overwritten(shape, seed, mirrors);
            started(&mut machine);
            assert!(redos(&machine).0 > 0);
            let lost = machine.devices[0];
            machine.rig.world.pull(lost);
            machine.rig.world.run_until_idle();
            if mirrors == 2 {
                machine.rig.session.look_at_all(&mut machine.rig.world);
                machine.rig.rest();
                machine.rig.judge();
                continue;
            }
            assert_eq!(machine.rig.health(), Health::Failed);
            assert!(redos(&machine).0 > 0);
            machine.rig.world.drive_mut(lost).put_back();
            look_at_a_failed_array(&mut machine);
            machine.rig.world.admin(AdminCommand::DetachJournal).unwrap();
            machine.attach();
            look_at_a_failed_array(&mut machine);
            machine.rig.session.cut_power(&mut machine.rig.world);
            started(&mut machine);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

/// Sets without parity have few redos. Their copies are at several places, and hosts wait.
#[test]
fn sets_without_parity_are_started_when_their_redos_are_done() {
    for shape in [ArrayShape::raid1(2), ArrayShape::raid10(0x102, 4, Sectors::kib(16))] {
        let _case = Case::new(3, shape);
        let mut machine = Journalled::with_cache(shape, 3, Bytes::mib(1));
        let odd = Workload {
            len_max: 9000,
            align: 1,
            mix: [0, 1, 0, 0, 0],
            ..Workload::mixed(machine.rig.session.capacity())
        };
        machine.rig.session.run_on(&mut machine.rig.world, &odd, 60);
        machine.rig.session.cut_power(&mut machine.rig.world);
        started(&mut machine);
        let (backlog, begun) = redos(&machine);
        assert!(backlog == 0 && begun > 0, "{backlog} redos in the backlog, {begun} begun when the array was started");
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}
