//! No rate above the ceilings of a machine's parts: each result is compared with the known ceilings. A rate
//! that is higher, or to which a cache has contributed, carries a flag.
//!
//! ```text
//!   bus, data path   the rates of the profiles, for each direction
//!   medium           reads: every member at the rate of its outermost zone; writes: the members that hold data
//!   caches           acknowledged writes that are not on the medium; reads that came from no member
//! ```
//!
//! The link of a real target's device is known if the kernel reports it. A flag changes no figure.

use super::error::CellError;
use super::result::CellResult;
use super::subject::{Level, Subject};
use openraid_models::{BusProfile, DriveKind, DriveProfile, Library, LookupError, Rate};
use openraid_sim::machine::MachineSpec;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Percentage by which a rate may be above a ceiling without a flag: requests that were under way when a measurement
/// began count in full.
const ABOVE_PERCENT: f64 = 3.0;
/// The share of the written bytes that may still be in caches, and of the read bytes that may come from them, before a
/// rate is flagged.
const CACHED_PERCENT: f64 = 6.25;

/// The rate that a part can carry, MB (10^6 bytes) each second.
#[derive(Clone, PartialEq, Debug)]
pub struct Ceiling {
    /// Its name.
    pub name: String,
    /// Towards the host.
    pub read_mbps: f64,
    /// From the host.
    pub write_mbps: f64,
}

/// Why a rate is not the rate of the drives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// It is higher than a part can carry: a cache has answered, or the generator is wrong.
    AboveCeiling {
        /// Which part.
        part: String,
        /// `read` or `write`.
        way: String,
        /// The rate, MB each second.
        mbps: f64,
        /// The ceiling of the part.
        ceiling_mbps: f64,
    },
    /// Percent of the written bytes that were still in caches when the measurement ended.
    StillInCaches {
        /// Percent.
        percent: f64,
    },
    /// Percent of the read bytes that came from the controller's cache and from no drive.
    ReadFromCache {
        /// Percent.
        percent: f64,
    },
    /// The requests went through the page cache of the host.
    PageCache,
    /// The flush that made the writes durable took this many percent of the time of the measurement.
    FlushOwed {
        /// Percent.
        percent: f64,
    },
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AboveCeiling { part, way, mbps, ceiling_mbps } => write!(
                f,
                "{way}: {mbps:.0} MB/s is above what the {part} can carry ({ceiling_mbps:.0} MB/s): a cache has answered, or the figure is wrong"
            ),
            Self::StillInCaches { percent } => {
                write!(f, "write: {percent:.0} % of it was still in caches at the end, so the drives are slower than this")
            }
            Self::ReadFromCache { percent } => {
                write!(f, "read: {percent:.0} % of it came from the controller's cache, not from drives")
            }
            Self::PageCache => f.write_str("the page cache of this machine took part; the target does not take direct I/O"),
            Self::FlushOwed { percent } => {
                write!(f, "write: the flush at the end took {percent:.0} % as long as the writes: caches held them until then")
            }
        }
    }
}

/// Bytes per second as MB/s.
fn mbps(rate: Rate) -> f64 {
    rate.0 as f64 / 1e6
}

/// The bus that a machine has.
///
/// # Errors
/// A name that no profile has.
pub(crate) fn bus<'a>(library: &'a Library, spec: &'a MachineSpec) -> Result<&'a BusProfile, LookupError> {
    spec.bus.as_ref().map_or_else(|| library.bus(&spec.controller.bus), Ok)
}

/// The ceilings of a machine's bus and of its controller's data path.
///
/// # Errors
/// A profile does not exist.
pub fn ways(library: &Library, spec: &MachineSpec) -> Result<Vec<Ceiling>, CellError> {
    let bus = bus(library, spec)?;
    let ceiling = |name: &str, read: Rate, write: Rate| Ceiling {
        name: name.into(),
        read_mbps: mbps(read),
        write_mbps: mbps(write),
    };
    let mut found = vec![ceiling(&bus.title, bus.read.value, bus.write.value)];
    if let Some(path) = &spec.controller.data_path {
        found.push(ceiling("data path", path.read.value, path.write.value));
    }
    Ok(found)
}

/// The ceilings of [`ways`], and those of the members' media under this subject.
///
/// # Errors
/// A profile does not exist.
pub fn ceilings(library: &Library, spec: &MachineSpec, subject: Subject) -> Result<Vec<Ceiling>, CellError> {
    let mut found = ways(library, spec)?;
    let rates: Option<Vec<f64>> = spec.drives.iter().map(media).collect();
    if let Some(rates) = rates.filter(|rates| !rates.is_empty()) {
        // A drive for each member, or one for all.
        let sum: f64 = rates.iter().cycle().take(usize::from(subject.members()).max(rates.len())).sum();
        // Each member of a stripe gets as much as any other, so the slowest one sets the pace.
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let write_mbps = match subject.level() {
            None | Some(Level::Single | Level::Jbod | Level::Linear) => sum,
            Some(_) => data_members(subject) * slowest,
        };
        found.push(Ceiling { name: "members".into(), read_mbps: sum, write_mbps });
    }
    Ok(found)
}

