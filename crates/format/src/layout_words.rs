//! Words for levels and layouts, as mdadm's command line has them.
//!
//! ```text
//!  level   linear | raid0 0 stripe | raid1 1 mirror | raid4 4 | raid5 5 | raid6 6 | raid10 10
//!  raid0   original alternate
//!  raid5   left-asymmetric la, right-asymmetric ra, left-symmetric ls (default), right-symmetric rs,
//!          parity-first, parity-last
//!  raid6   those of raid5, ddf-zero-restart, ddf-N-restart, ddf-N-continue, and the first five of raid5
//!          with "-6" appended, whose Q stands on the last member
//!  raid10  n2 f2 o2: near, far or offset copies and their number
//! ```

use crate::level::{FarSets, MdLevel, Raid0Layout, Raid10Layout};
use core::fmt;

/// A layout that has a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedLayout {
    /// mdadm's word.
    pub word: &'static str,
    /// mdadm's short word, if it has one.
    pub short: Option<&'static str>,
    /// The number in a superblock.
    pub number: u32,
}

const fn of(word: &'static str, short: Option<&'static str>, number: u32) -> NamedLayout {
    NamedLayout { word, short, number }
}

/// Layouts of RAID 0.
const UNEQUAL: [NamedLayout; 2] =
    [of("original", None, Raid0Layout::Original.number()), of("alternate", None, Raid0Layout::Alternate.number())];
/// Layouts of RAID 5, which RAID 6 has too.
const PARITY: [NamedLayout; 6] = [
    of("left-asymmetric", Some("la"), 0),
    of("right-asymmetric", Some("ra"), 1),
    of("left-symmetric", Some("ls"), 2),
    of("right-symmetric", Some("rs"), 3),
    of("parity-first", None, 4),
    of("parity-last", None, 5),
];
/// Layouts that only RAID 6 has.
const PARITY_AND_Q: [NamedLayout; 8] = [
    of("ddf-zero-restart", None, 8),
    of("ddf-N-restart", None, 9),
    of("ddf-N-continue", None, 10),
    of("left-asymmetric-6", None, 16),
    of("right-asymmetric-6", None, 17),
    of("left-symmetric-6", None, 18),
    of("right-symmetric-6", None, 19),
    of("parity-first-6", None, 20),
];
const LEFT_SYMMETRIC: u32 = 2;
const NEAR_2: u32 = 0x102;

/// The level for a word.
#[must_use]
pub fn level_from_word(word: &str) -> Option<MdLevel> {
    match word {
        "stripe" => Some(MdLevel::Raid0),
        "mirror" => Some(MdLevel::Raid1),
        "linear" => Some(MdLevel::Linear),
        "-1" => None,
        _ => {
            let digits = word.strip_prefix("raid").unwrap_or(word);
            let plain = digits == "0" || !digits.starts_with(['0', '+', '-']);
            digits.parse().ok().filter(|_| plain).and_then(MdLevel::from_number)
        }
    }
}

/// The layouts of a level that have words, by number. Those of RAID 10 are made of letters and numbers, and are not among them.
pub fn named_layouts(level: MdLevel) -> impl Iterator<Item = &'static NamedLayout> {
    let (first, more): (&[_], &[_]) = match level {
        MdLevel::Linear | MdLevel::Raid1 | MdLevel::Raid4 | MdLevel::Raid10 => (&[], &[]),
        MdLevel::Raid0 => (&UNEQUAL, &[]),
        MdLevel::Raid5 => (&PARITY, &[]),
        MdLevel::Raid6 => (&PARITY, &PARITY_AND_Q),
    };
    first.iter().chain(more)
}

/// The layout number for a word at this level; `None` if the level does not have the word.
#[must_use]
pub fn layout_from_word(level: MdLevel, word: &str) -> Option<u32> {
    if level == MdLevel::Raid10 {
        return raid10_from_word(word);
    }
    let is_it = |layout: &&NamedLayout| layout.word == word || layout.short == Some(word);
    named_layouts(level).find(is_it).map(|layout| layout.number)
}

