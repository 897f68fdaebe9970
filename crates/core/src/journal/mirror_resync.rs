//! Bringing a stale journal device up to date at a start: the order of the steps.
//!
//! ```text
//!  device    step                                             after it, a start
//!  stale     superblocks say "unfinished": first, last copy   uses the better device alone
//!  stale     the log is copied                                the same
//!  stale     superblocks say "one of two": first, last copy   may follow either device
//!  better    superblocks say "one of two": first, last copy   uses both
//! ```
//!
//! A driver carries the steps out one after another, before the journal is opened. Each write is flushed before the next step,
//! also between the two copies of a superblock, so the power may fail at any step. The better device is changed last, and only
//! in its superblocks.

use alloc::vec::Vec;
use openraid_format::{JournalSuperblock, SuperblockCopy};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::superblock_order::unfinished;
use crate::journal::found_journal::FoundJournal;

/// The log is copied in pieces of this size.
const PIECE: Sectors = Sectors::mib(1);
/// Number of pieces that are flushed together. It is small, so that a slow device answers within the time limit.
const PIECES_AT_ONCE: usize = 32;

/// The claim of a superblock that is written during the steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MirrorClaim {
    /// The device does not count.
    Unfinished,
    /// It has everything, and is one of two.
    Whole,
}

/// A step. Devices are numbered by their place in the list of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResyncStep {
    /// Write one copy of [`ResyncPlan::superblock`].
    Superblock {
        /// To which device.
        device: usize,
        /// Which copy.
        copy: SuperblockCopy,
        /// Its claim.
        claim: MirrorClaim,
    },
    /// Copy a piece from the better device to the same place of the stale one.
    Copy {
        /// First sector.
        at: DriveLba,
        /// Length, 1 MiB at most.
        sectors: Sectors,
    },
    /// Make earlier writes to the device durable before the next step.
    Flush {
        /// Which device.
        device: usize,
    },
}

/// How a stale device is brought up to date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResyncPlan {
    /// Place of the better device in the list.
    pub best: usize,
    /// Place of the stale one.
    pub stale: usize,
    /// Which of the two mirrors the better device is.
    mirror: u8,
    /// The superblock of the better device, and the highest generation of both.
    superblock: JournalSuperblock,
    generation: u64,
    /// The extents of the log: entries that are kept before the ring, and those from the tail to the head.
    log: Vec<(DriveLba, Sectors)>,
}

impl ResyncPlan {
    /// The plan for what a search has found on two drives with these superblocks. None if both have everything.
    #[must_use]
    pub fn of(found: &FoundJournal, drives: [DriveId; 2], superblocks: &[JournalSuperblock]) -> Option<Self> {
        let [(drive, mirror)] = found.devices[..] else { return None };
        let best = drives.iter().position(|candidate| *candidate == drive)?;
        let ring = found.superblock.ring();
        let mut log = Vec::from([(found.superblock.keep_area().0, found.superblock.kept)]);
        let mut at = found.tail.position;
        let mut left = ring.distance(at, found.head.position);
        // If entries fill the whole ring, its tail is its head.
        if left.is_zero() && !found.entries.is_empty() {
            left = ring.sectors;
        }
        while !left.is_zero() {
            let len = left.min(ring.to_end(at));
            log.push((ring.drive_lba(at), len));
            at = ring.behind(at, len);
            left -= len;
        }
        // The log is copied from this tail on. Older entries of the stale device may differ from those of the better one.
        let superblock = JournalSuperblock { tail: found.tail, ..found.superblock.clone() };
        let generation =
            superblocks.iter().map(|superblock| superblock.generation).max().unwrap_or(superblock.generation);
        Some(Self { best, stale: 1 - best, mirror, superblock, generation, log })
    }

    /// The steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = ResyncStep> + '_ {
        let flush = ResyncStep::Flush { device: self.stale };
        let copies = self.log.iter().flat_map(|(start, sectors)| pieces(*start, *sectors)).enumerate();
        let copies = copies.flat_map(move |(number, piece)| {
            let flushed = (number + 1).is_multiple_of(PIECES_AT_ONCE).then_some(flush);
            [Some(piece), flushed].into_iter().flatten()
        });
        let claims = |device, claim| {
            [SuperblockCopy::First, SuperblockCopy::Last]
                .into_iter()
                .flat_map(move |copy| [ResyncStep::Superblock { device, copy, claim }, ResyncStep::Flush { device }])
        };
        claims(self.stale, MirrorClaim::Unfinished)
            .chain(copies)
            .chain([flush])
            .chain(claims(self.stale, MirrorClaim::Whole))
            .chain(claims(self.best, MirrorClaim::Whole))
    }

    /// The superblock of a device.
    #[must_use]
    pub fn superblock(&self, device: usize, claim: MirrorClaim) -> JournalSuperblock {
        let mirror = if device == self.best { self.mirror } else { self.other() };
        let whole = JournalSuperblock { mirrors: 2, mirror, ..self.superblock.clone() };
        match claim {
            MirrorClaim::Unfinished => unfinished(whole, self.generation + 1),
            MirrorClaim::Whole => JournalSuperblock { generation: self.generation + 2, ..whole },
        }
    }

    /// All steps are done: the journal is on both devices, the second of which is this drive.
    pub fn finish(&self, found: &mut FoundJournal, drive: DriveId) {
        found.superblock = self.superblock(self.best, MirrorClaim::Whole);
        found.devices.push((drive, self.other()));
    }

    /// Which of the two mirrors the stale device is.
    fn other(&self) -> u8 {
        1 - self.mirror.min(1)
    }
}

fn pieces(start: DriveLba, sectors: Sectors) -> impl Iterator<Item = ResyncStep> {
    let count = sectors.get().div_ceil(PIECE.get());
    (0..count).map(move |number| {
        let done = PIECE * number;
        ResyncStep::Copy { at: start + done, sectors: (sectors - done).min(PIECE) }
    })
}
