//! The cost of one aligned write within a chunk on the members, by level.
//!
//! Read-modify-write reads the old data and each parity, and XORs the difference into each parity: 1 + p reads, 1 + p
//! XOR passes, 1 + p writes for p parities. Reconstruct-write reads the other data instead, d - 1 reads for d data
//! members, and computes each parity from all data.

use crate::metric::{NotApplicable, Operations};
use crate::subject::Level;

/// The way in which a controller updates parity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ParityUpdate {
    /// Always read-modify-write.
    ReadModifyWrite,
    /// The way with fewer reads.
    Cheapest,
}

/// The cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmallWrite {
    /// Reads, XOR passes, writes.
    pub operations: Operations,
    /// Members that are read or written.
    pub members: u32,
}

/// Parities in a span.
const fn parities(level: Level) -> u32 {
    match level {
        Level::Raid4 | Level::Raid5 | Level::Raid50 => 1,
        Level::Raid6 | Level::Raid60 => 2,
        _ => 0,
    }
}

/// Number of spans of a level: two, or the smallest number that divides the members into equal spans of a size that the
/// level allows.
///
/// # Errors
/// The members cannot be divided in this way.
pub fn spans(level: Level, members: u16) -> Result<u16, NotApplicable> {
    let (least, title) = match level {
        Level::Raid50 => (3, "RAID 50"),
        Level::Raid60 => (4, "RAID 60"),
        _ => return Ok(1),
    };
    let fits = |spans: &u16| members.is_multiple_of(*spans) && members / spans >= least;
    (2..=members).find(fits).ok_or_else(|| {
        NotApplicable::new(format!("{title} needs two or more equal spans of {least} or more members, not {members}"))
    })
}

/// The capacity of an array for data, in members.
///
/// # Errors
/// Such an array is not possible.
pub fn data_members(level: Level, members: u16) -> Result<f64, NotApplicable> {
    let few = |least: u16| {
        if members < least {
            return Err(NotApplicable::new(format!("{} needs {least} members or more", level.word())));
        }
        Ok(f64::from(members))
    };
    Ok(match level {
        Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => few(1)?,
        Level::Raid1 => few(2)? / f64::from(members),
        Level::Raid1e => few(3)? / 2.0,
        Level::Raid10 if members.is_multiple_of(2) => few(4)? / 2.0,
        Level::Raid10 => return Err(NotApplicable::new("raid10 needs an even number of members")),
        Level::Raid4 | Level::Raid5 => few(3)? - 1.0,
        Level::Raid6 => few(4)? - 2.0,
        Level::Raid50 | Level::Raid60 => {
            f64::from(members) - f64::from(parities(level)) * f64::from(spans(level, members)?)
        }
    })
}

