//! A machine's journal: separate devices at separate ports, each with a drive model.
//!
//! ```text
//!   engine -> [member way] -> device      header and payload of an entry, acknowledged when they are durable
//! ```
//!
//! The engine writes one entry at a time. So the journal's busy time is the time in which a device has a command
//! outstanding, however its drive spends that time.

use openraid_core::actions::DriveCommand;
use openraid_core::journal::open_and_detach::FoundJournal;
use openraid_format::{JournalSuperblock, LogPlace, RingSector, Uuid};
use openraid_units::{BlockSize, Bytes, DriveId, Instant, Nanos, Sectors};

use super::error::MachineError;

/// Limit of the devices of a journal: two devices have equal content.
pub const JOURNAL_DEVICES_MAX: usize = 2;
/// The part of a drive that is used as a device: a partition at its beginning. A longer ring changes nothing, because
/// the number of entries is the bound.
pub const JOURNAL_DEVICE: Bytes = Bytes::gib(8);
/// Memory through which a journal is written, as in a server: four buffers of the largest entry.
pub(super) const JOURNAL_BUFFERS: Bytes = Bytes::mib(4);

/// The time for which the journal works.
#[derive(Debug)]
pub(super) struct MachineJournal {
    /// The station of its first device. The stations of the devices are the last ones.
    pub first: usize,
    /// Outstanding commands at its devices, and since when at least one is outstanding.
    outstanding: u32,
    since: Instant,
    busy: Nanos,
}

impl MachineJournal {
    pub const fn new(first: usize) -> Self {
        Self { first, outstanding: 0, since: Instant::ZERO, busy: Nanos::ZERO }
    }

    pub const fn is_at(&self, drive: usize) -> bool {
        drive >= self.first
    }

    pub fn begins(&mut self, now: Instant) {
        if self.outstanding == 0 {
            self.since = now;
        }
        self.outstanding += 1;
    }

    pub fn ends(&mut self, now: Instant) {
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.busy += now.since(self.since);
        }
    }

    pub fn busy(&self, now: Instant) -> Nanos {
        let now = if self.outstanding > 0 { now.since(self.since) } else { Nanos::ZERO };
        self.busy + now
    }

    /// Put the header of an entry first. The engine makes the header last, but a device gets header and payload
    /// together, and takes them for one stream, as real devices do.
    pub fn order(&self, commands: &mut [DriveCommand]) {
        commands.sort_by_key(|command| match self.is_at(command.drive.index()) {
            true => (command.drive.index(), command.lba.get()),
            false => (0, 0),
        });
    }
}

/// A new, empty journal on these drives, in the form of a journal that was found there.
pub(super) fn empty_journal(drives: &[DriveId], size: Sectors) -> Result<FoundJournal, MachineError> {
    let mirrors = u8::try_from(drives.len()).expect("two at most");
    let (journal, controller) = (Uuid([0x4a; 16]), Uuid([0x43; 16]));
    let superblock = JournalSuperblock::new(journal, controller, size, BlockSize::B512, (0, mirrors));
    let superblock = superblock.map_err(|error| MachineError::Part(format!("the journal's device: {error}")))?;
    let place = LogPlace { sequence: 1, position: RingSector(0) };
    Ok(FoundJournal {
        devices: drives.iter().copied().zip(0..).collect(),
        epoch: superblock.epoch,
        superblock,
        tail: place,
        head: place,
        entries: Vec::new(),
        kept: Vec::new(),
    })
}
