//! Data of operations: of some kinds only, and the states of what an operation waits for or holds.

use openraid_units::{Sectors, Slot};

#[cfg(doc)]
use super::OpKind;
use crate::actions::ReplyStatus;
use crate::frames::Run;
use crate::io::state::task_pace::TaskPace;
use crate::reason::Reason;
use crate::slot_set::SlotSet;

/// The blocks that a write covers only in part. Their other bytes are read first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edges {
    /// Bytes of the first block, and of the last, that the request does not cover; zero where the payload has them.
    pub(in crate::io) head: u16,
    pub(in crate::io) tail: u16,
    pub(in crate::io) reads: EdgeReads,
}

impl Edges {
    /// The bytes that are missing at each end.
    pub(crate) const fn new(head: u16, tail: u16) -> Self {
        Self { head, tail, reads: EdgeReads::Due }
    }
}

/// Progress of the reads of the edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EdgeReads {
    /// Not requested yet.
    Due,
    /// Requested, or read: both edges are in one block.
    OneBlock,
    /// Requested, or read: each edge has a block of its own.
    OwnBlocks,
}

/// State of the journal entry that must be durable before the operation writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryState {
    /// It needs no entry, or this is not known yet.
    None,
    /// The entries of the dirty data that it writes are not durable: it waits for them.
    AwaitsData,
    /// Its records are in this entry: it waits until the entry is durable.
    InGroup(u64),
    /// Its records are in this entry, which is durable or lost with the journal.
    Through(u64),
}

impl EntryState {
    /// Does the operation wait for an entry?
    pub(crate) const fn waits(self) -> bool {
        matches!(self, Self::AwaitsData | Self::InGroup(_))
    }

    /// The entry with its records.
    pub(crate) const fn sequence(self) -> Option<u64> {
        match self {
            Self::None | Self::AwaitsData => None,
            Self::InGroup(entry) | Self::Through(entry) => Some(entry),
        }
    }

    /// The entry that it waits for is durable, or will never be.
    pub(crate) const fn end_wait(self) -> Self {
        match self {
            Self::None | Self::AwaitsData => Self::None,
            Self::InGroup(entry) | Self::Through(entry) => Self::Through(entry),
        }
    }
}

/// The partial parity of an operation: computed for a record of a partial parity log, or read from one. While the copies of a
/// mirror are refitted, it has the checksum of the copies that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartialParity {
    /// None.
    None,
    /// It has a buffer.
    Buffered,
    /// It has a buffer, and this checksum.
    Summed(u32),
}

impl PartialParity {
    /// Is there partial parity?
    pub(crate) const fn is_there(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Data that only some kinds of operations have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KindData {
    /// Nothing beyond what every operation has.
    None,
    /// [`OpKind::Write`] and [`OpKind::RowWrite`].
    Write(WriteData),
    /// [`OpKind::Destage`] and [`OpKind::RowDestage`].
    Destage(DestageData),
    /// [`OpKind::Rebuild`], [`OpKind::Resync`] and [`OpKind::Scrub`].
    Background(BackgroundData),
    /// [`OpKind::Redo`].
    Redo(RedoData),
    /// [`OpKind::Reparity`]: the slot of the parity.
    Reparity(Slot),
    /// [`OpKind::Move`].
    Move(MoveData),
}

/// Data of a move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveData {
    /// The distance from the begin of the change of shape at which its unit begins.
    pub(in crate::io) at: Sectors,
    /// The length of its parts.
    pub(in crate::io) pace: TaskPace,
    /// The number of parts that were begun in its phase, or of blocks of the band.
    pub(in crate::io) begun: u32,
    /// The band in work, if the range could not be read as a whole.
    pub(in crate::io) band: Option<u32>,
    /// The columns of the band whose blocks no member has.
    pub(in crate::io) lost: SlotSet,
}

impl MoveData {
    /// The distance from the begin of the change of shape at which its unit begins.
    pub(crate) const fn at(&self) -> Sectors {
        self.at
    }
}

/// Data of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriteData {
    /// It must be durable before it is acknowledged.
    pub(in crate::io) fua: bool,
    /// The blocks that the request fills only in part, until the payload has the rest of them.
    pub(in crate::io) edges: Option<Edges>,
}

/// The work frames of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkFrames {
    /// None.
    None,
    /// None yet, but the operation has waited longest for some, and frames came back: it tries first.
    Called,
    /// A run of sectors.
    Run(Run),
}

/// How an operation will end, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// With success.
    Fine,
    /// With this error.
    Failed(ReplyStatus),
    /// With this error. The members of these slots refused a write of its rows, and stay in the array.
    Unwritten(ReplyStatus, SlotSet),
    /// With this error, and one of its writes failed on a member that the array cannot do without.
    Torn(ReplyStatus),
}

impl Outcome {
    /// The error.
    #[inline(always)]
    pub(crate) const fn error(self) -> Option<ReplyStatus> {
        match self {
            Self::Fine => None,
            Self::Failed(error) | Self::Unwritten(error, _) | Self::Torn(error) => Some(error),
        }
    }
}

/// Data of a destage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestageData {
    /// The dirty unit.
    pub unit: u32,
    /// The epoch of its set in which it began.
    pub epoch: u32,
    /// Approximate number of lines that were dirty when it began.
    pub lines: u32,
    /// The reason why it is written now.
    pub why: Reason,
}

/// Data of background work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundData {
    /// The slots that are computed from the others: the slot that is rebuilt, or, in a repair that trusts the data, the
    /// slots that differ from it.
    pub(in crate::io) remade: SlotSet,
    /// The task, and the number of its unit. None for the repair of a bad sector, which belongs to no task.
    pub(in crate::io) task: Option<TaskUnit>,
    /// Is the replacement of that slot filled, not its member?
    pub(in crate::io) replace: bool,
    /// A repair that writes back what its member holds.
    pub(in crate::io) is_rewrite: bool,
    /// The sector of the rows in work that is checked singly, counted from the first; `None` while the rows are checked
    /// as a whole.
    pub(in crate::io) sector: Option<u32>,
    /// Sectors of the rows in work that a check or repair corrected.
    pub(in crate::io) corrected: u32,
}

/// One unit of a background task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskUnit {
    pub task: u32,
    pub unit: u64,
}

impl BackgroundData {
    pub(crate) const fn new(remade: SlotSet, task: Option<TaskUnit>, replace: bool) -> Self {
        Self { remade, task, replace, is_rewrite: false, sector: None, corrected: 0 }
    }

    /// The same for a repair that writes back what its member holds.
    pub(crate) const fn rewriting(self) -> Self {
        Self { is_rewrite: true, ..self }
    }

    /// Sectors of the rows in work that a check or repair corrected.
    pub(crate) const fn corrected(&self) -> u32 {
        self.corrected
    }

    /// The unit, if it is one of this task.
    pub(crate) fn unit_of(&self, task: u32) -> Option<u64> {
        self.task.filter(|place| place.task == task).map(|place| place.unit)
    }
}

/// Data of a redo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedoData {
    /// The first redo of the backlog that it writes, and the number of redos.
    pub(in crate::io) first: usize,
    pub(in crate::io) count: u32,
    pub(in crate::io) reads: RedoReads,
    /// Another operation waits for it.
    pub(in crate::io) is_awaited: bool,
}

/// The reads of a redo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RedoReads {
    /// This number of them failed, and were repeated on the other device.
    Going(u32),
    /// The same, and one will not bring its data: the redo writes nothing.
    Lost(u32),
}
