//! A start brings a stale device of the journal up to date, and the power is cut meanwhile, at every step and within
//! steps. No acknowledged data is lost, and the device never counts with half a log.

use crate::support::journalled::Journalled;
use crate::support::{seeds, Case};
use openraid_core::admin::{AdminCommand, FoundJournal};
use openraid_core::journal::find_device::FindError;
use openraid_format::JournalError;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::world::journal::{JournalFault, ResyncResult};
use openraid_sim::{ArrayShape, Random};
use openraid_units::{DriveId, Sectors};

const CHUNK: Sectors = Sectors::kib(16);
/// Limit of consecutive starts that are interrupted.
const STARTS_MAX: u64 = 8;

/// The cause of the difference between the two devices.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// Entries are on their way to both at the power cut.
    Torn,
    /// One device is pulled, and the other one continues alone.
    Pulled,
    /// One device loses its power a moment before all others.
    First,
}

const WAYS: [Cause; 3] = [Cause::Torn, Cause::Pulled, Cause::First];

/// The cases that the runs met.
#[derive(Default, Debug)]
struct Tally {
    /// Starts at which no device was stale.
    level: u32,
    /// Cuts and kills before the first step, after an unflushed write, after a flush, and after the last step.
    before: u32,
    inside: u32,
    between: u32,
    after: u32,
    /// Cuts during the raising of the epoch.
    attaching: u32,
    /// Starts with one of the devices.
    alone: u32,
    /// States of the stale device after a cut: unfinished, as before, or complete.
    unfinished: u32,
    as_before: u32,
    whole: u32,
}

struct Machine {
    journalled: Journalled,
    both: Vec<DriveId>,
    random: Random,
}

impl Machine {
    fn new(shape: ArrayShape, seed: u64) -> Self {
        let journalled = Journalled::new(shape, seed, false, 2);
        Self { both: journalled.devices.clone(), journalled, random: Random::derived(seed, 41) }
    }

    fn run(&mut self, requests: u64) {
        let capacity = self.journalled.rig.session.capacity();
        let load = Workload { len_max: 32 << 10, align: 512, mix: [1, 8, 1, 1, 1], ..Workload::mixed(capacity) };
        self.journalled.rig.session.run_on(&mut self.journalled.rig.world, &load, requests);
    }

    fn is_mirrored(&self) -> bool {
        self.journalled.rig.world.journal().expect("it was attached").devices.len() == 2
    }

    fn steps(&mut self, most: u64) {
        for _ in 0..self.random.below(most) {
            self.journalled.rig.world.step();
            self.journalled.rig.session.hear(&mut self.journalled.rig.world);
        }
    }

    fn end(&mut self) {
        let rig = &mut self.journalled.rig;
        match self.random.chance(1, 5) {
            true => rig.session.kill(&mut rig.world),
            false => rig.session.cut_power(&mut rig.world),
        }
    }

    /// Hosts write until the power is cut, and the devices differ.
    fn differ(&mut self, way: Cause) {
        let requests = self.random.between(1, 80);
        self.run(requests);
        let one = *self.random.pick(&self.both.clone());
        match way {
            Cause::Torn => self.steps(60),
            Cause::Pulled => {
                self.journalled.rig.world.pull(one);
                let requests = self.random.below(60);
                self.run(requests);
                self.steps(60);
            }
            Cause::First => {
                self.journalled.rig.world.vanish(one);
                self.steps(40);
            }
        }
        self.end();
        self.journalled.rig.world.drive_mut(one).put_back();
    }

    /// The journal on one device.
    fn alone(&mut self, drive: DriveId) -> Result<FoundJournal, JournalFault> {
        self.journalled.rig.world.find_journal(&[drive])
    }

