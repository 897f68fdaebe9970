//! Conditions of a set and its members that are no part of their superblocks.

use crate::reason::FailReason;
use openraid_units::Instant;

/// Is the storage of any member of a set full? See `room.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    Enough,
    /// Some member is full. At `look` its place is tried again.
    Short {
        look: Instant,
    },
    /// Ranges that were recorded as bad are repaired. At `look` the next ones are, if fewer than `entries` are left.
    Healing {
        look: Instant,
        entries: usize,
    },
}

/// May a member that failed be taken back as it was?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comeback {
    /// No: it has not failed, or it lacks writes.
    No,
    /// It was in sync when it was out of reach.
    Possible,
    /// It is back, too.
    Ready,
}

impl Comeback {
    /// A member that was in sync fails for this reason.
    pub(super) const fn after(reason: FailReason) -> Self {
        match reason {
            FailReason::Gone | FailReason::Timeout => Self::Possible,
            _ => Self::No,
        }
    }
}

/// What a set has when it fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Remains {
    /// No write was under way.
    Whole,
    /// Writes were under way, and may have been done in part.
    Torn,
    /// It was starting or stopping, or data is lost: it has to be started again.
    Unfit,
}
