//! The causes of a line's shape: where it becomes flat, has a dip or falls, and the differences at that point.

use super::super::data::{Better, Evidence, FindingKind, LineChart, MachinePart, Point, ReportFinding, Scale, Series};
use super::super::format::{list, number, percent, percent_range, place, rate as rounded, value};
use super::{best, cause, drawn, finite, limit, load_axis};

/// Values within this share of their highest count as equal.
const FLAT: f64 = 0.06;
/// A line becomes flat only if it was below this share of its level before.
const GROWN: f64 = 0.90;
/// Minimum number of positions in a flat part.
const FLAT_PLACES: usize = 3;
/// In a dip the value is lower than at both neighbours by more than this share.
const DIP: f64 = 0.08;
/// A rate explains a dip only if it differs by at least this number per request.
const RATE_STEP: f64 = 0.05;
/// The load of a part explains a dip only if it differs by at least this share.
const BUSY_STEP: f64 = 0.10;
/// Percentiles for the tail of a distribution: the median and a high one.
const TAIL: (f64, f64) = (50.0, 99.0);

/// Sentences about shapes, and the names of the lines whose limit they contain.
pub fn shapes(lines: &LineChart) -> (Vec<ReportFinding>, Vec<String>) {
    if lines.x.scale == Scale::Nines {
        return (drawn(lines).filter_map(|series| tail(lines, series)).collect(), Vec::new());
    }
    let mut found = Vec::new();
    let mut levels = Vec::new();
    for series in drawn(lines) {
        let points = finite(series);
        for index in 1..points.len().saturating_sub(1) {
            found.extend(dip(lines, series, &points[index - 1..=index + 1]));
        }
        if !load_axis(lines) || lines.y.better != Better::Higher {
            continue;
        }
        match level_from(&points) {
            Some(from) => levels.push(Level::of(lines, series, &points[from..])),
            None => found.extend(fall(lines, series, &points)),
        }
    }
    let explained = levels.iter().filter(|level| level.limit.is_some()).map(|level| level.name.clone()).collect();
    found.extend(flat_parts(&levels));
    (found, explained)
}

/// The flat part of a line.
struct Level {
    name: String,
    /// `levels off at 203 MB/s from 32 KiB on`, without the verb.
    place: String,
    /// The part that is at its limit, and its load.
    limit: Option<(MachinePart, f64)>,
    /// Otherwise the busiest part, as text.
    cause: Option<String>,
}

impl Level {
    fn of(lines: &LineChart, series: &Series, points: &[&Point]) -> Self {
        let top = best(lines, points).unwrap_or(points[0]);
        // The limit shows best at the highest load.
        let last = points[points.len() - 1];
        Self {
            name: series.subject.to_string(),
            place: format!("at {} from {} on", value(&lines.y.unit, top.y), place(&lines.x, points[0].x)),
            limit: limit(last).map(|load| (load.part.clone(), load.busy.min(1.0))),
            cause: cause(last),
        }
    }
}

