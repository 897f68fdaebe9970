//! A lost journal is attached again while the arrays run. A journal that is detached regularly records that. The
//! journal of a failed array keeps the array's data.

use crate::support::journalled::{attach_journal, limits_with_journal, Journalled, JOURNAL};
use crate::support::{seeds, two_arrays, Case};
use openraid_core::actions::DriveCommand;
use openraid_core::admin::{AdminCommand, AdminOutcome, Health, JournalState, Policy, Session, WriteCache};
use openraid_core::array::assemble::{self, AssembleError, AssembleOptions};
use openraid_core::events::{DriveError, RequestKind};
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_format::{FeatureMap, Superblock, BITMAP_HEADER_BYTES};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::{superblock_on, Members};
use openraid_sim::oracle::{Content, HostSession as Host};
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions, World};
use openraid_units::{Bytes, DriveLba, Nanos, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);

fn shapes() -> [ArrayShape; 4] {
    [
        ArrayShape::raid5(4, CHUNK),
        ArrayShape::raid6(5, CHUNK),
        ArrayShape::raid1(2),
        ArrayShape::raid10(0x102, 4, CHUNK),
    ]
}

fn machine(shape: ArrayShape, seed: u64) -> Journalled {
    Journalled::new(shape, seed, false, 1)
}

fn run(machine: &mut Journalled, requests: u64) {
    let load = Workload {
        len_max: 32 << 10,
        align: 4096,
        mix: [1, 6, 1, 1, 1],
        ..Workload::mixed(machine.rig.session.capacity())
    };
    machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
}

#[test]
fn a_journal_that_comes_back_protects_again_and_nothing_old_comes_back_with_it() {
    for seed in seeds(4, 60) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed);
            for _ in 0..3 {
                run(&mut machine, 60);
                machine.rig.world.pull(machine.devices[0]);
                run(&mut machine, 60);
                machine.rig.session.drain(&mut machine.rig.world);
                machine.rig.rest();
                let status = machine.rig.status();
                assert_eq!((status.session, status.in_journal), (Session::Off, false), "{shape}");
                machine.rig.world.drive_mut(machine.devices[0]).faults.gone = false;
                machine.rig.world.admin(AdminCommand::DetachJournal).expect("no array uses it");
                machine.attach();
                assert_eq!(machine.rig.world.controller().journal_protection(machine.rig.array), Ok(()));
                run(&mut machine, 80);
                machine.rig.session.cut_power(&mut machine.rig.world);
                machine.boot();
                machine.rig.session.look_at_all(&mut machine.rig.world);
            }
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

/// An array without redundancy loses a member with its unflushed data just before the end of its session. The journal
/// keeps that data until the member returns.
#[test]
fn unflushed_data_of_a_lost_member_stays_in_the_journal() {
    for seed in seeds(8, 100) {
        for shape in [ArrayShape::new(Level::Raid0, 0, 3, CHUNK), ArrayShape::new(Level::Linear, 0, 2, CHUNK)] {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed);
            let load = Workload {
                len_max: 16 << 10,
                align: 4096,
                mix: [0, 1, 0, 0, 0],
                ..Workload::mixed(machine.rig.session.capacity())
            };
            machine.rig.session.run(&mut machine.rig.world, &load, 30);
            // The data is on the members, but not flushed.
            let is_dirty =
                |world: &World| world.controller().cache_status().is_some_and(|cache| cache.dirty > Bytes(0));
            while is_dirty(&machine.rig.world) {
                machine.rig.world.step();
            }
            machine.rig.world.vanish(machine.rig.drives[usize::try_from(seed % 2).expect("few")]);
            let policy = Policy { write_cache: WriteCache::Through, ..Policy::default() };
            machine.rig.world.admin(AdminCommand::SetPolicy { array: machine.rig.array, policy }).expect("it may");
            machine.rig.session.tolerate_errors = true;
            machine.rig.run_for(Nanos::from_secs(20));
            assert_eq!(machine.rig.status().session, Session::On, "{shape}");
            if seed.is_multiple_of(2) {
                machine.rig.world.admin(AdminCommand::Stop { array: machine.rig.array }).expect("it stops");
            }
            for drive in machine.rig.drives.clone() {
                machine.rig.world.drive_mut(drive).faults.gone = false;
            }
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.rig.world.boot();
            machine.attach();
            machine.rig.array = machine.rig.world.assemble(true).unwrap_or_else(|error| panic!("{shape}: {error}"));
            machine.rig.session.array = machine.rig.array;
            machine.rig.session.tolerate_errors = false;
            machine.rig.session.look_at_all(&mut machine.rig.world);
        }
    }
}