/// The highest rate of a drive's medium, MB each second: a disk's in its outermost zone, an SSD's on its link. A drive
/// with synthetic times has no such rate.
fn media(drive: &DriveProfile) -> Option<f64> {
    match &drive.kind {
        DriveKind::Disk(disk) => Some(mbps(disk.rate_outer.value)),
        DriveKind::Ssd(ssd) => Some(mbps(ssd.link_rate.value)),
        DriveKind::Constant(_) => None,
    }
}

/// How many members' worth of data a stripe that is written whole holds.
fn data_members(subject: Subject) -> f64 {
    let members = f64::from(subject.members());
    match subject.level() {
        None | Some(Level::Single | Level::Jbod | Level::Linear | Level::Raid0) => members,
        Some(Level::Raid1) => 1.0,
        Some(Level::Raid1e | Level::Raid10) => members / 2.0,
        Some(Level::Raid4 | Level::Raid5) => members - 1.0,
        Some(Level::Raid6 | Level::Raid50) => members - 2.0,
        Some(Level::Raid60) => members - 4.0,
    }
}

/// Hold the rates of a result against ceilings.
pub fn flag(result: &mut CellResult, ceilings: &[Ceiling]) {
    if result.elapsed_ns == 0 {
        return;
    }
    let rate = |bytes: u64| bytes as f64 * 1e3 / result.elapsed_ns as f64;
    let ways = [("read", rate(result.reads.bytes)), ("write", rate(result.writes.bytes))];
    let mut found = Vec::new();
    for (way, mbps) in ways {
        for ceiling in ceilings {
            let most = if way == "read" { ceiling.read_mbps } else { ceiling.write_mbps };
            if mbps > most * (1.0 + ABOVE_PERCENT / 100.0) {
                let (part, way) = (ceiling.name.clone(), way.to_owned());
                found.push(Flag::AboveCeiling { part, way, mbps, ceiling_mbps: most });
            }
        }
    }
    result.flags.extend(found);
}

/// What share of the bytes a cache has had a part in, as a flag where it is too large.
pub(super) fn cached(share: f64, flag: impl Fn(f64) -> Flag) -> Option<Flag> {
    let percent = share * 100.0;
    (percent > CACHED_PERCENT).then(|| flag(percent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{machine_spec, run_cell, Axes, CellSpec, Direction, Effort, Pattern};

    fn written(subject: &str) -> (CellResult, Vec<Ceiling>) {
        let library = Library::builtin();
        let axes = Axes { op: Some(Direction::Write), bs: Some(1 << 20), qd: Some(4), ..Axes::default() };
        let cell = CellSpec::new("openraid", subject.parse().unwrap(), Pattern::Sequential).with(axes);
        let cell = CellSpec { effort: Effort::QUICK, ..cell };
        let ceilings = ceilings(&library, &machine_spec(&library, &cell).unwrap(), cell.subject).unwrap();
        (run_cell(&library, &cell).unwrap(), ceilings)
    }

    #[test]
    fn a_rate_above_the_bus_or_the_media_is_flagged_with_the_part() {
        let (mut result, ceilings) = written("raid5x4");
        let members = ceilings.iter().find(|ceiling| ceiling.name == "members").unwrap();
        assert!((members.write_mbps - 810.0).abs() < 1e-9 && (members.read_mbps - 1080.0).abs() < 1e-9);
        assert_eq!(result.flags, [], "{:?}", result.notes);
        // The same bytes in a fifth of the time.
        result.elapsed_ns /= 5;
        flag(&mut result, &ceilings);
        assert!(
            matches!(&result.flags[0], Flag::AboveCeiling { part, way, .. } if part == "members" && way == "write")
        );
        assert!(result.flags[0].to_string().contains("above what the members can carry (810 MB/s)"));
        let kept: CellResult = serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap();
        assert_eq!(kept.flags, result.flags, "they are read again from the results of a review");
        result.elapsed_ns /= 1000;
        result.flags.clear();
        flag(&mut result, &ceilings);
        assert_eq!(result.flags.len(), 2, "the bus, too: {:?}", result.flags);
    }

    #[test]
    fn of_mixed_members_the_slowest_one_sets_the_pace_of_a_stripe() {
        let library = Library::builtin();
        let cell = CellSpec::new("openraid", "raid0x2".parse().unwrap(), Pattern::Sequential);
        let mut spec = machine_spec(&library, &cell).unwrap();
        spec.drives = ["wd740gd", "exos_x18_18tb"].map(|name| library.drive(name).unwrap().clone()).to_vec();
        let (slow, fast) = (media(&spec.drives[0]).unwrap(), media(&spec.drives[1]).unwrap());
        assert!(fast > 2.0 * slow);
        for (subject, write) in [("raid0x2", 2.0 * slow), ("raid1x2", slow), ("linearx2", slow + fast)] {
            let found = ceilings(&library, &spec, subject.parse().unwrap()).unwrap().pop().unwrap();
            let same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
            assert!(same(found.read_mbps, slow + fast) && same(found.write_mbps, write), "{subject}: {found:?}");
        }
    }
}
