//! The axes that a pattern accepts. A given axis without a meaning is an error; otherwise a reader would believe that
//! the axis had an effect on the figure.
//!
//! Axes of the machine (controller, cache, bus, drive, chunk, state of the SSDs, order, repetition) are valid for every
//! pattern. Axes of the load are valid for the patterns that use them. Set of files, file system and application are
//! not checked: they select the imitation of a suite, and the other measurements of that suite may ignore them.

use super::axes::{Axes, Axis, AxisError, Direction};
use super::pattern::Pattern;
use super::spec::CellSpec;
use super::subject::Subject;

/// The axes of the load that a pattern accepts.
#[must_use]
pub const fn load_axes(pattern: &Pattern) -> &'static [Axis] {
    match pattern {
        Pattern::Database
        | Pattern::Random
        | Pattern::ResponseTime
        | Pattern::SsdSequential
        | Pattern::SsdRandom
        | Pattern::Latency => {
            &[Axis::Rd, Axis::Op, Axis::Qd, Axis::Oio, Axis::Workers, Axis::Bs, Axis::Zone, Axis::WarmS, Axis::Secs]
        }
        Pattern::Sequential | Pattern::MultiThreaded => &[
            Axis::Rd,
            Axis::Op,
            Axis::Qd,
            Axis::Oio,
            Axis::Workers,
            Axis::Bs,
            Axis::Zone,
            Axis::WarmS,
            Axis::Secs,
            Axis::Th,
        ],
        Pattern::FileServer | Pattern::WebServer | Pattern::Workstation | Pattern::Custom(_) => {
            &[Axis::Qd, Axis::Oio, Axis::Workers, Axis::Zone, Axis::WarmS, Axis::Secs]
        }
        Pattern::FcTest => &[Axis::Op, Axis::Step],
        Pattern::TransferGraph => &[Axis::Qd],
        Pattern::Application => &[Axis::Users],
        Pattern::Trace(_) => &[],
    }
}

/// All axes of the load, in the order in which they are checked.
const LOAD_AXES: [Axis; 12] = [
    Axis::Rd,
    Axis::Op,
    Axis::Qd,
    Axis::Oio,
    Axis::Workers,
    Axis::Users,
    Axis::Bs,
    Axis::Th,
    Axis::Step,
    Axis::Zone,
    Axis::WarmS,
    Axis::Secs,
];

/// The given axes of the load.
fn given(axes: &Axes) -> impl Iterator<Item = Axis> + '_ {
    LOAD_AXES.into_iter().filter(|axis| axes.has(*axis))
}

/// Does every given axis have a meaning, and does none contradict another?
pub(super) fn check(cell: &CellSpec) -> Result<(), AxisError> {
    let (axes, pattern) = (&cell.axes, &cell.pattern);
    let taken = load_axes(pattern);
    // An axis may give the value that the transfer graph uses anyway.
    let said = |axis: &Axis| {
        *pattern == Pattern::TransferGraph
            && match axis {
                Axis::Rd => axes.rd == Some(100),
                Axis::Op => axes.op == Some(Direction::Read),
                _ => false,
            }
    };
    if let Some(axis) = given(axes).find(|axis| !taken.contains(axis) && !said(axis)) {
        let mix =
            matches!(pattern, Pattern::FileServer | Pattern::WebServer | Pattern::Workstation | Pattern::Custom(_));
        let name = pattern.name();
        let reason = match (axis, pattern) {
            (Axis::Bs | Axis::Rd | Axis::Op, _) if mix => {
                format!("sizes and directions are fixed by the {name} mix; leave it out")
            }
            (_, Pattern::Trace(_)) => format!("the trace {name} fixes the requests and their times; leave it out"),
            _ => format!("it means nothing to {name}; leave it out"),
        };
        return Err(AxisError { axis, reason });
    }
    contradictions(axes, cell.subject)?;
    own_load(pattern, axes)
}

fn contradictions(axes: &Axes, subject: Subject) -> Result<(), AxisError> {
    let error = |axis, reason: String| Err(AxisError { axis, reason });
    match (axes.op, axes.rd) {
        (Some(Direction::Read), Some(rd)) if rd < 100 => {
            return error(Axis::Op, format!("read, and {rd} % of reads, contradict each other; give one of them"));
        }
        (Some(Direction::Write), Some(rd)) if rd > 0 => {
            return error(Axis::Op, format!("write, and {rd} % of reads, contradict each other; give one of them"));
        }
        _ => {}
    }
    if let (Some(qd), Some(oio)) = (axes.qd, axes.oio) {
        return error(
            Axis::Oio,
            format!("{oio} outstanding of all and {qd} of each worker are two depths; give one of them"),
        );
    }
    if let (Some(th), Some(workers)) = (axes.th, axes.workers) {
        if th != workers {
            return error(Axis::Th, format!("{th} clients are {th} workers, not {workers}; leave the workers out"));
        }
    }
    if axes.step.is_some() && axes.op.is_some() {
        return error(Axis::Op, "the step says it already; leave it out".into());
    }
    if let (Some(_), Some(cache)) = (&axes.journal, axes.cache) {
        let reason =
            format!("{cache}, and a journal that acknowledges writes, contradict each other; give one of them");
        return error(Axis::Cache, reason);
    }
    let named =
        matches!(subject, Subject::Best15k | Subject::Ssd2009 | Subject::DesktopSsd | Subject::S3500 | Subject::S3700);
    match &axes.drive {
        Some(drive) if named => error(Axis::Drive, format!("{subject} is a drive itself; measure single with {drive}")),
        _ => Ok(()),
    }
}