/// Sentences about flat parts. Those with the same limit are combined.
fn flat_parts(levels: &[Level]) -> Vec<ReportFinding> {
    let part = |level: &Level| level.limit.as_ref().map(|(part, _)| part.clone());
    let mut kinds: Vec<(Option<MachinePart>, bool)> = Vec::new();
    for level in levels {
        let kind = (part(level), level.cause.is_some());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut found = Vec::new();
    for kind in kinds {
        let of_kind: Vec<&Level> = levels.iter().filter(|level| (part(level), level.cause.is_some()) == kind).collect();
        let (first, rest) = (of_kind[0], &of_kind[1..]);
        let mut places = vec![format!("{} levels off {}", first.name, first.place)];
        places.extend(rest.iter().map(|level| format!("{} {}", level.name, level.place)));
        let busy = || of_kind.iter().filter_map(|level| level.limit.as_ref()).map(|(_, busy)| *busy);
        let why = match (&kind.0, &first.cause) {
            (Some(part), _) => {
                let (low, high) = (busy().fold(1.0, f64::min), busy().fold(0.0, f64::max));
                format!(": {part} is the limit ({} busy)", percent_range(low, high))
            }
            (None, Some(cause)) if rest.is_empty() => format!(": {cause}"),
            (None, Some(_)) => ": no part of the machine is at its limit".into(),
            (None, None) => String::new(),
        };
        found.push(ReportFinding::new(FindingKind::Shape, format!("{}{why}.", list(&places))));
    }
    found
}

/// The position from which all values are equal, if they grew before and the flat part is long enough.
fn level_from(points: &[&Point]) -> Option<usize> {
    let mut from = points.len();
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for (index, point) in points.iter().enumerate().rev() {
        let (lower, higher) = (low.min(point.y), high.max(point.y));
        if lower < higher * (1.0 - FLAT) || lower <= 0.0 {
            break;
        }
        (low, high, from) = (lower, higher, index);
    }
    let grown = points[..from].iter().any(|point| point.y < high * GROWN);
    (points.len() - from >= FLAT_PLACES && grown).then_some(from)
}

/// A fall from the highest value to the last one.
fn fall(lines: &LineChart, series: &Series, points: &[&Point]) -> Option<ReportFinding> {
    let top = best(lines, points)?;
    let last = points.last()?;
    let steady = points.windows(2).skip_while(|pair| pair[0].x < top.x).all(|pair| pair[1].y <= pair[0].y);
    if top.x >= last.x || last.y > top.y * (1.0 - DIP) || !steady {
        return None;
    }
    let mut text = format!(
        "{} falls from {} at {} to {} at {}",
        series.subject,
        value(&lines.y.unit, top.y),
        place(&lines.x, top.x),
        value(&lines.y.unit, last.y),
        place(&lines.x, last.x)
    );
    if let Some(different) = different(last, &[top]) {
        text.push_str(&format!(": {different}"));
    } else if let Some(cause) = cause(last) {
        text.push_str(&format!(": {cause}"));
    }
    text.push('.');
    Some(ReportFinding::new(FindingKind::Shape, text))
}

/// A result that is worse than both neighbours by more than the spread of the runs.
fn dip(lines: &LineChart, series: &Series, three: &[&Point]) -> Option<ReportFinding> {
    let [before, here, after] = three else { return None };
    let word = match lines.y.better {
        Better::Higher => {
            let low = before.y.min(after.y);
            let clear = here.high.max(here.y) < before.low.min(before.y).min(after.low.min(after.y));
            (here.y < low * (1.0 - DIP) && clear).then_some("dips to")
        }
        Better::Lower => {
            let high = before.y.max(after.y);
            let clear = here.low.min(here.y) > before.high.max(before.y).max(after.high.max(after.y));
            (here.y > high * (1.0 + DIP) && clear).then_some("rises to")
        }
        Better::Neither => None,
    }?;
    let mut text = format!(
        "{} {word} {} at {} ({} and {} next to it)",
        series.subject,
        value(&lines.y.unit, here.y),
        place(&lines.x, here.x),
        value(&lines.y.unit, before.y),
        value(&lines.y.unit, after.y)
    );
    match different(here, &[before, after]) {
        Some(different) => text.push_str(&format!(": {different}")),
        None if here.evidence.is_some() => text.push_str("; no counter differs enough there to tell why"),
        None => (),
    }
    text.push('.');
    Some(ReportFinding::new(FindingKind::Shape, text))
}

/// The event whose frequency differs here, or the part whose load is higher.
fn different(here: &Point, others: &[&Point]) -> Option<String> {
    let evidence = here.evidence.as_ref()?;
    let beside: Vec<&Evidence> = others.iter().filter_map(|point| point.evidence.as_ref()).collect();
    if beside.len() < others.len() {
        return None;
    }
    rates(evidence, &beside).or_else(|| loads(evidence, &beside))
}

/// The rate with the largest relative change.
fn rates(here: &Evidence, beside: &[&Evidence]) -> Option<String> {
    let rate = |evidence: &Evidence, what: &str| {
        evidence.rates.iter().find(|rate| rate.what == what).map_or(0.0, |rate| rate.per_request)
    };
    let mut names: Vec<&str> = Vec::new();
    for evidence in beside.iter().copied().chain([here]) {
        let told = evidence.rates.iter().filter(|rate| !rate.effect.is_routine());
        names.extend(told.map(|rate| rate.what.as_str()));
    }
    names.sort_unstable();
    names.dedup();
    let mut most: Option<(f64, String)> = None;
    for what in names {
        let (now, then): (f64, Vec<f64>) = (rate(here, what), beside.iter().map(|other| rate(other, what)).collect());
        // The rate must differ from all others in the same direction.
        let nearest = then.iter().copied().min_by(|a, b| (a - now).abs().total_cmp(&(b - now).abs()))?;
        let one_side = then.iter().all(|other| (other > &now) == (nearest > now));
        let apart = (now - nearest).abs();
        let proportion = ((now + RATE_STEP) / (nearest + RATE_STEP)).ln().abs();
        if !one_side
            || apart.is_nan()
            || apart < RATE_STEP
            || most.as_ref().is_some_and(|(known, _)| *known >= proportion)
        {
            continue;
        }
        let others: Vec<String> = then.iter().map(|&other| rounded(other)).collect();
        most = Some((proportion, format!("{what} {} times per request, not {}", rounded(now), list(&others))));
    }
    most.map(|(_, text)| text)
}

/// The part whose load grew most.
fn loads(here: &Evidence, beside: &[&Evidence]) -> Option<String> {
    let grown = here.loads.iter().filter_map(|load| {
        let of = |other: &&Evidence| other.loads.iter().find(|one| one.part == load.part).map_or(0.0, |one| one.busy);
        let most = beside.iter().map(of).fold(0.0, f64::max);
        (load.busy - most >= BUSY_STEP).then_some((load.busy - most, load, most))
    });
    let (_, load, most) = grown.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!("{} works {} of the time, not {}", load.part, percent(load.busy.min(1.0)), percent(most.min(1.0))))
}

/// The factor by which the slowest percent is slower.
fn tail(lines: &LineChart, series: &Series) -> Option<ReportFinding> {
    let usual = super::value_at(series, TAIL.0)?;
    let rare = super::value_at(series, TAIL.1)?;
    let ratio = rare / usual;
    if !ratio.is_finite() {
        return None;
    }
    let (name, median) = (&series.subject, value(&lines.y.unit, usual));
    let mut text = if (ratio - 1.0).abs() <= super::TIE {
        format!("{name}: 99 of 100 requests take no longer than the median of {median}")
    } else {
        let rare = value(&lines.y.unit, rare);
        format!("{name}: one request in a hundred takes {rare} or more, {} times the median of {median}", number(ratio))
    };
    if let Some(slowest) = super::value_at(series, 100.0) {
        text.push_str(&format!("; the slowest takes {}", value(&lines.y.unit, slowest)));
    }
    text.push('.');
    Some(ReportFinding::new(FindingKind::Shape, text))
}
