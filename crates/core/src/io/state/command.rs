//! Commands to drives, as the controller knows them: their owner, their purpose, and the frames that they hold.
//!
//! [`super::channel`] decides where they wait and when they are issued.

use openraid_units::{DriveId, DriveLba, Instant, Sectors, SetId, Slot, Tag, TagKind};

use crate::actions::{Data, DriveCommand, DriveOp, IoClass};
use crate::frames::Run;
use crate::request_steps::StepEvent;
use crate::slab::{Key, NONE};
use crate::slot_set::SlotSet;

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
    Journal(JournalWork),
    /// The command was given up and has no owner any more.
    Quarantined,
}

/// The part of a drive's owner that a command goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::io) enum CommandTarget {
    /// A member, by its index in its set.
    Member(u32),
    /// A device of the journal, by its number.
    JournalDevice(u32),
}

/// The attempts before a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::io) enum Attempts {
    /// None.
    Nothing,
    /// A read of a mirror: it was sent to these copies.
    Copies(SlotSet),
    /// A write: it was sent once, and failed.
    Once,
}

impl Attempts {
    /// The copies to which a read was sent before.
    pub(in crate::io) const fn copies(self) -> SlotSet {
        match self {
            Self::Copies(copies) => copies,
            Self::Nothing | Self::Once => SlotSet::EMPTY,
        }
    }
}

/// A command known to the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelCommand {
    pub(in crate::io) owner: Owner,
    pub(in crate::io) drive: DriveId,
    pub(in crate::io) op: DriveOp,
    pub(in crate::io) lba: DriveLba,
    pub(in crate::io) len: Sectors,
    pub(in crate::io) data: Data,
    pub(in crate::io) class: IoClass,
    pub(in crate::io) set: SetId,
    pub(in crate::io) target: CommandTarget,
    pub(in crate::io) slot: Slot,
    pub(in crate::io) tried: Attempts,
    /// The frames that stay held while the drive has the command.
    pub(in crate::io) hold: Option<Hold>,
    /// Metadata of a command that waits in the controller.
    pub(in crate::io) parked: u32,
    // The channel's own record: when the command entered the channel.
    pub(in crate::io) asked: Instant,
    /// The time at which its drive got it. None while it waits in the controller.
    pub(in crate::io) issued: Option<Instant>,
    pub(in crate::io) previous: u32,
    pub(in crate::io) next: u32,
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

impl ChannelCommand {
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
            target: CommandTarget::Member(member),
            slot,
            tried: Attempts::Nothing,
            hold: None,
            parked: NONE,
            asked: Instant::ZERO,
            issued: None,
            previous: NONE,
            next: NONE,
        }
    }

    /// A command to a device of the journal.
    pub(crate) fn to_journal(owner: Owner, device: u32, drive: DriveId) -> Self {
        let target = CommandTarget::JournalDevice(device);
        Self { target, ..Self::new(owner, SetId(0), 0, Slot(0), drive) }
    }

    /// Set what it does: `op` on `len` sectors from `lba`.
    #[inline(always)]
    pub(crate) fn doing(self, op: DriveOp, (lba, len): (DriveLba, Sectors), data: Data) -> Self {
        Self { op, lba, len, data, ..self }
    }

    /// Set the class in whose queue it waits.
    #[inline(always)]
    pub(crate) fn of_class(self, class: IoClass) -> Self {
        Self { class, ..self }
    }

    /// Set the frames that it holds until its end. If it is given up, it holds them until the drive returns it.
    #[inline(always)]
    pub(crate) fn holding(self, hold: Option<Hold>) -> Self {
        Self { hold, ..self }
    }

    #[inline(always)]
    pub(crate) const fn owner(&self) -> Owner {
        self.owner
    }

    #[inline(always)]
    pub(crate) const fn drive(&self) -> DriveId {
        self.drive
    }

    #[inline(always)]
    pub(crate) const fn set(&self) -> SetId {
        self.set
    }

    /// Index of the member in its set. Panics for a command to a device of the journal.
    #[inline(always)]
    pub(crate) fn member(&self) -> u32 {
        let CommandTarget::Member(member) = self.target else { unreachable!("asked of a command to a member") };
        member
    }

    /// Number of the device of the journal. Panics for a command to a member.
    pub(crate) fn journal_device(&self) -> usize {
        let CommandTarget::JournalDevice(device) = self.target else {
            unreachable!("asked of a command of the journal")
        };
        device as usize
    }

    #[inline(always)]
    pub(crate) const fn slot(&self) -> Slot {
        self.slot
    }

    /// Has its drive got it?
    #[inline(always)]
    pub(crate) const fn is_issued(&self) -> bool {
        self.issued.is_some()
    }

    #[inline(always)]
    pub(crate) fn is_flush(&self) -> bool {
        self.op == DriveOp::Flush
    }

    /// The step of its beginning, for stories.
    pub(crate) fn asked_step(&self, waits: bool) -> StepEvent {
        let Self { slot, drive, op, lba, len, .. } = *self;
        StepEvent::Asked { slot, drive, op, lba, len, waits }
    }

    /// The step of its end, for stories.
    pub(crate) fn ended_step(&self, ok: bool) -> StepEvent {
        let Self { slot, drive, op, lba, len, asked, issued, .. } = *self;
        // A command that was never issued was given up in the queue.
        StepEvent::Ended { slot, drive, op, lba, len, asked, begun: issued.unwrap_or(asked), ok }
    }

    /// The command as the driver gets it.
    #[inline(always)]
    pub(super) fn for_driver(&self, key: Key) -> DriveCommand {
        let Self { drive, op, lba, len, data, class, .. } = *self;
        DriveCommand { tag: Tag::new(TagKind::Drive, key.index, key.generation), drive, op, lba, len, data, class }
    }

    /// Does a host wait for this read?
    pub(super) fn is_awaited_read(&self) -> bool {
        self.class == IoClass::Foreground && self.op == DriveOp::Read
    }
}

/// The purpose of a command of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalWork {
    /// A read of payload for this operation, which writes it to a member.
    Redo(u32),
    /// A read into the window, for its user.
    Window(WindowUser),
    /// A write, which must be durable when it ends.
    Write(JournalWrite),
}

/// A write to a device of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalWrite {
    /// Payload or header of the group that is being written.
    Group,
    /// A superblock.
    Superblock,
    /// A piece of an entry that is copied out of the ring.
    Spill,
    /// A piece of the log, or a superblock, for a device that joins.
    Join,
}

impl JournalWork {
    /// Is it a write?
    pub(crate) const fn is_write(self) -> bool {
        matches!(self, Self::Write(_))
    }
}

/// Users of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowUser {
    /// Copying entries out of the ring.
    Spill,
    /// Copying the log to a device that joins.
    Join,
    /// Reading payload for a set that is started.
    Replay,
}
