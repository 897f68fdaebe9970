//! A step as a line of a file: its seed, its word, its numbers.

use std::fmt;

use openraid_units::Nanos;

use super::value::Value;
use crate::fault::changing_runs::ShapeWish;
use crate::fault::phase::Phase;
use crate::fault::scenario::{Action, ControllerEnd, ScenarioStep};
use crate::rig::Loss;

/// A step that is written to a file.
pub(super) struct StepLine(pub ScenarioStep);

impl fmt::Display for StepLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioStep { seed, action } = self.0;
        let plain = PLAIN.iter().find(|(_, plain)| *plain == action);
        let counted =
            COUNTED.iter().find_map(|(word, make)| number_of(action).filter(|n| make(*n) == action).map(|n| (word, n)));
        write!(f, "{seed:016x} ")?;
        if let Some((word, _)) = plain {
            return f.write_str(word);
        }
        if let Some((word, number)) = counted {
            return write!(f, "{word} {number}");
        }
        match action {
            Action::Wait(time) => write!(f, "wait {}", time.words()),
            Action::Reconnect(time) => write!(f, "reconnect {}", time.words()),
            Action::Silence(time) => write!(f, "silence {}", time.words()),
            Action::Lose(how) => write!(f, "lose {}", how.words()),
            Action::JournalLose(how) => write!(f, "journal-lose {}", how.words()),
            Action::End(end, again) => write!(f, "end {} {}", end.words(), again.words()),
            Action::CutAndLose(again) => write!(f, "cut-and-lose {}", again.words()),
            Action::CutAndBack(again) => write!(f, "cut-and-back {}", again.words()),
            Action::Until(phase, busy) => write!(f, "until {} {phase}", if busy { "busy" } else { "idle" }),
            Action::Reshape(wish) => write!(f, "reshape {wish}"),
            other => unreachable!("{other:?} is in one of the tables"),
        }
    }
}

/// Actions without a number.
const PLAIN: &[(&str, Action)] = &[
    ("rest", Action::Rest),
    ("flush", Action::Flush),
    ("look", Action::Look),
    ("vanish", Action::Vanish),
    ("return", Action::Return),
    ("readd", Action::Readd),
    ("add", Action::Add),
    ("replace", Action::Replace),
    ("check", Action::Scrub { repair: false }),
    ("repair", Action::Scrub { repair: true }),
    ("late", Action::Late),
    ("flip", Action::Flip),
    ("lost-write", Action::LostWrite),
    ("misdirect", Action::Misdirect),
    ("misread", Action::Misread),
    ("flip-on-the-way", Action::FlipOnTheWay),
    ("flip-superblock", Action::FlipSuperblock),
    ("make-room", Action::MakeRoom),
    ("keep-images", Action::KeepImages),
    ("older-member", Action::OlderMember),
    ("older-journal", Action::OlderJournal),
    ("older-version", Action::OlderVersion),
    ("start-reading", Action::StartReading),
    ("half-copied", Action::HalfCopied),
    ("share-spare", Action::ShareSpare),
    ("policy", Action::Policy),
    ("journal-return", Action::JournalReturn),
    ("journal-flip", Action::JournalHurt { silent: true }),
    ("journal-unreadable", Action::JournalHurt { silent: false }),
    ("refuse", Action::Refuse),
    ("refuse-discards", Action::RefuseDiscards),
    ("pause", Action::Pause),
    ("cancel-reshape", Action::CancelReshape),
    ("resume", Action::Resume),
    ("stop-check", Action::StopScrub),
    ("rename", Action::Rename),
    ("consistency", Action::Consistency),
    ("journal-join", Action::JournalJoin),
    ("journal-again", Action::JournalAgain),
];

/// Makes an action from its count.
type CountedAction = fn(u64) -> Action;

/// Actions with a count.
const COUNTED: &[(&str, CountedAction)] = &[
    ("ask", Action::Ask),
    ("happen", Action::Happen),
    ("latent", Action::Latent),
    ("dead", Action::Dead),
    ("patrol", Action::Patrol),
    ("fill", Action::Fill),
    ("start-without", Action::StartWithout),
    ("check-degraded", Action::CheckDegraded),
];

