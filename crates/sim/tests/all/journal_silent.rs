//! A journal device becomes silent while the log is read or copied through the window. The memory that the device may
//! still read or write has no other use until it answers.

use crate::support::two_arrays::{pairs, Machine};
use crate::support::{seeds, Case};
use openraid_core::actions::{Data, DriveCommand, DriveOp, IoClass};
use openraid_core::admin::{AdminError, JournalState, JournalStatus};
use openraid_core::events::DriveError;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_units::{ArrayId, DriveId, DriveLba, Nanos, Sectors};

type CommandFilter = fn(&DriveCommand) -> bool;

/// A read for a copy or for replay: the journal has no other reads while it runs.
fn is_read(command: &DriveCommand) -> bool {
    command.op == DriveOp::Read
}

/// A write to the area before the ring.
fn is_kept(command: &DriveCommand) -> bool {
    matches!(command.data, Data::Frames(_))
        && command.op != DriveOp::Read
        && command.lba < DriveLba::ZERO + Sectors::mib(1)
}

/// A write to a joining device.
fn is_joined(command: &DriveCommand) -> bool {
    matches!(command.data, Data::Frames(_)) && command.op != DriveOp::Read && command.class == IoClass::Rebuild
}

/// Two arrays with data in the journal, after a cut; neither was started again.
fn machine(seed: u64) -> (Case, Machine) {
    let (absent, other) = pairs()[usize::try_from(seed % 4).expect("few")];
    let case = Case::new(seed, absent);
    let mut machine = Machine::new(absent, other, seed, 2);
    let load = machine.load_of(machine.rig.session.capacity(), 8 << 10);
    machine.rig.session.run(&mut machine.rig.world, &load, 40);
    let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
    machine.other.session.run(&mut machine.rig.world, &load, 20);
    machine.cut();
    (case, machine)
}

fn has(machine: &Machine, device: DriveId, which: CommandFilter) -> bool {
    machine.rig.world.drive(device).outstanding().any(which)
}

/// Hosts write to the array that continues until a device has such a command.
fn write_until(machine: &mut Machine, device: DriveId, which: CommandFilter) {
    let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
    for _ in 0..200_000 {
        if has(machine, device, which) {
            return;
        }
        if machine.other.session.outstanding() < load.depth {
            machine.other.session.ask_random(&mut machine.rig.world, &load);
        }
        machine.other.session.step(&mut machine.rig.world);
    }
    panic!("no such command\n{}", machine.rig.world.dump());
}

/// Time passes without further requests until the journal has this state.
fn wait_for(machine: &mut Machine, wanted: impl Fn(&JournalStatus) -> bool) {
    let end = machine.rig.world.now() + Nanos::from_secs(60);
    while !wanted(&machine.journal()) {
        assert!(machine.rig.world.now() < end, "{:?}", machine.journal());
        machine.other.session.step(&mut machine.rig.world);
    }
}

/// Like `machine`, with one array started: the other array's data waits in the log.
fn waiting(seed: u64) -> (Case, Machine) {
    let (case, mut machine) = machine(seed);
    machine.start_other();
    (case, machine)
}

/// One device of the journal was dropped, and is joining again.
fn joining(seed: u64) -> (Case, Machine) {
    let (case, mut machine) = waiting(seed);
    let joins = machine.devices[1];
    machine.rig.world.pull(joins);
    write_until(&mut machine, joins, |_| true);
    wait_for(&mut machine, |journal| journal.devices.contains(&(joins, false)));
    machine.rig.world.run_for(Nanos::from_millis(100));
    machine.rig.world.drive_mut(joins).put_back();
    machine.rig.world.join_journal(joins).expect("it may");
    (case, machine)
}

