//! The model's own error, by class of load: what remains when every parameter is right.
//!
//! The floors come from figures of reviews that no constant was chosen by; decision 0130 lists them. They must change only when
//! such figures do, never for one prediction.

use crate::cell::{writes, CellSpec, Pattern, Plan};

/// Percent by which requests each second of a load of this kind are off, in four of five cases at most.
#[must_use]
pub(super) fn floor(cell: &CellSpec) -> f64 {
    /// One stream or several, in either direction.
    const STREAMS: f64 = 5.0;
    /// Reads at random, at any depth.
    const READS: f64 = 15.0;
    /// Loads with writes at random: caches, parity, and the order in which both reach the drives.
    const WRITES: f64 = 40.0;
    /// Files and applications: the host and its file system are imitated.
    const IMITATED: f64 = 50.0;
    match cell.pattern {
        Pattern::FcTest | Pattern::Application | Pattern::Trace(_) => IMITATED,
        Pattern::TransferGraph => STREAMS,
        // The size of the target is of no account to where a load lies between random and sequential.
        _ if Plan::of(cell, u64::MAX >> 1, 512).is_ok_and(|plan| plan.spec.random_percent() == 0.0) => STREAMS,
        _ if writes(cell) => WRITES,
        _ => READS,
    }
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
