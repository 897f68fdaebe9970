//! One journal, two arrays: the one that has failed stops nobody, and finds what it was promised when it is back.

mod support;

use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Health, JournalState, JournalStatus, Session as Protection};
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::session::Workload;
use openraid_sim::oracle::{Content, Session};
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::{Rig, RigOptions, Shape};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors};
use support::journalled::{attach_journal, limits_with_journal, protect, JOURNAL};
use support::{seeds, Case};

const CHUNK: Sectors = Sectors::kib(16);

/// An array beside the one of the rig.
struct Other {
    session: Session,
    drives: Vec<DriveId>,
}

struct Machine {
    /// The array that fails.
    rig: Rig,
    other: Other,
    devices: Vec<DriveId>,
}

impl Machine {
    fn new(failing: Shape, living: Shape, seed: u64, mirrors: u8) -> Self {
        let mut options = RigOptions { cuts: false, ..RigOptions::new(seed) };
        options.world.limits = limits_with_journal(Bytes::mib(4));
        let mut rig = Rig::new(failing, options.clone());
        rig.rest();
        let drive = |slot| DriveSpec::new(BEFORE_DATA + living.member_data(slot));
        let drives: Vec<DriveId> = (0..living.members).map(|slot| rig.world.add_drive(drive(slot))).collect();
        options.world.seed += 1000;
        let array = rig.world.create(&living, &drives, &options);
        let session = Session::new(&rig.world, array, seed + 1000, Content::Zeroes, false);
        let devices = rig.world.make_journal(mirrors, JOURNAL);
        let mut machine = Self { rig, other: Other { session, drives }, devices };
        machine.attach();
        for array in [machine.rig.array, array] {
            protect(&mut machine.rig.world, array);
        }
        machine
    }

    fn journal(&self) -> JournalStatus {
        self.rig.world.journal().expect("it was attached")
    }

    fn attach(&mut self) {
        attach_journal(&mut self.rig.world, &self.devices);
    }

    /// The first array loses a member, goes on without it, and loses one more, both with what they had not made durable.
    fn fail(&mut self) {
        let load = Workload { mix: [0, 1, 0, 0, 0], ..self.load_of(self.rig.session.capacity(), 4096) };
        self.rig.session.tolerate_errors = true;
        for (drive, health) in [(self.rig.drives[0], Health::Degraded), (self.rig.drives[1], Health::Failed)] {
            self.rig.session.run(&mut self.rig.world, &load, 4);
            self.rig.world.vanish(drive);
            // Destage, or a flush before the tail moves, meets the member that is gone.
            for _ in 0..60 {
                self.rig.session.run(&mut self.rig.world, &load, 4);
                if self.rig.health() == health {
                    break;
                }
                self.rig.world.run_for(Nanos::from_secs(1));
            }
            self.rig.session.hear(&mut self.rig.world);
            assert_eq!(self.rig.health(), health, "{}", self.rig.shape);
        }
    }

    /// Hosts write to the other array until so many times the ring was written.
    fn write_rings(&mut self, rings: u64) {
        let (start, ring) = (self.journal().counters.sectors, self.journal().ring.get());
        let load = self.load_of(self.other.session.capacity(), 32 << 10);
        while self.journal().counters.sectors < start + rings * ring {
            self.other.session.run_on(&mut self.rig.world, &load, 50);
            assert_eq!(self.journal().state, JournalState::Live, "{}", self.rig.world.dump());
        }
    }

    fn load_of(&self, capacity: u64, len_max: u64) -> Workload {
        Workload { len_max, align: 4096, mix: [1, 8, 1, 0, 1], depth: 8, ..Workload::mixed(capacity) }
    }

    fn cut(&mut self) {
        self.other.session.cut_power(&mut self.rig.world);
        self.rig.session.cut_power(&mut self.rig.world);
        self.rig.world.boot();
        self.attach();
    }

    fn start(&mut self, drives: &[DriveId]) -> ArrayId {
        let started = self.rig.world.assemble_of(drives, false);
        let array = started.unwrap_or_else(|error| panic!("{}: {error}", self.rig.shape));
        protect(&mut self.rig.world, array);
        array
    }

    fn start_other(&mut self) {
        let drives = self.other.drives.clone();
        self.other.session.array = self.start(&drives);
        self.other.session.look_at_all(&mut self.rig.world);
    }

    /// The failed array has its members again.
    fn bring_back(&mut self) {
        for drive in self.rig.drives.clone() {
            self.rig.world.drive_mut(drive).faults.gone = false;
        }
        let drives = self.rig.drives.clone();
        self.rig.array = self.start(&drives);
        self.rig.session.array = self.rig.array;
        self.rig.session.tolerate_errors = false;
        self.rig.session.look_at_all(&mut self.rig.world);
    }
}

fn pairs() -> [(Shape, Shape); 4] {
    let mirror = Shape::raid10(0x102, 4, CHUNK);
    [
        (Shape::raid5(4, CHUNK), Shape::raid5(4, CHUNK)),
        (Shape::raid5(5, CHUNK), Shape::raid1(2)),
        (Shape::raid1(2), Shape::raid6(5, CHUNK)),
        (mirror, Shape::raid5(4, CHUNK)),
    ]
}

