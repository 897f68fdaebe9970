//! The table `[care]`: how drives are looked after.

use crate::desired::{DesiredCare, FileValue};
use crate::read::ABSOLUTE;
use crate::table::Section;

const KEYS: &[&str] = &["idle-probe", "smart", "slow-window", "smartctl", "led"];
/// The word for something that is not done.
const NEVER: &str = "never";
/// Times between two looks at a drive: a second to a week.
const EVERY_SECONDS: std::ops::RangeInclusive<u64> = 1..=7 * 86_400;

/// Is it a key of this table?
pub fn is_key(word: &str) -> bool {
    KEYS.contains(&word)
}

/// The table, or what holds without it.
pub fn read(top: &Section<'_>) -> DesiredCare {
    let Some(section) = top.table("care") else { return DesiredCare::default() };
    section.know(KEYS);
    let path = |key: &str| {
        let word = section.text(key)?;
        if !word.text.starts_with('/') {
            section.complain(word.at, key, &format!("{:?} is not an absolute path", word.text), ABSOLUTE);
        }
        Some(FileValue { line: section.reader.line(word.at), value: word.text.into() })
    };
    let first = DesiredCare::default();
    DesiredCare {
        idle_probe: every(&section, "idle-probe").unwrap_or(first.idle_probe),
        smart: every(&section, "smart").unwrap_or(first.smart),
        slow_window: every(&section, "slow-window").unwrap_or(first.slow_window),
        smartctl: path("smartctl"),
        led: path("led"),
    }
}

/// Seconds, or nothing for `never`.
fn every(section: &Section<'_>, key: &str) -> Option<Option<u64>> {
    let word = section.text(key)?;
    if word.text == NEVER {
        return Some(None);
    }
    let seconds = seconds(&word.text).filter(|seconds| EVERY_SECONDS.contains(seconds));
    if seconds.is_none() {
        let what = format!("{:?} is not an interval between two looks", word.text);
        section.complain(word.at, key, &what, "write seconds to days, as in 30s, 10m, 1h, 7d, or never");
    }
    seconds.map(Some)
}

fn seconds(text: &str) -> Option<u64> {
    let (at, unit) = text.char_indices().next_back()?;
    let one = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    text[..at].parse::<u64>().ok()?.checked_mul(one)
}
