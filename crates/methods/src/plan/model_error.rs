//! The model's own error for each class of load: the error that remains if every parameter is correct.
//!
//! The errors come from figures of reviews. An error must change only if those figures change, and never to improve one
//! prediction. `docs/decisions/predictions.md` has the choice, and the test of the errors with figures that were not used
//! for tuning.

use crate::cell::{writes, CellPlan, CellSpec, Pattern};

/// Classes of load. The model's error is similar for all loads of a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LoadClass {
    /// One sequential stream or several, of reads or of writes.
    Streams,
    /// Random reads at any queue depth.
    Reads,
    /// Loads with random writes. Their error comes from caches, parity, and the order in which writes reach the drives.
    Writes,
    /// Loads of files and applications: the host and its file system are imitated.
    Imitated,
}

/// Published figures that were not used for tuning. The first number counts figures that the model predicts within its own error, the second number counts all of them. A test counts them (`models/validation/figures.json`).
pub const JUDGED: (usize, usize) = (38, 40);

impl LoadClass {
    /// All classes.
    pub const ALL: [Self; 4] = [Self::Streams, Self::Reads, Self::Writes, Self::Imitated];

    /// The name of the class, for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Reads => "random reads",
            Self::Writes => "loads with random writes",
            Self::Imitated => "files and applications",
        }
    }

    /// The model's own error in percent: at least four of five figures of such a load are within it.
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
            // The size of the target does not affect whether a load is random or sequential, so this call uses a large
            // one.
            _ if CellPlan::of(cell, u64::MAX >> 1, 512).is_ok_and(|plan| plan.spec.random_percent() == 0.0) => {
                Self::Streams
            }
            _ if writes(cell) => Self::Writes,
            _ => Self::Reads,
        }
    }
}

/// The model's own error of the requests per second for a load of this kind, in percent: at least four of five figures
/// are within it.
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
