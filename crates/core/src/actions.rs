//! The controller's output: five kinds of messages.
//!
//! ```text
//!  DriveCommand   frames <-> drive     "channels"
//!  Transfer       host   <-> frames    "host DMA"
//!  ParityJob      frames  -> frames    "XOR engine"
//!  Reply          the end of a host request
//!  Notice         something an administrator may want to know
//! ```
//!
//! Actions are valid until the next [`Actions::clear`]. Their ranges refer to the arenas next to them. The controller's
//! limits bound all of them, so that nothing grows after start.

use alloc::vec::Vec;
use openraid_units::{ArrayId, Bytes, DriveId, DriveLba, Instant, PoolOffset, Sectors, Slot, Tag, Token};

use crate::admin_answer::AdminReply;
use crate::check_results::{MismatchRange, ScrubEnd, ScrubMode};
use crate::limits::{Limits, MEMBERS_MAX, METADATA_BYTES_MAX};
use crate::settings::{Load, Policy, Tuning};

/// The operation of a drive command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveOp {
    /// Read `len` sectors.
    Read,
    /// Write `len` sectors; with `fua` they are on stable media when the command completes.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Make durable every write that completed before this command was issued.
    Flush,
    /// The range is not needed any more. It reads as zero afterwards only if [`crate::events::DriveInfo`] guarantees
    /// that.
    Discard,
    /// Make the range read as zero.
    WriteZeroes {
        /// The device may release the space of the range (a hole).
        may_discard: bool,
    },
}

/// The place of the bytes of a drive command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// No payload.
    None,
    /// `len` sectors of the frame pool from here, contiguous.
    Frames(PoolOffset),
    /// Bytes of [`Actions::metadata`], to be copied by the driver before the actions are cleared.
    Metadata(MetadataRange),
}

/// A range of [`Actions::metadata`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetadataRange {
    /// First byte.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

/// The purpose of a drive command, in the order in which queues prefer them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum IoClass {
    /// Superblocks, bitmaps: other work waits for them.
    Metadata,
    /// A host waits.
    Foreground,
    /// From the cache to the members.
    Destage,
    /// Reads for data that a host has not requested yet.
    ReadAhead,
    /// Redundancy is being restored.
    Rebuild,
    /// Patrol.
    Scrub,
}

impl IoClass {
    /// Number of classes.
    pub(crate) const COUNT: usize = Self::Scrub as usize + 1;
}

/// A command to a drive. Completed by [`crate::events::Completion::Drive`] with the same tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveCommand {
    /// Name of this command.
    pub tag: Tag,
    /// Number of the drive.
    pub drive: DriveId,
    /// The operation on the drive.
    pub op: DriveOp,
    /// First sector.
    pub lba: DriveLba,
    /// Sectors; zero for [`DriveOp::Flush`].
    pub len: Sectors,
    /// Payload.
    pub data: Data,
    /// Its purpose.
    pub class: IoClass,
}

/// The direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Host payload into frames (a write).
    FromHost,
    /// Frames to the host (a read).
    ToHost,
}

/// Copy between the host and frames. Transfers of one request come in order of `offset`, and must be carried out in
/// that order. Each is completed by [`crate::events::Completion::Transfer`]; until then its frames do not change.
///
/// The transfers of a successful read are its answer: the one with `last` ends the request, and no [`Reply`] follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Name of this transfer.
    pub tag: Tag,
    /// The host's request.
    pub token: Token,
    /// Its direction.
    pub direction: Direction,
    /// First byte in the frame pool.
    pub at: PoolOffset,
    /// First byte within the request's payload.
    pub offset: u32,
    /// Length in bytes.
    pub len: u32,
    /// Is this the last transfer of the request?
    pub last: bool,
}

/// One column of a parity job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobColumn {
    /// The exponent of g that this column has in Q; for copies, the number of the copy.
    pub index: u8,
    /// The column's bytes: new bytes, or the place for recovered ones.
    pub at: PoolOffset,
    /// The column's old bytes, for [`JobKind::Update`] and the source of [`JobKind::Copy`].
    pub old: PoolOffset,
}

/// A computation on frames. Each column is `len` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// Compute `p` and `q` (the named ones) from all columns.
    Generate,
    /// Change `p` and `q` (the named ones) in place, by old and new bytes of the columns.
    Update,
    /// Compute the last `lost` columns from the columns before them and `p`, `q` (the named ones).
    Recover {
        /// Number of columns, at the end, to be computed: 1 or 2.
        lost: u16,
    },
    /// Do `p` and `q` (the named ones) match the columns? The verdict names the wrong column if that can be determined.
    Check,
    /// Are all columns equal? The verdict names the odd one out if there is a majority.
    Compare,
    /// The CRC-32C of the one column, in the usual sense (register inverted at both ends).
    Checksum,
    /// Copy `old` to `at` in each column. Copies are carried out in the order in which they are issued, and before all
    /// later actions: an action that reads the result of a copy need not wait for the end of the copy. No other job,
    /// command or transfer that is under way touches either side.
    Copy,
}

