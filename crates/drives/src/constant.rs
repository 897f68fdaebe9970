//! A drive with synthetic service times, for comparison with queueing theory: a number of servers, first come, first
//! served.

use super::future_completions::Outbox;
use super::VirtualDrive;
use crate::random::Random;
use openraid_core::actions::DriveCommand;
use openraid_models::{ConstantProfile, ServiceLaw};
use openraid_units::{Instant, Nanos, Sectors, Tag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Number of pieces of the table of the exponential law.
const PIECES: usize = 1024;
/// The law's table is in millionths of the mean.
const MEAN: u64 = 1_000_000;

#[derive(Clone, Debug)]
pub struct ConstantDrive {
    sectors: u64,
    mean: u64,
    law: ServiceLaw,
    table: Arc<[u64]>,
    free: BinaryHeap<Reverse<Instant>>,
    outbox: Outbox,
    random: Random,
    busy: Nanos,
}

impl ConstantDrive {
    /// A drive of this profile. `table` is [`exponential_table`].
    pub(super) fn new(profile: &ConstantProfile, capacity: Sectors, table: Arc<[u64]>, random: Random) -> Self {
        Self {
            sectors: capacity.0,
            mean: profile.service.value.0,
            law: profile.law,
            table,
            free: (0..profile.servers.value).map(|_| Reverse(Instant::ZERO)).collect(),
            outbox: Outbox::default(),
            random,
            busy: Nanos::ZERO,
        }
    }

    fn draw(&mut self) -> Nanos {
        let time = match self.law {
            ServiceLaw::Fixed => self.mean,
            ServiceLaw::Uniform => self.random.below(2 * self.mean + 1),
            ServiceLaw::Exponential => self.exponential(),
        };
        Nanos(time)
    }

    /// A time by inversion, linear within a piece of the table. The law has no memory. So the last piece, which has no
    /// end, is the whole law again after its start.
    fn exponential(&mut self) -> u64 {
        let mut behind = 0;
        loop {
            let piece = self.random.index(PIECES);
            if piece == PIECES - 1 {
                behind += self.table[piece] * self.mean / MEAN;
                continue;
            }
            let (start, end) = (self.table[piece], self.table[piece + 1]);
            return behind + (start + self.random.below(end - start)) * self.mean / MEAN;
        }
    }
}

/// The start of each of the equally likely pieces of the exponential law, in millionths of the mean.
#[must_use]
pub(super) fn exponential_table() -> Arc<[u64]> {
    let start = |piece: usize| -(1.0 - piece as f64 / PIECES as f64).ln() * MEAN as f64;
    // From zero to seven times the mean.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0..PIECES).map(|piece| start(piece).round() as u64).collect()
}

impl VirtualDrive for ConstantDrive {
    fn sectors(&self) -> u64 {
        self.sectors
    }
    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        let service = self.draw();
        let free = self.free.pop().map_or(now, |Reverse(free)| free);
        let end = free.max(now) + service;
        self.free.push(Reverse(end));
        self.busy += service;
        self.outbox.push(end, command.tag);
    }
    fn next(&self) -> Option<Instant> {
        self.outbox.next()
    }
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        while let Some((_, tag)) = self.outbox.pop_due(now) {
            done.push(tag);
        }
    }
    fn busy(&self, _: Instant) -> Nanos {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_drive_load::{closed, command};
    use openraid_core::actions::DriveOp;
    use openraid_models::Sourced;

    fn drive(law: ServiceLaw, servers: u32, index: u64) -> ConstantDrive {
        let profile =
            ConstantProfile { service: Sourced::exact(Nanos::from_millis(1)), law, servers: Sourced::exact(servers) };
        ConstantDrive::new(&profile, Sectors(1 << 30), exponential_table(), Random::derived(4, index))
    }

    /// Mean time in the system in milliseconds, with random arrivals at this many per millisecond.
    fn open(law: ServiceLaw, arrivals: f64, seed: u64) -> f64 {
        let (mut drive, mut random) = (drive(law, 1, seed), Random::new(seed));
        let (mut begun, mut clock, mut sum, mut ended) = (Vec::new(), 0.0, 0.0, 0u32);
        let mut done = Vec::new();
        for number in 0..1_000_000 {
            let unit = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
            clock += -(1.0 - unit).ln() / arrivals * 1e6;
            // At most some thousand seconds in nanoseconds.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let now = Instant(clock as u64);
            while let Some(next) = drive.next().filter(|next| *next <= now) {
                drive.advance(next, &mut done);
                for tag in done.drain(..) {
                    sum += (next.0 - begun[tag.index() as usize]) as f64;
                    ended += 1;
                }
            }
            begun.push(now.0);
            drive.submit(now, &command(number, DriveOp::Read, 0, 8));
        }
        sum / f64::from(ended) / 1e6
    }

    #[test]
    fn one_server_with_random_arrivals_follows_pollaczek_and_khinchin() {
        for load in [0.3, 0.5, 0.7] {
            // Second moments of the laws in squares of the mean: 1, 2 and 4/3.
            for (law, moment) in
                [(ServiceLaw::Fixed, 1.0), (ServiceLaw::Exponential, 2.0), (ServiceLaw::Uniform, 4.0 / 3.0)]
            {
                let expected = 1.0 + load * moment / (2.0 * (1.0 - load));
                let found = open(law, load, 2);
                // The variance of the mean of an M/M/1 queue, the largest of the three.
                let sum = load * (2.0 + 5.0 * load - 4.0 * load.powi(2) + load.powi(3));
                let deviation = (sum / (1.0 - load).powi(4) / 1e6).sqrt();
                let allowed = (0.01 * expected).max(3.0 * deviation);
                assert!((found - expected).abs() < allowed, "{law:?} at {load}: {found} against {expected}");
            }
        }
    }

    #[test]
    fn several_servers_are_busy_as_their_number_allows() {
        let mut drive = drive(ServiceLaw::Exponential, 4, 0);
        let trial = closed(&mut drive, 4, 1000, 400_000, || (DriveOp::Read, 0, 8));
        assert!((trial.rate() / 4000.0 - 1.0).abs() < 0.01, "{}", trial.rate());
        assert!((trial.mean() / 1e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_closed_network_has_its_product_form() {
        // N commands over M exponential drives at random: X = mu*M*N/(N+M-1).
        let (drives, commands) = (8usize, 16u32);
        let mut all: Vec<ConstantDrive> =
            (0..drives as u64).map(|index| drive(ServiceLaw::Exponential, 1, index)).collect();
        let (mut random, mut now, mut ended, mut done) = (Random::new(2), Instant::ZERO, 0u32, Vec::new());
        for number in 0..commands {
            all[random.index(drives)].submit(now, &command(number, DriveOp::Read, 0, 8));
        }
        while ended < 1_000_000 {
            now = all.iter().filter_map(VirtualDrive::next).min().unwrap();
            for drive in &mut all {
                drive.advance(now, &mut done);
            }
            for tag in done.drain(..) {
                ended += 1;
                all[random.index(drives)].submit(now, &command(tag.index(), DriveOp::Read, 0, 8));
            }
        }
        let found = f64::from(ended) * 1e6 / now.0 as f64;
        let expected = 8.0 * 16.0 / (16.0 + 8.0 - 1.0);
        assert!((found / expected - 1.0).abs() < 0.01, "{found} against {expected}");
    }
}
