//! Levels and layouts in words: mdadm's words, and our own for levels that mdadm has no word for.
//!
//! ```text
//!  jbod        each drive as it is, without metadata
//!  single      one drive with metadata: a RAID 1 of one copy, so that md opens it too
//!  linear 0 1 4 5 6 10   as md has them (also raid5, mirror, stripe)
//!  1e          RAID 10 with two near copies, on any number of members
//!  50 60       a stripe over several RAID 5 or RAID 6, each an array of its own to md
//! ```

pub mod consistency;
pub mod host_path;

use openraid_format::{
    default_layout, layout_from_word, level_from_word, named_layouts, LayoutWord, MdLevel, NamedLayout, Superblock,
};
use openraid_units::ArrayLevel;

use crate::model::LevelWord;

/// The level of a set.
pub const fn level_word(superblock: &Superblock) -> LevelWord {
    match superblock.level {
        MdLevel::Raid1 if superblock.raid_disks == 1 => LevelWord::Of(ArrayLevel::Single),
        level => LevelWord::Of(from_md(level)),
    }
}

/// The level of md that each set of this level has; nothing for drives without metadata.
pub const fn md_level(level: ArrayLevel) -> Option<MdLevel> {
    Some(match level {
        ArrayLevel::Jbod => return None,
        ArrayLevel::Linear => MdLevel::Linear,
        ArrayLevel::Raid0 => MdLevel::Raid0,
        ArrayLevel::Single | ArrayLevel::Raid1 => MdLevel::Raid1,
        ArrayLevel::Raid1e | ArrayLevel::Raid10 => MdLevel::Raid10,
        ArrayLevel::Raid4 => MdLevel::Raid4,
        ArrayLevel::Raid5 | ArrayLevel::Raid50 => MdLevel::Raid5,
        ArrayLevel::Raid6 | ArrayLevel::Raid60 => MdLevel::Raid6,
    })
}

/// The level that users name for a level of md.
pub const fn from_md(level: MdLevel) -> ArrayLevel {
    match level {
        MdLevel::Linear => ArrayLevel::Linear,
        MdLevel::Raid0 => ArrayLevel::Raid0,
        MdLevel::Raid1 => ArrayLevel::Raid1,
        MdLevel::Raid4 => ArrayLevel::Raid4,
        MdLevel::Raid5 => ArrayLevel::Raid5,
        MdLevel::Raid6 => ArrayLevel::Raid6,
        MdLevel::Raid10 => ArrayLevel::Raid10,
    }
}

/// Read a level.
///
/// # Errors
/// It is no level; the text lists those there are.
pub fn level(text: &str) -> Result<ArrayLevel, String> {
    let lower = text.to_ascii_lowercase();
    let plain = lower.strip_prefix("raid").unwrap_or(&lower);
    match plain {
        "jbod" | "raw" => Ok(ArrayLevel::Jbod),
        "single" => Ok(ArrayLevel::Single),
        "1e" => Ok(ArrayLevel::Raid1e),
        "50" | "5+0" => Ok(ArrayLevel::Raid50),
        "60" | "6+0" => Ok(ArrayLevel::Raid60),
        "00" | "0+0" => Err("RAID 00 is a RAID 0 over all of its drives; give 0".into()),
        _ => level_from_word(&lower).map(from_md).ok_or_else(|| {
            format!("unknown level {text:?}; known levels: jbod, single, linear, 0, 1, 1e, 4, 5, 6, 10, 50, 60")
        }),
    }
}

/// Read a layout of a level; without a word, the level's own default. RAID 0 says its layout only if members are
/// unequal; new arrays then get the one that Linux uses since 3.14.
///
/// # Errors
/// The level has no such layout; the text lists those it has.
pub fn layout(level: ArrayLevel, word: Option<&str>) -> Result<u32, String> {
    let Some(md) = md_level(level) else {
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

fn known_layouts(level: MdLevel) -> String {
    if level == MdLevel::Raid10 {
        return "n2, f2, o2 and other numbers of near, far and offset copies".into();
    }
    let with_short = |layout: &NamedLayout| match layout.short {
        Some(short) => format!("{} ({short})", layout.word),
        None => layout.word.to_owned(),
    };
    named_layouts(level).map(with_short).collect::<Vec<_>>().join(", ")
}

/// Read a layout of RAID 0.
///
/// # Errors
/// RAID 0 has no such layout; the text lists those it has.
pub fn raid0_layout(text: &str) -> Result<u32, String> {
    layout(ArrayLevel::Raid0, Some(text))
}

/// A layout as text; nothing if the level has none.
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
            ("5", ArrayLevel::Raid5),
            ("RAID5", ArrayLevel::Raid5),
            ("mirror", ArrayLevel::Raid1),
            ("linear", ArrayLevel::Linear),
            ("1e", ArrayLevel::Raid1e),
            ("raid60", ArrayLevel::Raid60),
            ("jbod", ArrayLevel::Jbod),
            ("single", ArrayLevel::Single),
        ] {
            assert_eq!(level(text), Ok(word), "{text}");
        }
        for text in ["", "2", "3", "7", "raid", "51", "-1", "05"] {
            assert!(level(text).is_err(), "{text}");
        }
    }

    #[test]
    fn layouts_belong_to_their_levels() {
        let five = ArrayLevel::Raid5;
        assert_eq!(layout(five, None), Ok(2));
        assert_eq!(layout(five, Some("ra")), Ok(1));
        assert_eq!(layout(ArrayLevel::Raid1e, None), Ok(0x102));
        assert_eq!(layout(ArrayLevel::Raid0, None), Ok(2));
        assert!(layout(five, Some("n2")).unwrap_err().contains("left-symmetric"));
        assert!(layout(ArrayLevel::Single, Some("n2")).unwrap_err().contains("leave --layout out"));
        assert!(layout(ArrayLevel::Jbod, Some("n2")).is_err());
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
