//! Lines of results: one for each subject, over one axis of the cells.

use super::super::data::{AbsentPoint, Axis, Guide, GuideKind, Level, Lines, Series, Subject};
use super::bed::Ceiling;
use super::figure::{subject, Figure};
use super::Trial;
use crate::cell::{CellSpec, Direction};
use std::collections::BTreeMap;

/// Trials in groups of equal keys, in the order of first appearance.
pub fn grouped<'a, K: PartialEq>(all: &[&'a Trial], key: impl Fn(&CellSpec) -> K) -> Vec<(K, Vec<&'a Trial>)> {
    let mut groups: Vec<(K, Vec<&Trial>)> = Vec::new();
    for &trial in all {
        let key = key(&trial.spec);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(trial),
            None => groups.push((key, vec![trial])),
        }
    }
    groups
}

/// Lines over the place that `place` gives; cells without a place are left out, subjects without a result too.
pub fn lines(all: &[&Trial], x: Axis, place: impl Fn(&CellSpec) -> Option<f64>, figure: Figure) -> Lines {
    lines_of(all, x, place, figure, subject)
}

/// The same with names for the lines.
pub fn lines_of(
    all: &[&Trial],
    x: Axis,
    place: impl Fn(&CellSpec) -> Option<f64>,
    figure: Figure,
    name: impl Fn(&CellSpec) -> Subject,
) -> Lines {
    let mut series = Vec::new();
    for (subject, trials) in grouped(all, name) {
        let mut places = grouped(&trials, &place);
        places.retain(|(place, _)| place.is_some());
        places.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
        let (mut points, mut absent) = (Vec::new(), Vec::new());
        for (place, trials) in places {
            let at = place.unwrap_or(0.0);
            match figure.point(at, &trials) {
                Some(point) => points.push(point),
                None => absent.push(AbsentPoint { x: at, reason: reason(&trials) }),
            }
        }
        if !points.is_empty() {
            series.push(Series { absent, ..Series::line(subject, points) });
        }
    }
    Lines { x, y: figure.axis(), series, guides: Vec::new() }
}

/// Why trials have no figure.
pub fn reason(trials: &[&Trial]) -> String {
    let absence = trials.iter().find_map(|trial| trial.outcome.absence());
    absence.map_or_else(|| "no requests were counted".into(), |absence| absence.reason.clone())
}

/// The single drive, and the widest stripe; where drives stand side by side, the first and all of them.
fn single_and_widest(lines: &Lines) -> Option<(&Series, &Series)> {
    let plain = || lines.series.iter().filter(|one| one.subject.variant.is_empty() && !one.points.is_empty());
    let widest = |level| {
        let of_level = plain().filter(move |one| one.subject.level == level && one.subject.members > 1);
        of_level.max_by_key(|one| one.subject.members)
    };
    let alone = plain().find(|one| one.subject.level == Level::Jbod && one.subject.members == 1);
    let single = plain().find(|one| one.subject.level == Level::Single).or(alone)?;
    Some((single, widest(Level::Raid0).or_else(|| widest(Level::Jbod))?))
}

fn times_single(widest: &Series, corners: Vec<(f64, f64)>) -> Guide {
    let label = format!("{} x single", widest.subject.members);
    Guide { label, kind: GuideKind::Ideal, subject: Some(widest.subject.clone()), corners }
}

/// What the widest stripe would reach if every drive were as fast as the single one under the same load.
pub fn ideal(lines: &Lines) -> Option<Guide> {
    let (single, widest) = single_and_widest(lines)?;
    let members = f64::from(widest.subject.members);
    Some(times_single(widest, single.points.iter().map(|point| (point.x, point.y * members)).collect()))
}

/// What the widest stripe would reach if its drives shared the queue evenly and each were as fast as the single one is
/// with its share; with less than a request for each, so many drives work as there are requests.
pub fn ideal_shared(lines: &Lines) -> Option<Guide> {
    let (single, widest) = single_and_widest(lines)?;
    let members = f64::from(widest.subject.members);
    let corner = |x: f64| Some((x, members * at_share(single, x / members)?));
    let corners: Vec<(f64, f64)> = widest.points.iter().filter_map(|point| corner(point.x)).collect();
    (corners.len() > 1).then(|| times_single(widest, corners))
}

/// A series between its points in proportion, and before its first one from nothing on; none behind its last.
fn at_share(series: &Series, x: f64) -> Option<f64> {
    let first = series.points.first()?;
    if x <= first.x {
        return (first.x > 0.0).then(|| first.y * x / first.x);
    }
    let pair = series.points.windows(2).find(|pair| x <= pair[1].x)?;
    Some(pair[0].y + (pair[1].y - pair[0].y) * (x - pair[0].x) / (pair[1].x - pair[0].x))
}

/// What buses and data paths carry in a direction, as guides.
pub fn ceilings(ceilings: &[Ceiling], op: Option<Direction>) -> Vec<Guide> {
    let guide = |ceiling: &Ceiling| {
        let mbps = if op == Some(Direction::Write) { ceiling.write_mbps } else { ceiling.read_mbps };
        let label = format!("{} {:.0} MB/s", ceiling.name, mbps);
        Guide { label, kind: GuideKind::Limit, subject: None, corners: vec![(0.0, mbps)] }
    };
    ceilings.iter().map(guide).collect()
}

/// The axes that a cell names, as words.
pub fn named_axes(spec: &CellSpec) -> BTreeMap<String, String> {
    let mut axes = BTreeMap::new();
    if let Ok(serde_json::Value::Object(found)) = serde_json::to_value(&spec.axes) {
        for (name, value) in found {
            let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            axes.insert(name, words);
        }
    }
    axes
}

/// The axes whose values differ between cells, with how many values each has. Repetitions do not count.
pub fn varying(all: &[&Trial]) -> Vec<(String, usize)> {
    let mut values: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    let of_all: Vec<BTreeMap<String, String>> = all.iter().map(|trial| named_axes(&trial.spec)).collect();
    for name in of_all.iter().flat_map(BTreeMap::keys) {
        if name == "rep" || values.contains_key(name) {
            continue;
        }
        let mut found: Vec<Option<String>> = of_all.iter().map(|axes| axes.get(name).cloned()).collect();
        found.sort_unstable();
        found.dedup();
        values.insert(name.clone(), found);
    }
    values.into_iter().filter(|(_, found)| found.len() > 1).map(|(name, found)| (name, found.len())).collect()
}

/// The values of some axes of a cell in words: `qd 16, op read`.
pub fn axes_words(spec: &CellSpec, names: &[String]) -> String {
    let axes = named_axes(spec);
    let words: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let value = axes.get(name)?;
            Some(match name.as_str() {
                "rd" => format!("{value} % reads"),
                "qd" => format!("depth {value}"),
                "oio" => format!("{value} outstanding"),
                "bs" => value.parse().map_or_else(|_| value.clone(), super::super::format::bytes),
                "th" => format!("{value} client{}", if value == "1" { "" } else { "s" }),
                "op" | "step" | "set" | "fs" | "app" | "ctl" | "bus" | "drive" => value.replace('_', " "),
                "cache" => if value == "wb" { "write-back" } else { "write-through" }.into(),
                "cache_mib" => format!("{value} MiB of cache"),
                "zone" => if value == "32g" { "first 32 GB" } else { "whole array" }.into(),
                "cyc" => format!("cycle {value}"),
                other => format!("{other} {value}"),
            })
        })
        .collect();
    words.join(", ")
}
