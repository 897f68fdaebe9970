//! Makes sentences with numbers from results.
//!
//! A sentence never says more than the data show. Causes come only from [`Evidence`]; if it is missing or shows no
//! cause, the sentence names none.

mod answer;
mod compare;
mod limits;
mod questions;
mod scenario;
mod shape;
mod steady;

pub use answer::answer;
pub use compare::{order_effect, ratios};
pub use questions::{apart, best_run, changes, enough, part_of_whole};
pub use scenario::{brief, standings, table as standings_table, verdict, LoadScenario, ScenarioEntry, ScenarioGroup};

use super::data::{
    Better, Chart, Evidence, FindingKind, LineChart, MachinePart, Mark, PartLoad, Point, ReportCache, ReportFinding,
    Review, Scale, Series, Unit,
};
use super::format::percent;
use super::split_charts::{by_cache, SplitPart};

/// From this load on a part is the limit.
pub const BUSY_LIMIT: f64 = 0.90;
/// Results whose difference is below this share count as equal.
const TIE: f64 = 0.02;
/// Maximum number of findings for one chart; the most serious come first.
const FINDINGS_MAX: usize = 8;

/// Adds the missing parts: an answer for every chart without one, and the findings of every chart.
pub fn explain(review: &mut Review) {
    for panel in review.sections.iter_mut().flat_map(|section| &mut section.panels) {
        if panel.answer.is_empty() {
            panel.answer = answer(&panel.chart);
        }
        for finding in of_chart(&panel.chart) {
            if !panel.findings.contains(&finding) {
                panel.findings.push(finding);
            }
        }
        panel.findings.sort_by_key(|finding| finding.kind);
    }
}

/// The findings of a chart, the most serious first.
#[must_use]
pub fn of_chart(chart: &Chart) -> Vec<ReportFinding> {
    let mut found = match chart {
        Chart::Lines(lines) => {
            let parts = by_cache(lines);
            let most = FINDINGS_MAX / parts.len();
            let found = parts.iter().flat_map(|part| of_part(part, most));
            found.chain(cache_effect(&parts)).collect::<Vec<_>>()
        }
        Chart::Bars(_) | Chart::Heat(_) => Vec::new(),
    };
    found.sort_by_key(|finding| finding.kind);
    found
}

/// The effect of write-back, if its arrays were also measured with write-through.
fn cache_effect(parts: &[SplitPart]) -> Option<ReportFinding> {
    let of = |cache| parts.iter().find(|part| part.cache == Some(cache));
    let (back, through) = (of(ReportCache::Back)?, of(ReportCache::Through)?);
    let words = questions::back_of_through(&back.lines, &through.lines);
    (!words.is_empty()).then(|| ReportFinding::new(FindingKind::Comparison, words))
}

/// The most serious findings about the arrays of a write cache, which is named if there are several.
fn of_part(part: &SplitPart, most: usize) -> Vec<ReportFinding> {
    let mut found = of_lines(&part.lines);
    found.sort_by_key(|finding| finding.kind);
    found.truncate(most);
    if !part.title.is_empty() {
        found.iter_mut().for_each(|finding| finding.text = format!("{}: {}", part.title, finding.text));
    }
    found
}

fn of_lines(lines: &LineChart) -> Vec<ReportFinding> {
    let mut found = limits::warnings(lines);
    if !steady::are_telling(lines) {
        return found;
    }
    let lines = &*steady::lines(lines);
    let (shapes, explained) = shape::shapes(lines);
    found.extend(limits::limits(lines, &explained));
    found.extend(shapes);
    found.extend(compare::scaling(lines));
    found.extend(compare::ideals(lines));
    found.extend(compare::variants(lines));
    found
}

/// The result at a position, if there is one.
#[must_use]
pub fn value_at(series: &Series, x: f64) -> Option<f64> {
    series.points.iter().find(|point| point.x == x).map(|point| point.y).filter(|y| y.is_finite())
}

/// Only lines: findings do not explain the measured points over them.
fn drawn(lines: &LineChart) -> impl Iterator<Item = &Series> {
    lines.series.iter().filter(|series| series.mark == Mark::Line)
}

/// Results with finite numbers.
fn finite(series: &Series) -> Vec<&Point> {
    series.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite()).collect()
}

/// Is x a load with which y should grow: depth, clients, drives, block size? Larger blocks mean fewer requests, which
/// needs no explanation.
fn load_axis(lines: &LineChart) -> bool {
    let fewer = lines.x.unit == Unit::Bytes && lines.y.unit == Unit::named("IOPS");
    !fewer && (lines.x.scale == Scale::Log2 || lines.x.unit == Unit::None)
}

/// The best point of a series, by the axis of y.
fn best<'a>(lines: &LineChart, points: &[&'a Point]) -> Option<&'a Point> {
    let by_y = |a: &&&Point, b: &&&Point| a.y.total_cmp(&b.y);
    match lines.y.better {
        // If several are equal, the first one: the lowest load that reaches this value.
        Better::Higher | Better::Neither => points.iter().rev().max_by(by_y).copied(),
        Better::Lower => points.iter().min_by(by_y).copied(),
    }
}

/// The busiest part, the load generator aside.
fn busiest(evidence: &Evidence) -> Option<&PartLoad> {
    let real = |load: &&PartLoad| load.busy.is_finite() && load.part != MachinePart::Generator;
    evidence.loads.iter().filter(real).rev().max_by(|a, b| a.busy.total_cmp(&b.busy))
}

/// The busiest of several parts below their limit, in words.
fn working(load: &PartLoad) -> String {
    let busy = percent(load.busy.min(1.0));
    match load.part {
        MachinePart::Drives => format!("the busiest drive works {busy} of the time"),
        _ => format!("the busiest, {}, works {busy} of the time", load.part),
    }
}

/// The limit of a result, as text after a colon. `None` if the result has no evidence.
fn cause(point: &Point) -> Option<String> {
    let load = busiest(point.evidence.as_ref()?)?;
    let busy = percent(load.busy.min(1.0));
    Some(if load.busy >= BUSY_LIMIT {
        format!("{} is the limit ({busy} busy)", load.part)
    } else {
        format!("no part is at its limit; {}", working(load))
    })
}

/// The part that is at its limit, if any.
fn limit(point: &Point) -> Option<&PartLoad> {
    point.evidence.as_ref().and_then(busiest).filter(|load| load.busy >= BUSY_LIMIT)
}

#[cfg(test)]
mod tests;
