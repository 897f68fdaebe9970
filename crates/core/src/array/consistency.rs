//! The part of a set in which parity or copies agree.

use openraid_units::Sectors;

/// See the module header. Positions are in sectors of a member; of the set for RAID 10.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consistency {
    /// They agree everywhere: no resync is due.
    Everywhere,
    /// They agree below this position. A resync is due from there on.
    Below {
        /// The position.
        to: Sectors,
        /// The resync covers only the regions that the bitmap marks.
        only_marked: bool,
    },
}

impl Consistency {
    /// They may differ from this position on, or nowhere.
    pub(crate) const fn from(resync_from: Option<Sectors>, only_marked: bool) -> Self {
        match resync_from {
            Some(to) => Self::Below { to, only_marked },
            None => Self::Everywhere,
        }
    }

    /// Do they agree everywhere?
    #[inline(always)]
    pub(crate) const fn is_everywhere(self) -> bool {
        matches!(self, Self::Everywhere)
    }

    /// Do they agree in all sectors before this one?
    #[inline]
    pub(crate) fn reaches(self, end: u64) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Below { to, .. } => end <= to.get(),
        }
    }

    /// The position as superblocks and readers have it: [`Sectors::MAX`] if they agree everywhere.
    pub(crate) const fn position(self) -> Sectors {
        match self {
            Self::Everywhere => Sectors::MAX,
            Self::Below { to, .. } => to,
        }
    }

    /// A resync has reached this position, durably.
    pub(crate) fn advance(&mut self, reached: Sectors) {
        if let Self::Below { to, .. } = self {
            *to = (*to).max(reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resync_moves_the_position_and_never_back_and_only_its_end_makes_all_consistent() {
        let mut consistency = Consistency::from(Some(Sectors(100)), true);
        assert_eq!([99, 100, 101].map(|end| consistency.reaches(end)), [true, true, false]);
        consistency.advance(Sectors(300));
        consistency.advance(Sectors(200));
        assert_eq!(consistency, Consistency::Below { to: Sectors(300), only_marked: true });
        assert_eq!((consistency.position(), consistency.is_everywhere()), (Sectors(300), false));
        consistency.advance(Sectors::MAX);
        assert!(!consistency.is_everywhere(), "its end is a step of its own");
    }

    #[test]
    fn a_consistent_set_stays_so_while_nothing_says_otherwise() {
        let mut consistency = Consistency::from(None, true);
        consistency.advance(Sectors(8));
        assert!(consistency.is_everywhere() && consistency.reaches(u64::MAX));
        assert_eq!(consistency.position(), Sectors::MAX);
    }
}
