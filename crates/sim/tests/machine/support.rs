//! Drives with service times of a given law, and loads.

use std::collections::VecDeque;

use openraid_core::actions::{DriveCommand, DriveOp, IoClass};
use openraid_drives::{AnyDrive, DriveKit, DriveOptions, VirtualDrive};
use openraid_models::{ConstantProfile, DriveKind, DriveProfile, Head, ServiceLaw, Sourced};
use openraid_sim::machine::{ArrayLevel, ArraySpec, HostIo, IoDone, IoKind, Machine, MachineParts};
use openraid_sim::Random;
use openraid_units::{Bytes, Instant, Nanos, Sectors, Tag};

/// The mean service time of the drives with a law.
pub const SERVICE: Nanos = Nanos::from_millis(5);
/// 16 GiB.
pub const SECTORS: u64 = 32 << 20;

/// A drive with random service times, first come, first served. Flushes and metadata take no time.
#[derive(Clone, Debug)]
pub struct ExponentialDrive {
    mean: f64,
    random: Random,
    free: Instant,
    under_way: VecDeque<(Instant, Tag)>,
    busy: Nanos,
}

impl ExponentialDrive {
    pub fn new(mean: Nanos, seed: u64) -> Self {
        Self {
            mean: mean.0 as f64,
            random: Random::derived(seed, 77),
            free: Instant::ZERO,
            under_way: VecDeque::new(),
            busy: Nanos::ZERO,
        }
    }
}

/// A random time of the exponential law with this mean.
pub fn exponential(random: &mut Random, mean: f64) -> Nanos {
    let uniform = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    Nanos((-uniform.ln() * mean).round() as u64)
}

impl VirtualDrive for ExponentialDrive {
    fn sectors(&self) -> u64 {
        SECTORS
    }
    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        let hosts = command.op != DriveOp::Flush && command.class != IoClass::Metadata;
        let time = if hosts { exponential(&mut self.random, self.mean) } else { Nanos::ZERO };
        self.free = self.free.max(now) + time;
        self.busy += time;
        self.under_way.push_back((self.free, command.tag));
    }
    fn next(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        while let Some((at, tag)) = self.under_way.front().copied() {
            if at > now {
                return;
            }
            self.under_way.pop_front();
            done.push(tag);
        }
    }
    fn busy(&self, _: Instant) -> Nanos {
        self.busy
    }
}

/// A drive with one service time for all commands.
pub fn fixed(capacity: Bytes, time: Nanos) -> DriveProfile {
    let constant =
        ConstantProfile { service: Sourced::exact(time), law: ServiceLaw::Fixed, servers: Sourced::exact(1) };
    DriveProfile {
        head: Head { name: "fixed".into(), ..Head::default() },
        link: "sas12".into(),
        capacity: Sourced::exact(capacity.sectors_floor()),
        kind: DriveKind::Constant(constant),
        reliability: None,
        power: None,
        sheet: Vec::new(),
    }
}

/// Drives with one service time for all commands.
pub fn constant(members: u16, time: Nanos) -> Vec<AnyDrive> {
    let kit = DriveKit::new(&fixed(Sectors(SECTORS).bytes(), time));
    (0..members).map(|_| kit.build(&DriveOptions::default())).collect()
}

pub fn machine(parts: MachineParts, level: ArrayLevel, members: u16, time: Nanos) -> Machine {
    let array = ArraySpec::new(level, members);
    Machine::with_drives(parts, &array, constant(members, time), true).unwrap_or_else(|error| panic!("{error}"))
}

/// Carry out one request alone. Returns when it ended.
pub fn one<D: VirtualDrive>(machine: &mut Machine<D>, kind: IoKind, offset: u64, len: u32) -> Nanos {
    let from = machine.now();
    machine.submit(HostIo { id: 1, kind, offset, len, worker: 0 });
    let mut done = Vec::new();
    machine.advance(Instant::NEVER, &mut done);
    assert_eq!(done.len(), 1, "one request has one end");
    done[0].at.since(from)
}

/// Keep `depth` requests of `len` bytes outstanding until `requests` have ended. Returns the time from the start, and
/// the sum of the response times.
pub fn closed_loop<D: VirtualDrive>(
    machine: &mut Machine<D>,
    depth: u64,
    requests: u64,
    mut next: impl FnMut(u64) -> HostIo,
) -> (Nanos, f64) {
    let start = machine.now();
    let mut begun = vec![Instant::ZERO; depth as usize];
    let mut done: Vec<IoDone> = Vec::new();
    let mut response = 0.0;
    let mut ended = 0;
    for id in 0..depth {
        begun[id as usize] = machine.now();
        machine.submit(next(id));
    }
    while ended < requests {
        done.clear();
        machine.advance(Instant::NEVER, &mut done);
        assert!(!done.is_empty(), "requests end");
        for end in &done {
            ended += 1;
            response += end.at.since(begun[end.id as usize]).0 as f64;
            begun[end.id as usize] = machine.now();
            machine.submit(next(end.id));
        }
    }
    (machine.now().since(start), response)
}