/// Rows that are written after the loss of the journal are not in the journal. The power may fail at any moment after
/// that. After the return of the journal, no acknowledged data is lost, and redundancy matches in the end.
#[test]
fn rows_half_written_without_the_journal_are_made_consistent() {
    let (mut behind, mut resyncs) = (0, 0);
    for seed in seeds(12, 300) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), 1);
            // Writes without the journal are durable after a flush.
            machine.rig.session = Host::new(&machine.rig.world, machine.rig.array, seed, Content::Zeroes, true);
            run(&mut machine, 60);
            machine.rig.world.pull(machine.devices[0]);
            run(&mut machine, 10);
            let lives =
                |machine: &Journalled| machine.rig.world.journal().is_some_and(|j| j.state == JournalState::Live);
            while lives(&machine) && machine.rig.world.step() {
                machine.rig.session.hear(&mut machine.rig.world);
            }
            let steps = machine.rig.random.between(15, 60);
            machine.rig.rest_or(u32::try_from(steps).unwrap());
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.rig.world.drive_mut(machine.devices[0]).faults.gone = false;
            machine.rig.world.boot();
            machine.attach();
            let features = superblock_on(&machine.rig.world, machine.rig.drives[0]).expect("a member").features;
            behind += u32::from(features.contains(FeatureMap::JOURNAL_BEHIND));
            machine.assemble();
            resyncs += u32::from(machine.rig.status().consistent_to != Sectors::MAX);
            machine.rig.judge();
            let features = superblock_on(&machine.rig.world, machine.rig.drives[0]).expect("a member").features;
            assert!(!features.contains(FeatureMap::JOURNAL_BEHIND));
        }
    }
    assert!(behind >= 5 && resyncs >= behind, "{behind} journals were stale, {resyncs} arrays were resynced");
}

#[test]
fn a_journal_that_is_detached_is_empty_and_knows_no_arrays() {
    for seed in seeds(2, 20) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed);
            run(&mut machine, 40);
            machine.rig.world.admin(AdminCommand::DetachJournal).expect_err("it holds promises");
            machine.rig.session.drain(&mut machine.rig.world);
            let array = machine.rig.array;
            machine.rig.world.admin(AdminCommand::Stop { array }).expect("it stops");
            machine.rig.world.admin(AdminCommand::DetachJournal).expect("no array uses it");
            assert!(machine.rig.world.journal().is_none());
            machine.attach();
            let status = machine.rig.world.journal().expect("it was attached");
            assert_eq!((status.entries, status.arrays.len()), (0, 0), "{shape}");
            machine.rig.world.admin(AdminCommand::DetachJournal).expect("no array uses it");
            machine.boot();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

