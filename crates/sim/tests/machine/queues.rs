//! Open queues: requests arrive at random. Drives without a controller must wait as long as theory says. If only the
//! drives of a machine take time, the machine must wait exactly as long as they do.

use openraid_core::actions::DriveOp;
use openraid_drives::one_drive_load::command;
use openraid_drives::{AnyDrive, DriveKit, DriveOptions, VirtualDrive};
use openraid_models::{DriveKind, ServiceLaw};
use openraid_sim::machine::{ArrayLevel, ArraySpec, HostIo, IoDone, IoKind, Machine, MachineParts};
use openraid_sim::Random;
use openraid_units::{Instant, Nanos, Sectors};

use crate::support::{constant, exponential, fixed, ExponentialDrive, SECTORS, SERVICE};

/// Number of blocks that a machine's load visits in turn. It is so large that two outstanding requests never have the same
/// block.
const PLACES: u64 = 1 << 20;
/// Requests to a machine, whose sum of responses must be exact.
const EXACT: u64 = 20_000;
/// Requests to drives alone, whose mean response has a standard error.
const MANY: u64 = 3_000_000;

/// The instants at which requests arrive, with exponential times between them. `load` is the share of its time in which a
/// drive that serves each of them is busy.
fn arrivals(load: f64) -> impl Iterator<Item = Instant> {
    let (mut random, mut at) = (Random::derived(9, 9), Instant::ZERO);
    std::iter::repeat_with(move || {
        at = at + exponential(&mut random, SERVICE.0 as f64 / load);
        at
    })
}

/// Let a drive carry out all that ends until `now`, and note when each command ended. Commands have the numbers of their
/// requests.
fn drain<D: VirtualDrive>(drive: &mut D, now: Instant, ends: &mut [Instant]) {
    let mut done = Vec::new();
    while let Some(at) = drive.next().filter(|at| *at <= now) {
        drive.advance(at, &mut done);
        for tag in done.drain(..) {
            let end = &mut ends[tag.index() as usize];
            *end = at.max(*end);
        }
    }
}

/// Let each drive serve each request, without a controller. A request ends when its last command ends. Returns the sum of
/// the responses.
fn alone<D: VirtualDrive>(mut drives: Vec<D>, load: f64, requests: u64) -> Nanos {
    let begun: Vec<Instant> = arrivals(load).take(requests as usize).collect();
    let mut ends = vec![Instant::ZERO; begun.len()];
    for (id, at) in begun.iter().enumerate() {
        for drive in &mut drives {
            drain(drive, *at, &mut ends);
            drive.submit(*at, &command(id as u32, DriveOp::Read, 0, 8));
        }
    }
    for drive in &mut drives {
        drain(drive, Instant::NEVER, &mut ends);
    }
    Nanos(begun.iter().zip(&ends).map(|(begun, end)| end.since(*begun).0).sum())
}

/// The same sum for an array of these drives in a machine in which nothing else takes time.
fn in_machine<D: VirtualDrive>(drives: Vec<D>, load: f64, requests: u64) -> Nanos {
    let (level, kind) =
        if drives.len() == 1 { (ArrayLevel::Single, IoKind::Read) } else { (ArrayLevel::Raid1, IoKind::Write) };
    let parts = MachineParts { depth_max: 128, ..MachineParts::default() };
    let array = ArraySpec::new(level, drives.len() as u16);
    let mut machine = Machine::with_drives(parts, &array, drives, true).expect("it can run");
    let begun: Vec<Instant> = arrivals(load).take(requests as usize).collect();
    let mut ends: Vec<IoDone> = Vec::new();
    for (id, at) in (0..).zip(&begun) {
        while machine.now() < *at {
            machine.advance(*at, &mut ends);
        }
        machine.submit(HostIo { id, kind, offset: id % PLACES * 4096, len: 4096, worker: 0 });
    }
    while ends.len() < begun.len() {
        machine.advance(Instant::NEVER, &mut ends);
    }
    Nanos(ends.iter().map(|end| end.at.since(begun[end.id as usize]).0).sum())
}

