//! Planted bugs: the swarm must find each of them.
//!
//! An engine that forgets a flush and a driver that drops it look the same to drives and hosts. So most bugs are
//! planted in the simulation's driver loop, between the engine's actions and the machine that carries them out, and are
//! chosen at run time. The engine under test is the production engine, without a hook. Bugs in the order of the
//! engine's actions cannot be planted there. They are in the engine itself ([`openraid_core::planted`]), in builds with
//! the feature `planted` only.

use openraid_core::actions::{Data, DriveCommand, DriveOp, IoClass, JobKind};
use openraid_core::admin::FoundJournal;
use openraid_core::array::assemble::{Candidate, PplArea};
use openraid_core::events::{DriveError, ParityVerdict};
#[cfg(feature = "planted")]
use openraid_core::planted::Flaw;
use openraid_format::{
    superblock_lba, DeviceRole, JournalRecord, MinorVersion, PplEntry, PplHeader, Superblock, BITMAP_HEADER_BYTES,
    JOURNAL_BLOCK_BYTES, JOURNAL_RING_START, PPL_HEADER_SECTORS,
};
use openraid_parity::Kernels;
use openraid_units::{Bytes, DriveId, DriveLba};

use crate::drive::MemoryDrive;
use crate::random::Random;

/// Offset of the payload's checksum in the header of a journal entry: `docs/on-disk.md`.
const HEADER_CHECKSUM_AT: usize = 84;
#[cfg(feature = "planted")]
mod engine;

/// The beginning of the judges' reports: see `run`.
const WRONG_READ: &str = "a read found what no write explains";
const MISFIT: &str = "redundancy does not fit";
const PATROL: &str = "a patrol";
/// The content of the log is inconsistent.
const REFUSED: &str = "the journal is refused";
/// The superblocks are inconsistent.
const ARRAY_REFUSED: &str = "the array is refused";
/// The beginning of the report of the judge of frames: see `claims` and `drive::memory`.
const FRAMES_SHARED: &str = "panic: two actions use the same frames";
const FRAMES_CHANGED: &str = "panic: frames changed while they were written";

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $text:literal, $seeds:literal;)*) => {
        /// A planted bug.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
            /// A bug in the engine itself.
            #[cfg(feature = "planted")]
            Engine(Flaw),
        }
        impl Bug {
            /// All bugs of the driver loop.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The name that selects the bug.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                    #[cfg(feature = "planted")]
                    Self::Engine(flaw) => flaw.name(),
                }
            }
            /// Its effect.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    #[cfg(feature = "planted")]
                    Self::Engine(flaw) => flaw.text(),
                }
            }
            /// Number of seeds within which the bug is found.
            #[must_use]
            pub const fn found_within(self) -> u64 {
                match self {
                    $(Self::$name => $seeds,)*
                    #[cfg(feature = "planted")]
                    Self::Engine(flaw) => engine::found_within(flaw),
                }
            }
        }
    };
}

