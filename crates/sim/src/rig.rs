//! A machine with one array and a host that knows its writes. Most tests begin here.

use openraid_core::admin::{AdminCommand, ArrayStatus, Health, MemberState, Policy, WriteCache};
use openraid_core::events::DriveError;
use openraid_core::limits::Limits;
use openraid_core::slot_set::SlotSet;
use openraid_format::{MinorVersion, PPL_AREA};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors, Slot};

use crate::drive::{DriveSpec, FreshContent, Latency};
use crate::oracle::{Content, HostSession, Members};
use crate::random::Random;
use crate::test_arrays::ArrayShape;
use crate::world::{World, WorldSpec};

/// The area before the data of a small member: superblock, bitmap and bad-block log.
pub const BEFORE_DATA: Sectors = Sectors::mib(1);

/// Options of an array.
#[derive(Clone, Debug)]
pub struct RigOptions {
    /// The seed and the limits.
    pub world: WorldSpec,
    /// The power may be cut, so unflushed writes may be lost.
    pub cuts: bool,
    /// Whether the array has a write-intent bitmap.
    pub bitmap: bool,
    /// Bytes for each bit of the bitmap, a power of two of at least 4096; by default the value that md would choose.
    pub bitmap_chunk: Option<u32>,
    /// Whether the array has a partial parity log (RAID 5).
    pub ppl: bool,
    /// Used drives with old content: the array must make its redundancy first.
    pub junk: bool,
    /// Number of hot spares.
    pub spares: u16,
    /// Slots that are missing from the start.
    pub missing: SlotSet,
    /// The place of the superblock.
    pub metadata: MinorVersion,
    /// Distance between the metadata of members and their data, besides the usual one.
    pub far: Sectors,
    /// Sectors of each member that the array uses; by default all.
    pub used: Option<Sectors>,
    /// The time at which writes are acknowledged.
    pub write_cache: WriteCache,
    /// Whether the drives are disks.
    pub rotational: bool,
    /// The answer times of the drives.
    pub latency: Latency,
    /// Whether discarded ranges of the drives read as zeroes; otherwise they may have any content.
    pub discard_zeroes: bool,
    /// Whether the drives take the command that writes zeroes.
    pub write_zeroes: bool,
}

impl RigOptions {
    /// A healthy array on new drives, without a bitmap and without power cuts.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            world: WorldSpec::new(seed),
            cuts: false,
            bitmap: false,
            bitmap_chunk: None,
            ppl: false,
            junk: false,
            spares: 0,
            missing: SlotSet::EMPTY,
            metadata: MinorVersion::V1_2,
            far: Sectors::ZERO,
            used: None,
            write_cache: WriteCache::Through,
            rotational: false,
            latency: Latency::FLASH,
            discard_zeroes: true,
            write_zeroes: true,
        }
    }

    /// Every third seed has a cache, which holds writes if the power is not cut.
    #[must_use]
    pub fn with_cache(mut self, seed: u64) -> Self {
        const CACHE: Bytes = Bytes::mib(1);
        if seed.is_multiple_of(3) {
            let limits = Limits::small();
            self.world.limits = Limits { pool: limits.pool + CACHE, cache: CACHE, ..limits };
            self.write_cache = if self.cuts { WriteCache::Through } else { WriteCache::Volatile };
        }
        self
    }
}

/// The way in which a member is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The administrator fails it.
    Failed,
    /// The drive is pulled.
    Pulled,
    /// The drive refuses writes.
    ReadOnly,
    /// The drive no longer answers.
    Hanging,
    /// The drive's flushes fail.
    FlushFails,
}

impl Loss {
    /// All ways.
    pub const ALL: [Self; 5] = [Self::Failed, Self::Pulled, Self::ReadOnly, Self::Hanging, Self::FlushFails];
}

