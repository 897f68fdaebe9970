//! The engine's planted bugs: the aimed runs that find each, and the judge that must find it.

use openraid_core::planted::Flaw;

use super::{BugRun, ARRAY_REFUSED, MISFIT, PATROL, REFUSED, WRONG_READ};

/// A cut costs a complete array a member.
const MEMBER_LOST: &str = "a cut alone has cost the array a member";
/// A member that lacks a write has a superblock that is too new.
const NOT_STALE: &str = "a member that lacks a write could be taken";
/// The status contradicts the drives.
const STATUS: &str = "the status is wrong";
/// After a cut no mark, bitmap or log tells of a row that does not match.
const UNCOVERED: &str = "a row in doubt is covered by nothing";
/// Logged data must not need a resync.
const RESYNC: &str = "a resync, although the journal had everything";
/// A log, or its target, does not match what the members need.
const NOT_STARTED: &str = "the array is not started";

/// An array that had grown has not.
const SMALLER: &str = "the array is smaller than before";
/// A silent drive is a member for longer than its time limit.
const SILENT: &str = "panic: a drive that does not answer is noticed too late";

/// Number of runs of one kind, from the known one on, within which the bug is found.
pub(super) const fn found_within(_: Flaw) -> u64 {
    20
}

/// A run that finds the bug.
pub(super) const fn known_run(flaw: Flaw) -> BugRun {
    BugRun::Aimed(match flaw {
        Flaw::TailUnflushed => 1,
        Flaw::CleanUnflushed => 2,
        Flaw::ActiveMarkLate => 13,
        Flaw::FailedOneBehind => 17,
        Flaw::TaskEndsEarly => 23,
        Flaw::LogReusedUnflushed => 28,
        Flaw::LogNeverArmed => 29,
        Flaw::AbsentTwoBehind => 32,
        Flaw::RebuiltBeforeRole => 45,
        Flaw::WriteGateOpen => 70,
        Flaw::AnswerBesideFailure => 71,
        Flaw::CatchUpCounted => 77,
        Flaw::CheckpointUnflushed => 91,
        Flaw::BitmapLate => 123,
        Flaw::DestageBeforeEntry => 367,
        Flaw::AnswerBeforeEntry => 1,
        Flaw::StaleJournalUnmarked => 407,
        Flaw::BitClearedOverWrite => 961,
        Flaw::SessionMarkLate => 661,
        Flaw::CheckpointAtNext => return BugRun::Swarm(133),
        Flaw::ResumeSkipsUnit => return BugRun::Swarm(30),
        Flaw::RefusalIgnored => return BugRun::Swarm(5),
        Flaw::RefusalUnmarked => return BugRun::Swarm(302_186),
        Flaw::DiscardRefusalIgnored => return BugRun::Swarm(87),
        Flaw::DiscardTrusted => return BugRun::Swarm(290),
        Flaw::AddressCut => return BugRun::Swarm(5),
        Flaw::RepairGuesses => return BugRun::Swarm(16),
        Flaw::DegradedCheckBlind => return BugRun::Swarm(8),
        Flaw::OptimalEarly => return BugRun::Swarm(8),
        Flaw::JoinedEarly => return BugRun::Swarm(250),
        Flaw::RoundOfOneSet => return BugRun::Swarm(52),
        Flaw::OverdueLate => return BugRun::Swarm(38),
        Flaw::OffsetIgnored => return BugRun::Changing(48),
        Flaw::OldStripeRoundedUp => return BugRun::Changing(55),
        Flaw::AnswerAheadOfPosition => return BugRun::Changing(136),
        Flaw::GrownTooEarly => return BugRun::Changing(2085),
        Flaw::LostBecomesZero => return BugRun::Changing(1314),
        Flaw::BitForOneSide => return BugRun::Changing(66),
        Flaw::LateRead => return BugRun::Changing(88),
        Flaw::EndUnguarded => return BugRun::Changing(73),
        Flaw::NewMemberTrusted => return BugRun::Changing(45),
        Flaw::TurnBesideRecord => return BugRun::Changing(6877),
        Flaw::MovedBeforeShape | Flaw::RoomFromMoved | Flaw::PositionUnflushed => return BugRun::Changing(1),
    })
}

/// The words of a verdict that shows the bug.
pub(super) const fn evidence(flaw: Flaw) -> &'static [&'static str] {
    match flaw {
        Flaw::FailedOneBehind | Flaw::AbsentTwoBehind => &[NOT_STALE],
        Flaw::LogNeverArmed => &[RESYNC, ARRAY_REFUSED, NOT_STARTED],
        Flaw::RebuiltBeforeRole => &[MEMBER_LOST, ARRAY_REFUSED, STATUS],
        Flaw::CatchUpCounted => &[MEMBER_LOST, ARRAY_REFUSED],
        Flaw::SessionMarkLate => &[WRONG_READ, MISFIT, RESYNC, ARRAY_REFUSED],
        Flaw::BitmapLate
        | Flaw::ActiveMarkLate
        | Flaw::CleanUnflushed
        | Flaw::BitClearedOverWrite
        | Flaw::WriteGateOpen
        | Flaw::DestageBeforeEntry
        | Flaw::CheckpointUnflushed
        | Flaw::CheckpointAtNext => &[WRONG_READ, MISFIT, UNCOVERED],
        Flaw::AddressCut => &[WRONG_READ, MISFIT, ARRAY_REFUSED, STATUS],
        Flaw::RepairGuesses | Flaw::DegradedCheckBlind => &[PATROL],
        Flaw::OptimalEarly => &[STATUS],
        Flaw::OverdueLate => &[SILENT],
        Flaw::EndUnguarded => &[WRONG_READ, MISFIT, MEMBER_LOST, ARRAY_REFUSED],
        Flaw::GrownTooEarly => &[SMALLER],
        Flaw::TurnBesideRecord => &[ARRAY_REFUSED],
        Flaw::MovedBeforeShape
        | Flaw::OffsetIgnored
        | Flaw::RoomFromMoved
        | Flaw::OldStripeRoundedUp
        | Flaw::PositionUnflushed
        | Flaw::AnswerAheadOfPosition
        | Flaw::LostBecomesZero
        | Flaw::BitForOneSide
        | Flaw::NewMemberTrusted
        | Flaw::LateRead => &[WRONG_READ, MISFIT, UNCOVERED],
        Flaw::JoinedEarly => &[WRONG_READ, MISFIT, REFUSED, RESYNC],
        _ => &[WRONG_READ, MISFIT],
    }
}
