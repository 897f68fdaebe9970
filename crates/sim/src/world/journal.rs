//! A journal in a simulated machine: created, found again after a power cut, opened.

use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, FoundJournal, JournalStatus};
use openraid_core::journal::find_device::{find_journal, superblock_of, FindError, JournalDevice, ReadDevice};
use openraid_core::journal::mirror_resync::{ResyncPlan, ResyncStep};
use openraid_format::{journal_superblock_lba, JournalSuperblock, SuperblockCopy, Uuid, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::World;
use crate::drive::DriveSpec;
use crate::fault::planted::PlantedBug;

/// The reason for which a journal is not opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalFault {
    /// The content of the devices cannot be used.
    Found(FindError),
    /// The controller refuses it.
    Refused(AdminError),
}

/// The journal that was found on the devices, and whether all devices are complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResyncResult {
    /// All devices are complete.
    All(Box<FoundJournal>),
    /// One device was stale, and only some of the steps of its resync were carried out.
    Part {
        /// Steps that were carried out.
        done: usize,
        steps: usize,
        /// The stale device.
        stale: DriveId,
    },
}

impl std::fmt::Display for JournalFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Found(error) => write!(f, "{error}"),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

struct Reader<'a> {
    world: &'a World,
    drives: &'a [DriveId],
    /// The checksum in the last header, for a bug that accepts every checksum.
    said: u32,
}

impl ReadDevice for Reader<'_> {
    fn read(&mut self, device: usize, at: DriveLba, bytes: &mut [u8]) -> bool {
        let drive = self.world.drive(self.drives[device]);
        let len = Sectors(bytes.len() as u64 / 512);
        if drive.faults.gone || drive.faults.first_defect(at, len).is_some() {
            return false;
        }
        drive.peek(at, bytes);
        if let Some(said) = PlantedBug::said_checksum(bytes) {
            self.said = said;
        }
        true
    }
    fn crc(&self, register: u32, bytes: &[u8]) -> u32 {
        if self.world.planted.as_ref().is_some_and(PlantedBug::believes_checksums) {
            return self.said;
        }
        !self.world.kernels.crc32c(!register, bytes)
    }
}

impl World {
    /// Create an empty journal on new drives of this size.
    ///
    /// # Panics
    /// A journal cannot have this size.
    pub fn make_journal(&mut self, mirrors: u8, capacity: Sectors) -> Vec<DriveId> {
        self.make_journal_on(&DriveSpec::new(capacity), mirrors, None)
    }

    /// Create an empty journal on new drives of this kind, with a ring of the given length if there is one.
    ///
    /// # Panics
    /// A journal cannot have this size, or the ring does not fit.
    pub fn make_journal_on(&mut self, spec: &DriveSpec, mirrors: u8, ring: Option<Sectors>) -> Vec<DriveId> {
        let (capacity, block) = (spec.capacity, spec.block);
        let uuid = Uuid([u8::try_from(self.drives.len()).expect("few drives"); 16]);
        let make = |world: &mut Self, mirror| {
            let drive = world.add_drive(*spec);
            let made = JournalSuperblock::new(uuid, Uuid([1; 16]), capacity, block, (mirror, mirrors));
            let mut superblock = made.unwrap_or_else(|error| panic!("{error}"));
            superblock.ring_sectors = ring.unwrap_or(superblock.ring_sectors);
            world.put_journal_superblock(drive, &superblock);
            drive
        };
        (0..mirrors).map(|mirror| make(self, mirror)).collect()
    }

