//! Derives a load from a cell: its requests, workers and positions.

use super::axes::{Axes, Direction, ZoneChoice};
use super::error::CellError;
use super::note::CellNote;
use super::pattern::Pattern;
use super::spec::CellSpec;
use super::subject::Level;
use crate::load::{self, AccessManner, AccessSpec, Mixed, Zone};
use openraid_units::{Bytes, Nanos};

/// The first 32 GB (10^9 bytes each), to which reviews restrict some tests.
pub const FIRST_32G: u64 = 32_000_000_000;

/// A real target smaller than 32 GB is divided into this many parts, and the first part replaces the first 32 GB. In
/// the reviews 32 GB were a ninth of the array of four drives and an eighteenth of the array of eight.
const SMALL_PART: u64 = 8;

/// A load of access patterns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellPlan {
    /// The requested load.
    pub spec: AccessSpec,
    /// Number of workers.
    pub workers: u16,
    /// Outstanding requests of each worker.
    pub depth: u32,
    /// Number of workers that have one more outstanding request; these are the first ones.
    pub deeper: u16,
    /// Number of parts of the zone. Each worker has one part, or several workers share one; 1 if all share the zone.
    pub parts: u16,
    /// The part of the target that is used.
    pub zone: Zone,
}

impl CellPlan {
    /// The load of a cell on a target of this capacity and block size. The pattern must be an access specification:
    /// files, applications and the transfer graph have loads of their own.
    ///
    /// # Errors
    /// An axis has no meaning here, or the target is too small.
    pub fn of(cell: &CellSpec, capacity: u64, block: u64) -> Result<Self, CellError> {
        let (axes, pattern) = (&cell.axes, &cell.pattern);
        let defaults = pattern.defaults();
        let is_jbod = cell.subject.level() == Some(Level::Jbod);
        let streams = matches!(pattern, Pattern::MultiThreaded | Pattern::Sequential);
        let clients = axes.th.filter(|_| streams);
        // The default is one worker for each drive. If a number is given, the workers share the drives evenly.
        let usual = if is_jbod { cell.subject.members() } else { defaults.workers };
        let mut workers = axes.workers.or(clients).unwrap_or(usual);
        let (depth, deeper) = match axes.oio {
            None => (axes.qd.unwrap_or(defaults.qd), 0),
            Some(oio) => {
                if axes.workers.is_none() && !is_jbod && oio < u32::from(workers) {
                    workers = 1;
                }
                let rest = oio % u32::from(workers);
                (oio / u32::from(workers), u16::try_from(rest).expect("less than workers"))
            }
        };
        let spec = access(pattern, axes)?;
        if !u64::from(spec.granule()).is_multiple_of(block) {
            let reason =
                format!("requests of {} bytes do not fit the target's blocks of {block} bytes", spec.granule());
            return Err(CellError::NotApplicable(reason));
        }
        let zone = zone(axes.zone, spec.manner(), capacity, block, cell.effort.is_a_time())?;
        // Streams in one zone would disturb each other, so each has a part, and in a JBOD each drive has one. Random
        // loads need parts only for the drives of a JBOD.
        let parts = match (spec.random_percent() < 100.0, is_jbod) {
            (true, true) => workers.max(cell.subject.members()),
            (true, false) => workers,
            (false, true) => workers.min(cell.subject.members()),
            (false, false) => 1,
        };
        let part = zone.part(0, parts).len;
        if part < u64::from(spec.bytes_max()) {
            let zones = if parts == 1 { "one zone".into() } else { format!("{parts} zones, each") };
            let bytes = spec.bytes_max();
            let reason = format!(
                "the target is too small: {zones} of {part} bytes, for requests of {bytes}; use a larger target"
            );
            return Err(CellError::NotApplicable(reason));
        }
        Ok(Self { spec, workers, depth, deeper, parts, zone })
    }

    /// The requests of the load, drawn from a seed.
    #[must_use]
    pub fn source(&self, seed: u64) -> Mixed {
        let source = Mixed::new(&self.spec, self.workers, self.zone, self.parts, seed);
        let manner = self.spec.manner();
        let source = manner.flush_every.iter().fold(source, |source, writes| source.flushing(*writes));
        match manner.think {
            Some((burst, ns)) => source.thinking(burst, Nanos(ns)),
            None => source,
        }
    }

    /// Outstanding requests of all workers together.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        u32::from(self.workers) * self.depth + u32::from(self.deeper)
    }
}

/// The note of a cell whose real target is too small for a zone of 32 GB, so that the zone is smaller.
pub fn scaled(cell: &CellSpec, capacity: u64) -> Option<CellNote> {
    let small = cell.axes.zone == Some(ZoneChoice::First32g) && cell.effort.is_a_time() && capacity <= FIRST_32G;
    let target = Bytes(capacity).readable();
    let reason = format!("the target holds {target}; its first eighth stands for the first 32 GB");
    small.then_some(CellNote::Scaled(reason))
}