/// The cost of one aligned small write.
///
/// # Errors
/// Such an array is not possible.
pub fn small_write(level: Level, members: u16, manner: ParityUpdate) -> Result<SmallWrite, NotApplicable> {
    data_members(level, members)?;
    let copies = match level {
        Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => 1,
        Level::Raid1 => u32::from(members),
        _ => 2,
    };
    let parities = parities(level);
    if parities == 0 {
        let operations = Operations { reads: 0, xors: 0, writes: copies };
        return Ok(SmallWrite { operations, members: copies });
    }
    let span = u32::from(members / spans(level, members)?);
    let others = span - parities - 1;
    let written = 1 + parities;
    if manner == ParityUpdate::Cheapest && others < 1 + parities {
        let operations = Operations { reads: others, xors: others * parities, writes: written };
        return Ok(SmallWrite { operations, members: span });
    }
    let operations = Operations { reads: written, xors: written, writes: written };
    Ok(SmallWrite { operations, members: written })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn cost(level: Level, members: u16, manner: ParityUpdate) -> (u32, u32, u32, u32) {
        let SmallWrite { operations, members } = small_write(level, members, manner).expect("an array");
        (operations.reads, operations.xors, operations.writes, members)
    }

    /// The cost by a loop over the members of a span: slot 0 is written, the last slots have the parities.
    fn walked(span: u32, parities: u32, reconstruct: bool) -> (u32, u32, u32, u32) {
        let data: Vec<u32> = (0..span - parities).collect();
        let parity: Vec<u32> = (span - parities..span).collect();
        let read: BTreeSet<u32> =
            if reconstruct { data[1..].iter().copied().collect() } else { parity.iter().copied().chain([0]).collect() };
        let written: BTreeSet<u32> = parity.iter().copied().chain([0]).collect();
        // Read-modify-write: one pass for the difference, one for each parity. Reconstruct-write: for each parity, one
        // pass for each chunk that was read.
        let passes = if reconstruct { read.len() * parity.len() } else { 1 + parity.len() };
        let count = |set: &BTreeSet<u32>| u32::try_from(set.len()).unwrap_or(0);
        let touched = count(&read.union(&written).copied().collect());
        (count(&read), u32::try_from(passes).unwrap_or(0), count(&written), touched)
    }

    #[test]
    fn parity_costs_what_walking_over_the_members_counts() {
        for (level, parities) in [(Level::Raid5, 1), (Level::Raid6, 2)] {
            for members in (parities + 2)..12 {
                let width = u16::try_from(members).unwrap_or(0);
                let difference = walked(members, parities, false);
                let anew = walked(members, parities, true);
                assert_eq!(cost(level, width, ParityUpdate::ReadModifyWrite), difference);
                let best = if anew.0 < difference.0 { anew } else { difference };
                assert_eq!(cost(level, width, ParityUpdate::Cheapest), best, "{level:?} of {members}");
            }
        }
        assert_eq!(cost(Level::Raid5, 4, ParityUpdate::ReadModifyWrite), (2, 2, 2, 2));
        assert_eq!(cost(Level::Raid6, 8, ParityUpdate::ReadModifyWrite), (3, 3, 3, 3));
        assert_eq!(cost(Level::Raid50, 8, ParityUpdate::ReadModifyWrite), (2, 2, 2, 2));
        assert_eq!(cost(Level::Raid60, 8, ParityUpdate::Cheapest), (1, 2, 3, 4));
    }

    #[test]
    fn copies_cost_a_write_each() {
        for manner in [ParityUpdate::ReadModifyWrite, ParityUpdate::Cheapest] {
            assert_eq!(cost(Level::Raid0, 4, manner), (0, 0, 1, 1));
            assert_eq!(cost(Level::Raid1, 3, manner), (0, 0, 3, 3));
            assert_eq!(cost(Level::Raid10, 8, manner), (0, 0, 2, 2));
            assert_eq!(cost(Level::Raid1e, 5, manner), (0, 0, 2, 2));
        }
    }

    #[test]
    fn spans_and_data_members_follow_the_level() {
        assert_eq!(spans(Level::Raid50, 8), Ok(2));
        assert_eq!(spans(Level::Raid50, 9), Ok(3));
        assert_eq!(spans(Level::Raid60, 16), Ok(2));
        assert!(
            spans(Level::Raid50, 7).is_err() && spans(Level::Raid60, 6).is_err() && spans(Level::Raid50, 4).is_err()
        );
        for (level, members, data) in [
            (Level::Raid0, 6, 6.0),
            (Level::Raid1, 2, 1.0),
            (Level::Raid1e, 5, 2.5),
            (Level::Raid10, 8, 4.0),
            (Level::Raid5, 8, 7.0),
            (Level::Raid6, 8, 6.0),
            (Level::Raid50, 8, 6.0),
            (Level::Raid60, 16, 12.0),
        ] {
            assert_eq!(data_members(level, members), Ok(data), "{level:?}");
        }
        for (level, members) in [(Level::Raid6, 3), (Level::Raid10, 5), (Level::Raid1, 1), (Level::Raid5, 2)] {
            assert!(data_members(level, members).is_err());
        }
    }
}
