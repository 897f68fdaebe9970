//! An SSD compared with figures that follow from its parameters.

use super::*;
use crate::one_drive_load::{closed, command};
use openraid_models::{DriveKind, DriveProfile, Library, Sourced};

fn profile(name: &str) -> (SsdProfile, Sectors) {
    let DriveProfile { kind, capacity, .. } = Library::builtin().drive(name).unwrap().clone();
    let DriveKind::Ssd(ssd) = kind else { panic!("{name} is an SSD") };
    (*ssd, capacity.value)
}

/// A profile without outliers, and with pages of one type.
fn plain(name: &str) -> (SsdProfile, Sectors) {
    let (mut ssd, capacity) = profile(name);
    (ssd.outlier_read, ssd.outlier_write) = (Sourced::exact(0), Sourced::exact(0));
    (ssd.read_types, ssd.program_types) = (Vec::new(), Vec::new());
    (ssd, capacity)
}

fn ssd(profile: &SsdProfile, capacity: Sectors, state: DriveState) -> Ssd {
    let options = DriveOptions { state, ..DriveOptions::default() };
    Ssd::new(Arc::new(SsdTables::new(profile, capacity)), &options, Random::new(9))
}

fn close(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// The time of a read in one page, if nothing else is in work, in nanoseconds.
fn steps_of_a_read(profile: &SsdProfile, bytes: Bytes) -> f64 {
    let steps = profile.serial_read.value
        + profile.controller_read.value
        + profile.read.value
        + profile.channel_rate.value.time(bytes)
        + profile.link_command.value
        + profile.link_rate.value.time(bytes);
    steps.0 as f64
}

const WRITE: DriveOp = DriveOp::Write { fua: false };

#[test]
fn one_read_takes_the_sum_of_its_steps() {
    let (profile, capacity) = plain("s3500_480");
    let mut drive = ssd(&profile, capacity, DriveState::Fresh);
    let mut random = Random::new(1);
    let trial = closed(&mut drive, 1, 10, 1000, || (DriveOp::Read, random.below(capacity.0 / 8) * 8, 8));
    let page = Bytes(4096);
    let steps = steps_of_a_read(&profile, page);
    // A page that is still in its register is available sooner: one in millions of pages.
    close(trial.mean(), steps, 0.001);
}

/// Without read-ahead each sequential read waits for the flash, like a random one.
#[test]
fn a_sequential_read_without_read_ahead_takes_the_sum_of_its_steps() {
    let (profile, capacity) = plain("s3500_480");
    let page = profile.page.value;
    let mean = |read_ahead| {
        let options = DriveOptions { state: DriveState::Fresh, read_ahead, ..DriveOptions::default() };
        let mut drive = Ssd::new(Arc::new(SsdTables::new(&profile, capacity)), &options, Random::new(9));
        let (mut at, sectors) = (0, page.0 / 512);
        let next = || {
            at += sectors;
            (DriveOp::Read, at - sectors, sectors)
        };
        closed(&mut drive, 1, 10, 1000, next).mean()
    };
    let steps = steps_of_a_read(&profile, page);
    close(mean(Some(false)), steps, 0.001);
    assert!(mean(None) < steps - 0.9 * profile.read.value.0 as f64, "the pages are in the registers");
}

/// A command also occupies the path. So shorter sequential commands give a data rate further below that of the path.
#[test]
fn sequential_commands_occupy_the_path_in_addition_to_their_bytes() {
    let (profile, capacity) = plain("s3500_480");
    let command = profile.link_command.value.0;
    for (op, rate) in [(DriveOp::Read, profile.path_read.value), (WRITE, profile.path_write.value)] {
        for kib in [16, 128] {
            let (mut drive, sectors) = (ssd(&profile, capacity, DriveState::Fresh), kib * 2);
            let mut at = 0;
            let next = || {
                at += sectors;
                (op, at - sectors, sectors)
            };
            let trial = closed(&mut drive, 32, 2_000, 10_000, next);
            close(trial.rate(), 1e9 / (command + rate.time(Bytes(kib * 1024)).0) as f64, 0.01);
        }
    }
}

#[test]
fn dies_work_side_by_side_up_to_their_number() {
    let (mut profile, capacity) = plain("pm9a3_1920");
    profile.serial_read = Sourced::exact(Nanos::ZERO);
    profile.channel_rate = Sourced::exact(Rate::mbs(100_000));
    profile.link_rate = Sourced::exact(Rate::mbs(100_000));
    profile.path_read = Sourced::exact(Rate::mbs(100_000));
    profile.controller_read = Sourced::exact(Nanos::ZERO);
    profile.link_command = Sourced::exact(Nanos::ZERO);
    let rate = |depth| {
        let (mut drive, mut random) = (ssd(&profile, capacity, DriveState::Fresh), Random::new(2));
        closed(&mut drive, depth, 5000, 200_000, || (DriveOp::Read, random.below(capacity.0 / 8) * 8, 8)).rate()
    };
    let one = 1e9 / profile.read.value.0 as f64;
    close(rate(1), one, 0.01);
    // N commands on M servers chosen at random: close to M*N/(N+M-1) of one server, more if service times do not vary.
    let (dies, depth) = (64.0, 64.0);
    let found = rate(64) / one;
    let least = dies * depth / (depth + dies - 1.0);
    assert!(found > least && found < least * 1.25, "{found} against {least}");
    assert!(rate(1024) / one > 0.94 * dies && rate(1024) / one <= dies);
}

#[test]
fn random_writing_becomes_as_fast_as_the_dies_can_program() {
    for name in ["s3500_480", "s3700_400", "pm893_960", "evo870_1tb"] {
        let (profile, capacity) = plain(name);
        let (mut drive, mut random) = (ssd(&profile, capacity, DriveState::Steady), Random::new(3));
        let trial = closed(&mut drive, 32, 100_000, 300_000, || (WRITE, random.below(capacity.0 / 8) * 8, 8));
        let factor = profile.amplification_random.value as f64 / 1000.0;
        let page = profile.program.value.0 as f64
            + (factor - 1.0) * (profile.program.value.0 + profile.read.value.0) as f64
            + factor * profile.erase.value.0 as f64 / f64::from(profile.block_pages.value);
        let pages = f64::from(profile.dies.value) * 1e9 / page;
        close(trial.rate(), pages * profile.page.value.0 as f64 / 4096.0, 0.02);
    }
}

/// The dies of a drive that collects in the order of writing move (1 + p) / (2 p) pages for each page that is written
/// at random places. p is the spare space as a share of the offered capacity.
#[test]
fn dies_work_for_as_many_pages_as_the_spare_space_asks_for() {
    for spare in [0.07, 0.10, 0.28] {
        let (mut profile, capacity) = plain("s3500_480");
        let form: f64 = (1.0 + spare) / (2.0 * spare);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // thousandths of a small number
        let thousandths = (form * 1000.0).round() as u64;
        profile.amplification_random = Sourced::exact(thousandths);
        let (mut drive, mut random) = (ssd(&profile, capacity, DriveState::Steady), Random::new(6));
        let writes = 400_000;
        closed(&mut drive, 32, 0, writes, || (WRITE, random.below(capacity.0 / 8) * 8, 8));
        let pages = (writes * 4096 / profile.page.value.0) as f64;
        let work = drive.busy(Instant::NEVER).0 as f64 * f64::from(profile.dies.value) / pages;
        // A written page is programmed. A moved page is read as well. Each has its part of an erase.
        let (read, program) = (profile.read.value.0 as f64, profile.program.value.0 as f64);
        let erase = profile.erase.value.0 as f64 / f64::from(profile.block_pages.value);
        close((work + read) / (program + read + erase), form, 0.01);
    }
}

/// Pages moved for each page that is written at random places, if space is collected in the order of writing: (1 + p) /
/// (2 p), with p the spare space as a share of the offered capacity. Real drives collect several streams in parallel
/// and are somewhat worse, but none can be much better.
#[test]
fn no_profile_collects_less_than_its_spare_space_asks_for() {
    let library = Library::builtin();
    let mut seen = 0;
    for profile in library.drives() {
        let DriveKind::Ssd(ssd) = &profile.kind else { continue };
        let (raw, capacity) = (ssd.raw.value.0 as f64, profile.capacity.value.bytes().0 as f64);
        let spare = raw / capacity - 1.0;
        let form = (1.0 + spare) / (2.0 * spare);
        let factor = ssd.amplification_random.value as f64 / 1000.0;
        assert!((form..2.5 * form).contains(&factor), "{}: {factor}, by its spare space {form}", profile.head.name);
        seen += 1;
    }
    assert!(seen >= 8, "{seen} drives");
}

#[test]
fn a_fresh_drive_collects_nothing_until_it_is_written_full() {
    let (mut profile, _) = plain("s3500_480");
    let capacity = Sectors(1 << 21);
    profile.raw = Sourced::exact(Bytes::mib(1100));
    let mut drive = ssd(&profile, capacity, DriveState::Fresh);
    let mut random = Random::new(4);
    let mut part = |count| closed(&mut drive, 32, 1000, count, || (WRITE, random.below(capacity.0 / 8) * 8, 8)).rate();
    let fresh = part(200_000);
    let _between = part(150_000);
    let steady = part(200_000);
    assert!(fresh > 3.0 * steady, "{fresh} then {steady}");
}

#[test]
fn a_read_meets_programs_but_interrupts_them_where_it_can() {
    let worst = |suspend: bool| {
        let (mut profile, capacity) = plain("s3500_480");
        if !suspend {
            profile.suspend = None;
        }
        let (mut drive, mut random) = (ssd(&profile, capacity, DriveState::Steady), Random::new(5));
        let mut number = 0;
        let trial = closed(&mut drive, 8, 50_000, 50_000, || {
            number += 1;
            let op = if number % 4 == 0 { WRITE } else { DriveOp::Read };
            (op, random.below(capacity.0 / 8) * 8, 8)
        });
        trial.percentile(90.0)
    };
    let (with, without) = (worst(true), worst(false));
    assert!(with < 600_000 && without > 800_000, "{with} {without}");
}

#[test]
fn a_protected_drive_flushes_at_once_and_another_when_its_pages_are_programmed() {
    let time = |name| {
        let (profile, capacity) = plain(name);
        let mut drive = ssd(&profile, capacity, DriveState::Fresh);
        let (mut now, mut done) = (Instant(1_000_000), Vec::new());
        drive.submit(now, &command(1, WRITE, 800, 8));
        now = drive.next().unwrap();
        drive.advance(now, &mut done);
        drive.submit(now, &command(2, DriveOp::Flush, 0, 0));
        drive.next().unwrap().0 - now.0
    };
    let (protected, _) = plain("s3500_480");
    assert_eq!(time("s3500_480"), protected.flush.value.0);
    let (open, _) = plain("evo870_1tb");
    let least = open.flush.value.0 + open.program.value.0;
    let (from, to) = (least, least + open.collection_burst.value.0);
    assert!((from..to).contains(&time("evo870_1tb")));
}

#[test]
fn commands_beyond_the_queue_wait_and_ata_flushes_run_alone() {
    let (profile, capacity) = plain("s3500_480");
    let mut drive = ssd(&profile, capacity, DriveState::Fresh);
    for number in 0..100 {
        drive.submit(Instant::ZERO, &command(number, DriveOp::Read, u64::from(number) * 80_000, 8));
    }
    drive.submit(Instant::ZERO, &command(100, DriveOp::Flush, 0, 0));
    drive.submit(Instant::ZERO, &command(101, DriveOp::Read, 0, 8));
    assert_eq!((drive.outbox.len(), drive.beyond.len()), (32, 70));
    let (mut order, mut done) = (Vec::new(), Vec::new());
    while let Some(next) = drive.next() {
        drive.advance(next, &mut done);
        order.extend(done.drain(..).map(|tag| tag.index()));
    }
    assert_eq!(order.len(), 102);
    assert_eq!(&order[100..], &[100, 101]);
}

#[test]
fn outliers_are_as_many_and_as_long_as_the_profile_says() {
    let (mut profile, capacity) = plain("s3500_480");
    profile.outlier_read = Sourced::exact(1000);
    let (mut drive, mut random) = (ssd(&profile, capacity, DriveState::Fresh), Random::new(6));
    let count = 1_000_000;
    let trial = closed(&mut drive, 1, 0, count, || (DriveOp::Read, random.below(capacity.0 / 8) * 8, 8));
    let beyond = |least: u64| trial.times.iter().filter(|time| **time > least).count() as f64;
    let base = profile.outlier_read_time.value.0;
    close(beyond(base), 1000.0, 0.1);
    close(beyond(2 * base), 250.0, 0.2);
}

#[test]
fn the_one_bit_cache_ends_and_comes_back() {
    let (profile, capacity) = plain("980pro_1tb");
    let size = profile.slc.as_ref().unwrap().size.value.0;
    let mut drive = ssd(&profile, capacity, DriveState::Fresh);
    let mut at = 0;
    let mut part = |bytes: u64| {
        let sectors = 8192;
        closed(&mut drive, 4, 8, bytes / 512 / sectors, || {
            at = (at + sectors) % (capacity.0 - sectors);
            (WRITE, at, sectors)
        })
        .bytes_per_second()
    };
    close(part(size * 8 / 10), 5050e6, 0.02);
    let _rest = part(size / 4);
    let slow = part(20_000_000_000);
    assert!(slow < 2300e6, "{slow}");
}

#[test]
fn every_command_ends_exactly_once_and_a_seed_is_a_run() {
    let run = |seed: u64| {
        let (profile, capacity) = profile("evo870_1tb");
        let (mut drive, mut random) = (ssd(&profile, capacity, DriveState::Steady), Random::new(seed));
        let (mut now, mut done, mut log) = (Instant::ZERO, Vec::new(), Vec::new());
        for number in 0..20_000 {
            let op = match random.below(20) {
                0 => DriveOp::Flush,
                1 => DriveOp::Discard,
                2 => DriveOp::WriteZeroes { may_discard: false },
                3..=5 => DriveOp::Write { fua: true },
                6..=12 => WRITE,
                _ => DriveOp::Read,
            };
            let sectors = if op == DriveOp::Flush { 0 } else { random.between(1, 600) };
            drive.submit(now, &command(number, op, random.below(capacity.0 - 600), sectors));
            let until = now + Nanos(random.below(2_000_000));
            while let Some(next) = drive.next().filter(|next| *next <= until) {
                assert!(next >= now, "time runs backwards");
                now = next;
                drive.advance(now, &mut done);
                log.extend(done.drain(..).map(|tag| (now, tag.index())));
            }
            now = until;
        }
        while let Some(next) = drive.next() {
            now = next;
            drive.advance(now, &mut done);
            log.extend(done.drain(..).map(|tag| (now, tag.index())));
        }
        log
    };
    let log = run(1);
    let mut numbers: Vec<u32> = log.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20_000).collect::<Vec<_>>());
    assert_eq!(log, run(1));
    assert_ne!(log, run(2));
}
