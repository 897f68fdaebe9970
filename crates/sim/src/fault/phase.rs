//! The phase that an engine is in, seen from its drives: targets of aimed cuts, and the unit of coverage.

use std::fmt;

use super::worded::worded;

worded! {
    /// A phase. Several may hold at the same time.
    Phase

    /// No command is under way, and no member is stale.
    Rest = "no command is out";
    /// A host's write is on its way to a member.
    WriteOut = "a host's write is on its way to a member";
    /// A write of the cache is.
    DestageOut = "a destage is on its way to a member";
    /// A write of a rebuild, a resync or a repair is.
    FillOut = "a write of a background task is on its way";
    /// A member is being flushed.
    FlushOut = "a member is being flushed";
    /// A superblock is on its way to a member.
    SuperblockOut = "a superblock is on its way";
    /// Members have different event counts.
    BetweenWaves = "some members have a newer superblock than others";
    /// A page of the bitmap is on its way.
    BitmapOut = "a page of the bitmap is on its way";
    /// A bad-block log is on its way.
    BadBlocksOut = "a bad-block log is on its way";
    /// A partial parity log is on its way.
    PartialLogOut = "a partial parity log is on its way";
    /// An entry of the journal is on its way.
    EntryOut = "a journal entry is on its way";
    /// So is a destage.
    EntryBesideDestage = "a journal entry and a destage are on their way";
    /// The journal is lost, and what it had promised is on its way to a member.
    DestageWithoutJournal = "a destage is on its way after the journal was lost";
    /// A superblock of the journal is on its way.
    JournalSuperblockOut = "a superblock of the journal is on its way";
    /// A member has failed, and the others do not say so yet.
    Failing = "the failure of a member is not recorded yet";
    /// A session with the journal begins or ends.
    SessionMoves = "a session with the journal begins or ends";
    /// A background task runs.
    TaskRuns = "a background task runs";
    /// Just now bits of the bitmap were cleared.
    BitCleared = "bits of the bitmap have just been cleared";
    /// Just now a member's superblock says another position.
    Checkpointed = "a member's position has just been stored";
    /// Just now a background task has ended.
    TaskEnded = "a background task has just ended";
    /// Just now a host's write was answered.
    Answered = "a host's write has just been answered";
}

/// A set of phases.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Phases(u32);

impl Phases {
    /// One more.
    pub fn insert(&mut self, phase: Phase) {
        self.0 |= 1 << phase as u32;
    }
    /// One more, if this holds.
    pub fn insert_if(&mut self, holds: bool, phase: Phase) {
        if holds {
            self.insert(phase);
        }
    }
    /// Is it in?
    #[must_use]
    pub const fn contains(self, phase: Phase) -> bool {
        self.0 >> phase as u32 & 1 == 1
    }
    /// Each.
    pub fn iter(self) -> impl Iterator<Item = Phase> {
        Phase::ALL.iter().copied().filter(move |phase| self.contains(*phase))
    }
    /// Is none in?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
