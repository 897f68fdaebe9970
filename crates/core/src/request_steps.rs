//! Steps: the path of each host request through the controller, for readers that show its story.
//!
//! Nothing is kept until [`Controller::keep_steps`] asks for it. Then the last steps are kept in a ring whose memory is
//! taken at that moment. The engine never reads steps: they change no decision, and are not part of the actions.
//! Readers put them in order by names: a request has a number, operations work for it, and dirty data that it left in
//! the cache is written later by an operation of the dirty unit.
//!
//! ```text
//!  Request 7: Arrived, Received, Cached(unit 3), Replied
//!  Op 12:     Made(request 7), Granted, Planned, Asked*, Ended*, Computing, Computed, Logged, Durable, Asked*, ...
//!             (with a partial parity log its reason, Durable, instead of Logged, Durable)
//!  Op 19:     Made(unit 3), ...                                   (later: the destage)
//!  Entry 5:   Sealed, Ended, Durable                              (of the journal)
//! ```

use alloc::vec::Vec;
use openraid_units::{ArrayId, ArrayOffset, DriveId, DriveLba, Instant, Sectors, SetId, SetLba, Slot, StripeIndex};

use crate::actions::{DriveOp, JobKind, ReplyStatus};
use crate::events::RequestKind;
use crate::reason::Reason;
use crate::slot_set::SlotSet;

/// An operation, by its place in the table and the use of that place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpName(pub u64);

/// The subject of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StepSubject {
    /// A host request, by its number, counted from 1.
    Request(u64),
    /// An operation.
    Op(OpName),
    /// An entry of the journal.
    Entry(u64),
}

/// The owner of an operation's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOwner {
    /// A host request.
    Request(u64),
    /// Another operation: this one reads the edges of its write.
    Op(OpName),
    /// A dirty unit of the cache, by its number in the set, which is destaged, and the reason for doing it now.
    Unit(u64, Reason),
}

/// The work of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Reads an extent directly.
    Read,
    /// Reads rows of a stripe, and reconstructs unreadable data.
    RowRead,
    /// Writes an extent.
    Write,
    /// Writes rows of a stripe, parity included.
    RowWrite,
    /// Tells members that an extent is not needed.
    Discard,
    /// Makes the members durable.
    Flush,
    /// Writes the dirty data of a range of a set without parity.
    Destage,
    /// Writes the dirty data of a stripe.
    RowDestage,
}

/// The place of an operation's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepPlace {
    /// An extent of the set.
    Extent {
        /// First sector.
        at: SetLba,
        /// Length in sectors.
        len: Sectors,
    },
    /// Rows of a stripe.
    Rows {
        /// The stripe.
        stripe: StripeIndex,
        /// First row: sectors from the start of each chunk.
        lo: u32,
        /// The row after the last one.
        hi: u32,
        /// First data column, and number of columns.
        columns: (u16, u16),
    },
    /// The whole set.
    Whole,
}

/// The event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepEvent {
    /// A host request came in.
    Arrived {
        /// To this array.
        array: ArrayId,
        /// Kind of the request.
        kind: RequestKind,
        /// First byte.
        offset: ArrayOffset,
        /// Length in bytes.
        len: u64,
    },
    /// A part of its payload is in frames.
    Received {
        /// Length in bytes.
        len: u64,
    },
    /// Why something was done, or waited.
    Reason {
        /// The reason.
        reason: Reason,
        /// The figure of the reason.
        figure: u32,
    },
    /// A part of a write is in lines of the cache.
    Cached {
        /// Set.
        set: SetId,
        /// The dirty unit it belongs to.
        unit: u64,
        /// Length in sectors.
        len: Sectors,
        /// The entry of the journal that has it; 0 is none.
        entry: u64,
    },
    /// A part of a read was in lines of the cache.
    Found {
        /// Length in sectors.
        len: Sectors,
    },
    /// An operation was made.
    Made {
        /// The owner of its work.
        owner: StepOwner,
        /// In which set.
        set: SetId,
        /// Its work.
        work: Work,
        /// The place.
        place: StepPlace,
    },
    /// The range that it waited for was granted.
    Granted,
    /// The write method was chosen.
    Planned {
        /// The reason.
        reason: Reason,
        /// Number of member reads of the other method; 0 if there was none.
        rejected: u32,
        /// Slots that get new parity.
        parity: SlotSet,
        /// Slots whose bytes must be recovered.
        lost: SlotSet,
    },
    /// A member got a command.
    Asked {
        /// Slot of the member.
        slot: Slot,
        /// Its drive.
        drive: DriveId,
        /// The operation on the drive.
        op: DriveOp,
        /// First sector of the drive.
        lba: DriveLba,
        /// Length in sectors.
        len: Sectors,
        /// It waits in the controller's queue, because the drive has its maximum number of commands.
        waits: bool,
    },
    /// A member's command ended, with or without an error.
    Ended {
        /// Slot of the member.
        slot: Slot,
        /// Its drive; for an entry of the journal, the journal's drive.
        drive: DriveId,
        /// The operation on the drive.
        op: DriveOp,
        /// First sector of the drive.
        lba: DriveLba,
        /// Length in sectors.
        len: Sectors,
        /// Time of the command.
        asked: Instant,
        /// Time at which the drive got it.
        begun: Instant,
        /// Did it succeed?
        ok: bool,
    },
    /// A computation was requested.
    Computing {
        /// Kind of the computation.
        kind: JobKind,
        /// Columns.
        columns: u16,
        /// Bytes of each.
        len: u32,
    },
    /// All requested computations are done.
    Computed,
    /// The data to be written is in this entry of the journal.
    Logged {
        /// Number of the entry.
        entry: u64,
    },
    /// An entry of the journal is written to its devices.
    Sealed {
        /// Sectors, header included.
        sectors: Sectors,
        /// Records in it.
        records: u32,
    },
    /// The entry is durable; for an operation, its records in the journal or the partial parity log are.
    Durable,
    /// A part of the read data is sent to the host.
    Sending {
        /// Length in bytes.
        len: u64,
    },
    /// An operation ended.
    Done {
        /// The error, if the operation failed.
        error: Option<ReplyStatus>,
    },
    /// The host has its answer.
    Replied {
        /// The status.
        status: ReplyStatus,
    },
}

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Time of the step.
    pub at: Instant,
    /// The subject.
    pub subject: StepSubject,
    /// Its event.
    pub event: StepEvent,
}

/// The last steps.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    on: bool,
    ring: Vec<Step>,
    next: usize,
    /// Number of steps since keeping began.
    total: u64,
}

impl Steps {
    /// The steps that are kept, the oldest first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Step> {
        self.ring[self.next..].iter().chain(&self.ring[..self.next])
    }

    /// Number of steps since they are kept, including dropped ones; `None` if none are kept.
    pub(crate) fn traced(&self) -> Option<u64> {
        self.on.then_some(self.total)
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Keep the last `count` steps; keep none if it is 0.
    pub(crate) fn keeping(count: usize) -> Self {
        Self { on: count > 0, ring: Vec::with_capacity(count), next: 0, total: 0 }
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.total += 1;
        if self.ring.len() < self.ring.capacity() {
            self.ring.push(step);
        } else {
            self.ring[self.next] = step;
            self.next = (self.next + 1) % self.ring.len();
        }
    }
}