/// A machine, an array and a host.
#[derive(Debug)]
pub struct Rig {
    /// The machine.
    pub world: World,
    /// The host.
    pub session: HostSession,
    pub array: ArrayId,
    pub shape: ArrayShape,
    /// The drives in the order of slots, followed by the spares.
    pub drives: Vec<DriveId>,
    /// The source of the test's random choices.
    pub random: Random,
    seed: u64,
    /// The room of a partial parity log on each member.
    log_room: Sectors,
}

fn log_room(options: &RigOptions) -> Sectors {
    if options.ppl {
        PPL_AREA
    } else {
        Sectors::ZERO
    }
}

impl Rig {
    /// Create the array and start it.
    ///
    /// # Panics
    /// The array cannot be created.
    #[must_use]
    pub fn new(shape: ArrayShape, options: RigOptions) -> Self {
        let seed = options.world.seed;
        let mut world = World::new(options.world.clone());
        let drives: Vec<DriveId> = (0..shape.members + options.spares)
            .map(|number| {
                let spec = Self::drive_spec(&shape, number, options.junk, seed);
                let spec = DriveSpec { capacity: spec.capacity + log_room(&options), ..spec };
                let RigOptions { rotational, latency, discard_zeroes, write_zeroes, .. } = options;
                world.add_drive(DriveSpec { rotational, latency, discard_zeroes, write_zeroes, ..spec })
            })
            .collect();
        let array = world.create(&shape, &drives, &options);
        if options.write_cache != WriteCache::Through {
            let policy = Policy { write_cache: options.write_cache, ..Policy::default() };
            world.admin(AdminCommand::SetPolicy { array, policy }).expect("the policy is taken");
        }
        let initial = if options.junk { Content::Anything } else { Content::Zeroes };
        let session = HostSession::new(&world, array, seed, initial, options.cuts);
        Self {
            world,
            session,
            array,
            shape,
            drives,
            random: Random::derived(seed, 2),
            seed,
            log_room: log_room(&options),
        }
    }

    fn drive_spec(shape: &ArrayShape, number: u16, junk: bool, seed: u64) -> DriveSpec {
        let slot = number.min(shape.members - 1);
        let data = shape.member_data(slot);
        let capacity = if shape.is_passthrough() { data } else { BEFORE_DATA + data };
        let fresh = if junk { FreshContent::Junk(seed + u64::from(number)) } else { FreshContent::Zeroes };
        DriveSpec { block: shape.block(slot), fresh, ..DriveSpec::new(capacity) }
    }

    /// The controller's status of the array.
    ///
    /// # Panics
    /// The array does not run.
    #[must_use]
    pub fn status(&self) -> ArrayStatus {
        self.world.status(self.array).expect("the array runs")
    }
    /// The health of the array.
    #[must_use]
    pub fn health(&self) -> Health {
        self.status().health
    }
    /// The present drive of a slot.
    #[must_use]
    pub fn drive_in(&self, slot: Slot) -> Option<DriveId> {
        let members = self.status().members;
        members.iter().find(|member| member.slot == Some(slot) && !member.replacement).and_then(|member| member.drive)
    }
    /// The state of the member in a slot.
    #[must_use]
    pub fn state_of(&self, slot: Slot) -> MemberState {
        let members = self.status().members;
        let member = members.iter().find(|member| member.slot == Some(slot) && !member.replacement);
        member.map_or(MemberState::Missing, |member| member.state)
    }

    /// Number of members that can be lost, whichever they are.
    #[must_use]
    pub fn geometry_losses(&self) -> u16 {
        self.shape.geometry().losses_survived()
    }

    /// Lose a member. Some losses become visible only with the next command to the member.
    ///
    /// # Panics
    /// The slot is vacant, or the controller does not release the member.
    pub fn lose(&mut self, slot: Slot, how: Loss) -> DriveId {
        let drive = self.drive_in(slot).expect("the slot has a member");
        let array = self.array;
        match how {
            Loss::Failed => {
                let result = self.world.admin(AdminCommand::Fail { array, drive, unsynced: true });
                result.unwrap_or_else(|error| panic!("drive {drive} is not failed: {error}"));
                self.session.hear(&mut self.world);
            }
            Loss::Pulled => self.world.pull(drive),
            Loss::ReadOnly => self.world.drive_mut(drive).faults.writes = Some(DriveError::ReadOnly),
            Loss::Hanging => self.world.drive_mut(drive).faults.hang = true,
            Loss::FlushFails => self.world.drive_mut(drive).faults.flushes = true,
        }
        drive
    }

