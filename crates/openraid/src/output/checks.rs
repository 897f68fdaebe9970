//! The text output of a check's or repair's result.

use openraid_units::{ArrayLevel, Bytes};

use crate::history::last_checks::{AbortWord, CheckModel, CheckWord, MismatchModel, OutcomeModel};
use crate::model::{ArrayModel, LevelWord};
use crate::quantity::{human, utc};

/// Maximum number of ranges in `show`.
const RANGES_SHOWN_MAX: usize = 8;

/// The result of a set's last check, in words.
pub fn outcome_text(check: &CheckModel, set: &ArrayModel) -> String {
    let mut text = match &check.outcome {
        OutcomeModel::Clean => "no mismatches".into(),
        OutcomeModel::Mismatches { mismatches, repaired, left } => {
            counts(check.kind, *mismatches, *repaired, *left, set)
        }
        OutcomeModel::Aborted { reason, percent, mismatches, repaired } => {
            let mut text = aborted(*reason, *percent);
            if *mismatches > 0 {
                let counts = counts(check.kind, *mismatches, *repaired, mismatches - repaired, set);
                text.push_str(&format!("; until then {counts}"));
            }
            text
        }
        OutcomeModel::NotComparable { reason } => format!("nothing compared: {reason}"),
    };
    if check.uncompared_bytes > 0 {
        text.push_str(&format!("; {} could not be compared", human(Bytes(check.uncompared_bytes))));
    }
    text
}

/// The member of a set that does not fit to the others, in words, if the last check found one.
pub fn odd_member(set: &ArrayModel) -> Option<String> {
    let odd = set.last_check.as_ref()?.odd_member()?;
    let member = set.members.iter().find(|member| member.slot == Some(odd.slot));
    let name = member.and_then(|member| member.member.as_deref()).map_or_else(String::new, |name| format!(" ({name})"));
    Some(format!(
        "slot {}{name} is the one that does not fit in {} of {} mismatched sectors: if it was replaced by an older image of \
         itself, fail it and add it again",
        odd.slot, odd.mismatches, odd.of
    ))
}

fn aborted(reason: AbortWord, percent: Option<u8>) -> String {
    let place = percent.map_or_else(String::new, |percent| format!(" at {percent} %"));
    format!("aborted{place}: {}", reason.text())
}

fn counts(kind: CheckWord, mismatches: u64, repaired: u64, left: u64, set: &ArrayModel) -> String {
    if kind == CheckWord::Check {
        let plural = if mismatches == 1 { "" } else { "s" };
        return format!("{mismatches} mismatched sector{plural} ({})", human(Bytes(mismatches * 512)));
    }
    let plural = if left == 1 { "" } else { "es" };
    let why = if left > 0 { format!(" ({})", unattributed(&set.level)) } else { String::new() };
    format!("repaired {repaired}, {left} mismatch{plural} left{why}")
}

/// Why mismatches are left, and the remedy.
fn unattributed(level: &LevelWord) -> String {
    match level {
        LevelWord::Of(level @ (ArrayLevel::Raid4 | ArrayLevel::Raid5)) => {
            format!("{} cannot attribute; `--trust-data` rewrites parity", level.title())
        }
        LevelWord::Of(ArrayLevel::Raid6) => "RAID 6 cannot attribute these; `--trust-data` rewrites parity".into(),
        _ => "the copies do not tell which is right; `--trust-data` rewrites them from the first".into(),
    }
}

/// Time and result of the last check, with the places of mismatches that are left: lines.
pub fn last_check(check: &CheckModel, set: &ArrayModel) -> Vec<String> {
    let kind = if check.kind == CheckWord::Check { "" } else { "repair: " };
    let when = utc(check.at_seconds);
    // Seconds are not needed here.
    let when = when.get(..16).unwrap_or(&when);
    let mut lines = vec![format!("{when}, {kind}{}", outcome_text(check, set))];
    lines.extend(odd_member(set).filter(|_| set.last_check.as_ref() == Some(check)));
    lines.extend(check.ranges.iter().filter(|range| !range.repaired).take(RANGES_SHOWN_MAX).map(range_text));
    let left = check.ranges.iter().filter(|range| !range.repaired).count();
    let more = left.saturating_sub(RANGES_SHOWN_MAX) as u64 + check.more_ranges;
    if more > 0 {
        lines.push(format!("and {more} more range{}", if more == 1 { "" } else { "s" }));
    }
    lines
}

fn range_text(range: &MismatchModel) -> String {
    let last = range.from_sector + range.sectors - 1;
    let place = match range.sectors {
        1 => format!("sector {last}"),
        all if range.mismatches > 0 && range.mismatches < all => {
            format!("sectors {} to {last} ({} of them differ)", range.from_sector, range.mismatches)
        }
        _ => format!("sectors {} to {last}", range.from_sector),
    };
    match range.slot {
        Some(slot) => format!("{place} of slot {slot}"),
        None => place,
    }
}

/// The results of the last checks of all sets of an array, in one line; `None` if none is known.
pub fn summary(array: &ArrayModel) -> Option<String> {
    let one = |set: &&ArrayModel| set.last_check.as_ref().map(|check| outcome_text(check, set));
    let all: Vec<Option<String>> = array.sets().iter().map(one).collect();
    let first = all.iter().flatten().next()?;
    if all.iter().all(|text| text.as_ref() == Some(first)) {
        return Some(first.clone());
    }
    let spans = all.iter().enumerate();
    let spans = spans.filter_map(|(span, text)| text.as_ref().map(|text| format!("span {span}: {text}")));
    Some(spans.collect::<Vec<_>>().join(", "))
}
