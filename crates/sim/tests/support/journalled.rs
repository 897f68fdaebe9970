//! A rig with a journal for its array, and the events of such a machine.

use openraid_core::admin::{AdminCommand, JournalState, Policy, WriteCache};
use openraid_core::limits::Limits;
use openraid_sim::{ArrayShape, Rig, RigOptions, World};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors};

/// Size of a device of the journal: 7 MiB of ring, and 1020 KiB before it.
pub const JOURNAL: Sectors = Sectors::mib(8);
const CACHE: Bytes = Bytes::mib(1);

/// Small limits with room for a cache of that size and for the buffers of a journal.
pub fn limits_with_journal(cache: Bytes) -> Limits {
    let (small, journal) = (Limits::small(), Bytes::kib(256));
    Limits { pool: small.pool + cache + journal, cache, journal, ..small }
}

/// Attach these devices as the journal, and wait until it accepts writes.
pub fn attach_journal(world: &mut World, devices: &[DriveId]) {
    world.attach_journal(devices).unwrap_or_else(|fault| panic!("{fault}"));
    world.run_for(Nanos::from_millis(50));
    assert_eq!(world.journal().map(|journal| journal.state), Some(JournalState::Live));
}

/// Let the journal protect an array.
pub fn protect(world: &mut World, array: ArrayId) {
    let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
    world.admin(AdminCommand::SetPolicy { array, policy }).expect("it has a cache and a journal");
    assert_eq!(world.controller().journal_protection(array), Ok(()));
}

/// A machine with one array and a journal for it.
pub struct Journalled {
    pub rig: Rig,
    pub devices: Vec<DriveId>,
}

impl Journalled {
    /// A machine with a cache of 1 MiB.
    pub fn new(shape: ArrayShape, seed: u64, bitmap: bool, mirrors: u8) -> Self {
        Self::made(shape, RigOptions { bitmap, ..RigOptions::new(seed) }, mirrors, CACHE)
    }

    /// A machine with one journal device and no bitmap.
    pub fn with_cache(shape: ArrayShape, seed: u64, cache: Bytes) -> Self {
        Self::made(shape, RigOptions::new(seed), 1, cache)
    }

    /// A machine whose acknowledged data must all survive a cut.
    pub fn made(shape: ArrayShape, options: RigOptions, mirrors: u8, cache: Bytes) -> Self {
        Self::with_limits(shape, options, mirrors, limits_with_journal(cache))
    }

    /// Like [`Self::made`], with other table sizes.
    pub fn with_limits(shape: ArrayShape, options: RigOptions, mirrors: u8, limits: Limits) -> Self {
        let mut options = RigOptions { cuts: false, ..options };
        options.world.limits = limits;
        let mut rig = Rig::new(shape, options);
        rig.rest();
        let devices = rig.world.make_journal(mirrors, JOURNAL);
        let mut machine = Self { rig, devices };
        machine.attach();
        protect(&mut machine.rig.world, machine.rig.array);
        machine
    }

    /// Attach the devices.
    pub fn attach(&mut self) {
        attach_journal(&mut self.rig.world, &self.devices);
    }

    /// Cut the power, and start again.
    pub fn cut(&mut self) {
        self.rig.session.cut_power(&mut self.rig.world);
        self.boot();
    }

    /// Start a controller with all devices and drives.
    pub fn boot(&mut self) {
        self.rig.world.boot();
        self.attach();
        self.start();
    }

    /// Assemble the array, and let the attached journal protect it.
    pub fn start(&mut self) {
        self.assemble();
        protect(&mut self.rig.world, self.rig.array);
    }

    /// Only assemble the array.
    pub fn assemble(&mut self) {
        self.rig.array = self.rig.world.assemble(false).unwrap_or_else(|error| panic!("{}: {error}", self.rig.shape));
        self.rig.session.array = self.rig.array;
    }
}