    /// A new drive, large enough for every slot, that is not yet a member.
    pub fn new_drive(&mut self) -> DriveId {
        let largest = (0..self.shape.members).max_by_key(|slot| self.shape.member_data(*slot)).unwrap_or(0);
        let mut spec = Self::drive_spec(&self.shape, largest, true, self.seed + 1000);
        // With the finest blocks the drive fits every slot, and the array need not use coarser blocks for it.
        spec.block = self.shape.block(0);
        spec.capacity += self.log_room;
        self.world.add_drive(spec)
    }

    /// Run until all requests are answered and the world is idle.
    pub fn rest(&mut self) {
        self.session.rest(&mut self.world);
    }

    /// Run for this number of events, or fewer if the world is idle earlier.
    pub fn rest_or(&mut self, steps: u32) {
        for _ in 0..steps {
            if !self.world.step() {
                break;
            }
            self.session.hear(&mut self.world);
        }
    }

    /// Let time pass, and take the answers.
    pub fn run_for(&mut self, time: Nanos) {
        self.world.run_for(time);
        self.session.hear(&mut self.world);
    }

    /// Check an array at rest: every byte reads as expected, and the members' redundancy matches. If all members are
    /// present, the data is at the places of the layout.
    ///
    /// # Panics
    /// A check fails.
    pub fn judge(&mut self) {
        self.session.drain(&mut self.world);
        self.session.look_at_all(&mut self.world);
        self.rest();
        self.judge_members();
    }

    /// The checks of [`Rig::judge`] on the members.
    ///
    /// # Panics
    /// A check fails.
    pub fn judge_members(&mut self) {
        let status = self.status();
        let whole = status.health == Health::Optimal && status.task.is_none();
        let members = Members::of(&self.world, self.array);
        if whole {
            let complaints = members.complaints();
            assert!(complaints.is_empty(), "{}: {complaints:#?}\n{}", self.shape, self.world.dump());
            let bytes = members.data(Sectors(0), status.capacity);
            let begun = self.session.versions_mut().begin_read();
            if let Err(wrong) = self.session.versions_mut().end_read(begun, 0, &bytes) {
                panic!("{}: the members hold what cannot be: {}\n{}", self.shape, wrong.text, self.world.dump());
            }
        }
    }

    /// Check the redundancy on the members of an array whose data is unknown.
    ///
    /// # Panics
    /// Redundancy does not match.
    pub fn judge_redundancy(&mut self) {
        let complaints = Members::of(&self.world, self.array).complaints();
        assert!(complaints.is_empty(), "{}: {complaints:#?}\n{}", self.shape, self.world.dump());
    }

    /// Stop the array regularly, and start it again in a new controller.
    ///
    /// # Panics
    /// The array does not stop or start.
    pub fn restart(&mut self) {
        self.session.drain(&mut self.world);
        let result = self.world.admin(AdminCommand::Stop { array: self.array });
        result.unwrap_or_else(|error| panic!("the array does not stop: {error}"));
        self.world.run_until_idle();
        self.boot();
    }

    /// Cut the power at any time, and start the array again.
    ///
    /// # Panics
    /// The array does not start.
    pub fn cut_and_boot(&mut self) {
        self.session.cut_power(&mut self.world);
        self.boot();
    }

    /// Start a new controller on the same drives.
    ///
    /// # Panics
    /// The array does not start.
    pub fn boot(&mut self) {
        self.world.boot();
        self.array = self.world.assemble(false).unwrap_or_else(|error| panic!("{}: {error}", self.shape));
        self.session.array = self.array;
    }
}
