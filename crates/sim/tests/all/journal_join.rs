//! The second device of a journal returns while arrays run. The power may be cut at any moment, and other parts may
//! fail. All acknowledged data is present, and an incomplete device is never taken as complete.

use crate::support::journalled::{Journalled, JOURNAL};
use crate::support::{seeds, soak, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, JournalState, JournalStatus};
use openraid_core::events::DriveError;
use openraid_core::journal::find_device::FindError;
use openraid_format::{journal_superblock_lba, JournalError, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES};
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::world::journal::JournalFault;
use openraid_sim::ArrayShape;
use openraid_units::{DriveId, Nanos, Sectors};

const CHUNK: Sectors = Sectors::kib(16);
/// More steps than a device needs to join while hosts write without pauses.
const STEPS_MAX: u64 = 400;

struct Machine {
    journalled: Journalled,
    /// The device that stays, and the device that is lost and returns.
    stays: DriveId,
    joins: DriveId,
}

impl Machine {
    /// A machine that has dropped one device, and has continued with the other one alone.
    fn degraded(shape: ArrayShape, seed: u64) -> Self {
        let journalled = Journalled::new(shape, seed, false, 2);
        let gone = usize::from(seed.is_multiple_of(2));
        let mut machine = Self { stays: journalled.devices[1 - gone], joins: journalled.devices[gone], journalled };
        machine.run(40);
        machine.journalled.rig.world.pull(machine.joins);
        machine.run(40);
        assert_eq!(machine.works(), [true]);
        machine.journalled.rig.world.drive_mut(machine.joins).put_back();
        machine
    }

    fn journal(&self) -> JournalStatus {
        self.journalled.rig.world.journal().expect("it was attached")
    }

    /// The devices that work.
    fn works(&self) -> Vec<bool> {
        self.journal().devices.iter().map(|(_, works)| *works).filter(|works| *works).collect()
    }

    fn load(&self) -> Workload {
        Workload {
            len_max: 16 << 10,
            align: 4096,
            mix: [1, 8, 1, 1, 1],
            depth: 6,
            ..Workload::mixed(self.journalled.rig.session.capacity())
        }
    }

    fn run(&mut self, requests: u64) {
        let load = self.load();
        self.journalled.rig.session.run_on(&mut self.journalled.rig.world, &load, requests);
    }

    fn join(&mut self) {
        self.journalled.rig.world.join_journal(self.joins).expect("it may");
    }

    /// Run one step while hosts write.
    fn step(&mut self, load: &Workload) {
        while self.journalled.rig.session.outstanding() < 4 {
            self.journalled.rig.session.ask_random(&mut self.journalled.rig.world, load);
        }
        self.journalled.rig.session.step(&mut self.journalled.rig.world);
    }

    /// Hosts write for this number of steps, or until the device has joined. Returns the number of steps.
    fn step_on(&mut self, steps: u64) -> u64 {
        let load = self.load();
        for step in 0..steps {
            if self.journal().joining.is_none() {
                return step;
            }
            self.step(&load);
        }
        steps
    }

    /// Start after a power cut with these devices.
    fn boot_with(&mut self, devices: &[DriveId]) {
        self.journalled.devices = devices.to_vec();
        self.journalled.boot();
        self.journalled.rig.session.look_at_all(&mut self.journalled.rig.world);
    }

    fn finish(mut self) {
        self.journalled.rig.session.drain(&mut self.journalled.rig.world);
        self.journalled.rig.rest();
        self.journalled.rig.judge();
    }
}

fn shapes() -> [ArrayShape; 3] {
    [ArrayShape::raid5(4, CHUNK), ArrayShape::raid1(2), ArrayShape::raid6(5, CHUNK)]
}

/// The steps at which an event happens: all steps in the long run.
fn steps() -> impl Iterator<Item = u64> {
    let stride = if soak() { 1 } else { 11 };
    (0..STEPS_MAX).step_by(stride)
}

