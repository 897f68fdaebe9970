//! The model's own error, by class of load: what remains when every parameter is right.
//!
//! The floors come from figures of reviews; decision 0130 lists them. They must change only when such figures do, never for one
//! prediction. Decision 0140 says how they were judged by figures that nothing was tuned on.

use crate::cell::{writes, CellSpec, Pattern, Plan};

/// Loads that the model errs alike on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LoadClass {
    /// One stream or several, in either direction.
    Streams,
    /// Reads at random, at any depth.
    Reads,
    /// Loads with writes at random: caches, parity, and the order in which both reach the drives.
    Writes,
    /// Files and applications: the host and its file system are imitated.
    Imitated,
}

/// Published figures that nothing was tuned on: how many lie within the model's own error of the prediction, and of how many.
/// A test counts them (`models/validation/figures.json`).
pub const JUDGED: (usize, usize) = (37, 40);

impl LoadClass {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Streams, Self::Reads, Self::Writes, Self::Imitated];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Reads => "random reads",
            Self::Writes => "loads with random writes",
            Self::Imitated => "files and applications",
        }
    }

    /// The model's own error: percent by which a figure of such a load is off, in four of five cases at most.
    #[must_use]
    pub const fn percent(self) -> f64 {
        match self {
            Self::Streams => 5.0,
            Self::Reads => 15.0,
            Self::Writes => 40.0,
            Self::Imitated => 50.0,
        }
    }

    /// The class of a cell's load.
    #[must_use]
    pub fn of(cell: &CellSpec) -> Self {
        match cell.pattern {
            Pattern::FcTest | Pattern::Application | Pattern::Trace(_) => Self::Imitated,
            Pattern::TransferGraph => Self::Streams,
            // The size of the target is of no account to where a load lies between random and sequential.
            _ if Plan::of(cell, u64::MAX >> 1, 512).is_ok_and(|plan| plan.spec.random_percent() == 0.0) => {
                Self::Streams
            }
            _ if writes(cell) => Self::Writes,
            _ => Self::Reads,
        }
    }
}

/// Percent by which requests each second of a load of this kind are off, in four of five cases at most.
#[must_use]
pub(super) fn floor(cell: &CellSpec) -> f64 {
    LoadClass::of(cell).percent()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Axes, Direction};

    #[test]
    fn each_class_has_its_own_floor() {
        let of = |pattern, axes| floor(&CellSpec::new("openraid", "raid5x4".parse().unwrap(), pattern).with(axes));
        let reads = |rd| Axes { rd: Some(rd), ..Axes::default() };
        let way = |op| Axes { op: Some(op), ..Axes::default() };
        assert_eq!(of(Pattern::Database, reads(100)), 15.0);
        assert_eq!(of(Pattern::Database, reads(66)), 40.0);
        assert_eq!(of(Pattern::WebServer, Axes::default()), 15.0);
        assert_eq!(of(Pattern::Sequential, way(Direction::Write)), 5.0);
        assert_eq!(of(Pattern::Application, Axes::default()), 50.0);
    }
}
