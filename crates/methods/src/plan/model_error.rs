//! The model's own error for each class of load, which remains if every parameter is correct, and the errors for unknown
//! parts of the machine.
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

/// Published figures of other machines by the knowledge of them: the group, how many lie in a range whose terms were
/// fitted without their source, and how many there are. A test counts them (`models/validation/cells.json`).
pub const FRESH: [(&str, usize, usize); 5] = [
    ("the drive's own profile", 3, 3),
    ("a profile from its sheet", 2, 3),
    ("the nearest profile", 8, 10),
    ("place unknown", 3, 3),
    ("time of a rebuild", 1, 2),
];

/// An error of a figure that follows from unknown parts of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ErrorTerm {
    /// The profile is the nearest one, of another drive. That may be faster or slower.
    NearestDrive,
    /// A stream passes a host, a controller and a file system that no profile describes. They only take from its rate.
    UnknownHost,
}

impl ErrorTerm {
    /// All terms.
    pub const ALL: [Self; 2] = [Self::NearestDrive, Self::UnknownHost];

    /// The factor between a figure and its prediction that four of five figures keep. A test fits it.
    #[must_use]
    pub const fn factor(self) -> f64 {
        match self {
            Self::NearestDrive => 1.8,
            Self::UnknownHost => 1.9,
        }
    }

    /// A factor as percent below and above a prediction.
    #[must_use]
    pub fn percent(self, factor: f64) -> (f64, f64) {
        let low = (1.0 - 1.0 / factor) * 100.0;
        match self {
            Self::NearestDrive => (low, (factor - 1.0) * 100.0),
            Self::UnknownHost => (low, 0.0),
        }
    }
}

/// Percentages below and above a figure with those of an error that is independent of the others. Errors multiply, so their
/// logarithms add as squares; one of them alone stays as it is.
#[must_use]
pub fn widened(range: (f64, f64), error: (f64, f64)) -> (f64, f64) {
    // A figure of nothing is no prediction.
    const LOW_MAX: f64 = 99.9;
    let low = |percent: f64| -(-percent.min(LOW_MAX) / 100.0).ln_1p();
    let high = |percent: f64| (percent / 100.0).ln_1p();
    let both = |one: f64, other: f64| one.hypot(other);
    let below = -(-both(low(range.0), low(error.0))).exp_m1() * 100.0;
    (below, both(high(range.1), high(error.1)).exp_m1() * 100.0)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Axes, Direction};

    #[test]
    fn each_class_has_its_own_error() {
        let of = |pattern, axes| {
            LoadClass::of(&CellSpec::new("openraid", "raid5x4".parse().unwrap(), pattern).with(axes)).percent()
        };
        let reads = |rd| Axes { rd: Some(rd), ..Axes::default() };
        let way = |op| Axes { op: Some(op), ..Axes::default() };
        assert_eq!(of(Pattern::Database, reads(100)), 15.0);
        assert_eq!(of(Pattern::Database, reads(66)), 40.0);
        assert_eq!(of(Pattern::WebServer, Axes::default()), 15.0);
        assert_eq!(of(Pattern::Sequential, way(Direction::Write)), 5.0);
        assert_eq!(of(Pattern::Application, Axes::default()), 50.0);
    }

    #[test]
    fn errors_multiply_and_one_alone_stays_as_it_is() {
        let near = |found: (f64, f64), wanted: (f64, f64)| {
            assert!(
                (found.0 - wanted.0).abs() < 1e-9 && (found.1 - wanted.1).abs() < 1e-9,
                "{found:?} is not {wanted:?}"
            );
        };
        near(widened((40.0, 40.0), (0.0, 0.0)), (40.0, 40.0));
        near(widened((0.0, 0.0), (5.0, 5.0)), (5.0, 5.0));
        // Two factors of e^3 and e^4 are one of e^5.
        let of = |power: f64| (-(-power).exp_m1() * 100.0, power.exp_m1() * 100.0);
        near(widened(of(0.3), of(0.4)), of(0.5));
        let (low, _) = widened((150.0, 0.0), (100.0, 0.0));
        assert!(low < 100.0, "{low}");
        assert_eq!(ErrorTerm::UnknownHost.percent(2.0), (50.0, 0.0));
        assert_eq!(ErrorTerm::NearestDrive.percent(2.0), (50.0, 100.0));
    }
}