/// The reason why the first 32 GB of a target are not a part of it.
pub fn all_of_it(capacity: u64) -> String {
    format!("the first 32 GB are all of it: the target holds {}", Bytes(capacity).readable())
}

/// The part of the target that is used, in whole pages.
fn zone(
    choice: Option<ZoneChoice>,
    manner: AccessManner,
    capacity: u64,
    block: u64,
    is_real: bool,
) -> Result<Zone, CellError> {
    let start = manner.start.unwrap_or(0);
    if !start.is_multiple_of(block) {
        let reason =
            format!("the load begins at byte {start}, which is not a multiple of the target's blocks of {block}");
        return Err(CellError::NotApplicable(reason));
    }
    let end = manner.len.map_or(capacity, |len| start.saturating_add(len));
    if start >= capacity || end > capacity {
        let end = end.max(start);
        let reason =
            format!("the load uses bytes {start} to {end}, and the target holds {capacity}; use a larger target");
        return Err(CellError::NotApplicable(reason));
    }
    let len = match choice {
        Some(ZoneChoice::First32g) if end - start <= FIRST_32G && is_real => (end - start) / SMALL_PART,
        Some(ZoneChoice::First32g) if end - start <= FIRST_32G => {
            return Err(CellError::NotApplicable(all_of_it(capacity)));
        }
        Some(ZoneChoice::First32g) => FIRST_32G,
        _ => end - start,
    };
    Ok(Zone { start, len: len / 4096 * 4096 })
}