#[test]
fn a_failed_array_stops_nobody_and_what_it_was_promised_is_there_when_it_is_back() {
    for seed in seeds(3, 60) {
        for (failing, living) in pairs() {
            let _case = Case::new(seed, failing);
            let mirrors = 1 + u8::try_from(seed % 2).unwrap();
            let mut machine = Machine::new(failing, living, seed, mirrors);
            let load = machine.load_of(machine.rig.session.capacity(), 8 << 10);
            let requests = machine.rig.random.between(10, 60);
            machine.rig.session.run_on(&mut machine.rig.world, &load, requests);
            let steps = u32::try_from(machine.rig.random.below(400)).unwrap();
            machine.rig.rest_or(steps);
            machine.fail();
            machine.write_rings(10);
            let kept = machine.journal().kept;
            assert!(!kept.is_zero(), "{failing}: {:?}", machine.journal());
            let protection = machine.rig.world.status(machine.other.session.array).unwrap().session;
            assert_eq!(protection, Protection::On);
            // Once more without the failed array, which is not even known yet.
            machine.cut();
            machine.start_other();
            machine.write_rings(2);
            machine.cut();
            assert_eq!(machine.journal().kept, kept, "what is kept is kept once");
            machine.bring_back();
            machine.start_other();
            // Both go on, and when everything is on the members nothing is kept any more.
            machine.rig.session.run(&mut machine.rig.world, &load, 40);
            machine.write_rings(1);
            machine.other.session.drain(&mut machine.rig.world);
            machine.rig.run_for(Nanos::from_secs(20));
            assert_eq!(machine.journal().kept, Sectors::ZERO, "{:?}", machine.journal());
            machine.cut();
            machine.bring_back();
            machine.start_other();
            machine.rig.rest();
            machine.rig.judge_members();
        }
    }
}

#[test]
fn power_cuts_while_entries_leave_the_ring_lose_nothing() {
    for seed in seeds(6, 200) {
        let (failing, living) = pairs()[usize::try_from(seed % 4).unwrap()];
        let _case = Case::new(seed, failing);
        let mut machine = Machine::new(failing, living, seed, 2);
        let load = machine.load_of(machine.rig.session.capacity(), 8 << 10);
        machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
        machine.fail();
        // Somewhere between the first entry that waits and the last that was moved.
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        while machine.journal().kept.is_zero() {
            machine.other.session.run_on(&mut machine.rig.world, &load, 1);
        }
        for _ in 0..machine.rig.random.below(200) {
            machine.other.session.ask_random(&mut machine.rig.world, &load);
            machine.other.session.step(&mut machine.rig.world);
        }
        machine.cut();
        if seed.is_multiple_of(2) {
            machine.bring_back();
        }
        machine.start_other();
        machine.write_rings(2);
        machine.cut();
        machine.bring_back();
        machine.start_other();
        machine.rig.rest();
        machine.rig.judge_members();
    }
}

#[test]
fn beyond_its_share_a_failed_array_fills_the_ring_and_the_others_go_on_without_it() {
    for seed in seeds(2, 20) {
        let (failing, living) = pairs()[0];
        let _case = Case::new(seed, failing);
        let mut machine = Machine::new(failing, living, seed, 1);
        // More than the 1020 KiB that can be kept.
        let load = Workload { mix: [0, 1, 0, 0, 0], ..machine.load_of(machine.rig.session.capacity(), 128 << 10) };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
        machine.fail();
        machine.rig.world.take_notices();
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        let mut told = false;
        for _ in 0..60 {
            machine.other.session.run_on(&mut machine.rig.world, &load, 20);
            told |= machine.rig.world.take_notices().iter().any(|notice| notice.kind == NoticeKind::JournalFull);
        }
        machine.other.session.drain(&mut machine.rig.world);
        assert!(told && matches!(machine.journal().state, JournalState::Lost(_)), "{:?}", machine.journal());
        machine.rig.world.run_for(Nanos::from_secs(20));
        machine.cut();
        machine.bring_back();
        machine.start_other();
        machine.rig.rest();
    }
}

#[test]
fn a_full_journal_is_taken_again_when_the_array_that_filled_it_is_back() {
    for seed in seeds(2, 20) {
        let (failing, living) = pairs()[0];
        let _case = Case::new(seed, failing);
        let mut machine = Machine::new(failing, living, seed, 1);
        let load = Workload { mix: [0, 1, 0, 0, 0], ..machine.load_of(machine.rig.session.capacity(), 128 << 10) };
        machine.rig.session.run_on(&mut machine.rig.world, &load, 40);
        machine.fail();
        let load = machine.load_of(machine.other.session.capacity(), 32 << 10);
        for _ in 0..60 {
            machine.other.session.run_on(&mut machine.rig.world, &load, 20);
        }
        machine.other.session.drain(&mut machine.rig.world);
        assert!(matches!(machine.journal().state, JournalState::Lost(_)), "{:?}", machine.journal());
        machine.rig.world.run_for(Nanos::from_secs(20));
        // The failed array is stopped, the journal opened anew, and the array started with its members.
        let array = machine.rig.array;
        machine.rig.world.admin(AdminCommand::Stop { array }).expect("it stops");
        machine.rig.world.admin(AdminCommand::DetachJournal).expect("nobody uses it");
        machine.attach();
        machine.bring_back();
        machine.other.session.run_on(&mut machine.rig.world, &load, 20);
        machine.other.session.drain(&mut machine.rig.world);
        for array in [machine.rig.array, machine.other.session.array] {
            assert_eq!(machine.rig.world.controller().journal_protection(array), Ok(()), "{failing}");
        }
        // It is as long as ever: the ring goes round.
        machine.write_rings(2);
        machine.cut();
        machine.bring_back();
        machine.start_other();
        machine.rig.rest();
        machine.rig.judge_members();
    }
}
