//! One journal, two arrays: the failed array does not stop the other, and its acknowledged data is present when it
//! returns.

use crate::support::two_arrays::{pairs, Machine};
use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, JournalState, Session as Protection};
use openraid_format::Uuid;
use openraid_sim::drive::LateCommands;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::ArrayShape;
use openraid_units::{Nanos, Sectors};

#[test]
fn a_failed_array_stops_no_other_and_its_acknowledged_data_is_there_when_it_is_back() {
    for seed in seeds(3, 60) {
        for (failing, living) in pairs() {
            let _case = Case::new(seed, failing);
            let mirrors = 1 + u8::try_from(seed % 2).unwrap();
            let mut machine = Machine::new(failing, living, seed, mirrors);
            let load = machine.load_of(machine.rig.session.capacity(), 8 << 10);
            let requests = machine.rig.random.between(10, 60);
            machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
            let steps = u32::try_from(machine.rig.random.below(400)).unwrap();
            machine.rig.rest_or(steps);
            machine.fail();
            machine.write_rings(10);
            let kept = machine.journal().kept;
            assert!(!kept.is_zero(), "{failing}: {:?}", machine.journal());
            let protection = machine.rig.world.status(machine.other.session.array).unwrap().session;
            assert_eq!(protection, Protection::On);
            // Again without the failed array, which is not yet known.
            machine.cut();
            machine.start_other();
            machine.write_rings(2);
            machine.cut();
            assert_eq!(machine.journal().kept, kept, "each entry is kept once");
            machine.bring_back();
            machine.start_other();
            // Both arrays continue. After all data is on the members, the journal keeps no entry.
            machine.rig.session.run(&mut machine.rig.world, &load, 40);
            machine.write_rings(1);
            machine.other.session.drain(&mut machine.rig.world);
            machine.rig.run_for(Nanos::from_secs(20));
            assert_eq!(machine.journal().kept, Sectors::ZERO, "{:?}", machine.journal());
            machine.cut_and_judge();
        }
    }
}

/// A machine whose first array has failed, after this number of requests of up to this length.
fn failed(
    (failing, living): (ArrayShape, ArrayShape),
    seed: u64,
    mirrors: u8,
    (len_max, requests): (u64, u64),
) -> Machine {
    let mut machine = Machine::new(failing, living, seed, mirrors);
    let load = machine.load_of(machine.rig.session.capacity(), len_max);
    machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
    machine.fail();
    machine
}

#[test]
fn power_cuts_while_entries_leave_the_ring_lose_nothing() {
    for seed in seeds(6, 200) {
        let (failing, living) = pairs()[usize::try_from(seed % 4).unwrap()];
        let _case = Case::new(seed, failing);
        let mut machine = failed((failing, living), seed, 2, (8 << 10, 40));
        // At some moment between the first entry that waits and the last one that was copied.
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        while machine.journal().kept.is_zero() {
            machine.other.session.run_on(&mut machine.rig.world, &load, 1);
        }
        for _ in 0..machine.rig.random.below(200) {
            machine.other.session.ask_random(&mut machine.rig.world, &load);
            machine.other.session.step(&mut machine.rig.world);
        }
        machine.cut();
        if seed.is_multiple_of(2) {
            machine.bring_back();
        }
        machine.start_other();
        machine.write_rings(2);
        machine.cut_and_judge();
    }
}

#[test]
fn beyond_its_share_a_failed_array_fills_the_ring_and_the_others_go_on_without_it() {
    for seed in seeds(2, 20) {
        let (failing, living) = pairs()[0];
        let _case = Case::new(seed, failing);
        let mut machine = Machine::new(failing, living, seed, 1);
        // More than the 1020 KiB that can be kept.
        let load = Workload { mix: [0, 1, 0, 0, 0], ..machine.load_of(machine.rig.session.capacity(), 128 << 10) };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
        machine.fail();
        machine.rig.world.take_notices();
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        let mut is_full_noticed = false;
        for _ in 0..60 {
            machine.other.session.run_on(&mut machine.rig.world, &load, 20);
            is_full_noticed |=
                machine.rig.world.take_notices().iter().any(|notice| notice.kind == NoticeKind::JournalFull);
        }
        machine.other.session.drain(&mut machine.rig.world);
        assert!(is_full_noticed && matches!(machine.journal().state, JournalState::Lost(_)), "{:?}", machine.journal());
        machine.rig.world.run_for(Nanos::from_secs(20));
        machine.cut();
        machine.bring_back();
        machine.start_other();
        machine.rig.rest();
    }
}

