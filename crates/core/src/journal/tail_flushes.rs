//! A round of flushes after which the tail of the log moves.

use openraid_units::Instant;

/// A round: one move of the tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Round {
    /// None is under way. After a failed flush the next one begins at this time at the earliest.
    Idle(Instant),
    /// The members are flushed.
    Flushing {
        /// Plan of the round.
        plan: RoundPlan,
        /// Flushes under way.
        pending: u32,
        /// One of them has failed.
        failed: bool,
    },
    /// The superblocks are being written, with this generation.
    Writing(RoundPlan, u64),
}

/// What a round does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RoundPlan {
    /// The tail after it.
    pub(super) target: u64,
    /// The kept entries are not needed after it.
    pub(super) empties: bool,
}

impl Default for Round {
    fn default() -> Self {
        Self::Idle(Instant::ZERO)
    }
}

impl Round {
    /// Is none under way?
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }

    /// Is a flush of it under way?
    pub(super) const fn is_flush_out(&self) -> bool {
        matches!(self, Self::Flushing { pending: 1.., .. })
    }

    /// When the next one may begin, if none is under way.
    pub(super) const fn retry_at(&self) -> Instant {
        match self {
            Self::Idle(at) => *at,
            Self::Flushing { .. } | Self::Writing(..) => Instant::ZERO,
        }
    }

    /// A flush is issued for it.
    pub(super) fn flush_issued(&mut self) {
        let Self::Flushing { pending, .. } = self else { unreachable!("the members are flushed for a round") };
        *pending += 1;
    }

    /// A flush of it has ended.
    pub(super) fn flush_ended(&mut self, has_failed: bool) {
        let Self::Flushing { pending, failed, .. } = self else { unreachable!("the round waits for its flushes") };
        *pending -= 1;
        *failed |= has_failed;
    }
}