/// Three standard errors of a mean response of M/M/1, as a share of it. Waiting times are correlated; this is the
/// asymptotic variance of their mean (Daley 1968; Whitt 1989). Laws with less variation have a smaller error.
fn error_of_queue(rho: f64) -> f64 {
    let variance = rho * (2.0 + 5.0 * rho - 4.0 * rho * rho + rho * rho * rho) / (1.0 - rho).powi(4);
    3.0 * (variance / MANY as f64).sqrt() * (1.0 - rho)
}

/// The mean response must be `expected` service times within `most`, as a share. The machine must have the same responses.
fn compare<D: VirtualDrive + Clone>(drives: &[D], load: f64, expected: f64, most: f64) {
    let mean = alone(drives.to_vec(), load, MANY).0 as f64 / MANY as f64 / SERVICE.0 as f64;
    let what = format!("{} drives at {load}", drives.len());
    assert!((mean / expected - 1.0).abs() < most, "{what}: {mean} is not {expected} within {most}");
    assert_eq!(in_machine(drives.to_vec(), load, EXACT), alone(drives.to_vec(), load, EXACT), "{what}");
}

/// Drives with service times of the exponential law.
fn exponential_drives(count: u64, seed: u64) -> Vec<ExponentialDrive> {
    (0..count).map(|n| ExponentialDrive::new(SERVICE, seed + n)).collect()
}

#[test]
fn an_open_queue_of_exponential_times_waits_as_long_as_theory_says() {
    // M/M/1: s / (1 - rho).
    for load in [0.3, 0.6, 0.8] {
        compare(&exponential_drives(1, 3), load, 1.0 / (1.0 - load), error_of_queue(load));
    }
}

#[test]
fn an_open_queue_waits_by_the_square_of_its_service_times() {
    // M/G/1 (Pollaczek and Khinchin): s + lambda E[S^2] / (2 (1 - rho)). For times uniform between zero and twice the
    // mean, E[S^2] = 4/3 s^2.
    let mut profile = fixed(Sectors(SECTORS).bytes(), SERVICE);
    let DriveKind::Constant(times) = &mut profile.kind else { panic!("it is one") };
    times.law = ServiceLaw::Uniform;
    let options = DriveOptions { seed: 4, ..DriveOptions::default() };
    let uniform: Vec<AnyDrive> = vec![DriveKit::new(&profile).build(&options)];
    for load in [0.3, 0.6, 0.8] {
        let expected = |square: f64| 1.0 + load * square / (2.0 * (1.0 - load));
        compare(&constant(1, SERVICE), load, expected(1.0), error_of_queue(load));
        compare(&uniform, load, expected(4.0 / 3.0), error_of_queue(load));
    }
}

#[test]
fn open_arrivals_of_writes_wait_for_both_halves_of_a_mirror_as_long_as_theory_says() {
    // Fork and join over two M/M/1 servers (Flatto and Hahn 1984; Nelson and Tantawi 1988): (12 - rho) / 8 times the
    // response of one server, which is s / (1 - rho).
    for (load, seed) in [(0.3, 60), (0.6, 70), (0.8, 80)] {
        // The error of one queue, which does not vary less.
        compare(&exponential_drives(2, seed), load, (12.0 - load) / 8.0 / (1.0 - load), error_of_queue(load));
    }
}

#[test]
fn open_arrivals_of_writes_wait_for_more_copies_as_the_approximation_says() {
    // Nelson and Tantawi 1988: R_K = (H_K / H_2 + 4/11 rho (1 - H_K / H_2)) R_2, within 5 % of their simulations.
    for (copies, load, seed) in [(3, 0.3, 160), (3, 0.7, 170), (4, 0.5, 180), (4, 0.8, 190)] {
        let two = (12.0 - load) / 8.0 / (1.0 - load);
        let more = (1..=copies).map(|n| 1.0 / n as f64).sum::<f64>() / 1.5;
        let expected = (more + 4.0 / 11.0 * load * (1.0 - more)) * two;
        compare(&exponential_drives(copies, seed), load, expected, 0.05);
    }
}
