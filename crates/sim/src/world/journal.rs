//! A journal in a simulated machine: made, found again after a cut, taken into use.

use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, JournalStatus};
use openraid_core::journal::find::{find_journal, FindError, JournalDevice, ReadDevice};
use openraid_format::{journal_superblock_lba, JournalSuperblock, SuperblockCopy, Uuid, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::World;
use crate::drive::DriveSpec;

/// Why a journal is not taken into use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalFault {
    /// What the devices hold cannot be used.
    Found(FindError),
    /// The controller refuses it.
    Refused(AdminError),
}

struct Reader<'a> {
    world: &'a World,
    drives: &'a [DriveId],
}

impl ReadDevice for Reader<'_> {
    fn read(&mut self, device: usize, at: DriveLba, bytes: &mut [u8]) -> bool {
        let drive = self.world.drive(self.drives[device]);
        if drive.faults.gone {
            return false;
        }
        drive.peek(at, bytes);
        true
    }
    fn crc(&self, register: u32, bytes: &[u8]) -> u32 {
        !self.world.kernels.crc32c(!register, bytes)
    }
}

impl World {
    /// A new, empty journal on new drives of this size.
    ///
    /// # Panics
    /// The size is none for a journal.
    pub fn make_journal(&mut self, mirrors: u8, capacity: Sectors) -> Vec<DriveId> {
        let identity = Uuid([7; 16]);
        (0..mirrors)
            .map(|mirror| {
                let spec = DriveSpec::new(capacity);
                let block = spec.block;
                let drive = self.add_drive(spec);
                let made = JournalSuperblock::new(identity, Uuid([1; 16]), capacity, block, (mirror, mirrors));
                let superblock = made.unwrap_or_else(|error| panic!("{error}"));
                for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
                    let mut bytes = [0; JOURNAL_BLOCK_BYTES];
                    superblock.encode(copy, &mut bytes);
                    let lba = journal_superblock_lba(copy, capacity).expect("checked by new");
                    self.drive_mut(drive).poke(lba, &bytes);
                }
                drive
            })
            .collect()
    }

    /// Take the journal on these drives into use, and wait until it takes promises.
    ///
    /// # Errors
    /// Why it is not.
    pub fn attach_journal(&mut self, drives: &[DriveId]) -> Result<AdminOutcome, JournalFault> {
        let devices: Vec<JournalDevice> = drives
            .iter()
            .map(|drive| {
                let spec = self.drive(*drive).spec();
                JournalDevice { drive: *drive, capacity: spec.capacity, block: spec.block }
            })
            .collect();
        let found = find_journal(&devices, false, &mut Reader { world: self, drives }).map_err(JournalFault::Found)?;
        self.admin(AdminCommand::AttachJournal(found)).map_err(JournalFault::Refused)
    }

    /// What the controller tells about its journal.
    #[must_use]
    pub fn journal(&self) -> Option<JournalStatus> {
        self.controller.journal_status()
    }
}
