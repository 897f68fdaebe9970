//! Levels and layouts in words: mdadm's words, and our own for levels that mdadm has no word for.
//!
//! ```text
//!  jbod        each drive as it is, without metadata
//!  single      one drive with metadata: a RAID 1 of one copy, so that md opens it too
//!  linear 0 1 4 5 6 10   as md has them (also raid5, mirror, stripe)
//!  1e          RAID 10 with two near copies, on any number of members
//!  50 60       a stripe over several RAID 5 or RAID 6, each an array of its own to md
//! ```

use openraid_format::{default_layout, layout_from_word, level_from_word, LayoutWord, MdLevel};

/// The user's word for a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelWord {
    /// Drives as they are.
    Jbod,
    /// One drive with metadata.
    Single,
    /// A level of md.
    Md(MdLevel),
    /// Two near copies on any number of members.
    OneE,
    /// A stripe over arrays of this level.
    Nested(MdLevel),
}

impl LevelWord {
    /// The level of md that each set has; nothing for drives without metadata.
    pub const fn md(self) -> Option<MdLevel> {
        match self {
            Self::Jbod => None,
            Self::Single => Some(MdLevel::Raid1),
            Self::Md(level) | Self::Nested(level) => Some(level),
            Self::OneE => Some(MdLevel::Raid10),
        }
    }

    /// Does it survive the loss of a member?
    pub fn is_redundant(self) -> bool {
        match self {
            Self::Jbod | Self::Single => false,
            Self::Md(level) | Self::Nested(level) => level.is_redundant(),
            Self::OneE => true,
        }
    }
}

/// Read a level.
///
/// # Errors
/// It is no level; the text lists those there are.
pub fn level(text: &str) -> Result<LevelWord, String> {
    let lower = text.to_ascii_lowercase();
    let plain = lower.strip_prefix("raid").unwrap_or(&lower);
    match plain {
        "jbod" | "raw" => Ok(LevelWord::Jbod),
        "single" => Ok(LevelWord::Single),
        "1e" => Ok(LevelWord::OneE),
        "50" | "5+0" => Ok(LevelWord::Nested(MdLevel::Raid5)),
        "60" | "6+0" => Ok(LevelWord::Nested(MdLevel::Raid6)),
        _ => level_from_word(&lower).map(LevelWord::Md).ok_or_else(|| {
            format!("unknown level {text:?}; known levels: jbod, single, linear, 0, 1, 1e, 4, 5, 6, 10, 50, 60")
        }),
    }
}

/// Read a layout of a level; without a word, the level's own default. RAID 0 says its layout only if members are
/// unequal; new arrays then get the one that Linux uses since 3.14.
///
/// # Errors
/// The level has no such layout; the text lists those it has.
pub fn layout(level: LevelWord, word: Option<&str>) -> Result<u32, String> {
    let Some(md) = level.md() else {
        return match word {
            None => Ok(0),
            Some(_) => Err("jbod has no layout; leave --layout out".into()),
        };
    };
    match word {
        None if md == MdLevel::Raid0 => Ok(openraid_format::Raid0Layout::Alternate.number()),
        None => Ok(default_layout(md)),
        Some(word) => layout_from_word(md, word).ok_or_else(|| {
            let known = known_layouts(md);
            if known.is_empty() {
                format!("{md} has no layouts; leave --layout out")
            } else {
                format!("{md} has no layout {word:?}; use one of {known}")
            }
        }),
    }
}

const fn known_layouts(level: MdLevel) -> &'static str {
    match level {
        MdLevel::Linear | MdLevel::Raid1 | MdLevel::Raid4 => "",
        MdLevel::Raid0 => "original, alternate",
        MdLevel::Raid5 => {
            "left-symmetric (ls), left-asymmetric (la), right-symmetric (rs), right-asymmetric (ra), parity-first, \
             parity-last"
        }
        MdLevel::Raid6 => {
            "left-symmetric (ls), left-asymmetric (la), right-symmetric (rs), right-asymmetric (ra), parity-first, \
             parity-last, ddf-zero-restart, ddf-N-restart, ddf-N-continue, left-symmetric-6, left-asymmetric-6, \
             right-symmetric-6, right-asymmetric-6, parity-first-6"
        }
        MdLevel::Raid10 => "n2, f2, o2 and other numbers of near, far and offset copies",
    }
}

/// A layout for people; nothing if the level has none.
pub fn layout_text(level: MdLevel, layout: u32) -> Option<String> {
    match level {
        MdLevel::Linear | MdLevel::Raid1 | MdLevel::Raid4 => None,
        MdLevel::Raid0 if layout == 0 => None,
        _ => Some(LayoutWord { level, layout }.to_string()),
    }
}

/// An array's name: what a superblock, an export and a file name can all hold.
///
/// # Errors
/// The text says what to write instead.
pub fn array_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("an array's name has 1 to {NAME_BYTES_MAX} characters"));
    }
    if !text.chars().all(allowed) || text.starts_with(['-', '.']) {
        return Err(format!(
            "{text:?} is not an array name; use letters, digits, '.', '_' and '-', a letter or digit first"
        ));
    }
    Ok(text.into())
}

/// The longest name of an array: a superblock holds 32 bytes, the spans of a nested array take four for their number.
pub const NAME_BYTES_MAX: usize = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_mdadm_reads_them_and_some_more() {
        for (text, word) in [
            ("5", LevelWord::Md(MdLevel::Raid5)),
            ("RAID5", LevelWord::Md(MdLevel::Raid5)),
            ("mirror", LevelWord::Md(MdLevel::Raid1)),
            ("linear", LevelWord::Md(MdLevel::Linear)),
            ("1e", LevelWord::OneE),
            ("raid60", LevelWord::Nested(MdLevel::Raid6)),
            ("jbod", LevelWord::Jbod),
            ("single", LevelWord::Single),
        ] {
            assert_eq!(level(text), Ok(word), "{text}");
        }
        for text in ["", "2", "3", "7", "raid", "51", "-1", "05"] {
            assert!(level(text).is_err(), "{text}");
        }
    }

    #[test]
    fn layouts_belong_to_their_levels() {
        let five = LevelWord::Md(MdLevel::Raid5);
        assert_eq!(layout(five, None), Ok(2));
        assert_eq!(layout(five, Some("ra")), Ok(1));
        assert_eq!(layout(LevelWord::OneE, None), Ok(0x102));
        assert_eq!(layout(LevelWord::Md(MdLevel::Raid0), None), Ok(2));
        assert!(layout(five, Some("n2")).unwrap_err().contains("left-symmetric"));
        assert!(layout(LevelWord::Single, Some("n2")).unwrap_err().contains("leave --layout out"));
        assert!(layout(LevelWord::Jbod, Some("n2")).is_err());
    }

    #[test]
    fn names_are_safe_everywhere() {
        for good in ["data", "md0", "a.b_c-1", "0"] {
            assert_eq!(array_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "a/b", "a:b", "-x", ".x", "a b", "\u{e9}", "12345678901234567890123456789"] {
            assert!(array_name(bad).is_err(), "{bad}");
        }
    }
}