#[test]
fn a_device_that_comes_back_is_brought_up_to_date_while_hosts_write_and_is_enough_then() {
    for seed in seeds(2, 40) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = Machine::degraded(shape, seed);
            machine.journalled.rig.world.take_notices();
            machine.join();
            assert!(machine.journal().joining.is_some());
            let steps = machine.step_on(100_000);
            assert!((40..STEPS_MAX).contains(&steps), "{shape}: {steps} steps");
            assert_eq!(machine.works(), [true, true], "{shape}");
            let notices = machine.journalled.rig.world.take_notices();
            let mirrored = notices.iter().filter(|notice| notice.kind == NoticeKind::JournalMirrored).count();
            assert_eq!(
                (mirrored, notices.iter().any(|n| n.kind == NoticeKind::JournalDegraded)),
                (1, false),
                "{notices:?}"
            );
            machine.run(60);
            // The device that stayed is lost with the power.
            machine.journalled.rig.session.cut_power(&mut machine.journalled.rig.world);
            machine.journalled.rig.world.pull(machine.stays);
            let joins = machine.joins;
            machine.boot_with(&[joins]);
            machine.finish();
        }
    }
}

#[test]
fn a_request_for_a_higher_epoch_is_repeated_until_the_epoch_is_durable() {
    for seed in seeds(2, 40) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let journalled = Journalled::new(shape, seed, false, 2);
            let mut machine = Machine { stays: journalled.devices[0], joins: journalled.devices[1], journalled };
            machine.run(40);
            let before = machine.journal();
            assert!(!before.epoch_pending, "{shape}");
            machine.journalled.rig.world.pull(machine.joins);
            let load = machine.load();
            let mut pending = 0;
            while machine.journal().epoch == before.epoch {
                let is_alone = machine.works() == [true];
                assert_eq!(machine.journal().epoch_pending, is_alone, "{shape}");
                pending += u64::from(is_alone);
                machine.step(&load);
            }
            assert!(pending > 0, "{shape}: it was durable at once");
            assert!(!machine.journal().epoch_pending, "{shape}");
            machine.finish();
        }
    }
}

#[test]
fn the_power_goes_at_any_step_of_a_join_and_takes_nothing_along() {
    let (mut unfinished, mut whole) = (0, 0);
    for at in steps() {
        let shape = shapes()[usize::try_from(at % 3).expect("few")];
        let _case = Case::new(at, shape);
        let mut machine = Machine::degraded(shape, 1 + at);
        let before = machine.journalled.rig.world.find_journal(&[machine.joins]).expect("it was dropped").superblock;
        machine.join();
        machine.step_on(at);
        machine.journalled.rig.session.cut_power(&mut machine.journalled.rig.world);
        machine.journalled.rig.world.boot();
        let (stays, joins) = (machine.stays, machine.joins);
        // The joining device alone: its content as it was dropped, no journal, or the complete one.
        let alone = match machine.journalled.rig.world.find_journal(&[joins]) {
            Err(JournalFault::Found(FindError::Journal(_, JournalError::Unfinished))) => {
                unfinished += 1;
                false
            }
            Err(fault) => panic!("{shape}: {fault}"),
            // The use of one of two devices alone needs a confirmation.
            Ok(found) if found.superblock.generation == before.generation => {
                assert_eq!((found.superblock.mirrors, found.superblock.epoch), (2, before.epoch));
                false
            }
            Ok(_) => {
                whole += 1;
                true
            }
        };
        match at % 3 {
            0 if alone => machine.boot_with(&[joins]),
            1 => machine.boot_with(&[stays]),
            _ => {
                machine.boot_with(&[joins, stays]);
                assert_eq!(machine.works(), [true, true]);
            }
        }
        machine.run(20);
        machine.finish();
    }
    assert!(unfinished > 5 && whole > 5, "{unfinished} cuts while it was not finished, {whole} when it was");
}

