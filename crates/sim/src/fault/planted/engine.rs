//! The engine's planted bugs: the aimed runs that find each, and the judge that has to find it.

use openraid_core::planted::Flaw;

use super::{ARRAY_REFUSED, MISFIT, WRONG_READ};

/// A cut costs an array that was whole a member.
const MEMBER_LOST: &str = "a cut alone has cost the array a member";
/// A superblock of a member that lacks a write is too new.
const NOT_STALE: &str = "a member that lacks a write could be taken";
/// Logged data needs no resync.
const RESYNC: &str = "a resync, although the journal had everything";
/// A log, or what it is for, is not what the members need.
const NOT_STARTED: &str = "the array is not started";

/// From the aimed run that is known to find it on, in this many it is found at most.
pub(super) const fn found_within(_: Flaw) -> u64 {
    20
}

/// An aimed run that finds it.
pub(super) const fn known_run(flaw: Flaw) -> u64 {
    match flaw {
        Flaw::TailUnflushed | Flaw::TaskEndsEarly => 1,
        Flaw::CleanUnflushed => 2,
        Flaw::ActiveMarkLate => 13,
        Flaw::FailedOneBehind => 17,
        Flaw::LogReusedUnflushed => 28,
        Flaw::LogNeverArmed => 29,
        Flaw::AbsentTwoBehind => 32,
        Flaw::RebuiltBeforeRole => 45,
        Flaw::AnswerBesideFailure => 71,
        Flaw::CatchUpCounted => 77,
        Flaw::CheckpointUnflushed => 91,
        Flaw::BitmapLate => 123,
        Flaw::DestageBeforeEntry => 367,
        Flaw::BehindUnsaid => 407,
        Flaw::BitClearedOverWrite => 472,
        Flaw::SessionMarkLate => 661,
        Flaw::WriteGateOpen => 4170,
    }
}

/// With which words a run ends that shows it.
pub(super) const fn evidence(flaw: Flaw) -> &'static [&'static str] {
    match flaw {
        Flaw::FailedOneBehind | Flaw::AbsentTwoBehind => &[NOT_STALE],
        Flaw::LogNeverArmed => &[RESYNC, ARRAY_REFUSED, NOT_STARTED],
        Flaw::RebuiltBeforeRole | Flaw::CatchUpCounted => &[MEMBER_LOST, ARRAY_REFUSED],
        Flaw::SessionMarkLate => &[WRONG_READ, MISFIT, RESYNC, ARRAY_REFUSED],
        _ => &[WRONG_READ, MISFIT],
    }
}
