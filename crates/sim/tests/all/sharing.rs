//! One cache, two arrays. If the members of one array do not answer, the other array still accepts writes and destages.

use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, AdminOutcome, Policy, WriteCache};
use openraid_core::events::RequestKind;
use openraid_core::limits::Limits;
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::{Content, HostSession};
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{ArrayId, Bytes, Nanos, Sectors};

const CHUNK: Sectors = Sectors::kib(16);
/// Sectors that may still be in the cache after all writes are accepted: less than one array may keep there.
const KEPT: u64 = 400;
/// Blocks of 4 KiB that hosts of the other array write at random places.
const WRITES: u64 = 1200;

struct Machine {
    rig: Rig,
    other: HostSession,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self::that_waits(seed, Nanos::from_millis(2))
    }

    /// A machine whose dirty data waits for this time.
    fn that_waits(seed: u64, destage_delay: Nanos) -> Self {
        let mut options = RigOptions { cuts: false, rotational: true, ..RigOptions::new(seed) };
        let cache = Bytes::mib(4);
        options.world.limits = Limits {
            pool: Bytes::mib(32) + cache,
            work: Bytes::mib(8),
            cache,
            destage_delay,
            destage_units_max: 64,
            destage_units_calm: 8,
            requests_max: 64,
            pieces_max: 64,
            ops_max: 512,
            commands_max: 4096,
            ..Limits::small()
        };
        let mut rig = Rig::new(ArrayShape::raid5(4, CHUNK), options.clone());
        rig.rest();
        let shape = ArrayShape::raid5(5, CHUNK);
        let spec = |slot| DriveSpec::new(BEFORE_DATA + shape.member_data(slot));
        let drives: Vec<_> = (0..shape.members).map(|slot| rig.world.add_drive(spec(slot))).collect();
        options.world.seed += 1000;
        let array = rig.world.create(&shape, &drives, &options);
        let other = HostSession::new(&rig.world, array, seed + 1000, Content::Zeroes, false);
        Self { rig, other }
    }

    fn collect(&mut self, array: ArrayId) {
        let policy = Policy { write_cache: WriteCache::Volatile, ..Policy::default() };
        self.rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("there is a cache");
    }

    /// The first array's members take commands and never answer, while its hosts write as much as possible.
    fn hang(&mut self) {
        self.rig.session.tolerate_errors = true;
        self.rig.session.ask(&mut self.rig.world, RequestKind::Write { fua: false }, 0..4096);
        self.rig.session.drain(&mut self.rig.world);
        for drive in self.rig.drives.clone() {
            self.rig.world.drive_mut(drive).faults.hang = true;
        }
        let blocks = self.rig.session.capacity() / 4096;
        for number in 0..blocks.min(2000) {
            if self.rig.session.outstanding() >= 16 {
                break;
            }
            let at = number * 389 % blocks * 4096;
            self.rig.session.ask(&mut self.rig.world, RequestKind::Write { fua: false }, at..at + 4096);
            if number % 4 == 0 {
                self.rig.run_for(Nanos::from_micros(400));
            }
        }
    }

    /// Sectors of the other array that are not yet on its members.
    fn not_written(&self) -> u64 {
        let status = self.rig.world.status(self.other.array).expect("it runs");
        status.cached.written - status.cached.merged - status.cached.destaged
    }

    /// The other array's hosts write, eight requests at a time. Returns the time.
    fn write(&mut self) -> Nanos {
        let start = self.rig.world.now();
        let blocks = self.other.capacity() / 4096;
        let mut begun = 0;
        while begun < WRITES || self.other.outstanding() > 0 {
            while begun < WRITES && self.other.outstanding() < 8 {
                let at = begun * 389 % blocks * 4096;
                self.other.ask(&mut self.rig.world, RequestKind::Write { fua: false }, at..at + 4096);
                begun += 1;
            }
            self.other.step(&mut self.rig.world);
        }
        // Until the data is on the members.
        self.other.ask(&mut self.rig.world, RequestKind::Flush, 0..0);
        while self.other.outstanding() > 0 || self.not_written() > KEPT {
            self.other.step(&mut self.rig.world);
        }
        self.rig.world.now().since(start)
    }
}

#[test]
fn members_that_hang_keep_the_other_arrays_hosts_at_their_full_rate() {
    for seed in seeds(3, 40) {
        let _case = Case::new(seed, "two arrays");
        let [alone, beside] = [false, true].map(|hangs| {
            let mut machine = Machine::new(seed);
            for array in [machine.rig.array, machine.other.array] {
                machine.collect(array);
            }
            if hangs {
                machine.hang();
                assert!(machine.rig.session.outstanding() >= 16, "its part of the cache is full");
            }
            // First until the cache is full, and then at the rate of the members.
            machine.write();
            machine.write()
        });
        // The array has a smaller part of the cache, so fewer writes are merged. No write waits until the others are
        // given up after 30 s.
        assert!(beside.get() <= alone.get() * 5 / 2, "{alone:?} alone, {beside:?} beside an array that hangs");
    }
}

