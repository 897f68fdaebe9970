//! The journal: its acknowledged data is present after any cut, whatever else fails with it. The journal costs no more
//! than necessary.

#![allow(clippy::cast_precision_loss)] // means of small counts

use crate::support::journalled::{limits_with_journal, Journalled, JOURNAL};
use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, Health, JournalState, Policy, WriteCache};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_core::reason::Reason;
use openraid_format::{journal_superblock_lba, FeatureMap, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES};
use openraid_sim::drive::Latency;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{Bytes, Nanos, Sectors, Slot};

fn protectable() -> Vec<ArrayShape> {
    ArrayShape::all().into_iter().filter(|shape| !shape.is_passthrough() && is_whole_lines(shape)).collect()
}

/// Whether the chunks of the shape are whole lines of the cache.
fn is_whole_lines(shape: &ArrayShape) -> bool {
    match shape.geometry() {
        openraid_core::geometry::Geometry::Parity(parity) => parity.chunk().get().is_multiple_of(8),
        _ => true,
    }
}

#[test]
fn every_level_holds_what_was_promised_and_stops_in_order() {
    for seed in seeds(1, 20) {
        for shape in protectable() {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), 1);
            let whole = Workload::mixed(machine.rig.session.capacity());
            for (depth, len_max, align, requests) in
                [(1, 64 << 10, 1, 30), (32, 256 << 10, 512, 80), (8, 4096, 4096, 100), (16, 700, 1, 60)]
            {
                let load = Workload { depth, len_max, align, ..whole.clone() };
                machine.rig.session.run(&mut machine.rig.world, &load, requests);
            }
            machine.rig.session.look_at_all(&mut machine.rig.world);
            let array = machine.rig.array;
            machine.rig.world.admin(AdminCommand::Stop { array }).unwrap();
            machine.rig.world.run_until_idle();
            machine.boot();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

#[test]
fn after_a_power_cut_everything_acknowledged_is_there_without_a_resync() {
    for seed in seeds(2, 60) {
        for shape in ArrayShape::some(protectable(), seed, 16) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), 1);
            let range = if machine.rig.random.chance(1, 2) { 0..96 << 10 } else { 0..machine.rig.session.capacity() };
            let load = Workload {
                len_max: 16 << 10,
                align: if machine.rig.random.chance(1, 3) { 1 } else { 4096 },
                range,
                mix: [1, 6, 1, 1, 1],
                ..Workload::mixed(machine.rig.session.capacity())
            };
            for _ in 0..4 {
                let requests = machine.rig.random.between(1, 80);
                machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
                let steps = u32::try_from(machine.rig.random.below(300)).unwrap();
                machine.rig.rest_or(steps);
                machine.cut();
                assert!(machine.rig.status().task.is_none(), "{shape}: a resync although the journal has everything");
                machine.rig.session.look_at_all(&mut machine.rig.world);
            }
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

#[test]
fn a_member_that_is_lost_with_the_power_takes_nothing_along() {
    for seed in seeds(2, 60) {
        let redundant = protectable().into_iter().filter(ArrayShape::is_redundant).collect();
        for shape in ArrayShape::some(redundant, seed, 12) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, false, 1);
            let load = Workload {
                len_max: 16 << 10,
                align: if machine.rig.random.chance(1, 3) { 1 } else { 512 },
                range: 0..96 << 10,
                mix: [1, 8, 0, 0, 0],
                ..Workload::mixed(machine.rig.session.capacity())
            };
            let requests = machine.rig.random.between(1, 80);
            machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
            let steps = u32::try_from(machine.rig.random.below(600)).unwrap();
            machine.rig.rest_or(steps);
            let slot = Slot(u16::try_from(machine.rig.random.below(u64::from(shape.members))).unwrap());
            let lost = machine.rig.drive_in(slot).unwrap();
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.rig.world.drive_mut(lost).faults.gone = true;
            machine.boot();
            assert_eq!(machine.rig.health(), Health::Degraded);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
            machine.cut();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            let drive = machine.rig.new_drive();
            machine.rig.world.add_member(machine.rig.array, drive).unwrap();
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

#[test]
fn without_its_device_the_journal_keeps_its_word_and_writes_go_through() {
    for seed in seeds(2, 40) {
        for shape in ArrayShape::some(protectable(), seed, 8) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), 1);
            let load = Workload { len_max: 32 << 10, ..Workload::mixed(machine.rig.session.capacity()) };
            machine.rig.session.run_on(&mut machine.rig.world, &load, 60);
            machine.rig.world.pull(machine.devices[0]);
            machine.rig.session.run(&mut machine.rig.world, &load, 60);
            machine.rig.rest();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            assert!(matches!(machine.rig.world.journal().unwrap().state, JournalState::Lost(_)));
            // The journal has no acknowledged data any more: the array starts without it.
            machine.rig.restart();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.judge();
        }
    }
}

