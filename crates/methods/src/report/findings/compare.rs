//! Comparisons of results: more drives, the ideal, a degraded array with a healthy one, one order of tests with
//! another, write-back with write-through.

use super::super::data::{
    Better, FindingKind, Guide, GuideKind, Level, LineChart, MachinePart, Mark, Point, ReportCell, ReportFinding,
    ReportTable, Series,
};
use super::super::format::{fixed, list, number, percent, percent_range, place, ratio, value};
use super::super::line_chart::spread;
use super::super::table::{step, NOISE};
use super::{best, cause, drawn, finite, limit, load_axis, steady, value_at};

/// If more drives reach less than this share of the possible gain, a sentence says so.
const SCALING: f64 = 0.90;

/// The gain of more drives of the same level: one sentence for each level. Steps with the same cause are combined.
pub fn scaling(lines: &LineChart) -> Vec<ReportFinding> {
    if !load_axis(lines) || lines.y.better != Better::Higher {
        return Vec::new();
    }
    let mut found = Vec::new();
    for level in Level::ALL {
        let mut widths: Vec<&Series> =
            drawn(lines).filter(|one| one.subject.level == level && one.subject.variant.is_empty()).collect();
        widths.sort_by_key(|series| series.subject.members);
        let steps: Vec<Step> = widths.windows(2).filter_map(|pair| step_up(lines, pair[0], pair[1])).collect();
        for group in steps.chunk_by(|a, b| a.part == b.part) {
            let mut words: Vec<String> = group.iter().map(|step| step.words.clone()).collect();
            words[0] = format!("{} would be perfect)", words[0].trim_end_matches(')'));
            let cause = group.last().and_then(|step| step.cause.as_ref());
            let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
            let text = format!("{}: the best speed grows {}{cause}.", level.title(), list(&words));
            found.push(ReportFinding::new(FindingKind::Comparison, text));
        }
    }
    found
}

/// The gain of a step to more drives.
struct Step {
    /// `from 3 to 4 drives 1.06 times (1.33)`.
    words: String,
    /// The part that is at its limit.
    part: Option<MachinePart>,
    /// The cause as text.
    cause: Option<String>,
}

fn step_up(lines: &LineChart, few: &Series, many: &Series) -> Option<Step> {
    let (less, more) = (few.subject.members, many.subject.members);
    let data = |series: &Series| f64::from(series.subject.data_drives().max(1));
    let ideal = data(many) / data(few);
    let (few_points, many_points) = (finite(few), finite(many));
    let (a, b) = (best(lines, &few_points)?, best(lines, &many_points)?);
    let gain = b.y / a.y;
    if less >= more || !gain.is_finite() || ideal <= 1.0 || (gain - 1.0) >= (ideal - 1.0) * SCALING {
        return None;
    }
    let words = format!("from {less} to {more} drives {} times ({})", fixed(gain, 2), fixed(ideal, 2));
    Some(Step { words, part: limit(b).map(|load| load.part.clone()), cause: cause(b) })
}

/// The share of its ideal that each line reaches at its highest load.
pub fn ideals(lines: &LineChart) -> Vec<ReportFinding> {
    let mut found = Vec::new();
    for guide in lines.guides.iter().filter(|guide| guide.kind == GuideKind::Ideal) {
        let Some(subject) = &guide.subject else { continue };
        let Some(series) = lines.series.iter().find(|one| one.subject == *subject) else { continue };
        let Some(last) = finite(series).last().copied() else { continue };
        let share = between(&guide.corners, last.x).map(|ideal| last.y / ideal).filter(|share| share.is_finite());
        if let Some(share) = share {
            let (share, at) = (percent(share), place(&lines.x, last.x));
            let what = guide.label.strip_prefix(Guide::IDEAL).unwrap_or(&guide.label);
            let text = format!("{subject} reaches {share} of what {what} would make at {at}.");
            found.push(ReportFinding::new(FindingKind::Comparison, text));
        }
    }
    found
}

/// The value of a guide at a position.
fn between(corners: &[(f64, f64)], x: f64) -> Option<f64> {
    if let [(_, y)] = corners {
        return Some(*y);
    }
    let pair = corners.windows(2).find(|pair| pair[0].0 <= x && x <= pair[1].0)?;
    let ((left, low), (right, high)) = (pair[0], pair[1]);
    if right <= left {
        return Some(low);
    }
    Some(low + (high - low) * (x - left) / (right - left))
}