bugs! {
    /// Flushes are answered but not carried out.
    SkipFlush = "skip-flush", "flushes are answered and not sent to the drives", 50;
    /// Writes with FUA become ordinary writes.
    ForgetFua = "forget-fua", "writes that must be durable when they end are ordinary writes", 50;
    /// Writes are answered after the arrival of their payload.
    AnswerEarly = "answer-early", "hosts are answered when their bytes have come, before the members have them", 50;
    /// A failed flush counts as successful.
    FailedFlushIgnored = "failed-flush-ignored", "a flush that failed counts as one that did not", 200;
    /// An update does not change the parity.
    StaleParity = "stale-parity", "one parity update in sixteen leaves the old parity", 50;
    /// An update does not change the parity while a member is missing.
    StaleParityDegraded = "stale-parity-degraded", "while a member is missing one parity job in eight is not done", 50;
    /// A write does not reach one of its members.
    MemberForgotten = "member-forgotten", "one write of a host in sixty-four does not reach one of its members", 50;
    /// Checks find no mismatch.
    BlindPatrol = "blind-patrol", "whatever is compared is found to be the same", 100;
    /// Reads return each other's bytes.
    SwappedReads = "swapped-reads", "one read in sixty-four gives the bytes of the read before it", 50;
    /// The bitmap on disk has no bits set.
    BitmapEarly = "bitmap-early", "the bits of the write-intent bitmap are cleared before the writes are made", 100;
    /// The failure of a member is not recorded.
    FailureNotRecorded = "failure-not-recorded", "no superblock says that a member has failed", 200;
    /// Partly old superblocks are accepted.
    TornSuperblock = "torn-superblock", "one superblock in two has the roles of the one before it, and is taken for whole", 200;
    /// The clean mark is on disk at all times.
    CleanEarly = "clean-early", "superblocks say that the array is clean while it is written", 50;
    /// A rebuild writes to a wrong place.
    RebuildElsewhere = "rebuild-elsewhere", "one write in four of a rebuild or resync goes to the next place", 100;
    /// A rebuild leaves out writes.
    RebuildForgets = "rebuild-forgets", "one write in eight of a rebuild or resync is not made", 100;
    /// The checkpoint is ahead of the rebuild.
    CheckpointAhead = "checkpoint-ahead", "a member that is being rebuilt is recorded as complete", 200;
    /// A rebuild fills another member.
    WrongMember = "wrong-member", "one write in eight of a rebuild or resync goes to another member", 50;
    /// Frames are reused too early.
    FrameReused = "frame-reused", "one drive write in sixty-four is said to have ended while the drive still reads its frames", 50;
    /// Entries of the journal are not written.
    JournalUnwritten = "journal-unwritten", "one write in eight of the journal's log is acknowledged and not made", 50;
    /// The journal's checksums are not checked.
    JournalUnchecked = "journal-unchecked", "whatever checksum the journal says is taken for right", 100;
    /// The recorded member writes are not repeated.
    RedoForgotten = "redo-forgotten", "the redo records of the journal are passed over when it is replayed", 50;
    /// The log is replayed again, over later writes.
    ReplayTwice = "replay-twice", "after a start with a log, one write in four over what was written since is undone, as by a second replay", 50;
    /// Revoked entries count.
    RevokesForgotten = "revokes-forgotten", "what the journal says to be void is replayed all the same", 100;
    /// The checksums of partial parity are not checked.
    PplUnchecked = "ppl-unchecked", "whatever checksum an entry of a partial parity log says is taken for right", 1000;
    /// Zeroing has no effect.
    ZeroesForgotten = "zeroes-forgotten", "zeroing is answered and not sent to the drives", 50;
}

/// A run that is known to find a bug: its kind and its seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BugRun {
    /// [`Scenario::aimed`](super::Scenario::aimed) of this seed.
    Aimed(u64),
    /// [`Scenario::swarm`](super::Scenario::swarm) of this seed.
    Swarm(u64),
    /// [`Scenario::changing`](super::Scenario::changing) of this seed.
    Changing(u64),
}

impl Bug {
    /// Whether this verdict shows the bug, and not a side effect of the planting. It does if the report is from the
    /// judge of bytes, of redundancy, of frames or of a patrol, or says that the array or the journal is refused.
    #[must_use]
    pub fn is_shown_by(self, verdict: &super::Verdict) -> bool {
        let super::Verdict::Lost(text) = verdict else { return false };
        self.evidence().iter().any(|begin| text.starts_with(begin))
    }

    /// The words of a verdict that shows the bug.
    #[must_use]
    pub const fn evidence(self) -> &'static [&'static str] {
        match self {
            Self::FrameReused => &[FRAMES_SHARED, FRAMES_CHANGED, WRONG_READ, MISFIT],
            Self::BlindPatrol => &[PATROL],
            Self::TornSuperblock => &[ARRAY_REFUSED, WRONG_READ, MISFIT],
            Self::JournalUnwritten => &[REFUSED, WRONG_READ, MISFIT],
            #[cfg(feature = "planted")]
            Self::Engine(flaw) => engine::evidence(flaw),
            _ => &[WRONG_READ, MISFIT, PATROL],
        }
    }

    /// A run that finds the bug, if the bug is in the engine.
    #[cfg(feature = "planted")]
    #[must_use]
    pub const fn known_run(self) -> Option<BugRun> {
        match self {
            Self::Engine(flaw) => Some(engine::known_run(flaw)),
            _ => None,
        }
    }

    /// The bug with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }
}