/// A computation on frames. Completed by [`crate::events::Completion::Job`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParityJob {
    /// Name of this job.
    pub tag: Tag,
    /// What to compute.
    pub kind: JobKind,
    /// Number of bytes of each column. For [`JobKind::Copy`] any number, otherwise a multiple of 512.
    pub len: u32,
    /// First column in [`Actions::columns`].
    pub columns_start: u32,
    /// Number of columns.
    pub columns_len: u16,
    /// The XOR syndrome, if the job has one.
    pub p: Option<PoolOffset>,
    /// The Reed-Solomon syndrome, if the job has one.
    pub q: Option<PoolOffset>,
}

/// How a host request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyStatus {
    /// The request is done.
    Ok,
    /// The data is unavailable: too many members are lost, or sectors are bad without redundancy.
    IoError,
    /// The request does not fit the array: beyond its end, or too large.
    OutOfRange,
    /// The array refuses writes.
    ReadOnly,
    /// The storage of a member is full. What was written before is still there.
    NoSpace,
    /// The array is stopped or stopping, or does not exist.
    Offline,
}

/// The end of a host request (except a read that succeeded, see [`Transfer`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The host's request.
    pub token: Token,
    /// The final status.
    pub status: ReplyStatus,
}

/// How a slot gets a new member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// The slot has no full member: the data comes from the other members.
    Rebuild,
    /// The slot has a working member, which is copied to its replacement.
    Replacement,
}

impl Fill {
    /// The word for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Replacement => "replacement",
        }
    }
}

/// Something that an administrator may need to know. Names are mdadm's monitor events if it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeKind {
    /// A member left the array, for this reason.
    Fail(crate::reason::FailReason),
    /// A spare took over a slot.
    SpareActive,
    /// A rebuild or replacement of this slot began.
    RebuildStarted(Fill),
    /// A rebuild or replacement of this slot is complete.
    RebuildFinished(Fill),
    /// A resync (parity or copies made consistent) began.
    ResyncStarted,
    /// A resync ended.
    ResyncFinished,
    /// The shape of the set begins to change.
    ReshapeBegun,
    /// The change of the set's shape goes back from here.
    ReshapeCancelled,
    /// The set has its new shape.
    ReshapeFinished,
    /// An administrator has given hosts this part of the array.
    CapacityLimited {
        /// Its sectors.
        to: Sectors,
    },
    /// A check or repair began.
    CheckStarted(ScrubMode),
    /// A check or repair ended, with this outcome.
    CheckEnded(ScrubEnd),
    /// A rebuild or replacement of this slot ended early.
    RebuildAborted(Fill),
    /// A resync ended early.
    ResyncAborted,
    /// A sector could not be read and was rewritten from redundancy.
    SectorRepaired(DriveLba),
    /// A sector is lost: no redundancy was left to restore it. It is in the member's bad-block log.
    SectorLost(DriveLba),
    /// The members do not match here, and nothing was changed: no member can be named, or only a check was requested.
    RowMismatch(MismatchRange),
    /// The members did not match here: the wrong member was corrected, or parity or the other copies were rewritten.
    RowCorrected(MismatchRange),
    /// Redundancy is reduced.
    Degraded {
        /// Number of further members that may fail, whichever they are.
        tolerated: u16,
    },
    /// Its data cannot be read any more.
    Failed,
    /// It had failed, and works again: the members were only out of reach.
    Returned,
    /// A drive did not answer in time.
    Timeout,
    /// Acknowledged writes were still in the cache and could not be written.
    DirtyLost {
        /// Number of sectors.
        sectors: u64,
    },
    /// A device of the journal does not work; the other one carries the journal alone.
    JournalDegraded,
    /// The device is up to date: both devices of the journal have everything again.
    JournalMirrored,
    /// A part of the log cannot be read, so that the other device cannot be brought up to date.
    JournalUnreadable,
    /// No device of the journal works any more: writes are acknowledged when they are on the members.
    JournalLost,
    /// The journal is full of entries that their array cannot take: the others continue without it.
    JournalFull,
    /// The journal's table is full: writes of this array are acknowledged when they are on the members.
    JournalTableFull,
    /// The adaptive policy has changed the tuning.
    AdaptiveSwitched {
        /// The old tuning.
        from: Tuning,
        /// The new tuning.
        to: Tuning,
        /// The load that caused it.
        load: Load,
    },
    /// The settings were changed.
    PolicyChanged {
        /// The old settings.
        from: Policy,
        /// The new settings.
        to: Policy,
    },
    /// A flush of a member, or a write of its metadata, failed, and the array cannot do without the member: no flush
    /// succeeds until the array is assembled again.
    FlushFailed,
    /// The storage of a member is full: writes that need room there are refused.
    NoRoom,
    /// There is room on this member again.
    RoomAgain,
}

