//! A step as a line of a file: its seed, its word, its numbers.

use std::fmt;

use openraid_units::Nanos;

use super::value::Value;
use crate::fault::phase::Phase;
use crate::fault::scenario::{Deed, End, Step};
use crate::rig::Loss;

/// A step to be written.
pub(super) struct Line(pub Step);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { seed, deed } = self.0;
        let plain = PLAIN.iter().find(|(_, plain)| *plain == deed);
        let counted =
            COUNTED.iter().find_map(|(word, make)| number_of(deed).filter(|n| make(*n) == deed).map(|n| (word, n)));
        write!(f, "{seed:016x} ")?;
        if let Some((word, _)) = plain {
            return f.write_str(word);
        }
        if let Some((word, number)) = counted {
            return write!(f, "{word} {number}");
        }
        match deed {
            Deed::Wait(time) => write!(f, "wait {}", time.words()),
            Deed::Silence(time) => write!(f, "silence {}", time.words()),
            Deed::Lose(how) => write!(f, "lose {}", how.words()),
            Deed::JournalLose(how) => write!(f, "journal-lose {}", how.words()),
            Deed::End(end, again) => write!(f, "end {} {}", end.words(), again.words()),
            Deed::CutAndLose(again) => write!(f, "cut-and-lose {}", again.words()),
            Deed::CutAndBack(again) => write!(f, "cut-and-back {}", again.words()),
            Deed::Until(phase, busy) => write!(f, "until {} {phase}", if busy { "busy" } else { "idle" }),
            other => unreachable!("{other:?} is in one of the tables"),
        }
    }
}

/// Deeds without a number.
const PLAIN: &[(&str, Deed)] = &[
    ("rest", Deed::Rest),
    ("flush", Deed::Flush),
    ("look", Deed::Look),
    ("vanish", Deed::Vanish),
    ("return", Deed::Return),
    ("readd", Deed::Readd),
    ("add", Deed::Add),
    ("replace", Deed::Replace),
    ("check", Deed::Scrub { repair: false }),
    ("repair", Deed::Scrub { repair: true }),
    ("late", Deed::Late),
    ("flip", Deed::Flip),
    ("lost-write", Deed::LostWrite),
    ("misdirect", Deed::Misdirect),
    ("misread", Deed::Misread),
    ("flip-on-the-way", Deed::FlipOnTheWay),
    ("flip-superblock", Deed::FlipSuperblock),
    ("policy", Deed::Policy),
    ("journal-return", Deed::JournalReturn),
    ("journal-flip", Deed::JournalHurt { silent: true }),
    ("journal-unreadable", Deed::JournalHurt { silent: false }),
];

/// A deed of this count.
type Counted = fn(u64) -> Deed;

/// Deeds with a count.
const COUNTED: &[(&str, Counted)] = &[
    ("ask", Deed::Ask),
    ("happen", Deed::Happen),
    ("latent", Deed::Latent),
    ("dead", Deed::Dead),
    ("patrol", Deed::Patrol),
];

fn number_of(deed: Deed) -> Option<u64> {
    match deed {
        Deed::Ask(n) | Deed::Happen(n) | Deed::Latent(n) | Deed::Dead(n) | Deed::Patrol(n) => Some(n),
        _ => None,
    }
}

/// The step of a line.
pub(super) fn parse(line: &str) -> Option<Step> {
    let (seed, words) = line.split_once(' ')?;
    Some(Step { seed: u64::from_str_radix(seed, 16).ok()?, deed: deed(words)? })
}

fn deed(words: &str) -> Option<Deed> {
    if let Some((_, deed)) = PLAIN.iter().find(|(word, _)| *word == words) {
        return Some(*deed);
    }
    let (word, rest) = words.split_once(' ')?;
    if let Some((_, make)) = COUNTED.iter().find(|(counted, _)| *counted == word) {
        return rest.parse().ok().map(make);
    }
    match word {
        "wait" => Nanos::from_words(rest).map(Deed::Wait),
        "silence" => Nanos::from_words(rest).map(Deed::Silence),
        "lose" => Loss::from_words(rest).map(Deed::Lose),
        "journal-lose" => Loss::from_words(rest).map(Deed::JournalLose),
        "cut-and-lose" => Value::from_words(rest).map(Deed::CutAndLose),
        "cut-and-back" => Value::from_words(rest).map(Deed::CutAndBack),
        "end" => {
            let (end, again) = rest.split_once(' ')?;
            Some(Deed::End(End::from_words(end)?, Value::from_words(again)?))
        }
        "until" => {
            let (load, phase) = rest.split_once(' ')?;
            let busy = ["idle", "busy"].iter().position(|word| *word == load)? == 1;
            Some(Deed::Until(Phase::from_words(phase)?, busy))
        }
        _ => None,
    }
}
