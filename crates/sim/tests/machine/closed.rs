//! Queueing networks with known answers.

use openraid_core::admin::{MirrorRule, Policy};
use openraid_drives::{DriveKit, DriveOptions};
use openraid_models::{DriveKind, Library, SeekPoints};
use openraid_sim::machine::parts::{HostCost, ProcessorCost};
use openraid_sim::machine::{ArrayLevel, ArraySpec, HostIo, IoKind, Machine, MachineParts, MachineSpec};
use openraid_sim::Random;
use openraid_units::{Bytes, Nanos};

use crate::support::{closed_loop, fixed, machine, ExponentialDrive, SECTORS, SERVICE};

fn read(id: u64, offset: u64) -> HostIo {
    HostIo { id, kind: IoKind::Read, offset, len: 4096, worker: 0 }
}

fn places(seed: u64, capacity: u64) -> impl FnMut(u64) -> HostIo {
    let mut random = Random::derived(seed, 5);
    move |id| read(id, random.below(capacity / 4096) * 4096)
}

#[test]
fn requests_over_exponential_drives_make_the_known_throughput() {
    // X = mu M N / (N + M - 1): N requests, M drives, each request on a random drive.
    for (drives, depth) in [(1, 1), (2, 4), (4, 16), (8, 1), (8, 16), (8, 64)] {
        let models = (0..drives).map(|n| ExponentialDrive::new(SERVICE, 100 + u64::from(n))).collect();
        let array = ArraySpec::new(if drives == 1 { ArrayLevel::Single } else { ArrayLevel::Raid0 }, drives);
        let parts = MachineParts { depth_max: 128, ..MachineParts::default() };
        let mut machine = Machine::with_drives(parts, &array, models, true).expect("it can run");
        // Three standard errors of the mean of this many exponential times are the 1 % that is allowed.
        let requests = 100_000;
        let capacity = machine.capacity().get();
        let (time, _) = closed_loop(&mut machine, depth, requests, places(depth, capacity));
        let (m, n) = (f64::from(drives), depth as f64);
        let expected = m * n / (n + m - 1.0) / (SERVICE.0 as f64 / 1e9);
        let measured = requests as f64 / (time.0 as f64 / 1e9);
        let error = measured / expected - 1.0;
        assert!(error.abs() < 0.01, "{drives} drives, depth {depth}: {measured} is not {expected}");
    }
}

#[test]
fn a_mirror_is_written_as_fast_as_the_slower_half() {
    // The larger of two exponential times: 3/2 of the mean.
    let models = (0..2).map(|n| ExponentialDrive::new(SERVICE, 40 + n)).collect();
    let array = ArraySpec::new(ArrayLevel::Raid1, 2);
    let mut machine = Machine::with_drives(MachineParts::default(), &array, models, true).expect("it can run");
    let write = |id| HostIo { id, kind: IoKind::Write, offset: 0, len: 4096, worker: 0 };
    let requests = 200_000;
    let (time, _) = closed_loop(&mut machine, 1, requests, write);
    let mean = time.0 as f64 / requests as f64 / SERVICE.0 as f64;
    // Standard deviation of the larger one: sqrt(5)/2 means.
    let error = 3.0 * (5.0f64).sqrt() / 2.0 / (requests as f64).sqrt();
    assert!((mean - 1.5).abs() < error, "{mean}");
}

#[test]
fn a_write_to_more_copies_waits_for_the_slowest() {
    // The largest of n exponential times: H_n = 1 + 1/2 + ... + 1/n means, with the variance 1 + 1/4 + ... + 1/n^2.
    for copies in [3, 4] {
        let models = (0..u64::from(copies)).map(|n| ExponentialDrive::new(SERVICE, 140 + n)).collect();
        let array = ArraySpec::new(ArrayLevel::Raid1, copies);
        let mut machine = Machine::with_drives(MachineParts::default(), &array, models, true).expect("it can run");
        let write = |id| HostIo { id, kind: IoKind::Write, offset: 0, len: 4096, worker: 0 };
        let requests = 200_000;
        let (time, _) = closed_loop(&mut machine, 1, requests, write);
        let mean = time.0 as f64 / requests as f64 / SERVICE.0 as f64;
        let harmonic: f64 = (1..=copies).map(|n| 1.0 / f64::from(n)).sum();
        let variance: f64 = (1..=copies).map(|n| 1.0 / f64::from(n * n)).sum();
        let error = 3.0 * (variance / requests as f64).sqrt();
        assert!((mean - harmonic).abs() < error, "{copies}: {mean} is not {harmonic}");
    }
}