impl std::fmt::Display for Bug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The treatment of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The drive gets the command.
    Do,
    /// The drive gets the command with other metadata.
    DoWith(Vec<u8>),
    /// The command is answered with success, and the drive does not get it.
    Pretend,
    /// The command is answered with success while the drive still works on it.
    AnswerEarly,
}

/// An active bug.
#[derive(Clone, Debug)]
pub struct PlantedBug {
    bug: Bug,
    random: Random,
    /// The data of the previous read.
    last_read: Vec<u8>,
    /// The first writes since a start with a log, if there was one.
    replayed: Option<Vec<(DriveId, DriveLba, DriveLba)>>,
}

/// Limit of the kept extents that a second replay would write.
const REPLAYED_MAX: usize = 256;

impl PlantedBug {
    /// Plant this bug in the driver.
    #[must_use]
    pub fn new(bug: Bug, seed: u64) -> Self {
        Self { bug, random: Random::derived(seed, 3 << 32), last_read: Vec::new(), replayed: None }
    }

    /// Handle a command on its way to a drive.
    pub fn command(&mut self, drive: &MemoryDrive, command: &mut DriveCommand, metadata: Option<&[u8]>) -> Fate {
        let write = matches!(command.op, DriveOp::Write { .. });
        let rebuild = write && command.class == IoClass::Rebuild;
        match self.bug {
            Bug::SkipFlush if command.op == DriveOp::Flush => Fate::Pretend,
            Bug::ForgetFua if write => {
                command.op = DriveOp::Write { fua: false };
                Fate::Do
            }
            Bug::FrameReused if matches!((write, command.data), (true, Data::Frames(_))) => {
                match self.random.chance(1, 64) {
                    true => Fate::AnswerEarly,
                    false => Fate::Do,
                }
            }
            // A journal has no superblock of md, and its log begins at 1 MiB.
            Bug::JournalUnwritten if write && command.class == IoClass::Metadata && superblock_of(drive).is_none() => {
                match command.lba >= DriveLba(JOURNAL_RING_START.get()) {
                    true => self.pretend(8),
                    false => Fate::Do,
                }
            }
            Bug::ReplayTwice if write && matches!(command.class, IoClass::Foreground | IoClass::Destage) => {
                self.replay_again(command)
            }
            Bug::MemberForgotten if write && command.class == IoClass::Foreground => self.pretend(64),
            Bug::ZeroesForgotten if matches!(command.op, DriveOp::WriteZeroes { .. }) => Fate::Pretend,
            Bug::RebuildForgets if rebuild => self.pretend(8),
            Bug::RebuildElsewhere if rebuild && self.random.chance(1, 4) => {
                let beside = command.lba + drive.spec().block.sectors();
                let taken =
                    drive.outstanding().any(|other| other.lba < beside + command.len && beside < other.lba + other.len);
                if (beside + command.len).get() <= drive.spec().capacity.get() && !taken {
                    command.lba = beside;
                }
                Fate::Do
            }
            _ => metadata.filter(|_| write).map_or(Fate::Do, |bytes| self.metadata(drive, command.lba, bytes)),
        }
    }

    /// The drive that gets this write in place of the right one, if the bug changes it; `drives` is the number of
    /// drives.
    pub fn other_drive(&mut self, command: &DriveCommand, drives: usize) -> Option<usize> {
        let rebuild = matches!(command.op, DriveOp::Write { .. }) && command.class == IoClass::Rebuild;
        let swaps = self.bug == Bug::WrongMember && rebuild && self.random.chance(1, 8);
        swaps.then(|| self.random.index(drives))
    }