#[test]
fn whichever_device_fails_at_any_step_of_a_join_nothing_is_lost() {
    let mut inside = 0;
    for at in steps() {
        let shape = shapes()[usize::try_from(at % 3).expect("few")];
        let _case = Case::new(at, shape);
        let mut machine = Machine::degraded(shape, 1 + at);
        machine.join();
        machine.step_on(at);
        inside += u64::from(machine.journal().joining.is_some());
        let (joins, stays) = (machine.joins, machine.stays);
        match at % 4 {
            0 => machine.journalled.rig.world.pull(joins),
            1 => machine.journalled.rig.world.drive_mut(joins).faults.writes = Some(DriveError::ReadOnly),
            2 => machine.journalled.rig.world.drive_mut(joins).faults.hang = true,
            _ => machine.journalled.rig.world.pull(stays),
        }
        machine.run(30);
        machine.journalled.rig.session.drain(&mut machine.journalled.rig.world);
        if at % 4 == 2 {
            // No write waits for the device before hosts write to it.
            machine.journalled.rig.run_for(Nanos::from_secs(40));
        }
        if at % 4 < 3 {
            assert_eq!((machine.journal().state, machine.works()), (JournalState::Live, vec![true]), "{shape}");
            assert!(machine.journal().joining.is_none());
            // The device returns again, and is complete after that.
            machine.journalled.rig.world.release(joins);
            let drive = machine.journalled.rig.world.drive_mut(joins);
            drive.put_back();
            drive.faults.writes = None;
            machine.journalled.rig.run_for(Nanos::from_millis(100));
            machine.journalled.rig.world.admin(AdminCommand::ReleaseJournalDevice).expect("it was dropped");
            machine.join();
            machine.step_on(100_000);
            assert_eq!(machine.works(), [true, true], "{shape}");
            machine.run(20);
            machine.journalled.rig.session.cut_power(&mut machine.journalled.rig.world);
            let alone = if at.is_multiple_of(2) { joins } else { stays };
            machine.boot_with(&[alone]);
        } else {
            // Before the copy is complete, the remaining devices acknowledge no write; afterwards they acknowledge all.
            machine.journalled.rig.rest();
            let state = machine.journal().state;
            assert!(state == JournalState::Live || matches!(state, JournalState::Lost(_)));
        }
        machine.finish();
    }
    assert!(inside > 10, "only {inside} faults met a device that was joining");
}

#[test]
fn a_new_device_takes_the_place_of_one_that_is_gone_for_good() {
    for seed in seeds(2, 20) {
        let shape = ArrayShape::raid5(4, CHUNK);
        let _case = Case::new(seed, shape);
        let mut machine = Machine::degraded(shape, seed);
        let world = &mut machine.journalled.rig.world;
        let small = world.add_drive(DriveSpec::new(JOURNAL - Sectors::mib(1)));
        let new = world.add_drive(DriveSpec::new(JOURNAL));
        world.join_journal(new).expect_err("the old one has to go first");
        world.admin(AdminCommand::ReleaseJournalDevice).expect("it was dropped");
        world.join_journal(small).expect_err("it is too small");
        machine.joins = new;
        machine.join();
        machine.journalled.rig.world.join_journal(small).expect_err("one at a time");
        machine.step_on(100_000);
        machine.journalled.rig.world.join_journal(small).expect_err("there are two");
        assert_eq!(machine.works(), [true, true]);
        machine.run(40);
        machine.journalled.rig.session.cut_power(&mut machine.journalled.rig.world);
        machine.boot_with(&[new]);
        machine.finish();
    }
}

/// A device that fails while it joins differs from the device that joins later. The later one may continue alone. Then
/// the epochs of the other two show which of them is stale.
#[test]
fn a_device_that_failed_while_it_joined_is_distinguished_from_the_one_that_joined_after_it() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let mut machine = Machine::degraded(shape, 2);
    let second = machine.joins;
    machine.joins = machine.journalled.rig.world.add_drive(DriveSpec::new(JOURNAL));
    machine.journalled.rig.world.admin(AdminCommand::ReleaseJournalDevice).expect("it was dropped");
    machine.join();
    let load = machine.load();
    while superblock(&machine, machine.joins).is_none_or(|superblock| !superblock.unfinished) {
        machine.step(&load);
    }
    let failed = machine.joins;
    machine.journalled.rig.world.pull(failed);
    machine.run(20);
    assert!(machine.journal().joining.is_none(), "it is gone");
    machine.journalled.rig.world.admin(AdminCommand::ReleaseJournalDevice).expect("it was dropped");
    machine.joins = second;
    machine.join();
    machine.step_on(100_000);
    assert_eq!(machine.works(), [true, true]);
    let [failed, whole] = [failed, machine.stays].map(|drive| superblock(&machine, drive).expect("it has one"));
    assert!(failed.unfinished && whole.mirrors == 2);
    assert!(failed.epoch + 1 < whole.epoch, "{} and {}", failed.epoch, whole.epoch);
    machine.finish();
}

