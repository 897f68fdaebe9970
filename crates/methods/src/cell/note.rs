//! Notes of a run, in the order in which they came up. A document has the words of [`CellNote`]'s `Display`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A note of a run. A kind with consequences has a variant; its text is the rest of the sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellNote {
    /// The warm-up reached its limit before the load was steady.
    WarmUpUnsteady(String),
    /// The caches were still emptying during the measurement.
    CachesUnsteady(String),
    /// Files, working sets or a zone are smaller than in the reviews, because the target is small.
    Scaled(String),
    /// A note without consequences.
    Other(String),
}

/// A variant of [`CellNote`] as a function of its text.
type Kind = fn(String) -> CellNote;

/// The kinds of notes that begin with words of their kind, with these words.
const KINDS: [(&str, Kind); 3] = [
    (WARM_UP_UNSTEADY, CellNote::WarmUpUnsteady),
    (CACHES_UNSTEADY, CellNote::CachesUnsteady),
    (SCALED, CellNote::Scaled),
];
const WARM_UP_UNSTEADY: &str = "warm-up: NOT steady ";
const CACHES_UNSTEADY: &str = "caches: NOT steady: ";
const SCALED: &str = "SCALED: ";

impl CellNote {
    /// Does the note say that the load was not steady during the measurement?
    #[must_use]
    pub const fn is_unsteady(&self) -> bool {
        matches!(self, Self::WarmUpUnsteady(_) | Self::CachesUnsteady(_))
    }

    /// The reason why a set is smaller than in the reviews.
    #[must_use]
    pub fn scaled(&self) -> Option<&str> {
        match self {
            Self::Scaled(reason) => Some(reason),
            Self::WarmUpUnsteady(_) | Self::CachesUnsteady(_) | Self::Other(_) => None,
        }
    }

    /// The note of a document.
    fn of_document(words: String) -> Self {
        let kind = KINDS.iter().find_map(|(begin, kind)| Some(kind(words.strip_prefix(begin)?.to_owned())));
        kind.unwrap_or(Self::Other(words))
    }
}

impl fmt::Display for CellNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begin, text) = match self {
            Self::WarmUpUnsteady(text) => (WARM_UP_UNSTEADY, text),
            Self::CachesUnsteady(text) => (CACHES_UNSTEADY, text),
            Self::Scaled(text) => (SCALED, text),
            Self::Other(text) => ("", text),
        };
        write!(f, "{begin}{text}")
    }
}

impl Serialize for CellNote {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CellNote {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of_document(String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_words_of_a_note_and_gives_the_same_note_again() {
        let notes = [
            CellNote::WarmUpUnsteady("after 3 requests and 1.000 s".into()),
            CellNote::CachesUnsteady("the drives wrote 7 % more than the load, which was in caches before".into()),
            CellNote::Scaled("1 files of 2 KiB in all; the whole set needs a target of 4 GiB".into()),
            CellNote::Other("before: 9 requests of sequential at depth 16".into()),
        ];
        let text = serde_json::to_string(&notes).unwrap();
        assert_eq!(
            text,
            r#"["warm-up: NOT steady after 3 requests and 1.000 s","caches: NOT steady: the drives wrote 7 % more than the load, which was in caches before","SCALED: 1 files of 2 KiB in all; the whole set needs a target of 4 GiB","before: 9 requests of sequential at depth 16"]"#
        );
        assert_eq!(serde_json::from_str::<Vec<CellNote>>(&text).unwrap(), notes);
        assert_eq!(notes.each_ref().map(CellNote::is_unsteady), [true, true, false, false]);
    }
}
