//! Reading: read-ahead reads all data once and correctly, streams are distinguished and served equally, and mirrors are
//! read from the copy of the rule.

use crate::support::{seeds, Case};
use openraid_core::actions::{DriveCommand, DriveOp, IoClass};
use openraid_core::admin::{AdminCommand, ArrayStatus, MirrorRule, Policy, ReadAhead, WriteCache};
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_core::reason::Reason;
use openraid_sim::drive::null::NullMachine;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Loss, Random, Rig, RigOptions};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors, Slot};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const CHUNK: Sectors = Sectors::kib(64);

fn with_cache(limits: Limits, cache: u64) -> Limits {
    Limits { pool: limits.pool + Bytes(cache), cache: Bytes(cache), ..limits }
}

fn machine(shape: ArrayShape, cache: u64, policy: Policy, rotational: bool) -> (NullMachine, ArrayId) {
    let limits = with_cache(Limits::default(), cache);
    let (mut machine, array) = NullMachine::on_drives(&shape, &limits, Sectors::mib(64), rotational);
    machine.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
    machine.heard = Some(Vec::new());
    (machine, array)
}

/// The reads since the last call.
fn reads(machine: &mut NullMachine) -> Vec<DriveCommand> {
    let heard = std::mem::take(machine.heard.as_mut().unwrap());
    heard.into_iter().filter(|command| command.op == DriveOp::Read).collect()
}

fn reason(status: &ArrayStatus, reason: Reason) -> u64 {
    status.reasons.iter().find(|(given, _)| *given == reason).map_or(0, |(_, count)| *count)
}

/// Sectors of these commands; each sector of a drive may appear only once.
fn sectors_once(commands: &[DriveCommand]) -> u64 {
    let mut ranges: Vec<_> = commands.iter().map(|c| (c.drive, c.lba.get(), c.lba.get() + c.len.get())).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "read twice: {pair:?}");
    }
    ranges.iter().map(|(_, from, to)| to - from).sum()
}

const SHAPES: [ArrayShape; 6] = [
    ArrayShape::new(Level::Raid0, 2, 4, CHUNK),
    ArrayShape::raid1(2),
    ArrayShape::raid10(0x102, 4, CHUNK),
    ArrayShape::raid5(5, CHUNK),
    ArrayShape::raid6(6, CHUNK),
    ArrayShape::raid10(0x201, 3, Sectors::kib(16)),
];

#[test]
fn a_stream_to_the_end_of_the_array_reads_each_sector_once_in_few_commands() {
    for shape in SHAPES {
        for (mode, len) in [(ReadAhead::Adaptive, 4 * KIB), (ReadAhead::Always, 4 * KIB), (ReadAhead::Adaptive, 512)] {
            let policy = Policy { read_ahead: mode, ..Policy::default() };
            let (mut machine, array) = machine(shape, 32 * MIB, policy, false);
            let capacity = machine.capacity(array).unwrap().get();
            let (total, mut at) = (4 * MIB, capacity - 4 * MIB);
            machine.run(array, RequestKind::Read, len, 1, total / len, || {
                at += len;
                at - len
            });
            machine.drain();
            for _ in 0..100 {
                machine.turn();
            }
            let reads = reads(&mut machine);
            assert_eq!(sectors_once(&reads) * 512, total, "{shape}, {mode:?}");
            let ahead = reads.iter().filter(|command| command.class == IoClass::ReadAhead);
            let ahead: u64 = ahead.map(|command| command.len.get()).sum();
            let counters = machine.controller().cache_counters();
            assert_eq!((counters.ahead_read, counters.ahead_wasted), (ahead, 0), "{shape}, {mode:?}");
            assert_eq!(counters.ahead_used, ahead, "all of it was asked for");
            assert!(ahead * 512 >= total - 4 * len - 4 * KIB, "{shape}, {mode:?}: {ahead}");
            assert!((reads.len() as u64) < total / (16 * KIB) + 32, "{shape}: {} commands", reads.len());
        }
    }
}

