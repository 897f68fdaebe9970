//! Parts that limit the speed, and reasons to doubt a result.

use super::super::data::{Evidence, FindingKind, GuideKind, LineChart, MachinePart, Point, ReportFinding};
use super::super::format::{capital, list, percent, percent_range, place, value};
use super::super::line_chart::spread;
use super::super::table::noisy;
use super::{best, drawn, finite, limit, BUSY_LIMIT};

/// If a result exceeds a limit by more than this share, another part than the limited one has answered.
const ABOVE_LIMIT: f64 = 1.02;

/// The parts that are at their limit at the best point of each line. Lines with the same part share one sentence. Lines
/// in `explained` have a sentence of their own.
pub fn limits(lines: &LineChart, explained: &[String]) -> Vec<ReportFinding> {
    let mut parts: Vec<(MachinePart, Vec<String>, f64, f64)> = Vec::new();
    for series in drawn(lines) {
        let name = series.subject.to_string();
        let points = finite(series);
        let Some(load) = best(lines, &points).and_then(limit) else { continue };
        if explained.contains(&name) {
            continue;
        }
        match parts.iter_mut().find(|(part, ..)| *part == load.part) {
            Some((_, names, low, high)) => {
                names.push(name);
                (*low, *high) = (low.min(load.busy), high.max(load.busy));
            }
            None => parts.push((load.part.clone(), vec![name], load.busy, load.busy)),
        }
    }
    let all = drawn(lines).count();
    let sentence = |(part, names, low, high): (MachinePart, Vec<String>, f64, f64)| {
        let names = if names.len() == all && all > 2 { "all of them".into() } else { list(&names) };
        let busy = percent_range(low.min(1.0), high.min(1.0));
        let text = format!("{part} is the limit of {names} at best ({busy} busy).");
        ReportFinding::new(FindingKind::Limit, capital(&text))
    };
    parts.into_iter().map(sentence).collect()
}

/// Warnings about noise, about results above the ceiling of a part, and about results that the generator limits.
pub fn warnings(lines: &LineChart) -> Vec<ReportFinding> {
    let mut found = Vec::new();
    found.extend(noise(lines));
    found.extend(generator(lines));
    found.extend(beyond(lines));
    found
}

fn noise(lines: &LineChart) -> Option<ReportFinding> {
    let mut worst: Option<(f64, String, &Point)> = None;
    let (mut count, mut all) = (0_u32, 0_u32);
    for series in &lines.series {
        for point in finite(series) {
            all += 1;
            let (low, high) = spread(point);
            if !noisy(point.y, low, high) {
                continue;
            }
            count += 1;
            let share = (high - low) / point.y.abs();
            if worst.as_ref().is_none_or(|(known, ..)| share > *known) {
                worst = Some((share, series.subject.to_string(), point));
            }
        }
    }
    let (share, name, point) = worst?;
    let runs = if point.runs > 1 { format!(" over {} runs", point.runs) } else { String::new() };
    let are = if count == 1 { "is" } else { "are" };
    let text = format!(
        "{count} of {all} results {are} noisy; the worst, {name} at {}, spreads by {}{runs}.",
        place(&lines.x, point.x),
        percent(share)
    );
    Some(ReportFinding::new(FindingKind::Warning, text))
}

/// The load of a part during a result.
fn busy(evidence: &Evidence, wanted: &MachinePart) -> Option<f64> {
    evidence.loads.iter().find(|load| load.part == *wanted).map(|load| load.busy)
}

fn generator(lines: &LineChart) -> Option<ReportFinding> {
    let mut names = Vec::new();
    let mut first: Option<(f64, f64)> = None;
    for series in &lines.series {
        let at_limit = |point: &&Point| {
            point
                .evidence
                .as_ref()
                .and_then(|known| busy(known, &MachinePart::Generator))
                .is_some_and(|b| b >= BUSY_LIMIT)
        };
        let points = finite(series);
        let Some(point) = points.iter().copied().find(at_limit) else { continue };
        names.push(series.subject.to_string());
        let share =
            point.evidence.as_ref().and_then(|known| busy(known, &MachinePart::Generator)).unwrap_or(BUSY_LIMIT);
        if first.is_none_or(|(x, _)| point.x < x) {
            first = Some((point.x, share));
        }
    }
    let (x, share) = first?;
    let text = format!(
        "From {} on the load generator is the limit ({} busy) of {}: the array may be faster than shown.",
        place(&lines.x, x),
        percent(share.min(1.0)),
        list(&names)
    );
    Some(ReportFinding::new(FindingKind::Warning, text))
}

fn beyond(lines: &LineChart) -> Vec<ReportFinding> {
    let mut found = Vec::new();
    for guide in lines.guides.iter().filter(|guide| guide.kind == GuideKind::Limit) {
        let [(_, limit)] = guide.corners.as_slice() else { continue };
        for series in &lines.series {
            let points = finite(series);
            let Some(top) = points.iter().max_by(|a, b| a.y.total_cmp(&b.y)) else { continue };
            if top.y > limit * ABOVE_LIMIT {
                let text = format!(
                    "{} makes {} at {}, more than {} can carry: a cache above it has answered.",
                    series.subject,
                    value(&lines.y.unit, top.y),
                    place(&lines.x, top.x),
                    guide.label
                );
                found.push(ReportFinding::new(FindingKind::Warning, text));
            }
        }
    }
    found
}