/// Compares a variant of an array (degraded, rebuilding, write-through) with the array itself.
pub fn variants(lines: &LineChart) -> Vec<ReportFinding> {
    let mut found = Vec::new();
    for series in drawn(lines).filter(|one| !one.subject.variant.is_empty()) {
        let same = |one: &&Series| {
            (one.subject.level, one.subject.members) == (series.subject.level, series.subject.members)
                && one.subject.variant.is_empty()
        };
        let Some(base) = drawn(lines).find(same) else { continue };
        let shares: Vec<f64> = finite(series)
            .iter()
            .filter_map(|point| Some(point.y / value_at(base, point.x)?))
            .filter(|share| share.is_finite())
            .collect();
        let (low, high) = (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max));
        let (Some(low), Some(high)) = (low, high) else { continue };
        let range = percent_range(low, high);
        let text = format!("{}: {range} of the {} of {}.", series.subject, lines.y.name, base.subject);
        found.push(ReportFinding::new(FindingKind::Comparison, text));
    }
    found
}

/// The same tests in another order. A difference beyond the spread of the runs shows that earlier tests have an effect.
#[must_use]
pub fn order_effect(first: &LineChart, second: &LineChart) -> Vec<ReportFinding> {
    let mut found = Vec::new();
    for series in first.series.iter().filter(|one| one.mark == Mark::Line) {
        let Some(again) = second.series.iter().find(|one| one.subject == series.subject) else { continue };
        let mut worst: Option<(f64, &Point, &Point)> = None;
        let mut count = 0_u32;
        let points = finite(series);
        for point in &points {
            let Some(other) = finite(again).into_iter().find(|other| other.x == point.x) else { continue };
            let change = other.y / point.y - 1.0;
            if !change.is_finite() || change.abs() <= NOISE || overlap(point, other) {
                continue;
            }
            count += 1;
            if worst.is_none_or(|(known, ..)| change.abs() > known.abs()) {
                worst = Some((change, point, other));
            }
        }
        let Some((_, point, other)) = worst else { continue };
        let depend = if count == 1 { "depends" } else { "depend" };
        let text = format!(
            "{}: {count} of {} results {depend} on the order of the tests, most at {}: {} in the first cycle, {} in \
             the second. Something keeps a state between tests.",
            series.subject,
            points.len(),
            place(&first.x, point.x),
            value(&first.y.unit, point.y),
            value(&first.y.unit, other.y)
        );
        found.push(ReportFinding::new(FindingKind::Warning, text));
    }
    found
}

fn overlap(a: &Point, b: &Point) -> bool {
    let ((a_low, a_high), (b_low, b_high)) = (spread(a), spread(b));
    a_low <= b_high && b_low <= a_high
}

/// The result of a whole table of ratios: where the numerator is better, and where it is worse.
#[must_use]
pub fn ratios(table: &ReportTable, what: &str) -> Option<ReportFinding> {
    let mut all: Vec<(bool, (f64, String))> = Vec::new();
    for row in &table.rows {
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            if let ReportCell::Ratio(value) | ReportCell::UnsteadyRatio(value) = cell {
                let is_unsteady = matches!(cell, ReportCell::UnsteadyRatio(_));
                all.push((is_unsteady, (*value, format!("{} {}, {column}", row.head, table.corner))));
            }
        }
    }
    all.retain(|(_, (value, _))| value.is_finite());
    let text = steady::told_of_some(&all, |some| told_of_ratios(some, what).unwrap_or_default());
    (!text.is_empty()).then(|| ReportFinding::new(FindingKind::Comparison, text))
}

/// The sentence about ratios, each with its place. None if there are none.
fn told_of_ratios(all: &[(f64, String)], what: &str) -> Option<String> {
    let count = |wanted: fn(i32) -> bool| all.iter().filter(|(value, _)| wanted(step(*value))).count();
    let (helps, harms) = (count(|step| step > 0), count(|step| step < 0));
    let by_value = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
    let (high, low) = (all.iter().rev().max_by(by_value)?, all.iter().min_by(by_value)?);
    let mut parts = Vec::new();
    if helps > 0 {
        parts.push(format!("helps in {helps} of {} cells (most {} times, {})", all.len(), ratio(high.0), high.1));
    }
    if harms > 0 {
        parts.push(format!("harms in {harms} (down to {} times, {})", ratio(low.0), low.1));
    }
    if parts.is_empty() {
        parts.push(format!("changes nothing in any of {} cells", all.len()));
    }
    Some(format!("{what} {}.", list(&parts)))
}

/// A factor within a sentence: `3.4 times`. Near 1 it has two decimals, since the sentence says that one is larger.
pub fn times(factor: f64) -> String {
    let decimals = if (0.95..1.05).contains(&factor) { 2 } else { 1 };
    format!("{} times", if factor >= 9.95 { number(factor) } else { fixed(factor, decimals) })
}
