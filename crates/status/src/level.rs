//! The level of an array in documents and in the registry.

use std::fmt;

use openraid_units::ArrayLevel;
use serde::{Deserialize, Serialize};

/// Documents begin the level of a stripe without another name with this.
const STRIPE: &str = "raid0 over ";
/// The word if a level is not known.
const UNKNOWN: &str = "unknown";

/// The level of an array, served or recorded. Documents have its word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum LevelWord {
    /// A level that users can name.
    Of(ArrayLevel),
    /// A RAID 0 over sets of this level. Only foreign tools make it.
    StripeOver(ArrayLevel),
    /// The level is not known: a file that names an array does not say its level.
    Unknown,
    /// A word that another version wrote into the registry. It stays as it is.
    Other(String),
}

impl LevelWord {
    /// Is the array a stripe over sets?
    #[must_use]
    pub const fn is_nested(&self) -> bool {
        match self {
            Self::Of(level) => level.has_spans(),
            Self::StripeOver(_) => true,
            Self::Unknown | Self::Other(_) => false,
        }
    }
}

impl PartialEq<ArrayLevel> for LevelWord {
    fn eq(&self, level: &ArrayLevel) -> bool {
        *self == Self::Of(*level)
    }
}

impl From<ArrayLevel> for LevelWord {
    fn from(level: ArrayLevel) -> Self {
        Self::Of(level)
    }
}

impl From<String> for LevelWord {
    fn from(word: String) -> Self {
        let stripe = word.strip_prefix(STRIPE).and_then(ArrayLevel::from_word);
        match (ArrayLevel::from_word(&word), stripe) {
            (Some(level), _) => Self::Of(level),
            (None, Some(level)) => Self::StripeOver(level),
            (None, None) if word == UNKNOWN => Self::Unknown,
            (None, None) => Self::Other(word),
        }
    }
}

impl From<LevelWord> for String {
    fn from(level: LevelWord) -> Self {
        level.to_string()
    }
}

impl fmt::Display for LevelWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(level) => f.write_str(level.word()),
            Self::StripeOver(level) => write!(f, "{STRIPE}{}", level.word()),
            Self::Unknown => f.write_str(UNKNOWN),
            Self::Other(word) => f.write_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_read_as_it_was_written_and_a_strange_one_stays() {
        let levels = ArrayLevel::WORDS.map(|(_, level)| level);
        let known = levels.into_iter().flat_map(|level| [LevelWord::Of(level), LevelWord::StripeOver(level)]);
        for level in known.chain([LevelWord::Unknown, LevelWord::Other("raid7".into())]) {
            let text = serde_json::to_string(&level).expect("text");
            assert_eq!(text, format!("\"{level}\""));
            assert_eq!(serde_json::from_str::<LevelWord>(&text).expect("a level"), level);
        }
        assert_eq!(LevelWord::from("raid0 over raid1".to_owned()), LevelWord::StripeOver(ArrayLevel::Raid1));
        assert!(LevelWord::from("raid50".to_owned()) == ArrayLevel::Raid50);
    }
}
