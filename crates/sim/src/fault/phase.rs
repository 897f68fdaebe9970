//! The phase of an engine, as seen from its drives. Phases are the targets of aimed cuts and the unit of coverage.

use std::fmt;

use super::enum_words::worded;

worded! {
    /// A phase. Several phases may hold at the same time.
    Phase

    /// No command is under way, and every member is up to date.
    Rest = "no command is out";
    /// A host's write is on its way to a member.
    WriteOut = "a host's write is on its way to a member";
    /// A write of the cache is on its way to a member.
    DestageOut = "a destage is on its way to a member";
    /// A write of a rebuild, a resync or a repair is on its way.
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
    /// A journal entry and a destage are on their way.
    EntryBesideDestage = "a journal entry and a destage are on their way";
    /// The journal is lost, and data that it promised is on its way to a member.
    DestageWithoutJournal = "a destage is on its way after the journal was lost";
    /// A superblock of the journal is on its way.
    JournalSuperblockOut = "a superblock of the journal is on its way";
    /// A member has failed, and the superblocks of the others do not yet say so.
    Failing = "the failure of a member is not recorded yet";
    /// A session with the journal begins or ends.
    SessionMoves = "a session with the journal begins or ends";
    /// A background task runs.
    TaskRuns = "a background task runs";
    /// Bits of the bitmap have just been cleared.
    BitCleared = "bits of the bitmap have just been cleared";
    /// A member's superblock has just been written with another position.
    Checkpointed = "a member's position has just been stored";
    /// A background task has just ended.
    TaskEnded = "a background task has just ended";
    /// A host's write has just been answered.
    Answered = "a host's write has just been answered";
    /// A change of shape waits for the cache and the journal.
    ShapeDrains = "a change of shape waits for dirty data";
    /// The begin of a change is being recorded with the mark that md does not know.
    ShapeAnnounced = "the begin of a change of shape is being recorded, with its mark";
    /// The begin of a change is being recorded without the mark.
    ShapeBegins = "the begin of a change of shape is being recorded";
    /// A change writes data to its new places.
    ShapeMoves = "data is on its way to its new place";
    /// Members are flushed for the position of a change.
    ShapeFlushes = "members are flushed for the position of a change of shape";
    /// A position is on its way to members, and no member has it.
    ShapeWaveOne = "the first members get the position of a change of shape";
    /// Some members have the position.
    ShapeWaveTwo = "the other members get the position of a change of shape";
    /// Everything has moved, and old operations are waited for.
    ShapeSettles = "everything has moved, and old operations end";
    /// The end of a change is being recorded with the mark that md does not know.
    ShapeEndGuarded = "the end of a change of shape is being recorded, with its mark";
    /// The end of a change is being recorded without the mark.
    ShapeEnds = "the end of a change of shape is being recorded";
}

impl Phase {
    /// The phases of an array whose shape does not change.
    #[must_use]
    pub fn steady() -> &'static [Self] {
        &Self::ALL[..Self::ShapeDrains as usize]
    }

    /// The phases of a change of shape.
    #[must_use]
    pub fn of_changes() -> &'static [Self] {
        &Self::ALL[Self::ShapeDrains as usize..]
    }

    /// Whether the phase seldom begins twice in a run.
    #[must_use]
    pub const fn is_single(self) -> bool {
        matches!(
            self,
            Self::Failing
                | Self::TaskEnded
                | Self::DestageWithoutJournal
                | Self::ShapeDrains
                | Self::ShapeAnnounced
                | Self::ShapeBegins
                | Self::ShapeSettles
                | Self::ShapeEndGuarded
                | Self::ShapeEnds
        )
    }
}

/// A set of phases.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Phases(u32);

impl Phases {
    /// Add a phase.
    pub fn insert(&mut self, phase: Phase) {
        self.0 |= 1 << phase as u32;
    }
    /// Add a phase if `holds`.
    pub fn insert_if(&mut self, holds: bool, phase: Phase) {
        if holds {
            self.insert(phase);
        }
    }
    /// Whether the set contains a phase.
    #[must_use]
    pub const fn contains(self, phase: Phase) -> bool {
        self.0 >> phase as u32 & 1 == 1
    }
    /// All phases of the set.
    pub fn iter(self) -> impl Iterator<Item = Phase> {
        Phase::ALL.iter().copied().filter(move |phase| self.contains(*phase))
    }
    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
