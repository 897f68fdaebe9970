//! The tables `[schedules.NAME]`: when arrays are checked, and drives read.

use openraid_status::ScheduleWord;
use openraid_units::Bytes;

use crate::desired::{DesiredSchedule, ScheduleTask};
use crate::read::{most, ARRAYS_MAX};
use crate::table::{Section, Word};
use crate::Words;

/// Schedules of one file.
pub const SCHEDULES_MAX: usize = 64;
const CHECK: &[&str] = &["task", "arrays", "every", "window"];
const PATROL: &[&str] = &["task", "arrays", "every", "window", "rate", "ssd"];
/// Bytes a second that a patrol reads of each drive if no rate is given: 4 TB take two and a half days.
const PATROL_RATE: Bytes = Bytes::mib(20);
/// A slower patrol does not come to its end in the life of a drive.
const PATROL_RATE_MIN: Bytes = Bytes::kib(64);
/// The shortest time from one check to the next is an hour, the longest ten years.
const EVERY_SECONDS: std::ops::RangeInclusive<u64> = 3600..=3660 * 86_400;

/// All schedules of the file.
pub fn read(top: &Section<'_>, words: &dyn Words) -> Vec<DesiredSchedule> {
    let all = top.table("schedules").map(|section| section.all_tables()).unwrap_or_default();
    if all.len() > SCHEDULES_MAX {
        top.complain(top.at_key("schedules"), "schedules", &format!("{} schedules", all.len()), &most(SCHEDULES_MAX));
    }
    all.iter().take(SCHEDULES_MAX).filter_map(|(name, section)| schedule(name, section, words)).collect()
}

fn schedule(name: &str, section: &Section<'_>, words: &dyn Words) -> Option<DesiredSchedule> {
    let word = section.text("task");
    let task = word.as_ref().and_then(|word| ScheduleWord::named(&word.text));
    let is_patrol = task == Some(ScheduleWord::Patrol);
    section.know(if is_patrol { PATROL } else { CHECK });
    if let Some(word) = word.filter(|_| task.is_none()) {
        let what = format!("{:?} is not a task", word.text);
        section.complain(word.at, "task", &what, "write task = \"check\" or task = \"patrol\"");
    }
    let task = if is_patrol {
        ScheduleTask::Patrol { rate: rate(section, words), ssd: section.switch("ssd").unwrap_or(false) }
    } else {
        ScheduleTask::Check
    };
    for key in ["task", "every"].into_iter().filter(|key| !section.has(key)) {
        let example = if key == "task" { "check" } else { "30d" };
        section.complain(section.at, key, "missing", &format!("write {key} = {example:?}"));
    }
    let every = section.text("every").and_then(|word| {
        let seconds = duration(&word.text).filter(|seconds| EVERY_SECONDS.contains(seconds));
        if seconds.is_none() {
            let what = format!("{:?} is not an interval between checks", word.text);
            section.complain(word.at, "every", &what, "write hours, days or weeks, as in 12h, 30d, 4w");
        }
        seconds
    });
    let window = section.text("window").and_then(|word| {
        let window = window(&word);
        if window.is_none() {
            let what = format!("{:?} is not a window of time", word.text);
            section.complain(word.at, "window", &what, "write HH:MM-HH:MM in UTC, as in 01:00-05:30");
        }
        window
    });
    let arrays = section.texts("arrays", ARRAYS_MAX).unwrap_or_default();
    let line = section.reader.line(section.at);
    let arrays = arrays.into_iter().map(|word| word.text).collect();
    Some(DesiredSchedule { name: name.to_owned(), task, line, arrays, every_seconds: every?, window })
}

/// How fast a patrol reads each drive.
fn rate(section: &Section<'_>, words: &dyn Words) -> Bytes {
    let Some(word) = section.text("rate") else { return PATROL_RATE };
    match words.size(&word.text) {
        Ok(rate) if rate >= PATROL_RATE_MIN => return rate,
        Ok(_) => {
            section.complain(word.at, "rate", &format!("{:?} is too slow", word.text), "write 64K a second at least")
        }
        Err(why) => section.complain(word.at, "rate", &why, "a rate is written like 20M, bytes of each drive a second"),
    }
    PATROL_RATE
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
