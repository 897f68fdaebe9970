//! Compares the rates of each result with the known ceilings of a machine's parts. If a rate is above a ceiling, or if
//! a cache contributed to it, the result gets a flag.
//!
//! `max_rates.rs` has the ceilings of a simulated machine. The link of a real target's device is known if the kernel
//! reports it. A flag changes no figure.

use super::result::CellResult;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rate may be this percentage above a ceiling without a flag, because a request that was under way at the start of
/// the measurement counts in full.
const ABOVE_PERCENT: f64 = 3.0;
/// If more than this share of the written bytes are still in caches, or more than this share of the read bytes came
/// from them, the result gets a flag.
const CACHED_PERCENT: f64 = 6.25;

/// The rate that a part can carry, in MB/s (10^6 bytes).
#[derive(Clone, PartialEq, Debug)]
pub struct Ceiling {
    /// Name of the part.
    pub name: String,
    /// Rate towards the host.
    pub read_mbps: f64,
    /// Rate from the host.
    pub write_mbps: f64,
    /// One resource carries both directions in turn, so the shares of both directions add up.
    pub shared: bool,
}

/// Why a rate is not the rate of the drives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// The rate is higher than a part can carry: a cache has answered, or the generator is wrong.
    AboveCeiling {
        /// The part of the machine.
        part: String,
        /// `read`, `write`, or `read and write` of a part that carries both in turn.
        way: String,
        /// The measured rate, MB (10^6 bytes) each second.
        mbps: f64,
        /// The maximum rate of that part, MB (10^6 bytes) each second.
        ceiling_mbps: f64,
    },
    /// Percent of the written bytes that were still in caches when the measurement ended.
    StillInCaches {
        /// The share, percent.
        percent: f64,
    },
    /// Percent of the read bytes that came from the controller's cache and from no drive.
    ReadFromCache {
        /// The share, percent.
        percent: f64,
    },
    /// The requests went through the page cache of the host.
    PageCache,
    /// Percentage of the measurement's time that the flush took which made the writes durable.
    FlushOwed {
        /// The share, percent.
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

/// Compares the rates of a result with ceilings and adds flags.
pub fn flag(result: &mut CellResult, ceilings: &[Ceiling]) {
    if result.elapsed_ns == 0 {
        return;
    }
    let rate = |bytes: u64| bytes as f64 * 1e3 / result.elapsed_ns as f64;
    let (read, written) = (rate(result.reads.bytes), rate(result.writes.bytes));
    let found = ceilings.iter().flat_map(|ceiling| above(ceiling, read, written));
    result.flags.extend(found);
}

/// The flags for rates above a ceiling. `read` and `written` are rates of the same time.
fn above(ceiling: &Ceiling, read: f64, written: f64) -> Vec<Flag> {
    let most = 1.0 + ABOVE_PERCENT / 100.0;
    let flag = |way: &str, mbps: f64, ceiling_mbps: f64| {
        let (part, way) = (ceiling.name.clone(), way.to_owned());
        Flag::AboveCeiling { part, way, mbps, ceiling_mbps }
    };
    let ways = [("read", read, ceiling.read_mbps), ("write", written, ceiling.write_mbps)];
    let alone = ways.into_iter().filter(|(_, mbps, carries)| *mbps > carries * most);
    let mut found: Vec<Flag> = alone.map(|(way, mbps, carries)| flag(way, mbps, carries)).collect();
    let load = read / ceiling.read_mbps + written / ceiling.write_mbps;
    if found.is_empty() && ceiling.shared && load > most {
        found.push(flag("read and write", read + written, (read + written) / load));
    }
    found
}

/// The flag for the share of the bytes in which a cache took part, if that share is too large.
pub(super) fn cached(share: f64, flag: impl Fn(f64) -> Flag) -> Option<Flag> {
    let percent = share * 100.0;
    (percent > CACHED_PERCENT).then(|| flag(percent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{ceilings, machine_spec, run_cell, Axes, CellSpec, Direction, Effort, Pattern};
    use openraid_models::Library;

    fn written(subject: &str) -> (CellResult, Vec<Ceiling>) {
        let library = Library::builtin();
        let axes = Axes { op: Some(Direction::Write), bs: Some(1 << 20), qd: Some(4), ..Axes::default() };
        let cell = CellSpec::new("openraid", subject.parse().unwrap(), Pattern::Sequential).with(axes);
        let cell = CellSpec { effort: Effort::QUICK, ..cell };
        let ceilings = ceilings(&library, &machine_spec(&library, &cell).unwrap(), &cell).unwrap();
        (run_cell(&library, &cell).unwrap(), ceilings)
    }

    #[test]
    fn a_rate_above_the_bus_or_the_media_is_flagged_with_the_part() {
        let (mut result, ceilings) = written("raid5x4");
        let members = ceilings.iter().find(|ceiling| ceiling.name == "members").unwrap();
        assert!((members.write_mbps - 810.0).abs() < 1e-9 && (members.read_mbps - 1080.0).abs() < 1e-9);
        assert_eq!(result.flags, [], "{:?}", result.notes);
        // The same bytes at 1,000 MB/s.
        result.elapsed_ns = result.writes.bytes;
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
        assert_eq!(result.flags.len(), 3, "the bus and the links, too: {:?}", result.flags);
    }

    #[test]
    fn shares_add_up_for_a_part_that_carries_both_directions_in_turn() {
        let part = |shared| Ceiling { name: "bus".into(), read_mbps: 200.0, write_mbps: 100.0, shared };
        // 120 of 200 and 60 of 100 need 120 % of the resource.
        let [Flag::AboveCeiling { way, mbps, ceiling_mbps, .. }] = &above(&part(true), 120.0, 60.0)[..] else {
            panic!("it is flagged once")
        };
        assert_eq!((way.as_str(), *mbps, ceiling_mbps.round()), ("read and write", 180.0, 150.0));
        assert_eq!(above(&part(true), 120.0, 40.0), []);
        assert_eq!(above(&part(false), 190.0, 95.0), []);
        let ways = |read, written| above(&part(true), read, written).len();
        assert_eq!((ways(210.0, 0.0), ways(210.0, 110.0)), (1, 2));
    }
}