    fn pretend(&mut self, one_in: u64) -> Fate {
        if self.random.chance(1, one_in) {
            Fate::Pretend
        } else {
            Fate::Do
        }
    }

    /// The first writes after the start of a parity set are from the log. A later write over them is undone, because
    /// the log's data is written again.
    fn replay_again(&mut self, command: &DriveCommand) -> Fate {
        let Some(replayed) = &mut self.replayed else { return Fate::Do };
        let (lba, end) = (command.lba, command.lba + command.len);
        let mut same = replayed.iter().filter(|(drive, _, _)| *drive == command.drive);
        if same.any(|(_, from, to)| *from <= lba && end <= *to) {
            return self.pretend(4);
        }
        if replayed.len() < REPLAYED_MAX {
            replayed.push((command.drive, lba, end));
        }
        Fate::Do
    }

    fn metadata(&mut self, drive: &MemoryDrive, lba: DriveLba, bytes: &[u8]) -> Fate {
        let on_disk = superblock_of(drive);
        match self.bug {
            Bug::BitmapEarly => {
                let room = on_disk.and_then(|superblock| superblock.bitmap_room(drive.spec().capacity));
                match room.filter(|(start, len)| *start <= lba && lba < *start + *len) {
                    Some((start, _)) => {
                        let mut cleared = bytes.to_vec();
                        cleared[if lba == start { BITMAP_HEADER_BYTES } else { 0 }..].fill(0);
                        Fate::DoWith(cleared)
                    }
                    None => Fate::Do,
                }
            }
            Bug::FailureNotRecorded | Bug::CleanEarly | Bug::CheckpointAhead | Bug::TornSuperblock => {
                self.superblock(drive, lba, bytes)
            }
            _ => Fate::Do,
        }
    }

    fn superblock(&mut self, drive: &MemoryDrive, lba: DriveLba, bytes: &[u8]) -> Fate {
        let capacity = drive.spec().capacity;
        let here = MinorVersion::ALL.into_iter().filter(|minor| superblock_lba(*minor, capacity) == Some(lba));
        let decoded = here.filter_map(|minor| Superblock::decode(bytes, minor, capacity).ok()).next();
        let Some(mut superblock) = decoded else { return Fate::Do };
        match self.bug {
            Bug::FailureNotRecorded => {
                let slots = usize::from(superblock.raid_disks);
                let seen = (0..superblock.roles.len()).filter(|place| {
                    matches!(superblock.roles.iter().nth(*place), Some(DeviceRole::Active(slot)) if slot.index() < slots)
                });
                return if seen.count() < slots { Fate::Pretend } else { Fate::Do };
            }
            Bug::TornSuperblock => match superblock_of(drive) {
                Some(old) if old.roles.len() == superblock.roles.len() && self.random.chance(1, 2) => {
                    superblock.roles = old.roles;
                }
                _ => return Fate::Do,
            },
            Bug::CleanEarly => superblock.resync_offset = u64::MAX,
            _ => superblock.set_recovery_offset(None),
        }
        let mut changed = bytes.to_vec();
        superblock.encode(&mut changed);
        Fate::DoWith(changed)
    }

    /// Handle the answer of a command; `frames` are the data of a read.
    ///
    /// # Errors
    /// The error that the engine gets.
    pub fn answer(
        &mut self,
        op: DriveOp,
        result: Result<(), DriveError>,
        frames: Option<&mut [u8]>,
    ) -> Result<(), DriveError> {
        if self.bug == Bug::FailedFlushIgnored && result == Err(DriveError::FlushFailed) {
            return Ok(());
        }
        if let (Bug::SwappedReads, DriveOp::Read, Ok(()), Some(frames)) = (self.bug, op, result, frames) {
            let read = frames.to_vec();
            if self.last_read.len() == read.len() && self.random.chance(1, 64) {
                frames.copy_from_slice(&self.last_read);
            }
            self.last_read = read;
        }
        result
    }

