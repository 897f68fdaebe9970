//! Queueing theory as a judge: closed forms for disks and mirrors. The closed forms for synthetic drives are in
//! `machine/closed.rs`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use openraid_core::admin::{MirrorRule, Policy};
use openraid_sim::machine::{ArrayLevel, ArraySpec, Machine, MachineParts};
use openraid_sim::Random;
use openraid_units::{Instant, Nanos};

use crate::cells::{mqsim, Cell};
use crate::run::{machine, open, responses, run, Load, Profiles};
use crate::support::ExponentialDrive;

/// A cell of random reads of 4 KiB from a disk that takes one command at a time.
fn reads(rate: f64, requests: u64) -> Cell {
    Cell {
        drive: "common".into(),
        level: ArrayLevel::Single,
        members: 1,
        reads: 100,
        sequential: false,
        kib: 4,
        depth: u64::from(rate == 0.0),
        rate,
        window: 1,
        cache: false,
        mirror: "none".into(),
        channels: 0,
        requests,
        mean_ms: 0.0,
    }
}

#[test]
fn random_reads_of_a_disk_wait_as_m_g_1_says() {
    // Pollaczek and Khinchin: E[S] + lambda E[S^2] / (2 (1 - rho)). The service times are those of one request at a
    // time. The closed form assumes that they are independent, but two consecutive seeks share one place, which changes
    // the result by a percent.
    let profiles = Profiles::new();
    let alone = reads(0.0, 20_000);
    let profile = &profiles.made_equal(&alone);
    let mut disk = machine(&alone, profile, true);
    let mut load = Load::new(&alone, disk.capacity());
    let times = responses(&mut disk, &alone, &mut load);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let square = times.iter().map(|time| time * time).sum::<f64>() / times.len() as f64;
    for busy in [0.3, 0.6] {
        let cell = reads(busy * 1e3 / mean, 60_000);
        let mut disk = machine(&cell, profile, true);
        let mut load = Load::new(&cell, disk.capacity());
        let measured = open(&mut disk, &cell, &mut load);
        let expected = mean + busy / mean * square / (2.0 * (1.0 - busy));
        let error = measured / expected - 1.0;
        assert!(error.abs() < 0.03, "at {busy}: {measured} ms are not {expected} ms");
    }
}

#[test]
fn mirrors_wait_as_queues_of_their_rule_say() {
    // In turns, each copy gets every second arrival, with Erlang's law: E2/M/1 has the response s / (1 - sigma). sigma
    // is the root of sigma = (2 rho / (2 rho + 1 - sigma))^2. The shorter queue is better than turns. No rule is better
    // than M/M/2, in which a copy never rests while a request waits: s / (1 - rho^2).
    let service = Nanos::from_millis(5);
    let mean = |mirror_read, busy: f64| {
        let drives = (0..2).map(|n| ExponentialDrive::new(service, 60 + n)).collect();
        let policy = Policy { mirror_read, ..Policy::default() };
        let parts = MachineParts { depth_max: 128, policy, ..MachineParts::default() };
        let array = ArraySpec::new(ArrayLevel::Raid1, 2);
        let mut mirror = Machine::with_drives(parts, &array, drives, true).expect("it can run");
        let cell = reads(busy * 2e3 / 5.0, 150_000);
        let mut load = Load::new(&cell, mirror.capacity());
        assert_eq!(mirror.now(), Instant::ZERO);
        open(&mut mirror, &cell, &mut load) / 5.0
    };
    for busy in [0.4, 0.6] {
        let mut sigma: f64 = 0.5;
        for _ in 0..200 {
            sigma = (2.0 * busy / (2.0 * busy + 1.0 - sigma)).powi(2);
        }
        let turns = mean(MirrorRule::RoundRobin, busy);
        let expected = 1.0 / (1.0 - sigma);
        assert!((turns / expected - 1.0).abs() < 0.03, "turns at {busy}: {turns} is not {expected}");
        let shorter = mean(MirrorRule::LeastPending, busy);
        let best = 1.0 / (1.0 - busy * busy);
        assert!((best * 0.99..turns).contains(&shorter), "shorter at {busy}: {shorter}; {best} to {turns}");
    }
}

/// The events in a network of dies and channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum QueueEvent {
    /// A die has read its page.
    Read,
    /// A channel has transferred the page.
    Carried,
}

/// Mean response, in nanoseconds, of a constant `depth` of random page reads in a network of queues. A die reads one
/// page at a time, and its channel transfers one page at a time, both in order of arrival. A die is free as soon as its
/// page is read.
fn network(dies: usize, channels: usize, depth: u64, (read, carry): (u64, u64)) -> f64 {
    let mut random = Random::derived(31, 5);
    let mut at_dies = vec![VecDeque::new(); dies];
    let mut at_channels = vec![VecDeque::new(); channels];
    let mut events = BinaryHeap::new();
    let (mut now, mut ended, mut sum) = (0u64, 0u64, 0u64);
    let mut arrivals = depth;
    while ended < 60_000 {
        for _ in 0..arrivals {
            let die = random.index(dies);
            at_dies[die].push_back(now);
            if at_dies[die].len() == 1 {
                events.push(Reverse((now + read, QueueEvent::Read, die)));
            }
        }
        arrivals = 0;
        let Reverse((at, what, die)) = events.pop().expect("something is under way");
        now = at;
        let channel = &mut at_channels[die % channels];
        if what == QueueEvent::Read {
            channel.push_back((die, at_dies[die].pop_front().expect("it was read")));
            if channel.len() == 1 {
                events.push(Reverse((now + carry, QueueEvent::Carried, die)));
            }
            if !at_dies[die].is_empty() {
                events.push(Reverse((now + read, QueueEvent::Read, die)));
            }
        } else {
            let (_, since) = channel.pop_front().expect("it was carried");
            (ended, sum, arrivals) = (ended + 1, sum + now - since, 1);
            if let Some((next, _)) = channel.front() {
                events.push(Reverse((now + carry, QueueEvent::Carried, *next)));
            }
        }
    }
    sum as f64 / ended as f64
}

#[test]
fn reads_of_an_ssd_wait_as_in_a_network_of_dies_and_channels() {
    // The time of the link is added: 0.1 us for the command, and 4 KiB at 3.2 GB/s.
    let profiles = Profiles::new();
    for cell in mqsim().into_iter().filter(|cell| cell.reads == 100 && !cell.sequential && cell.kib == 4) {
        let cell = Cell { requests: 60_000, ..cell };
        let measured = run(&cell, &profiles.made_equal(&cell), true);
        let expected = network(32, cell.channels as usize, cell.depth, (50_000, 8_192)) / 1e6 + 0.00138;
        assert!((measured / expected - 1.0).abs() < 0.03, "{cell}: {measured} is not {expected}");
    }
}
