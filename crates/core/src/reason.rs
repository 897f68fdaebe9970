//! The engine's reasons: each decision leaves a [`Reason`] that users can read.

use openraid_units::{Instant, SetId};

/// Why a member left its array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailReason {
    /// By the administrator's command.
    Administrator,
    /// Its replacement is complete and has taken its slot.
    Replaced,
    /// The drive vanished.
    Gone,
    /// The drive did not answer in time.
    Timeout,
    /// A write failed.
    WriteError,
    /// A flush failed: data that it had acknowledged may be lost.
    FlushFailed,
    /// More media errors than the budget allows.
    ErrorBudget,
    /// The drive gave an invalid answer.
    Protocol,
    /// The storage of the member is full.
    NoSpace,
    /// The drive refuses writes.
    ReadOnly,
    /// More sectors could not be restored on it than its bad-block log can hold.
    BadBlockLogFull,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A kind of decision. Counted per set; the last ones are kept with their figures.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }
        impl Reason {
            /// All reasons, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The text for users.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
            /// The name in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}
reasons! {
    /// All data columns of the row are written: parity needs no reads.
    FullStripe = "full stripe: parity needs no reads",
    /// Read-modify-write needs fewer member reads than reading the other columns.
    ReadModifyWriteFewer = "read-modify-write: fewer member reads",
    /// Adjoining writes of several requests are written as one operation.
    WriteGathered = "adjoining writes of several requests written together",
    /// A part of a stripe waits for adjoining writes, because work of their stream is under way.
    WriteHeld = "partial stripe held for the writes that follow it",
    /// A gathered operation failed: each of its requests is written again by itself.
    WrittenAlone = "gathered write failed: its requests are written one by one",
    /// The policy forces read-modify-write.
    ReadModifyWriteForced = "read-modify-write: forced by policy",
    /// Reading the other columns needs fewer member reads.
    ReconstructFewer = "reconstruct-write: fewer member reads",
    /// Both methods need the same number of reads: reconstruct-write computes the parity from data alone.
    ReconstructEqual = "reconstruct-write: both methods need the same number of reads",
    /// Parity is not trusted beyond the resync checkpoint.
    ReconstructUntrusted = "reconstruct-write: parity not yet trusted here",
    /// A written column is on a missing member: its data goes into the parity.
    ReconstructDegraded = "reconstruct-write: a written column is missing",
    /// Missing columns had to be recovered before the parity could be computed.
    RecoverThenWrite = "missing columns recovered, then written",
    /// No parity member is there: only data is written.
    WriteNoParity = "data only: no parity member is there",
    /// Parity is written before data: a member may refuse the write, and columns that are known only through parity must
    /// stay readable.
    ParityFirst = "parity written before data: a member is full, or data is known only through parity",
    /// A member refused its write: parity was made to fit what the members hold.
    ParityFitted = "a member refused its write: parity made to fit the old data",
    /// A member of a mirror refused its write: the other copies got back what it holds.
    CopiesFitted = "a member refused its write: the other copies got the old data back",
    /// Written to every copy.
    Mirrored = "written to every copy",
    /// Written to the only copy.
    Direct = "written to the only copy",
    /// Read from the only copy.
    ReadDirect = "read from the only copy",
    /// Read from the copy whose drive has the fewest commands.
    ReadLeastPending = "read from the copy whose drive has the fewest commands",
    /// Read from the copy that continues a sequential stream.
    ReadSequential = "read from the copy that continues a sequential stream",
    /// Read from the first available copy.
    ReadPrimary = "read from the first copy",
    /// Read from the copy whose turn it is.
    ReadRoundRobin = "read from the next copy in turn",
    /// Read from the copy whose head is nearest.
    ReadNearestHead = "read from the copy whose head is nearest",
    /// A section of a long stream, read from the next copy in turn.
    ReadSection = "section of a long stream: copies take turns",
    /// Copies are not in sync yet: one fixed copy is read.
    ReadFixedCopy = "read from the first copy: not resynced here yet",
    /// A missing column was recovered from the others.
    ReadRecovered = "read recovered from the other members",
    /// A read failed and was repeated without that member.
    ReadRetried = "read again without the member that failed",
    /// A member that the array needs refused a write, which was repeated once.
    WriteRetried = "written again: the array needs the member that refused it",
    /// A bad sector was rewritten from redundancy.
    SectorRewritten = "bad sector rewritten from redundancy",
    /// The edges of a request were read first because it does not fill whole blocks.
    EdgeRead = "edges read first: the request does not fill whole blocks",
    /// The operation waited for another one on the same rows.
    WaitedForLock = "waited for another request on the same rows",
    /// After a crash the operation waited until its rows were redone from the journal.
    WaitedForRedo = "waited until its rows were redone from the journal",
    /// The write is in the cache.
    WriteCached = "write taken into the cache",
    /// A write waits for room in the ring of the journal.
    WaitedForJournal = "waited for room in the journal",
    /// A write waits until the journal session of its array has begun.
    WaitedForJournalStart = "waited until the journal may acknowledge writes of the array",
    /// A write waits until the journal session of its array has ended, because the policy does not ask for the journal,
    /// or the array cannot have it.
    WaitedForJournalEnd = "waited until the journal held nothing for the array any more",
    /// A write waits because the open group is full, and the one before it is still being written.
    WaitedForJournalWrite = "waited until the journal had written the previous group",
    /// A write waits because the log must never hold more lines than the cache can load again after a crash.
    WaitedForReplayRoom = "waited: after a crash the cache could not load more of the journal",
    /// Redo records of the write are in the journal first.
    RedoLogged = "redo records written to the journal",
    /// A write waits until the writes that the partial parity log covers are on the members, and the log may be
    /// overwritten.
    WaitedForPartialParityLog = "waited until the partial parity log could be overwritten",
    /// The write is in the partial parity log first; the figure is 1 if it does not cover whole stripes.
    PartialParityLogged = "recorded in the partial parity log first",
    /// The journal acknowledges this write.
    WriteJournalled = "write acknowledged by the journal",
    /// The cache had the requested data.
    ReadCached = "read from the cache",
    /// Read-ahead for a stream began; the figure is its window in KiB.
    ReadAheadStarted = "read-ahead began: requests are sequential",
    /// The window of a stream grew; the figure is its window in KiB.
    ReadAheadGrown = "read-ahead window grown: the stream continues",
    /// Read-ahead for a stream ended; the figure is its window in KiB.
    ReadAheadStopped = "read-ahead ended: the stream is over",
    /// The read waited for data that was being read already.
    WaitedForReadAhead = "waited for data that read-ahead was reading",
    /// The adaptive policy changed read-ahead; the figure is the share of sequential reads, in per cent.
    AdaptiveReadAhead = "adaptive: read-ahead changed, by the share of sequential reads",
    /// The adaptive policy changed the rule for mirrors; the figure is the share of sequential reads, in per cent, or
    /// the mean depth in tenths.
    AdaptiveMirror = "adaptive: the rule for mirrors changed, by the share of sequential reads and their depth",
    /// The adaptive policy changed how long dirty data waits; the figure is the share of sequential writes, in per
    /// cent.
    AdaptiveDestage = "adaptive: the destage delay changed, by the share of sequential writes and their size",
    /// The write waited for room in the cache.
    WaitedForCache = "waited for room in the cache",
    /// A write past the cache waited until overlapping dirty data was on the members.
    WaitedForDestage = "waited until earlier writes were on the members",
    /// The write waited until the active mark was durable.
    WaitedForActiveMark = "waited for the active mark",
    /// The write waited until its bitmap bit was durable.
    WaitedForBitmap = "waited for the bitmap",
    /// The operation waited for memory.
    WaitedForFrames = "waited for work memory",
    /// The reply waited until the failure of a member was durable on the others.
    WaitedForFailureMark = "waited until a member's failure was recorded",
    /// A discard of an array that the journal protects was ignored: the journal would have to record it.
    DiscardProtected = "discard ignored: the journal that protects the array cannot record it",
    /// A discard of less than a stripe, or on members that do not guarantee zeroes, was ignored.
    DiscardIgnored = "discard ignored: less than a stripe, or a member does not guarantee zeroes",
    /// A discard was passed on to the members.
    DiscardDone = "discard passed on to the members",
    /// A member refused a discard that the others accepted: it gets zeroes, so that parity matches.
    DiscardRefused = "zeroes written to a member that refused a discard",
    /// An earlier flush failed on a member that the array needs: no flush can succeed any more.
    FlushFailed = "flush refused: an earlier one failed on a member that the array needs",
    /// The range has a bad-block entry: it was read around.
    ReadAroundBadBlock = "read around a known bad block",
    /// The request waited for memory for its payload.
    WaitedForHostFrames = "request waited for memory for its payload",
    /// A dirty unit is written because all of it is dirty.
    DestageFull = "destaged: all of its unit was dirty",
    /// A dirty unit is written because it has waited long enough.
    DestageAged = "destaged: it had waited long enough",
    /// A dirty unit is written because more than the high mark of the cache was dirty.
    DestagePressed = "destaged: too much of the cache was dirty",
    /// A dirty unit is written because it pins the oldest entries of the journal, whose room is needed.
    DestageForJournal = "destaged: the journal needs the room of its entries",
    /// A dirty unit is written because a flush, a stop or another request waits for it.
    DestageUrgent = "destaged: a request waited for it",
}

impl Reason {
    /// Is it a wait, which ends with the next step of its operation or request?
    #[must_use]
    pub const fn is_wait(self) -> bool {
        matches!(
            self,
            Self::WaitedForLock
                | Self::WaitedForRedo
                | Self::WaitedForJournal
                | Self::WaitedForJournalStart
                | Self::WaitedForJournalEnd
                | Self::WaitedForJournalWrite
                | Self::WaitedForReplayRoom
                | Self::WaitedForPartialParityLog
                | Self::WaitedForReadAhead
                | Self::WaitedForCache
                | Self::WaitedForDestage
                | Self::WaitedForActiveMark
                | Self::WaitedForBitmap
                | Self::WaitedForFrames
                | Self::WaitedForFailureMark
                | Self::WaitedForHostFrames
        )
    }
}

/// How often each reason was counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReasonCounts([u64; Reason::ALL.len()]);

impl Default for ReasonCounts {
    fn default() -> Self {
        Self([0; Reason::ALL.len()])
    }
}

impl ReasonCounts {
    /// One more.
    pub fn count(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }
    /// How often.
    #[must_use]
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }
    /// The reasons given at least once, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.iter().map(|r| (*r, self.get(*r))).filter(|(_, n)| *n > 0)
    }
}

/// One explained decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEntry {
    /// Time of the decision.
    pub at: Instant,
    /// Number of the set.
    pub set: SetId,
    /// The reason.
    pub reason: Reason,
    /// The exclusion unit.
    pub unit: u64,
    /// The figure of the reason: reads of the rejected method, or a count.
    pub figure: u32,
}