#[test]
fn a_failed_array_that_is_stopped_leaves_its_promises_in_the_journal() {
    for seed in seeds(4, 60) {
        let shape = ArrayShape::raid5(4, CHUNK);
        let _case = Case::new(seed, shape);
        let mut machine = machine(shape, seed);
        run(&mut machine, 60);
        machine.rig.session.drain(&mut machine.rig.world);
        for slot in [Slot(0), Slot(1)] {
            machine.rig.lose(slot, Loss::Pulled);
        }
        let array = machine.rig.array;
        // Longer than the delay of dirty data; the members are written only after it.
        machine.rig.world.run_for(Nanos::from_secs(30));
        let held = machine.rig.world.journal().expect("it is there").entries;
        assert_eq!(machine.rig.status().health, Health::Failed, "dirty data has no place");
        machine.rig.world.admin(AdminCommand::Stop { array }).expect("it stops");
        machine.rig.world.run_for(Nanos::from_secs(10));
        let status = machine.rig.world.journal().expect("it is there");
        let waiting: u64 = status.arrays.iter().map(|array| array.waiting).sum();
        assert!(waiting > 0 || held == 0, "{held} entries were held, and none waits: {status:?}");
        let refused = machine.rig.world.admin(AdminCommand::DetachJournal);
        assert!(refused.is_ok(), "a journal that waits for an array may go: {refused:?}");
        machine.attach();
        let again = machine.rig.world.journal().expect("it was attached");
        assert_eq!(again.arrays.iter().map(|array| array.waiting).sum::<u64>(), waiting, "{status:?} {again:?}");
    }
}

/// A damaged log is treated as empty on a new opening only if no array has data in it.
#[test]
fn a_failed_array_may_have_something_in_the_journal_after_it_was_lost_as_well() {
    let mut machine = machine(ArrayShape::raid5(4, CHUNK), 1);
    run(&mut machine, 40);
    machine.rig.session.drain(&mut machine.rig.world);
    for slot in [Slot(0), Slot(1)] {
        machine.rig.lose(slot, Loss::Pulled);
    }
    // Longer than the delay of dirty data; the members are written only after it.
    machine.rig.world.run_for(Nanos::from_secs(30));
    assert_eq!(machine.rig.health(), Health::Failed);
    machine.rig.world.pull(machine.devices[0]);
    machine.rig.run_for(Nanos::from_secs(2));
    machine.rig.world.admin(AdminCommand::DetachJournal).expect("no array uses it");
    let status = machine.rig.status();
    assert_eq!((status.session, status.in_journal), (Session::Off, true));
}

/// A line that is written repeatedly keeps the oldest entry of the log in use, and little other data is dirty. The line
/// is written to the members because the log is full, before it reaches its age limit of seconds.
#[test]
fn a_full_log_does_not_wait_for_a_line_to_age() {
    for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid1(2)] {
        let mut machine = machine(shape, 3);
        let load = Workload { len_max: 4096, align: 4096, range: 0..4096, mix: [0, 1, 0, 0, 0], depth: 1 };
        let mut longest = Nanos::ZERO;
        for _ in 0..3_000 {
            let start = machine.rig.world.now();
            machine.rig.session.run_on(&mut machine.rig.world, &load, 1);
            machine.rig.session.drain(&mut machine.rig.world);
            longest = longest.max(machine.rig.world.now().since(start));
        }
        let journal = machine.rig.world.journal().expect("it is there");
        assert!(
            journal.counters.sectors > journal.ring.get(),
            "{shape}: the ring was not filled: {:?}",
            journal.counters
        );
        assert!(longest < Nanos::from_millis(500), "{shape}: a write took {longest:?}");
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// The power is cut again at every step of a start: while the log is read, while its data is loaded, while redo records
/// are carried out, while the tail moves.
#[test]
fn power_that_goes_again_and_again_while_promises_are_kept_takes_none_of_them() {
    let mut inside = 0;
    for seed in seeds(4, 80) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed);
            run(&mut machine, 80);
            machine.rig.session.cut_power(&mut machine.rig.world);
            for _ in 0..6 {
                machine.rig.world.boot();
                machine.rig.world.attach_journal(&machine.devices).unwrap_or_else(|fault| panic!("{fault:?}"));
                machine.assemble();
                let steps = u32::try_from(machine.rig.random.below(200)).expect("few");
                machine.rig.rest_or(steps);
                inside += u32::from(machine.rig.world.journal().is_some_and(|journal| journal.entries > 0));
                machine.rig.session.cut_power(&mut machine.rig.world);
            }
            machine.boot();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
    assert!(inside >= 40, "only {inside} cuts met a log with something in it");
}