#[test]
fn without_read_ahead_or_without_order_nothing_is_read_ahead() {
    let none = Policy { read_ahead: ReadAhead::None, ..Policy::default() };
    for (policy, random) in [(none, false), (Policy::default(), true)] {
        let (mut machine, array) = machine(SHAPES[3], 32 * MIB, policy, false);
        let blocks = machine.capacity(array).unwrap().get() / (4 * KIB);
        let (mut chance, mut next) = (Random::new(3), 0);
        machine.run(array, RequestKind::Read, 4 * KIB, 8, 5000, || {
            next += 1;
            (if random { chance.below(blocks) } else { next }) * 4 * KIB
        });
        machine.drain();
        assert!(reads(&mut machine).iter().all(|command| command.class == IoClass::Foreground));
    }
}

#[test]
fn streams_that_alternate_all_gain_and_get_equal_windows() {
    for streams in [2, 5, 16] {
        let (mut machine, array) = machine(SHAPES[0], 64 * MIB, Policy::default(), false);
        let apart = machine.capacity(array).unwrap().get() / streams / MIB * MIB;
        let mut count = 0;
        machine.run(array, RequestKind::Read, 16 * KIB, 4, 256 * streams, || {
            count += 1;
            (count - 1) % streams * apart + (count - 1) / streams * 16 * KIB
        });
        machine.drain();
        let reads = reads(&mut machine);
        sectors_once(&reads);
        let mut foreground = vec![0; usize::try_from(streams).unwrap()];
        let mut ahead = foreground.clone();
        for command in &reads {
            // After the first MiB, which has metadata, four members share each stripe.
            let at = (command.lba.get() * 512).saturating_sub(MIB) * 4;
            let stream = usize::try_from((at + apart / 2).min(apart * streams - 1) / apart).unwrap_or(0);
            let stream = stream.min(foreground.len() - 1);
            match command.class {
                IoClass::ReadAhead => ahead[stream] += command.len.get(),
                _ => foreground[stream] += command.len.get(),
            }
        }
        let (least, most) = (ahead.iter().min().unwrap(), ahead.iter().max().unwrap());
        assert!(*least > 0 && most - least <= 2048, "{streams} streams: {ahead:?}");
        assert!(foreground.iter().all(|sectors| *sectors <= 4 * 32), "{streams} streams: {foreground:?}");
        let status = machine.controller().status(array).unwrap();
        assert_eq!(reason(&status, Reason::ReadAheadStarted), streams);
    }
}

#[test]
fn windows_are_a_bounded_share_of_the_cache() {
    for cache in [256 * KIB, MIB, 8 * MIB] {
        let policy = Policy { read_ahead: ReadAhead::Always, read_ahead_max: Sectors::mib(64), ..Policy::default() };
        let (mut machine, array) = machine(SHAPES[3], cache, policy, false);
        let mut at = 0;
        for _ in 0..500 {
            machine.run(array, RequestKind::Read, 4 * KIB, 1, 1, || {
                at += 4 * KIB;
                at - 4 * KIB
            });
            let counters = machine.controller().cache_counters();
            let unused = (counters.ahead_read - counters.ahead_used - counters.ahead_wasted) * 512;
            assert!(unused <= cache / 4, "{unused} bytes of a cache of {cache}");
        }
        assert!(machine.controller().cache_counters().ahead_used * 512 > MIB);
    }
}

fn mirror_reads(policy: Policy, rotational: bool, shape: ArrayShape, requests: u64) -> Vec<DriveCommand> {
    let (mut machine, array) = machine(shape, 0, policy, rotational);
    let blocks = machine.capacity(array).unwrap().get() / (4 * KIB);
    let mut chance = Random::new(11);
    machine.run(array, RequestKind::Read, 4 * KIB, 1, requests, || chance.below(blocks) * 4 * KIB);
    machine.drain();
    reads(&mut machine)
}

fn of(commands: &[DriveCommand], drive: u16) -> usize {
    commands.iter().filter(|command| command.drive == DriveId(drive)).count()
}

#[test]
fn round_robin_is_exact_halves_and_primary_is_the_first_copy() {
    let rule = |mirror_read| Policy { mirror_read, ..Policy::default() };
    for members in [2, 3, 4] {
        let reads = mirror_reads(rule(MirrorRule::RoundRobin), true, ArrayShape::raid1(members), 1200);
        for drive in 0..members {
            assert_eq!(of(&reads, drive), 1200 / usize::from(members));
        }
        let reads = mirror_reads(rule(MirrorRule::Primary), true, ArrayShape::raid1(members), 100);
        assert_eq!(of(&reads, 0), 100);
    }
    // Each pair of a RAID 10 is divided separately.
    let reads = mirror_reads(rule(MirrorRule::RoundRobin), false, ArrayShape::raid10(0x102, 4, CHUNK), 5000);
    for pair in [0, 2] {
        assert!(of(&reads, pair).abs_diff(of(&reads, pair + 1)) <= 1);
    }
}