#[test]
fn small_writes_make_the_throughput_of_their_member_commands() {
    // N drives of rate X make N X / 4 small writes of RAID 5, N X / 6 of RAID 6 and N X / 2 of RAID 10. The drive with the
    // parity of RAID 4 has two commands of each write, so its array makes X / 2, however many drives there are.
    let rate = |level, drives: f64| match level {
        ArrayLevel::Raid4 => 1.0 / 2.0,
        ArrayLevel::Raid5 => drives / 4.0,
        ArrayLevel::Raid6 => drives / 6.0,
        _ => drives / 2.0,
    };
    for level in [ArrayLevel::Raid4, ArrayLevel::Raid5, ArrayLevel::Raid6, ArrayLevel::Raid10] {
        for members in [8, 12] {
            let mut machine = machine(MachineParts::default(), level, members, SERVICE);
            let blocks = machine.capacity().get() / 4096;
            let mut random = Random::derived(u64::from(members), 15);
            let next = |id| HostIo { kind: IoKind::Write, ..read(id, random.below(blocks) * 4096) };
            let requests = 200_000;
            // Enough outstanding requests, so that no drive is ever idle.
            let (time, _) = closed_loop(&mut machine, 1024, requests, next);
            let measured = requests as f64 / (time.0 as f64 / SERVICE.0 as f64);
            let expected = rate(level, f64::from(members));
            assert!((measured / expected - 1.0).abs() < 0.01, "{level} x{members}: {measured} is not {expected}");
        }
    }
}

/// Mean seek, in ms, of the nearer of two heads with random reads. The arm accelerates and decelerates with full force,
/// and moves at its highest speed in between. The share of the stroke at which it just reaches that speed is chosen so
/// that the sum over random distances gives the mean of the data sheet.
fn nearer_seek_ms(points: &SeekPoints) -> f64 {
    let [next, average, full] =
        [&points.track_to_track, &points.average, &points.full_stroke].map(|t| t.value.0 as f64);
    let moves = |knee: f64, x: f64| {
        let time = if x < knee { 2.0 * (x / knee).sqrt() } else { 1.0 + x / knee };
        (full - next) * time / (1.0 + 1.0 / knee)
    };
    let mean = |knee: f64| {
        let shares = (0..1000).map(|n| (f64::from(n) + 0.5) / 1000.0);
        shares.map(|x| 2.0 * (1.0 - x) * moves(knee, x)).sum::<f64>() / 1000.0
    };
    let knees = (1..=1000).map(|n| f64::from(n) / 1000.0);
    let knee = knees.min_by(|one, other| {
        let off = |knee: &f64| (mean(*knee) - (average - next)).abs();
        off(one).total_cmp(&off(other))
    });
    let knee = knee.expect("there are some");
    let (mut random, mut heads, mut sum) = (Random::derived(8, 8), [0.0f64; 2], 0.0);
    let reads = 400_000;
    for _ in 0..reads {
        let place = random.below(1 << 40) as f64 / (1u64 << 40) as f64;
        let [one, other] = heads.map(|head| (head - place).abs());
        sum += next + moves(knee, one.min(other));
        heads[usize::from(other < one)] = place;
    }
    sum / f64::from(reads) / 1e6
}

/// Mean time, in ms, of random reads at depth 1 within the first of `parts` parts of an array. On a mirror the nearer
/// head reads.
fn read_ms(kit: &DriveKit, (level, members): (ArrayLevel, u64), parts: u64, requests: u64) -> f64 {
    let drive = |index| kit.build(&DriveOptions { index, seed: 6, ..DriveOptions::default() });
    let policy = Policy { mirror_read: MirrorRule::NearestHead, ..Policy::default() };
    let machine_parts = MachineParts { policy, ..MachineParts::default() };
    let array = ArraySpec::new(level, members as u16);
    let drives = (0..members).map(drive).collect();
    let mut machine = Machine::with_drives(machine_parts, &array, drives, true).expect("it can run");
    let capacity = machine.capacity().get();
    let (time, _) = closed_loop(&mut machine, 1, requests, places(7, capacity / parts));
    time.0 as f64 / requests as f64 / 1e6
}

