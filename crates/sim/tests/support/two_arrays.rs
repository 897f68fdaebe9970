//! Two arrays with one journal: one of the arrays fails, and may return.

use openraid_core::admin::{Health, JournalState, JournalStatus};
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::{Content, HostSession};
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors};

use super::journalled::{attach_journal, limits_with_journal, protect, JOURNAL};

const CHUNK: Sectors = Sectors::kib(16);

/// The second array, in addition to the rig's own.
pub struct SecondArray {
    pub session: HostSession,
    pub drives: Vec<DriveId>,
}

/// A machine with both arrays and their journal.
pub struct Machine {
    /// The array that fails.
    pub rig: Rig,
    pub other: SecondArray,
    pub devices: Vec<DriveId>,
}

impl Machine {
    pub fn new(failing: ArrayShape, living: ArrayShape, seed: u64, mirrors: u8) -> Self {
        let mut options = RigOptions { cuts: false, ..RigOptions::new(seed) };
        options.world.limits = limits_with_journal(Bytes::mib(4));
        let mut rig = Rig::new(failing, options.clone());
        rig.rest();
        let drive = |slot| DriveSpec::new(BEFORE_DATA + living.member_data(slot));
        let drives: Vec<DriveId> = (0..living.members).map(|slot| rig.world.add_drive(drive(slot))).collect();
        options.world.seed += 1000;
        let array = rig.world.create(&living, &drives, &options);
        let session = HostSession::new(&rig.world, array, seed + 1000, Content::Zeroes, false);
        let devices = rig.world.make_journal(mirrors, JOURNAL);
        let mut machine = Self { rig, other: SecondArray { session, drives }, devices };
        machine.attach();
        for array in [machine.rig.array, array] {
            protect(&mut machine.rig.world, array);
        }
        machine
    }

    pub fn journal(&self) -> JournalStatus {
        self.rig.world.journal().expect("it was attached")
    }

    pub fn attach(&mut self) {
        attach_journal(&mut self.rig.world, &self.devices);
    }

    /// The first array loses a member, continues without it, and loses another one. Both members lose their unflushed
    /// data.
    pub fn fail(&mut self) {
        let load = Workload { mix: [0, 1, 0, 0, 0], ..self.load_of(self.rig.session.capacity(), 4096) };
        self.rig.session.tolerate_errors = true;
        for (drive, health) in [(self.rig.drives[0], Health::Degraded), (self.rig.drives[1], Health::Failed)] {
            self.rig.session.run(&mut self.rig.world, &load, 4);
            self.rig.world.vanish(drive);
            // Destage, or a flush before the tail moves, uses the absent member.
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

    /// Hosts write to the other array until they have written this multiple of the ring's size.
    pub fn write_rings(&mut self, rings: u64) {
        let (start, ring) = (self.journal().counters.sectors, self.journal().ring.get());
        let load = self.load_of(self.other.session.capacity(), 32 << 10);
        while self.journal().counters.sectors < start + rings * ring {
            self.other.session.run_on(&mut self.rig.world, &load, 50);
            assert_eq!(self.journal().state, JournalState::Live, "{}", self.rig.world.dump());
        }
    }

    pub fn load_of(&self, capacity: u64, len_max: u64) -> Workload {
        Workload { len_max, align: 4096, mix: [1, 8, 1, 0, 1], depth: 8, ..Workload::mixed(capacity) }
    }

    pub fn cut(&mut self) {
        self.other.session.cut_power(&mut self.rig.world);
        self.rig.session.cut_power(&mut self.rig.world);
        self.rig.world.boot();
        self.attach();
    }

    pub fn start(&mut self, drives: &[DriveId]) -> ArrayId {
        let started = self.rig.world.assemble_of(drives, false);
        let array = started.unwrap_or_else(|error| panic!("{}: {error}", self.rig.shape));
        protect(&mut self.rig.world, array);
        array
    }

    pub fn start_other(&mut self) {
        let drives = self.other.drives.clone();
        self.other.session.array = self.start(&drives);
        self.other.session.look_at_all(&mut self.rig.world);
    }

    /// Check that all acknowledged data is present after a cut.
    pub fn cut_and_judge(&mut self) {
        self.cut();
        self.bring_back();
        self.start_other();
        self.rig.rest();
        self.rig.judge_members();
    }

    /// Return the members of the failed array.
    pub fn bring_back(&mut self) {
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

/// An array that fails, and one that continues.
pub fn pairs() -> [(ArrayShape, ArrayShape); 4] {
    let mirror = ArrayShape::raid10(0x102, 4, CHUNK);
    [
        (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(4, CHUNK)),
        (ArrayShape::raid5(5, CHUNK), ArrayShape::raid1(2)),
        (ArrayShape::raid1(2), ArrayShape::raid6(5, CHUNK)),
        (mirror, ArrayShape::raid5(4, CHUNK)),
    ]
}
