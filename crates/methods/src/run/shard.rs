//! A part of a list of work: every n-th item, so that all parts take about the same time.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum number of parts.
const PARTS_MAX: u32 = 100_000;

/// One of several equal parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Shard)]
pub struct RunShard {
    /// The number of this part, from 1.
    pub index: u32,
    /// Number of parts that the whole was divided into.
    pub of: u32,
}

impl RunShard {
    /// Does the item with this index (from 0) belong to the part?
    #[must_use]
    pub const fn takes(self, number: usize) -> bool {
        number as u64 % self.of as u64 == self.index as u64 - 1
    }
}

impl fmt::Display for RunShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for RunShard {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let numbers = word.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if of <= PARTS_MAX && index >= 1 && index <= of => Ok(Self { index, of }),
            _ => Err(format!(
                "{word:?} is not a part; write I/N with I from 1 to N, as in 3/8 (at most {PARTS_MAX} parts)"
            )),
        }
    }
}

/// Are these all parts of one whole, each once?
///
/// # Errors
/// The part that is missing, given twice, or of another whole.
pub fn complete(shards: &[RunShard]) -> Result<(), String> {
    let Some(first) = shards.first() else { return Err("there is no part; name all of them".into()) };
    if let Some(other) = shards.iter().find(|shard| shard.of != first.of) {
        return Err(format!("{first} and {other} are parts of different wholes; name the parts of one"));
    }
    let mut found = shards.to_vec();
    found.sort_unstable();
    if let Some(twice) = found.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("part {} is there twice; name each once", twice[0]));
    }
    let is_there = |index: &u32| found.iter().any(|shard| shard.index == *index);
    let missing: Vec<String> = (1..=first.of).filter(|index| !is_there(index)).map(|index| index.to_string()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("of {} parts these are missing: {}; run them and name them, too", first.of, missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_belongs_to_exactly_one_part() {
        for of in 1..9 {
            for number in 0..50 {
                let owners = (1..=of).filter(|index| RunShard { index: *index, of }.takes(number)).count();
                assert_eq!(owners, 1);
            }
        }
        for wrong in ["", "1", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2", "1/100001"] {
            assert!(wrong.parse::<RunShard>().is_err(), "{wrong}");
        }
        assert_eq!("3/8".parse::<RunShard>().unwrap().to_string(), "3/8");
    }

    #[test]
    fn missing_and_superfluous_parts_are_named() {
        let parts = |words: &[&str]| words.iter().map(|word| word.parse().unwrap()).collect::<Vec<RunShard>>();
        assert_eq!(complete(&parts(&["2/3", "1/3", "3/3"])), Ok(()));
        for (words, wanted) in [
            (&["1/3", "3/3"][..], "missing: 2"),
            (&["1/2", "1/2", "2/2"], "part 1/2 is there twice"),
            (&["1/2", "2/3"], "different wholes"),
            (&[], "no part"),
        ] {
            let error = complete(&parts(words)).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
