//! Levels as users name them: in commands, profiles, plans, reviews and claims.
//!
//! Linux md has fewer levels (`MdLevel` of the format). For md, a single drive is a RAID 1 of one copy. RAID 1E is a
//! RAID 10 with two near copies. RAID 50 and 60 are several sets and a RAID 0 over them.

use core::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ArrayLevel {
    /// One drive as a separate unit, with the controller's caches.
    Single,
    /// Raw drives, each served separately.
    Jbod,
    /// Drives concatenated.
    Linear,
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Striped mirrors on any number of drives, each chunk on two adjacent drives.
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
    /// All levels, with their words in profiles and on the command line.
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

    /// All levels that are compared unless others are named, in the order of tables. RAID 4 must be named, because RAID 5 has
    /// replaced it.
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

    /// The level with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, level)| *level)
    }
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, level)| *level == self).map_or("", |(word, _)| *word)
    }
    /// The title of the level: `RAID 5`.
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
    /// Whether the level survives the loss of any one member.
    #[must_use]
    pub const fn redundant(self) -> bool {
        !matches!(self, Self::Single | Self::Jbod | Self::Linear | Self::Raid0)
    }
    /// Least number of members with which the level makes sense, on every controller.
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
    /// Whether the level is a stripe over several sets, each of which is an array of its own for md.
    #[must_use]
    pub const fn has_spans(self) -> bool {
        matches!(self, Self::Raid50 | Self::Raid60)
    }
    /// Whether the level has parity.
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