/// A notice with its place and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Time of the notice.
    pub at: Instant,
    /// Number of the array.
    pub array: ArrayId,
    /// The slot, if the notice is about one.
    pub slot: Option<Slot>,
    /// The drive, if the notice is about one.
    pub drive: Option<DriveId>,
    /// Kind of the notice.
    pub kind: NoticeKind,
}

/// Maximum number of notices between two drains; further ones are only counted.
pub const NOTICES_MAX: usize = 256;

/// The actions of one or more calls of [`crate::Controller::advance`], and the arenas to which they refer. The default
/// value takes no memory, and is a placeholder while the real actions are processed.
#[derive(Debug, Default)]
pub struct Actions {
    /// Commands to drives.
    pub drive: Vec<DriveCommand>,
    /// Copies between host and frames.
    pub transfers: Vec<Transfer>,
    /// Computations.
    pub jobs: Vec<ParityJob>,
    /// Maximum number of jobs that leaves room for the jobs of one more operation.
    jobs_most: usize,
    /// Ends of host requests.
    pub replies: Vec<Reply>,
    /// Notices for administrators; at most [`NOTICES_MAX`].
    pub notices: Vec<Notice>,
    /// Notices that did not fit.
    pub notices_dropped: u64,
    /// Answers to administrative commands.
    pub admin: Vec<AdminReply>,
    /// Columns of [`Actions::jobs`].
    pub columns: Vec<JobColumn>,
    /// Bytes of metadata commands.
    pub metadata: Vec<u8>,
}

/// Maximum number of jobs that one operation issues: two copies at the edges of each member's rows, or one for each part
/// of a gathered write and one for each column, and its parity.
pub(crate) const JOBS_SLACK: usize = 4 * MEMBERS_MAX as usize;
/// Maximum number of columns between two drains.
const COLUMNS_MAX: usize = 16 * 1024;
/// Maximum number of metadata bytes between two drains.
const METADATA_MAX: usize = 2 << 20;

impl Actions {
    /// Room for everything that a controller with these limits can have outstanding.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let jobs_most = (limits.ops_max + limits.pieces_max) as usize;
        Self {
            drive: Vec::with_capacity(limits.commands_max as usize),
            transfers: Vec::with_capacity(limits.pieces_max as usize),
            jobs: Vec::with_capacity(jobs_most + JOBS_SLACK),
            jobs_most,
            replies: Vec::with_capacity(limits.requests_max as usize),
            notices: Vec::with_capacity(NOTICES_MAX),
            notices_dropped: 0,
            admin: Vec::new(),
            columns: Vec::with_capacity(COLUMNS_MAX),
            metadata: Vec::with_capacity(METADATA_MAX),
        }
    }

    /// Issue a job without parity, on one column of `len` bytes.
    pub(crate) fn push_job(&mut self, tag: Tag, kind: JobKind, (at, old): (PoolOffset, PoolOffset), len: Bytes) {
        let columns_start = u32::try_from(self.columns.len()).expect("the arena is small");
        let len = u32::try_from(len.get()).expect("a piece is at most 1 MiB");
        self.columns.push(JobColumn { index: 0, at, old });
        self.jobs.push(ParityJob { tag, kind, len, columns_start, columns_len: 1, p: None, q: None });
    }

    /// Forget all actions; keeps the memory.
    pub fn clear(&mut self) {
        self.drive.clear();
        self.transfers.clear();
        self.jobs.clear();
        self.replies.clear();
        self.notices.clear();
        self.notices_dropped = 0;
        self.admin.clear();
        self.columns.clear();
        self.metadata.clear();
    }

    /// Is there nothing to do?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.drive.is_empty()
            && self.transfers.is_empty()
            && self.jobs.is_empty()
            && self.replies.is_empty()
            && self.notices.is_empty()
            && self.admin.is_empty()
    }

    /// Is there room for another operation's jobs and metadata? If not, the driver drains first.
    pub(crate) fn has_room(&self) -> bool {
        // The comparison is made before every step, so the constants are computed beforehand.
        const COLUMNS: usize = COLUMNS_MAX - 4 * MEMBERS_MAX as usize;
        const METADATA: usize = METADATA_MAX - METADATA_BYTES_MAX * 2 * MEMBERS_MAX as usize;
        self.jobs.len() <= self.jobs_most && self.columns.len() <= COLUMNS && self.metadata.len() <= METADATA
    }

    pub(crate) fn notice(&mut self, notice: Notice) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(notice);
        } else {
            self.notices_dropped += 1;
        }
    }

    /// The bytes of a metadata command.
    #[must_use]
    pub fn metadata_of(&self, range: MetadataRange) -> &[u8] {
        &self.metadata[range.start as usize..(range.start + range.len) as usize]
    }

    /// The columns of a job.
    #[must_use]
    pub fn columns_of(&self, job: &ParityJob) -> &[JobColumn] {
        &self.columns[job.columns_start as usize..][..job.columns_len as usize]
    }
}
