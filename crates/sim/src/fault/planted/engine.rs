//! What is known of the bugs in the engine: how many aimed runs they take, and which judge has to find them.

use openraid_core::planted::Flaw;

use super::{ARRAY_REFUSED, MISFIT, WRONG_READ};

/// A cut costs an array that was whole a member.
const MEMBER_LOST: &str = "a cut alone has cost the array a member";
/// A superblock of a member that lacks a write is too new.
const NOT_STALE: &str = "a member that lacks a write could be taken";
/// What logs have needs no resync.
const RESYNC: &str = "a resync, although the journal had everything";
/// A log, or what it is for, is not what the members need.
const NOT_STARTED: &str = "the array is not started";

/// In so many aimed runs at the most it is found.
pub(super) const fn found_within(_: Flaw) -> u64 {
    1000
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