#[test]
fn heads_seek_a_third_of_a_drive_a_sixth_of_half_of_it_and_less_in_a_pair() {
    // The mean random distance of one head is a third of its range: a sixth of the drive if each of two copies serves
    // one half. Two heads of which the nearer one reads keep to halves by themselves, and seek 0.1613 (400,000 reads,
    // computed by another program). On a linear seek curve, distances are times. The rotation and the command are
    // added.
    for name in ["mba3073rc", "hus728t8"] {
        let mut profile = Library::builtin().drive(name).expect("a profile of the project").clone();
        let DriveKind::Disk(disk) = &mut profile.kind else { panic!("{name} is a disk") };
        (disk.rate_inner, disk.seek_table) = (disk.rate_outer.clone(), None);
        let points = &mut disk.seek_read;
        let line_ns = points.full_stroke.value.0 - points.track_to_track.value.0;
        points.average.value.0 = points.track_to_track.value.0 + line_ns / 3;
        let turn_ms = disk.turn().0 as f64 / 1e6;
        let (kit, requests) = (DriveKit::new(&profile), 160_000);
        let whole = read_ms(&kit, (ArrayLevel::Single, 1), 1, requests);
        let half = read_ms(&kit, (ArrayLevel::Single, 1), 2, requests);
        let pair = read_ms(&kit, (ArrayLevel::Raid1, 2), 1, requests);
        // The variance of each mean has two parts: T^2 / 12 for the rotation, and at most 1/18 of the line's square for
        // the distances.
        let line_ms = line_ns as f64 / 1e6;
        let error = 3.0 * (2.0 * (turn_ms.powi(2) / 12.0 + line_ms.powi(2) / 18.0) / requests as f64).sqrt();
        for (what, measured, expected) in [("half", half, 1.0 / 6.0), ("pair", pair, 0.1613)] {
            let (gain, wanted) = (whole - measured, line_ms * (1.0 / 3.0 - expected));
            let most = error.max(0.01 * wanted);
            assert!((gain - wanted).abs() < most, "{name}, {what}: {gain} ms are not {wanted} within {most}");
        }
    }
}

#[test]
fn the_nearer_head_gains_what_the_seek_curve_says() {
    // One read at a time: the time of arm and rotation for one drive is 1.25 to 1.30 times that for a pair whose nearer
    // head reads, on five drives with other parameters, computed by another program. The drive's own time for a command
    // is added to both.
    for name in ["wd740gd", "mba3073rc", "cheetah_15k7", "exos_x18_18tb", "hus728t8"] {
        let mut profile = Library::builtin().drive(name).expect("a profile of the project").clone();
        let DriveKind::Disk(disk) = &mut profile.kind else { panic!("{name} is a disk") };
        // With one density, distances in addresses equal distances in cylinders. The curve is that of the three points.
        (disk.rate_inner, disk.seek_table) = (disk.rate_outer.clone(), None);
        let turn_ms = disk.turn().0 as f64 / 2e6;
        let alone_ms = disk.seek_read.average.value.0 as f64 / 1e6 + turn_ms;
        let expected = alone_ms / (nearer_seek_ms(&disk.seek_read) + turn_ms);
        let kit = DriveKit::new(&profile);
        let mean_ms = |level, members| read_ms(&kit, (level, members), 1, 40_000);
        let (one, two) = (mean_ms(ArrayLevel::Single, 1), mean_ms(ArrayLevel::Raid1, 2));
        let command = one - alone_ms;
        let gain = alone_ms / (two - command);
        assert!((gain / expected - 1.0).abs() < 0.01, "{name}: {gain} is not {expected}; {one} and {two} ms");
        assert!((1.25 * 0.98..1.30 * 1.02).contains(&expected), "{name}: {expected}");
    }
}

#[test]
fn a_small_write_of_raid_5_takes_two_reads_and_a_turn() {
    // Write-through, depth 1: the later of two reads; then both sectors pass again, the later one after a whole turn.
    // Arm and rotation alone take 7.49 and 5.4 ms for one read, 15.0 and 10.6 for the write. The drives' own time for a
    // command is added once, because the time for the write passes during the turn.
    for (name, read_ms, write_ms) in [("wd740gd", 7.49, 15.0), ("mba3073rc", 5.4, 10.6)] {
        let library = Library::builtin();
        let kit = DriveKit::new(library.drive(name).expect("a profile of the project"));
        let mean_ms = |level, members: u16, kind: IoKind| {
            let drive = |index| {
                kit.build(&DriveOptions { write_cache: Some(false), index, seed: 5, ..DriveOptions::default() })
            };
            let models = (0..u64::from(members)).map(drive).collect();
            let mut machine =
                Machine::with_drives(MachineParts::default(), &ArraySpec::new(level, members), models, true)
                    .expect("it can run");
            let capacity = machine.capacity().get();
            let mut random = Random::derived(1, 6);
            let next = |id| HostIo { kind, ..read(id, random.below(capacity / 4096) * 4096) };
            let requests = 20_000;
            let (time, _) = closed_loop(&mut machine, 1, requests, next);
            time.0 as f64 / requests as f64 / 1e6
        };
        let written = mean_ms(ArrayLevel::Raid5, 8, IoKind::Write);
        let alone = mean_ms(ArrayLevel::Single, 1, IoKind::Read);
        let expected = write_ms + alone - read_ms;
        // The figures have a resolution of a tenth of a millisecond.
        assert!((written / expected - 1.0).abs() < 0.015, "{name}: {written} ms are not {expected} ms");
    }
}

