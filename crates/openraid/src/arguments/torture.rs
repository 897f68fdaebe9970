//! `openraid torture`: arrays, loads and faults drawn from seeds, and a judge beside them.

use clap::Args;

/// What `torture` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Every seed is a run: an array, how it is served, what hosts ask, what goes wrong when. The engine under test is the one that \
serves; drives, time and power are simulated. Nothing outside of this process is touched.

The exit code is 2 where a run has lost something that was promised, and with --planted where no run has found the bug. Each \
run that lost something is named by its seed as soon as that is known; --replay SEED prints what happened in it, made as short
as it can be. An interrupt (Ctrl-C, SIGTERM) begins no more runs, and prints what they came to so far.

Examples:
  openraid torture                            a thousand runs
  openraid torture --minutes 60               as many as an hour holds
  openraid torture --seeds 5000..6000 --threads 2
  openraid torture --replay 4711
  openraid torture --planted skip-flush       a bug in the driver: which seed finds it?")]
pub struct TortureArguments {
    /// Which seeds: A..B, both included, or the last one of those that begin with 1
    #[arg(long, value_name = "A..B", default_value = "1..1000", value_parser = seeds, conflicts_with = "replay")]
    pub seeds: Seeds,
    /// Begin no run after so many minutes; without --seeds, go on with the next seed until then
    #[arg(long, value_name = "N", value_parser = minutes, conflicts_with = "replay")]
    pub minutes: Option<u64>,
    /// One run, and its story if it loses something
    #[arg(long, value_name = "SEED", value_parser = seed)]
    pub replay: Option<u64>,
    /// Let a bug into the driver, to see it found; an unknown name lists those there are
    #[arg(long, value_name = "NAME")]
    pub planted: Option<String>,
    /// Only runs in which anything may go wrong, also what no level promises to survive
    #[arg(long, conflicts_with = "replay")]
    pub unbounded: bool,
    /// Runs at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// One line for each fault, policy and level; with --replay, also what the engine says of itself
    #[arg(long)]
    pub full: bool,
}

/// Seeds from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// Runs of more minutes than this were not meant: it is ten weeks.
const MINUTES_MAX: u64 = 100_000;

fn minutes(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|minutes| (1..=MINUTES_MAX).contains(minutes));
    number.ok_or_else(|| format!("'{text}' is not a number of minutes: say a whole one from 1 to {MINUTES_MAX}"))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a seed: seeds are whole numbers, as the runs are named by them"))
}

fn seeds(text: &str) -> Result<Seeds, String> {
    let number =
        |word: &str| word.parse::<u64>().map_err(|_| format!("{}; say A..B, like 1..1000", seed(word).unwrap_err()));
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?),
        None => (1, number(text)?),
    };
    if first > last {
        return Err(format!("no seed is in {first}..{last}: the first one must not be above the last one"));
    }
    Ok(Seeds { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends_and_wrong_ones_say_what_is_wrong() {
        assert_eq!(seeds("3..5"), Ok(Seeds { first: 3, last: 5 }));
        assert_eq!(seeds("3..=5"), Ok(Seeds { first: 3, last: 5 }));
        assert_eq!(seeds("7"), Ok(Seeds { first: 1, last: 7 }));
        for (wrong, word) in [("5..3", "above"), ("a..3", "'a'"), ("1..", "''"), ("-1..2", "'-1'")] {
            let error = seeds(wrong).expect_err(wrong);
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }

    #[test]
    fn minutes_and_seeds_that_are_no_whole_numbers_are_refused_in_words() {
        assert_eq!((minutes("60"), seed("4711")), (Ok(60), Ok(4711)));
        for wrong in ["0.5", "0", "100001", "-1", "an hour"] {
            let error = minutes(wrong).expect_err(wrong);
            assert!(error.contains(&format!("'{wrong}'")) && error.contains("from 1 to 100000"), "{error}");
        }
        assert!(seed("abc").expect_err("no number").contains("'abc' is not a seed"));
    }
}
