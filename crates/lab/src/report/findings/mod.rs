//! From results to sentences with numbers.
//!
//! A sentence says nothing that the data does not hold: causes come from [`Evidence`] alone, and where that is
//! missing or shows no cause, none is named.

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
pub use scenario::{brief, standings, table as standings_table, verdict, Entry, Scenario};

use super::data::{Better, Chart, Evidence, Finding, Lines, Load, Mark, Part, Point, Review, Scale, Series, Unit};
use super::format::percent;

/// From this share of the time on a part is the limit.
pub const BUSY_LIMIT: f64 = 0.90;
/// Results closer than this share are level.
const TIE: f64 = 0.02;
/// Findings of one chart; the gravest come first.
const FINDINGS_MAX: usize = 8;

/// Fill in the missing parts: an answer for every chart without one, and the findings of every chart.
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

/// What there is to say about a chart, gravest first.
#[must_use]
pub fn of_chart(chart: &Chart) -> Vec<Finding> {
    let mut found = match chart {
        Chart::Lines(lines) => of_lines(lines),
        Chart::Bars(_) | Chart::Heat(_) => Vec::new(),
    };
    found.sort_by_key(|finding| finding.kind);
    found.truncate(FINDINGS_MAX);
    found
}

fn of_lines(lines: &Lines) -> Vec<Finding> {
    let mut found = limits::warnings(lines);
    let lines = &*steady::lines(lines);
    let (shapes, explained) = shape::shapes(lines);
    found.extend(limits::limits(lines, &explained));
    found.extend(shapes);
    found.extend(compare::scaling(lines));
    found.extend(compare::ideals(lines));
    found.extend(compare::variants(lines));
    found
}

/// The result at a place, where there is one.
#[must_use]
pub fn value_at(series: &Series, x: f64) -> Option<f64> {
    series.points.iter().find(|point| point.x == x).map(|point| point.y).filter(|y| y.is_finite())
}

/// Lines alone: findings do not explain the measured points over them.
fn drawn(lines: &Lines) -> impl Iterator<Item = &Series> {
    lines.series.iter().filter(|series| series.mark == Mark::Line)
}

/// Results with finite numbers.
fn finite(series: &Series) -> Vec<&Point> {
    series.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite()).collect()
}

/// Is x a load that grows, so that y should grow with it: depth, clients, drives, block size? Larger blocks are
/// fewer requests, which needs no explanation.
fn load_axis(lines: &Lines) -> bool {
    let fewer = lines.x.unit == Unit::Bytes && lines.y.unit == Unit::named("IOPS");
    !fewer && (lines.x.scale == Scale::Log2 || lines.x.unit == Unit::None)
}

/// The best of a series by the axis of y.
fn best<'a>(lines: &Lines, points: &[&'a Point]) -> Option<&'a Point> {
    let by_y = |a: &&&Point, b: &&&Point| a.y.total_cmp(&b.y);
    match lines.y.better {
        // The first one, if several are equal: the lightest load that reaches it.
        Better::Higher | Better::Neither => points.iter().rev().max_by(by_y).copied(),
        Better::Lower => points.iter().min_by(by_y).copied(),
    }
}

/// The busiest part, the load generator aside.
fn busiest(evidence: &Evidence) -> Option<&Load> {
    let real = |load: &&Load| load.busy.is_finite() && load.part != Part::Generator;
    evidence.loads.iter().filter(real).rev().max_by(|a, b| a.busy.total_cmp(&b.busy))
}

/// The busiest of several parts below their limit, in words.
fn working(load: &Load) -> String {
    let busy = percent(load.busy.min(1.0));
    match load.part {
        Part::Drives => format!("the busiest drive works {busy} of the time"),
        _ => format!("the busiest, {}, works {busy} of the time", load.part),
    }
}

/// What limits a result, in words that follow a colon; `None` where the result carries no evidence.
fn cause(point: &Point) -> Option<String> {
    let load = busiest(point.evidence.as_ref()?)?;
    let busy = percent(load.busy.min(1.0));
    Some(if load.busy >= BUSY_LIMIT {
        format!("{} is the limit ({busy} busy)", load.part)
    } else {
        format!("no part is at its limit; {}", working(load))
    })
}

/// The part that is at its limit, if one is.
fn limit(point: &Point) -> Option<&Load> {
    point.evidence.as_ref().and_then(busiest).filter(|load| load.busy >= BUSY_LIMIT)
}

/// The first letter as at the beginning of a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