/// A drain has put more units in work than the limit for times without urgency. Then their members stop answering.
#[test]
fn units_left_in_work_by_a_drain_do_not_block_other_arrays() {
    let mut machine = Machine::new(1);
    for array in [machine.rig.array, machine.other.array] {
        machine.collect(array);
    }
    let write = RequestKind::Write { fua: false };
    // Both arrays are marked active.
    machine.rig.session.ask(&mut machine.rig.world, write, 0..4096);
    machine.rig.session.drain(&mut machine.rig.world);
    machine.other.ask(&mut machine.rig.world, write, 0..4096);
    machine.other.drain(&mut machine.rig.world);
    machine.rig.run_for(Nanos::from_millis(5));
    for drive in machine.rig.drives.clone() {
        machine.rig.world.drive_mut(drive).faults.hang = true;
    }
    // All lines of each stripe except one, 616 of 1024 lines: above the high mark.
    let stripe = 3 * CHUNK.bytes().get();
    for number in 1..=56 {
        machine.rig.session.ask(&mut machine.rig.world, write, number * stripe..(number + 1) * stripe - 4096);
    }
    machine.rig.session.drain(&mut machine.rig.world);
    machine.rig.run_for(Nanos::from_millis(20));
    for number in 1..=5 {
        let at = number * (1 << 20);
        machine.other.ask(&mut machine.rig.world, write, at..at + 4096);
    }
    machine.other.drain(&mut machine.rig.world);
    assert!(machine.not_written() > 0, "it was just written to the cache");
    machine.rig.run_for(Nanos::from_millis(100));
    assert_eq!(machine.not_written(), 0, "it is old, and its members answer");
}

/// Consecutive flushes of one array do not destage the collected data of another array before its time.
#[test]
fn a_flush_hurries_only_what_its_own_array_had_dirty_before() {
    let delay = Nanos::from_secs(5);
    let mut machine = Machine::that_waits(1, delay);
    for array in [machine.rig.array, machine.other.array] {
        machine.collect(array);
    }
    let write = RequestKind::Write { fua: false };
    machine.other.ask(&mut machine.rig.world, write, 0..4096);
    machine.other.drain(&mut machine.rig.world);
    let start = machine.rig.world.now();
    // The load of a file system that syncs: a block, a flush, and a block that was written meanwhile.
    let mut at = 0;
    while machine.rig.world.now().since(start) < Nanos::from_secs(4) {
        for kind in [write, RequestKind::Flush, write] {
            let range = if kind == write { at..at + 4096 } else { 0..0 };
            machine.rig.session.ask(&mut machine.rig.world, kind, range);
            at += 64 << 10;
        }
        at %= 1 << 20;
        machine.rig.session.drain(&mut machine.rig.world);
        machine.rig.run_for(Nanos::from_millis(20));
    }
    assert_eq!(machine.not_written(), 8, "the other array's block went out before its time");
    // Four times as long on flash.
    machine.rig.run_for(Nanos(delay.get() * 4));
    assert_eq!(machine.not_written(), 0);
}

/// Two requests for the stop of one array, such as a signal to the server while a command waits. Both get the result.
#[test]
fn a_second_request_for_a_stop_under_way_is_answered_too() {
    let mut machine = Machine::that_waits(1, Nanos::from_secs(5));
    let array = machine.rig.array;
    machine.collect(array);
    machine.rig.session.ask(&mut machine.rig.world, RequestKind::Write { fua: false }, 0..1 << 20);
    machine.rig.session.drain(&mut machine.rig.world);
    let first = machine.rig.world.start_admin(AdminCommand::Stop { array });
    machine.rig.world.step();
    let second = machine.rig.world.start_admin(AdminCommand::Stop { array });
    machine.rig.world.run_until_idle();
    for token in [first, second] {
        let answer = machine.rig.world.take_answer(token).expect("it was stopped");
        assert_eq!(answer.result, Ok(AdminOutcome::Done));
    }
    // After the stop no destage is urgent: the other array collects for the full time.
    machine.collect(machine.other.array);
    machine.other.ask(&mut machine.rig.world, RequestKind::Write { fua: false }, 0..4096);
    machine.other.drain(&mut machine.rig.world);
    machine.rig.world.run_for(Nanos::from_secs(4));
    assert_eq!(machine.not_written(), 8);
    let array = machine.other.array;
    assert_eq!(machine.rig.world.admin(AdminCommand::Stop { array }), Ok(AdminOutcome::Done));
}