/// A journal device that takes commands and never answers is given up after the same time as any drive. Until then
/// writes wait. After that they are written to the members, and no acknowledged data depends on the device.
#[test]
fn a_journal_that_does_not_answer_any_more_is_given_up() {
    for seed in seeds(2, 20) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = machine(shape, seed);
            run(&mut machine, 60);
            let start = machine.rig.world.now();
            machine.rig.world.drive_mut(machine.devices[0]).faults.hang = true;
            run(&mut machine, 60);
            machine.rig.session.drain(&mut machine.rig.world);
            let waited = machine.rig.world.now().since(start);
            assert!(waited < Nanos::from_secs(120), "{shape}: writes waited for {waited:?}");
            let state = machine.rig.world.journal().expect("it was attached").state;
            assert_ne!(state, JournalState::Live, "{shape}");
            machine.rig.rest();
            assert_eq!(machine.rig.status().session, Session::Off, "{shape}: everything is on the members");
            machine.rig.judge();
        }
    }
}

/// The tail moves. The device reports an error for another command before the last copy of the superblock is answered.
/// When that write ends, its journal must still be known.
#[test]
fn a_lost_journal_is_not_forgotten_while_its_superblock_is_being_written() {
    let mut met = 0;
    for seed in seeds(8, 40) {
        let mut machine = machine(ArrayShape::raid5(4, CHUNK), seed);
        let device = machine.devices[0];
        let last = |command: &DriveCommand| command.lba >= DriveLba::ZERO + (JOURNAL - Sectors::kib(16));
        run(&mut machine, 120);
        machine.rig.session.drain(&mut machine.rig.world);
        while !machine.rig.world.drive(device).outstanding().any(|outstanding| outstanding.lba.get() < 8) {
            assert!(machine.rig.world.step());
        }
        machine.rig.world.drive_mut(device).faults.hang = true;
        while !machine.rig.world.drive(device).outstanding().any(last) {
            assert!(machine.rig.world.step());
        }
        if !machine.rig.world.drive(device).outstanding().all(last) {
            continue;
        }
        met += 1;
        let faults = &mut machine.rig.world.drive_mut(device).faults;
        (faults.hang, faults.writes) = (false, Some(DriveError::ReadOnly));
        run(&mut machine, 10);
        machine.rig.session.drain(&mut machine.rig.world);
        machine.rig.world.run_for(Nanos::from_secs(10));
        assert_eq!(machine.rig.status().session, Session::Off);
        assert!(machine.rig.world.drive(device).outstanding().any(last));
        machine.rig.world.admin(AdminCommand::DetachJournal).expect("no array uses it");
        machine.rig.world.release(device);
        machine.rig.rest();
        machine.rig.judge();
    }
    assert!(met >= 2, "only {met} devices did not answer for their superblock alone");
}

