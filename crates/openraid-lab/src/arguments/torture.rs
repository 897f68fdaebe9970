//! `openraid-lab torture`: arrays, loads and faults drawn from seeds, and a judge for them.

use clap::Args;

/// What `torture` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Each seed is one run: an array, its settings, the hosts' load, and the faults with their times. The engine under test is the one \
that serves arrays; drives, time and power are simulated. Nothing outside this process is touched.

The exit code is 2 if a run lost an acknowledged write or, with --planted, if no run found the bug. The seed of each losing run is \
printed at once; --replay SEED prints the run, shortened to the steps that matter. Ctrl-C and SIGTERM start no further runs and \
print the results so far.

Examples:
  openraid-lab torture                            a thousand runs
  openraid-lab torture --minutes 60               as many as fit into an hour
  openraid-lab torture --seeds 5000..6000 --threads 2
  openraid-lab torture --replay 4711
  openraid-lab torture --planted skip-flush       a bug in the driver: which seed finds it?")]
pub struct TortureArguments {
    /// Seeds: A..B, both included, or the last one of a range from 1
    #[arg(long, value_name = "A..B", default_value = "1..1000", value_parser = seeds, conflicts_with = "replay")]
    pub seeds: Seeds,
    /// Start no run after N minutes; without --seeds, use as many seeds as fit
    #[arg(long, value_name = "N", value_parser = minutes, conflicts_with = "replay")]
    pub minutes: Option<u64>,
    /// Run one seed, and print its story if it loses a write
    #[arg(long, value_name = "SEED", value_parser = seed)]
    pub replay: Option<u64>,
    /// Plant a bug in the driver, to show that it is found; an unknown name lists the bugs
    #[arg(long, value_name = "NAME")]
    pub planted: Option<String>,
    /// Only unbounded runs: faults may exceed what the level promises to survive
    #[arg(long, conflicts_with = "replay")]
    pub unbounded: bool,
    /// Runs in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// One line for each fault, policy and level; with --replay, also the engine's own trace
    #[arg(long)]
    pub full: bool,
}

/// Seeds from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    /// The last seed.
    pub last: u64,
}

/// Runs of more minutes than this were not meant: it is ten weeks.
const MINUTES_MAX: u64 = 100_000;

fn minutes(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|minutes| (1..=MINUTES_MAX).contains(minutes));
    number.ok_or_else(|| format!("'{text}' is not a number of minutes: give a whole number from 1 to {MINUTES_MAX}"))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a seed: seeds are whole numbers"))
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
    fn ranges_hold_both_ends_and_wrong_ones_name_their_fault() {
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