#[test]
fn either_of_two_devices_is_enough() {
    for seed in seeds(2, 40) {
        for shape in ArrayShape::some(protectable(), seed, 8) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, false, 2);
            let load =
                Workload { len_max: 32 << 10, mix: [1, 6, 1, 1, 1], ..Workload::mixed(machine.rig.session.capacity()) };
            machine.rig.session.run_on(&mut machine.rig.world, &load, 60);
            let gone = machine.rig.random.index(2);
            machine.rig.world.pull(machine.devices[gone]);
            machine.rig.session.run_on(&mut machine.rig.world, &load, 60);
            machine.rig.session.cut_power(&mut machine.rig.world);
            machine.devices.remove(gone);
            machine.boot();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

#[test]
fn members_are_lost_while_the_journal_holds_much_and_nothing_is_lost_with_them() {
    for seed in seeds(2, 40) {
        let redundant = protectable().into_iter().filter(ArrayShape::is_redundant).collect();
        for shape in ArrayShape::some(redundant, seed, 12) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), 1);
            let load = Workload { len_max: 64 << 10, depth: 16, ..Workload::mixed(machine.rig.session.capacity()) };
            machine.rig.session.run_on(&mut machine.rig.world, &load, 80);
            let how = *machine.rig.random.pick(&Loss::ALL);
            machine.rig.lose(Slot(0), how);
            machine.rig.session.run_on(&mut machine.rig.world, &load, 80);
            let drive = machine.rig.new_drive();
            machine.rig.world.add_member(machine.rig.array, drive).unwrap();
            machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
            machine.rig.session.drain(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.run_for(Nanos::from_secs(20));
            machine.rig.judge();
        }
    }
}