/// The word of an action that has details, and whether an action is of that kind.
type DetailedAction = (&'static str, fn(Action) -> bool);

/// Actions with other details.
const DETAILED: &[DetailedAction] = &[
    ("wait", |action| matches!(action, Action::Wait(_))),
    ("silence", |action| matches!(action, Action::Silence(_))),
    ("reconnect", |action| matches!(action, Action::Reconnect(_))),
    ("lose", |action| matches!(action, Action::Lose(_))),
    ("journal-lose", |action| matches!(action, Action::JournalLose(_))),
    ("end", |action| matches!(action, Action::End(..))),
    ("cut-and-lose", |action| matches!(action, Action::CutAndLose(_))),
    ("cut-and-back", |action| matches!(action, Action::CutAndBack(_))),
    ("until", |action| matches!(action, Action::Until(..))),
    ("reshape", |action| matches!(action, Action::Reshape(_))),
];

impl Action {
    /// The word of the action, without its details.
    #[must_use]
    pub fn word(self) -> &'static str {
        let plain = PLAIN.iter().find(|(_, plain)| *plain == self).map(|(word, _)| *word);
        let counted = || number_of(self).and_then(|n| COUNTED.iter().find(|(_, make)| make(n) == self));
        let detailed = || DETAILED.iter().find(|(_, is_it)| is_it(self)).map(|(word, _)| *word);
        plain.or_else(|| counted().map(|(word, _)| *word)).or_else(detailed).expect("each action has a word")
    }

    pub fn all_words() -> impl Iterator<Item = &'static str> {
        let plain = PLAIN.iter().map(|(word, _)| *word);
        plain.chain(COUNTED.iter().map(|(word, _)| *word)).chain(DETAILED.iter().map(|(word, _)| *word))
    }
}

fn number_of(action: Action) -> Option<u64> {
    match action {
        Action::Ask(n)
        | Action::Happen(n)
        | Action::Latent(n)
        | Action::Dead(n)
        | Action::Patrol(n)
        | Action::Fill(n)
        | Action::StartWithout(n)
        | Action::CheckDegraded(n) => Some(n),
        _ => None,
    }
}

/// The step of a line.
pub(super) fn parse(line: &str) -> Option<ScenarioStep> {
    let (seed, words) = line.split_once(' ')?;
    Some(ScenarioStep { seed: u64::from_str_radix(seed, 16).ok()?, action: action(words)? })
}

fn action(words: &str) -> Option<Action> {
    if let Some((_, action)) = PLAIN.iter().find(|(word, _)| *word == words) {
        return Some(*action);
    }
    let (word, rest) = words.split_once(' ')?;
    if let Some((_, make)) = COUNTED.iter().find(|(counted, _)| *counted == word) {
        return rest.parse().ok().map(make);
    }
    match word {
        "wait" => Nanos::from_words(rest).map(Action::Wait),
        "reconnect" => Nanos::from_words(rest).map(Action::Reconnect),
        "silence" => Nanos::from_words(rest).map(Action::Silence),
        "lose" => Loss::from_words(rest).map(Action::Lose),
        "journal-lose" => Loss::from_words(rest).map(Action::JournalLose),
        "reshape" => ShapeWish::from_words(rest).map(Action::Reshape),
        "cut-and-lose" => Value::from_words(rest).map(Action::CutAndLose),
        "cut-and-back" => Value::from_words(rest).map(Action::CutAndBack),
        "end" => {
            let (end, again) = rest.split_once(' ')?;
            Some(Action::End(ControllerEnd::from_words(end)?, Value::from_words(again)?))
        }
        "until" => {
            let (load, phase) = rest.split_once(' ')?;
            let busy = ["idle", "busy"].iter().position(|word| *word == load)? == 1;
            Some(Action::Until(Phase::from_words(phase)?, busy))
        }
        _ => None,
    }
}