    /// Whether a parity job is left out. Its outputs then stay unchanged.
    pub fn leaves_out(&mut self, kind: JobKind, degraded: bool) -> bool {
        match (self.bug, kind) {
            (Bug::StaleParity, JobKind::Update) => self.random.chance(1, 16),
            (Bug::StaleParityDegraded, JobKind::Update | JobKind::Generate) => degraded && self.random.chance(1, 8),
            _ => false,
        }
    }

    /// Whether the bug depends on missing members.
    #[must_use]
    pub fn asks_for_health(&self) -> bool {
        self.bug == Bug::StaleParityDegraded
    }

    /// The result of a job that the engine gets.
    #[must_use]
    pub fn verdict(&self, kind: JobKind, found: ParityVerdict) -> ParityVerdict {
        match kind {
            JobKind::Check | JobKind::Compare if self.bug == Bug::BlindPatrol => ParityVerdict::Match,
            _ => found,
        }
    }

    /// The payload checksum in a block of a journal, if the block is a header.
    #[must_use]
    pub fn said_checksum(bytes: &[u8]) -> Option<u32> {
        let said = bytes.get(HEADER_CHECKSUM_AT..HEADER_CHECKSUM_AT + 4)?;
        (bytes.len() == JOURNAL_BLOCK_BYTES).then(|| u32::from_le_bytes(said.try_into().expect("four bytes")))
    }

    /// Whether every checksum of the journal is accepted.
    #[must_use]
    pub fn believes_checksums(&self) -> bool {
        self.bug == Bug::JournalUnchecked
    }

    /// Change the driver's result of reading the devices of a journal.
    pub fn found_journal(&mut self, found: &mut FoundJournal) {
        match self.bug {
            Bug::ReplayTwice => self.replayed = (!found.entries.is_empty()).then(Vec::new),
            Bug::RedoForgotten => {
                for entry in &mut found.entries {
                    let redo = |record: &JournalRecord| {
                        matches!(record, JournalRecord::Redo { .. } | JournalRecord::RedoRef { .. })
                    };
                    entry.records.retain(|record| !redo(record));
                }
            }
            Bug::RevokesForgotten => {
                for entry in &mut found.entries {
                    entry.records.retain(|record| !matches!(record, JournalRecord::Revoke { .. }));
                }
            }
            _ => {}
        }
    }

    /// Change the driver's result of reading a drive's partial parity log: each entry's checksum is set to match its
    /// bytes.
    pub fn found_log(&self, drive: &MemoryDrive, candidate: &mut Candidate, kernels: Kernels) {
        let area = candidate.superblock.ppl_area();
        let (Bug::PplUnchecked, Some(PplArea::Log(log)), Some((start, _))) = (self.bug, &mut candidate.ppl, area)
        else {
            return;
        };
        let mut header = PplHeader::new(candidate.superblock.set_uuid, log.header.generation);
        let mut at = start + log.at + PPL_HEADER_SECTORS;
        for entry in log.header.entries() {
            let mut bytes = vec![0; entry.pp_size as usize];
            drive.peek(at, &mut bytes);
            let checksum = if bytes.is_empty() { 0 } else { !kernels.crc32c(!0, &bytes) };
            header.push(PplEntry { checksum, ..*entry }).expect("as many as before");
            at += Bytes(u64::from(entry.pp_size)).sectors_floor();
        }
        log.header = header;
    }

    /// Whether a write is answered when its last byte has arrived from the host.
    #[must_use]
    pub fn answers_early(&self) -> bool {
        self.bug == Bug::AnswerEarly
    }
}

fn superblock_of(drive: &MemoryDrive) -> Option<Superblock> {
    let capacity = drive.spec().capacity;
    MinorVersion::ALL.into_iter().find_map(|minor| {
        let lba = superblock_lba(minor, capacity)?;
        let mut bytes = [0; 4096];
        let len = (capacity.get() - lba.get()).min(8);
        let bytes = &mut bytes[..usize::try_from(len * 512).ok()?];
        drive.peek(lba, bytes);
        Superblock::decode(bytes, minor, capacity).ok()
    })
}
