//! Commands to drives, as the controller knows them: their owner, their purpose, and the frames that they hold.
//!
//! [`super::channel`] decides where they wait and when they are issued.

use openraid_units::{DriveId, DriveLba, Instant, Sectors, SetId, Slot, Tag, TagKind};

use crate::actions::{Data, DriveCommand, DriveOp, IoClass};
use crate::frames::Run;
use crate::slab::{Key, NONE};
use crate::slots::SlotSet;

/// The owner of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// An operation.
    Op(u32),
    /// The superblocks of a set.
    Superblock,
    /// A page of a set's bitmap.
    BitmapPage(u32),
    /// A member's bad-block log.
    BadBlocks,
    /// A flush before the clean mark.
    CleanFlush,
    /// A flush before bitmap bits are cleared.
    BitmapFlush,
    /// A flush before a task's progress is stored.
    CheckpointFlush,
    /// A flush before a set begins or ends to use the journal.
    SessionFlush,
    /// The write of a partial parity log.
    PplLog,
    /// A flush before partial parity logs are written over.
    PplFlush,
    /// A write to the area of a partial parity log that is being prepared.
    PplSetup,
    /// A read of partial parity for an operation.
    PplRead(u32),
    /// The journal.
    Journal(crate::journal::commit::JournalWork),
    /// No owner any more.
    Quarantined,
}

/// A command known to the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub owner: Owner,
    pub drive: DriveId,
    pub op: DriveOp,
    pub lba: DriveLba,
    pub len: Sectors,
    pub data: Data,
    pub class: IoClass,
    pub set: SetId,
    /// Index of the member in its set.
    pub member: u32,
    pub slot: Slot,
    /// Copies that were tried before (reads of mirrors), or the own slot of a write that is repeated.
    pub tried: SlotSet,
    /// Frames that are held while the command is under way.
    pub hold: Option<Hold>,
    /// Metadata of a waiting command.
    pub parked: u32,
    // The channel's own bookkeeping.
    /// Time of arrival here.
    pub asked: Instant,
    /// Time at which it is overdue; while it waits, the time since which it waits.
    pub deadline: Instant,
    pub issued: bool,
    pub previous: u32,
    pub next: u32,
}

/// Frames to which a quarantined command points.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    /// In the host area.
    Host(Run),
    /// In the work area.
    Work(Run),
    /// A buffer of the journal.
    Journal(usize),
    /// The window of the journal.
    Window,
}

impl Command {
    #[inline(always)]
    pub(crate) fn new(owner: Owner, set: SetId, member: u32, slot: Slot, drive: DriveId) -> Self {
        Self {
            owner,
            drive,
            op: DriveOp::Flush,
            lba: DriveLba::ZERO,
            len: Sectors::ZERO,
            data: Data::None,
            class: IoClass::Foreground,
            set,
            member,
            slot,
            tried: SlotSet::EMPTY,
            hold: None,
            parked: NONE,
            asked: Instant::ZERO,
            deadline: Instant::NEVER,
            issued: false,
            previous: NONE,
            next: NONE,
        }
    }

    /// The command as its drive gets it.
    #[inline(always)]
    pub(super) fn told(&self, key: Key) -> DriveCommand {
        let Self { drive, op, lba, len, data, class, .. } = *self;
        DriveCommand { tag: Tag::new(TagKind::Drive, key.index, key.generation), drive, op, lba, len, data, class }
    }

    /// Does a host wait for this read?
    pub(super) fn is_awaited_read(&self) -> bool {
        self.class == IoClass::Foreground && self.op == DriveOp::Read
    }
}