/// The smallest useful cache: one request may need all lines that are left, and entries that the tail has not passed
/// must be loaded again.
#[test]
fn no_more_is_promised_than_the_cache_can_load_again() {
    for seed in seeds(8, 200) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::with_cache(shape, seed, Bytes::kib(128));
            let range = 0..machine.rig.session.capacity();
            let load = Workload { depth: 4, len_max: 64 << 10, align: 4096, range, mix: [0, 1, 0, 0, 0] };
            for _ in 0..4 {
                let requests = 10 + machine.rig.random.below(30);
                machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
                machine.cut();
            }
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

/// With force, md marks members clean before the kernel refuses them, and does not clear the feature bit. Without the
/// journal it is unknown which of their rows match.
#[test]
fn members_that_md_has_called_clean_are_not_believed_without_their_journal() {
    for shape in shapes() {
        let _case = Case::new(1, shape);
        let mut machine = machine(shape, 1);
        let load = Workload { mix: [0, 1, 0, 0, 0], ..Workload::mixed(machine.rig.session.capacity()) };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 60);
        machine.rig.session.cut_power(&mut machine.rig.world);
        for drive in machine.rig.drives.clone() {
            let superblock = superblock_on(&machine.rig.world, drive).expect("it is a member");
            assert!(superblock.features.contains(FeatureMap::CONTROLLER_JOURNAL));
            let clean = Superblock { resync_offset: u64::MAX, ..superblock };
            let mut bytes = vec![0; clean.encoded_len().next_multiple_of(512)];
            clean.encode(&mut bytes);
            machine.rig.world.drive_mut(drive).poke(clean.super_offset, &bytes);
        }
        machine.rig.world.boot();
        let mut candidates = machine.rig.world.candidates();
        let lost = |force| AssembleOptions { force, journal_lost: true, reads_only: false };
        let planned = assemble::plan(&candidates, lost(false)).expect("all members are there");
        assert_eq!(planned.resync_from, Some(Sectors::ZERO));
        candidates.remove(0);
        let degraded = assemble::plan(&candidates, lost(false));
        let has_parity = matches!(shape.level, Level::Raid5 | Level::Raid6);
        let refused = matches!(degraded, Err(AssembleError::DirtyDegraded { .. }));
        assert_eq!(refused, has_parity, "{degraded:?}");
    }
}

/// The rows in which the members differ, and the number of bits that are set in their first bitmap.
fn differing_rows_and_bits(rig: &Rig) -> (usize, u32) {
    let start = |drive| superblock_on(&rig.world, drive).expect("a member").data_offset;
    let places: Vec<_> = rig.drives.iter().zip(0..).map(|(drive, slot)| (Slot(slot), *drive, start(*drive))).collect();
    let rows = Members::known(&rig.world, rig.shape.geometry(), &places).differing_rows().len();
    let bitmap = rig.world.candidates()[0].bitmap.clone().expect("there is one");
    (rows, bitmap[BITMAP_HEADER_BYTES..].iter().map(|byte| byte.count_ones()).sum())
}

/// Copies differ after a cut. The replay of the log will make them equal, so the bitmap forgets them. If the log is lost
/// before that, all rows are made consistent.
#[test]
fn rows_that_only_the_lost_log_knew_are_made_consistent() {
    let mut met = 0;
    for seed in seeds(6, 60) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let options = RigOptions { bitmap: true, bitmap_chunk: Some(4096), ..RigOptions::new(seed) };
            let limits = Limits { bitmap_clear_delay: Nanos::from_millis(100), ..limits_with_journal(Bytes::mib(1)) };
            let mut machine = Journalled::with_limits(shape, options, 1, limits);
            run(&mut machine, 16);
            let first = machine.rig.drives[0];
            let start = superblock_on(&machine.rig.world, first).expect("a member").data_offset;
            let is_destaged =
                |world: &World| world.drive(first).commands_that_change().any(|command| command.lba >= start);
            while !is_destaged(&machine.rig.world) {
                assert!(machine.rig.world.step());
            }
            machine.cut();
            machine.rig.run_for(Nanos::from_secs(1));
            machine.rig.session.cut_power(&mut machine.rig.world);
            let (rows, bits) = differing_rows_and_bits(&machine.rig);
            met += u32::from(rows > 0 && bits == 0);
            machine.rig.world.boot();
            let lost = AssembleOptions { journal_lost: true, ..AssembleOptions::default() };
            let plan = assemble::plan(&machine.rig.world.candidates(), lost).expect("all members are there");
            assert!(plan.bitmap.as_ref().is_some_and(|bitmap| bitmap.valid), "the bitmap is not damaged");
            let Ok(AdminOutcome::Started(array)) = machine.rig.world.admin(AdminCommand::StartSet(plan)) else {
                panic!("all members are there")
            };
            machine.rig.array = array;
            machine.rig.world.run_until_idle();
            assert_eq!((machine.rig.health(), machine.rig.status().task), (Health::Optimal, None));
            assert_eq!(Members::of(&machine.rig.world, array).differing_rows(), [], "{shape}");
        }
    }
    assert!(met >= 3, "the bitmap forgot rows in {met} cases");
}