/// The first copy of the superblock of a device.
fn superblock(machine: &Machine, drive: DriveId) -> Option<JournalSuperblock> {
    let at = journal_superblock_lba(SuperblockCopy::First, JOURNAL).expect("large enough");
    let mut bytes = [0; JOURNAL_BLOCK_BYTES];
    machine.journalled.rig.world.drive(drive).peek(at, &mut bytes);
    JournalSuperblock::decode(&bytes, SuperblockCopy::First).ok()
}

#[test]
fn a_place_of_the_log_that_cannot_be_read_ends_a_join_and_nothing_else() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let mut machine = Machine::degraded(shape, 4);
    machine.journalled.rig.world.take_notices();
    machine.journalled.rig.world.drive_mut(machine.stays).faults.reads = true;
    machine.join();
    machine.step_on(100_000);
    assert_eq!((machine.journal().state, machine.works()), (JournalState::Live, vec![true]));
    let notices = machine.journalled.rig.world.take_notices();
    assert!(notices.iter().any(|notice| notice.kind == NoticeKind::JournalUnreadable), "{notices:?}");
    machine.journalled.rig.world.drive_mut(machine.stays).faults.reads = false;
    machine.journalled.rig.run_for(Nanos::from_millis(100));
    machine.join();
    machine.step_on(100_000);
    assert_eq!(machine.works(), [true, true]);
    machine.finish();
}

/// The ring is overwritten repeatedly while its log is copied, and the tail passes the copied position.
#[test]
fn the_ring_goes_round_while_a_device_joins_and_leaves_and_joins() {
    let mut inside = 0;
    for seed in seeds(4, 200) {
        let shape = shapes()[usize::try_from(seed % 3).expect("few")];
        let _case = Case::new(seed, shape);
        let mut machine = Machine::degraded(shape, seed);
        let load = Workload { len_max: 64 << 10, mix: [0, 1, 0, 0, 0], ..machine.load() };
        for turn in 0..6 {
            let rounds = machine.journal().counters.rounds;
            machine.journalled.rig.session.run_on(&mut machine.journalled.rig.world, &load, 30 + 10 * turn);
            machine.join();
            while machine.journal().joining.is_some() {
                machine.journalled.rig.session.run_on(&mut machine.journalled.rig.world, &load, 1);
            }
            inside += machine.journal().counters.rounds - rounds;
            machine.journalled.rig.session.run_on(&mut machine.journalled.rig.world, &load, 20);
            if turn % 2 == 0 {
                machine.journalled.rig.world.pull(machine.joins);
                machine.journalled.rig.session.run_on(&mut machine.journalled.rig.world, &load, 20);
                machine.journalled.rig.world.drive_mut(machine.joins).put_back();
                machine.journalled.rig.run_for(Nanos::from_millis(20));
            } else {
                machine.journalled.rig.session.cut_power(&mut machine.journalled.rig.world);
                let joins = machine.joins;
                machine.boot_with(&[joins]);
                std::mem::swap(&mut machine.joins, &mut machine.stays);
            }
        }
        machine.finish();
    }
    assert!(inside > 20, "the tail moved only {inside} times");
}

/// A caller that stores the reported epoch refuses devices with a lower one. So no device may have a lower epoch than
/// the one reported while the device worked, whatever fails in between.
#[test]
fn no_epoch_is_reported_that_no_device_has() {
    let mut between = 0;
    for seed in seeds(2, 20) {
        for shape in shapes() {
            for step in 0..40 {
                let _case = Case::new(seed, shape);
                let journalled = Journalled::new(shape, seed, false, 2);
                let mut machine = Machine { stays: journalled.devices[0], joins: journalled.devices[1], journalled };
                machine.run(40);
                let before = machine.journal().epoch;
                machine.journalled.rig.world.pull(machine.joins);
                let load = machine.load();
                for _ in 0..step {
                    machine.step(&load);
                }
                machine.journalled.rig.world.pull(machine.stays);
                machine.run(40);
                assert!(matches!(machine.journal().state, JournalState::Lost(_)));
                let reported = machine.journal().epoch;
                for drive in [machine.stays, machine.joins] {
                    machine.journalled.rig.world.drive_mut(drive).put_back();
                }
                let found =
                    machine.journalled.rig.world.find_journal(&[machine.stays, machine.joins]).expect("both are there");
                assert!(reported <= found.superblock.epoch, "{reported} was reported after {before}, step {step}");
                between += u32::from(reported == before);
            }
        }
    }
    assert!(between > 0, "the first one is never gone for long enough");
}
