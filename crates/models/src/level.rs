//! Levels as users ask for them: in commands, profiles, plans, reviews and claims.
//!
//! Linux md has fewer (`MdLevel` of the format): a single drive is a RAID 1 of one copy there, RAID 1E a RAID 10 with two near copies,
//! and RAID 50 and 60 are several sets with a RAID 0 over them.

use std::fmt;

/// How the drives of an array work together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ArrayLevel {
    /// One drive as a unit of its own, with the controller's caches.
    Single,
    /// Drives passed through one by one.
    Jbod,
    /// Drives one after the other.
    Linear,
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Striped mirrors on any number of drives, each chunk on two neighbours.
    Raid1e,
    /// Stripes over mirrored pairs.
    Raid10,
    /// Parity on one fixed member.
    Raid4,
    /// Rotating parity.
    Raid5,
    /// Two rotating syndromes.
    Raid6,
    /// Stripes over RAID 5 spans.
    Raid50,
    /// Stripes over RAID 6 spans.
    Raid60,
}

impl ArrayLevel {
    /// Every level with its word in profiles and on the command line.
    pub const WORDS: [(&'static str, Self); 12] = [
        ("single", Self::Single),
        ("jbod", Self::Jbod),
        ("linear", Self::Linear),
        ("raid0", Self::Raid0),
        ("raid1", Self::Raid1),
        ("raid1e", Self::Raid1e),
        ("raid10", Self::Raid10),
        ("raid4", Self::Raid4),
        ("raid5", Self::Raid5),
        ("raid6", Self::Raid6),
        ("raid50", Self::Raid50),
        ("raid60", Self::Raid60),
    ];

    /// Every level that is compared, in the order in which tables show them. RAID 4 is not: RAID 5 has taken its place.
    pub const ALL: [Self; 11] = [
        Self::Single,
        Self::Jbod,
        Self::Linear,
        Self::Raid0,
        Self::Raid1,
        Self::Raid1e,
        Self::Raid10,
        Self::Raid5,
        Self::Raid50,
        Self::Raid6,
        Self::Raid60,
    ];

    /// The level of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, level)| *level)
    }
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, level)| *level == self).map_or("", |(word, _)| *word)
    }
    /// As people read it: `RAID 5`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Jbod => "JBOD",
            Self::Linear => "linear",
            Self::Raid0 => "RAID 0",
            Self::Raid1 => "RAID 1",
            Self::Raid1e => "RAID 1E",
            Self::Raid10 => "RAID 10",
            Self::Raid4 => "RAID 4",
            Self::Raid5 => "RAID 5",
            Self::Raid6 => "RAID 6",
            Self::Raid50 => "RAID 50",
            Self::Raid60 => "RAID 60",
        }
    }
    /// Does it survive the loss of any one member?
    #[must_use]
    pub const fn redundant(self) -> bool {
        !matches!(self, Self::Single | Self::Jbod | Self::Linear | Self::Raid0)
    }
    /// The fewest members with which the level makes sense, on every controller.
    #[must_use]
    pub const fn members_min(self) -> u16 {
        match self {
            Self::Single | Self::Jbod | Self::Linear => 1,
            Self::Raid0 | Self::Raid1 => 2,
            Self::Raid1e | Self::Raid4 | Self::Raid5 => 3,
            Self::Raid10 | Self::Raid6 => 4,
            Self::Raid50 => 6,
            Self::Raid60 => 8,
        }
    }
    /// Is it a stripe over several sets, each an array of its own to md?
    #[must_use]
    pub const fn has_spans(self) -> bool {
        matches!(self, Self::Raid50 | Self::Raid60)
    }
    /// Does it compute parity?
    #[must_use]
    pub const fn has_parity(self) -> bool {
        matches!(self, Self::Raid4 | Self::Raid5 | Self::Raid6 | Self::Raid50 | Self::Raid60)
    }
}

impl fmt::Display for ArrayLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