    fn put_journal_superblock(&mut self, drive: DriveId, superblock: &JournalSuperblock) {
        for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
            let mut bytes = [0; JOURNAL_BLOCK_BYTES];
            superblock.encode(copy, &mut bytes);
            let lba = journal_superblock_lba(copy, superblock.device_sectors).expect("checked when it was made");
            self.drive_mut(drive).poke(lba, &bytes);
        }
    }

    /// Find the journal on these drives. If one of two devices is stale, copy the other's content to it, as a driver
    /// does.
    ///
    /// # Errors
    /// The content of the devices cannot be used.
    pub fn find_journal(&mut self, drives: &[DriveId]) -> Result<FoundJournal, JournalFault> {
        match self.find_journal_until(drives, None)? {
            ResyncResult::All(found) => Ok(*found),
            ResyncResult::Part { .. } => unreachable!("no end was named"),
        }
    }

    /// Like [`World::find_journal`]. But if a device is stale and `cut` is given, carry out only some of the steps of
    /// its resync. Their number is the remainder of `cut` divided by one more than the number of steps. The caller must
    /// then cut the power or kill the process, and unflushed writes of these steps are in doubt.
    ///
    /// # Errors
    /// The content of the devices cannot be used.
    pub fn find_journal_until(&mut self, drives: &[DriveId], cut: Option<u64>) -> Result<ResyncResult, JournalFault> {
        let device = |drive: &DriveId| {
            let spec = self.drive(*drive).spec();
            JournalDevice { drive: *drive, capacity: spec.capacity, block: spec.block }
        };
        let devices: Vec<JournalDevice> = drives.iter().map(device).collect();
        let mut reader = Reader { world: self, drives, said: 0 };
        let mut found = find_journal(&devices, false, &mut reader).map_err(JournalFault::Found)?.journal;
        let superblocks = devices.iter().enumerate().map(|(n, device)| superblock_of(n, device, &mut reader));
        let superblocks = superblocks.collect::<Result<Vec<_>, _>>();
        let superblocks = superblocks.map_err(|error| JournalFault::Found(FindError::Mirrors(error)))?;
        if let [one, other] = *drives {
            if let Some(plan) = ResyncPlan::of(&found, [one, other], &superblocks) {
                let steps = plan.steps().count();
                let done = cut.map(|cut| usize::try_from(cut % (steps as u64 + 1)).expect("few steps"));
                plan.steps().take(done.unwrap_or(steps)).for_each(|step| self.resync_step(&plan, drives, step));
                if let Some(done) = done {
                    return Ok(ResyncResult::Part { done, steps, stale: drives[plan.stale] });
                }
                plan.finish(&mut found, drives[plan.stale]);
            }
        }
        if let Some(planted) = &mut self.planted {
            planted.found_journal(&mut found);
        }
        Ok(ResyncResult::All(Box::new(found)))
    }

    fn resync_step(&mut self, plan: &ResyncPlan, drives: &[DriveId], step: ResyncStep) {
        match step {
            ResyncStep::Superblock { device, copy, claim } => {
                let superblock = plan.superblock(device, claim);
                let mut bytes = [0; JOURNAL_BLOCK_BYTES];
                superblock.encode(copy, &mut bytes);
                let lba = journal_superblock_lba(copy, superblock.device_sectors).expect("checked when it was made");
                self.drive_mut(drives[device]).poke_volatile(lba, &bytes);
            }
            ResyncStep::Copy { at, sectors } => {
                let mut piece = vec![0; usize::try_from(sectors.bytes().get()).expect("a small piece")];
                self.drive(drives[plan.best]).peek(at, &mut piece);
                self.drive_mut(drives[plan.stale]).poke_volatile(at, &piece);
            }
            ResyncStep::Flush { device } => self.drive_mut(drives[device]).settle(),
        }
    }

    /// Open the journal on these drives. It accepts writes a moment later.
    ///
    /// # Errors
    /// The reason for which the journal is not opened.
    pub fn attach_journal(&mut self, drives: &[DriveId]) -> Result<AdminOutcome, JournalFault> {
        let found = self.find_journal(drives)?;
        self.admin(AdminCommand::AttachJournal(found)).map_err(JournalFault::Refused)
    }

    /// Add a drive to a running journal with one of two devices. The drive is brought up to date, and is in use a
    /// moment later.
    ///
    /// # Errors
    /// The controller's refusal.
    pub fn join_journal(&mut self, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let spec = *self.drive(drive).spec();
        let device = JournalDevice { drive, capacity: spec.capacity, block: spec.block };
        let mut reader = Reader { world: self, drives: &[drive], said: 0 };
        let seen = superblock_of(0, &device, &mut reader)
            .map_or((0, 0), |superblock| (superblock.generation, superblock.epoch));
        self.admin(AdminCommand::JoinJournal { drive, generation: seen.0, epoch: seen.1 })
    }

    /// The controller's status of its journal.
    #[must_use]
    pub fn journal(&self) -> Option<JournalStatus> {
        self.controller.journal_status()
    }
}