/// The access specification of a pattern with its axes.
fn access(pattern: &Pattern, axes: &Axes) -> Result<AccessSpec, CellError> {
    let defaults = pattern.defaults();
    let bytes = axes.bs.unwrap_or(defaults.bs);
    let read = match (axes.rd, axes.op) {
        (Some(rd), _) => rd,
        (None, Some(Direction::Read)) => 100,
        (None, Some(Direction::Write)) => 0,
        (None, None) => defaults.rd,
    };
    let mix = |spec: AccessSpec| match (axes.bs, axes.rd) {
        (None, None) => Ok(spec),
        _ => Err(CellError::NotApplicable(format!("bs and rd are fixed by the {} mix", pattern.name()))),
    };
    match pattern {
        Pattern::Database | Pattern::Random | Pattern::ResponseTime | Pattern::SsdRandom | Pattern::Latency => {
            Ok(load::one_size(pattern.name(), bytes, read, 100))
        }
        Pattern::Sequential | Pattern::MultiThreaded | Pattern::SsdSequential => {
            Ok(load::one_size(pattern.name(), bytes, read, 0))
        }
        Pattern::FileServer => mix(load::file_server()),
        Pattern::WebServer => mix(load::web_server()),
        Pattern::Workstation => mix(load::workstation()),
        Pattern::Custom(spec) => mix(spec.clone()),
        Pattern::FcTest | Pattern::TransferGraph | Pattern::Application | Pattern::Trace(_) => {
            Err(CellError::NotApplicable(format!("{} is not an access pattern", pattern.name())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::axes::CacheMode;
    use super::*;

    const SIZE: u64 = 100 << 30;

    fn plan(subject: &str, pattern: Pattern, axes: Axes) -> Result<CellPlan, CellError> {
        CellPlan::of(&CellSpec::new("x", subject.parse().unwrap(), pattern).with(axes), SIZE, 512)
    }

    #[test]
    fn patterns_have_their_defaults_and_axes_override_them() {
        let database = plan("raid5x4", Pattern::Database, Axes::default()).unwrap();
        assert_eq!((database.spec.read_percent(), database.workers, database.depth), (67.0, 1, 1));
        let writes = Axes { op: Some(Direction::Write), qd: Some(8), bs: Some(1 << 20), ..Axes::default() };
        let sequential = plan("single", Pattern::Sequential, writes).unwrap();
        assert_eq!((sequential.spec.read_percent(), sequential.depth), (0.0, 8));
        assert_eq!(sequential.spec.lines()[0].bytes, 1 << 20);
        let oio = plan("raid0x4", Pattern::SsdRandom, Axes { oio: Some(128), ..Axes::default() }).unwrap();
        assert_eq!((oio.workers, oio.depth, oio.parts, oio.outstanding()), (2, 64, 1, 128));
        let clients = plan("raid0x4", Pattern::MultiThreaded, Axes { th: Some(3), ..Axes::default() }).unwrap();
        assert_eq!((clients.workers, clients.parts), (3, 3));
        let jbod = plan("jbodx6", Pattern::SsdRandom, Axes { qd: Some(4), ..Axes::default() }).unwrap();
        assert_eq!((jbod.workers, jbod.depth, jbod.parts), (6, 4, 6));
        // Requests that cannot be divided evenly are divided as evenly as possible, so some drives may get none.
        let few = plan("jbodx6", Pattern::SsdRandom, Axes { oio: Some(4), ..Axes::default() }).unwrap();
        assert_eq!((few.workers, few.depth, few.deeper, few.outstanding()), (6, 0, 4, 4));
        let odd = plan("jbodx6", Pattern::SsdRandom, Axes { oio: Some(32), ..Axes::default() }).unwrap();
        assert_eq!((odd.depth, odd.deeper, odd.outstanding()), (5, 2, 32));
        let planned = Axes { workers: Some(12), qd: Some(2), ..Axes::default() };
        let planned = plan("jbodx6", Pattern::SsdRandom, planned).unwrap();
        assert_eq!((planned.workers, planned.outstanding(), planned.parts), (12, 24, 6));
        let two = Axes { workers: Some(2), qd: Some(8), ..Axes::default() };
        let two = plan("jbodx6", Pattern::SsdSequential, two).unwrap();
        assert_eq!((two.workers, two.outstanding(), two.parts), (2, 16, 6), "no drive is left without a stream");
        let zone = plan("single", Pattern::Workstation, Axes { zone: Some(ZoneChoice::First32g), ..Axes::default() });
        assert_eq!(zone.unwrap().zone.len, 32_000_000_000);
        let cached = Axes { cache: Some(CacheMode::WriteThrough), ..Axes::default() };
        assert!(plan("single", Pattern::Database, cached).is_ok());
        let streams = plan("raid0x4", Pattern::Sequential, Axes { th: Some(2), ..Axes::default() }).unwrap();
        assert_eq!((streams.workers, streams.depth, streams.parts), (2, 4, 2));
    }

    #[test]
    fn a_custom_load_stays_in_the_area_that_it_was_given() {
        let at = |start, len| {
            let spec =
                load::one_size("own", 4096, 100, 100).in_manner(AccessManner { start, len, ..AccessManner::default() });
            plan("single", Pattern::Custom(spec), Axes::default())
        };
        assert_eq!(at(Some(1 << 30), Some(1 << 20)).unwrap().zone, Zone { start: 1 << 30, len: 1 << 20 });
        assert_eq!(at(Some(99 << 30), None).unwrap().zone, Zone { start: 99 << 30, len: 1 << 30 });
        for (start, len, words) in
            [(100, None, "not a multiple"), (100 << 30, None, "holds"), (0, Some(101 << 30), "holds")]
        {
            let error = at(Some(start), len).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_axis_without_meaning_is_not_applicable() {
        let first = Axes { zone: Some(ZoneChoice::First32g), ..Axes::default() };
        let cell = CellSpec::new("x", "single".parse().unwrap(), Pattern::Workstation).with(first);
        assert!(CellPlan::of(&cell, 32_000_004_096, 512).is_ok());
        let error = CellPlan::of(&cell, 512 << 20, 512).unwrap_err().to_string();
        assert!(error.contains("the first 32 GB are all of it"), "{error}");
        // A real target uses a part in proportion to its size, and a note says so.
        let real = CellSpec { effort: crate::review::Performance::real_effort(10), ..cell.clone() };
        assert_eq!(CellPlan::of(&real, 512 << 20, 512).unwrap().zone, Zone { start: 0, len: 64 << 20 });
        assert!(matches!(scaled(&real, 512 << 20), Some(CellNote::Scaled(_))) && scaled(&cell, 512 << 20).is_none());
        assert_eq!(scaled(&real, 64_000_000_000), None);
        let bs = Axes { bs: Some(4096), ..Axes::default() };
        assert!(matches!(plan("single", Pattern::FileServer, bs), Err(CellError::NotApplicable(_))));
        for (workers, zones) in [(1, "too small: one zone of 65536 bytes, for"), (4, "4 zones, each of 16384 bytes")] {
            let axes = Axes { bs: Some(1 << 20), workers: Some(workers), ..Axes::default() };
            let cell = CellSpec::new("x", "single".parse().unwrap(), Pattern::Sequential).with(axes);
            let error = CellPlan::of(&cell, 65_536, 512).unwrap_err().to_string();
            assert!(error.contains(zones) && error.contains("use a larger target"), "{error}");
        }
        let cell = CellSpec::new("x", "single".parse().unwrap(), Pattern::ResponseTime);
        let error = CellPlan::of(&cell, SIZE, 4096).unwrap_err().to_string();
        assert!(error.contains("blocks of 4096 bytes"), "{error}");
    }
}