#[track_caller]
fn is_refused(started: Result<ArrayId, ArrayStartError>) {
    match started {
        Err(ArrayStartError::Refused(AdminError::NotPossible(why))) => {
            assert!(why.contains("take that device away, or restart the server"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

/// The device answers late.
fn answer(machine: &mut Machine, silent: DriveId) {
    machine.rig.world.release(silent);
    machine.rig.world.run_for(Nanos::from_millis(100));
    machine.other.session.hear(&mut machine.rig.world);
}

#[test]
fn entries_are_not_copied_through_what_a_silent_device_may_use() {
    let turns: [(CommandFilter, CommandFilter); 2] = [(is_read, is_kept), (is_kept, is_read)];
    for seed in seeds(4, 60) {
        for (before, silently) in turns {
            let (_case, mut machine) = waiting(seed);
            let silent = machine.journal().devices[0].0;
            write_until(&mut machine, silent, before);
            machine.rig.world.drive_mut(silent).faults.hang = true;
            write_until(&mut machine, silent, silently);
            wait_for(&mut machine, |journal| journal.devices.contains(&(silent, false)));
            assert!(has(&machine, silent, silently), "it was the copy that was not answered");
            let kept = machine.journal().kept;
            machine.rig.world.run_for(Nanos::from_secs(1));
            assert_eq!(machine.journal().kept, kept);
            answer(&mut machine, silent);
            machine.write_rings(2);
            assert!(machine.journal().kept > kept, "copying goes on: {:?}", machine.journal());
            machine.other.session.drain(&mut machine.rig.world);
            machine.bring_back();
            machine.cut_and_judge();
        }
    }
}

#[test]
fn nothing_is_replayed_through_what_a_silent_device_may_write_into() {
    for seed in seeds(4, 60) {
        let (_case, mut machine) = machine(seed);
        let silent = machine.journal().devices[0].0;
        machine.rig.world.drive_mut(silent).faults.hang = true;
        let (absent, other) = (machine.rig.drives.clone(), machine.other.drives.clone());
        is_refused(machine.rig.world.assemble_of(&absent, false));
        assert!(has(&machine, silent, is_read), "it was replay that was not answered");
        // The other device is complete, but there is only one window.
        is_refused(machine.rig.world.assemble_of(&other, false));
        assert_eq!(machine.journal().state, JournalState::Live);
        answer(&mut machine, silent);
        machine.bring_back();
        machine.start_other();
        machine.cut_and_judge();
    }
}

#[test]
fn a_device_that_falls_silent_while_it_joins_has_the_window_until_it_answers() {
    for seed in seeds(4, 60) {
        let (_case, mut machine) = joining(seed);
        let [stays, joins] = machine.devices[..] else { panic!("two devices") };
        write_until(&mut machine, joins, is_joined);
        machine.rig.world.drive_mut(joins).faults.hang = true;
        write_until(&mut machine, stays, is_read);
        write_until(&mut machine, joins, is_joined);
        wait_for(&mut machine, |journal| journal.joining.is_none());
        assert!(has(&machine, joins, is_joined), "it was the copy that was not answered");
        let absent = machine.rig.drives.clone();
        is_refused(machine.rig.world.assemble_of(&absent, false));
        let refused = machine.rig.world.join_journal(joins).expect_err("it does not answer");
        assert!(format!("{refused}").contains("does not answer"), "{refused}");
        answer(&mut machine, joins);
        machine.other.session.drain(&mut machine.rig.world);
        machine.bring_back();
        machine.cut_and_judge();
    }
}

/// The joining device reports an error while the other one is being read for it.
#[test]
fn reads_for_a_device_that_was_left_out_are_waited_for() {
    let mut met = 0;
    for seed in seeds(8, 60) {
        let (_case, mut machine) = joining(seed);
        let [stays, joins] = machine.devices[..] else { panic!("two devices") };
        write_until(&mut machine, joins, is_joined);
        machine.rig.world.drive_mut(stays).faults.hang = true;
        write_until(&mut machine, stays, is_read);
        machine.rig.world.drive_mut(joins).faults.writes = Some(DriveError::ReadOnly);
        wait_for(&mut machine, |journal| journal.joining.is_none());
        if machine.journal().state != JournalState::Live {
            // The joining device got no write before the other one was given up.
            continue;
        }
        met += 1;
        assert!(has(&machine, stays, is_read), "it is still being read");
        let absent = machine.rig.drives.clone();
        machine
            .rig
            .world
            .assemble_of(&absent, false)
            .expect_err("what stays does not answer either, and the journal is lost");
        answer(&mut machine, stays);
        machine.rig.world.drive_mut(joins).faults.writes = None;
        machine.cut();
        machine.rig.array = machine.rig.world.assemble_of(&absent, false).expect("both are there again");
        machine.rig.session.array = machine.rig.array;
        machine.rig.session.look_at_all(&mut machine.rig.world);
    }
    assert!(met >= 3, "only {met} errors met a device that was being read");
}
