//! A drive that is slower than its siblings: the best sign of a coming failure that a controller sees by itself.
//!
//! ```text
//!  mean time of a command, of each member, over a window --compared with--> the median of the other members
//! ```

/// Commands of a window, at least: fewer say nothing.
const COMMANDS_MIN: u64 = 50;
/// This many times the median of the others is slow.
const TIMES: u64 = 3;
/// A smaller difference is none, in nanoseconds.
const DIFFERENCE_MIN_NS: u64 = 2_000_000;
/// Members that have to be compared with: the median of fewer is one drive's word against another's.
const SIBLINGS_MIN: usize = 2;
/// A drive is slow if it was in this many windows in a row.
pub const WINDOWS: u32 = 3;

/// A member in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Commands that ended.
    pub commands: u64,
    /// Time in the drive, of all of them together, in nanoseconds.
    pub time_ns: u128,
}

impl Pace {
    fn mean(self) -> u64 {
        u64::try_from(self.time_ns / u128::from(self.commands.max(1))).unwrap_or(u64::MAX)
    }
}

/// The members that are slow, by their places: the mean time, and the median of the others, in nanoseconds.
pub fn slow(paces: &[Pace]) -> Vec<(usize, u64, u64)> {
    let busy: Vec<usize> = (0..paces.len()).filter(|nth| paces[*nth].commands >= COMMANDS_MIN).collect();
    let mut found = Vec::new();
    for nth in &busy {
        let mut others: Vec<u64> =
            busy.iter().filter(|other| *other != nth).map(|other| paces[*other].mean()).collect();
        if others.len() < SIBLINGS_MIN {
            continue;
        }
        others.sort_unstable();
        let (own, median) = (paces[*nth].mean(), others[others.len() / 2]);
        if own >= median.saturating_mul(TIMES) && own - median >= DIFFERENCE_MIN_NS {
            found.push((*nth, own, median));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paces(means_ms: &[u64]) -> Vec<Pace> {
        means_ms.iter().map(|ms| Pace { commands: 100, time_ns: u128::from(*ms) * 100_000_000 }).collect()
    }

    #[test]
    fn only_a_drive_that_is_far_slower_than_most_is_named() {
        assert_eq!(slow(&paces(&[8, 9, 40, 8])), [(2, 40_000_000, 8_000_000)]);
        assert_eq!(slow(&paces(&[8, 9, 20, 8])), [], "twice is the load");
        assert_eq!(slow(&paces(&[1, 1, 2, 1])), [], "a difference of a millisecond is none");
        assert_eq!(slow(&paces(&[40, 40, 40, 8])), [], "most are as slow");
        assert_eq!(slow(&paces(&[8, 40])), [], "which of two is it?");
        let mut idle = paces(&[8, 9, 40, 8]);
        idle[2].commands = 49;
        assert_eq!(slow(&idle), []);
        assert_eq!(slow(&[]), []);
    }
}
