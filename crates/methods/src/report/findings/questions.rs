//! Answers besides the best array: the useful cache size, the spread of repetitions, the effect of a change.

use super::super::data::{Bar, Bars, Better, LineChart, Point, Series};
use super::super::format::{change, fixed, list, percent, place, value};
use super::{best, drawn, finite, steady, value_at, TIE};

/// Minimum number of sizes of which one is the best.
const JUDGED_MIN: usize = 2;

/// The useful cache size: for each line the first position that is equal to its best one. Lines with the same position
/// are combined.
#[must_use]
pub fn enough(lines: &LineChart, what: &str) -> String {
    let all = lines;
    steady::told_of_lines(lines, |lines| {
        let mut places: Vec<(f64, Vec<String>)> = Vec::new();
        for series in drawn(lines).filter(|series| finite(series).len() >= JUDGED_MIN) {
            let Some(point) = first_level(lines, series) else { continue };
            if is_left_out_before(all, series, point.x) {
                continue;
            }
            let name = format!("{} ({})", series.subject, value(&lines.y.unit, point.y));
            match places.iter_mut().find(|(x, _)| *x == point.x) {
                Some((_, names)) => names.push(name),
                None => places.push((point.x, vec![name])),
            }
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let words: Vec<String> =
            places.iter().map(|(x, names)| format!("{} for {}", place(&lines.x, *x), list(names))).collect();
        if words.is_empty() {
            return String::new();
        }
        format!("The smallest {what} within {} of the best is {}.", percent(TIE), words.join("; "))
    })
}

/// Was a smaller size left out? Then it is not known which one is the smallest.
fn is_left_out_before(all: &LineChart, kept: &Series, x: f64) -> bool {
    let whole = drawn(all).find(|series| series.subject == kept.subject);
    let is_left_out = |point: &&Point| point.unsteady && point.x < x && value_at(kept, point.x).is_none();
    whole.is_some_and(|whole| finite(whole).iter().any(is_left_out))
}

fn first_level<'a>(lines: &LineChart, series: &'a Series) -> Option<&'a Point> {
    let points = finite(series);
    let best = best(lines, &points)?.y;
    points.into_iter().find(|point| (point.y - best).abs() <= TIE * best.abs())
}

/// The distance between the runs of a bar, as a share of their median.
fn spread(bar: &Bar) -> f64 {
    (bar.value.high - bar.value.low) / bar.value.y
}

/// Bars with several runs.
fn repeated(bars: &Bars) -> Vec<&Bar> {
    bars.bars.iter().filter(|bar| bar.value.runs > 1 && spread(bar).is_finite()).collect()
}

/// The spread of repetitions: the largest one, and its subject.
#[must_use]
pub fn apart(bars: &Bars) -> String {
    steady::told_of_bars(bars, widest)
}

fn widest(bars: &Bars) -> String {
    let all = repeated(bars);
    let widest = all.iter().rev().max_by(|a, b| spread(a).total_cmp(&spread(b)));
    let Some(widest) = widest else { return String::new() };
    let Point { low, high, runs, .. } = widest.value;
    if low == high {
        return format!("All runs come to the same: {}.", same(bars, &all));
    }
    let unit = &bars.value.unit;
    format!(
        "{} spreads {}by {}, from {} to {} in {runs} runs.",
        widest.subject,
        if all.len() > 1 { "most, " } else { "" },
        percent(spread(widest)),
        value(unit, low),
        value(unit, high)
    )
}

/// The values, if no run differs.
fn same(bars: &Bars, all: &[&Bar]) -> String {
    let words: Vec<String> =
        all.iter().map(|bar| format!("{} with {}", bar.subject, value(&bars.value.unit, bar.value.y))).collect();
    list(&words)
}

/// The best repetition, its distance from the median, and the spread of all.
#[must_use]
pub fn best_run(bars: &Bars) -> String {
    steady::told_of_bars(bars, |bars| {
        let is_lower = bars.value.better == Better::Lower;
        let top = |bar: &Bar| if is_lower { bar.value.low } else { bar.value.high };
        let mut all = repeated(bars);
        all.sort_by(|a, b| if is_lower { top(a).total_cmp(&top(b)) } else { top(b).total_cmp(&top(a)) });
        let ahead = |bar: &Bar| (top(bar) / bar.value.y - 1.0).abs();
        let Some((first, others)) = all.split_first() else { return String::new() };
        let mut text = format!(
            "The best of {} runs is {} with {}, {} better than its median",
            first.value.runs,
            first.subject,
            value(&bars.value.unit, top(first)),
            percent(ahead(first))
        );
        let reach = others.iter().map(|bar| ahead(bar));
        if let (Some(low), Some(high)) = (reach.clone().reduce(f64::min), reach.reduce(f64::max)) {
            let range = super::super::format::percent_range(low, high);
            text.push_str(&format!("; of the others the best run is {range} better than theirs"));
        }
        format!("{text}. {}", widest(bars))
    })
}

/// Lowest and highest of several changes in percent, with their subjects: `from -0.3 % (single) to +14 % (RAID 5 x4)`.
#[must_use]
pub fn changes(all: &[(f64, String)]) -> Option<String> {
    let by_change = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
    let known = || all.iter().filter(|(change, _)| change.is_finite());
    let (low, high) = (known().min_by(by_change)?, known().rev().max_by(by_change)?);
    let (least, most) = (change(low.0), change(high.0));
    Some(match all {
        [_] => format!("{most} ({})", high.1),
        _ if least == most => format!("{most} for all"),
        _ => format!("from {least} ({}) to {most} ({})", low.1, high.1),
    })
}

/// The figure of a part of the array as a share of that of the whole array, at positions that both have.
#[must_use]
pub fn part_of_whole(part: &LineChart, whole: &LineChart, what: &str) -> String {
    steady::told_of_both(part, whole, |part, whole| {
        let name = &part.y.name;
        times_of(part, whole)
            .map_or_else(String::new, |times| format!("{what} make {times} the {name} of the whole array."))
    })
}

/// The figures with write-back as multiples of those with write-through.
pub(super) fn back_of_through(back: &LineChart, through: &LineChart) -> String {
    steady::told_of_both(back, through, |back, through| {
        let name = &back.y.name;
        times_of(back, through)
            .map_or_else(String::new, |times| format!("Write-back makes {times} the {name} of write-through."))
    })
}

/// The lowest and the highest ratio of the same line in two charts, at positions that both have: `1.04 (single at 1
/// outstanding) to 1.50 times (RAID 5 x4 at 2 outstanding)`.
fn times_of(one: &LineChart, other: &LineChart) -> Option<String> {
    let mut all: Vec<(f64, String)> = Vec::new();
    for series in drawn(one) {
        let Some(other) = drawn(other).find(|other| other.subject == series.subject) else { continue };
        for point in finite(series) {
            let Some(y) = value_at(other, point.x) else { continue };
            all.push((point.y / y, format!("{} at {}", series.subject, place(&one.x, point.x))));
        }
    }
    all.retain(|(share, _)| share.is_finite());
    let by_share = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
    let (low, high) = (all.iter().min_by(by_share)?, all.iter().rev().max_by(by_share)?);
    let (least, most) = (fixed(low.0, 2), fixed(high.0, 2));
    Some(if least == most {
        format!("{most} times")
    } else {
        format!("{least} ({}) to {most} times ({})", low.1, high.1)
    })
}
