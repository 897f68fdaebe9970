//! Drives side by side, for method M20. Each drive is a target of its own, with its own worker on its own thread.
//!
//! All targets are opened first, then all workers begin at the same time. All measure for the same time, so their rates
//! can be added. If one drive cannot be opened or fails, the cell ends for all.

use super::error::CellError;
use super::measure::{footprint, measure};
use super::result::{CellResult, LatencySummary};
use super::spec::CellSpec;
use super::subject::Subject;
use crate::target::{Target, TargetError};
use openraid_sim::random::mix;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;

/// Opens a drive. The arguments are the index of the drive, the maximum size of a request in bytes, and the maximum
/// number of outstanding requests.
pub type OpenDrive<'a> = dyn Fn(usize, u32, u32) -> Result<Box<dyn Target>, TargetError> + Sync + 'a;

/// Real drives that can be measured side by side.
#[derive(Clone, Copy)]
pub struct RealDrives<'a> {
    /// Number of drives.
    pub drives: u16,
    /// Opens one of the drives.
    pub open: &'a OpenDrive<'a>,
}

impl std::fmt::Debug for RealDrives<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RealDrives({})", self.drives)
    }
}

impl RealDrives<'_> {
    /// Measures a cell of drives side by side. The cell uses the first of these drives.
    ///
    /// # Errors
    /// The error of the first drive that has one; see [`CellError`].
    pub fn measure(&self, cell: &CellSpec, capacity: u64) -> Result<CellResult, CellError> {
        cell.check()?;
        let drives = cell.subject.members();
        let alone = |number: u16| {
            let axes = super::axes::Axes { workers: Some(1), ..cell.axes.clone() };
            let seed = mix(cell.seed ^ cell.digest() ^ u64::from(number));
            CellSpec { subject: Subject::Single, axes, seed, ..cell.clone() }
        };
        let (bytes, outstanding) = footprint(&alone(0), capacity)?;
        let begin = Barrier::new(usize::from(drives));
        let broken = AtomicBool::new(false);
        let one = |number: u16| -> Result<CellResult, CellError> {
            let opened = (self.open)(usize::from(number), bytes, outstanding);
            broken.fetch_or(opened.is_err(), Ordering::SeqCst);
            begin.wait();
            let mut target = opened?;
            if broken.load(Ordering::SeqCst) {
                return Err(CellError::Failed("another drive could not be opened".into()));
            }
            measure(&mut *target, &alone(number))
        };
        let mut found: Vec<Result<CellResult, CellError>> = std::thread::scope(|scope| {
            let one = &one;
            let all: Vec<_> = (0..drives).map(|number| scope.spawn(move || one(number))).collect();
            let ended =
                all.into_iter().map(|drive| drive.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            ended.collect()
        });
        // If the target of one drive failed, that error is the reason for all drives.
        let gone = found.iter().position(|result| matches!(result, Err(CellError::Target(_))));
        if let Some(Err(error)) = gone.map(|place| found.swap_remove(place)) {
            return Err(error);
        }
        let all = found.into_iter().collect::<Result<Vec<CellResult>, CellError>>()?;
        Ok(together(cell, &all))
    }
}

/// Combines the results of all drives: rates are added, and the latencies are those of all requests.
fn together(cell: &CellSpec, all: &[CellResult]) -> CellResult {
    let mut whole = CellResult { spec: cell.clone(), ..all[0].clone() };
    for result in &all[1..] {
        whole.elapsed_ns = whole.elapsed_ns.max(result.elapsed_ns);
        whole.requests += result.requests;
        whole.iops += result.iops;
        whole.mbps += result.mbps;
        whole.flushes += result.flushes;
        whole.errors += result.errors;
        whole.capacity += result.capacity;
        whole.steady &= result.steady;
        whole.workers.extend_from_slice(&result.workers);
        for (sum, part) in [(&mut whole.reads, &result.reads), (&mut whole.writes, &result.writes)] {
            sum.requests += part.requests;
            sum.bytes += part.bytes;
            sum.latency.merge(&part.latency);
        }
        // Each generator has a thread of its own, so the busiest thread is the limit.
        for component in &result.components {
            match whole.components.iter_mut().find(|known| known.name == component.name) {
                Some(known) => known.busy = known.busy.max(component.busy),
                None => whole.components.push(component.clone()),
            }
        }
        whole.host_cpu = whole.host_cpu.zip(result.host_cpu).map(|(sum, part)| sum + part);
        for flag in &result.flags {
            if !whole.flags.contains(flag) {
                whole.flags.push(flag.clone());
            }
        }
        for note in &result.notes {
            if !whole.notes.contains(note) {
                whole.notes.push(note.clone());
            }
        }
    }
    whole.latency = LatencySummary::of(&whole.histogram());
    whole
}

#[cfg(test)]
mod tests {
    use super::super::axes::{Axes, Direction};
    use super::super::pattern::Pattern;
    use super::super::spec::Effort;
    use super::*;
    use crate::target::NullTarget;
    use openraid_units::Bytes;

    fn cell(drives: u16) -> CellSpec {
        let axes = Axes { op: Some(Direction::Read), qd: Some(2), ..Axes::default() };
        let effort = Effort { requests: u64::MAX, seconds_max: 1, warm_seconds_max: 0 };
        let subject = format!("jbodx{drives}").parse().unwrap();
        CellSpec { effort, ..CellSpec::new("null", subject, Pattern::SsdRandom).with(axes) }
    }

    #[test]
    fn each_drive_has_a_worker_and_the_rates_are_those_of_all() {
        let open = |_: usize, _, _| Ok(Box::new(NullTarget::new(Bytes::gib(1))) as Box<dyn Target>);
        let result = RealDrives { drives: 3, open: &open }.measure(&cell(3), 1 << 30).unwrap();
        assert_eq!((result.workers.len(), result.capacity), (3, 3 << 30));
        let sum: f64 = result.workers.iter().map(|worker| worker.iops).sum();
        assert!((result.iops / sum - 1.0).abs() < 1e-9, "{} {sum}", result.iops);
        assert_eq!(result.requests, result.reads.requests);
        assert_eq!(result.latency.count, result.requests);
    }

    #[test]
    fn a_drive_that_cannot_be_opened_ends_the_cell_with_its_name() {
        let open = |number: usize, _, _| match number {
            1 => Err(TargetError::Gone { name: "d2".into(), reason: "it was pulled".into() }),
            _ => Ok(Box::new(NullTarget::new(Bytes::gib(1))) as Box<dyn Target>),
        };
        let error = RealDrives { drives: 3, open: &open }.measure(&cell(3), 1 << 30).unwrap_err().to_string();
        assert!(error.contains("d2") && error.contains("pulled"), "{error}");
    }
}
