//! A drive with synthetic service times, for comparison with queueing theory: first come, first served by a number
//! of servers.

use super::outbox::Outbox;
use super::DriveModel;
use crate::random::Random;
use openraid_core::actions::DriveCommand;
use openraid_models::{ConstantProfile, ServiceLaw};
use openraid_units::{Instant, Nanos, Sectors, Tag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Pieces of the table of the exponential law.
const PIECES: usize = 1024;
/// The law's table is in millionths of the mean.
const MEAN: u64 = 1_000_000;

/// See the module.
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

    /// By inversion, linear within a piece of the table. The law has no memory: the last piece, which has no end,
    /// is the whole law once more behind its start.
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

/// Where each of the equally likely pieces of the exponential law begins, in millionths of the mean.
#[must_use]
pub(super) fn exponential_table() -> Arc<[u64]> {
    let start = |piece: usize| -(1.0 - piece as f64 / PIECES as f64).ln() * MEAN as f64;
    // From nothing to seven times the mean.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0..PIECES).map(|piece| start(piece).round() as u64).collect()
}

impl DriveModel for ConstantDrive {
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
    fn busy(&self) -> Nanos {
        self.busy
    }
}