#[test]
fn nearest_head_moves_the_heads_as_far_as_theory_says() {
    let policy = Policy { mirror_read: MirrorRule::NearestHead, ..Policy::default() };
    let reads = mirror_reads(policy, true, ArrayShape::raid1(2), 120_000);
    let stroke = reads.iter().map(|command| command.lba.get()).max().unwrap() as f64;
    let first = reads.iter().map(|command| command.lba.get()).min().unwrap();
    let mut heads = [first; 2];
    let mut sum = 0;
    for command in &reads {
        let drive = command.drive.index();
        let [mine, other] = [drive, 1 - drive].map(|head| heads[head].abs_diff(command.lba.get()));
        assert!(mine <= other, "the nearer head is taken");
        sum += mine;
        heads[drive] = command.lba.get() + command.len.get();
    }
    let mean = sum as f64 / reads.len() as f64 / stroke;
    // Each of the two heads keeps to its own part: .1613 of the stroke, compared with 1/3 for one head.
    assert!((mean / 0.1613 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn the_nearer_of_two_heads_that_are_anywhere_is_five_twenty_fourths_away() {
    // Each read of the rule follows one read of each copy, so that the heads are at two random places.
    let rule = |mirror_read| Policy { mirror_read, ..Policy::default() };
    let (mut machine, array) = machine(ArrayShape::raid1(2), 0, rule(MirrorRule::RoundRobin), true);
    let blocks = machine.capacity(array).unwrap().get() / (4 * KIB);
    let (mut chance, mut all) = (Random::new(12), Vec::new());
    let rounds = 20_000;
    for _ in 0..rounds {
        for (mirror_read, requests) in [(MirrorRule::RoundRobin, 2), (MirrorRule::NearestHead, 1)] {
            machine.admin(AdminCommand::SetPolicy { array, policy: rule(mirror_read) }).unwrap();
            machine.run(array, RequestKind::Read, 4 * KIB, 1, requests, || chance.below(blocks) * 4 * KIB);
            machine.drain();
        }
        all.push(reads(&mut machine));
    }
    let lbas = || all.iter().flatten().map(|command| command.lba.get());
    let stroke = (lbas().max().unwrap() - lbas().min().unwrap()) as f64;
    let mut moves = Vec::new();
    for three in &all {
        let [one, other, read] = three.as_slice() else { panic!("three reads: {three:?}") };
        assert_ne!(one.drive, other.drive);
        let head = if one.drive == read.drive { one } else { other };
        moves.push((head.lba + head.len).get().abs_diff(read.lba.get()) as f64 / stroke);
    }
    let mean = moves.iter().sum::<f64>() / moves.len() as f64;
    let square = moves.iter().map(|far| (far - mean) * (far - mean)).sum::<f64>() / moves.len() as f64;
    let error = 3.0 * (square / moves.len() as f64).sqrt();
    assert!((mean - 5.0 / 24.0).abs() < error.max(0.002), "{mean} is not {}", 5.0 / 24.0);
}

#[test]
fn flash_is_chosen_by_what_it_has_to_do_whatever_the_heads() {
    for mirror_read in [MirrorRule::NearestHead, MirrorRule::TwinStor] {
        let policy = Policy { mirror_read, ..Policy::default() };
        let (mut machine, array) = machine(ArrayShape::raid1(2), 0, policy, false);
        machine.run(array, RequestKind::Read, 4 * KIB, 2, 2000, || 8 * KIB);
        machine.drain();
        let reads = reads(&mut machine);
        assert_eq!(of(&reads, 0), of(&reads, 1), "{mirror_read:?}");
    }
}

/// Sequential order saves moves of heads. Drives without heads share a stream over all copies.
#[test]
fn a_stream_on_flash_is_shared_by_what_its_drives_have_to_do() {
    for mirror_read in [MirrorRule::LeastPending, MirrorRule::NearestHead, MirrorRule::TwinStor] {
        for (rotational, least) in [(false, 900), (true, 0)] {
            let split_above = Sectors::mib(1024);
            let policy = Policy { mirror_read, split_above, ..Policy::default() };
            let (mut machine, array) = machine(ArrayShape::raid1(2), 0, policy, rotational);
            let mut at = 0;
            machine.run(array, RequestKind::Read, 4 * KIB, 8, 2000, || {
                at += 4 * KIB;
                at - 4 * KIB
            });
            machine.drain();
            let reads = reads(&mut machine);
            let fewer = of(&reads, 0).min(of(&reads, 1));
            let expected = if rotational { fewer == least } else { fewer >= least };
            assert!(expected, "{mirror_read:?}, rotational {rotational}: {fewer} of {}", reads.len());
        }
    }
}

#[test]
fn a_stream_stays_on_one_copy_until_it_is_long_and_is_then_read_in_sections() {
    for shape in [ArrayShape::raid1(2), ArrayShape::raid10(0x102, 2, CHUNK)] {
        let policy = Policy {
            mirror_read: MirrorRule::TwinStor,
            split_above: Sectors::mib(1),
            split_section: Sectors::kib(256),
            ..Policy::default()
        };
        let (mut machine, array) = machine(shape, 0, policy, true);
        let mut at = 0;
        let mut next = || {
            at += 32 * KIB;
            at - 32 * KIB
        };
        machine.run(array, RequestKind::Read, 32 * KIB, 1, 32, &mut next);
        machine.drain();
        let short = reads(&mut machine);
        assert_eq!(of(&short, 0).max(of(&short, 1)), short.len(), "{shape}: one copy");
        machine.run(array, RequestKind::Read, 32 * KIB, 1, 128, &mut next);
        machine.drain();
        let long = reads(&mut machine);
        assert_eq!(of(&long, 0), of(&long, 1), "{shape}: sections in turn");
        let drives: Vec<_> = long.iter().map(|command| command.drive).collect();
        let turns = drives.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(turns as u64, 4 * MIB / (256 * KIB) - 1, "{shape}");
        // One long request is split immediately.
        machine.run(array, RequestKind::Read, 4 * MIB, 1, 1, || 16 * MIB);
        machine.drain();
        let one = reads(&mut machine);
        let sectors = |drive| one.iter().filter(|c| c.drive == DriveId(drive)).map(|c| c.len.get()).sum::<u64>();
        assert!(sectors(0).min(sectors(1)) * 512 >= 3 * MIB / 2, "{shape}: {} {}", sectors(0), sectors(1));
    }
}

#[test]
fn far_copies_are_read_where_they_lie_striped() {
    let policy = Policy { mirror_read: MirrorRule::TwinStor, ..Policy::default() };
    let (mut machine, array) = machine(ArrayShape::raid10(0x201, 4, CHUNK), 0, policy, true);
    let half = machine.controller().status(array).unwrap().superblock.unwrap().size.get() / 2;
    let mut at = 0;
    machine.run(array, RequestKind::Read, 64 * KIB, 1, 400, || {
        at += 64 * KIB;
        at - 64 * KIB
    });
    machine.drain();
    let reads = reads(&mut machine);
    for drive in 0..4 {
        assert_eq!(of(&reads, drive), 100);
    }
    assert!(reads.iter().all(|command| command.lba.get() < half), "the outer halves");
}

// ---- with bytes and time

fn options(seed: u64, cache: u64, write_cache: WriteCache) -> RigOptions {
    let mut options = RigOptions { write_cache, rotational: seed.is_multiple_of(2), ..RigOptions::new(seed) };
    options.world.limits = with_cache(Limits::small(), cache);
    options
}

fn policy(rig: &mut Rig) -> Policy {
    let read_ahead = *rig.random.pick(&[ReadAhead::None, ReadAhead::Always, ReadAhead::Adaptive]);
    let mirror_read = *rig.random.pick(&[
        MirrorRule::Primary,
        MirrorRule::RoundRobin,
        MirrorRule::LeastPending,
        MirrorRule::NearestHead,
        MirrorRule::TwinStor,
    ]);
    Policy {
        read_ahead,
        mirror_read,
        read_ahead_max: Sectors::kib(1 << rig.random.between(3, 11)),
        split_above: Sectors::kib(rig.random.below(256)),
        split_section: Sectors::kib(4 * rig.random.between(1, 16)),
        sorting: rig.random.chance(2, 3),
        adaptive: rig.random.chance(1, 2),
        ..rig.status().policy
    }
}

fn set_policy(rig: &mut Rig) {
    let policy = policy(rig);
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
    rig.session.hear(&mut rig.world);
}

/// Sequential readers at separate places, next to a random load.
fn read_in_order(rig: &mut Rig, streams: u64, requests: u64, load: &Workload) {
    let capacity = rig.session.capacity();
    let mut places: Vec<u64> = (0..streams).map(|number| capacity / streams * number).collect();
    for _ in 0..requests {
        let stream = rig.random.index(places.len());
        let len = rig.random.between(1, 48) * 512;
        let at = places[stream];
        let end = (at + len).min(capacity);
        rig.session.ask(&mut rig.world, RequestKind::Read, at..end);
        places[stream] = if end == capacity { 0 } else { end };
        if rig.random.chance(1, 3) {
            rig.session.run_on(&mut rig.world, load, 2);
        }
        while rig.session.outstanding() > 8 {
            rig.session.step(&mut rig.world);
        }
    }
}

#[test]
fn sequential_readers_among_writers_read_the_written_data() {
    for seed in seeds(2, 20) {
        for (number, shape) in ArrayShape::all().into_iter().enumerate() {
            let cache = [128 * KIB, 512 * KIB, 4 * MIB][number % 3];
            let write_cache = [WriteCache::Through, WriteCache::Volatile][number % 2];
            let _case = Case::new(seed, format!("{shape}, cache of {cache} bytes, {write_cache:?}"));
            let mut rig = Rig::new(shape, options(seed, cache, write_cache));
            let load = Workload { depth: 4, len_max: 32 << 10, ..Workload::mixed(rig.session.capacity()) };
            for _ in 0..3 {
                set_policy(&mut rig);
                read_in_order(&mut rig, 3, 60, &load);
            }
            rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
            rig.judge();
        }
    }
}

#[test]
fn members_are_lost_and_come_back_under_readers_in_order() {
    for seed in seeds(2, 20) {
        let shapes: Vec<_> = ArrayShape::all().into_iter().filter(ArrayShape::is_redundant).collect();
        for shape in ArrayShape::some(shapes, seed, 24) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, options(seed, 512 * KIB, WriteCache::Through));
            let load = Workload { depth: 4, len_max: 32 << 10, ..Workload::mixed(rig.session.capacity()) };
            set_policy(&mut rig);
            read_in_order(&mut rig, 2, 40, &load);
            let how = *rig.random.pick(&Loss::ALL);
            rig.lose(Slot(0), how);
            read_in_order(&mut rig, 2, 60, &load);
            set_policy(&mut rig);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            read_in_order(&mut rig, 2, 60, &load);
            rig.rest();
            rig.run_for(Nanos::from_secs(20));
            rig.judge();
        }
    }
}

#[test]
fn a_read_of_data_that_is_being_read_waits_and_nothing_is_read_twice() {
    for shape in SHAPES {
        for depth in [1, 4] {
            let mut rig = Rig::new(shape, options(2, 4 * MIB, WriteCache::Through));
            rig.rest();
            let before = rig.status();
            let capacity = rig.session.capacity();
            let mut at = 0;
            while at < capacity || rig.session.outstanding() > 0 {
                while at < capacity && rig.session.outstanding() < depth {
                    let end = (at + 8 * KIB).min(capacity);
                    rig.session.ask(&mut rig.world, RequestKind::Read, at..end);
                    at = end;
                }
                rig.session.step(&mut rig.world);
            }
            rig.rest();
            let after = rig.status();
            let sum = |status: &ArrayStatus| status.members.iter().map(|m| m.sectors_read).sum::<u64>();
            assert_eq!((sum(&after) - sum(&before)) * 512, capacity, "{shape}, depth {depth}");
            assert!(reason(&after, Reason::WaitedForReadAhead) > 0, "{shape}, depth {depth}");
        }
    }
}

#[test]
fn an_array_stops_in_the_middle_of_reading_ahead() {
    for shape in SHAPES {
        let mut rig = Rig::new(shape, options(4, 4 * MIB, WriteCache::Through));
        for at in 0..6 {
            rig.session.ask(&mut rig.world, RequestKind::Read, at * 16 * KIB..(at + 1) * 16 * KIB);
        }
        rig.rest_or(12);
        rig.restart();
        rig.judge();
    }
}

#[test]
fn the_adaptive_policy_follows_the_load_gives_reasons_and_can_be_reset() {
    let shape = ArrayShape { data: Sectors::mib(16), ..ArrayShape::raid1(2) };
    let mut rig = Rig::new(shape, options(2, 4 * MIB, WriteCache::Through));
    let array = rig.array;
    let set = Policy { adaptive: true, ..rig.status().policy };
    rig.world.admin(AdminCommand::SetPolicy { array, policy: set }).unwrap();
    let blocks = rig.session.capacity() / (4 * KIB);
    for _ in 0..300 {
        let at = rig.random.below(blocks) * 4 * KIB;
        rig.session.ask(&mut rig.world, RequestKind::Read, at..at + 4 * KIB);
        rig.run_for(Nanos::from_millis(16));
    }
    let status = rig.status().adaptive;
    assert_eq!((status.tuning.mirror_read, status.tuning.read_ahead), (MirrorRule::NearestHead, ReadAhead::None));
    assert_eq!((status.on, status.switches, status.last.len()), (true, 1, 1));
    assert_eq!((status.last[0].load.read_percent, status.last[0].load.depth_tenths), (100, 10));
    for number in 0..300 {
        let at = number % blocks * 4 * KIB;
        rig.session.ask(&mut rig.world, RequestKind::Read, at..at + 4 * KIB);
        rig.run_for(Nanos::from_millis(16));
    }
    let status = rig.status();
    let tuning = status.adaptive.tuning;
    assert_eq!((tuning.mirror_read, tuning.read_ahead), (MirrorRule::TwinStor, ReadAhead::Adaptive));
    assert_eq!((reason(&status, Reason::AdaptiveMirror), reason(&status, Reason::AdaptiveReadAhead)), (2, 2));
    assert_eq!(status.policy, set, "the settings stay as they were");
    // A change of another setting keeps the learned state, a reset clears it, and off remains off.
    let policy = Policy { rebuild_rate: Sectors::mib(1), ..set };
    rig.world.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
    assert_eq!(rig.status().adaptive.tuning, tuning);
    rig.world.admin(AdminCommand::ResetAdaptive { array }).unwrap();
    let status = rig.status().adaptive;
    assert_eq!((status.windows, status.switches, status.tuning.mirror_read), (0, 0, set.mirror_read));
    rig.world.admin(AdminCommand::SetPolicy { array, policy: Policy::default() }).unwrap();
    for number in 0..300 {
        let at = rig.random.below(blocks) * 4 * KIB;
        rig.session.ask(&mut rig.world, RequestKind::Read, at..at + 4 * KIB);
        rig.run_for(Nanos::from_millis(16 + number % 2));
    }
    let status = rig.status().adaptive;
    assert_eq!((status.on, status.switches, status.tuning.mirror_read), (false, 0, MirrorRule::LeastPending));
    rig.restart();
    assert_eq!(rig.status().adaptive.windows, 0, "gone with the array");
}

#[test]
fn a_slow_drive_delays_only_requests_that_need_it() {
    let shape = ArrayShape { data: Sectors::mib(4), ..ArrayShape::new(Level::Linear, 0, 3, Sectors(0)) };
    let mut rig = Rig::new(shape, options(2, 0, WriteCache::Through));
    rig.rest();
    let third = rig.session.capacity() / 3;
    rig.world.drive_mut(rig.drives[1]).faults.hang = true;
    let begin = rig.world.now();
    // More requests than the slow drive accepts at once: the others wait in the controller.
    for number in 0..12 {
        let at = third + 64 * KIB + number * 4 * KIB;
        rig.session.ask(&mut rig.world, RequestKind::Read, at..at + 4 * KIB);
    }
    for number in 0..100 {
        let at = (number % 2) * 2 * third + number * 4 * KIB;
        let token = rig.world.submit(rig.array, RequestKind::Read, at, 4 * KIB, Vec::new());
        rig.world.run_until(token);
    }
    assert!(rig.world.now().since(begin) < Nanos::from_millis(40), "each took what its own drive takes");
    assert_eq!(rig.session.outstanding(), 12);
    let slow = rig.drives[1];
    rig.world.release(slow);
    rig.rest();
}