/// The journal is lost while one array's writes wait for it. Another array, which does not use the journal, has members
/// that do not answer. The writes of the first array must be answered when its own members have all data.
#[test]
fn losing_the_journal_does_not_wait_for_the_other_arrays() {
    for seed in seeds(2, 20) {
        for steps in (5..120).step_by(10) {
            let (one, other) = (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(5, CHUNK));
            let _case = Case::new(seed, format!("after {steps} steps"));
            let mut machine = two_arrays::Machine::new(one, other, seed, 1);
            let policy = Policy { write_cache: WriteCache::Volatile, ..Policy::default() };
            let array = machine.other.session.array;
            machine.rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("there is a cache");
            machine.rig.world.run_until_idle();
            for block in 0..20 {
                machine.rig.world.write(array, block * 65536, &[1; 4096]).expect("its members are well");
            }
            for drive in machine.other.drives.clone() {
                machine.rig.world.drive_mut(drive).faults.hang = true;
            }
            for block in 0..16 {
                let (write, range) = (RequestKind::Write { fua: false }, block * 65536..block * 65536 + 4096);
                machine.rig.session.ask(&mut machine.rig.world, write, range);
            }
            (0..steps).for_each(|_| assert!(machine.rig.world.step()));
            machine.rig.world.vanish(machine.devices[0]);
            let start = machine.rig.world.now();
            machine.rig.session.drain(&mut machine.rig.world);
            let waited = machine.rig.world.now().since(start);
            assert!(waited < Nanos::from_secs(2), "{waited:?}");
            assert_eq!(machine.rig.session.errors, 0);
        }
    }
}

/// The server ends during a start that has raised the epoch on the second device only. The next start has the first
/// device, and gives its epoch the same number. When the second device returns, it is stale, although both logs end at
/// the same entry.
#[test]
fn a_device_with_the_epoch_of_a_start_that_was_cut_short_is_stale() {
    for seed in seeds(4, 40) {
        for requests in [0, 20] {
            let shape = ArrayShape::raid5(4, CHUNK);
            let _case = Case::new(seed, format!("{shape}, {requests} requests"));
            let mut machine = Journalled::new(shape, seed, false, 2);
            run(&mut machine, 60);
            machine.rig.session.drain(&mut machine.rig.world);
            let (first, second) = (machine.devices[0], machine.devices[1]);
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.rig.world.drive_mut(first).faults.writes = Some(DriveError::ReadOnly);
            machine.rig.world.boot();
            let found = machine.rig.world.find_journal(&machine.devices).expect("both are whole");
            let epoch = found.epoch;
            machine.rig.world.start_admin(AdminCommand::AttachJournal(found));
            let raised = |world: &mut World| world.find_journal(&[second]).is_ok_and(|found| found.epoch > epoch);
            while !raised(&mut machine.rig.world) {
                assert!(machine.rig.world.step(), "the epoch is raised");
            }
            machine.rig.world.kill();
            machine.rig.world.drive_mut(first).faults.writes = None;
            machine.rig.world.drive_mut(second).faults.gone = true;
            machine.rig.world.boot();
            attach_journal(&mut machine.rig.world, &[first]);
            machine.start();
            if requests > 0 {
                run(&mut machine, requests);
            }
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.rig.world.drive_mut(second).faults.gone = false;
            machine.boot();
            run(&mut machine, 40);
            machine.rig.session.drain(&mut machine.rig.world);
            machine.cut();
            machine.rig.session.look_at_all(&mut machine.rig.world);
        }
    }
}