#[test]
fn a_full_journal_is_taken_again_when_the_array_that_filled_it_is_back() {
    for seed in seeds(2, 20) {
        let (failing, living) = pairs()[0];
        let _case = Case::new(seed, failing);
        let mut machine = Machine::new(failing, living, seed, 1);
        let load = Workload { mix: [0, 1, 0, 0, 0], ..machine.load_of(machine.rig.session.capacity(), 128 << 10) };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
        machine.fail();
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        for _ in 0..60 {
            machine.other.session.run_on(&mut machine.rig.world, &load, 20);
        }
        machine.other.session.drain(&mut machine.rig.world);
        assert!(matches!(machine.journal().state, JournalState::Lost(_)), "{:?}", machine.journal());
        machine.rig.world.run_for(Nanos::from_secs(20));
        // The failed array is stopped, the journal opened again, and the array started with its members.
        let array = machine.rig.array;
        machine.rig.world.admin(AdminCommand::Stop { array }).expect("it stops");
        machine.rig.world.admin(AdminCommand::DetachJournal).expect("no array uses it");
        machine.attach();
        machine.bring_back();
        machine.other.session.run_on(&mut machine.rig.world, &load, 20);
        machine.other.session.drain(&mut machine.rig.world);
        for array in [machine.rig.array, machine.other.session.array] {
            assert_eq!(machine.rig.world.controller().journal_protection(array), Ok(()), "{failing}");
        }
        // The log has its full length: the ring is used in cycles.
        machine.write_rings(2);
        machine.cut_and_judge();
    }
}

/// Only the superblock names the kept entries and their arrays. No entry may have a later tail than the superblock.
/// Otherwise a cut between the two writes loses entries that have just left the ring.
#[test]
fn no_entry_has_a_later_tail_than_the_superblock() {
    let mut looks = 0;
    for seed in seeds(4, 40) {
        let (failing, living) = pairs()[usize::try_from(seed % 4).unwrap()];
        let _case = Case::new(seed, failing);
        let mut machine = failed((failing, living), seed, 1, (8 << 10, 40));
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        let (mut written, mut left) = (machine.journal().counters.superblocks, 0);
        for _ in 0..8000 {
            while machine.other.session.outstanding() < 8 {
                machine.other.session.ask_random(&mut machine.rig.world, &load);
            }
            machine.other.session.step(&mut machine.rig.world);
            let now = machine.journal().counters.superblocks;
            if now != written {
                (written, left) = (now, 12);
            }
            if left > 0 {
                (left, looks) = (left - 1, looks + 1);
                let found = machine.rig.world.find_journal(&machine.devices).unwrap_or_else(|fault| panic!("{fault}"));
                let (said, durable) = (found.tail.sequence, found.superblock.tail.sequence);
                assert_eq!(said, durable, "an entry says that the log begins at {said}, the superblock at {durable}");
            }
        }
        assert!(!machine.journal().kept.is_zero(), "{:?}", machine.journal());
    }
    assert!(looks > 100, "{looks} looks");
}

/// Kept entries are given up while a slow joining device gets a copy of them. Their place is emptied before that piece
/// arrives. The rest of the log must still be copied.
#[test]
fn giving_up_entries_while_a_device_joins_loses_nothing_else() {
    let mut while_copied = 0;
    for seed in seeds(8, 400) {
        let (failing, living) = pairs()[usize::try_from(seed % 4).unwrap()];
        let _case = Case::new(seed, failing);
        let mut machine = failed((failing, living), seed, 2, (4 << 10, 10));
        machine.write_rings(3);
        assert!(!machine.journal().kept.is_zero(), "{:?}", machine.journal());
        let joins = machine.devices[1];
        machine.rig.world.pull(joins);
        machine.write_rings(1);
        machine.rig.world.drive_mut(joins).put_back();
        machine.rig.world.admin(AdminCommand::ReleaseJournalDevice).expect("it was dropped");
        machine.rig.world.join_journal(joins).expect("it may");
        machine.other.session.drain(&mut machine.rig.world);
        machine.rig.world.drive_mut(joins).faults.late =
            Some(LateCommands { one_in: 1, most: Nanos::from_millis(300) });
        machine.rig.run_for(Nanos::from_millis(50 * (seed % 20)));
        let waiting = machine.journal().arrays.iter().find(|array| array.waiting > 0).map(|array| array.set_uuid);
        let set_uuid: Uuid = waiting.expect("it is kept for an array");
        let kept = machine.journal().kept;
        let copied = machine.journal().joining.is_some_and(|join| join.copied < kept);
        machine.rig.world.admin(AdminCommand::DiscardJournalled { set_uuid }).expect("it does not run");
        while machine.journal().joining.is_some() {
            machine.rig.world.step();
        }
        while_copied += u32::from(copied && machine.journal().kept.is_zero());
        let logs = [0, 1].map(|device| {
            let found = machine.rig.world.find_journal(&machine.devices[device..=device]);
            let found = found.unwrap_or_else(|fault| panic!("device {device}: {fault}"));
            (found.tail, found.head, found.entries)
        });
        assert_eq!(logs[0], logs[1], "both have the same");
    }
    assert!(while_copied > 0, "nothing was given up while it was copied");
}