    /// A start that ends while a device is brought up to date. Returns false if no device is stale.
    fn heal_in_part(&mut self, tally: &mut Tally) -> bool {
        let (both, cut) = (self.both.clone(), self.random.bits());
        let olds: Vec<_> = both.iter().map(|drive| self.alone(*drive)).collect();
        let resynced = self.journalled.rig.world.find_journal_until(&both, Some(cut));
        let ResyncResult::Part { done, steps, stale } = resynced.unwrap_or_else(|fault| panic!("{fault}")) else {
            tally.level += 1;
            return false;
        };
        let world = &self.journalled.rig.world;
        let in_doubt = both.iter().any(|drive| world.drive(*drive).in_doubt().next().is_some());
        let counter = match done {
            0 => &mut tally.before,
            _ if in_doubt => &mut tally.inside,
            done if done == steps => &mut tally.after,
            _ => &mut tally.between,
        };
        *counter += 1;
        self.end();
        let number = both.iter().position(|drive| *drive == stale).expect("one of them");
        let best = self.alone(both[1 - number]).unwrap_or_else(|fault| panic!("the better device: {fault}"));
        match self.alone(stale) {
            Err(JournalFault::Found(FindError::Journal(_, JournalError::Unfinished))) => tally.unfinished += 1,
            now if is_same(&now, &olds[number]) => tally.as_before += 1,
            Ok(now) if is_like(&now, &best) => tally.whole += 1,
            now => {
                panic!("after {done} of {steps} steps: {now:?}\nthe better one: {best:?}\nbefore: {:?}", olds[number])
            }
        }
        true
    }

    /// A start that ends while the journal is opened.
    fn attach_in_part(&mut self, tally: &mut Tally) {
        let found = self.journalled.rig.world.find_journal(&self.both).unwrap_or_else(|fault| panic!("{fault}"));
        self.journalled.rig.world.start_admin(AdminCommand::AttachJournal(found));
        self.steps(30);
        tally.attaching += 1;
        self.end();
    }

    /// Some interrupted starts, followed by a complete one, with both devices or with the better one.
    fn start(&mut self, tally: &mut Tally) {
        for _ in 0..self.random.below(STARTS_MAX) {
            self.journalled.rig.world.boot();
            if self.random.chance(1, 5) || !self.heal_in_part(tally) {
                self.journalled.rig.world.boot();
                self.attach_in_part(tally);
            }
        }
        self.journalled.rig.world.boot();
        if self.random.chance(1, 4) {
            let resynced = self.journalled.rig.world.find_journal_until(&self.both, Some(0));
            if let Ok(ResyncResult::Part { stale, .. }) = resynced {
                self.journalled.devices.retain(|drive| *drive != stale);
                tally.alone += 1;
            }
        }
        self.journalled.boot();
        self.journalled.devices = self.both.clone();
        self.journalled.rig.session.look_at_all(&mut self.journalled.rig.world);
    }
}

fn is_same(now: &Result<FoundJournal, JournalFault>, old: &Result<FoundJournal, JournalFault>) -> bool {
    match (now, old) {
        (Ok(now), Ok(old)) => is_like(now, old),
        (Err(now), Err(old)) => now == old,
        _ => false,
    }
}

/// Whether a device has the log of another one.
fn is_like(now: &FoundJournal, other: &FoundJournal) -> bool {
    let log = |found: &FoundJournal| (found.epoch, found.tail, found.head, found.entries.clone(), found.kept.clone());
    log(now) == log(other)
}

fn shapes() -> [ArrayShape; 3] {
    [ArrayShape::raid5(4, CHUNK), ArrayShape::raid1(2), ArrayShape::raid6(5, CHUNK)]
}

#[test]
fn power_that_goes_while_a_device_of_the_journal_is_brought_up_to_date_takes_nothing() {
    let mut tally = Tally::default();
    for seed in seeds(6, 200) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut machine = Machine::new(shape, seed);
            for _ in 0..4 {
                // A journal on one device is lost with it.
                let ways = if machine.is_mirrored() { &WAYS[..] } else { &WAYS[..1] };
                let way = *machine.random.pick(ways);
                machine.differ(way);
                machine.start(&mut tally);
            }
            machine.journalled.rig.rest();
            machine.journalled.rig.judge();
        }
    }
    let places = [tally.before, tally.inside, tally.between, tally.after];
    let states = [tally.unfinished, tally.as_before, tally.whole];
    assert!(places.iter().chain(&states).all(|count| *count > 0), "{tally:?}");
    assert!(tally.inside + tally.between > 60 && tally.attaching > 60 && tally.alone > 0, "{tally:?}");
}
