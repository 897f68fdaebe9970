//! The engine's planted bugs: the aimed runs that find each, and the judge that must find it.

use openraid_core::planted::Flaw;

use super::{ARRAY_REFUSED, MISFIT, WRONG_READ};

/// A cut costs a complete array a member.
const MEMBER_LOST: &str = "a cut alone has cost the array a member";
/// A member that lacks a write has a superblock that is too new.
const NOT_STALE: &str = "a member that lacks a write could be taken";
/// Logged data must not need a resync.
const RESYNC: &str = "a resync, although the journal had everything";
/// A log, or its target, does not match what the members need.
const NOT_STARTED: &str = "the array is not started";

/// Number of aimed runs, from the known one on, within which the bug is found.
pub(super) const fn found_within(_: Flaw) -> u64 {
    20
}

/// The seed of an aimed run that finds the bug.
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
        Flaw::StaleJournalUnmarked => 407,
        Flaw::BitClearedOverWrite => 961,
        Flaw::SessionMarkLate => 661,
        Flaw::WriteGateOpen => 4170,
    }
}

/// The words of a verdict that shows the bug.
pub(super) const fn evidence(flaw: Flaw) -> &'static [&'static str] {
    match flaw {
        Flaw::FailedOneBehind | Flaw::AbsentTwoBehind => &[NOT_STALE],
        Flaw::LogNeverArmed => &[RESYNC, ARRAY_REFUSED, NOT_STARTED],
        Flaw::RebuiltBeforeRole | Flaw::CatchUpCounted => &[MEMBER_LOST, ARRAY_REFUSED],
        Flaw::SessionMarkLate => &[WRONG_READ, MISFIT, RESYNC, ARRAY_REFUSED],
        _ => &[WRONG_READ, MISFIT],
    }
}