#[test]
fn the_policy_is_switched_while_hosts_write_and_everybody_gets_an_answer() {
    for seed in seeds(2, 40) {
        for shape in ArrayShape::some(protectable(), seed, 12) {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::new(shape, seed, seed.is_multiple_of(2), 1);
            let load = Workload {
                len_max: 8 << 10,
                align: 4096,
                mix: [1, 12, 1, 0, 1],
                depth: 12,
                ..Workload::mixed(machine.rig.session.capacity())
            };
            for _ in 0..6 {
                for write_cache in [WriteCache::Through, WriteCache::Journal, WriteCache::Volatile, WriteCache::Journal]
                {
                    let requests = machine.rig.random.between(1, 40);
                    machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
                    let (array, policy) = (machine.rig.array, Policy { write_cache, ..Policy::default() });
                    machine.rig.world.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
                }
            }
            machine.rig.session.drain(&mut machine.rig.world);
            machine.cut();
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

/// The counters of the members (reads, writes, sectors written) and of the journal (entries, sectors).
fn counts(machine: &Journalled) -> ([u64; 3], [u64; 2]) {
    let status = machine.rig.status();
    let sum = |of: fn(&openraid_core::admin::MemberStatus) -> u64| status.members.iter().map(of).sum::<u64>();
    let journal = machine.rig.world.journal().unwrap().counters;
    ([sum(|m| m.reads), sum(|m| m.writes), sum(|m| m.sectors_written)], [journal.entries, journal.sectors])
}

#[test]
fn with_the_journal_writes_in_order_of_any_size_become_whole_stripes() {
    for (shape, data) in [(ArrayShape::raid5(5, Sectors::kib(64)), 4), (ArrayShape::raid6(6, Sectors::kib(64)), 4)] {
        // Whole blocks of 512 bytes; many writes end inside a line.
        let sizes = [4096, 4608, 6144, (10 << 10) + 512, 24 << 10, 64 << 10, 100 << 10, 200 << 10, 1 << 20];
        for (depth, size) in sizes.into_iter().flat_map(|size| [(1, size), (32, size)]) {
            let mut machine = Journalled::with_cache(shape, 1, Bytes::mib(4));
            let ([reads, _, sectors], _) = counts(&machine);
            let total = 4 << 20;
            let mut begun = 0;
            while begun < total || machine.rig.session.outstanding() > 0 {
                while begun < total && machine.rig.session.outstanding() < depth {
                    let end = total.min(begun + size);
                    let write = openraid_core::events::RequestKind::Write { fua: false };
                    machine.rig.session.ask(&mut machine.rig.world, write, begun..end);
                    begun = end;
                }
                machine.rig.session.step(&mut machine.rig.world);
            }
            machine.rig.rest();
            let ([reads_after, _, sectors_after], _) = counts(&machine);
            let (written, ideal) = ((sectors_after - sectors) * 512, total * u64::from(shape.members) / data);
            assert_eq!(reads_after - reads, 0, "{shape}, depth {depth}, {size} bytes");
            assert!(written <= ideal + ideal / 50, "{shape}, depth {depth}, {size}: {written} bytes for {ideal}");
            machine.rig.judge();
        }
    }
}

/// The cost of one small write, as a mean of many at random places; bytes on members and in the journal.
#[derive(Debug)]
struct Cost {
    writes: f64,
    flushes: f64,
    member_bytes: f64,
    journal_bytes: f64,
}

/// Stripes of an array of which writes use only a few.
const MANY_STRIPES: u64 = 2048;

fn cost_of_small_writes(shape: ArrayShape) -> Cost {
    let shape = ArrayShape { data: shape.chunk * MANY_STRIPES, ..shape };
    // The requests and units in work of a server.
    let Limits { requests_max, pieces_max, ops_max, commands_max, drive_depth_max, destage_units_max, .. } =
        Limits::default();
    let limits = limits_with_journal(Bytes::mib(4));
    let limits =
        Limits { requests_max, pieces_max, ops_max, commands_max, drive_depth_max, destage_units_max, ..limits };
    let mut machine = Journalled::with_limits(shape, RigOptions::new(3), 1, limits);
    let ([_, writes, sectors], [entries, logged]) = counts(&machine);
    let flushes = |machine: &Journalled| machine.rig.status().members.iter().map(|m| m.flushes).sum::<u64>();
    let superblocks = |machine: &Journalled| machine.rig.world.journal().expect("it is there").counters.superblocks;
    let (flushed, headers) = (flushes(&machine), superblocks(&machine));
    let stripe = machine.rig.session.capacity() / MANY_STRIPES;
    let requests = 512;
    // Each write is in a separate stripe: no two share parity, and none can be merged.
    let mut begun = 0;
    while begun < requests || machine.rig.session.outstanding() > 0 {
        while begun < requests && machine.rig.session.outstanding() < 32 {
            let at = begun * 389 % MANY_STRIPES * stripe + begun * 7 * 4096 % stripe;
            let write = openraid_core::events::RequestKind::Write { fua: false };
            machine.rig.session.ask(&mut machine.rig.world, write, at..at + 4096);
            begun += 1;
        }
        machine.rig.session.step(&mut machine.rig.world);
    }
    machine.rig.rest();
    let ([_, writes_after, sectors_after], [entries_after, logged_after]) = counts(&machine);
    // Header and payload of an entry are two writes, and so are the two copies of a superblock. All have FUA.
    let forced = 2 * (entries_after - entries) + 2 * (superblocks(&machine) - headers);
    let each = |count: u64| count as f64 / requests as f64;
    let cost = Cost {
        writes: each(writes_after - writes + forced),
        flushes: each(flushes(&machine) - flushed + forced),
        member_bytes: each((sectors_after - sectors) * 512),
        journal_bytes: each((logged_after - logged) * 512),
    };
    machine.rig.judge();
    println!("{shape}: {cost:?}");
    cost
}

/// Data and each parity are written to the members once, and before that to the journal, in groups.
#[test]
fn small_writes_at_depth_32_cost_fewer_writes_and_flushes_than_a_partial_parity_log() {
    // md's log on RAID 5: five writes, three flushes and 16 KiB for each small write. The journal does not save bytes,
    // because it has all data and parity.
    let cost = cost_of_small_writes(ArrayShape::raid5(4, Sectors::kib(64)));
    assert_eq!(cost.member_bytes, 2.0 * 4096.0, "{cost:?}");
    assert!(cost.writes < 2.75 && cost.flushes < 0.75 && cost.journal_bytes < 2.5 * 4096.0, "{cost:?}");
    // md has no such log for RAID 6. RAID 6 has one more parity, in the journal and on its member.
    let cost = cost_of_small_writes(ArrayShape::raid6(6, Sectors::kib(64)));
    assert_eq!(cost.member_bytes, 3.0 * 4096.0, "{cost:?}");
    assert!(cost.writes < 4.0 && cost.flushes < 1.25 && cost.journal_bytes < 3.5 * 4096.0, "{cost:?}");
}

#[test]
fn a_hot_line_does_not_keep_the_tail_and_the_ring_is_used_many_times_over() {
    for shape in [ArrayShape::raid5(4, Sectors::kib(64)), ArrayShape::raid1(2), ArrayShape::raid6(5, Sectors::kib(16))]
    {
        let mut machine = Journalled::with_cache(shape, 5, Bytes::mib(1));
        let hot = Workload { len_max: 4096, align: 4096, range: 0..4096, mix: [0, 1, 0, 0, 0], depth: 2 };
        let all = Workload {
            len_max: 64 << 10,
            align: 4096,
            mix: [0, 1, 0, 0, 0],
            depth: 8,
            ..Workload::mixed(machine.rig.session.capacity())
        };
        // The ring has 7 MiB.
        for _ in 0..60 {
            machine.rig.session.run_on(&mut machine.rig.world, &hot, 20);
            machine.rig.session.run_on(&mut machine.rig.world, &all, 20);
        }
        machine.rig.session.drain(&mut machine.rig.world);
        let journal = machine.rig.world.journal().unwrap();
        assert_eq!(journal.state, JournalState::Live);
        assert!(journal.counters.sectors > 2 * journal.ring.get(), "{shape}: {:?}", journal.counters);
        machine.cut();
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// The ring is sixty times the size of the cache, and lines are written repeatedly. The tail follows so closely that
/// the cache of the next start always has room for the log.
#[test]
fn a_log_never_holds_more_than_the_cache_can_take_over() {
    for shape in [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid6(5, Sectors::kib(16)), ArrayShape::raid1(2)]
    {
        let cache = Bytes::kib(128);
        let mut machine = Journalled::with_cache(shape, 7, cache);
        let load = Workload { len_max: 8192, align: 4096, range: 0..512 << 10, mix: [0, 1, 0, 0, 0], depth: 8 };
        for _ in 0..4 {
            let logged = |machine: &Journalled| machine.rig.world.journal().expect("it is there").counters.sectors;
            let start = logged(&machine);
            while Sectors(logged(&machine) - start).bytes() < cache * 8 {
                machine.rig.session.run_on(&mut machine.rig.world, &load, 8);
            }
            let status = machine.rig.status();
            let count = |reason: Reason| {
                status.reasons.iter().find(|(counted, _)| *counted == reason).map_or(0, |(_, count)| *count)
            };
            assert!(count(Reason::DestageForJournal) > 0, "{shape}: it is the journal that wants them written");
            assert_eq!(count(Reason::DestageAged), 0, "{shape}: nothing is five seconds old");
            // The cache is too small; the ring has enough room.
            let waits = count(Reason::WaitedForReplayRoom);
            assert!(waits > 0 && waits <= 2 * status.requests[1], "{shape}: a wait counts once, not {waits} times");
            assert_eq!(count(Reason::WaitedForJournal), 0, "{shape}");
            let steps = u32::try_from(machine.rig.random.below(300)).unwrap();
            machine.rig.rest_or(steps);
            machine.cut();
            machine.rig.session.look_at_all(&mut machine.rig.world);
        }
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// A server starts with less memory than the previous one. Data without room in the cache stays in the journal, and the
/// next server with enough room has it.
#[test]
fn a_cache_that_is_too_small_for_the_log_refuses_the_array_and_loses_nothing() {
    for shape in [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2)] {
        let mut machine = Journalled::with_cache(shape, 9, Bytes::mib(2));
        let load = Workload {
            len_max: 8192,
            align: 4096,
            mix: [0, 1, 0, 0, 0],
            ..Workload::mixed(machine.rig.session.capacity())
        };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 200);
        machine.rig.session.cut_power(&mut machine.rig.world);
        let limits = machine.rig.world.limits().clone();
        machine.rig.world.boot_with(limits_with_journal(Bytes::kib(128)));
        machine.attach();
        let refused = machine.rig.world.assemble(false).expect_err("it has no room");
        assert!(refused.to_string().contains("larger --cache, no less than it had"), "{shape}: {refused}");
        machine.rig.world.run_until_idle();
        machine.rig.world.boot_with(limits);
        machine.attach();
        machine.start();
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// The place of an entry is free only after the superblocks on the device say that the log begins after it.
#[test]
fn no_room_is_used_again_before_the_tail_is_durable() {
    for shape in [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2)] {
        let mut machine = Journalled::new(shape, 11, false, 2);
        let devices = machine.devices.clone();
        let load = Workload {
            len_max: 32 << 10,
            align: 4096,
            mix: [0, 1, 0, 0, 0],
            depth: 16,
            ..Workload::mixed(machine.rig.session.capacity())
        };
        // The least tails on which both devices agree, even after a power cut at this moment.
        let tail_of = |rig: &Rig| {
            let tails = devices.iter().flat_map(|device| {
                [SuperblockCopy::First, SuperblockCopy::Last].map(|copy| {
                    let mut bytes = [0; JOURNAL_BLOCK_BYTES];
                    let at = journal_superblock_lba(copy, JOURNAL).expect("large enough");
                    rig.world.drive(*device).peek_durable(at, &mut bytes);
                    JournalSuperblock::decode(&bytes, copy).map_or(0, |superblock| superblock.tail.sequence)
                })
            });
            // The newer copy of each superblock counts, because the other one may be half written.
            tails.collect::<Vec<u64>>().chunks(2).map(|copies| copies[0].max(copies[1])).min().expect("two devices")
        };
        let status = |rig: &Rig| rig.world.journal().expect("it is there");
        let (mut rounds, mut used) = (status(&machine.rig).counters.rounds, status(&machine.rig).used);
        let (mut passed, mut freed) = (tail_of(&machine.rig), 0);
        while freed < 12 {
            while machine.rig.session.outstanding() < 16 {
                machine.rig.session.ask_random(&mut machine.rig.world, &load);
            }
            machine.rig.session.step(&mut machine.rig.world);
            let now = status(&machine.rig);
            if now.used < used {
                let tail = tail_of(&machine.rig);
                assert!(
                    tail > passed,
                    "{shape}: room is free, and the devices say that the log begins at entry {tail}"
                );
                assert_eq!(now.counters.rounds, rounds + 1, "{shape}");
                (passed, freed) = (tail, freed + 1);
            }
            (rounds, used) = (now.counters.rounds, now.used);
        }
        machine.rig.session.drain(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// The state in the members' superblocks: whether the journal has data for them, and whether writes may be under way.
fn said(machine: &Journalled) -> (bool, bool) {
    let newest = machine.rig.drives.iter().filter_map(|drive| superblock_on(&machine.rig.world, *drive));
    let newest = newest.max_by_key(|superblock| superblock.events).expect("an array has members");
    (newest.features.contains(FeatureMap::CONTROLLER_JOURNAL), newest.resync_offset != u64::MAX)
}

/// If the array crashed between the two marks, it would need a resync, or force if a member is missing, although the
/// journal has all data.
#[test]
fn the_mark_of_the_journal_goes_with_the_active_mark_or_after_it() {
    let written = |seed: u64| {
        // Later flushes may overtake earlier ones by more than the time for writing a superblock.
        let latency =
            Latency { least: Nanos::from_micros(1), most: Nanos::from_millis(2), grain: Nanos::from_micros(1) };
        let options = RigOptions { latency, ..RigOptions::new(seed) };
        let mut machine = Journalled::made(ArrayShape::raid5(4, Sectors::kib(64)), options, 1, Bytes::mib(1));
        let load = Workload { len_max: 32 << 10, ..Workload::mixed(machine.rig.session.capacity()) };
        machine.rig.session.run(&mut machine.rig.world, &load, 10);
        machine
    };
    for seed in seeds(20, 200) {
        let mut quiet = written(seed);
        let mut steps = 0;
        while quiet.rig.world.step() {
            steps += 1;
        }
        assert_eq!(said(&quiet), (false, false));
        // The last step has recorded that state.
        for before in 1..=16.min(steps) {
            let _case = Case::new(seed, format!("{before} events before it is clean"));
            let mut machine = written(seed);
            machine.rig.rest_or(steps - before);
            let array = machine.rig.array;
            let policy = Policy { write_cache: WriteCache::Through, ..Policy::default() };
            machine.rig.world.start_admin(AdminCommand::SetPolicy { array, policy });
            while machine.rig.world.step() {
                assert_ne!(said(&machine), (false, true), "no journal, and half written");
            }
            assert_eq!(said(&machine), (false, false));
        }
    }
}

/// A server that stops soon after its start has an array whose part of the log is still being read.
#[test]
fn an_array_that_is_stopped_while_its_journal_is_read_stops_and_loses_nothing() {
    for seed in seeds(1, 30) {
        let shapes = [
            // No superblock marks the array as active.
            (ArrayShape::new(Level::Raid0, 2, 2, Sectors::kib(16)), false),
            (ArrayShape::raid5(4, Sectors::kib(64)), false),
            (ArrayShape::raid6(5, Sectors::kib(16)), true),
        ];
        for (shape, is_degraded) in shapes {
            for steps in 0..30 {
                let _case = Case::new(seed, format!("{shape}, after {steps} steps"));
                let mut machine = Journalled::new(shape, seed, false, 1);
                if is_degraded {
                    machine.rig.lose(Slot(1), Loss::Failed);
                    machine.rig.rest();
                }
                let load = Workload { len_max: 32 << 10, ..Workload::mixed(machine.rig.session.capacity()) };
                machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
                machine.rig.session.cut_power(&mut machine.rig.world);
                machine.rig.world.boot();
                machine.attach();
                let options = AssembleOptions::default();
                let plan = assemble::plan(&machine.rig.world.candidates(), options).expect("all are there");
                let array = machine.rig.array;
                let start = machine.rig.world.start_admin(AdminCommand::StartSet(plan));
                machine.rig.rest_or(steps);
                let stop = machine.rig.world.start_admin(AdminCommand::Stop { array });
                machine.rig.world.run_until_idle();
                let [started, stopped] =
                    [start, stop].map(|token| machine.rig.world.take_answer(token).expect("it is answered"));
                assert!(started.result.is_ok() && stopped.result.is_ok(), "{started:?} {stopped:?}");
                assert!(machine.rig.world.status(array).is_none());
                machine.boot();
                machine.rig.session.look_at_all(&mut machine.rig.world);
                machine.rig.rest();
                machine.rig.judge();
            }
        }
    }
}