/// The axes that the user's own specification determines.
fn own_load(pattern: &Pattern, axes: &Axes) -> Result<(), AxisError> {
    let Pattern::Custom(spec) = pattern else { return Ok(()) };
    let manner = spec.manner();
    let error = |axis, reason: String| Err(AxisError { axis, reason });
    if axes.zone.is_some() && (manner.start.is_some() || manner.len.is_some()) {
        return error(Axis::Zone, format!("{} says itself which part is used; leave it out", spec.name()));
    }
    match (manner.rate, axes.workers) {
        (Some(rate), Some(workers)) if workers > 1 => {
            let reason = format!("{rate} requests each second come from one worker; give one, and all their requests");
            error(Axis::Workers, reason)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::axes::{CacheMode, FileStep, ZoneChoice};
    use super::*;
    use crate::load::{one_size, AccessManner};

    fn said(subject: &str, pattern: &Pattern, axes: Axes) -> String {
        let cell = CellSpec::new("x", subject.parse().unwrap(), pattern.clone()).with(axes);
        cell.check().map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn axes_that_mean_nothing_to_a_pattern_are_named() {
        let none = Axes::default();
        let cases = [
            (Pattern::Database, Axes { th: Some(4), ..none.clone() }, "th: it means nothing to database"),
            (
                Pattern::FileServer,
                Axes { op: Some(Direction::Write), ..none.clone() },
                "op: sizes and directions are fixed",
            ),
            (Pattern::WebServer, Axes { bs: Some(4096), ..none.clone() }, "bs: sizes and directions are fixed"),
            (Pattern::FcTest, Axes { secs: Some(5), ..none.clone() }, "secs: it means nothing to fc-test"),
            (Pattern::TransferGraph, Axes { zone: Some(ZoneChoice::Full), ..none.clone() }, "zone: it means nothing"),
            (Pattern::Application, Axes { rd: Some(5), ..none.clone() }, "rd: it means nothing to application"),
            (Pattern::Random, Axes { users: Some(5), ..none.clone() }, "users: it means nothing to random"),
            (Pattern::TransferGraph, Axes { rd: Some(50), ..none.clone() }, "rd: it means nothing to transfer-graph"),
        ];
        for (pattern, axes, expected) in cases {
            let error = said("raid5x4", &pattern, axes);
            assert!(error.starts_with(expected), "{error}");
        }
        let graph = Axes { rd: Some(100), qd: Some(4), ..none.clone() };
        assert_eq!(said("single", &Pattern::TransferGraph, graph), "");
        let machine = Axes { cache: Some(CacheMode::WriteThrough), cache_mib: Some(1), rep: Some(2), ..none };
        for pattern in Pattern::ALL {
            assert_eq!(said("raid5x4", &pattern, machine.clone()), "", "{}", pattern.name());
        }
    }

    #[test]
    fn axes_that_contradict_each_other_are_named() {
        let none = Axes::default();
        let write = Axes { op: Some(Direction::Write), ..none.clone() };
        let database = |axes| said("single", &Pattern::Database, axes);
        assert!(database(Axes { rd: Some(100), ..write.clone() }).contains("contradict each other"));
        assert_eq!(database(Axes { rd: Some(0), ..write.clone() }), "");
        assert!(database(Axes { qd: Some(1), oio: Some(2), ..none.clone() }).contains("two depths"));
        let both = Axes { journal: Some("x".into()), cache: Some(CacheMode::WriteBack), ..none.clone() };
        assert!(database(both).starts_with("cache: wb, and a journal"));
        let clients = Axes { th: Some(2), workers: Some(3), ..none.clone() };
        assert!(said("single", &Pattern::MultiThreaded, clients).contains("leave the workers out"));
        assert!(said("single", &Pattern::FcTest, Axes { step: Some(FileStep::Read), ..write }).contains("the step"));
        let drive = Axes { drive: Some("x".into()), ..none.clone() };
        assert!(said("best15k", &Pattern::Database, drive.clone()).contains("is a drive itself"));
        assert_eq!(said("slow_single", &Pattern::Database, drive), "");
        let custom = |manner| Pattern::Custom(one_size("own", 4096, 100, 100).in_manner(manner));
        let part = custom(AccessManner { start: Some(4096), ..AccessManner::default() });
        assert!(said("single", &part, Axes { zone: Some(ZoneChoice::Full), ..none.clone() }).contains("which part"));
        let paced = custom(AccessManner { rate: Some(10), ..AccessManner::default() });
        assert!(said("single", &paced, Axes { workers: Some(2), ..none }).contains("one worker"));
    }
}
