//! Bugs that are planted in the engine to show that the torture finds them.
//!
//! Each bug breaks one guarantee of the engine in one place. A build without the feature `planted` has none of them:
//! [`Planted::has`] is a constant there, and the check disappears. The service is never built with the feature, which
//! `cargo xtask purity` checks.

macro_rules! flaws {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $text:literal;)*) => {
        /// A bug in the engine.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Flaw {
            $($(#[$doc])* $name,)*
        }
        impl Flaw {
            /// All planted bugs.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// Its name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
            /// Its effect in words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

flaws! {
    /// Rule 11 of the write path, for mirrors.
    DestageBeforeEntry = "destage-before-entry", "a mirror's destage goes out before its journal entry is durable";
    /// The promise of the journal.
    AnswerBeforeEntry = "answer-before-entry", "a write is answered before its journal entry is durable";
    /// Rule 5.
    BitClearedOverWrite = "bit-cleared-over-write", "a bitmap bit is cleared although a write came after the second look";
    /// Rule 4.
    FailedOneBehind = "failed-one-behind", "a member that failed is recorded one event behind instead of two";
    /// Rule 4, at a start.
    AbsentTwoBehind = "absent-two-behind", "a member that is absent at a start is recorded two events behind instead of three";
    /// Rule 10.
    LogNeverArmed = "log-never-armed", "the generation of partial parity logs stays as it is when the array becomes consistent";
    /// Rule 8.
    CheckpointUnflushed = "checkpoint-unflushed", "the checkpoint of a rebuild is stored before the members are flushed";
    /// Rule 4, the reply.
    AnswerBesideFailure = "answer-beside-failure", "a write is answered before the failure of a member is durable on the others";
    /// Rule 9, the last units.
    TaskEndsEarly = "task-ends-early", "a background task completes while its last units are still being written";
    /// Rule 9, the role.
    RebuiltBeforeRole = "rebuilt-before-role", "a replacement takes over before its superblock says that it is complete";
    /// Rule 11, the tail.
    TailUnflushed = "tail-unflushed", "the journal's tail moves on without a flush of the members";
    /// Rule 11, the mark.
    SessionMarkLate = "session-mark-late", "the journal acknowledges writes before the members' superblocks name it";
    /// Rule 6.
    CleanUnflushed = "clean-unflushed", "an array is marked clean without a flush of its members";
    /// Rule 10, the log's next use.
    LogReusedUnflushed = "log-reused-unflushed", "a partial parity log is written over without a flush of the members";
    /// Rule 3, after a cut.
    CatchUpCounted = "catch-up-counted", "bringing up members that are one event behind raises the event count";
    /// Rule 12.
    WriteGateOpen = "write-gate-open", "with a log or a bitmap a write begins although the failure of a member is not durable";
    /// Rule 11, the journal that lacks rows.
    StaleJournalUnmarked = "stale-journal-unmarked", "rows are written without a lost journal, and no superblock says that it lacks them";
    /// Rule 2.
    BitmapLate = "bitmap-late", "members are written before the bitmap's bit is durable";
    /// Rule 1.
    ActiveMarkLate = "active-mark-late", "members are written before their superblocks say that the array is active";
    /// Rule 8, the units in work.
    CheckpointAtNext = "checkpoint-at-next", "the checkpoint of a rebuild covers units that are still being written";
    /// A pause changes nothing.
    ResumeSkipsUnit = "resume-skips-a-unit", "a task that goes on after a pause leaves out a unit";
    /// A member that refuses a write lacks it.
    RefusalIgnored = "refusal-ignored", "a member that refuses a write with a media error stays, without the write";
    /// What the log has of a refused write does not fit later records.
    RefusalUnmarked = "refusal-unmarked", "members without room refuse a write that the journal has, and the next start relies on the journal";
    /// A member that refuses a discard gets zeroes.
    DiscardRefusalIgnored = "discard-refusal-ignored", "a member that refuses a discard gets no zeroes";
    /// A stripe is discarded if all members read zeroes after it.
    DiscardTrusted = "discard-trusted", "a stripe is discarded although a member promises no zeroes";
    /// Addresses have 64 bits.
    AddressCut = "address-cut", "commands of operations go to the lower 32 bits of their address";
    /// A repair changes sectors although no member is known to be wrong.
    RepairGuesses = "repair-guesses", "a repair that knows no wrong member writes parity or copies again";
    /// A check of a degraded double parity compares the parity that is left.
    DegradedCheckBlind = "degraded-check-blind", "a check compares nothing while a member is missing";
    /// A set is optimal when the superblocks say so.
    OptimalEarly = "optimal-early", "an array is called optimal while a member is being rebuilt";
    /// A device that joins counts when it has the whole log.
    JoinedEarly = "joined-early", "a journal device that joins counts before the log is copied";
    /// A round of the journal flushes every set in session.
    RoundOfOneSet = "round-of-one-set", "the journal's tail moves on after a flush of one of two arrays";
    /// Each command has its time limit.
    OverdueLate = "overdue-late", "a silent drive is noticed when a drive that waits for room is overdue";
    /// Rule S1.
    MovedBeforeShape = "moved-before-shape", "data moves before the superblocks name the new shape without a mark";
    /// Rule S2, the start of the data.
    OffsetIgnored = "offset-ignored", "the room of a change of shape is counted as if the start of the data moved twice as far";
    /// Rule S2, the durable position.
    RoomFromMoved = "room-from-moved", "the room of a change of shape is counted from what has moved, recorded or not";
    /// Rule S2, whole stripes.
    OldStripeRoundedUp = "old-stripe-rounded-up", "the old stripe in which the recorded position is counts as free";
    /// Rule S3.
    PositionUnflushed = "position-unflushed", "the position of a change of shape is recorded before the members are flushed";
    /// Rule S4.
    AnswerAheadOfPosition = "answer-ahead-of-position", "hosts write to the new side before its position is durable";
    /// Rule S5.
    EndUnguarded = "end-unguarded", "the end of a change of shape is recorded without the mark that md does not know";
    /// Rule S6.
    GrownTooEarly = "grown-too-early", "the new capacity is offered before the end of a change of shape is durable";
    /// Rule S7.
    LostBecomesZero = "lost-becomes-zero", "a block that no member has becomes zeroes at its new place";
    /// A resync covers both sides.
    BitForOneSide = "bit-for-one-side", "a resync by the bitmap in a change of shape covers the old side only";
    /// A member that is filled is read only where it has been filled.
    NewMemberTrusted = "new-member-trusted", "a member that is filled in a change of shape is read as if it had everything";
    /// Each superblock is of one moment.
    TurnBesideRecord = "turn-beside-record", "a change of shape turns around or ends while superblocks are being written";
    /// Rule S9.
    LateRead = "late-read", "places are read for a move and written over while operations with the old map of them are under way";
}

/// The planted bug, if any.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Planted {
    #[cfg(feature = "planted")]
    flaw: Option<Flaw>,
}

#[cfg(feature = "planted")]
impl Planted {
    pub(crate) const fn new(flaw: Flaw) -> Self {
        Self { flaw: Some(flaw) }
    }

    /// Is this bug planted?
    pub(crate) fn has(self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

#[cfg(not(feature = "planted"))]
impl Planted {
    /// Is this bug planted?
    pub(crate) const fn has(self, _: Flaw) -> bool {
        false
    }
}
