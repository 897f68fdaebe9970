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
/// Nearly all commands are writes if only one of this many is none.
const WRITES_OF: u64 = 10;
/// A drive is slow if it was in this many windows in a row.
pub const WINDOWS: u32 = 3;

/// A member in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrivePace {
    /// Commands that ended.
    pub commands: u64,
    /// Time in the drive, of all of them together, in nanoseconds.
    pub time_ns: u128,
    /// The part of them that were writes.
    pub writes: u64,
}

impl DrivePace {
    fn mean(self) -> u64 {
        u64::try_from(self.time_ns / u128::from(self.commands.max(1))).unwrap_or(u64::MAX)
    }
}

/// What a window says of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PaceVerdict {
    /// It, or the others, had too few commands: nothing.
    Unknown,
    /// It is as fast as the others.
    Fine,
    Slow(Slowness),
}

/// How slow a member was in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slowness {
    /// Mean time of a command, in nanoseconds.
    pub mean_ns: u64,
    /// The median of the others, in nanoseconds.
    pub median_ns: u64,
    /// Nearly all commands were writes: drives with shingled recording are slow at these.
    pub writes: bool,
}

/// A drive that is slower than its siblings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slow {
    /// Windows in a row. Windows without a verdict do not count, and do not end the row.
    pub windows: u32,
    pub last: Slowness,
}

/// The verdict on each member of a set.
pub fn judge(paces: &[DrivePace]) -> Vec<PaceVerdict> {
    let busy: Vec<usize> = (0..paces.len()).filter(|nth| paces[*nth].commands >= COMMANDS_MIN).collect();
    let of = |nth: usize| {
        let mut others: Vec<u64> =
            busy.iter().filter(|other| **other != nth).map(|other| paces[*other].mean()).collect();
        if paces[nth].commands < COMMANDS_MIN || others.len() < SIBLINGS_MIN {
            return PaceVerdict::Unknown;
        }
        others.sort_unstable();
        let (mean, median) = (paces[nth].mean(), others[others.len() / 2]);
        if mean >= median.saturating_mul(TIMES) && mean - median >= DIFFERENCE_MIN_NS {
            let writes = paces[nth].writes * WRITES_OF >= paces[nth].commands * (WRITES_OF - 1);
            PaceVerdict::Slow(Slowness { mean_ns: mean, median_ns: median, writes })
        } else {
            PaceVerdict::Fine
        }
    };
    (0..paces.len()).map(of).collect()
}

/// A member after one more window.
pub const fn after(before: Option<Slow>, verdict: PaceVerdict) -> Option<Slow> {
    match verdict {
        PaceVerdict::Unknown => before,
        PaceVerdict::Fine => None,
        PaceVerdict::Slow(last) => {
            let windows = match before {
                Some(before) => before.windows.saturating_add(1),
                None => 1,
            };
            Some(Slow { windows, last })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paces(means_ms: &[u64]) -> Vec<DrivePace> {
        means_ms
            .iter()
            .map(|ms| DrivePace { commands: 100, time_ns: u128::from(*ms) * 100_000_000, writes: *ms })
            .collect()
    }

    const fn found(writes: bool) -> Slowness {
        Slowness { mean_ns: 40_000_000, median_ns: 8_000_000, writes }
    }

    fn slow(paces: &[DrivePace]) -> Vec<usize> {
        let all = judge(paces);
        (0..all.len()).filter(|nth| matches!(all[*nth], PaceVerdict::Slow(..))).collect()
    }

    #[test]
    fn only_a_drive_that_is_far_slower_than_most_is_named() {
        assert_eq!(judge(&paces(&[8, 9, 40, 8]))[2], PaceVerdict::Slow(found(false)));
        let mut written = paces(&[8, 9, 40, 8]);
        written[2].writes = 90;
        assert_eq!(judge(&written)[2], PaceVerdict::Slow(found(true)));
        assert_eq!(slow(&paces(&[8, 9, 40, 8])), [2]);
        assert_eq!(slow(&paces(&[8, 9, 20, 8])), [0_usize; 0], "twice is the load");
        assert_eq!(slow(&paces(&[1, 1, 2, 1])), [0_usize; 0], "a difference of a millisecond is none");
        assert_eq!(slow(&paces(&[40, 40, 40, 8])), [0_usize; 0], "most are as slow");
        assert_eq!(judge(&paces(&[8, 40])), [PaceVerdict::Unknown; 2], "which of two is it?");
        let mut idle = paces(&[8, 9, 40, 8]);
        idle[2].commands = 49;
        assert_eq!(judge(&idle), [PaceVerdict::Fine, PaceVerdict::Fine, PaceVerdict::Unknown, PaceVerdict::Fine]);
        assert_eq!(judge(&[]), [PaceVerdict::Fine; 0]);
    }

    #[test]
    fn a_row_of_slow_windows_survives_silence_and_ends_with_the_first_fast_one() {
        let is_raised = |row: Option<Slow>| row.is_some_and(|slow| slow.windows >= WINDOWS);
        let slow = PaceVerdict::Slow(found(false));
        let (mut row, mut raised) = (None, Vec::new());
        for verdict in
            [slow, slow, PaceVerdict::Unknown, slow, PaceVerdict::Unknown, PaceVerdict::Fine, slow, PaceVerdict::Fine]
        {
            row = after(row, verdict);
            raised.push(is_raised(row));
        }
        assert_eq!(raised, [false, false, false, true, true, false, false, false]);
    }
}
