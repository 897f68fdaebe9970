//! The tables `[schedules.NAME]`: when arrays are checked.

use crate::desired::ScheduleWish;
use crate::read::{most, ARRAYS_MAX};
use crate::table::{Section, Word};

/// Schedules of one file.
pub const SCHEDULES_MAX: usize = 64;
const KEYS: &[&str] = &["task", "arrays", "every", "window"];
/// The shortest time from one check to the next is an hour, the longest ten years.
const EVERY_SECONDS: std::ops::RangeInclusive<u64> = 3600..=3660 * 86_400;

/// All schedules of the file.
pub fn read(top: &Section<'_>) -> Vec<ScheduleWish> {
    let all = top.table("schedules").map(|section| section.all_tables()).unwrap_or_default();
    if all.len() > SCHEDULES_MAX {
        top.complain(top.at_key("schedules"), "schedules", &format!("{} schedules", all.len()), &most(SCHEDULES_MAX));
    }
    all.iter().take(SCHEDULES_MAX).filter_map(|(name, section)| schedule(name, section)).collect()
}

fn schedule(name: &str, section: &Section<'_>) -> Option<ScheduleWish> {
    section.know(KEYS);
    if let Some(word) = section.text("task").filter(|word| word.text != "check") {
        section.complain(word.at, "task", &format!("{:?} is no task", word.text), "write task = \"check\"");
    }
    for key in ["task", "every"].into_iter().filter(|key| !section.has(key)) {
        let example = if key == "task" { "check" } else { "30d" };
        section.complain(section.at, key, "missing", &format!("write {key} = {example:?}"));
    }
    let every = section.text("every").and_then(|word| {
        let seconds = duration(&word.text).filter(|seconds| EVERY_SECONDS.contains(seconds));
        if seconds.is_none() {
            let what = format!("{:?} is no time between checks", word.text);
            section.complain(word.at, "every", &what, "write hours, days or weeks, as in 12h, 30d, 4w");
        }
        seconds
    });
    let window = section.text("window").and_then(|word| {
        let window = window(&word);
        if window.is_none() {
            let what = format!("{:?} is no window", word.text);
            section.complain(word.at, "window", &what, "write HH:MM-HH:MM in UTC, as in 01:00-05:30");
        }
        window
    });
    let arrays = section.texts("arrays", ARRAYS_MAX).unwrap_or_default();
    let line = section.reader.line(section.at);
    let arrays = arrays.into_iter().map(|word| word.text).collect();
    Some(ScheduleWish { name: name.to_owned(), line, arrays, every_seconds: every?, window })
}

fn duration(text: &str) -> Option<u64> {
    let (at, unit) = text.char_indices().next_back()?;
    let seconds = match unit {
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    text[..at].parse::<u64>().ok()?.checked_mul(seconds)
}

fn window(word: &Word) -> Option<(u32, u32)> {
    let minute = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        let (hour, minute) = (hour.parse::<u32>().ok()?, minute.parse::<u32>().ok()?);
        (hour < 24 && minute < 60 || (hour, minute) == (24, 0)).then_some(hour * 60 + minute)
    };
    let (from, to) = word.text.split_once('-')?;
    let (from, to) = (minute(from.trim())?, minute(to.trim())?);
    (from != to).then_some((from, to))
}