#[test]
fn a_thread_costs_its_time_and_two_threads_are_twice_as_fast() {
    let time = Nanos(6_700);
    let host = HostCost { read: time, write: time, sequential: time, kib: Nanos::ZERO, processors: 4 };
    let rate = |workers: u16| {
        let mut machine = machine(MachineParts { host, ..MachineParts::default() }, ArrayLevel::Raid0, 4, Nanos(100));
        let requests = 50_000;
        let next = |id: u64| HostIo { worker: u16::try_from(id).unwrap() % workers, ..read(id, id * 65_536) };
        let (time, _) = closed_loop(&mut machine, 32, requests, next);
        requests as f64 / (time.0 as f64 / 1e9)
    };
    // 6.7 us a request and thread.
    assert!((rate(1) / (1e9 / 6700.0) - 1.0).abs() < 0.001, "{}", rate(1));
    assert!((rate(2) / (2e9 / 6700.0) - 1.0).abs() < 0.001, "{}", rate(2));
}

#[test]
fn the_controllers_processor_is_a_ceiling() {
    let processor = ProcessorCost {
        read: Nanos::from_micros(30),
        write: Nanos::from_micros(40),
        nested: Nanos::from_micros(10),
        command: Nanos::from_micros(20),
        kib: Nanos(500),
    };
    let parts = MachineParts { processor, ..MachineParts::default() };
    let rate = |level, members, kind: IoKind| {
        let mut machine = machine(parts.clone(), level, members, Nanos(100));
        let requests = 20_000;
        let next = |id: u64| HostIo { kind, ..read(id, id * 65_536) };
        let (time, _) = closed_loop(&mut machine, 64, requests, next);
        requests as f64 / (time.0 as f64 / 1e9)
    };
    let near =
        |measured: f64, micros: f64| assert!((measured * micros / 1e6 - 1.0).abs() < 0.005, "{measured} {micros}");
    // Each request has 4 KiB.
    near(rate(ArrayLevel::Raid0, 4, IoKind::Read), 52.0);
    near(rate(ArrayLevel::Raid0, 4, IoKind::Write), 62.0);
    near(rate(ArrayLevel::Raid10, 4, IoKind::Read), 62.0);
    near(rate(ArrayLevel::Raid10, 4, IoKind::Write), 92.0);
}

#[test]
fn more_requests_than_the_engine_takes_wait_at_the_door() {
    // 16,384 outstanding requests, four times the limit of the engine: the drives are never idle, so eight drives give
    // eight times the rate.
    let profiles = Library::builtin();
    let controller = profiles.controller("openraid").expect("a profile of the project").clone();
    let drive = fixed(Bytes(SECTORS * 512), Nanos::from_millis(1));
    let array = ArraySpec::new(ArrayLevel::Raid0, 8);
    let mut machine = Machine::in_library(&MachineSpec::new(controller, drive, array), &profiles).expect("it can run");
    let (requests, capacity) = (100_000, machine.capacity().get());
    let (time, _) = closed_loop(&mut machine, 16_384, requests, places(3, capacity));
    let measured = requests as f64 / (time.0 as f64 / 1e6);
    assert!((measured / 8.0 - 1.0).abs() < 0.02, "{measured} a millisecond");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let models = (0..5).map(|n| ExponentialDrive::new(SERVICE, seed + n)).collect();
        let array = ArraySpec::new(ArrayLevel::Raid5, 5);
        let mut machine = Machine::with_drives(MachineParts::default(), &array, models, true).expect("it can run");
        machine.keep_digest();
        let capacity = machine.capacity().get();
        let mut random = Random::derived(seed, 1);
        let next = |id| HostIo {
            kind: if random.chance(1, 2) { IoKind::Read } else { IoKind::Write },
            ..read(id, random.below(capacity / 4096) * 4096)
        };
        closed_loop(&mut machine, 16, 5_000, next);
        (machine.digest(), machine.now(), machine.counters())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}