fn raid10_from_word(word: &str) -> Option<u32> {
    let copies = word.get(1..).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    let copies: u8 = copies.parse().ok()?;
    let (near, far, offset) = match word.get(..1)? {
        "n" => (copies, 1, false),
        "f" => (1, copies, false),
        "o" => (1, copies, true),
        _ => return None,
    };
    let number = Raid10Layout { near, far, offset, far_sets: FarSets::Whole }.number();
    Raid10Layout::from_number(number).map(Raid10Layout::number)
}

/// The default layout of a new array of this level: left-symmetric for RAID 5 and 6, two near copies for RAID 10, 0 for
/// the others.
#[must_use]
pub const fn default_layout(level: MdLevel) -> u32 {
    match level {
        MdLevel::Raid5 | MdLevel::Raid6 => LEFT_SYMMETRIC,
        MdLevel::Raid10 => NEAR_2,
        MdLevel::Linear | MdLevel::Raid0 | MdLevel::Raid1 | MdLevel::Raid4 => 0,
    }
}

/// Prints a layout as its word, or as its number if it has no word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutWord {
    /// The level, which gives the number its meaning.
    pub level: MdLevel,
    /// The number.
    pub layout: u32,
}

impl LayoutWord {
    /// The fixed word of a layout that has one.
    fn fixed(self) -> Option<&'static str> {
        named_layouts(self.level).find(|layout| layout.number == self.layout).map(|layout| layout.word)
    }
}

impl fmt::Display for LayoutWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(word) = self.fixed() {
            return f.write_str(word);
        }
        match (self.level, Raid10Layout::from_number(self.layout)) {
            (MdLevel::Raid10, Some(Raid10Layout { near, far: 1, offset: false, far_sets: FarSets::Whole })) => {
                write!(f, "n{near}")
            }
            (MdLevel::Raid10, Some(Raid10Layout { near: 1, far, offset, far_sets: FarSets::Whole })) => {
                write!(f, "{}{far}", if offset { "o" } else { "f" })
            }
            _ => write!(f, "0x{:x}", self.layout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_word_of_a_level_comes_back_as_itself() {
        for (level, layouts) in [(MdLevel::Raid0, 2), (MdLevel::Raid5, 6), (MdLevel::Raid6, 14)] {
            assert_eq!(named_layouts(level).count(), layouts);
            for &NamedLayout { word, short, number } in named_layouts(level) {
                assert_eq!(layout_from_word(level, word), Some(number));
                assert!(short.is_none_or(|short| layout_from_word(level, short) == Some(number)), "{word}");
                assert_eq!(LayoutWord { level, layout: number }.to_string(), word);
                assert!(level.layout_is_known(number, 5));
            }
        }
        for (word, number) in [("n2", 0x102), ("f2", 0x201), ("o2", 0x10201), ("n3", 0x103), ("f3", 0x301)] {
            assert_eq!(layout_from_word(MdLevel::Raid10, word), Some(number));
            assert_eq!(LayoutWord { level: MdLevel::Raid10, layout: number }.to_string(), word);
        }
        assert_eq!(layout_from_word(MdLevel::Raid0, "alternate"), Some(2));
        assert_eq!(layout_from_word(MdLevel::Raid5, "rs"), Some(3));
    }

    #[test]
    fn words_of_other_levels_and_nonsense_are_refused() {
        for word in ["", "n", "n1", "n0", "n256", "n+2", "x2", "2n", "n2 ", "\u{e9}2"] {
            assert_eq!(layout_from_word(MdLevel::Raid10, word), None, "{word:?}");
        }
        assert_eq!(layout_from_word(MdLevel::Raid5, "ddf-N-restart"), None);
        assert_eq!(layout_from_word(MdLevel::Raid1, "n2"), None);
    }

    #[test]
    fn levels_have_their_words_and_no_others() {
        for (word, level) in [
            ("linear", MdLevel::Linear),
            ("stripe", MdLevel::Raid0),
            ("0", MdLevel::Raid0),
            ("mirror", MdLevel::Raid1),
            ("raid10", MdLevel::Raid10),
            ("6", MdLevel::Raid6),
        ] {
            assert_eq!(level_from_word(word), Some(level), "{word}");
        }
        for word in ["", "raid", "-1", "raid-1", "2", "3", "7", "05", "+5", "raid50", "linear "] {
            assert_eq!(level_from_word(word), None, "{word:?}");
        }
    }
}
